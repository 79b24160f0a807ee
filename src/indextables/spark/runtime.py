"""A Runtime on a Spark session: executors as workers, an engine for large logs, caches renewed by commits."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from indextables.runtime import Frames, Runtime
from indextables.spark.options import is_connect
from indextables.spark.replay.engine import SparkEngine
from indextables.spark.workers import SparkWorkers

if TYPE_CHECKING:
    from indextables.log.replay.rule import LiveFiles, ReplayRequest, Sums


_log = logging.getLogger(__name__)


def renew_caches(spark: Any, uri: str) -> None:
    """Have Spark read again what it cached of a table whose rows have changed; never raises.

    On Spark Connect a DataFrame holds the files of one version, and what is cached of it stays true.
    """
    if is_connect(spark):
        return
    from py4j.protocol import Py4JError

    try:
        spark.sparkContext._jvm.io.indextables.Caches.renew(spark._jsparkSession, uri)
    except Py4JError as failed:
        _log.warning(
            "%s: the write is committed, but what Spark has cached of the table could not be renewed and may "
            "show older rows; UNCACHE TABLE, then cache it again (%s)", uri, failed,
        )  # fmt: skip


def runtime_with(spark: Any, frames: Frames | None = None) -> Runtime:
    """A runtime on the executors of a session; results stay Arrow tables unless `frames` is set."""
    engines = MappingProxyType({"spark": EngineOnDemand(spark)})
    plain = Runtime(workers=SparkWorkers(spark), engines=engines, committed=partial(renew_caches, spark))
    return plain if frames is None else replace(plain, frames=frames)


class EngineOnDemand:
    """The replay engine on Spark, loaded when a table is large enough to need it."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Find the live files of the request on the executors."""
        files: LiveFiles = SparkEngine(self._spark).replay(request)
        return files

    def sums(self, request: ReplayRequest) -> Sums:
        """Sums of the request's columns over the live files, made on the executors."""
        sums: Sums = SparkEngine(self._spark).sums(request)
        return sums
