"""A Spark session that knows IndexTables."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from indextables.errors import TableError
from indextables.runtime import Runtime
from indextables.spark import doors, translation
from indextables.spark.call_options import is_connect
from indextables.spark.workers import SparkFrames, SparkWorkers

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
        if not is_connect(spark):
            from indextables.spark.relation import index_class

            translation.install()
            index_class(spark)
        doors.install(spark)
    return spark


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
    return package if package.count(":") == 2 else f"{package}:{_hadoop_version()}"


def _hadoop_version() -> str:
    from pathlib import Path

    import pyspark

    for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.rpartition("-")[2]
    return _HADOOP


def runtime_of(spark: Any) -> Runtime:
    """The surroundings a table handle has inside this session."""
    return Runtime(workers=SparkWorkers(spark), engines=_Engines(spark), frames=SparkFrames(spark))


class _Engines(Mapping[str, Any]):
    """The replay engine on Spark, made when a table is large enough to need it."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getitem__(self, name: str) -> Any:
        if name != "spark":
            raise KeyError(name)
        from indextables.spark.engine import SparkEngine

        return SparkEngine(self._spark)

    def __iter__(self) -> Iterator[str]:
        return iter(("spark",))

    def __len__(self) -> int:
        return 1
