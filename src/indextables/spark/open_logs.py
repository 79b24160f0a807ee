"""Open log handles, kept between the queries of a session, since a handle owns the caches of its log."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from indextables.log.transaction_log import TransactionLog
from indextables.options import is_storage_key
from indextables.spark.options import is_connect
from indextables.spark.runtime import runtime_with
from indextables.storage.store import open_store

_MOST_OPEN = 64

_lock = threading.Lock()
_open: OrderedDict[tuple[Any, ...], TransactionLog] = OrderedDict()


def open_log(spark: Any, path: str, options: Mapping[str, str]) -> TransactionLog:
    """The log handle of a table, with what this session has already read of it."""
    store = open_store(path, {key: value for key, value in options.items() if is_storage_key(key)})
    key = (_session_id(spark), store.uri, tuple(sorted(options.items())))
    with _lock:
        log = _open.get(key)
        if log is None:
            log = TransactionLog.open(store.uri, options, runtime=runtime_with(spark))
            _open[key] = log
        _open.move_to_end(key)
        while len(_open) > _MOST_OPEN:
            _open.popitem(last=False)
    return log


def _session_id(spark: Any) -> Any:
    if is_connect(spark):
        return spark.session_id
    return spark.sparkContext.applicationId, id(spark)
