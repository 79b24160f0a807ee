"""The adds of Delta commits as executors make columns of them: what a query needs, typed where it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from indextables.log.delta.columns import DeltaColumns
from indextables.log.delta.commits import key_of
from indextables.log.delta.files.file_table import COLUMNS, STATISTICS, Wanted, form_columns, raw_table
from indextables.model.actions import AddAction, RemoveAction
from indextables.spark.replay.delta_adds import Names, leaves_of, raw_column
from indextables.spark.replay.form import in_micros

_TYPED = STATISTICS | {"partition_values"}


@dataclass(frozen=True, slots=True)
class DeltaAdds:
    """How executors lay adds of commits out: columns of the files() form, and raw fields of `add`."""

    names: DeltaColumns
    form: Wanted
    """Columns of the files() form."""
    raw: frozenset[str]
    """Fields of `add` as the log has them."""

    @classmethod
    def whole(cls, names: DeltaColumns) -> DeltaAdds:
        """With every column of the form."""
        columns = frozenset(COLUMNS) - {"uri"}
        return cls(names, Wanted(columns, tuple(leaves_of(names, None))), frozenset())

    @classmethod
    def needed(cls, names: DeltaColumns, columns: frozenset[str], statistics: Names) -> DeltaAdds:
        """With what a query shows or looks at.

        A query types what it shows by itself, but statistics and partition values are looked at here.
        """
        leaves = tuple(leaves_of(names, statistics))
        shown = Wanted(columns - STATISTICS).sources(None)
        return cls(names, Wanted((columns & _TYPED) | {"path"}, leaves), frozenset(shown))

    def key(self, action: AddAction | RemoveAction) -> tuple[str, str | None]:
        """Path and deletion vector."""
        return key_of(action)

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The wanted columns; one that has no fields at all is left out."""
        table = raw_table(adds, {*self.raw, *self.form.sources(None)})
        columns = form_columns(table, self.names, self.form)
        columns |= {raw_column(name): table.column(name).combine_chunks() for name in sorted(self.raw)}
        with_fields = {name: column for name, column in columns.items() if column.type != pa.struct([])}
        return in_micros(pa.RecordBatch.from_pydict(with_fields)).to_struct_array()
