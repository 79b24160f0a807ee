"""Which row groups can hold a matching row, by the statistics in a Parquet footer.

The statistics are arranged like those of files, one row per row group, and given to the
same pruner. Only bounds that every Parquet writer gets right are used: upper bounds of
floats for their numbers alone (writers ignore NaN, which sorts above all), none of legacy
timestamps, none of byte strings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.model.arrays import from_values, integers
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node, columns_of

_PLAIN = ("INT32", "INT64", "BOOLEAN")


Bounds = tuple[pa.Array, pa.Array, pa.Array]
"""Minimum, maximum (of floats that of the numbers) and null count of a column, one value per row group."""


class GroupStatistics:
    """The statistics of one footer; those of a column are decoded once."""

    def __init__(self, metadata: Any, stored: pa.Schema) -> None:
        """Take the footer, and the columns as the file has them."""
        self._metadata = metadata
        self._stored = stored
        self._groups = range(metadata.num_row_groups)
        self._paths = {
            metadata.row_group(0).column(at).path_in_schema: at for at in range(metadata.num_columns)
        }
        self._rows = integers([metadata.row_group(group).num_rows for group in self._groups])
        self._bounds: dict[str, Bounds | None] = {}

    def groups_left(self, where: Node, without: Collection[str]) -> list[bool]:
        """For every row group whether it can hold a match; statistics of columns in `without` are not used.

        Columns whose type differs from the filter's are not used either.
        """
        bounds: dict[str, Bounds] = {}
        for column in columns_of(where):
            if column.name in without or len(column.path) > 1:
                continue
            column_bounds = self._column(column.name)
            if column_bounds is not None and column_bounds[0].type == column.type:
                bounds[column.name] = column_bounds
        if not bounds:
            return [True] * len(self._groups)
        table = pa.table({"num_records": self._rows, **pruned_by(bounds)})
        left: list[bool] = prune_table(where, table, pa.schema([]), ()).mask.to_pylist()
        return left

    def _column(self, name: str) -> Bounds | None:
        if name not in self._bounds:
            at = self._paths.get(name) if name in self._stored.names else None
            chunks = (
                [] if at is None else [self._metadata.row_group(group).column(at) for group in self._groups]
            )
            self._bounds[name] = None if at is None else statistics_of(chunks, self._stored.field(name).type)
        return self._bounds[name]


def pruned_by(bounds: Mapping[str, Bounds], no_nan: Collection[str] = ()) -> dict[str, pa.StructArray]:
    """Bounds by column name in the structs that the pruner takes; columns of `no_nan` hold numbers alone."""
    structs: dict[str, dict[str, pa.Array]] = {"min": {}, "max": {}, "max_number": {}, "null_count": {}}
    for name, (lower, upper, nulls) in bounds.items():
        greatest = "max_number" if pa.types.is_floating(upper.type) and name not in no_nan else "max"
        for struct, values in (("min", lower), (greatest, upper), ("null_count", nulls)):
            structs[struct][name] = values
    return {
        struct: pa.StructArray.from_arrays(list(children.values()), list(children))
        for struct, children in structs.items()
        if children
    }


def statistics_of(chunks: Sequence[Any], kind: pa.DataType) -> Bounds | None:
    """Minimum, maximum and null count of a column for each row group, in the column's type in the file."""
    if pa.types.is_unsigned_integer(kind):
        return None
    bounds = [_bounds(chunk, kind) for chunk in chunks]
    counts = from_values([_null_count(chunk) for chunk in chunks], pa.int64())
    try:
        return (
            from_values([low for low, _ in bounds], kind),
            from_values([high for _, high in bounds], kind),
            counts,
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        lower = upper = pa.nulls(len(chunks), kind)
    return lower, upper, counts


def _null_count(chunk: Any) -> int | None:
    statistics = chunk.statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


def _bounds(chunk: Any, kind: pa.DataType) -> tuple[Any, Any]:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return None, None
    floating = chunk.physical_type in {"FLOAT", "DOUBLE"}
    if chunk.physical_type not in _PLAIN and not floating and not pa.types.is_string(kind):
        return None, None
    try:
        low, high = statistics.min, statistics.max
    except (ValueError, OverflowError):
        # A time outside the range of Python's `datetime`.
        return None, None
    if floating:
        low, high = (None if math.isnan(end) else end for end in (low, high))
    return low, high
