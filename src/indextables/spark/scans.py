"""What the last scans of this process did: how many files there were, and how many had to be read."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indextables.predicate.prune import PruneMetrics

_KEPT = 1000

_lock = threading.Lock()
_scans: deque[Scan] = deque(maxlen=_KEPT)


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of one planned query on one table."""

    table: str
    version: int
    considered: int
    pruned_by_partition: int
    skipped_by_statistics: int
    kept: int
    engine: str

    def __str__(self) -> str:
        return (
            f"{self.table} version {self.version}: {self.kept} of {self.considered} files to read, "
            f"{self.pruned_by_partition} pruned by partition, "
            f"{self.skipped_by_statistics} skipped by statistics"
        )


def record(table: str, version: int, metrics: PruneMetrics, engine: str) -> Scan:
    """Remember a scan."""
    scan = Scan(
        table, version, metrics.considered, metrics.pruned_by_partition, metrics.skipped_by_statistics,
        metrics.kept, engine,
    )  # fmt: skip
    with _lock:
        _scans.append(scan)
    return scan


def last_scans(table: str | None = None, limit: int = 10) -> list[Scan]:
    """The newest scans first, of one table or of all."""
    with _lock:
        found = [scan for scan in reversed(_scans) if table is None or scan.table == table]
    return found[:limit]


def explained(frame: Any) -> str:
    """For each of our relations in a DataFrame's plan, which files its filters leave."""
    execution = frame._jdf.queryExecution()
    leaves = execution.sparkPlan().collectLeaves()
    lines = []
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        if not str(leaf.getClass().getSimpleName()).startswith("FileSourceScan"):
            continue
        location = leaf.relation().location()
        if str(location.getClass().getSimpleName()) == "LogFileIndex":
            leaf.selectedPartitions()
            lines.append(str(location.toString()))
    return "\n".join(["== IndexTables ==", *lines, ""]) if lines else ""
