"""The store's own time: a small object is written, and the time that the store gave it is read back.

An age is the difference of two times of one store. The clock of a process says nothing
about the age of an object: it may be days ahead of the clock that dated the object.
"""

from __future__ import annotations

import logging
import uuid

from indextables.errors import StorageError
from indextables.storage.store import Store

logger = logging.getLogger(__name__)


def store_time_ms(store: Store, directory: str) -> int | None:
    """The time of the store now, in ms since the epoch; None if it cannot be had, which is logged.

    The object has the name of a temporary file, so that PURGE removes one that was left behind.
    """
    path = f"{directory}/.{uuid.uuid4().hex}.tmp"
    try:
        store.put(path, b"{}")
        now_ms = store.head(path).modified_ms
        store.delete(path)
    except StorageError as failed:
        logger.warning(
            "%s: the store does not tell its time, so nothing counts as old: %s", store.uri, failed
        )
        return None
    return now_ms
