"""What the scans of a session did, as Spark's own output shows it."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from typing import Any

from indextables.log.scans import Scan, last_scans, record

__all__ = ["Scan", "explained", "last_scans", "record"]


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
