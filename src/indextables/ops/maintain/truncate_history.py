"""TRUNCATE INDEXTABLES TIME TRAVEL: keep the newest version and forget how it came about.

Danger: older versions cannot be read afterwards. The newest version is put
into a checkpoint first and read back; only then does the floor rise to it, and
the log files below go. Where the store has no room for that checkpoint, what is older than
an existing one goes first. An interruption at any point leaves a whole table: before
the floor rose with its old versions, after that without them. Recent version
files stay for an hour as fences, without anything that they said. The data
files that only older versions named become orphans for PURGE.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from indextables.display.plain import counted
from indextables.errors import StorageError, TableError, VersionNotFoundError
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import check_writable
from indextables.log.retention import CleanupPlan, plan_floor, readable, run_cleanup
from indextables.log.segment import Listing, list_log
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.outcomes import DRY_RUN, NO_ACTION, SUCCESS, TruncateHistoryResult

logger = logging.getLogger(__name__)

_MOST_LOOKS = 5


def run_truncate(log: TransactionLog, *, dry_run: bool = False) -> TruncateHistoryResult:
    """Checkpoint the newest version, check that it can be read alone, and let go what is older."""
    snapshot = log.snapshot(max_staleness_s=0)
    before = listing = list_log(log.store, NATIVE)
    # Where the store does not tell its time, every version number counts as recent and stays reserved.
    now_ms = log.source.time_ms() or 0
    plan = plan_floor(listing, snapshot.version, now_ms)
    version, first = snapshot.version, CleanupPlan()
    if not dry_run and not plan.empty:
        check_writable(snapshot.protocol, log.uri)
        try:
            version, listing = _checkpointed(log)
        except StorageError as full:
            first = _cut_at_a_checkpoint(log, listing, snapshot, now_ms, full)
            if first.empty:
                raise
            version, listing = _checkpointed(log)
        plan = plan_floor(listing, version, now_ms)
        run_cleanup(log.source, plan, snapshot.settings.retention, erase=True)
        log.invalidate_cache()
    let_go = (*first.files, *plan.files)
    removed_versions = len({number for number in (*before.commits, *listing.commits) if number < version})
    return TruncateHistoryResult(
        table_path=log.uri,
        status=DRY_RUN if dry_run else NO_ACTION if plan.empty else SUCCESS,
        version=version,
        versions_deleted=removed_versions,
        checkpoints_deleted=sum(
            file.kind == "checkpoint" for file in (*first.checkpoints, *plan.checkpoints)
        ),
        bytes_deleted=0 if dry_run else sum(file.size for file in let_go),
        dry_run=dry_run,
        message=_message(plan, let_go, version, removed_versions, dry_run=dry_run),
    )


def _cut_at_a_checkpoint(
    log: TransactionLog, listing: Listing, snapshot: Snapshot, now_ms: int, full: StorageError
) -> CleanupPlan:
    """Let go what is older than a checkpoint that is there, to make room for one of the newest version.

    Returns what went; nothing, if there is no such checkpoint.
    """
    for item in NATIVE.checkpoints(listing.files):
        plan = plan_floor(listing, item.version, now_ms)
        if not plan.empty and readable(log.source, item):
            logger.warning(
                "%s: %s; first everything before version %d goes, which has a checkpoint",
                log.uri, full, item.version,
            )  # fmt: skip
            run_cleanup(log.source, plan, snapshot.settings.retention, erase=True)
            log.invalidate_cache()
            return plan
    return CleanupPlan()


def _checkpointed(log: TransactionLog) -> tuple[int, Listing]:
    """Write a checkpoint of the newest version and read it back: that version and the listing it is in.

    Another writer may commit meanwhile, so the version that stays is the one with the checkpoint; and
    another cleanup may take the checkpoint away again, in favour of a newer one.
    """
    version = -1
    for attempt in range(1, _MOST_LOOKS + 1):
        try:
            version = log.checkpoint()
        except VersionNotFoundError:
            if attempt == _MOST_LOOKS:
                raise
            continue
        listing = list_log(log.store, NATIVE)
        checkpoints = [item for item in NATIVE.checkpoints(listing.files) if item.version == version]
        if any(readable(log.source, item) for item in checkpoints):
            return version, listing
    raise TableError(
        f"{log.uri}: the checkpoint of version {version} could not be read back, so the older versions "
        "were left alone. Run CHECKPOINT INDEXTABLES and try again.",
        version=version,
    )


def _message(
    plan: CleanupPlan, files: Sequence[LogFile], version: int, removed_versions: int, *, dry_run: bool
) -> str:
    if plan.empty:
        return f"nothing is older than version {version}"
    size = sum(file.size for file in files)
    verb = "would delete" if dry_run else "deleted"
    numbers = counted(len(plan.fences), "recent version number")
    fences = f"; {numbers} reserved for an hour" if plan.fences else ""
    return (
        f"{verb} {counted(len(files), 'log file')} ({size} bytes) before version {version}, which "
        f"{'takes' if dry_run else 'took'} {counted(removed_versions, 'version')} out of the history{fences}"
    )
