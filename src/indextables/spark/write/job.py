"""The job behind every write: builds splits on the executors; also records the writes of this process.

If a task runs twice, only the files of one attempt are reported.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.log.transaction_log import TransactionLog
from indextables.model.fields import normalise_schema
from indextables.model.names import quoted_name
from indextables.ops.results import WriteResult
from indextables.ops.write.after_write import after_write
from indextables.ops.write.replace_where import checked
from indextables.ops.write.rows import WritePlan, build
from indextables.options import Options
from indextables.predicate.tree import Node
from indextables.spark.versions import rebalanced, with_offsets
from indextables.split.write.build import BuiltSplit

if TYPE_CHECKING:
    import pyarrow as pa

_REMEMBERED = 100
_AT_ONCE = 32_768

_lock = threading.Lock()
_written: deque[tuple[str, WriteResult]] = deque(maxlen=_REMEMBERED)


MARK = "__indextables_change"
"""The column in which `PlanningRule.java` says what MERGE does to a row."""


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """How many of the rows that a MERGE has written were there before, and how many are new."""

    copied: int = 0
    updated: int = 0
    inserted: int = 0

    def with_batch(self, marks: pa.Array) -> MarkedRows:
        """These and the rows of one more batch."""
        copied, updated, inserted = np.bincount(marks.to_numpy(zero_copy_only=False), minlength=3).tolist()
        return MarkedRows(self.copied + copied, self.updated + updated, self.inserted + inserted)

    @classmethod
    def total(cls, counts: Iterable[MarkedRows]) -> MarkedRows:
        """The sums over all tasks."""
        every = tuple(counts)
        return cls(
            sum(one.copied for one in every),
            sum(one.updated for one in every),
            sum(one.inserted for one in every),
        )


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of a write needs; picklable."""

    plan: WritePlan
    store: Any
    options: Options
    text: str | None = None
    where: Node | None = None
    """The condition that every written row must satisfy."""


def schema_of(frame: Any) -> pa.Schema:
    """The columns of a DataFrame as a table holds them."""
    return normalise_schema(frame.schema)


def run_job(frame: Any, job: Job) -> list[BuiltSplit]:
    """Build the splits on the executors; returns the reports of the successful task attempts."""
    return [report for report in _reports(frame, job) if isinstance(report, BuiltSplit)]


def run_marked_job(frame: Any, job: Job) -> tuple[list[BuiltSplit], MarkedRows]:
    """Build the splits of a MERGE whose frame has marks of its rows in the last column, and count these."""
    reports = _reports(frame, job)
    marked = MarkedRows.total(report for report in reports if isinstance(report, MarkedRows))
    return [report for report in reports if isinstance(report, BuiltSplit)], marked


def _reports(frame: Any, job: Job) -> list[BuiltSplit | MarkedRows]:
    shaped = _spread(frame, job)
    if _is_surely_empty(shaped):
        return []
    # PySpark takes every name for an expression here, and `a.b` for a field of `a`: they travel as numbers.
    names = shaped.columns
    numbered = shaped.toDF(*(f"c{at}" for at in range(len(names))))
    rows = numbered.mapInArrow(_task(job, names), "split binary").collect()
    return [pickle.loads(bytes(row["split"])) for row in rows]  # noqa: S301  (written by our own executors)


def _is_surely_empty(frame: Any) -> bool:
    return not frame.columns


def _spread(frame: Any, job: Job) -> Any:
    """With optimizeWrite: distribute rows by partition over tasks of even size."""
    if not job.options.write.optimize:
        return frame
    return rebalanced(frame, [quoted_name(name) for name in job.plan.partition_columns])


def _task(job: Job, names: Sequence[str]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        log = TransactionLog.open(job.store.uri, job.options)
        rows: Iterator[Any] = (with_offsets(batch).rename_columns(list(names)) for batch in batches)
        marked: list[MarkedRows] = []
        if names[-1] == MARK:
            rows = _unmarked(rows, marked)
        if job.where is not None:
            rows = checked(rows, job.plan.schema, job.where, job.text, job.options)
        for report in chain(build(log, job.plan, _gathered(rows), job.options), marked):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(report)], pa.binary())], names=["split"])

    return run


def _unmarked(batches: Iterator[pa.RecordBatch], marked: list[MarkedRows]) -> Iterator[pa.RecordBatch]:
    """The rows without their marks; these are counted in `marked` by the time the last row is taken."""
    count = MarkedRows()
    for batch in batches:
        count = count.with_batch(batch.column(MARK))
        yield batch.drop_columns([MARK])
    marked.append(count)


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Rows in batches of a row group: Spark passes fewer at a time, and every batch has a fixed cost."""
    pending: list[Any] = []
    for batch in batches:
        pending.append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))
        if sum(piece.num_rows for piece in pending) >= _AT_ONCE:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def last_writes(limit: int = 10) -> list[tuple[str, WriteResult]]:
    """The last tables written from this process and the results, newest first."""
    with _lock:
        return list(reversed(_written))[:limit]


def written(
    log: TransactionLog, result: WriteResult, options: Options, *, stream: bool = False
) -> WriteResult:
    """Record a committed write, and do what is due after one."""
    after_write(log, options, stream=stream)
    with _lock:
        _written.append((log.uri, result))
    return result
