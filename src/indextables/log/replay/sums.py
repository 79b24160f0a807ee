"""Sums over a table of live files."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from indextables.lazy import pc
from indextables.log.replay.rule import ReplayMetrics, Sums


def sums_of(files: pa.Table, columns: Collection[str], replay: ReplayMetrics | None = None) -> Sums:
    """Sum the numbers of these columns, and count in how many files each has a value.

    Of deletion vectors, the deleted rows are summed.
    """
    counts = {name: len(files) - files.column(name).null_count for name in columns}
    numbers = {name: _numbers(files.column(name)) for name in columns}
    sums = {
        name: int(pc.sum(column, min_count=0).as_py())
        for name, column in numbers.items()
        if column is not None
    }
    return Sums(len(files), sums, counts, replay)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if pa.types.is_struct(column.type) and column.type.get_field_index("cardinality") >= 0:
        return pc.struct_field(column, "cardinality")
    return column if pa.types.is_integer(column.type) else None
