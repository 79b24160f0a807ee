"""Retention: which versions have expired, and the order in which their files can be deleted safely.

A version expires only when it is older than the log retention, lies below the newest
sound checkpoint and below the current version, and everything before it expires too. What
remains must stay reconstructible, so the cut is moved down to a checkpoint; if none is
close enough, one is written.

First a floor file records the version at which history now begins: from then on no reader
uses files below it, whatever happens to them. Then the files below are deleted, version
files oldest first. Those younger than an hour stay as fences, so that a writer that
paused finds its number taken.

A part of a checkpoint is deleted after the main file that names it, or once its version
lies below the floor. A part that no main file names stays until then, however old it is:
its writer may be slow, and nothing tells a slow writer from a dead one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from indextables.errors import CorruptLogError, NotFoundError, StorageError
from indextables.log.format.dialect import NATIVE, Checkpoint, LogFile
from indextables.log.history import read_info
from indextables.log.segment import Listing, list_log, read_hint, with_hint
from indextables.log.state import LogSource
from indextables.model.actions import CommitInfo
from indextables.options import RetentionOptions
from indextables.records import dataclass
from indextables.storage.envelope import pack
from indextables.storage.store import ObjectMeta
from indextables.storage.stores.put_if_absent import create_or_read

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FENCE_MS = HOUR_MS
"""A version file is never deleted before it is this old, whatever the retention."""
SLACK_MS = DAY_MS // 2
"""How much older than the retention the oldest version may become before a checkpoint is written for the cut.

A table that is written to gets checkpoints at least this often, and cleanup follows each of them, so nothing
is kept for longer than the retention and one day.
"""


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """The steps of a cleanup, in order."""

    floor: int | None = None
    """The oldest version that remains in the history; None if that does not change."""
    checkpoints: tuple[LogFile, ...] = ()
    """Checkpoint files to delete; main files before their parts, so that none is left that looks complete."""
    versions: tuple[LogFile, ...] = ()
    """Version files to delete, ascending."""
    fences: tuple[LogFile, ...] = ()
    """Version files that are no longer history but too young to be deleted."""
    floors: tuple[LogFile, ...] = ()
    """Older floor files."""
    cover: int | None = None
    """A version that needs a checkpoint before more can be deleted."""
    leftovers: tuple[ObjectMeta, ...] = ()
    """Temporary files of local writers; those that are a day old are deleted at last."""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """All files to delete, in the order of deletion."""
        return (*self.checkpoints, *self.versions, *self.floors)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.floor is None and not self.files


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What a cleanup did."""

    versions_deleted: int = 0
    checkpoints_deleted: int = 0
    failures: int = 0


def is_past(file: LogFile | ObjectMeta, limit_ms: float, now_ms: int) -> bool:
    """Whether a file is older than a limit; `now_ms` is the time of its store.

    Some stores date by whole seconds, so without a limit a file of this moment is old enough as well.
    """
    age_ms = now_ms - file.modified_ms
    return age_ms > limit_ms or age_ms == limit_ms == 0


def plan_floor(listing: Listing, floor: int, now_ms: int) -> CleanupPlan:
    """Plan the removal of everything before a version, which must have a sound checkpoint; pure."""
    below = sorted(
        (*listing.retired, *(file for file in listing.files if file.version < floor)),
        key=lambda file: (file.version, file.name),
    )
    commits = [file for file in below if file.kind == "commit"]
    versions = tuple(takewhile(lambda file: now_ms - file.modified_ms > FENCE_MS, commits))
    checkpoints = [file for file in below if file.kind in {"checkpoint", "part"}]
    # The floor that was listed stays beside a new one: a listing that began before the new one was put, and
    # is not in order, must not miss both.
    floors = [file for file in below if file.kind == "floor" and file.version < listing.floor]
    return CleanupPlan(
        floor if floor > listing.floor else None,
        tuple(sorted(checkpoints, key=lambda file: file.kind == "part")),
        versions,
        tuple(commits[len(versions) :]),
        tuple(floors),
    )


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

    `sound` are the checkpoints known to be readable; `parts` maps the name of each main file to its part
    files.
    """
    if not sound:
        return CleanupPlan()
    newest = max(item.version for item in sound)
    commits = listing.commits
    cut = _cut(commits, newest, current, now_ms, retention.log_ms)
    oldest = min(commits, default=0)
    start = max((item.version for item in sound if oldest < item.version <= cut), default=oldest)
    plan = plan_floor(listing, start, now_ms)
    old = _old_checkpoints(
        listing, sound, parts, {newest, start}, now_ms=now_ms, limit_ms=retention.checkpoint_ms
    )
    below = [file for file in plan.checkpoints if is_past(file, retention.checkpoint_ms, now_ms)]
    first = commits.get(start)
    overdue = first is not None and start < cut and now_ms - first.modified_ms > retention.log_ms + SLACK_MS
    return replace(plan, checkpoints=(*below, *old), cover=cut if overdue else None)


def find_cleanup(source: LogSource, current: int, retention: RetentionOptions) -> CleanupPlan:
    """List the log and choose what to delete; a checkpoint counts only if it can be read to its end.

    Where the store does not tell its time, nothing is chosen.
    """
    listing = list_log(source.store, source.dialect)
    return replace(_find_expired(source, listing, current, retention), leftovers=listing.leftovers)


def _find_expired(
    source: LogSource, listing: Listing, current: int, retention: RetentionOptions
) -> CleanupPlan:
    hint = read_hint(source.store, source.dialect)
    candidates = [
        with_hint(item, hint) for item in source.dialect.checkpoints(listing.files) if item.version <= current
    ]
    # The latest time that anything names only tells whether asking the store for its time is worth while.
    latest_ms = max([source.runtime.clock.now_ms(), *(file.modified_ms for file in listing.files)])
    plan = plan_cleanup(listing, candidates, {}, current=current, now_ms=latest_ms, retention=retention)
    if plan.empty and plan.cover is None:
        return CleanupPlan()
    now_ms = source.time_ms()
    if now_ms is None:
        return CleanupPlan()
    sound: list[Checkpoint] = []
    parts: dict[str, Collection[str]] = {}
    for item in candidates:
        try:
            parts[item.files[0].name] = source.reader.head(source.store, item).parts
        except (CorruptLogError, NotFoundError) as bad:
            logger.warning("%s: %s; the versions it would replace are kept", source.store.uri, bad)
        else:
            sound.append(item)
    while True:
        plan = plan_cleanup(listing, sound, parts, current=current, now_ms=now_ms, retention=retention)
        if plan.empty:
            return plan
        doubtful = [item for item in sound if item.version in {plan.floor, sound[0].version}]
        damaged = [item for item in doubtful if not readable(source, item)]
        if not damaged:
            return plan
        sound = [item for item in sound if item not in damaged]


def run_cleanup(
    source: LogSource, plan: CleanupPlan, retention: RetentionOptions, *, erase: bool = False
) -> CleanupResult:
    """Raise the floor, then delete; every deletion is tried, and the policy decides about failures.

    With `erase`, fences that remain are overwritten and keep only the id of their commit.
    """
    if plan.floor is not None:
        # Its name says everything. Empty, it also finds room on a disk without a free byte.
        create_or_read(source.store, source.path(NATIVE.floor_name(plan.floor)), b"")
    checkpoints, lost = _delete(source, (*plan.checkpoints, *plan.floors), retention, stop=False)
    # If a version file could not be deleted, no newer one may be deleted.
    versions, stuck = _delete(source, plan.versions, retention, stop=True)
    if erase:
        for file in (*plan.versions[versions:], *plan.fences):
            _erase(source, file)
    if not plan.empty:
        logger.info("%s: deleted %d expired log files", source.store.uri, versions + checkpoints)
    _sweep(source, plan.leftovers)
    checkpoints_left = min(checkpoints, sum(file.kind == "checkpoint" for file in plan.checkpoints))
    return CleanupResult(versions, checkpoints_left, lost + stuck)


def _delete(
    source: LogSource, files: Iterable[LogFile], retention: RetentionOptions, *, stop: bool
) -> tuple[int, int]:
    done = failures = 0
    undeleted: set[int] = set()
    for file in files:
        if file.kind == "part" and file.version in undeleted:
            continue  # the checkpoint that names it is still there
        try:
            source.store.delete(source.path(file.name))
        except StorageError as failed:
            if retention.failure_policy == "fail":
                raise
            logger.warning("%s: cannot delete the expired %s: %s", source.store.uri, file.name, failed)
            failures += 1
            undeleted.add(file.version)
            if stop:
                break
        else:
            done += 1
    return done, failures


def _erase(source: LogSource, file: LogFile) -> None:
    """Overwrite a version file, leaving only the id of its commit, which its writer may look for."""
    try:
        info = read_info(source, file) or CommitInfo()
    except NotFoundError:
        return
    except CorruptLogError:
        info = CommitInfo()  # a damaged file below the floor has no commit that anybody could look for
    if info.retired:
        return
    left = CommitInfo(
        commit_id=info.commit_id,
        previous_commit_id=info.previous_commit_id,
        retired=True,
        table_id=info.table_id,
        version=file.version,
    )
    source.store.put(source.path(file.name), pack(NATIVE.encode_commit([left]), source.options.compression))


def readable(source: LogSource, checkpoint: Checkpoint) -> bool:
    """Read a checkpoint to its end, before deleting anything it replaces."""
    try:
        source.reader.head(source.store, checkpoint)
        for _ in source.reader.adds(source.store, checkpoint, frozenset()):
            pass
    except (CorruptLogError, NotFoundError) as bad:
        logger.warning("%s: %s; the versions it would replace are kept", source.store.uri, bad)
        return False
    return True


def _cut(commits: Mapping[int, LogFile], newest: int, current: int, now_ms: int, limit_ms: int) -> int:
    """The first version that must stay because of its age, the checkpoint, or because it is current."""
    for number, file in commits.items():
        if not (is_past(file, limit_ms, now_ms) and number < newest and number < current):
            return number
    return newest


def _old_checkpoints(
    listing: Listing,
    sound: Sequence[Checkpoint],
    parts: Mapping[str, Collection[str]],
    needed: Collection[int],
    *,
    now_ms: int,
    limit_ms: int,
) -> tuple[LogFile, ...]:
    """Expired checkpoints to delete, with the parts they name: all but the newest of each day."""
    newest, start = max(needed), min(needed)
    by_day = {item.files[0].modified_ms // DAY_MS: item.version for item in reversed(sound)}
    keep = {*needed, *by_day.values()}
    mains = [
        file
        for file in listing.files
        if file.kind == "checkpoint"
        and start <= file.version < newest
        and file.version not in keep
        and is_past(file, limit_ms, now_ms)
    ]
    # A part that none of these names may belong to a writer who has yet to put the main file.
    pieces = {name for main in mains for name in parts.get(main.name, ())}
    return (*mains, *(file for file in listing.files if file.name in pieces))


def _sweep(source: LogSource, leftovers: Sequence[ObjectMeta]) -> None:
    """Delete temporary files that killed writers left; failures are only logged.

    Only local stores write such files: in other stores an unfinished write is never visible. Writing a log
    file takes moments, so a temporary file that is a day old has no writer any more.
    """
    store = source.store
    if not leftovers or store.local_path("") is None:
        return
    now_ms = source.time_ms()
    for meta in leftovers:
        if now_ms is None or now_ms - meta.modified_ms <= DAY_MS:
            continue
        try:
            store.delete(meta.path)
        except StorageError as failed:
            logger.warning("%s: cannot delete the leftover %s: %s", store.uri, meta.path, failed)
