"""What killed writers leave in a log directory: temporaries that never got their real name.

Only local stores write such files; anywhere else an unfinished write is never
visible. A log file is written in moments, so a temporary of a day ago has no
writer any more.
"""

from __future__ import annotations

import logging
import re

from indextables.errors import StorageError
from indextables.storage.store import Store

logger = logging.getLogger(__name__)

_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")
_ABANDONED_MS = 24 * 3_600_000


def sweep_leftovers(store: Store, log_dir: str, now_ms: int) -> int:
    """Delete the temporaries that dead writers left; returns how many went, failures are only logged."""
    if store.local_path("") is None:
        return 0
    swept = 0
    for meta in store.list_level(log_dir):
        name = meta.path.rpartition("/")[2]
        if not _TEMPORARY.fullmatch(name) or now_ms - meta.modified_ms <= _ABANDONED_MS:
            continue
        try:
            store.delete(meta.path)
        except StorageError as failed:
            logger.warning("%s: cannot delete the leftover %s: %s", store.uri, name, failed)
        else:
            swept += 1
    return swept
