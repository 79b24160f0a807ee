"""Searches that the driver answers itself, where driver and executors are one machine.

Asking eight indexes for a rare word takes a few milliseconds, and a job with
Python workers takes two hundred. So where a session runs in one process, the
splits are indexed as the table says and few rows match, the rows are fetched
here and become a local relation, over which Spark starts no job at all.
Everything else is left to the executors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.spark.options import is_connect
from indextables.spark.search.tasks import SearchTask, count_hits
from indextables.spark.versions import frame_of_arrow
from indextables.split.layout import SplitRef
from indextables.split.search.metrics import SearchMetrics

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 10_000
"""Up to this many matching rows are fetched on the driver."""
MOST_BYTES = 16 << 20
"""Up to this many stored bytes of matching rows are fetched on the driver."""
MOST_SPLITS = 200
"""Up to this many splits, searching one after the other is faster than a job."""

_ONE_PROCESS = re.compile(r"local(\[[^\]]*\])?")
_PLAIN = frozenset(
    {"string", "boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp",
     "timestamp_ntz", "binary", "decimal"}
)  # fmt: skip


def counted(spark: Any, task: SearchTask) -> dict[str, int] | None:
    """The number of matching rows per split; None if executors should search, or an index cannot tell."""
    if not is_near(spark, task):
        return None
    notes: list[SearchMetrics] = []
    counts: dict[str, int] = {}
    for path, count in count_hits(task, notes.append):
        if notes[-1].scanned or notes[-1].verified_rows > MOST_ROWS:
            return None
        counts[path] = count
    return counts


def among(task: SearchTask, counts: Mapping[str, int]) -> SearchTask:
    """The task without the splits in which nothing matches."""
    return replace(task, refs=tuple(ref for ref in task.refs if counts[ref.path]))


def is_little(task: SearchTask, counts: Mapping[str, int]) -> bool:
    """Whether a task fetches little enough for the driver."""
    limit = task.selection.limit
    if limit is not None and limit <= MOST_ROWS and task.selection.where is None:
        return True
    stored = sum(counts[ref.path] * _row_bytes(ref) for ref in task.refs)
    return sum(counts.values()) <= MOST_ROWS and stored <= MOST_BYTES


def local_frame(
    spark: Any, run: Callable[[SearchTask], Iterator[pa.RecordBatch]], task: SearchTask, schema: Any
) -> Any:
    """The result of a task as a local relation; None if its types need Spark's own conversion."""
    if not _are_plain(schema):
        return None
    batches = list(run(task))
    return (
        frame_of_arrow(spark, pa.Table.from_batches(batches), schema)
        if batches
        else spark.createDataFrame([], schema)
    )


def frame_of_groups(spark: Any, groups: pa.Table, schema: Any) -> Any:
    """A table as a local relation; None if its types need Spark's own conversion."""
    if not _are_plain(schema):
        return None
    return frame_of_arrow(spark, groups, schema) if groups.num_rows else spark.createDataFrame([], schema)


def _are_plain(schema: Any) -> bool:
    return all(field.dataType.typeName() in _PLAIN for field in schema)


def is_near(spark: Any, task: SearchTask) -> bool:
    """Whether the splits of a search are few, and no closer to an executor than to the driver."""
    if is_connect(spark) or not _ONE_PROCESS.fullmatch(spark.sparkContext.master):
        return False
    return 0 < len(task.refs) <= MOST_SPLITS and all(ref.index_length for ref in task.refs)


def _row_bytes(ref: SplitRef) -> float:
    """Stored bytes of a row; a split that does not say how many it has counts as one."""
    return ((ref.size or 0) - (ref.index_length or 0)) / max(1, ref.num_records or 1)
