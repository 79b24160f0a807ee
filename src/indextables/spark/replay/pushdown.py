"""The part of a predicate that Parquet itself can test on typed statistics.

The pruner's conditions are exact but no reader understands them. Comparisons of
numbers and dates that stand alone or under AND are therefore said once more in
the plain form that Spark hands to its Parquet reader, which then skips whole
row groups of a checkpoint. They only repeat what the conditions imply, as long
as no file has a minimum above its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.delta.replay import DeltaRequest
from indextables.log.replay.rule import ReplayRequest
from indextables.predicate.tree import And, Compare, Node
from indextables.predicate.tree import Column as TreeColumn
from indextables.spark.read.filters import literal
from indextables.spark.replay.delta_adds import raw_column


@dataclass(frozen=True, slots=True, eq=False)
class Pushable:
    """A condition for the Parquet reader, and where it must not be used."""

    condition: Column
    crossed: Column
    """True for a file that has a minimum above its maximum, from which nothing follows."""

    def and_also(self, other: Pushable) -> Pushable:
        """Both conditions."""
        return Pushable(self.condition & other.condition, self.crossed | other.crossed)


def pushable(node: Node | None, frame: DataFrame, request: ReplayRequest) -> Pushable | None:
    """What the Parquet reader can test; None where statistics are text or nothing can be pushed."""
    if not isinstance(request, DeltaRequest) or raw_column("stats_parsed") not in frame.columns:
        return None
    parts = node.children if isinstance(node, And) else (node,)
    kind = frame.schema[raw_column("stats_parsed")].dataType
    conditions = (_condition(part, request, kind) for part in parts if isinstance(part, Compare))
    pushed = [condition for condition in conditions if condition is not None]
    return reduce(Pushable.and_also, pushed) if pushed else None


def _condition(node: Compare, request: DeltaRequest, kind: T.DataType) -> Pushable | None:
    column = node.column
    if not isinstance(column, TreeColumn) or column.is_one_of(request.partition_columns):
        return None
    leaf = request.delta.leaves.get(column.path)
    if leaf is None or not leaf.comparable or not _is_plain(leaf.type):
        return None
    value = literal(node.literal.value, leaf.type)
    conditions = []
    least, greatest = (_statistic(kind, (name, *leaf.physical)) for name in ("minValues", "maxValues"))
    if least is not None and node.op in {"=", "<", "<="}:
        conditions.append(least.isNull() | (least < value if node.op == "<" else least <= value))
    if greatest is not None and node.op in {"=", ">", ">="}:
        conditions.append(greatest.isNull() | (greatest > value if node.op == ">" else greatest >= value))
    if not conditions:
        return None
    crossed = (
        F.lit(False) if least is None or greatest is None else F.coalesce(least > greatest, F.lit(False))
    )
    return Pushable(reduce(Column.__and__, conditions), crossed)


def _statistic(kind: T.DataType, path: tuple[str, ...]) -> Column | None:
    """A typed statistic; None where the checkpoint has none, as for columns that came later."""
    field: Any = F.col(raw_column("stats_parsed"))
    for name in path:
        if not isinstance(kind, T.StructType) or name not in kind.names:
            return None
        kind, field = kind[name].dataType, field.getField(name)
    return field


def _is_plain(kind: pa.DataType) -> bool:
    """Types whose order needs no care: no NaN, no cut text, no cut instants."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind))
