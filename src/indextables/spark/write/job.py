"""The job behind every write: builds splits on the executors; also records the writes of this process.

If a task runs twice, only the files of one attempt are reported.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        if job.where is not None:
            rows = checked(rows, job.plan.schema, job.where, job.text, job.options)
        for split in build(log, job.plan, _gathered(rows), job.options):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(split)], pa.binary())], names=["split"])

    return run


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
