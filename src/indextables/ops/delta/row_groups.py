"""Which row groups of a Parquet file can hold a matching row, by the statistics of its footer.

The statistics are laid out as those of files are, one row per row group, and
asked of the same pruner. Which bounds are trusted, `split.read.group_bounds` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from indextables.log.delta.columns import DeltaColumns, Leaf
from indextables.ops.delta.conform import find, widened
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node, columns_of
from indextables.split.read.group_bounds import pruned_by, statistics_of


def groups_left(
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
    asked = ((".".join(leaf.logical), _statistics(opened, leaf, columns, groups)) for leaf in leaves)
    known = {name: found for name, found in asked if found is not None}
    if not groups or not known:
        return groups
    table = pa.table(
        {
            "num_records": pa.array([footer.row_group(group).num_rows for group in groups], pa.int64()),
            "partition_values": _repeated(partition_values, columns, len(groups)),
            **pruned_by(known),
        }
    )
    kept = prune_table(where, table, columns.schema, columns.partition_columns).mask
    return [group for group, keep in zip(groups, kept.to_pylist(), strict=True) if keep]


def _repeated(values: Mapping[str, Any] | None, columns: DeltaColumns, rows: int) -> pa.Array:
    fields = [pa.field(name, columns.schema.field(name).type) for name in columns.partition_columns]
    row = None if values is None else {name: values.get(name) for name in columns.partition_columns}
    return pa.array([row] * rows, pa.struct(fields))


def _statistics(
    opened: Any, leaf: Leaf, columns: DeltaColumns, groups: Sequence[int]
) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Minimum, maximum and null count of a column by row group, in the table's type; None if unknown."""
    place = _place(opened, leaf, columns)
    if place is None:
        return None
    at, kind = place
    found = statistics_of([opened.metadata.row_group(group).column(at) for group in groups], kind)
    if found is None:
        return None
    lower, upper, counts = found
    if not leaf.comparable:
        lower = upper = pa.nulls(len(groups), kind)
    try:
        return widened(lower, leaf.type), widened(upper, leaf.type), counts
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(groups), leaf.type), pa.nulls(len(groups), leaf.type), counts


def _place(opened: Any, leaf: Leaf, columns: DeltaColumns) -> tuple[int, pa.DataType] | None:
    """The number of the column chunk that holds a leaf, and its type in the file."""
    fields = msgspec.json.decode(columns.schema_string)["fields"]
    parent: Any = opened.schema_arrow
    path: list[str] = []
    for name in leaf.logical:
        field = next(item for item in fields if item["name"] == name)
        found = find(parent, field, columns.mode)
        if found is None:
            return None
        path.append(found.name)
        parent = found.type
        fields = field["type"]["fields"] if isinstance(field["type"], dict) else ()
    wanted = ".".join(path)
    schema = opened.schema
    places = [at for at in range(len(schema)) if schema.column(at).path == wanted]
    # Two columns may print alike where a name holds a dot; neither is trusted then.
    if len(places) != 1 or schema.column(places[0]).max_repetition_level:
        return None
    return places[0], parent
