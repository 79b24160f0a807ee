"""A Runtime on a Spark session: executors as workers, and an engine for logs that are too large."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from indextables.runtime import Frames, Runtime
from indextables.spark.workers import SparkWorkers

if TYPE_CHECKING:
    from indextables.log.replay.rule import LiveFiles, ReplayRequest


def runtime_with(spark: Any, frames: Frames | None = None) -> Runtime:
    """A runtime on the executors of a session; results stay Arrow tables unless `frames` is set."""
    engines = MappingProxyType({"spark": EngineOnDemand(spark)})
    plain = Runtime(workers=SparkWorkers(spark), engines=engines)
    return plain if frames is None else Runtime(plain.clock, plain.workers, engines, frames)


class EngineOnDemand:
    """The replay engine on Spark, loaded when a table is large enough to need it."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Find the live files of the request on the executors."""
        from indextables.spark.replay.engine import SparkEngine

        found: LiveFiles = SparkEngine(self._spark).replay(request)
        return found
