"""PURGE INDEXTABLE: delete split files that no version of the table needs any more.

Danger: a deleted file is gone. What is deleted is therefore decided from the
safe side. A split stays when any version that can still be rebuilt has it: of
those versions every add of every commit file and every live file of every
checkpoint counts. So a split that is no longer live goes only after the log
files of the versions that have it: a log retention in the request lets those go
first. Younger files stay, because a writer may be about to commit them; ages are
measured by the store's own time, and a mark in the log makes a writer that took
longer look for its splits before it commits them. Only
`*.split` files, files of deletion vectors and our own temporaries are touched, never anything else in a
directory whose name begins with `_` or `.`, never anything of another table
that lies below this one, and never anything outside the table's root. A log
that cannot be read in full is an error, not a reason to delete. What is looked at may
also be an inventory, or only what the log names (`purge_candidates`). What was kept
and for whom is part of the message.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

from indextables.display.plain import counted
from indextables.errors import (
    MissingVersionError,
    NotFoundError,
    OptionError,
    StorageError,
    VersionNotFoundError,
)
from indextables.log.delta.paths import LOG_DIR as DELTA_LOG
from indextables.log.format.binding import check_tables
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import check_writable
from indextables.log.purge_mark import drop_marks, files_of_vectors, put_mark
from indextables.log.retention import CleanupPlan, is_past, plan_cleanup, run_cleanup
from indextables.log.segment import Listing, list_log, ranges, reconstructible
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.existence import as_store, portable, workers_for
from indextables.ops.maintain.purge_candidates import Inventory, inventory_files, named_files
from indextables.ops.outcomes import DRY_RUN, SUCCESS, PurgeResult
from indextables.ops.progress import Progress, silent
from indextables.options import PurgeOptions, RetentionOptions
from indextables.storage.deletion_vectors import FILE_NAME
from indextables.storage.store import BulkDeleting, ObjectMeta, Store, StoreSpec, resolve

_OURS = re.compile(r".+\.split|\.[0-9a-f-]{32,36}\.tmp")
_LOG_LEFTOVER = re.compile(rf"{NATIVE.log_dir}/\.[0-9a-f-]{{32,36}}\.tmp")
_NESTED_TABLE = re.compile(rf"(.+?/)(?:{NATIVE.log_dir}|{DELTA_LOG})/")
_MS_PER_HOUR = 3_600_000
_PROGRESS_EVERY = 1000
_AT_ONCE = 64
_DELETED_AT_ONCE = 1000
"""As many objects as S3 deletes with one request."""
_SHOWN = 10
_MOST_LOOKS = 5
_NOTHING = CleanupPlan()
_NO_AGES = "; the store did not tell its time, so that no file counts as old"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """What the command asks for; None takes the option."""

    older_than_hours: float | None = None
    log_retention_hours: float | None = None
    dry_run: bool = False
    inventory: Inventory | None = None
    """A list of the files of the table, instead of listing them: rows, or the path of a Parquet file."""
    lite: bool = False
    """Look only at the files that the log names."""
    batch_files: int = 1000
    """How many files are deleted between two looks at what was committed meanwhile."""

    def __post_init__(self) -> None:
        if self.lite and self.inventory is not None:
            raise OptionError("LITE looks at what the log names, and INVENTORY at a list: give one of them")


@dataclass(frozen=True, slots=True)
class Needed:
    """Every split that some version up to `version` needs, relative to the root."""

    paths: frozenset[str]
    version: int
    live: frozenset[str] = frozenset()
    """Those that the newest version itself has."""
    older: tuple[int, ...] = ()
    """The older versions that can be rebuilt."""
    purges: frozenset[str] = frozenset()
    """The marks that earlier purges left in the log."""


@dataclass(frozen=True, slots=True)
class RetainedFiles:
    """Files that are not live and are kept nevertheless."""

    history: int = 0
    """Needed by an older version."""
    history_bytes: int = 0
    young: int = 0
    """Needed by none, and younger than the retention."""
    young_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What a purge would delete, what it would keep, and for whom."""

    orphans: tuple[ObjectMeta, ...]
    retained: RetainedFiles
    needed: Needed
    expired: CleanupPlan
    hours: float
    has_ages: bool = True
    """Whether the store told its time, from which ages are measured."""


def plan_purge(
    files: Iterable[ObjectMeta], needed: Collection[str], now_ms: int, hours: float
) -> list[ObjectMeta]:
    """The files that may be deleted: ours, needed by no version, and older than the retention."""
    keep_ms = hours * _MS_PER_HOUR
    return [
        file
        for file in files
        if may_delete(file.path) and file.path not in needed and is_past(file, keep_ms, now_ms)
    ]


def retained_files(files: Iterable[ObjectMeta], needed: Needed, now_ms: int, hours: float) -> RetainedFiles:
    """What is kept although the newest version does not have it, and which versions need it."""
    not_live = [file for file in files if may_delete(file.path) and file.path not in needed.live]
    history = [file for file in not_live if file.path in needed.paths]
    young = [
        file
        for file in not_live
        if file.path not in needed.paths and not is_past(file, hours * _MS_PER_HOUR, now_ms)
    ]
    return RetainedFiles(
        len(history), sum(file.size for file in history), len(young), sum(file.size for file in young)
    )


def own_files(files: Iterable[ObjectMeta]) -> list[ObjectMeta]:
    """The listed files without those of other tables in subdirectories."""
    listed = list(files)
    nested = tuple({match[1] for file in listed if (match := _NESTED_TABLE.match(file.path))})
    return [file for file in listed if not file.path.startswith(nested)] if nested else listed


def may_delete(path: str) -> bool:
    """Whether PURGE may ever delete a file with this path."""
    if _LOG_LEFTOVER.fullmatch(path) or is_vector_file(path):
        return True
    *directories, name = path.split("/")
    hidden = any(part.startswith(("_", ".")) or not part for part in directories)
    return not hidden and _OURS.fullmatch(name) is not None


def is_split(path: str) -> bool:
    """Whether a path can be a split of a table: by its name, and not in a hidden directory."""
    return may_delete(path) and path.endswith(".split")


def is_vector_file(path: str) -> bool:
    """Whether a path can be a file of deletion vectors of a table."""
    return re.fullmatch(FILE_NAME, path) is not None


def retention_hours(requested: float | None, options: PurgeOptions) -> float:
    """The retention in hours; less than the minimum is refused while the check is on."""
    hours = options.default_retention_hours if requested is None else requested
    if options.retention_check and hours < options.min_retention_hours:
        named = "1 hour" if hours == 1 else f"{hours:g} hours"
        raise OptionError(
            f"PURGE with a retention of {named} may delete files that a running write is about to "
            f"commit; the minimum is {options.min_retention_hours:g} hours. Use a longer retention, or set "
            "spark.indextables.purge.retentionCheckEnabled=false if nothing else writes to the table.",
            hours=hours,
        )
    return hours


def plan_for(
    log: TransactionLog, request: PurgeRequest, snapshot: Snapshot, progress: Progress = silent
) -> PurgePlan:
    """What a purge would do now; for a real one, a checkpoint that its log retention needs is written."""
    hours = retention_hours(request.older_than_hours, snapshot.settings.purge)
    retention = _log_retention(snapshot, request.log_retention_hours)
    expired = _NOTHING if retention is None else _expired(log, snapshot, retention, dry_run=request.dry_run)
    needed = needed_paths(log, expired, snapshot)
    files = _candidates(log, request, progress)
    now_ms = log.source.time_ms()
    # Where the store does not tell its time, every file counts as young.
    since_ms = now_ms or 0
    orphans = tuple(plan_purge(files, needed.paths, since_ms, hours))
    retained = retained_files(files, needed, since_ms, hours)
    return PurgePlan(orphans, retained, needed, expired, hours, has_ages=now_ms is not None)


def _candidates(log: TransactionLog, request: PurgeRequest, progress: Progress) -> list[ObjectMeta]:
    if request.lite:
        return list(named_files(log, needed_paths(log).paths))
    if request.inventory is not None:
        return own_files(inventory_files(log.store, request.inventory))
    return own_files(_listed(log.store, progress))


def run_purge(log: TransactionLog, request: PurgeRequest, progress: Progress = silent) -> PurgeResult:
    """Delete orphans, and log files past their retention when the request names one."""
    clock = log.runtime.clock
    began_s = clock.monotonic_s()
    snapshot = log.snapshot(max_staleness_s=0)
    if not request.dry_run:
        check_writable(snapshot.protocol, log.uri)
    plan, freed = _with_room(log, request, snapshot, progress)
    deleted: Sequence[ObjectMeta] = ()
    if request.dry_run:
        message = _dry_message(plan.orphans, len(plan.expired.files))
    else:
        retention = _log_retention(snapshot, request.log_retention_hours)
        if retention is not None:
            run_cleanup(log.source, plan.expired, retention, erase=True)
            log.invalidate_cache()
        deleted = (*freed, *_delete(log, plan.orphans, plan.needed, request.batch_files, progress))
        message = _message((*freed, *plan.orphans), deleted, len(plan.expired.files))
    return PurgeResult(
        table_path=log.uri,
        status=DRY_RUN if request.dry_run else SUCCESS,
        orphaned_files_found=len(freed) + len(plan.orphans),
        orphaned_files_deleted=len(deleted),
        bytes_deleted=sum(file.size for file in deleted),
        retention_hours=int(plan.hours),
        transaction_logs_deleted=len(plan.expired.files),
        dry_run=request.dry_run,
        duration_ms=round((clock.monotonic_s() - began_s) * 1000),
        message=message
        + ("" if plan.has_ages else _NO_AGES)
        + _retained_message(plan.retained, plan.needed, plan.hours),
    )


def _with_room(
    log: TransactionLog, request: PurgeRequest, snapshot: Snapshot, progress: Progress
) -> tuple[PurgePlan, Sequence[ObjectMeta]]:
    """What a purge does, and what had to be deleted before the checkpoint that its log retention needs.

    Where the store has no room for the checkpoint, the orphans of the log as it is go first: they need none.
    """
    try:
        return plan_for(log, request, snapshot, progress), ()
    except StorageError as full:
        if request.dry_run or request.log_retention_hours is None:
            raise
        first = plan_for(log, replace(request, log_retention_hours=None), snapshot, progress)
        freed = _delete(log, first.orphans, first.needed, request.batch_files, progress)
        if not freed:
            raise
        _log.warning("%s: %s; %d orphans were deleted to make room", log.uri, full, len(freed))
        return plan_for(log, request, log.snapshot(max_staleness_s=0), progress), freed


def needed_paths(
    log: TransactionLog, expired: CleanupPlan = _NOTHING, snapshot: Snapshot | None = None
) -> Needed:
    """Every file that some version needs after the plan is carried out; all of them, or an error.

    `snapshot` may be some moments old: what was committed since is in the listing that is made here.
    """
    for _ in range(_MOST_LOOKS - 1):
        try:
            return _needed(log, expired, snapshot or log.snapshot(max_staleness_s=0))
        except (NotFoundError, VersionNotFoundError, MissingVersionError):
            # Another writer's cleanup deleted a version after the listing: list again.
            log.invalidate_cache()
            snapshot = None
    return _needed(log, expired, log.snapshot(max_staleness_s=0))


def _needed(log: TransactionLog, expired: CleanupPlan, snapshot: Snapshot) -> Needed:
    expired_names, floor = {file.name for file in expired.files}, expired.floor or 0
    listing = list_log(log.store, NATIVE)
    remaining = [file for file in listing.files if file.version >= floor and file.name not in expired_names]
    checkpoint_versions = sorted({file.version for file in remaining if file.kind == "checkpoint"})
    live = _files_of(snapshot)
    paths = set(live)
    for version in checkpoint_versions:
        if version != snapshot.version:
            paths.update(_files_of(log.snapshot(version=version)))
    # A version file that cannot be rebuilt from older ones only keeps its number taken.
    rebuildable = set(reconstructible(Listing(tuple(remaining)), NATIVE))
    newest_checkpoint = min(max(checkpoint_versions, default=0), snapshot.version)
    needed_commits = [
        file
        for file in remaining
        if file.kind == "commit" and (file.version in rebuildable or file.version >= newest_checkpoint)
    ]
    paths.update(_added(log, needed_commits))
    return Needed(
        frozenset(_inside(log.store, paths)),
        max((file.version for file in remaining), default=-1),
        frozenset(_inside(log.store, live)),
        tuple(sorted(version for version in rebuildable if version < snapshot.version)),
        listing.purges,
    )


def _files_of(snapshot: Snapshot) -> list[str]:
    """The splits of a version, and the files of their deletion vectors."""
    return [*snapshot.live_paths().to_pylist(), *snapshot.vector_files()]


def _added(log: TransactionLog, commits: Sequence[LogFile]) -> Iterable[str]:
    for start in range(0, len(commits), _AT_ONCE):
        read = log.source.read_commits(commits[start : start + _AT_ONCE])
        check_tables(read, log.snapshot().table_id, log.uri)
        for _, actions in read:
            adds = [action for action in actions if isinstance(action, AddAction)]
            yield from (add.path for add in adds)
            yield from files_of_vectors(adds)


def _inside(root: Store, paths: Iterable[str]) -> Iterable[str]:
    """Paths relative to the root; files outside the root are never deleted."""
    for path in paths:
        store, inside = resolve(root, path, anywhere=True)
        if store.uri == root.uri:
            yield inside


def _log_retention(snapshot: Snapshot, hours: float | None) -> RetentionOptions | None:
    """The table's retention of log files with the age the request names; None when it names none."""
    if hours is None:
        return None
    settings, retention_ms = snapshot.settings.retention, round(hours * _MS_PER_HOUR)
    # A log file that cannot be deleted is an error here, as the caller asked for it.
    return replace(
        settings,
        log_ms=retention_ms,
        checkpoint_ms=min(settings.checkpoint_ms, retention_ms),
        failure_policy="fail",
    )


def _expired(
    log: TransactionLog, snapshot: Snapshot, retention: RetentionOptions, *, dry_run: bool
) -> CleanupPlan:
    """What a cleanup with this retention does.

    Where every older version has expired, the newest one gets a checkpoint first: without it the older
    ones would have to stay, because it is built on them.
    """
    now_ms, listing = log.source.time_ms(), list_log(log.store, NATIVE)
    if now_ms is None:
        return _NOTHING
    older = [file for number, file in listing.commits.items() if number < snapshot.version]
    if older and all(is_past(file, retention.log_ms, now_ms) for file in older):
        if dry_run:
            return _with_checkpoint(listing, snapshot.version, now_ms, retention)
        log.checkpoint()
    return log.expired(snapshot, retention, write=not dry_run)


def _with_checkpoint(listing: Listing, version: int, now_ms: int, retention: RetentionOptions) -> CleanupPlan:
    """What would go if the newest version had a checkpoint, as far as names can tell."""
    name = NATIVE.checkpoint_name(version)
    checkpoint = LogFile(name, version, "checkpoint", 0, now_ms, format="json")
    with_checkpoint = replace(
        listing, files=(*(file for file in listing.files if file.name != name), checkpoint)
    )
    checkpoints = NATIVE.checkpoints(with_checkpoint.files)
    return plan_cleanup(with_checkpoint, checkpoints, {}, current=version, now_ms=now_ms, retention=retention)


def _listed(store: Store, progress: Progress) -> Iterable[ObjectMeta]:
    for count, file in enumerate(store.list()):
        if count % _PROGRESS_EVERY == 0:
            progress("Listing files", count, count)
        yield file


def _delete(
    log: TransactionLog, orphans: Sequence[ObjectMeta], needed: Needed, batch_files: int, progress: Progress
) -> list[ObjectMeta]:
    """Delete in batches; before each, files that were committed in the meantime are left out.

    A mark in the log comes first: writers that have not committed yet then look for their splits.
    """
    deleted: list[ObjectMeta] = []
    if orphans:
        put_mark(log.source)
        drop_marks(log.source, needed.purges)
    checked_version = needed.version
    readded: set[str] = set()
    workers = workers_for(log.runtime, len(orphans))
    store = portable(log.store, workers)
    for start in range(0, len(orphans), batch_files):
        progress("Deleting orphans", start, len(orphans))
        newer = list_log(log.store, NATIVE, checked_version + 1).commits
        readded.update(_inside(log.store, _added(log, list(newer.values()))))
        newest = max(newer, default=checked_version)
        if len(newer) < newest - checked_version:
            # Some of the commits since then were cleaned up before they could be read here.
            readded.update(needed_paths(log).paths)
        checked_version = newest
        batch = [file for file in orphans[start : start + batch_files] if file.path not in readded]
        width = _DELETED_AT_ONCE if isinstance(log.store, BulkDeleting) else 1
        groups = [batch[at : at + width] for at in range(0, len(batch), width)]
        results = workers.map(
            partial(_delete_group, store), [[file.path for file in group] for group in groups]
        )
        for group, were_deleted in zip(groups, results, strict=True):
            deleted += compress(group, were_deleted)
    progress("Deleting orphans", len(orphans), len(orphans))
    return deleted


def _delete_group(where: Store | StoreSpec, paths: Sequence[str]) -> list[bool]:
    """Which of the files were deleted."""
    store = as_store(where)
    if isinstance(store, BulkDeleting) and len(paths) > 1:
        try:
            store.delete_many(paths)
        except StorageError:
            # Deleting them one by one shows which of them cannot be.
            pass
        else:
            return [True] * len(paths)
    return [_delete_one(store, path) for path in paths]


def _delete_one(store: Store, path: str) -> bool:
    try:
        store.delete(path)
    except StorageError as error:
        _log.warning("PURGE could not delete %s: %s", path, error)
        return False
    return True


def _dry_message(orphans: Sequence[ObjectMeta], logs: int) -> str:
    names_shown = ", ".join(file.path for file in orphans[:_SHOWN])
    more = f" and {len(orphans) - _SHOWN} more" if len(orphans) > _SHOWN else ""
    size = sum(file.size for file in orphans)
    names = f": {names_shown}{more}" if orphans else ""
    files = counted(len(orphans), "orphaned file")
    return f"would delete {files} ({size} bytes) and {counted(logs, 'log file')}{names}"


def _message(orphans: Sequence[ObjectMeta], deleted: Sequence[ObjectMeta], logs: int) -> str:
    remaining = len(orphans) - len(deleted)
    text = f"deleted {counted(len(deleted), 'orphaned file')} and {counted(logs, 'log file')}"
    return f"{text}; {remaining} came back meanwhile or could not be deleted" if remaining else text


def _retained_message(retained: RetainedFiles, needed: Needed, hours: float) -> str:
    """Which versions need the files that are not live and are kept."""
    text = ""
    if retained.history:
        text += (
            f"; kept {counted(retained.history, 'file')} ({retained.history_bytes} bytes) that the versions "
            f"{ranges(needed.older)} have: they go with the log files of those versions, by PURGE with a "
            "TRANSACTION LOG RETENTION or by TRUNCATE INDEXTABLES TIME TRAVEL"
        )
    if retained.young:
        young = counted(retained.young, "file")
        text += f"; kept {young} of at most {hours:g} hours that a running write may commit"
    return text
