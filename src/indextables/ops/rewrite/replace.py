"""The commit of UPDATE, MERGE, DELETE and MERGE SPLITS: some files leave, and their rows come back in others.

Rows that others append meanwhile stay as they are. A file that others have
taken out or rewritten is a conflict, and the loser can repeat its statement. A
MERGE that inserts also relies on nobody else having inserted what it looked for
in vain: a foreign commit that wrote rows in its scope by reading the table
first, another MERGE above all, is a conflict too. MERGE SPLITS changes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indextables.errors import (
    AttemptsExhaustedError,
    ConflictError,
    OptionError,
    ProtocolError,
    SchemaError,
    SplitError,
)
from indextables.log.commit.attempt import CommitPlan, Committed, Rule
from indextables.log.commit.changes import removals
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction
from indextables.model.stats import of_add
from indextables.model.truncation import Truncated
from indextables.ops.rewrite.rows import discard
from indextables.predicate.tree import Node

NEVER_COMMITTED = (
    ConflictError, AttemptsExhaustedError, OptionError, ProtocolError, SchemaError, SplitError,
)  # fmt: skip
"""Failures after which it is certain that no version names the new splits."""


def replace_plan(
    planned_on: Snapshot,
    operation: str,
    removed: Sequence[AddAction],
    adds: Sequence[AddAction],
    *,
    node: Node | None = None,
    inserts: bool = False,
    data_change: bool = True,
    parameters: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    truncated: Iterable[Truncated] = (),
) -> CommitPlan:
    """Replace files by others; `node` bounds the rows that a commit which `inserts` has looked for.

    The numbers of rows read and written are noted with it, and further `metrics`.
    """

    def actions(base: Snapshot) -> Sequence[Action]:
        return [*removals(base, removed, data_change=data_change), *adds]

    rule = Rule.DELETE if data_change else Rule.MERGE
    return CommitPlan(
        operation,
        Rule.UPSERT if inserts else rule,
        actions,
        sources=frozenset(add.path for add in removed),
        scope=node if inserts else None,
        read_version=planned_on.version if inserts else None,
        written_for=planned_on.metadata,
        purges=planned_on.segment.purges,
        parameters=parameters or {},
        metrics={**_metrics(removed, adds), **(metrics or {})},
        truncated=Truncated.total(truncated),
    )


def commit_or_discard(log: TransactionLog, plan: CommitPlan, adds: Sequence[AddAction]) -> Committed:
    """Commit a plan; splits that certainly did not become part of the table are deleted."""
    try:
        committed = log.commit(plan)
    except NEVER_COMMITTED:
        discard(log.store, adds)
        raise
    if not committed.written:
        discard(log.store, adds)
    return committed


def _metrics(removed: Sequence[AddAction], adds: Sequence[AddAction]) -> dict[str, int]:
    written = sum(add.num_records or 0 for add in adds)
    counts = [of_add(add, null_counts=False).num_records for add in removed]
    counted = [count for count in counts if count is not None]
    read = {"numReadRows": sum(counted)} if len(counted) == len(removed) else {}
    return {**read, "numOutputRows": written}
