"""INVALIDATE INDEXTABLES TRANSACTION LOG CACHE: make every handle of this process read the log again.

A handle assumes for a few seconds that nothing is newer. After this command the next read
lists the log, for one table or for all.
"""

from __future__ import annotations

from indextables.log.caches import NEWS
from indextables.ops.outcomes import SUCCESS, InvalidateResult
from indextables.storage.store import open_store


def run_invalidate(uri: str | None = None) -> InvalidateResult:
    """Clear what was read, of one table or of all."""
    if uri is None:
        NEWS.announce_all()
        return InvalidateResult(None, SUCCESS, "every table is read from its log again next time")
    root = open_store(uri).uri
    NEWS.announce(root)
    return InvalidateResult(root, SUCCESS, "the table is read from its log again next time")
