"""The names that columns have in the files of a table whose columns were renamed, dropped or added again.

Users, schemas, filters, properties and queries go by the table's names. Statistics and partition values
of adds, the columns of splits and the fields of their indexes go by stored names, which a column keeps
for as long as it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from indextables.lazy import pa
from indextables.records import dataclass

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Which stored name stands for which column of one version; only where they differ for some column.

    >>> names = ColumnNames((("message", "msg"), ("id", "id")))
    >>> names.stored(["id", "message"]), names.of_values({"msg": "x", "dropped": "y"})
    (['id', 'msg'], {'message': 'x'})
    """

    pairs: tuple[tuple[str, str], ...]
    """The name of every column with its stored name."""
    stored_names: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Stored names by column."""
    columns: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """Columns by stored name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stored_names", dict(self.pairs))
        object.__setattr__(self, "columns", {stored: name for name, stored in self.pairs})

    def stored(self, names: Iterable[str]) -> list[str]:
        """The stored names of some columns."""
        return [self.stored_names[name] for name in names]

    def present(self, stored: Iterable[str]) -> list[str]:
        """The columns that have these stored names; those of dropped columns have none."""
        return [self.columns[name] for name in stored if name in self.columns]

    def stored_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a table, or some of them, under their stored names."""
        return pa.schema([column.with_name(self.stored_names[column.name]) for column in schema])

    def renamed(self, table: Any) -> Any:
        """A batch or table of rows under the stored names of its columns."""
        return table.rename_columns(self.stored(table.schema.names))

    def of_values(self, values: Mapping[str, V]) -> dict[str, V]:
        """What is stored by column, such as statistics by dotted path, by the table's names."""
        return _translated(values, self.columns)

    def stored_leaf(self, name: str) -> str:
        """A column, or a field inside one by its dotted path, as it is stored; any other name unchanged."""
        return next(iter(_translated({name: None}, self.stored_names)), name)

    def leaf(self, stored: str) -> str | None:
        """The column, or the field inside one, that is stored by this dotted path; None if it was dropped."""
        return next(iter(_translated({stored: None}, self.columns)), None)


def _translated(values: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
    result: dict[str, V] = {}
    for path, value in values.items():
        name = names.get(path)
        if name is None:
            # A name may contain dots itself: the longest column that the path begins with is meant.
            end = path.rfind(".")
            while end > 0 and path[:end] not in names:
                end = path.rfind(".", 0, end)
            if end <= 0:
                continue
            name = names[path[:end]] + path[end:]
        result[name] = value
    return result
