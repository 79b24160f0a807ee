"""Runs work on the executors of a Spark session.

A unit of work is a picklable function and its argument. They are sent as the closure of a
mapInArrow job, which classic Spark and Spark Connect both have, and results come back
pickled, so that one of our exceptions arrives unchanged.
"""

# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from indextables.errors import Error
from indextables.spark.options import is_connect

T = TypeVar("T")
R = TypeVar("R")

_TASK_BYTES = 128 << 20
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
        for batch in batches:
            for at in batch.column(0).to_pylist():
                outcome = pa.array([_outcome(function, work[at])], pa.binary())
                yield pa.RecordBatch.from_arrays(
                    [pa.array([at], pa.int64()), outcome], names=["at", "outcome"]
                )

    return run


def _outcome(function: Callable[[Any], Any], item: Any) -> bytes:
    """The outcome of a call. Our own errors are results; any other error fails the task and is retried."""
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps((False, function(item))))
    except Error as error:
        return bytes(cloudpickle.dumps((True, error)))


def default_width(spark: Any) -> int:
    """How many tasks run at the same time."""
    if is_connect(spark):
        return int(spark.conf.get("spark.sql.shuffle.partitions", "8") or 8)
    return int(spark.sparkContext.defaultParallelism)


def frame_of_tasks(
    spark: Any, run: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: Any
) -> Any:
    """A DataFrame whose partitions are the results of the given tasks."""
    if not tasks:
        return spark.createDataFrame([], schema)
    work = list(tasks)

    def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield from run(work[at])

    return spark.range(0, len(work), 1, len(work)).mapInArrow(of_partition, schema)


def shared_out(items: Sequence[T], least: int, size: Callable[[T], int]) -> list[tuple[T, ...]]:
    """Divide items into at least `least` groups, more if they are large; order is kept."""
    if not items:
        return []
    total = sum(size(item) for item in items)
    count = min(len(items), max(least, total // _TASK_BYTES))
    step, rest = divmod(len(items), count)
    groups, at = [], 0
    for number in range(count):
        end = at + step + (number < rest)
        groups.append(tuple(items[at:end]))
        at = end
    return groups


def spark_schema(text: str) -> Any:
    """A schema as PySpark has it."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))
