"""The executors as workers.

A piece of work is a picklable function and its argument. They travel as the
closure of a mapInArrow job, which classic Spark and Spark Connect both have,
and results come back pickled, so an exception of ours arrives as itself.
"""

# because PySpark keeps its JVM objects private
from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from indextables.errors import Error

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")

_RESULT = "at long, outcome binary"


class SparkWorkers:
    """Executors of a Spark session."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def map(
        self, function: Callable[[T], R], items: Iterable[T], *, parallelism: int | None = None
    ) -> Iterator[R]:
        """Apply a picklable function to every item on the executors; results come back in order."""
        work = list(items)
        if not work:
            return iter(())
        width = min(len(work), parallelism or max(2, default_width(self._spark) * 4))
        frame = self._spark.range(0, len(work), 1, width).toDF("at")
        rows = frame.mapInArrow(_runner(function, work), _RESULT).collect()
        outcomes = {row["at"]: bytes(row["outcome"]) for row in rows}
        return _unpacked(outcomes[at] for at in range(len(work)))


def _unpacked(outcomes: Iterable[bytes]) -> Iterator[Any]:
    for outcome in outcomes:
        failed, value = pickle.loads(outcome)  # noqa: S301  (written by our own executors)
        if failed:
            raise value
        yield value


def _runner(function: Callable[[Any], Any], work: list[Any]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for at in batch.column(0).to_pylist():
                outcome = pa.array([_outcome(function, work[at])], pa.binary())
                yield pa.RecordBatch.from_arrays(
                    [pa.array([at], pa.int64()), outcome], names=["at", "outcome"]
                )

    return run


def _outcome(function: Callable[[Any], Any], item: Any) -> bytes:
    """What a call gave. Our own errors are answers; anything else fails the task, which Spark repeats."""
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps((False, function(item))))
    except Error as error:
        return bytes(cloudpickle.dumps((True, error)))


def default_width(spark: Any) -> int:
    """How many tasks run at the same time."""
    from indextables.spark.options import is_connect

    if is_connect(spark):
        return int(spark.conf.get("spark.sql.shuffle.partitions", "8") or 8)
    return int(spark.sparkContext.defaultParallelism)
