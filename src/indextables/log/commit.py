"""Committing: optimistic, one version file, created only if nobody else created it first.

A plan says what to write and what it relies on. Each attempt looks at the
newest version, checks the plan against what others wrote meanwhile, builds the
actions on that version and tries to create the next file. Losing the race
costs a pause and another attempt; an answer that got lost is settled by the
commit id in the file. `conflicts` holds what each kind of plan tolerates.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from indextables import __version__
from indextables.errors import AttemptsExhaustedError, CommitError, NotFoundError, StorageError
from indextables.log.conflicts import CommitPlan, Rule, check_conflicts, check_schema
from indextables.log.dialect import NATIVE, LogFile
from indextables.log.protocol import check_upgrade, check_writable
from indextables.log.reading import LogSource, advance_state
from indextables.log.redaction import redacted, without_secrets
from indextables.log.snapshot import Snapshot
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    ProtocolAction,
    RemoveAction,
)
from indextables.options import TransactionOptions
from indextables.storage.envelope import pack

logger = logging.getLogger(__name__)

__all__ = ["CommitPlan", "Committed", "Outcome", "Rule", "delay_ms", "put_version", "run_commit"]

ENGINE = f"IndexTables/{__version__}"
BUSY_FACTOR = 10
"""While others get through, this many times maxAttempts may be made before giving up."""

_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a commit."""

    version: int
    """The version written, or the current one when nothing was."""
    attempts: int
    conflicts: int
    written: bool
    actions: tuple[Action, ...] = ()


class Outcome(Enum):
    """What a try to create a version file came to."""

    LANDED = auto()
    TAKEN = auto()


def run_commit(plan: CommitPlan, look: Callable[[], Snapshot]) -> tuple[Committed, Snapshot]:
    """Carry a plan out; `look` returns the newest version, always freshly listed.

    Returns what happened and the snapshot it left. Raises ConflictError when others changed what the
    plan relies on, AttemptsExhaustedError when the log never let it in.
    """
    commit_id = uuid.uuid4().hex
    first = base = look()
    attempts = stuck = conflicts = 0
    while True:
        attempts += 1
        stuck += 1
        check_writable(base.protocol, base.store.uri)
        if _already_done(plan, base):
            return Committed(base.version, attempts, conflicts, written=False), base
        check_conflicts(plan, first, base)
        actions = tuple(plan.build(base))
        if not actions:
            return Committed(base.version, attempts, conflicts, written=False), base
        check_schema(plan, first, base, actions)
        lines = _finish(plan, base, actions, commit_id)
        data = pack(NATIVE.encode_commit(lines), base.settings.compression)
        if put_version(base.source, base.version + 1, data, commit_id) is Outcome.LANDED:
            done = Committed(base.version + 1, attempts, conflicts, written=True, actions=lines)
            return done, _after(base, lines, len(data))
        conflicts += 1
        _pause(base, plan, stuck, attempts)
        newer = look()
        # One foreign version explains the conflict; more of them show a busy log, not a stuck one.
        if (
            newer.version > base.version + 1
            and attempts < BUSY_FACTOR * base.settings.transaction.max_attempts
        ):
            stuck = 0
        base = newer


def put_version(source: LogSource, version: int, data: bytes, commit_id: str) -> Outcome:
    """Create a version file, and find out what happened when the store cannot say."""
    path = source.path(NATIVE.commit_name(version))
    failed: StorageError | None = None
    try:
        if source.store.put_if_absent(path, data):
            return Outcome.LANDED
    except StorageError as error:
        failed = error
    # Also where the store says "exists": one that repeats a request whose reply got lost finds its own file.
    return _settle(source, version, data, commit_id, failed)


def delay_ms(transaction: TransactionOptions, failures: int, jitter: float) -> float:
    """The pause after the n-th failure in a row; `jitter` is a number from 0 to 1."""
    plain = min(transaction.base_delay_ms * 2 ** min(failures - 1, 62), transaction.max_delay_ms)
    return float(plain) * (1 + _JITTER * jitter)


def _already_done(plan: CommitPlan, base: Snapshot) -> bool:
    if plan.txn is None:
        return False
    known = base.txns.get(plan.txn.app_id)
    return known is not None and known.version >= plan.txn.version


def _finish(
    plan: CommitPlan, base: Snapshot, actions: Sequence[Action], commit_id: str
) -> tuple[Action, ...]:
    """The actions of the version file: the plan's, its transaction, and commitInfo last."""
    for action in actions:
        if isinstance(action, ProtocolAction):
            check_upgrade(base.protocol, action, base.store.uri)
    now = base.runtime.clock.now_ms()
    txn = () if plan.txn is None else (replace(plan.txn, last_updated=now),)
    metrics = {
        "numAddedFiles": sum(isinstance(action, AddAction) for action in actions),
        "numRemovedFiles": sum(isinstance(action, RemoveAction) for action in actions),
        **plan.metrics,
    }
    info = CommitInfo(
        timestamp=max(now, base.timestamp_ms + 1),
        operation=plan.operation,
        operation_parameters=redacted(plan.parameters),
        operation_metrics=metrics,
        user_metadata=without_secrets(plan.user_metadata),
        engine_info=ENGINE,
        commit_id=commit_id,
        table_id=base.table_id,
        version=base.version + 1,
    )
    return (*actions, *txn, info)


def _settle(
    source: LogSource, version: int, data: bytes, commit_id: str, failed: StorageError | None
) -> Outcome:
    """After a put that did not say yes: ours landed, another did, or none did and the failure stands."""
    try:
        ours = _is_ours(source, version, data, commit_id)
    except NotFoundError:
        if failed is None:
            # Two writers got in each other's way and neither won; the next attempt will tell.
            return Outcome.TAKEN
        raise CommitError(
            f"{source.store.uri}: version {version} could not be written and nothing was committed: {failed}",
            version=version, outcome="absent", uri=source.store.uri,
        ) from failed  # fmt: skip
    except StorageError as unreachable:
        raise CommitError(
            f"{source.store.uri}: whether version {version} was written is unknown, the store cannot be "
            f"reached: {unreachable}. Look for commitId {commit_id} in the history before writing again.",
            version=version, outcome="unknown", commit_id=commit_id, uri=source.store.uri,
        ) from failed or unreachable  # fmt: skip
    return Outcome.LANDED if ours else Outcome.TAKEN


def _is_ours(source: LogSource, version: int, data: bytes, commit_id: str) -> bool:
    name = NATIVE.commit_name(version)
    stored = source.store.get(source.path(name))
    if stored == data:
        return True
    actions = NATIVE.decode_commit(stored, name=name, version=version)
    return any(isinstance(action, CommitInfo) and action.commit_id == commit_id for action in actions)


def _pause(base: Snapshot, plan: CommitPlan, stuck: int, attempts: int) -> None:
    transaction = base.settings.transaction
    if stuck >= transaction.max_attempts:
        raise AttemptsExhaustedError(
            f"{base.store.uri}: {plan.operation} lost the race for version {base.version + 1} and gave up "
            f"after {attempts} attempts; nothing was committed. Try again, or raise "
            "transaction.retry.maxAttempts.",
            version=base.version + 1, attempts=attempts, uri=base.store.uri,
        )  # fmt: skip
    pause = delay_ms(transaction, stuck, random.random())  # noqa: S311 - spreading writers, not a secret
    logger.info("%s: version %d is taken, trying again in %.0f ms", base.store.uri, base.version + 1, pause)
    base.runtime.clock.sleep_s(pause / 1000)


def _after(base: Snapshot, lines: Sequence[Action], size: int) -> Snapshot:
    """The snapshot a commit of ours left, made without reading it back."""
    source, version = base.source, base.version + 1
    name = NATIVE.commit_name(version)
    file = LogFile(name, version, "commit", size)
    try:
        meta = source.store.head(source.path(name))
    except StorageError:
        # The commit stands; a file of unknown identity only makes the next look read the log anew.
        logger.debug("cannot look at %s after writing it", name, exc_info=True)
    else:
        file = LogFile(name, version, "commit", meta.size, meta.modified_ms, meta.etag)
    return Snapshot(source, advance_state(base.state, source.dialect, file, lines))
