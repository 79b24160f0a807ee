"""Retention: which log files have outlived their use, and their deletion in an order that is always safe.

A version file goes only when it is older than the log retention, lies below
the newest sound checkpoint and below the current version, and everything
before it goes too. What stays must stay reconstructible, so the cut is moved
down to a checkpoint: the oldest kept version is one that has a checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from indextables.errors import CorruptLogError, NotFoundError, StorageError
from indextables.log.dialect import Checkpoint, LogFile
from indextables.log.reading import LogSource
from indextables.log.segment import Listing, list_log, read_hint, with_hint
from indextables.options import RetentionOptions

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What a cleanup deletes, in order."""

    versions: tuple[LogFile, ...] = ()
    """Ascending, so that a crash leaves a contiguous rest."""
    checkpoints: tuple[LogFile, ...] = ()
    """Main files before their parts, so that no checkpoint is left that looks complete."""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Everything, in the order of deletion."""
        return (*self.versions, *self.checkpoints)


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What a cleanup did."""

    versions_deleted: int = 0
    checkpoints_deleted: int = 0
    failures: int = 0


def plan_cleanup(
    listing: Listing,
    sound: Sequence[Checkpoint],
    parts: Mapping[str, Collection[str]],
    *,
    current: int,
    now_ms: int,
    retention: RetentionOptions,
) -> CleanupPlan:
    """Choose what to delete; pure.

    `sound` are the checkpoints known to be readable; `parts` gives the part files each of them refers
    to, by main file name.
    """
    if not sound:
        return CleanupPlan()
    newest = max(item.version for item in sound)
    commits = listing.commits
    cut = _cut(commits, newest, current, now_ms, retention.log_ms)
    oldest = min(commits, default=0)
    start = max((item.version for item in sound if oldest < item.version <= cut), default=oldest)
    versions = tuple(file for number, file in commits.items() if number < start)
    keep = {newest}
    if start > 0:
        keep.add(max((item.version for item in sound if item.version <= start), default=newest))
    return CleanupPlan(
        versions,
        _old_checkpoints(listing, sound, parts, keep, now_ms=now_ms, limit_ms=retention.checkpoint_ms),
    )


def run_cleanup(source: LogSource, current: int, now_ms: int, retention: RetentionOptions) -> CleanupResult:
    """Delete what has outlived its use; every deletion is tried, the policy decides about failures."""
    plan = find_cleanup(source, current, now_ms, retention)
    done = {"versions": 0, "checkpoints": 0}
    failures = 0
    for kind, files in (("versions", plan.versions), ("checkpoints", plan.checkpoints)):
        for file in files:
            try:
                source.store.delete(source.path(file.name))
            except StorageError as failed:
                if retention.failure_policy == "fail":
                    raise
                logger.warning("%s: cannot delete the expired %s: %s", source.store.uri, file.name, failed)
                failures += 1
                if kind == "versions":
                    # Nothing above a version that could not be deleted may go.
                    break
            else:
                done[kind] += 1
        if failures and kind == "versions":
            # The versions that are left may need the older checkpoints.
            break
    if plan.files:
        logger.info("%s: deleted %d expired log files", source.store.uri, sum(done.values()))
    return CleanupResult(done["versions"], done["checkpoints"], failures)


def find_cleanup(source: LogSource, current: int, now_ms: int, retention: RetentionOptions) -> CleanupPlan:
    """List the log and choose what to delete; a checkpoint counts only when it can be read whole."""
    listing = list_log(source.store, source.dialect)
    hint = read_hint(source.store, source.dialect)
    candidates = [
        with_hint(item, hint) for item in source.dialect.checkpoints(listing.files) if item.version <= current
    ]
    if not plan_cleanup(listing, candidates, {}, current=current, now_ms=now_ms, retention=retention).files:
        return CleanupPlan()
    sound: list[Checkpoint] = []
    parts: dict[str, Collection[str]] = {}
    for item in candidates:
        try:
            parts[item.files[0].name] = source.reader.head(source.store, item).parts
        except (CorruptLogError, NotFoundError) as bad:
            logger.warning("%s: %s; what it covers is kept", source.store.uri, bad)
        else:
            sound.append(item)
    plan = plan_cleanup(listing, sound, parts, current=current, now_ms=now_ms, retention=retention)
    while plan.files and not _readable(source, sound[0]):
        sound.pop(0)
        plan = plan_cleanup(listing, sound, parts, current=current, now_ms=now_ms, retention=retention)
    return plan


def _readable(source: LogSource, checkpoint: Checkpoint) -> bool:
    """Read the newest checkpoint to its end before anything it replaces is deleted."""
    try:
        for _ in source.reader.adds(source.store, checkpoint, frozenset()):
            pass
    except (CorruptLogError, NotFoundError) as bad:
        logger.warning("%s: %s; what it covers is kept", source.store.uri, bad)
        return False
    return True


def _cut(commits: Mapping[int, LogFile], newest: int, current: int, now_ms: int, limit_ms: int) -> int:
    """The first version that must stay for its age, the checkpoint or being current."""
    for number, file in commits.items():
        old = now_ms - file.modified_ms > limit_ms
        if not (old and number < newest and number < current):
            return number
    return newest


def _old_checkpoints(
    listing: Listing,
    sound: Sequence[Checkpoint],
    parts: Mapping[str, Collection[str]],
    keep: Collection[int],
    *,
    now_ms: int,
    limit_ms: int,
) -> tuple[LogFile, ...]:
    newest = max(item.version for item in sound)
    kept_parts = {
        name for item in sound if item.version in keep for name in parts.get(item.files[0].name, ())
    }
    mains = []
    pieces = []
    for file in listing.files:
        if now_ms - file.modified_ms <= limit_ms:
            continue
        if file.kind == "checkpoint" and file.version < newest and file.version not in keep:
            mains.append(file)
        elif file.kind == "part" and file.name not in kept_parts and file.version <= newest:
            pieces.append(file)
    kept_mains = {file.name for file in listing.files if file.kind == "checkpoint"} - {
        file.name for file in mains
    }
    needed = {name for main in kept_mains for name in parts.get(main, ())}
    return (*mains, *(file for file in pieces if file.name not in needed))
