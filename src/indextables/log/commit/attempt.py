"""The commit loop: optimistic, with one version file that is created only if nobody created it first.

A plan says what to write and what it relies on. Each attempt looks at the newest version,
checks the plan against the commits others made meanwhile, builds the actions on top of
that version and tries to create the next version file. Losing the race costs a pause and
another attempt. `placement` makes sure that a created file is part of the history;
`conflicts` defines what each kind of plan tolerates.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from indextables import __version__
from indextables.errors import AttemptsExhaustedError
from indextables.log.commit.conflicts import CommitPlan, Rule, check_conflicts, check_schema
from indextables.log.commit.patience import delay_ms, pause
from indextables.log.commit.placement import Attempt, place
from indextables.log.commit.redaction import redacted, without_secrets
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import (
    COLUMN_MAPPING,
    DELETION_VECTORS,
    check_upgrade,
    check_writable,
    with_feature,
)
from indextables.log.purge_mark import check_splits
from indextables.log.snapshot import Snapshot
from indextables.log.state import advance_state
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
)
from indextables.model.column_mapping import completed
from indextables.records import dataclass
from indextables.storage.envelope import pack

logger = logging.getLogger(__name__)

__all__ = ["CommitPlan", "Committed", "Rule", "delay_ms", "run_commit"]

ENGINE = f"IndexTables/{__version__}"
BUSY_FACTOR = 10
"""While other writers make progress, up to maxAttempts times this many attempts are made."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a commit."""

    version: int
    """The version written, or the current version if nothing was written."""
    attempts: int
    conflicts: int
    written: bool
    actions: tuple[Action, ...] = ()


def run_commit(
    plan: CommitPlan, look: Callable[[], Snapshot], begin: Callable[[], Snapshot] | None = None
) -> tuple[Committed, Snapshot | None]:
    """Commit a plan; `look` returns the newest version, always from a fresh listing.

    `begin` returns the version to begin with, from a listing that was begun during the same call: what ends
    without a put (nothing to do, done already, a conflict) was true then.

    Returns the outcome and the snapshot after the commit, if that could be made. Raises ConflictError when
    others changed what the plan relies on, AttemptsExhaustedError when every attempt lost the race, and
    CommitError when the outcome is not known. Once the commit is known to be history, nothing raises.
    """
    commit_id = uuid.uuid4().hex
    first = base = (begin or look)()
    attempts = stuck = conflicts = 0
    while True:
        attempts += 1
        stuck += 1
        check_writable(base.protocol, base.store.uri)
        if _already_done(plan, base):
            return Committed(base.version, attempts, conflicts, written=False), base
        check_conflicts(plan, first, base)
        actions = _with_protocol(base, _with_names(base, tuple(plan.build(base))))
        if not actions:
            return Committed(base.version, attempts, conflicts, written=False), base
        check_schema(plan, first, base, actions)
        check_splits(base.store, actions, plan.purges, base.segment.purges)
        lines = _finish(plan, base, actions, commit_id)
        text = NATIVE.encode_commit(lines)
        data = pack(text, base.settings.compression)
        file = place(Attempt(base.source, base.version + 1, data, commit_id, base.segment.head))
        if file is not None:
            done = Committed(base.version + 1, attempts, conflicts, written=True, actions=lines)
            return done, _after(base, text, file)
        conflicts += 1
        _pause(base, plan, stuck, attempts)
        newer = look()
        # One foreign version since the last attempt explains losing; several mean a busy log, not a stuck
        # one.
        if (
            newer.version > base.version + 1
            and attempts < BUSY_FACTOR * base.settings.transaction.max_attempts
        ):
            stuck = 0
        base = newer


def _already_done(plan: CommitPlan, base: Snapshot) -> bool:
    if plan.txn is None:
        return False
    last = base.txns.get(plan.txn.app_id)
    return last is not None and last.version >= plan.txn.version


def _with_names(base: Snapshot, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The actions, with a stored name for every column that the metadata adds."""
    return tuple(
        completed(action, base.metadata) if isinstance(action, MetadataAction) else action
        for action in actions
    )


def _with_protocol(base: Snapshot, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The actions, with the protocol that a table's first deletion vector or column mapping needs."""
    protocols = [action for action in actions if isinstance(action, ProtocolAction)]
    raised = protocols[-1] if protocols else base.protocol
    if any(isinstance(action, AddAction) and action.deletion_vector for action in actions):
        raised = with_feature(raised, DELETION_VECTORS)
    if any(isinstance(action, MetadataAction) and action.column_mapping for action in actions):
        raised = with_feature(raised, COLUMN_MAPPING)
    if raised in (base.protocol, *protocols):
        return actions
    return (raised, *(action for action in actions if not isinstance(action, ProtocolAction)))


def _finish(
    plan: CommitPlan, base: Snapshot, actions: Sequence[Action], commit_id: str
) -> tuple[Action, ...]:
    """All actions of the version file: the plan's, then its transaction, and commitInfo last."""
    for action in actions:
        if isinstance(action, ProtocolAction):
            check_upgrade(base.protocol, action, base.store.uri)
    now = base.runtime.clock.now_ms()
    txn = () if plan.txn is None else (replace(plan.txn, last_updated=now),)
    metrics = {
        "numAddedFiles": sum(isinstance(action, AddAction) for action in actions),
        "numRemovedFiles": sum(isinstance(action, RemoveAction) for action in actions),
        **plan.metrics,
        **plan.all_truncated().metrics(),
    }
    info = CommitInfo(
        timestamp=max(now, base.timestamp_ms + 1),
        operation=plan.operation,
        operation_parameters=redacted(plan.parameters),
        operation_metrics=metrics,
        user_metadata=without_secrets(plan.user_metadata),
        engine_info=ENGINE,
        commit_id=commit_id,
        previous_commit_id=None if base.info is None else base.info.commit_id,
        table_id=base.table_id,
        version=base.version + 1,
    )
    return (*actions, *txn, info)


def _pause(base: Snapshot, plan: CommitPlan, stuck: int, attempts: int) -> None:
    transaction = base.settings.transaction
    if stuck >= transaction.max_attempts:
        raise AttemptsExhaustedError(
            f"{base.store.uri}: {plan.operation} lost the race for version {base.version + 1} and gave up "
            f"after {attempts} attempts; nothing was committed. Try again, or raise "
            "transaction.retry.maxAttempts.",
            version=base.version + 1, attempts=attempts, uri=base.store.uri,
        )  # fmt: skip
    logger.info("%s: version %d is taken, trying again", base.store.uri, base.version + 1)
    pause(transaction, stuck, base.runtime.clock)


def _after(base: Snapshot, text: bytes, file: LogFile) -> Snapshot | None:
    """The snapshot after our own commit, from the text that was put; None when that fails.

    The actions are those that a reader of the file gets. Their text stays with them, so that a checkpoint
    copies it instead of encoding every add again.
    """
    source, version = base.source, base.version + 1
    try:
        actions = source.dialect.decode_commit(text, name=file.name, version=version)
        return Snapshot(source, advance_state(base.state, source.dialect, file, actions))
    except Exception:  # the commit is durable, and its caller must hear so
        logger.warning(
            "%s: version %d is written but cannot be read back yet", base.store.uri, version, exc_info=True
        )
        return None
