"""PURGE ROWS: write every split that has deleted rows anew without them, each by itself.

The rows of the table stay as they are, so the commit says that no data changed. Older versions keep the old
files until PURGE INDEXTABLE takes them. A split that cannot be read stays, with its deleted rows; the result
counts it, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from indextables.display.plain import counted
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.outcomes import DRY_RUN, NO_ACTION, SUCCESS, PurgeRowsResult
from indextables.ops.progress import Progress, silent
from indextables.ops.rewrite.merge import chosen_paths, merge_and_commit, until_committed
from indextables.ops.rewrite.merge_plan import MergeGroup
from indextables.ops.rewrite.rows import require_writable
from indextables.storage.deletion_vectors import number_deleted

OPERATION = "PURGE ROWS"


@dataclass(frozen=True, slots=True)
class PurgeRowsRequest:
    """What the command asks for."""

    where: Any = None
    """A condition on partition columns: the splits of these partitions only."""
    dry_run: bool = False


def plan_purge_rows(snapshot: Snapshot, where: Any = None) -> list[AddAction]:
    """The splits that have deleted rows."""
    if not snapshot.has_vectors:
        chosen_paths(snapshot, where)
        return []
    return [add for add in snapshot.adds(chosen_paths(snapshot, where)) if add.deletion_vector is not None]


def run_purge_rows(
    log: TransactionLog, request: PurgeRowsRequest, progress: Progress = silent
) -> PurgeRowsResult:
    """Write them anew in one commit; again if another writer changes one of them meanwhile."""
    return until_committed(log, lambda snapshot: _purge_once(log, request, progress, snapshot))


def _purge_once(
    log: TransactionLog, request: PurgeRowsRequest, progress: Progress, snapshot: Snapshot
) -> PurgeRowsResult:
    require_writable(snapshot)
    sources = plan_purge_rows(snapshot, request.where)
    files = counted(len(sources), "file")
    if request.dry_run:
        return _result(log, DRY_RUN, sources, None, f"would write {files} anew, without deleted rows")
    if not sources:
        return _result(log, NO_ACTION, sources, (), "no file has deleted rows")
    groups = [MergeGroup(add.partition_values, (add,)) for add in sources]
    done = merge_and_commit(log, snapshot, groups, progress, OPERATION)
    purged = [add for item in done.merged for add in item.sources]
    left = (
        f"; {counted(done.failures, 'file')} cannot be read and still has deleted rows"
        if done.failures
        else ""
    )
    if done.version is None:
        return _result(log, NO_ACTION, (), (), f"nothing was committed{left}", done.failures)
    adds = [add for item in done.merged for add in item.adds]
    message = f"wrote {counted(len(purged), 'file')} anew in version {done.version}{left}"
    return _result(log, SUCCESS, purged, adds, message, done.failures)


def _result(  # noqa: PLR0917 - one value, made in one place
    log: TransactionLog,
    status: str,
    sources: Sequence[AddAction],
    adds: Sequence[AddAction] | None,
    message: str,
    skipped: int = 0,
) -> PurgeRowsResult:
    return PurgeRowsResult(
        table_path=log.uri,
        status=status,
        rows_purged=sum(number_deleted(add.deletion_vector) for add in sources),
        files_rewritten=len(sources),
        original_size_bytes=sum(add.size for add in sources),
        new_size_bytes=None if adds is None else sum(add.size for add in adds),
        skipped_files=skipped,
        message=message,
    )
