"""PURGE INDEXTABLE: delete split files that no version of the table needs any more.

Danger: a deleted file is gone. What is deleted is therefore decided from the
safe side. A split stays when any version that can still be rebuilt has it:
every add of every commit file and every live file of every checkpoint counts.
Younger files stay, because a writer may be about to commit them. Only `*.split`
files and our own temporaries are touched, never anything in a directory whose
name begins with `_` or `.`, never anything of another table that lies below
this one, and never anything outside the table's root. A log that cannot be read
in full is an error, not a reason to delete.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from indextables.errors import OptionError, StorageError
from indextables.log.binding import check_tables
from indextables.log.dialect import NATIVE, LogFile
from indextables.log.protocol import check_writable
from indextables.log.retention import find_cleanup
from indextables.log.segment import list_log
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.existence import portable, workers_for
from indextables.ops.outcomes import DRY_RUN, SUCCESS, PurgeResult
from indextables.ops.progress import Progress, silent
from indextables.options import PurgeOptions
from indextables.storage.store import ObjectMeta, Store, StoreSpec, open_store, resolve

_OURS = re.compile(r".+\.split|\.[0-9a-f-]{32,36}\.tmp")
_NESTED_TABLE = re.compile(r"(.+?/)(?:_transaction_log|_delta_log)/")
_MS_PER_HOUR = 3_600_000
_BATCH = 1000
_AT_ONCE = 64
_SHOWN = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """What the command asks for; None takes the option."""

    older_than_hours: float | None = None
    log_retention_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Needed:
    """Every split that some version up to `version` needs, relative to the root."""

    paths: frozenset[str]
    version: int


def plan_purge(
    files: Iterable[ObjectMeta], needed: Collection[str], now_ms: int, hours: float
) -> list[ObjectMeta]:
    """The files that may go: ours, needed by no version, and older than the retention."""
    keep_ms = hours * _MS_PER_HOUR
    return [
        file
        for file in files
        if may_delete(file.path) and file.path not in needed and now_ms - file.modified_ms > keep_ms
    ]


def own_files(files: Iterable[ObjectMeta]) -> list[ObjectMeta]:
    """The listed files without those of tables that lie in directories below this one."""
    listed = list(files)
    nested = tuple({match[1] for file in listed if (match := _NESTED_TABLE.match(file.path))})
    return [file for file in listed if not file.path.startswith(nested)] if nested else listed


def may_delete(path: str) -> bool:
    """Whether a path is one that PURGE ever touches."""
    *directories, name = path.split("/")
    hidden = any(part.startswith(("_", ".")) or not part for part in directories)
    return not hidden and _OURS.fullmatch(name) is not None


def retention_hours(asked: float | None, options: PurgeOptions) -> float:
    """The retention in hours; less than the minimum is refused while the check is on."""
    hours = options.default_retention_hours if asked is None else asked
    if options.retention_check and hours < options.min_retention_hours:
        raise OptionError(
            f"PURGE with a retention of {hours:g} hours may delete files that a running write is about to "
            f"commit; the minimum is {options.min_retention_hours:g} hours. Use a longer retention, or set "
            "spark.indextables.purge.retentionCheckEnabled=false if nothing else writes to the table.",
            hours=hours,
        )
    return hours


def run_purge(log: TransactionLog, request: PurgeRequest, progress: Progress = silent) -> PurgeResult:
    """Delete orphans, and log files past their retention when the request names one."""
    clock = log.runtime.clock
    began_s = clock.monotonic_s()
    snapshot = log.snapshot(max_staleness_s=0)
    if not request.dry_run:
        check_writable(snapshot.protocol, log.uri)
    hours = retention_hours(request.older_than_hours, snapshot.settings.purge)
    expired = _expired_log_files(log, request.log_retention_hours)
    needed = needed_paths(log, leaving_out=expired)
    orphans = plan_purge(own_files(_listed(log.store, progress)), needed.paths, clock.now_ms(), hours)
    if request.dry_run:
        deleted: Sequence[ObjectMeta] = ()
        logs_deleted = len(expired)
        message = _dry_message(orphans, len(expired))
    else:
        for file in expired:
            log.store.delete(f"{NATIVE.log_dir}/{file.name}")
        logs_deleted = len(expired)
        deleted = _delete(log, orphans, needed, progress)
        message = _message(orphans, deleted)
        if expired:
            log.invalidate_cache()
    return PurgeResult(
        table_path=log.uri,
        status=DRY_RUN if request.dry_run else SUCCESS,
        orphaned_files_found=len(orphans),
        orphaned_files_deleted=len(deleted),
        bytes_deleted=sum(file.size for file in deleted),
        retention_hours=int(hours),
        transaction_logs_deleted=logs_deleted,
        dry_run=request.dry_run,
        duration_ms=round((clock.monotonic_s() - began_s) * 1000),
        message=message,
    )


def needed_paths(log: TransactionLog, leaving_out: Collection[LogFile] = ()) -> Needed:
    """Everything that some version needs once the given log files are gone; all of it, or an error."""
    gone = {file.name for file in leaving_out}
    kept = [file for file in list_log(log.store, NATIVE).files if file.name not in gone]
    paths: set[str] = set()
    for version in sorted({file.version for file in kept if file.kind == "checkpoint"}):
        paths.update(log.snapshot(version=version).live_paths().to_pylist())
    paths.update(_added(log, [file for file in kept if file.kind == "commit"]))
    newest = max((file.version for file in kept), default=-1)
    return Needed(frozenset(_inside(log.store, paths)), newest)


def _added(log: TransactionLog, commits: Sequence[LogFile]) -> Iterable[str]:
    for start in range(0, len(commits), _AT_ONCE):
        read = log.source.read_commits(commits[start : start + _AT_ONCE])
        check_tables(read, log.snapshot().table_id, log.uri)
        for _, actions in read:
            yield from (action.path for action in actions if isinstance(action, AddAction))


def _inside(root: Store, paths: Iterable[str]) -> Iterable[str]:
    """Paths as they are below the root; a file that lies elsewhere is none of ours to delete."""
    for path in paths:
        store, inside = resolve(root, path)
        if store.uri == root.uri:
            yield inside


def _expired_log_files(log: TransactionLog, hours: float | None) -> Sequence[LogFile]:
    """Log files that a cleanup with this retention deletes, in the order of deletion."""
    if hours is None:
        return ()
    snapshot = log.snapshot(max_staleness_s=0)
    retention = replace(snapshot.settings.retention, log_ms=round(hours * _MS_PER_HOUR))
    return find_cleanup(snapshot.source, snapshot.version, log.runtime.clock.now_ms(), retention).files


def _listed(store: Store, progress: Progress) -> Iterable[ObjectMeta]:
    for count, file in enumerate(store.list()):
        if count % _BATCH == 0:
            progress("Listing files", count, count)
        yield file


def _delete(
    log: TransactionLog, orphans: Sequence[ObjectMeta], needed: Needed, progress: Progress
) -> list[ObjectMeta]:
    """Delete batch by batch; before each one, files that were added in the meantime are taken out."""
    deleted: list[ObjectMeta] = []
    seen = needed.version
    readded: set[str] = set()
    workers = workers_for(log.runtime, len(orphans))
    store = portable(log.store, workers)
    for start in range(0, len(orphans), _BATCH):
        progress("Deleting orphans", start, len(orphans))
        newer = list(list_log(log.store, NATIVE, seen + 1).commits.values())
        readded.update(_inside(log.store, _added(log, newer)))
        seen = max([seen, *(file.version for file in newer)])
        batch = [file for file in orphans[start : start + _BATCH] if file.path not in readded]
        done = workers.map(partial(_delete_one, store), [file.path for file in batch])
        deleted += [file for file, gone in zip(batch, done, strict=True) if gone]
    progress("Deleting orphans", len(orphans), len(orphans))
    return deleted


def _delete_one(store: Store | StoreSpec, path: str) -> bool:
    place = open_store(store) if isinstance(store, StoreSpec) else store
    try:
        place.delete(path)
    except StorageError as error:
        _log.warning("PURGE could not delete %s: %s", path, error)
        return False
    return True


def _dry_message(orphans: Sequence[ObjectMeta], logs: int) -> str:
    shown = ", ".join(file.path for file in orphans[:_SHOWN])
    more = f" and {len(orphans) - _SHOWN} more" if len(orphans) > _SHOWN else ""
    size = sum(file.size for file in orphans)
    names = f": {shown}{more}" if orphans else ""
    return f"would delete {len(orphans)} orphaned files ({size} bytes) and {logs} log files{names}"


def _message(orphans: Sequence[ObjectMeta], deleted: Sequence[ObjectMeta]) -> str:
    kept = len(orphans) - len(deleted)
    if kept:
        return f"deleted {len(deleted)} orphaned files; {kept} came back meanwhile or could not be deleted"
    return f"deleted {len(deleted)} orphaned files"
