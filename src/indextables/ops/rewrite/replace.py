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
from indextables.ops.rewrite.vectors import VectorCommit
from indextables.predicate.tree import Node
from indextables.storage.deletion_vectors import number_deleted, unique_id

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
    vectors: VectorCommit | None = None,
) -> CommitPlan:
    """Replace files by others; `node` bounds the rows that a commit which `inserts` has looked for.

    `vectors` deletes rows of further files, which stay.
    The numbers of rows read and written are noted with it, and further `metrics`.
    """

    def actions(base: Snapshot) -> Sequence[Action]:
        deleted = [] if vectors is None else vectors.actions(base)
        return [*removals(base, removed, data_change=data_change), *deleted, *adds]

    rule = Rule.DELETE if data_change else Rule.MERGE
    return CommitPlan(
        operation,
        Rule.UPSERT if inserts else rule,
        actions,
        sources=frozenset(add.path for add in removed) | (frozenset() if vectors is None else vectors.paths),
        vectors={add.path: unique_id(add.deletion_vector) for add in removed},
        scope=node if inserts else None,
        read_version=planned_on.version if inserts else None,
        written_for=planned_on.metadata,
        purges=planned_on.segment.purges,
        parameters=parameters or {},
        metrics={**_metrics(removed, adds), **(metrics or {})},
        truncated=Truncated.total(truncated),
    )


def commit_or_discard(
    log: TransactionLog, plan: CommitPlan, adds: Sequence[AddAction], vectors: VectorCommit | None = None
) -> Committed:
    """Commit a plan; splits and vectors that certainly did not become part of the table are deleted."""
    try:
        committed = log.commit(plan)
    except NEVER_COMMITTED:
        _discard(log, adds, vectors)
        raise
    if not committed.written:
        _discard(log, adds, vectors)
    return committed


def _discard(log: TransactionLog, adds: Sequence[AddAction], vectors: VectorCommit | None) -> None:
    discard(log.store, adds)
    if vectors is not None:
        vectors.discard()


def change_metrics(
    *, updated: int | None = None, deleted: int | None = None, inserted: int | None = None
) -> dict[str, int]:
    """The numbers of changed rows as the history names them; those that are not known are left out."""
    named = {"numUpdatedRows": updated, "numDeletedRows": deleted, "numInsertedRows": inserted}
    return {name: rows for name, rows in named.items() if rows is not None}


def _metrics(removed: Sequence[AddAction], adds: Sequence[AddAction]) -> dict[str, int]:
    rows = live_records(removed)
    read = {} if rows is None else {"numReadRows": rows}
    return {**read, "numOutputRows": sum(add.num_records or 0 for add in adds)}


def live_records(adds: Sequence[AddAction]) -> int | None:
    """How many rows of some splits are not deleted; None if the log does not say how many one has."""
    total = 0
    for add in adds:
        rows = of_add(add, null_counts=False).num_records
        if rows is None:
            return None
        total += rows - number_deleted(add.deletion_vector)
    return total
