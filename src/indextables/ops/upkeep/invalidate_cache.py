"""INVALIDATE INDEXTABLES TRANSACTION LOG CACHE: make every handle of this process look at the log again.

A handle believes for a few seconds that nothing is newer. After this it
believes nothing, for one table or for all, and the next read lists the log.
"""

from __future__ import annotations

from indextables.log.caches import NEWS
from indextables.ops.outcomes import SUCCESS, InvalidateResult
from indextables.storage.store import open_store


def run_invalidate(uri: str | None = None) -> InvalidateResult:
    """Forget what was read, of one table or of all."""
    if uri is None:
        NEWS.announce_all()
        return InvalidateResult(None, SUCCESS, "every table is read from its log again next time")
    root = open_store(uri).uri
    NEWS.announce(root)
    return InvalidateResult(root, SUCCESS, "the table is read from its log again next time")
