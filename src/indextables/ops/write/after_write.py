"""Merges small splits and purges orphans right after a write, if the options ask for it.

The write is already committed. Whatever goes wrong here is logged as a warning and never
fails the write.
"""

from __future__ import annotations

import logging

from indextables.log.transaction_log import TransactionLog
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.read.word_filters import keep_filters
from indextables.ops.rewrite.merge import MergeRequest, run_merge
from indextables.ops.write.rows import effective
from indextables.options import Options, WriteOptions

_log = logging.getLogger(__name__)


def after_write(log: TransactionLog, options: Options | None = None, *, stream: bool = False) -> None:
    """Do what `mergeOnWrite.enabled` and `purgeOnWrite.enabled` ask for; never raises.

    Small splits are merged by levels, after every write of a `stream` unless the option is false. Where the
    write has made a checkpoint, the filters over splits are brought up to date too.
    """
    keep_filters(log, after_write=True)
    for verb, run in (("merge", _merge), ("purge", _purge)):
        try:
            message = run(log, effective(log.left_by_commit() or log.snapshot(), options).write, stream)
        except Exception:  # noqa: BLE001 - whatever it is, it must not look like a failed write
            _log.warning(
                "%s: the %s after the write failed; the write itself is committed",
                log.uri,
                verb,
                exc_info=True,
            )
        else:
            if message is not None:
                _log.info("%s: %s after the write: %s", log.uri, verb, message)


def _merge(log: TransactionLog, options: WriteOptions, stream: bool) -> str | None:
    enabled = stream if options.merge_on_write is None else options.merge_on_write
    return run_merge(log, MergeRequest(by_levels=True)).message if enabled else None


def _purge(log: TransactionLog, options: WriteOptions, stream: bool) -> str | None:
    del stream
    return run_purge(log, PurgeRequest()).message if options.purge_on_write else None
