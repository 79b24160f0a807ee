"""What a table does not do is refused by name, and its directory stays as it was, byte for byte."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import indextables as it
from indextables.errors import CommandError, SchemaError, TableError
from indextables.errors import Error as IndexTablesError
from indextables.spark.read.relation import planner_callback
from indextables.spark.read.wire import Answer


def fingerprint(root: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).digest()
        for file in root.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """Two rows; `loaded` shows all of it, `part` some of it, `past` an old version; `other` is Spark's own."""
    root = tmp_path / "t"
    spark.sql("SELECT 1L AS id, 'a' AS s UNION ALL SELECT 2L, 'b'").write.format("indextables").save(
        str(root)
    )
    frame = spark.read.format("indextables").load(str(root))
    frame.createOrReplaceTempView("loaded")
    frame.createOrReplaceGlobalTempView("loaded_everywhere")
    frame.filter("id = 1").createOrReplaceTempView("part")
    spark.read.format("indextables").option("versionAsOf", 0).load(str(root)).createOrReplaceTempView("past")
    spark.range(1).selectExpr("id", "'z' AS s").createOrReplaceTempView("other")
    return root


@pytest.mark.parametrize(
    ("verb", "statement"),
    [
        ("DELETE", "DELETE FROM loaded"),
        ("DELETE", "delete from `loaded` where id = 1"),
        ("DELETE", "EXPLAIN DELETE FROM loaded WHERE id = 1"),
        ("DELETE", "DELETE FROM global_temp.loaded_everywhere WHERE id = 1"),
        ("UPDATE", "UPDATE loaded SET s = 'x' WHERE id = 1"),
        ("MERGE", "MERGE INTO loaded USING other ON loaded.id = other.id WHEN MATCHED THEN DELETE"),
        ("MERGE", "WITH o AS (SELECT * FROM other) MERGE INTO loaded USING o ON true WHEN MATCHED THEN DELETE"),
    ],
)  # fmt: skip
def test_changing_rows_of_a_view_names_the_statement_that_can(
    spark: SparkSession, table: Path, verb: str, statement: str
) -> None:
    before = fingerprint(table)
    with pytest.raises(CommandError, match=f"{verb} is not supported on") as refused:
        spark.sql(statement.format(path=table))
    assert "Run it on the table: on indextables.`" in str(refused.value)
    assert str(table) in str(refused.value)
    assert ("REPLACE WHERE" in str(refused.value)) == (verb != "DELETE")
    assert fingerprint(table) == before


def test_the_statement_the_message_names_works(spark: SparkSession, table: Path) -> None:
    with pytest.raises(CommandError) as refused:
        spark.sql("DELETE FROM loaded WHERE id = 1")
    advised = str(refused.value).partition("on the table: on ")[2].partition(",")[0]
    spark.sql(f"DELETE FROM {advised} WHERE id = 1")
    assert it.Table.open(str(table)).scan().read_all().to_pylist() == [{"id": 2, "s": "b"}]


@pytest.mark.parametrize("statement", ["DELETE FROM other", "UPDATE other SET id = 1", "DELETE FROM nobody"])
def test_changes_of_what_is_not_ours_are_answered_by_spark(
    spark: SparkSession, table: Path, statement: str
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011  (Spark has several)
        spark.sql(statement)
    assert not isinstance(refused.value, IndexTablesError)


def _writes() -> list[tuple[str, Callable[[DataFrame, str], object]]]:
    return [
        ("insertInto of a filtered view", lambda f, _: f.write.insertInto("part")),
        ("insertInto of a filtered view, overwriting", lambda f, _: f.write.insertInto("part", overwrite=True)),
        ("insertInto of an old version", lambda f, _: f.write.insertInto("past")),
        ("insertInto with too few columns", lambda f, _: f.select("id").write.insertInto("loaded")),
        ("saveAsTable", lambda f, path: f.write.format("indextables").option("path", path).saveAsTable("x")),
        ("writeTo append", lambda f, _: f.writeTo("loaded").append()),
        ("writeTo overwritePartitions", lambda f, _: f.writeTo("loaded").overwritePartitions()),
        ("the default mode", lambda f, path: f.write.format("indextables").save(path)),
        ("bucketBy", lambda f, path: f.write.format("indextables").bucketBy(2, "id").mode("append").save(path)),
        ("sortBy", lambda f, path: f.write.format("indextables").bucketBy(2, "id").sortBy("id").mode("append").save(path)),
    ]  # fmt: skip


@pytest.mark.parametrize("write", [call for _, call in _writes()], ids=[name for name, _ in _writes()])
def test_a_refused_write_leaves_the_directory_byte_identical(
    spark: SparkSession, table: Path, write: Callable[[DataFrame, str], object]
) -> None:
    before = fingerprint(table)
    with pytest.raises((TableError, SchemaError, AnalysisException)):
        write(spark.table("other"), str(table))
    assert fingerprint(table) == before
    assert not spark.catalog.tableExists("x")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "CREATE TABLE made (id INT) USING indextables LOCATION '{path}'",
            "~ id: int64 NOT NULL in the table, int32 in the given schema",
        ),
        (
            "CREATE TABLE made USING indextables LOCATION '{path}' TBLPROPERTIES ('a' = 'b')",
            "is a table already and keeps its properties: leave TBLPROPERTIES out",
        ),
        (
            "CREATE TABLE IF NOT EXISTS made USING indextables LOCATION '{path}' AS SELECT 1 AS id",
            "is a table already. Name it with CREATE TABLE",
        ),
        (
            "CREATE VIEW made USING indextables OPTIONS (path '{path}')",
            "PARSE_SYNTAX_ERROR. Syntax error at or near 'USING'",
        ),
    ],
)
def test_a_name_that_says_something_else_of_the_table_is_refused(
    spark: SparkSession, table: Path, statement: str, said: str
) -> None:
    before = fingerprint(table)
    with pytest.raises(Exception, match=said):
        spark.sql(statement.format(path=table))
    assert fingerprint(table) == before
    assert not spark.catalog.tableExists("made")


@pytest.mark.parametrize(
    "write",
    [
        lambda spark: spark.sql("INSERT INTO loaded SELECT * FROM other"),
        lambda spark: spark.sql("INSERT OVERWRITE loaded SELECT * FROM other"),
        lambda spark: spark.table("other").write.insertInto("loaded"),
        lambda spark: spark.table("other").write.insertInto("loaded", overwrite=True),
    ],
)
def test_an_accepted_insert_adds_one_version_and_touches_nothing_else(
    spark: SparkSession, table: Path, write: Callable[[SparkSession], object]
) -> None:
    before, version = fingerprint(table), it.Table.open(str(table)).version
    write(spark)
    after = fingerprint(table)
    assert it.Table.open(str(table)).version == version + 1
    assert {name: after.get(name) for name in before} == before


def test_files_outside_the_table_are_refused_by_every_way_of_reading(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A log does not choose what the session's credentials open."""
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    rows = spark.sql("SELECT 1L AS id, 'secret words' AS s")
    for path in (ours, theirs):
        rows.write.format("indextables").option("indexing.typemap.s", "text").save(path)
    add = it.TransactionLog.open(ours).list_files()[0]
    it.TransactionLog.open(theirs).add_files([dataclasses.replace(add, path=f"{ours}/{add.path}")])
    reader = spark.read.format("indextables")
    for question in (
        lambda: reader.load(theirs).collect(),
        lambda: spark.sql(f"SELECT * FROM indextables.`{theirs}` WHERE s indexquery 'secret'").collect(),
        lambda: spark.sql(f"MERGE SPLITS '{theirs}'").collect(),
    ):
        with pytest.raises(TableError, match=r"outside the table.*read\.allowedRoots"):
            question()
    trusting = reader.option("read.allowedRoots", ours).load(theirs)
    assert [row["id"] for row in trusting.collect()] == [1, 1]
    trusting.createOrReplaceTempView("trusting")
    assert spark.sql("SELECT * FROM trusting WHERE s indexquery 'secret'").count() == 2


def test_a_planner_answers_nothing_but_requests_with_its_token() -> None:
    """The callback server calls whatever method it is asked for, by anyone on this machine."""

    class Planner:
        def size_bytes(self) -> int:
            return 7

        def plan(self, filters: object) -> Answer:
            raise AssertionError(filters)

    callback = planner_callback(Planner(), "right")
    assert callback.apply(json.dumps({"token": "right", "call": "size"}))[0] == 0
    for request in ({"call": "size"}, {"token": "wrong", "call": "size"}, {"token": None, "call": "plan"}):
        answer = callback.apply(json.dumps(request))
        assert answer[0] == 1
        assert b"does not know the token" in answer
    for name in ("__setattr__", "__dict__", "__reduce_ex__", "__init__", "_answer", "_token"):
        with pytest.raises(AttributeError):
            getattr(callback, name)
