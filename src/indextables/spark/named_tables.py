"""The location of a named table: one of ours, or a source that a companion can index."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.model.names import quoted_name
from indextables.spark.options import is_connect
from indextables.spark.read.views import table_of_name


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


def address_of(spark: Any, name: Sequence[str]) -> str | None:
    """The path of a table by a name: a view or a named table of ours, a Delta table, or Parquet files."""
    table = table_of_name(spark, tuple(name))
    if table is not None:
        return table.path
    quoted = quoted_name(*name)
    return location_of(spark, quoted) or _described_location(spark, quoted, ("delta", "parquet"))


def _described_location(spark: Any, name: str, providers: tuple[str, ...] = ("indextables",)) -> str | None:
    """The path of a table of some providers by what DESCRIBE says; all that is known on Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return None
    described = {str(row[0]).strip(): str(row[1]) for row in rows}
    return described.get("Location") if described.get("Provider", "").lower() in providers else None
