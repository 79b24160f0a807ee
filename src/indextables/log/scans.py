"""Records how the files of each scan were chosen, and sums per table what pruning saved.

A scan is one query of a user: `files`, `scan`, `count`, `search`, or one Spark query. It
is logged once. The newest scans of the process are kept for inspection, and DESCRIBE
INDEXTABLES DATA SKIPPING STATS shows the sums.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any

from indextables.lazy import later
from indextables.log.replay.rule import ReplayMetrics
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.records import dataclass

if TYPE_CHECKING:
    from indextables.display import notebook
    from indextables.predicate import tree
    from indextables.predicate.tree import Node
else:
    notebook = later("indextables.display.notebook")
    tree = later("indextables.predicate.tree")

logger = logging.getLogger(__name__)

_MAX_SCANS = 1000
_FILTERS = 200
_LARGEST_FILTER = 1000

_lock = threading.Lock()
_scans: deque[Scan] = deque(maxlen=_MAX_SCANS)


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of one query on one version of a table."""

    table: str
    version: int
    considered: int
    pruned_by_partition: int
    skipped_by_statistics: int
    kept: int
    engine: str
    """The replay engine: columnar or reference in this process, spark on the cluster."""
    why: str = ""
    """Why this engine was chosen."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds per stage, by the engine's own names; summed over threads."""
    rows_on_executors: int = 0
    """Entries of the log that executors parsed; 0 when no cluster was used."""

    def _repr_html_(self) -> str:
        return notebook.result_html(self)

    def __str__(self) -> str:
        stages = ", ".join(f"{name} {spent:.3f} s" for name, spent in self.seconds.items())
        cluster = f", {self.rows_on_executors} parsed on executors" if self.rows_on_executors else ""
        return (
            f"{self.table} version {self.version}: {self.kept} of {self.considered} files to read, "
            f"{self.pruned_by_partition} pruned by partition, "
            f"{self.skipped_by_statistics} skipped by statistics; engine {self.engine}"
            f"{f' ({self.why})' if self.why else ''}{cluster}{f'; {stages}' if stages else ''}"
        )

    def aside(self) -> str:
        """The text a plan shows beside the number of files kept."""
        return (
            f", {self.pruned_by_partition} pruned by partition, {self.skipped_by_statistics} by statistics, "
            f"engine {self.engine}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same facts for programs."""
        return asdict(self)


def scan_of(table: str, version: int, files: PruneMetrics, replay: ReplayMetrics) -> Scan:
    """The record of one scan."""
    return Scan(
        table, version, files.considered, files.pruned_by_partition, files.skipped_by_statistics,
        files.kept, replay.engine, replay.why, dict(replay.seconds), replay.rows_on_executors,
    )  # fmt: skip


def record(table: str, version: int, files: PruneMetrics, replay: ReplayMetrics) -> Scan:
    """Remember a scan and log it."""
    scan = scan_of(table, version, files, replay)
    with _lock:
        _scans.append(scan)
    logger.info("%s", scan)
    return scan


def last_scans(table: str | None = None, limit: int = 10) -> list[Scan]:
    """The newest scans first, of one table or of all."""
    with _lock:
        newest_first = [scan for scan in reversed(_scans) if table is None or scan.table == table]
    return newest_first[:limit]


@dataclass(slots=True)
class SkippingTotals:
    """Files considered and pruned by queries with a predicate, summed per table address."""

    _sums: dict[str, PruneMetrics] = field(default_factory=dict)
    _queries: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, uri: str, metrics: PruneMetrics) -> None:
        """Add one query."""
        counts = replace(metrics, reasons=None)
        with self._lock:
            self._sums[uri] = self._sums.get(uri, PruneMetrics()).plus(counts)
            self._queries[uri] += 1

    def entries(self) -> list[tuple[str, int, PruneMetrics]]:
        """Per table: address, number of queries and their summed metrics, sorted by address."""
        with self._lock:
            return [(uri, self._queries[uri], self._sums[uri]) for uri in sorted(self._sums)]

    def clear(self) -> None:
        """Reset all sums."""
        with self._lock:
            self._sums.clear()
            self._queries.clear()


SKIPPING_TOTALS = SkippingTotals()


@dataclass(slots=True)
class Filters:
    """The newest filters of this process, with the address of the table each was asked of."""

    _recent: deque[tuple[str, Node]] = field(default_factory=lambda: deque(maxlen=_FILTERS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, uri: str, node: Node) -> None:
        """Remember a filter; one with more values than a person writes is not worth its memory."""
        if sum(1 + len(getattr(part, "values", ())) for part in tree.walk(node)) <= _LARGEST_FILTER:
            with self._lock:
                self._recent.append((uri, node))

    def of(self, uri: str) -> list[Node]:
        """The filters on one table, oldest first."""
        with self._lock:
            return [node for table, node in self._recent if table == uri]

    def clear(self) -> None:
        """Forget all filters."""
        with self._lock:
            self._recent.clear()


FILTERS = Filters()
