"""Counters that say how searches of splits were answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import add, attrgetter

from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """How searches of splits were answered."""

    splits: int = 0
    ruled_out: int = 0
    """Splits that word filters, stored beside the log, ruled out before any index was opened."""
    hits: int = 0
    by_index: int = 0
    scanned: int = 0
    """Splits whose rows were matched without an index: damaged, missing, or made with other settings."""
    damaged: int = 0
    verified_rows: int = 0
    by_pages: int = 0
    by_row_groups: int = 0
    by_scan: int = 0

    def plus(self, other: SearchMetrics) -> SearchMetrics:
        """The sum of both."""
        return SearchMetrics(*map(add, _counters(self), _counters(other)))


_counters = attrgetter(*(item.name for item in fields(SearchMetrics)))


Note = Callable[[SearchMetrics], None]
"""A callback that receives the metrics of each split's search."""
