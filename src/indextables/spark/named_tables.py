"""The location of a named table."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from typing import Any

from indextables.spark.options import is_connect


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
