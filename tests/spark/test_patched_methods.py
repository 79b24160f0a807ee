"""The methods of PySpark's classes that `connect` wraps: each takes what Spark's own takes, and `disconnect` undoes it."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import pytest

import indextables as it
from indextables.spark import patches


def patched(spark: Any) -> dict[str, tuple[Any, str]]:
    wrapped = [*patches._translations(connect=False), *patches._methods(spark)]
    return {name: (owner, name) for owner, name, _ in wrapped}


def test_these_methods_are_wrapped_and_no_others(spark):
    assert list(patched(spark)) == ["convert_exception", "load", "insertInto", "sql", "explain"]


@pytest.mark.parametrize("name", ["load", "insertInto", "sql", "explain"])
def test_a_wrapper_has_exactly_the_parameters_of_sparks_own_method(spark, name):
    owner, _ = patched(spark)[name]
    wrapper = owner.__dict__[name]

    def shape(function: Any) -> list[tuple[str, Any, bool]]:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
        return [(one.name, one.kind, one.default is one.empty) for one in parameters]

    assert shape(wrapper) == shape(wrapper._indextables)


def test_every_argument_reaches_spark_for_what_is_not_ours(spark, tmp_path, capsys):
    path = str(tmp_path / "rows")
    frame = spark.sql(
        "SELECT {low} AS id, :day AS day FROM {rows}", {"day": "mon"}, low=1, rows=spark.range(2)
    )
    frame.write.save(path, "parquet", "overwrite", ["day"], compression="gzip")
    assert any(file.name.endswith(".gz.parquet") for file in Path(path, "day=mon").iterdir())
    loaded = spark.read.load(path, "parquet", "id INT, day STRING", pathGlobFilter="*.parquet")
    assert [tuple(row) for row in loaded.collect()] == [(1, "mon")] * 2
    loaded.explain(True)
    loaded.explain(mode="formatted")
    shown = capsys.readouterr().out
    assert "Optimized Logical Plan" in shown
    assert "== IndexTables ==" not in shown
    spark.sql("CREATE TABLE patched_plain (id INT, day STRING) USING parquet")
    try:
        loaded.write.insertInto("patched_plain", False)
        loaded.limit(1).write.insertInto(tableName="patched_plain", overwrite=True)
        assert spark.table("patched_plain").count() == 1
    finally:
        spark.sql("DROP TABLE patched_plain")


def test_every_argument_is_obeyed_for_a_table_of_ours(spark, tmp_path, capsys):
    path = str(tmp_path / "t")
    rows = spark.createDataFrame([(1, "mon"), (2, "tue")], "id INT, day STRING")
    rows.write.save(path, "indextables", "overwrite", ["day"], userMetadata="first")
    rows.write.save(path=path, format="indextables", mode="append", partitionBy="day", userMetadata="second")
    table = it.Table.open(path)
    assert table.partition_columns == ("day",)
    assert table.history(1).to_pylist()[0]["user_metadata"] == "second"
    assert spark.read.load(path, "indextables", versionAsOf=1).count() == 2
    with pytest.raises(it.Error, match="its own schema"):
        spark.read.load(path, "indextables", "id INT")
    loaded = spark.read.load(path=path, format="indextables")
    loaded.createOrReplaceTempView("patched_view")
    rows.write.insertInto("patched_view", False)
    rows.limit(1).write.insertInto(tableName="patched_view", overwrite=True)
    assert it.Table.open(path).count() == 1
    spark.read.load(path, "indextables").explain(extended=False, mode=None)
    assert "== IndexTables ==" in capsys.readouterr().out
    found = spark.sql("SELECT id FROM {t} WHERE day = :day", {"day": "mon"}, t=loaded)
    assert found.columns == ["id"]


def test_disconnect_gives_the_methods_back_and_connect_wraps_them_again(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(3).write.format("indextables").save(path)
    wrappers = {name: owner.__dict__[name] for owner, name in patched(spark).values()}
    it.disconnect(spark)
    it.disconnect(spark)
    try:
        for owner, name in patched(spark).values():
            assert owner.__dict__[name] is wrappers[name]._indextables, name
        assert spark.read.format("indextables").load(path).count() == 3, "the data source stays"
        assert spark.sql(f"DESCRIBE INDEXTABLES HISTORY '{path}'").count() == 2, "and the extension"
    finally:
        it.connect(spark)
    for owner, name in patched(spark).values():
        assert owner.__dict__[name]._indextables is wrappers[name]._indextables, name


def test_disconnect_leaves_what_somebody_else_has_wrapped_since(spark, monkeypatch):
    from pyspark.sql import SparkSession

    ours = SparkSession.sql

    @functools.wraps(ours)
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    monkeypatch.setattr(SparkSession, "sql", theirs)
    it.disconnect(spark)
    try:
        assert SparkSession.sql is theirs
    finally:
        it.connect(spark)
    assert SparkSession.sql is theirs
