"""The methods of PySpark's classes that `connect` wraps, called with every argument of Spark's own signature."""

from __future__ import annotations

import inspect
from typing import Any

import indextables as it
from indextables.spark import patches
from indextables.spark.options import is_connect


def patched(spark: Any) -> dict[str, tuple[Any, str]]:
    """The owner and name of each function that is wrapped for this kind of session."""
    wrapped = [*patches._translations(is_connect(spark)), *patches._methods(spark)]
    return {name: (owner, name) for owner, name, _ in wrapped}


def differing(spark: Any) -> list[str]:
    """The wrappers that do not have exactly the parameters of Spark's own method."""
    return [name for owner, name, _ in patches._methods(spark) if not _alike(owner.__dict__[name])]


def _alike(wrapper: Any) -> bool:
    def shape(function: Any) -> list[tuple[str, Any, bool]]:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
        return [(one.name, one.kind, one.default is one.empty) for one in parameters]

    return shape(wrapper) == shape(wrapper._indextables)


def call_for_ours(spark: Any, path: str) -> None:
    """Call what reads and writes with every argument, for a table of ours."""
    rows = spark.createDataFrame([(1, "mon"), (2, "tue")], "id INT, day STRING")
    rows.write.save(path, "indextables", "overwrite", ["day"], userMetadata="first")
    rows.write.save(path=path, format="indextables", mode="append", partitionBy="day", userMetadata="second")
    table = it.Table.open(path)
    assert table.partition_columns == ("day",)
    assert table.history(1).to_pylist()[0]["user_metadata"] == "second"
    assert spark.read.load(path, "indextables", versionAsOf=1).count() == 2
    try:
        spark.read.load(path, "indextables", "id INT")
    except it.Error as refused:
        assert "its own schema" in str(refused), refused
    else:
        raise AssertionError("a schema was taken")
    loaded = spark.read.load(path=path, format="indextables")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW patched_view USING indextables OPTIONS (path '{path}')")
    rows.write.insertInto("patched_view", False)
    rows.limit(1).write.insertInto(tableName="patched_view", overwrite=True)
    assert it.Table.open(path).count() == 1
    found = spark.sql("SELECT id FROM {t} WHERE day = :day", {"day": "mon"}, t=loaded)
    assert found.columns == ["id"]


def call_for_others(spark: Any, path: str) -> list[tuple[Any, ...]]:
    """Call them with every argument for what is not ours; the rows of a Parquet file, compressed with gzip."""
    frame = spark.sql(
        "SELECT {low} AS id, :day AS day FROM {rows}", {"day": "mon"}, low=1, rows=spark.range(2)
    )
    frame.write.save(path, "parquet", "overwrite", ["day"], compression="gzip")
    loaded = spark.read.load(path, "parquet", "id INT, day STRING", pathGlobFilter="*.parquet")
    spark.sql("CREATE TABLE patched_plain (id INT, day STRING) USING parquet")
    try:
        loaded.write.insertInto("patched_plain", False)
        loaded.limit(1).write.insertInto(tableName="patched_plain", overwrite=True)
        assert spark.table("patched_plain").count() == 1
    finally:
        spark.sql("DROP TABLE patched_plain")
    return [tuple(row) for row in loaded.collect()]
