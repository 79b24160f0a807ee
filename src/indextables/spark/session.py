"""A Spark session that knows IndexTables."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from indextables.options import Options
from indextables.runtime import Runtime
from indextables.spark import patches
from indextables.spark.bridge.attach import attach, name_tables
from indextables.spark.executors import check_executors
from indextables.spark.hadoop import package_of
from indextables.spark.jvm.installed import check_java, will_start_java
from indextables.spark.named_tables import address_of
from indextables.spark.options import is_connect, settings_for
from indextables.spark.read.frame import frame_of_snapshot
from indextables.spark.read.relation import index_class
from indextables.spark.runtime import runtime_with
from indextables.spark.search.dataframe import search_frame
from indextables.spark.versions import check_version, frame_of_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot

_RECOMMENDED = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.filterPushdown": "true",
}
_lock = threading.Lock()


def connect(spark: Any, *, check: bool = True) -> Any:
    """Teach a session `format("indextables")` and our SQL; returns the session."""
    check_version(str(spark.version))
    with _lock:
        patches.install(spark)
        if not is_connect(spark):
            index_class(spark)
            attach(spark)
            name_tables(spark)
            _same_interpreter(spark.sparkContext)
    if check:
        check_executors(spark)
    return spark


def disconnect(spark: Any) -> None:
    """Give PySpark's classes their own methods back, which `connect` had wrapped."""
    patches.uninstall(spark)


def start_local(name: str) -> Any:
    """Start a connected session on this machine, for a program that is not the user's own."""
    from pyspark.sql import SparkSession

    check_java()
    # The executors must be this Python, with the packages it has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName(name)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    return connect(builder.config("spark.driver.host", "127.0.0.1").getOrCreate())


def _same_interpreter(context: Any) -> None:
    """Let the workers of a session on this machine run the Python that has this package installed."""
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def configure(builder: Any, cloud: str | None = None) -> Any:
    """Set the recommended configuration on a builder; `cloud` adds the Hadoop package of that store.

    Where the builder is going to start Java, a Java that is missing or too old is an error here.
    """
    if will_start_java(builder):
        check_java()
    for key, value in _RECOMMENDED.items():
        builder = builder.config(key, value)
    if cloud is None:
        return builder
    return builder.config("spark.jars.packages", package_of(cloud))


def runtime_of(spark: Any) -> Runtime:
    """The runtime of a table handle in this session."""
    return replace(runtime_with(spark, SparkFrames(spark)), address_of=partial(address_of, spark))


def options_of(
    spark: Any, options: Mapping[str, Any] | Options | None = None, path: str | None = None
) -> Options:
    """The options of a public call, on top of the session's and the Hadoop configuration's."""
    explicit = options.explicit if isinstance(options, Options) else options
    return settings_for(spark, explicit or {}, (), path).options()


class SparkFrames:
    """Converts Arrow tables to DataFrames."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def from_arrow(self, table: pa.Table) -> Any:
        """A DataFrame with the same rows."""
        return frame_of_arrow(self._spark, table)

    def scan(self, snapshot: Snapshot, *, where: Any = None, columns: Sequence[str] | None = None) -> Any:
        """A DataFrame over a version, or over its rows for which a filter is true."""
        return frame_of_snapshot(self._spark, snapshot, where, columns)

    def search(
        self, snapshot: Snapshot, query: str, *, where: Any = None, columns: Sequence[str] | None = None,
        limit: int | None = None, score: bool = False, operator: str | None = None,
    ) -> Any:  # fmt: skip
        """A DataFrame of the rows a full-text query finds, computed on the executors."""
        return search_frame(
            self._spark, snapshot, query, where=where, columns=columns, limit=limit, score=score,
            operator=operator,
        )  # fmt: skip
