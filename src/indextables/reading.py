"""What every read of one version obeys: its store, its columns, and the settings in force.

The snapshot makes it and every function below a verb takes it, so no caller chooses again
between what an option says and what the table says. Pickled, it carries the address of its
store: an executor opens the store anew and reads by the same settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.lazy import pa
from indextables.model.column_names import ColumnNames
from indextables.options import Options, SearchOptions
from indextables.records import dataclass
from indextables.storage.store import Store, StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class Reading:
    """One way of reading one version of a table."""

    store: Store
    schema: pa.Schema
    settings: Options
    """The caller's options, with the table's properties in the place of defaults."""
    names: ColumnNames | None = None
    """The names under which splits have the columns, where they differ from the table's."""

    @property
    def search(self) -> SearchOptions:
        """How searches run: the most hits of a split, the operator between words, the cache of indexes."""
        return self.settings.search

    @property
    def zone(self) -> str:
        """The time zone for times without an offset, in conditions and queries."""
        return self.settings.search.time_zone

    def columns(self, names: Sequence[str]) -> pa.Schema:
        """Some columns of the table, in the given order."""
        return pa.schema([self.schema.field(name) for name in names])

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (self.store.spec(), self.schema, self.settings, self.names)


def _opened_again(
    store: StoreSpec, schema: pa.Schema, settings: Options, names: ColumnNames | None
) -> Reading:
    return Reading(open_store(store), schema, settings, names)
