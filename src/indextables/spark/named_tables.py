"""The location of a named table, for streams: Spark offers no way to name our tables there itself."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from typing import Any

from indextables.spark.options import is_connect
from indextables.spark.requests import stream_partitioning, stream_written_frame


def location_of(spark: Any, name: str) -> str | None:
    """The path of a named IndexTables table; None for every other name."""
    from pyspark.errors import AnalysisException

    if is_connect(spark):
        return _described_location(spark, name)
    try:
        plan = spark.table(name)._jdf.queryExecution().analyzed()
    except AnalysisException:
        return None
    while str(plan.getClass().getSimpleName()) == "SubqueryAlias":
        plan = plan.children().apply(0)
    if str(plan.getClass().getSimpleName()) != "DataSourceV2Relation":
        return None
    table = plan.table()
    return (
        str(table.properties()["location"]) if str(table.getClass().getSimpleName()) == "IndexTable" else None
    )


def _described_location(spark: Any, name: str) -> str | None:
    """The same on Spark Connect, where only what DESCRIBE says is known of a table."""
    from pyspark.errors import PySparkException

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return None
    described = {str(row[0]).strip(): str(row[1]) for row in rows}
    return described.get("Location") if described.get("Provider", "").lower() == "indextables" else None


def location_for_stream(spark: Any, name: str, writer: Any, *, create: bool) -> str | None:
    """The path of the table a stream writes to; created with the stream's columns if it does not exist."""
    location = location_of(spark, name)
    if location is not None or not create:
        return location
    rows = spark.createDataFrame([], stream_written_frame(writer).schema)
    definition = rows.writeTo(name).using("indextables")
    by = stream_partitioning(writer)
    (definition.partitionedBy(*by) if by else definition).create()
    return location_of(spark, name)
