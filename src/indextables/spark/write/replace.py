"""Commits that replace part of a table: rows under a condition, partitions, or everything and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.model.fields import decode_partition, schema_to_json
from indextables.ops.write.replace_where import TakenOut
from indextables.predicate.tree import FALSE, Column, Compare, IsNull, Literal, Node, all_of, any_of

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.log.transaction_log import TransactionLog
    from indextables.model.actions import Action, AddAction
    from indextables.ops.write.rows import WritePlan

Values = tuple[str | None, ...]


def where_plan(  # noqa: PLR0917
    log: TransactionLog,
    plan: WritePlan,
    adds: Sequence[AddAction],
    node: Node,
    text: str,
    expected: int | None,
) -> CommitPlan:
    """Replace the rows for which a condition is true."""
    taken = TakenOut(log, node)

    def actions(base: Snapshot) -> Sequence[Action]:
        gone, kept = taken.on(base)
        return [*_metadata(plan, base), *removals(base, gone), *kept, *adds]

    return CommitPlan(
        "OVERWRITE", Rule.OVERWRITE_WHERE, actions, scope=node, read_version=expected,
        written_for=plan.made_for,
        parameters={"mode": "overwrite", "predicate": text}, metrics={"numOutputRows": _rows(adds)},
    )  # fmt: skip


def partitions_plan(
    plan: WritePlan, adds: Sequence[AddAction], snapshot: Snapshot, expected: int | None
) -> CommitPlan:
    """Replace the partitions that the new rows belong to, and no other."""
    columns = snapshot.partition_columns
    touched = {_values(add, columns) for add in adds}
    scope = (
        any_of([_partition(values, snapshot) for values in sorted(touched, key=str)]) if touched else FALSE
    )

    def actions(base: Snapshot) -> Sequence[Action]:
        if not adds:
            return []
        near = base.plan(scope, columns={"path"}).files.column("path").to_pylist()
        gone = [add for add in base.adds(near) if _values(add, columns) in touched]
        return [*_metadata(plan, base), *removals(base, gone), *adds]

    return CommitPlan(
        "OVERWRITE", Rule.OVERWRITE_WHERE, actions, scope=scope, read_version=expected,
        written_for=plan.made_for,
        parameters={"mode": "overwrite", "partitionOverwriteMode": "dynamic"},
        metrics={"numOutputRows": _rows(adds)},
    )  # fmt: skip


def schema_plan(plan: WritePlan, adds: Sequence[AddAction], version: int) -> CommitPlan:
    """Replace everything, schema, partitioning and index settings included; foreign changes are an error."""

    def actions(base: Snapshot) -> Sequence[Action]:
        kept = {key: value for key, value in base.metadata.configuration.items() if "indexing." not in key}
        metadata = replace(
            base.metadata,
            schema_string=schema_to_json(plan.schema),
            partition_columns=plan.partition_columns,
            configuration={**kept, **plan.spec.to_properties()},
        )
        return [metadata, *removals(base, base.adds()), *adds]

    return CommitPlan(
        "OVERWRITE", Rule.EXCLUSIVE, actions, read_version=version, written_for=plan.made_for,
        parameters={"mode": "overwrite", "overwriteSchema": "true"}, metrics={"numOutputRows": _rows(adds)},
    )  # fmt: skip


def _metadata(plan: WritePlan, base: Snapshot) -> list[Action]:
    changed = plan.metadata_on(base)
    return [] if changed is None else [changed]


def _values(add: AddAction, columns: Sequence[str]) -> Values:
    values = add.partition_values or {}
    return tuple(values.get(name) for name in columns)


def _partition(values: Values, snapshot: Snapshot) -> Node:
    """The condition that holds for the rows of one partition."""
    tests: list[Node] = []
    for name, text in zip(snapshot.partition_columns, values, strict=True):
        kind = snapshot.schema.field(name).type
        column = Column((name,), kind)
        tests.append(
            IsNull(column)
            if text is None
            else Compare("=", column, Literal(decode_partition(text, kind), kind))
        )
    return all_of(tests)


def _rows(adds: Sequence[AddAction]) -> int:
    return sum(add.num_records or 0 for add in adds)
