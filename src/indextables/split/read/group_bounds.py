"""Which row groups can hold a matching row, by the statistics in a Parquet footer.

The statistics are arranged like those of files, one row per row group, and given to the
same pruner. Only bounds that every Parquet writer gets right are used: no upper bounds of
floats (writers ignore NaN, which sorts above all), none of legacy timestamps, none of
byte strings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node, columns_of

_PLAIN = ("INT32", "INT64", "BOOLEAN")


def groups_left(metadata: Any, stored: pa.Schema, where: Node, without: Collection[str]) -> list[bool]:
    """For every row group whether it can hold a match; statistics of columns in `without` are not used.

    `stored` are the columns as the file has them. Columns whose type differs from the filter's are not used.
    """
    paths = {metadata.row_group(0).column(at).path_in_schema: at for at in range(metadata.num_columns)}
    groups = range(metadata.num_row_groups)
    known: dict[str, tuple[pa.Array, pa.Array, pa.Array]] = {}
    for column in columns_of(where):
        at = paths.get(column.name)
        same = (
            len(column.path) == 1
            and column.name in stored.names
            and stored.field(column.name).type == column.type
        )
        if at is not None and same and column.name not in without:
            chunks = [metadata.row_group(group).column(at) for group in groups]
            found = statistics_of(chunks, column.type)
            if found is not None:
                known[column.name] = found
    if not known:
        return [True] * len(groups)
    lower, upper, nulls = (
        pa.StructArray.from_arrays([found[place] for found in known.values()], list(known))
        for place in range(3)
    )
    rows = pa.array([metadata.row_group(group).num_rows for group in groups], pa.int64())
    table = pa.table({"num_records": rows, "min": lower, "max": upper, "null_count": nulls})
    kept: list[bool] = prune_table(where, table, pa.schema([]), ()).mask.to_pylist()
    return kept


def statistics_of(chunks: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Minimum, maximum and null count of a column for each row group, in the column's type in the file."""
    if pa.types.is_unsigned_integer(kind):
        return None
    bounds = [_bounds(chunk, kind) for chunk in chunks]
    counts = pa.array([_null_count(chunk) for chunk in chunks], pa.int64())
    try:
        return (
            pa.array([low for low, _ in bounds], kind),
            pa.array([high for _, high in bounds], kind),
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
        return (None if low != low else low), None  # noqa: PLR0124 - NaN is not itself
    return low, high
