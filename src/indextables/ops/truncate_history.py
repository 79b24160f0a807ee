"""TRUNCATE INDEXTABLES TIME TRAVEL: keep the newest version and forget how it came about.

Danger: older versions cannot be read afterwards. The newest version is put
into a checkpoint first and read back; only then do the log files go, oldest
first, so that an interruption leaves a log with fewer old versions and nothing
else. The data files they named become orphans for PURGE.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from indextables.errors import CorruptLogError, TableError
from indextables.log.dialect import NATIVE, LogFile
from indextables.log.protocol import check_writable
from indextables.log.segment import list_log
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.outcomes import DRY_RUN, NO_ACTION, SUCCESS, TruncateHistoryResult

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TruncatePlan:
    """The log files that only versions before `version` need."""

    version: int
    commits: tuple[LogFile, ...]
    checkpoints: tuple[LogFile, ...]
    """Main files and parts of older checkpoints."""

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Everything that goes, in the order of deletion: versions ascending, then checkpoints."""
        return (*self.commits, *self.checkpoints)


def plan_truncate(files: Iterable[LogFile], version: int) -> TruncatePlan:
    """Which log files go when only `version` and later ones stay."""
    older = sorted(
        (file for file in files if file.version < version), key=lambda file: (file.version, file.name)
    )
    commits = tuple(file for file in older if file.kind == "commit")
    checkpoints = tuple(file for file in older if file.kind in ("checkpoint", "part"))
    return TruncatePlan(version, commits, checkpoints)


def run_truncate(log: TransactionLog, *, dry_run: bool = False) -> TruncateHistoryResult:
    """Checkpoint the newest version, check that it can be read alone, and delete what is older."""
    snapshot = log.snapshot(max_staleness_s=0)
    plan = plan_truncate(list_log(log.store, NATIVE).files, snapshot.version)
    if not dry_run and plan.files:
        check_writable(snapshot.protocol, log.uri)
        log.checkpoint()
        _require_alone(snapshot)
        for file in plan.files:
            log.store.delete(f"{NATIVE.log_dir}/{file.name}")
        log.invalidate_cache()
    return TruncateHistoryResult(
        table_path=log.uri,
        status=DRY_RUN if dry_run else SUCCESS if plan.files else NO_ACTION,
        version=plan.version,
        versions_deleted=len(plan.commits),
        checkpoints_deleted=sum(file.kind == "checkpoint" for file in plan.checkpoints),
        bytes_deleted=0 if dry_run else sum(file.size for file in plan.files),
        dry_run=dry_run,
        message=_message(plan.files, plan.version, dry_run=dry_run),
    )


def _require_alone(snapshot: Snapshot) -> None:
    """Raise unless a checkpoint at or after the version holds its files without any older log file."""
    listing = list_log(snapshot.store, NATIVE)
    for checkpoint in NATIVE.checkpoints(listing.files):
        if checkpoint.version < snapshot.version:
            break
        try:
            head = snapshot.source.reader.head(snapshot.store, checkpoint)
            # No path is wanted, yet every byte is read and checked.
            for _ in snapshot.source.reader.adds(snapshot.store, checkpoint, frozenset()):
                pass
        except CorruptLogError as bad:
            _log.warning("checkpoint %d cannot be read back: %s", checkpoint.version, bad)
            continue
        if checkpoint.version > snapshot.version or head.num_files in (None, snapshot.num_files):
            return
    raise TableError(
        f"{snapshot.store.uri}: the checkpoint of version {snapshot.version} could not be read back, so the "
        "older versions were left alone. Run CHECKPOINT INDEXTABLES and try again.",
        version=snapshot.version,
    )


def _message(files: Sequence[LogFile], version: int, *, dry_run: bool) -> str:
    if not files:
        return f"nothing is older than version {version}"
    size = sum(file.size for file in files)
    verb = "would delete" if dry_run else "deleted"
    return f"{verb} {len(files)} log files ({size} bytes) before version {version}"
