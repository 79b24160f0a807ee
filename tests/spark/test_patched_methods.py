"""The methods of PySpark's classes that `connect` wraps: each takes what Spark's own takes, and `disconnect` undoes it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import indextables as it
from indextables.spark.sql.statements import run_statement
from support.patched import call_for_others, call_for_ours, differing, patched


@pytest.mark.core
def test_these_methods_are_wrapped_and_no_others_with_the_parameters_of_sparks_own(spark):
    assert list(patched(spark)) == ["convert_exception", "load", "insertInto", "sql", "explain"]
    assert differing(spark) == []


@pytest.mark.core
def test_every_argument_reaches_spark_for_what_is_not_ours(spark, tmp_path, capsys):
    path = tmp_path / "rows"
    assert call_for_others(spark, str(path)) == [(1, "mon")] * 2
    assert any(file.name.endswith(".gz.parquet") for file in (path / "day=mon").iterdir())
    loaded = spark.read.load(str(path), "parquet")
    loaded.explain(True)
    loaded.explain(mode="formatted")
    shown = capsys.readouterr().out
    assert "Optimized Logical Plan" in shown
    assert "== IndexTables ==" not in shown


@pytest.mark.core
def test_every_argument_is_obeyed_for_a_table_of_ours(spark, tmp_path, capsys):
    path = str(tmp_path / "t")
    call_for_ours(spark, path)
    spark.read.load(path, "indextables").explain(extended=False, mode=None)
    assert "== IndexTables ==" in capsys.readouterr().out


@pytest.mark.core
@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE INDEXTABLES HISTORY '/t'",
        "MERGE SPLITS '/t' DRY RUN",
        "REPAIR INDEXFILES TRANSACTION LOG '/t/_transaction_log' AT LOCATION '/t/new'",
        "OPTIMIZE '/t'",
        "SELECT 1",
    ],
)
def test_a_statement_that_the_parser_takes_is_handed_over_as_it_is(spark, text):
    handed: list[Any] = []
    run_statement(spark, lambda *given, **named: handed.append((given, named)), text, {"a": 1}, {"b": 2})
    assert handed == [((text, {"a": 1}), {"b": 2})]


@pytest.mark.core
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
