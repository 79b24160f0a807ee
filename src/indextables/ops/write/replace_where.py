"""Overwriting the rows for which a condition is true with other rows, in one commit.

The new rows must satisfy the condition, or a second overwrite would not find
them again. Files that hold only matching rows leave the log; files that hold
others as well are rewritten without the matching ones. When another writer gets
in first, what it added is looked into before the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import DamagedSplitError, PredicateError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, TxnAction
from indextables.model.fields import cast_table
from indextables.ops.read.matching import plan_match
from indextables.ops.results import WriteResult
from indextables.ops.rewrite.delete import Emptied, delete_from
from indextables.ops.rewrite.rows import RewriteGroup, RewriteSetting, Rewritten, discard
from indextables.ops.table_settings import settings_of
from indextables.ops.write.rows import (
    NEVER_COMMITTED,
    as_batches,
    build,
    commit_or_discard,
    effective,
    outcome,
    plan_write,
)
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask, require_exact
from indextables.predicate.tree import Node


def overwrite_where(
    log: TransactionLog,
    data: Any,
    where: Any,
    *,
    options: Options | None = None,
    merge_schema: bool = False,
    expected_version: int | None = None,
    txn: TxnAction | None = None,
    user_metadata: str | None = None,
) -> WriteResult:
    """Replace the matching rows."""
    schema, batches = as_batches(data)
    snapshot = log.snapshot(max_staleness_s=0)
    chosen = effective(snapshot, options)
    node = condition(where, snapshot, chosen)
    plan = plan_write(
        snapshot, schema if schema.names else snapshot.schema, chosen, merge_schema=merge_schema
    )
    built = build(log, plan, checked(batches, plan.schema, node, where, chosen), chosen)
    adds = [split.add for split in built]
    taken = TakenOut(log, node)

    def actions(base: Snapshot) -> Sequence[Action]:
        metadata = plan.metadata_on(base)
        gone, kept = taken.on(base)
        return [*([metadata] if metadata is not None else ()), *removals(base, gone), *kept, *adds]

    commit = CommitPlan(
        "OVERWRITE",
        Rule.OVERWRITE_WHERE,
        actions,
        scope=node,
        read_version=expected_version,
        written_for=plan.made_for,
        txn=txn,
        parameters={"mode": "overwrite", "predicate": str(where)},
        metrics={"numOutputRows": sum(add.num_records or 0 for add in adds)},
        user_metadata=user_metadata,
    )
    try:
        done = commit_or_discard(log, commit, adds)
    except NEVER_COMMITTED:
        discard(log.store, taken.rewritten)
        raise
    named = {action.path for action in done.actions if isinstance(action, AddAction)}
    discard(log.store, [add for add in taken.rewritten if add.path not in named])
    return outcome(done, built)


def condition(where: Any, snapshot: Snapshot, options: Options) -> Node:
    """The condition of an overwrite, exactly representable."""
    node = as_node(where, snapshot.schema, options.search.time_zone)
    if node is None:
        raise PredicateError("the condition of the overwrite is empty; leave it out to replace every row")
    require_exact(node)
    return node


def checked(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, node: Node, where: Any, options: Options
) -> Iterator[pa.RecordBatch]:
    """Rows as the table holds them, refused where the condition is not true for them."""
    for batch in batches:
        rows = cast_table(batch, schema, timestamps=options.write.timestamps)
        inside = mask(node, rows, schema, options.search.time_zone)
        if not pc.all(inside, min_count=0).as_py():
            bad = pc.index(inside, False).as_py()
            raise PredicateError(
                f"the data to write has rows outside the condition {str(where)!r}, for example "
                f"{rows.slice(bad, 1).to_pylist()[0]}. Filter the data, or widen the condition."
            )
        yield rows


class TakenOut:
    """The live files without the matching rows, worked out once per file and kept between attempts."""

    def __init__(self, log: TransactionLog, node: Node) -> None:
        self.log = log
        self.node = node
        self.rewritten: list[AddAction] = []
        self._done: dict[str, Emptied | Rewritten] = {}

    def on(self, base: Snapshot) -> tuple[list[AddAction], list[AddAction]]:
        """The files to remove from a version, and the rewritten ones to put in their place."""
        plan = plan_match(base, self.node)
        setting = RewriteSetting(
            store=self.log.store,
            schema=base.schema,
            partition_columns=base.partition_columns,
            spec=settings_of(base),
            options=base.settings,
            table_id=base.split_table_id,
            now_ms=self.log.runtime.clock.now_ms(),
            data_change=True,
            drop=self.node,
            time_zone=self.log.options.search.time_zone,
        )
        gone = list(plan.whole)
        kept: list[AddAction] = []
        for add in plan.doubtful:
            found = self._done.get(add.path)
            if found is None:
                found = self._done[add.path] = self._look(RewriteGroup(setting, (add,)))
            if isinstance(found, Rewritten):
                gone.append(add)
                kept.extend(found.adds)
            elif found.all:
                gone.append(add)
        return gone, kept

    def _look(self, piece: RewriteGroup) -> Emptied | Rewritten:
        found = delete_from(piece)
        if isinstance(found, Rewritten):
            self.rewritten.extend(found.adds)
            if found.unreadable:
                add, reason = found.unreadable[0]
                raise DamagedSplitError(
                    f"the overwrite cannot tell which rows of {add.path} match: {reason} "
                    "Nothing was committed.",
                    path=add.path,
                )
        return found
