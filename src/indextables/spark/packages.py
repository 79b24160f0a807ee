"""The Hadoop packages that let Spark read an object store by itself."""

from __future__ import annotations

from indextables.errors import TableError

_HADOOP = "3.4.1"
PACKAGES = {
    "s3": "org.apache.hadoop:hadoop-aws",
    "azure": "org.apache.hadoop:hadoop-azure",
    "gcs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}


def package_of(cloud: str) -> str:
    """The Hadoop package that lets Spark read a store by itself, in the version this Spark was built with."""
    if cloud not in PACKAGES:
        raise TableError(f"cloud={cloud!r} is not one of {', '.join(map(repr, PACKAGES))}", cloud=cloud)
    package = PACKAGES[cloud]
    return package if cloud == "gcs" else f"{package}:{_hadoop_version()}"


def _hadoop_version() -> str:
    from pathlib import Path

    import pyspark

    for jar in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.rpartition("-")[2]
    return _HADOOP
