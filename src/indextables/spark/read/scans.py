"""What the scans of a session did, as Spark's own output shows it."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def file_indexes(frame: Any) -> Iterator[tuple[Any, Any]]:
    """The scans of our relations in a DataFrame's plan, each with its file index."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        if not str(leaf.getClass().getSimpleName()).startswith("FileSourceScan"):
            continue
        location = leaf.relation().location()
        if str(location.getClass().getSimpleName()) == "LogFileIndex":
            yield leaf, location


def explained(frame: Any) -> str:
    """For each of our relations in a DataFrame's plan, which files its filters leave."""
    lines = []
    for leaf, location in file_indexes(frame):
        leaf.selectedPartitions()
        lines.append(str(location.toString()))
    lines += searches_in(frame)
    return "\n".join(["== IndexTables ==", *lines, ""]) if lines else ""


def searches_in(frame: Any) -> list[str]:
    """For each table that a DataFrame's plan searches, how its splits were chosen and what was found."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    lines = frame.sparkSession.sparkContext._jvm.io.indextables.SearchRule.shown(plan)
    return [str(line) for line in lines]
