"""A Spark session that knows IndexTables."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from indextables.errors import CommandError, TableError
from indextables.options import Options
from indextables.runtime import Runtime
from indextables.spark import doors, translation
from indextables.spark.call_options import is_connect, session_layers
from indextables.spark.workers import SparkFrames, SparkWorkers

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.replay import LiveFiles, ReplayRequest
    from indextables.sql.commands import Command

OLDEST = (4, 1)

_RECOMMENDED = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.filterPushdown": "true",
}
_HADOOP = "3.4.1"
_PACKAGES = {
    "s3": "org.apache.hadoop:hadoop-aws",
    "azure": "org.apache.hadoop:hadoop-azure",
    "gcs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}

_lock = threading.Lock()


def connect(spark: Any) -> Any:
    """Teach a session `format("indextables")` and our SQL; returns the session."""
    _check_version(str(spark.version))
    with _lock:
        if is_connect(spark):
            translation.install_for_connect()
        else:
            from indextables.spark.relation import index_class

            translation.install()
            index_class(spark)
            _same_interpreter(spark.sparkContext)
        doors.install(spark)
    return spark


def _same_interpreter(context: Any) -> None:
    """Let the workers of a session on this machine run the Python that has this package installed."""
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def _check_version(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or (int(found.group(1)), int(found.group(2))) < OLDEST:
        raise TableError(
            f"IndexTables needs Spark {OLDEST[0]}.{OLDEST[1]} or later and this session runs {version}. "
            "Upgrade with: pip install 'pyspark>=4.1'",
            version=version,
        )


def configure(builder: Any, cloud: str | None = None) -> Any:
    """Set the recommended configuration on a builder; `cloud` adds the Hadoop package of that store."""
    for key, value in _RECOMMENDED.items():
        builder = builder.config(key, value)
    if cloud is None:
        return builder
    if cloud not in _PACKAGES:
        raise TableError(f"cloud={cloud!r} is not one of {', '.join(map(repr, _PACKAGES))}", cloud=cloud)
    return builder.config("spark.jars.packages", package_of(cloud))


def package_of(cloud: str) -> str:
    """The Hadoop package that lets Spark read a store by itself, in the version this Spark was built with."""
    package = _PACKAGES[cloud]
    return package if cloud == "gcs" else f"{package}:{_hadoop_version()}"


def _hadoop_version() -> str:
    from pathlib import Path

    import pyspark

    for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.rpartition("-")[2]
    return _HADOOP


def run_command(spark: Any, command: Command, options: Mapping[str, Any] | None = None) -> pa.Table:
    """Carry a maintenance command out with the session's configuration, views and executors."""
    from indextables.spark.call_options import settings_for
    from indextables.spark.views import table_of_name
    from indextables.sql.runner import run

    def views(parts: tuple[str, ...]) -> str:
        found = table_of_name(spark, parts)
        if found is None:
            raise CommandError(f"{'.'.join(parts)} is not a view of an IndexTables table in this session")
        return found.path

    table = getattr(command, "table", None)
    path = table.path if table is not None else None
    settings = settings_for(spark, options or {}, (), path)
    return run(command, options=settings.table, runtime=runtime_of(spark), views=views)


def runtime_of(spark: Any) -> Runtime:
    """The surroundings a table handle has inside this session."""
    engines = MappingProxyType({"spark": EngineOnDemand(spark)})
    return Runtime(workers=SparkWorkers(spark), engines=engines, frames=SparkFrames(spark))


def options_of(spark: Any, given: Mapping[str, Any] | None = None, path: str | None = None) -> Options:
    """Options given for one command, over the session's and the Hadoop configuration's."""
    session, hadoop = session_layers(spark, path)
    return Options.of(given, session=session, hadoop=hadoop)


def address_of_view(spark: Any, name: Sequence[str]) -> str | None:
    """The path of the table that a view shows; None when it shows none of ours."""
    from indextables.spark.views import table_of_name

    found = table_of_name(spark, tuple(name))
    return None if found is None else found.path


class EngineOnDemand:
    """The replay engine on Spark, loaded when a table is large enough to need it."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Find the live files of the request on the executors."""
        from indextables.spark.engine import SparkEngine

        found: LiveFiles = SparkEngine(self._spark).replay(request)
        return found
