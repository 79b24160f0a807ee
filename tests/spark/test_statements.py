"""spark.sql after connect: views, paths, time travel, inserts and searches, and plain SQL untouched."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession

import indextables as it
from indextables.errors import CommandError, QueryError, SchemaError, TableError
from indextables.spark.search import on_driver

WORDS = ["error", "timeout", "disk", "Error: retry", "all fine", None, "", "ERROR timeout disk", "errors"]
SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("note", pa.string()), ("p", pa.int32())])


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ninety rows in three splits; `message` and `note` are searchable; view `logs`."""
    path = str(tmp_path_factory.mktemp("sql") / "logs")
    options = {"indexing.typemap.message": "text", "indexing.typemap.note": "text"}
    table = it.Table.create(path, SCHEMA, options=options)
    for block in range(3):
        ids = list(range(block * 30, block * 30 + 30))
        table.append(
            pa.table(
                {
                    "id": ids,
                    "message": [WORDS[i % len(WORDS)] for i in ids],
                    "note": ["disk" if i % 5 == 0 else None for i in ids],
                    "p": [i % 4 for i in ids],
                },
                schema=SCHEMA,
            )
        )
    spark.read.format("indextables").load(path).createOrReplaceTempView("logs")
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW other AS SELECT id * 2 AS id, concat('o', id) AS label FROM range(30)"
    )
    return path


def has(column: str, word: str) -> str:
    """The oracle: the same tokens, found by Spark's own functions; NULL for NULL."""
    return f"array_contains(split(lower({column}), '[^a-z0-9]+'), '{word}')"


def same(spark: SparkSession, ours: str, oracle: str) -> None:
    left, right = spark.sql(ours), spark.sql(oracle)
    assert left.columns == right.columns
    key = str
    assert sorted(map(tuple, left.collect()), key=key) == sorted(map(tuple, right.collect()), key=key)


E = "message indexquery 'error'"
T = "message indexquery 'timeout'"
OE, OT = has("message", "error"), has("message", "timeout")

POSITIONS = [
    ("SELECT * FROM logs WHERE {E}", "under WHERE"),
    ("SELECT id FROM logs WHERE {E} AND p = 1 AND id > 20", "under AND"),
    ("SELECT * FROM logs WHERE {E} AND {T}", "two under AND"),
    ("SELECT id, message FROM logs WHERE {E} OR p = 2", "under OR"),
    ("SELECT * FROM logs WHERE NOT {E}", "under NOT, NULL text excluded"),
    ("SELECT id, CASE WHEN {E} THEN 'hit' WHEN {T} THEN 'late' ELSE 'no' END AS kind FROM logs", "in CASE"),
    ("SELECT id, {E} AS hit FROM logs", "in SELECT, NULL for NULL"),
    ("SELECT count(*) AS n, count_if({E}) AS hits, sum(if({T}, 1, 0)) AS late FROM logs", "in aggregates"),
    ("SELECT {E} AS hit, count(*) AS n FROM logs GROUP BY {E}", "in GROUP BY"),
    ("WITH c AS (SELECT * FROM logs WHERE {E}) SELECT c.id, o.label FROM c JOIN other o ON c.id = o.id", "in a CTE"),
    ("SELECT l.*, o.label FROM logs l LEFT JOIN other o ON l.id = o.id WHERE l.{E}", "kept side of an outer join"),
    ("SELECT o.id, l.message FROM other o LEFT JOIN logs l ON l.id = o.id AND l.{E}", "in an outer join's ON"),
    ("SELECT o.id, l.id AS l FROM other o LEFT JOIN logs l ON l.id = o.id WHERE l.{E}", "beyond an outer join"),
    ("SELECT id FROM other WHERE id IN (SELECT id FROM logs WHERE {T})", "in an IN sub-query"),
    ("SELECT id FROM other o WHERE EXISTS (SELECT 1 FROM logs l WHERE l.id = o.id AND l.{E})", "in EXISTS"),
    ("SELECT id FROM logs WHERE {E} UNION ALL SELECT id FROM logs WHERE {T}", "in a UNION"),
    ("SELECT x.id FROM (SELECT id, p FROM logs WHERE {E}) x WHERE x.p < 2", "in a derived table"),
    ("SELECT id FROM logs ORDER BY {E} DESC NULLS LAST, id LIMIT 5", "in ORDER BY"),
]  # fmt: skip


@pytest.mark.parametrize("statement", [text for text, _ in POSITIONS], ids=[name for _, name in POSITIONS])
def test_a_search_in_any_boolean_position_equals_tokenising(
    spark: SparkSession, logs: str, statement: str
) -> None:
    ours = statement.format(E=E, T=T)
    oracle = statement.replace("l.{E}", has("l.message", "error")).format(E=OE, T=OT)
    same(spark, ours, oracle)


def test_a_self_join_searches_each_side_by_itself(spark: SparkSession, logs: str) -> None:
    text = "SELECT a.id AS a, b.id AS b FROM logs a JOIN logs b ON a.p = b.p AND a.id < b.id WHERE {A} AND ({B} OR b.id = 3)"
    same(
        spark,
        text.format(A="a.message indexquery 'error'", B="b.message indexquery 'timeout'"),
        text.format(A=has("a.message", "error"), B=has("b.message", "timeout")),
    )


@pytest.mark.core
def test_all_columns_and_the_function_form(spark: SparkSession, logs: str) -> None:
    either = f"coalesce({has('message', 'disk')}, false) OR coalesce({has('note', 'disk')}, false)"
    same(
        spark, "SELECT id FROM logs WHERE _indexall indexquery 'disk'", f"SELECT id FROM logs WHERE {either}"
    )
    same(
        spark, "SELECT id FROM logs WHERE indexquery(note, 'disk')", "SELECT id FROM logs WHERE note = 'disk'"
    )
    assert spark.sql("SELECT count(*) FROM logs WHERE _indexall indexquery 'disk'").first()[0] > 0


@pytest.mark.core
def test_queries_come_as_parameters(spark: SparkSession, logs: str) -> None:
    wanted = spark.sql(f"SELECT count(*) FROM logs WHERE {OE} AND p = 1").first()[0]
    named = spark.sql(
        "SELECT count(*) FROM logs WHERE message indexquery :q AND p = :p", {"q": "error", "p": 1}
    )
    marked = spark.sql("SELECT count(*) FROM logs WHERE p = ? AND message indexquery ?", [1, "error"])
    frame = spark.read.format("indextables").load(logs)
    formatted = spark.sql(
        "SELECT count(*) FROM {frame} WHERE message indexquery {q} AND p = {p}", frame=frame, q="error", p=1
    )
    assert named.first()[0] == marked.first()[0] == formatted.first()[0] == wanted


def test_a_search_through_a_view_of_the_search(spark: SparkSession, logs: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW hits AS SELECT id, message FROM logs WHERE {E}")
    same(spark, "SELECT * FROM hits WHERE id > 10", f"SELECT id, message FROM logs WHERE {OE} AND id > 10")
    same(
        spark,
        f"SELECT * FROM hits WHERE {T}",
        f"SELECT id, message FROM logs WHERE {OE} AND {OT}",
    )


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT * FROM (SELECT lower(message) AS m FROM logs) WHERE m indexquery 'x'", CommandError),
        ("SELECT * FROM logs WHERE p indexquery 'x'", QueryError),
        ("SELECT * FROM logs WHERE message indexquery 'AND ('", QueryError),
    ],
)
def test_what_cannot_be_searched_is_an_error(
    spark: SparkSession, logs: str, statement: str, error: type
) -> None:
    with pytest.raises(error):
        spark.sql(statement).collect()


@pytest.mark.core
def test_paths_and_time_travel(spark: SparkSession, logs: str) -> None:
    """A13 on the SQL form."""
    assert spark.sql(f"SELECT count(*) FROM indextables.`{logs}`").first()[0] == 90
    assert (
        spark.sql(f"SELECT count(*) AS n FROM indextables.`{logs}` VERSION AS OF 2 v WHERE v.id >= 0")
        .first()
        .n
        == 60
    )
    moment = next(
        row["timestamp"] for row in it.Table.open(logs).history().to_pylist() if row["version"] == 1
    )
    text = f"SELECT count(*) FROM indextables.`{logs}` TIMESTAMP AS OF '{{}}'"
    assert spark.sql(text.format(moment.isoformat())).first()[0] == 30
    assert spark.sql(text.format(moment.strftime("%Y-%m-%d %H:%M:%S.%f"))).first()[0] == 30
    assert (
        spark.sql(f"SELECT count(*) FROM indextables.`{logs}` TIMESTAMP AS OF current_timestamp()").first()[0]
        == 90
    )
    hits = spark.sql(
        f"SELECT count(*) FROM indextables.`{logs}` VERSION AS OF 1 WHERE message indexquery 'error'"
    )
    assert hits.first()[0] == spark.sql(f"SELECT count(*) FROM logs WHERE id < 30 AND {OE}").first()[0]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """A small table with a view `v` made by SQL."""
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    it.Table.create(str(path), schema).append(pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=schema))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING indextables OPTIONS (path '{path}')")
    return path


def contents(spark: SparkSession) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.sql("SELECT * FROM v").collect()))


def test_a_view_shows_the_newest_version_per_query(spark: SparkSession, table: Path) -> None:
    assert contents(spark) == [(1, "a"), (2, "b")]
    made = it.Table.open(str(table))
    made.append(pa.table({"id": [3], "name": ["c"]}, schema=made.schema))
    assert contents(spark) == [(1, "a"), (2, "b"), (3, "c")]
    assert spark.table("v").count() == 3


def test_a_view_follows_a_growing_schema_and_gives_way_to_another(spark: SparkSession, table: Path) -> None:
    made = it.Table.open(str(table))
    grown = made.schema.append(pa.field("extra", pa.int32()))
    made.append(pa.table({"id": [3], "name": ["c"], "extra": [7]}, schema=grown), merge_schema=True)
    assert contents(spark)[-1] == (3, "c", 7)
    spark.range(1).createOrReplaceTempView("v")
    made.append(pa.table({"id": [4], "name": ["d"], "more": [1]}), merge_schema=True)
    assert contents(spark) == [(0,)]
    shutil.rmtree(table)
    assert contents(spark) == [(0,)], "the table that the name once meant is not looked at again"


def test_a_lost_table_fails_the_queries_that_read_it_and_no_others(spark: SparkSession, table: Path) -> None:
    shutil.rmtree(table)
    assert spark.sql("SELECT 1 AS v").collect() == [Row(v=1)]
    with pytest.raises(Exception, match="is not an IndexTables table"):  # noqa: PT011  (Spark wraps it)
        contents(spark)


@pytest.mark.core
def test_inserts_into_a_view_are_our_append_and_overwrite(spark: SparkSession, table: Path) -> None:
    spark.sql("INSERT INTO v VALUES (3, 'c')")
    spark.sql("INSERT INTO TABLE v (name, id) SELECT 'd', 4")
    spark.sql("WITH s AS (SELECT 5 AS id) INSERT INTO v SELECT id, 'e' FROM s")
    spark.sql("INSERT INTO v BY NAME SELECT 'f' AS name, 6 AS id")
    assert contents(spark) == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (6, "f")]
    spark.sql("INSERT INTO v REPLACE WHERE id > 2 SELECT 7, 'g'")
    assert contents(spark) == [(1, "a"), (2, "b"), (7, "g")]
    spark.sql("INSERT OVERWRITE v SELECT id + 10, name FROM v WHERE id < 3")
    assert contents(spark) == [(11, "a"), (12, "b")]
    spark.sql(f"INSERT INTO indextables.`{table}` VALUES (13, 'm')")
    assert contents(spark)[-1] == (13, "m")
    spark.table("v").filter("id = 13").write.insertInto("v")
    assert len(contents(spark)) == 4
    spark.table("v").filter("id = 13").write.insertInto("v", overwrite=True)
    assert contents(spark) == [(13, "m"), (13, "m")]


def test_nothing_else_ever_writes_into_the_directory(spark: SparkSession, table: Path) -> None:
    before = {file: hashlib.sha256(file.read_bytes()).digest() for file in table.rglob("*") if file.is_file()}
    frame = spark.read.format("indextables").load(str(table))
    frame.createOrReplaceTempView("loaded")
    frame.filter("id = 1").createOrReplaceTempView("part")
    spark.read.format("indextables").option("versionAsOf", 0).load(str(table)).createOrReplaceTempView("past")
    refused = [
        "INSERT INTO part VALUES (9, 'x')",
        "INSERT OVERWRITE part VALUES (9, 'x')",
        "INSERT INTO past VALUES (9, 'x')",
        "INSERT INTO loaded PARTITION (id = 1) SELECT 'x'",
        "INSERT INTO loaded VALUES (9)",
        "INSERT INTO loaded VALUES (9, 'x', 'y')",
        "INSERT INTO loaded (id, nope) VALUES (9, 'x')",
        "INSERT INTO loaded VALUES ('not a number', 'x')",
        "DELETE FROM loaded",
        "UPDATE loaded SET id = 1",
        "TRUNCATE TABLE loaded",
        f"CREATE TABLE made USING indextables LOCATION '{table}' AS SELECT 1 AS id",
        f"CREATE TABLE made (id int) USING indextables LOCATION '{table}'",
    ]
    for statement in refused:
        with pytest.raises((CommandError, TableError, SchemaError, Exception)):
            spark.sql(statement).collect()
        now = {
            file: hashlib.sha256(file.read_bytes()).digest() for file in table.rglob("*") if file.is_file()
        }
        assert now == before, statement


def test_hidden_views_are_gone_after_the_statement(spark: SparkSession, logs: str) -> None:
    spark.sql(f"SELECT id, {E} FROM logs").collect()
    spark.sql(f"SELECT * FROM indextables.`{logs}`").collect()
    names = {view.name for view in spark.catalog.listTables()}
    assert not [name for name in names if "indextables" in name or name.startswith("_pyspark")]


def test_plain_sql_reaches_spark_byte_for_byte(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, ...]] = []
    door = type(spark).sql

    def spy(self: SparkSession, *args: object, **kwargs: object) -> str:
        seen.append((args, kwargs))
        return "frame"

    original = door.__closure__ and next(
        c.cell_contents for c in door.__closure__ if callable(c.cell_contents)
    )
    assert original is not None
    statements = [
        "select  1 -- indexquery",
        "SELECT 'a indexquery b' AS x",
        "INSERT INTO some_table VALUES (1)",
        "CREATE TABLE t USING parquet AS SELECT 1",
        "/* indextables */ SELECT {x}",
    ]
    from indextables.spark import patches

    plain = patches._sql(spy)
    for statement in statements:
        plain(spark, statement)
    assert [args for args, _ in seen] == [(statement, None) for statement in statements]


@pytest.mark.core
def test_commands_run_through_spark_sql(spark: SparkSession, table: Path) -> None:
    history = spark.sql("DESCRIBE INDEXTABLES HISTORY v")
    assert [row.version for row in history.collect()] == [1, 0]
    spark.sql(f"CHECKPOINT INDEXTABLES '{table}'")
    assert (table / "_transaction_log" / "_last_checkpoint").exists()
    with pytest.raises(CommandError, match="not a view"):
        spark.sql("DESCRIBE INDEXTABLES STATE nobody")


def test_explain_shows_who_searches(spark: SparkSession, logs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few hits in a session of one process are fetched by the driver; everything else by the executors."""
    statement = f"EXPLAIN SELECT id FROM logs WHERE {E}"
    assert "LocalTableScan" in spark.sql(statement).first()[0]
    monkeypatch.setattr(on_driver, "MOST_ROWS", 5)
    assert "MapInArrow" in spark.sql(statement).first()[0]
