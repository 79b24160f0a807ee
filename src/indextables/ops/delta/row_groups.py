"""Which row groups of a Parquet file can hold a matching row, by the statistics of its footer.

The statistics are laid out as those of files are, one row per row group, and
asked of the same pruner. Which bounds are trusted, `split.read.group_bounds` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from indextables.log.delta.columns import DeltaColumns, SchemaLeaf
from indextables.ops.delta.conform import find, widened
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node, columns_of
from indextables.split.read.group_bounds import pruned_by, statistics_of


def groups_to_read(
    opened: Any, where: Node, columns: DeltaColumns, partition_values: Mapping[str, Any] | None
) -> list[int]:
    """The numbers of the row groups to read, ascending."""
    footer = opened.metadata
    groups = list(range(footer.num_row_groups))
    names = {column.name for column in columns_of(where)}
    leaves = [
        leaf
        for leaf in columns.leaves.values()
        if ".".join(leaf.logical) in names and leaf.logical[0] not in columns.partition_columns
    ]
    by_name = ((".".join(leaf.logical), _statistics(opened, leaf, columns, groups)) for leaf in leaves)
    statistics = {name: bounds for name, bounds in by_name if bounds is not None}
    if not groups or not statistics:
        return groups
    table = pa.table(
        {
            "num_records": pa.array([footer.row_group(group).num_rows for group in groups], pa.int64()),
            "partition_values": _repeated(partition_values, columns, len(groups)),
            **pruned_by(statistics, {".".join(leaf.logical) for leaf in leaves if leaf.no_nan}),
        }
    )
    may_match = prune_table(where, table, columns.schema, columns.partition_columns).mask
    return [group for group, keep in zip(groups, may_match.to_pylist(), strict=True) if keep]


def _repeated(values: Mapping[str, Any] | None, columns: DeltaColumns, rows: int) -> pa.Array:
    fields = [pa.field(name, columns.schema.field(name).type) for name in columns.partition_columns]
    row = None if values is None else {name: values.get(name) for name in columns.partition_columns}
    return pa.array([row] * rows, pa.struct(fields))


def _statistics(
    opened: Any, leaf: SchemaLeaf, columns: DeltaColumns, groups: Sequence[int]
) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Minimum, maximum and null count of a column by row group, in the table's type; None if unknown."""
    chunk = _column_chunk(opened, leaf, columns)
    if chunk is None:
        return None
    at, kind = chunk
    statistics = statistics_of([opened.metadata.row_group(group).column(at) for group in groups], kind)
    if statistics is None:
        return None
    lower, upper, counts = statistics
    if not leaf.comparable:
        lower = upper = pa.nulls(len(groups), kind)
    try:
        return widened(lower, leaf.type), widened(upper, leaf.type), counts
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(groups), leaf.type), pa.nulls(len(groups), leaf.type), counts


def _column_chunk(opened: Any, leaf: SchemaLeaf, columns: DeltaColumns) -> tuple[int, pa.DataType] | None:
    """The number of the column chunk that holds a leaf, and its type in the file."""
    fields = msgspec.json.decode(columns.schema_string)["fields"]
    parent: Any = opened.schema_arrow
    path: list[str] = []
    for name in leaf.logical:
        field = next(item for item in fields if item["name"] == name)
        stored = find(parent, field, columns.mode)
        if stored is None:
            return None
        path.append(stored.name)
        parent = stored.type
        fields = field["type"]["fields"] if isinstance(field["type"], dict) else ()
    dotted_path = ".".join(path)
    schema = opened.schema
    columns_so_named = [at for at in range(len(schema)) if schema.column(at).path == dotted_path]
    # Two columns may print alike where a name holds a dot; neither is trusted then.
    if len(columns_so_named) != 1 or schema.column(columns_so_named[0]).max_repetition_level:
        return None
    return columns_so_named[0], parent
