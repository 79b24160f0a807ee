"""Search and scan on the executors give what they give without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.errors import QueryError, SchemaError
from indextables.spark.search import on_driver
from indextables.split.layout import SplitRef
from support.servers import ObjectServer, s3_server  # noqa: F401

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("p", pa.int32())])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("search") / "t")
    table = it.Table.create(root, SCHEMA, partition_by=["p"], options={"indexing.typemap.message": "text"})
    for start in range(0, 90, 30):
        ids = list(range(start, start + 30))
        words = ["rare word" if i % 29 == 0 else "word" * (1 + i % 3) + " word" for i in ids]
        table.append(pa.table({"id": ids, "message": words, "p": [i % 2 for i in ids]}, schema=SCHEMA))
    return root


@pytest.fixture(params=["driver", "executors"])
def searcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who looks into the indexes: with no row that it may fetch, the driver leaves it to the executors."""
    if request.param == "executors":
        monkeypatch.setattr(on_driver, "MOST_ROWS", -1)
    return str(request.param)


@pytest.mark.usefixtures("searcher")
def test_search_df_equals_search(spark: SparkSession, path: str) -> None:
    table, plain = it.Table.open(path, spark=spark), it.Table.open(path)
    for arguments in ({}, {"where": "id > 40 AND p = 0"}, {"columns": ["message", "id"]}):
        ours = table.search_df("rare", **arguments)
        oracle = plain.search("rare", **arguments).read_all()
        assert ours.columns == oracle.column_names
        assert sorted(map(tuple, ours.collect())) == sorted(tuple(row.values()) for row in oracle.to_pylist())


@pytest.mark.usefixtures("searcher")
def test_limit_and_score_are_pushed_down(spark: SparkSession, path: str) -> None:
    table = it.Table.open(path, spark=spark)
    assert table.search_df("word", limit=7).count() == 7
    best = table.search_df("word", limit=5, score=True, columns=["id"]).collect()
    scores = [row._score for row in best]
    assert scores == sorted(scores, reverse=True)
    oracle = it.Table.open(path).search("word", limit=5, score=True, columns=["id"]).read_all()
    assert scores == pytest.approx(oracle["_score"].to_pylist())


def test_bad_questions_fail_before_any_job(spark: SparkSession, path: str) -> None:
    table = it.Table.open(path, spark=spark)
    with pytest.raises(QueryError):
        table.search_df("nobody:x")
    with pytest.raises(SchemaError, match="nope"):
        table.search_df("word", columns=["nope"])


def test_to_df_takes_text_and_expressions(spark: SparkSession, path: str) -> None:
    table = it.Table.open(path, spark=spark)
    column = it.col("id")
    for where in (
        "id BETWEEN 3 AND 5",
        (column >= 3) & (column <= 5),
        column.isin([3, 4, 5]),
        ~((column < 3) | (column > 5)) & it.col("message").is_not_null(),
    ):
        frame = table.to_df(where, columns=["id"])
        assert sorted(row.id for row in frame.collect()) == [3, 4, 5], where
        assert sorted(table.scan(where, columns=["id"]).read_all()["id"].to_pylist()) == [3, 4, 5]


def test_the_query_option_of_load(spark: SparkSession, path: str) -> None:
    frame = spark.read.format("indextables").option("query", "rare").option("columns", "id").load(path)
    assert sorted(row.id for row in frame.collect()) == [0, 29, 58, 87]


def test_merging_and_deleting_on_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    table = it.Table.create(
        str(tmp_path / "t"), SCHEMA, options={"indexing.typemap.message": "text"}, spark=spark
    )
    for number in range(3):
        table.append(pa.table({"id": [number], "message": [f"word{number}"], "p": [0]}, schema=SCHEMA))
    spark.sql(f"MERGE SPLITS '{tmp_path / 't'}'")
    table.refresh()
    assert len(table.files()) == 1
    assert [row.id for row in table.search_df("word1").collect()] == [1]


def test_a_store_without_a_hadoop_file_system_is_read_and_written_in_python(
    spark: SparkSession,
    s3_server: ObjectServer,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One warning names the package that brings the native path."""
    target = f"{s3_server.root}/from-spark"
    frame = spark.range(20).selectExpr("id", "concat('word ', id) AS message", "cast(id % 2 AS int) AS p")
    writer = frame.write.format("indextables").options(**s3_server.options)
    writer.partitionBy("p").option("indexing.typemap.message", "text").save(target)
    with caplog.at_level("WARNING"):
        read = spark.read.format("indextables").options(**s3_server.options).load(target)
        spark.read.format("indextables").options(**s3_server.options).load(target)
    assert sum("hadoop-aws" in record.message for record in caplog.records) == 1
    assert sorted(row.id for row in read.filter("p = 1").collect()) == list(range(1, 20, 2))
    found = spark.read.format("indextables").options(**s3_server.options).option("query", "7").load(target)
    assert [row.id for row in found.collect()] == [7]


def test_a_damaged_index_is_left_to_the_executors(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver scans no rows: a split whose index cannot tell is searched where tasks run."""
    root = tmp_path / "t"
    table = it.Table.create(str(root), SCHEMA, options={"indexing.typemap.message": "text"})
    table.append(
        pa.table({"id": [1, 2, 3], "message": ["rare", "word", None], "p": [0, 0, 0]}, schema=SCHEMA)
    )
    [add] = it.TransactionLog.open(str(root)).list_files()
    file = root / add.path
    body = bytearray(file.read_bytes())
    root_end = add.hotcache_start_offset + add.hotcache_length - SplitRef.of(add).row_map.length
    for at in range(root_end - 64, root_end):
        body[at] ^= 0xFF
    file.write_bytes(body)
    found = it.Table.open(str(root), spark=spark).search_df("rare")
    assert "MapInArrow" in found._jdf.queryExecution().toString()
    assert [row.id for row in found.collect()] == [1]


def test_hits_of_every_type_come_back_whoever_searches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5.7: a local relation holds the same values in the same types as what tasks return."""
    path = str(tmp_path / "t")
    rows = spark.sql(
        "SELECT 'needle' AS message, CAST(1 AS TINYINT) AS b, CAST(2 AS SMALLINT) AS s, 3 AS i, 1.5f AS f, 2.5d AS d, "
        "CAST(1.25 AS DECIMAL(38, 18)) AS dec, DATE'1582-10-04' AS day, TIMESTAMP'2024-03-31 01:30:00' AS at, "
        "TIMESTAMP_NTZ'1900-01-01 00:00:00' AS local, X'00ff' AS bin, true AS yes, CAST(NULL AS STRING) AS nothing"
    )
    rows.write.format("indextables").option("indexing.typemap.message", "text").save(path)
    ours = it.Table.open(path, spark=spark)
    near = ours.search_df("needle")
    monkeypatch.setattr(on_driver, "MOST_ROWS", -1)
    far = ours.search_df("needle")
    assert near.schema == far.schema == spark.read.format("indextables").load(path).schema
    assert near.collect() == far.collect() == rows.collect()


def test_types_that_need_sparks_conversion_are_found_by_the_executors(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql("SELECT 'needle' AS message, array(named_struct('a', 1)) AS deep, map('k', 1L) AS m")
    rows.write.format("indextables").option("indexing.typemap.message", "text").save(path)
    assert it.Table.open(path, spark=spark).search_df("needle").collect() == rows.collect()
