"""The tally of data skipping: what pruning spared the queries of this process, table by table.

Counted are questions with a predicate. DESCRIBE INDEXTABLES DATA SKIPPING STATS
shows it; it begins with the process and can be cleared.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace

from indextables.predicate.prune.rule import PruneMetrics


@dataclass(slots=True)
class Tally:
    """How many files were considered and left out, by the address of their table."""

    _sums: dict[str, PruneMetrics] = field(default_factory=dict)
    _queries: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, uri: str, metrics: PruneMetrics) -> None:
        """Count one question."""
        counts = replace(metrics, reasons=None)
        with self._lock:
            self._sums[uri] = self._sums.get(uri, PruneMetrics()).plus(counts)
            self._queries[uri] += 1

    def entries(self) -> list[tuple[str, int, PruneMetrics]]:
        """Address, number of questions and their metrics together, by address."""
        with self._lock:
            return [(uri, self._queries[uri], self._sums[uri]) for uri in sorted(self._sums)]

    def clear(self) -> None:
        """Begin anew."""
        with self._lock:
            self._sums.clear()
            self._queries.clear()


TALLY = Tally()
