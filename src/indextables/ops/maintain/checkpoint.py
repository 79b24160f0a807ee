"""CHECKPOINT INDEXTABLES, also spelt COMPACT: write a checkpoint of the newest version now.

Readers then open one file instead of every version since the last checkpoint.
Writing it changes no version and needs no commit.
"""

from __future__ import annotations

from indextables.log.format.dialect import NATIVE
from indextables.log.segment import list_log
from indextables.log.transaction_log import TransactionLog
from indextables.ops.outcomes import SUCCESS, CheckpointResult
from indextables.ops.read.word_filters import keep_filters


def run_checkpoint(log: TransactionLog) -> CheckpointResult:
    """Write the checkpoint and say what it holds."""
    log.checkpoint()
    snapshot = log.snapshot()
    keep_filters(log)
    files = list_log(log.store, NATIVE, snapshot.version).files
    version = max((file.version for file in files if file.kind == "checkpoint"), default=snapshot.version)
    size = sum(file.size for file in files if file.version == version and file.kind in ("checkpoint", "part"))
    count = log.snapshot(version=version).num_files
    return CheckpointResult(
        log.uri, SUCCESS, version, count, size, f"checkpoint of version {version} written"
    )
