"""DROP INDEXTABLES PARTITIONS: take whole partitions out of the table.

The condition may name partition columns only, so that a split is in or out as
a whole and no file is rewritten. The files stay on disk until PURGE, and older
versions can still be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.display.plain import counted
from indextables.errors import PredicateError
from indextables.log.commit.changes import removals
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.outcomes import NO_ACTION, SUCCESS, DropPartitionsResult
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.prune.rule import columns_needed
from indextables.predicate.tree import Node


@dataclass(frozen=True, slots=True)
class DropPlan:
    """The splits of the chosen partitions."""

    adds: tuple[AddAction, ...]

    @property
    def partitions(self) -> int:
        """How many partitions they make up."""
        return len({tuple(sorted(add.partition_values.items())) for add in self.adds})


def require_partition_condition(where: Any, snapshot: Snapshot, advice: str = "") -> Node:
    """The condition as a tree; an error with the advice if it uses anything but partition columns."""
    return require_partition_columns(
        snapshot.filter_of(where), snapshot.partition_columns, snapshot.store.uri, advice
    )


def require_partition_columns(
    node: Node | None, partition_columns: Sequence[str], uri: str, advice: str = ""
) -> Node:
    """The condition, if it uses partition columns alone; else an error with the advice."""
    if node is None:
        raise PredicateError("a condition on partition columns is needed, such as WHERE day = '2024-01-01'")
    if not partition_columns:
        raise PredicateError(f"{uri} is not partitioned, so no partitions can be chosen.{advice}")
    others = sorted(columns_needed(node, partition_columns).statistics)
    if others:
        raise PredicateError(
            f"{', '.join(others)} cannot be used to choose partitions; the partition columns are "
            f"{', '.join(partition_columns)}.{advice}",
            columns=others,
        )
    return node


def matching_paths(snapshot: Snapshot, node: Node) -> list[str]:
    """Splits whose partition values make the condition true; this is exact."""
    files = snapshot.plan(node, columns=("partition_values",)).files
    matches = mask(node, partition_rows(files, snapshot), snapshot.schema, snapshot.time_zone)
    return list(files.column("path").filter(matches).to_pylist())


def partition_rows(files: pa.Table, snapshot: Snapshot) -> pa.Table:
    """One row per split with its partition values as ordinary columns."""
    values = files.column("partition_values").combine_chunks()
    arrays = [values.field(name) for name in snapshot.partition_columns]
    return pa.Table.from_arrays(arrays, names=list(snapshot.partition_columns))


def run_drop_partitions(log: TransactionLog, where: Any) -> DropPartitionsResult:
    """Remove every split of the chosen partitions in one commit."""
    snapshot = log.snapshot(max_staleness_s=0)
    node = require_partition_condition(where, snapshot, " DELETE FROM INDEXTABLES takes any condition.")
    plan = DropPlan(tuple(snapshot.adds(matching_paths(snapshot, node))))
    size = sum(add.size for add in plan.adds)
    if not plan.adds:
        return DropPartitionsResult(log.uri, NO_ACTION, 0, 0, 0, "no partition matches the condition")

    committed = log.commit(
        CommitPlan(
            operation="DROP PARTITIONS",
            rule=Rule.DELETE,
            build=lambda base: removals(base, plan.adds),
            sources=frozenset(add.path for add in plan.adds),
            parameters={"predicate": str(where)},
            metrics={"numRemovedFiles": len(plan.adds), "numRemovedBytes": size},
        )
    )
    message = f"dropped {counted(plan.partitions, 'partition')} in version {committed.version}"
    return DropPartitionsResult(log.uri, SUCCESS, plan.partitions, len(plan.adds), size, message)
