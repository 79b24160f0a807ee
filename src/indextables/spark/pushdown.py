"""The part of a predicate that Parquet itself can test on typed statistics.

The pruner's conditions are exact but no reader understands them. Comparisons of
numbers and dates that stand alone or under AND are therefore said once more in
the plain form that Spark hands to its Parquet reader, which then skips whole
row groups of a checkpoint. They only repeat what the conditions imply.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.log.delta_replay import DeltaRequest
from indextables.log.replay import ReplayRequest
from indextables.predicate.tree import And, Compare, Node
from indextables.predicate.tree import Column as TreeColumn
from indextables.spark.delta_base import raw_column
from indextables.spark.skipping import literal


def pushable(node: Node | None, frame: DataFrame, request: ReplayRequest) -> Column | None:
    """A condition for the Parquet reader; None where statistics are text or nothing can be pushed."""
    if not isinstance(request, DeltaRequest) or not _has_typed_statistics(frame):
        return None
    parts = node.children if isinstance(node, And) else (node,)
    found: Column | None = None
    for part in parts:
        condition = _condition(part, request) if isinstance(part, Compare) else None
        if condition is not None:
            found = condition if found is None else found & condition
    return found


def _has_typed_statistics(frame: DataFrame) -> bool:
    return raw_column("stats_parsed") in frame.columns


def _condition(node: Compare, request: DeltaRequest) -> Column | None:
    column = node.column
    if not isinstance(column, TreeColumn) or column.name in request.partition_columns:
        return None
    leaf = request.delta.leaves.get(column.path)
    if leaf is None or not leaf.comparable or not _is_plain(leaf.type):
        return None
    value = literal(node.literal.value, leaf.type)
    conditions = []
    if node.op in {"=", "<", "<="}:
        least = _statistic("minValues", leaf.physical)
        conditions.append(least.isNull() | (least < value if node.op == "<" else least <= value))
    if node.op in {"=", ">", ">="}:
        greatest = _statistic("maxValues", leaf.physical)
        conditions.append(greatest.isNull() | (greatest > value if node.op == ">" else greatest >= value))
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1]


def _statistic(group: str, path: tuple[str, ...]) -> Column:
    found: Any = F.col(raw_column("stats_parsed"))[group]
    for name in path:
        found = found.getField(name)
    return found


def _is_plain(kind: pa.DataType) -> bool:
    """Types whose order needs no care: no NaN, no cut text, no cut instants."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind))
