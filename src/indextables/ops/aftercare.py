"""Aftercare: merging small splits and purging orphans right after a write, where the options ask for it.

The write has been committed by then. Whatever goes wrong here is a warning,
never a failure of the write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from indextables.errors import Error
from indextables.log.transaction_log import TransactionLog
from indextables.ops.merge import MergeRequest, run_merge
from indextables.ops.purge import PurgeRequest, run_purge
from indextables.ops.write import effective
from indextables.options import Options

_log = logging.getLogger(__name__)


def after_write(log: TransactionLog, options: Options | None = None) -> None:
    """Do what `mergeOnWrite.enabled` and `purgeOnWrite.enabled` ask for; off by default, never raises."""
    chosen = effective(log.snapshot(), options).write
    if chosen.merge_on_write:
        _try(log, "merge", lambda: run_merge(log, MergeRequest()))
    if chosen.purge_on_write:
        _try(log, "purge", lambda: run_purge(log, PurgeRequest()))


def _try(log: TransactionLog, verb: str, work: Callable[[], Any]) -> None:
    try:
        result = work()
    except (Error, OSError, MemoryError) as failed:
        _log.warning("%s: the %s after the write failed, the write itself stands: %s", log.uri, verb, failed)
    else:
        _log.info("%s: %s after the write: %s", log.uri, verb, result.message)
