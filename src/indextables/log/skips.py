"""Skipped files and their cooldown: a file an operation could not handle is left alone for a while.

A skip never removes a file; it stays live and readable. Until its `retryAfter`,
operations that respect skips leave it out; after that it is eligible again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from indextables.model.actions import AddAction, SkipAction

HOUR_MS = 3_600_000

_log = logging.getLogger(__name__)


def next_skip(
    previous: SkipAction | None,
    path: str,
    reason: str,
    operation: str,
    *,
    now_ms: int,
    cooldown_hours: float,
    partition_values: Mapping[str, str | None] | None = None,
    size: int | None = None,
) -> SkipAction:
    """The skip to record now: counts on from the previous one and never shortens its cooldown."""
    until = now_ms + round(cooldown_hours * HOUR_MS)
    return SkipAction(
        path=path,
        skip_timestamp=now_ms,
        reason=reason,
        operation=operation,
        partition_values=partition_values,
        size=size,
        retry_after=until if previous is None else max(until, previous.retry_after or 0),
        skip_count=1 if previous is None else previous.skip_count + 1,
    )


def in_cooldown(skips: Mapping[str, SkipAction], now_ms: int) -> dict[str, int]:
    """Paths to leave alone now, each with the time (ms) at which it becomes eligible again."""
    return {
        path: skip.retry_after
        for path, skip in skips.items()
        if skip.retry_after is not None and skip.retry_after > now_ms
    }


def eligible(adds: Iterable[AddAction], skips: Mapping[str, SkipAction], now_ms: int) -> list[AddAction]:
    """The adds that are not in cooldown."""
    resting, candidates = in_cooldown(skips, now_ms), list(adds)
    report_cooldown({add.path: resting[add.path] for add in candidates if add.path in resting})
    return [add for add in candidates if add.path not in resting]


def report_cooldown(resting: Mapping[str, int]) -> None:
    """Log how many files an operation leaves out, and at DEBUG which ones and until when."""
    if not resting:
        return
    _log.info("Filtered out %d files currently in cooldown period", len(resting))
    if _log.isEnabledFor(logging.DEBUG):
        for path, retry_ms in resting.items():
            _log.debug("File in cooldown: %s (retry after: %s)", path, iso(retry_ms))


def iso(moment_ms: int | None) -> str:
    """A moment as ISO text in UTC; a moment beyond the calendar stays a number of milliseconds."""
    if moment_ms is None:
        return "never"
    try:
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{moment_ms} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
