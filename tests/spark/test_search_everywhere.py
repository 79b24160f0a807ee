"""A search stands wherever a condition may: on names, in DataFrames, in views, in statements that change rows.

The answers are those of `Table.search`, and what cannot be searched is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import indextables as it
from indextables.errors import CommandError
from indextables.spark.search import on_driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = [
    (1, "mon", "an error of the disk"),
    (2, "mon", "all quiet"),
    (3, "tue", "timeout error"),
    (4, "tue", None),
    (5, "wed", "error error timeout"),
]
LINES = "id long, day string, message string"
ERROR = "message indexquery 'error'"


def ids(frame: DataFrame) -> list[Any]:
    return sorted(row[0] for row in frame.collect())


def save(spark: SparkSession, path: Path) -> str:
    frame = spark.createDataFrame(ROWS, LINES).coalesce(1)
    writer = frame.write.format("indextables").partitionBy("day").option("indexing.typemap.message", "text")
    writer.save(str(path))
    return str(path)


@pytest.fixture(scope="module")
def logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that is only read, by path and as `logs_by_name`."""
    path = save(spark, tmp_path_factory.mktemp("everywhere") / "logs")
    spark.sql(f"CREATE TABLE logs_by_name USING indextables LOCATION '{path}'")
    return path


@pytest.fixture
def changing(spark: SparkSession, tmp_path: Path) -> str:
    """A table of its own, as `changing`."""
    path = save(spark, tmp_path / "changing")
    spark.sql("DROP TABLE IF EXISTS changing")
    spark.sql(f"CREATE TABLE changing USING indextables LOCATION '{path}'")
    return path


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (ERROR, [1, 3, 5]),
        (f"{ERROR} AND day = 'tue'", [3]),
        (f"{ERROR} AND message indexquery 'timeout'", [3, 5]),
        ("message indexquery 'timeout' OR id = 2", [2, 3, 5]),
        ("NOT message indexquery 'timeout'", [1, 2]),
        ("indexquery(message, 'disk')", [1]),
        ("message TEXTSEARCH 'disk'", [1]),
        ("message FIELDMATCH 'disk'", [1]),
        ("_indexall indexquery 'disk'", [1]),
        ("* indexquery 'disk'", [1]),
        ("indexqueryall('disk')", [1]),
        ("MESSAGE indexquery 'disk'", [1]),
        ("(message indexquery 'disk') IS NULL", [4]),
    ],
)
def test_a_condition_means_the_same_in_a_statement_and_in_a_filter(
    spark: SparkSession, logs: str, condition: str, found: list[int]
) -> None:
    assert ids(spark.sql(f"SELECT id FROM logs_by_name WHERE {condition}")) == found
    assert ids(spark.read.format("indextables").load(logs).filter(condition).select("id")) == found
    assert ids(spark.table("logs_by_name").where(F.expr(condition)).select("id")) == found


def test_a_directory_catalog_is_searched_by_name(spark: SparkSession, logs: str) -> None:
    spark.conf.set("spark.sql.catalog.dirs", "io.indextables.DirectoryCatalog")
    spark.conf.set("spark.sql.catalog.dirs.warehouse", str(Path(logs).parent))
    found = spark.sql(f"SELECT id, _score FROM dirs.logs WHERE {ERROR} ORDER BY _score DESC LIMIT 1")
    assert ids(found) == [5]
    assert spark.sql(f"SELECT * FROM dirs.logs WHERE {ERROR}").columns == ["id", "day", "message"]


@pytest.mark.usefixtures("logs")
def test_scores_follow_a_name_into_the_plan(spark: SparkSession) -> None:
    best = spark.sql(f"SELECT *, _score FROM logs_by_name WHERE {ERROR} ORDER BY _score DESC LIMIT 2")
    assert best.columns == ["id", "day", "message", "_score"]
    assert [row.id for row in best.collect()] == [5, 3]
    scored = spark.table("logs_by_name").filter(ERROR).selectExpr("id", "indexscore(message) AS s")
    assert {row.id: row.s for row in scored.collect()}[5] == pytest.approx(best.first()._score)


@pytest.mark.usefixtures("logs")
def test_a_search_in_a_selection_is_null_for_null_text_and_beyond_an_outer_join(spark: SparkSession) -> None:
    hits = spark.table("logs_by_name").selectExpr("id", f"{ERROR} AS hit")
    assert dict(hits.collect()) == {1: True, 2: False, 3: True, 4: None, 5: True}
    spark.createDataFrame([(1,), (9,)], "id long").createOrReplaceTempView("some_ids")
    joined = "some_ids s LEFT JOIN logs_by_name l ON l.id = s.id"
    found = spark.sql(f"SELECT s.id, l.message indexquery 'disk' AS hit FROM {joined}")
    assert dict(found.collect()) == {1: True, 9: None}
    assert ids(spark.sql(f"SELECT s.id FROM {joined} WHERE l.message indexquery 'disk'")) == [1]


@pytest.mark.usefixtures("logs")
def test_a_condition_that_spark_infers_for_another_table_is_no_search(spark: SparkSession) -> None:
    labels = spark.createDataFrame([("timeout error", "x"), ("z", "y")], "message string, label string")
    labels.createOrReplaceTempView("labels")
    found = spark.sql(
        f"SELECT l.id, b.label FROM logs_by_name l JOIN labels b ON l.message = b.message WHERE l.{ERROR}"
    )
    assert [tuple(row) for row in found.collect()] == [(3, "x")]


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("SELECT * FROM (SELECT upper(message) AS m FROM logs_by_name) WHERE m indexquery 'x'", "upper"),
        ("SELECT * FROM (SELECT max(message) AS m FROM logs_by_name) WHERE m indexquery 'x'", "m"),
    ],
)
def test_what_is_no_column_of_a_table_is_named(spark: SparkSession, statement: str, named: str) -> None:
    with pytest.raises(CommandError, match=named):
        spark.sql(statement).collect()


def test_views_over_a_search_are_live_unless_they_name_a_version(spark: SparkSession, changing: str) -> None:
    spark.sql(f"CREATE OR REPLACE VIEW live_hits AS SELECT id FROM changing WHERE {ERROR}")
    by_path = f"SELECT id FROM indextables.`{changing}` WHERE {ERROR}"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW path_hits AS {by_path}")
    spark.sql(f"CREATE OR REPLACE VIEW old_hits AS SELECT id FROM changing VERSION AS OF 1 WHERE {ERROR}")
    views = ("live_hits", "path_hits", "old_hits")
    assert [ids(spark.table(name)) for name in views] == [[1, 3, 5]] * 3
    spark.sql("DELETE FROM changing WHERE message indexquery 'disk'")
    assert [ids(spark.table(name)) for name in views] == [[3, 5], [3, 5], [1, 3, 5]]
    counted = f"WITH h AS (SELECT * FROM changing WHERE {ERROR}) SELECT count(*) FROM h"
    assert spark.sql(counted).first()[0] == 2
    spark.sql("DROP VIEW live_hits")
    spark.sql("DROP VIEW old_hits")


@pytest.mark.core
def test_rows_are_changed_by_searches_in_one_commit_each(spark: SparkSession, changing: str) -> None:
    def rows() -> dict[int, str | None]:
        return {row["id"]: row["message"] for row in it.Table.open(changing).scan().read_all().to_pylist()}

    spark.sql("UPDATE changing SET message = 'mended' WHERE message indexquery 'disk' AND day = 'mon'")
    assert rows() == {1: "mended", 2: "all quiet", 3: "timeout error", 4: None, 5: "error error timeout"}
    spark.createDataFrame([(3,), (5,), (7,)], "id long").createOrReplaceTempView("arrivals")
    spark.sql(
        "MERGE INTO changing t USING arrivals s ON t.id = s.id AND t.message indexquery 'error' "
        "WHEN MATCHED AND NOT t.message indexquery '\"timeout error\"' THEN UPDATE SET message = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, day, message) VALUES (s.id, 'new', 'arrived')"
    )
    assert rows() == {
        1: "mended", 2: "all quiet", 3: "timeout error", 4: None, 5: "merged", 7: "arrived",
    }  # fmt: skip
    spark.sql(f"DELETE FROM indextables.`{changing}` WHERE message indexquery 'merged OR arrived' OR id = 2")
    assert rows() == {1: "mended", 3: "timeout error", 4: None}
    assert it.Table.open(changing).version == 4


@pytest.mark.core
def test_a_stream_is_filtered_by_a_search(spark: SparkSession, logs: str) -> None:
    stream = spark.readStream.format("indextables").load(logs).filter(f"{ERROR} AND id > 1")
    query = (
        stream.writeStream.format("memory").queryName("found_in_stream").trigger(availableNow=True).start()
    )
    query.awaitTermination()
    assert query.exception() is None
    assert ids(spark.table("found_in_stream")) == [3, 5]


@pytest.mark.usefixtures("logs")
def test_conjuncts_prune_splits_before_an_index_is_read(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    original = on_driver.counted

    def counted(session: Any, task: Any) -> Any:
        searched.append(len(task.refs))
        return original(session, task)

    monkeypatch.setattr(on_driver, "counted", counted)
    assert ids(spark.sql(f"SELECT id FROM logs_by_name WHERE day = 'tue' AND {ERROR}")) == [3]
    assert ids(spark.table("logs_by_name").filter(ERROR).filter("day = 'tue'").select("id")) == [3]
    assert searched == [1, 1]
    said = spark.sql(f"EXPLAIN SELECT id FROM logs_by_name WHERE day = 'tue' AND {ERROR}").first()[0]
    assert "3 splits, 2 pruned by the log, 0 by word filters, 1 searched by message as text, 1 hits" in said


def test_many_hits_on_executors_are_the_same(
    spark: SparkSession, logs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_driver, "MOST_SPLITS", -1)
    frame = spark.read.format("indextables").load(logs)
    assert ids(frame.filter(ERROR).select("id")) == [1, 3, 5]
    assert ids(frame.filter(f"{ERROR} OR id = 4").select("id")) == [1, 3, 4, 5]


@pytest.mark.core
@pytest.mark.usefixtures("logs")
def test_a_cached_table_is_searched_too(spark: SparkSession) -> None:
    frame = spark.table("logs_by_name").cache()
    try:
        assert frame.count() == 5
        assert ids(frame.filter(ERROR).select("id")) == [1, 3, 5]
        assert ids(frame.filter(f"{ERROR} OR id = 4").select("id")) == [1, 3, 4, 5]
    finally:
        frame.unpersist()
