"""What Spark promises of a table by name beyond its statements: DataFrame calls, views, caches, plans, streams."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import indextables as it
from support.spark_versions import needs, reason_to_skip


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A database of this module's own, and its directory."""
    root = tmp_path_factory.mktemp("frames")
    spark.sql(f"CREATE DATABASE frames LOCATION '{root}'")
    yield root
    spark.sql("DROP DATABASE frames CASCADE")


def rows(frame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()))


def operations(path) -> list[str]:
    return [row["operation"] for row in it.Table.open(path).history().to_pylist()]


@pytest.mark.core
def test_frames_are_saved_appended_and_overwritten_by_name(spark, place):
    two = spark.createDataFrame([(1, "a"), (2, "b")], "id int, day string")
    two.write.format("indextables").partitionBy("day").saveAsTable("frames.saved")
    two.write.format("indextables").mode("append").saveAsTable("frames.saved")
    assert len(rows(spark.table("frames.saved"))) == 4
    two.limit(1).write.format("indextables").mode("overwrite").partitionBy("day").saveAsTable("frames.saved")
    assert rows(spark.table("frames.saved")) == [(1, "a")]
    two.write.insertInto("frames.saved")
    two.writeTo("frames.saved").append()
    two.where("id = 2").writeTo("frames.saved").overwrite(F.col("day") == "b")
    assert rows(spark.table("frames.saved")) == [(1, "a")] * 3 + [(2, "b")]
    two.where("id = 1").writeTo("frames.saved").overwritePartitions()
    assert rows(spark.table("frames.saved")) == [(1, "a"), (2, "b")]
    two.writeTo("frames.saved").using("indextables").createOrReplace()
    with pytest.raises(Exception, match="ALREADY_EXISTS"):
        two.write.format("indextables").saveAsTable("frames.saved")
    assert operations(place / "saved")[0] == "REPLACE TABLE AS SELECT"


@needs("DataFrame.mergeInto")
def test_merge_into_is_one_commit(spark, place):
    spark.createDataFrame([(1, "a"), (2, "b")], "id int, day string").writeTo("frames.merged").using(
        "indextables"
    ).create()
    source = spark.createDataFrame([(2, "z"), (3, "c")], "id int, day string").alias("s")
    same = F.col("merged.id") == F.col("s.id")
    source.mergeInto("frames.merged", same).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert rows(spark.table("frames.merged")) == [(1, "a"), (2, "z"), (3, "c")]
    assert operations(place / "merged")[0] == "MERGE"


@needs("DataFrame.mergeInto")
def test_merge_into_brings_a_column_or_says_that_this_spark_cannot(spark, place):
    two = spark.createDataFrame([(1, "a"), (2, "z")], "id int, day string")
    two.writeTo("frames.evolved").using("indextables").create()
    more = spark.createDataFrame([(2, "c", 1.5)], "id int, day string, price double").alias("s")
    same = F.col("evolved.id") == F.col("s.id")
    merging = more.mergeInto("frames.evolved", same).whenMatched().updateAll()
    merging = merging.whenNotMatchedBySource(F.col("evolved.id") == 1).delete().withSchemaEvolution()
    if reason_to_skip("MERGE with schema evolution"):
        with pytest.raises(Exception, match="needs Spark 4.1"):
            merging.merge()
        assert rows(spark.table("frames.evolved")) == [(1, "a"), (2, "z")]
    else:
        merging.merge()
        assert rows(spark.table("frames.evolved")) == [(2, "c", 1.5)]
        assert operations(place / "evolved")[0] == "MERGE"


def test_a_view_that_is_kept_shows_the_newest_version(spark, place):
    spark.sql("CREATE TABLE frames.seen (id INT) USING indextables")
    spark.sql("CREATE VIEW frames.half AS SELECT id FROM frames.seen WHERE id % 2 = 0")
    spark.sql("INSERT INTO frames.seen SELECT id FROM range(6)")
    assert rows(spark.table("frames.half")) == [(0,), (2,), (4,)]
    spark.sql("DELETE FROM frames.seen WHERE id = 2")
    assert rows(spark.table("frames.half")) == [(0,), (4,)]
    spark.sql("DROP VIEW frames.half")


def test_a_cache_by_name_follows_changes_and_looks_again_when_asked(spark, place):
    spark.sql("CREATE TABLE frames.kept (id INT) USING indextables")
    spark.sql("INSERT INTO frames.kept VALUES (1), (2)")
    spark.catalog.cacheTable("frames.kept")
    assert spark.table("frames.kept").count() == 2
    assert "In-memory table" in plan(spark.table("frames.kept"))
    spark.sql("UPDATE frames.kept SET id = 10 WHERE id = 2")
    assert rows(spark.table("frames.kept")) == [(1,), (10,)]
    it.Table.open(place / "kept").delete("id = 10")
    spark.sql("REFRESH TABLE frames.kept")
    assert rows(spark.table("frames.kept")) == [(1,)]
    spark.catalog.uncacheTable("frames.kept")


def test_a_cache_follows_changes_by_whatever_name_or_path_they_are_made(spark, place):
    path = str(place / "cached")
    spark.range(4).write.format("indextables").save(path)
    spark.sql(f"CREATE TEMPORARY VIEW cached_view USING indextables OPTIONS (path '{path}')")
    spark.sql(f"CREATE TABLE frames.cached USING indextables LOCATION '{path}'")
    spark.sql("CACHE TABLE cached_view")
    spark.sql(f"CACHE TABLE cached_query AS SELECT id FROM indextables.`{path}` WHERE id > 0")
    spark.sql("CACHE TABLE frames.cached")
    pinned = spark.read.format("indextables").load(path).cache()

    def seen() -> list[tuple]:
        found = [rows(spark.table(name)) for name in ("cached_view", "frames.cached")]
        assert found[0] == found[1]
        assert rows(spark.table("cached_query")) == [row for row in found[0] if row > (0,)]
        return found[0]

    assert seen() == [(0,), (1,), (2,), (3,)]
    assert pinned.count() == 4
    changes = {
        f"DELETE FROM indextables.`{path}` WHERE id = 1": [0, 2, 3],
        f"UPDATE indextables.`{path}` SET id = 20 WHERE id = 2": [0, 3, 20],
        f"MERGE INTO indextables.`{path}` t USING (SELECT 3L AS id UNION ALL SELECT 5L) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *": [0, 5, 20],
        f"INSERT INTO indextables.`{path}` VALUES (30)": [0, 5, 20, 30],
        f"DELETE FROM INDEXTABLES '{path}' WHERE id = 5": [0, 20, 30],
        "INSERT INTO frames.cached VALUES (40)": [0, 20, 30, 40],
    }
    for statement, left in changes.items():
        spark.sql(statement)
        assert seen() == [(number,) for number in left], statement
    spark.range(1).write.format("indextables").mode("overwrite").save(path)
    assert seen() == [(0,)]
    assert "In-memory table" in plan(spark.table("cached_view"))
    assert pinned.count() == 4  # a DataFrame keeps its version
    for name in ("cached_view", "cached_query", "frames.cached"):
        spark.catalog.uncacheTable(name)
    pinned.unpersist()
    spark.sql("DROP VIEW cached_view")


def test_a_path_without_a_slash_is_a_path_in_every_statement(spark, place, monkeypatch):
    monkeypatch.chdir(place)
    spark.range(4).write.format("indextables").save("here")
    for statement in (
        "DELETE FROM indextables.`here` WHERE id = 1",
        "UPDATE indextables.`here` SET id = 20 WHERE id = 2",
        "MERGE INTO indextables.`here` t USING (SELECT 3L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO indextables.`here` VALUES (30)",
    ):
        spark.sql(statement)
    assert rows(spark.sql("SELECT id FROM indextables.`here`")) == [(0,), (20,), (30,)]
    spark.sql("CREATE DATABASE indextables")  # and it is still read as one
    try:
        assert rows(spark.sql("SELECT id FROM indextables.`here` WHERE id > 2")) == [(20,), (30,)]
    finally:
        spark.sql("DROP DATABASE indextables")


def plan(frame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_joins_prune_partitions_while_they_run_and_plans_adapt(spark, place):
    spark.range(80).selectExpr("CAST(id AS INT) AS id", "CAST(id % 8 AS STRING) AS day").write.format(
        "indextables"
    ).partitionBy("day").saveAsTable("frames.facts")
    days = spark.createDataFrame(
        [(str(day), "work" if day < 6 else "rest") for day in range(8)], "day string, kind string"
    )
    days.write.format("parquet").saveAsTable("frames.days")
    joined = spark.sql(
        "SELECT f.id FROM frames.facts f JOIN frames.days d ON f.day = d.day WHERE d.kind = 'rest'"
    )
    assert rows(joined) == sorted((number,) for number in range(80) if number % 8 >= 6)
    shown = plan(joined)
    assert "isFinalPlan=true" in shown
    assert "dynamicpruningexpression" in shown
    scanned = files_read(joined)
    assert scanned == len(it.Table.open(place / "facts").files("day IN ('6', '7')"))


def files_read(frame) -> int:
    """What Spark counted in the scan of our table."""
    found = frame._jdf.queryExecution().executedPlan()
    leaves = found.executedPlan().collectLeaves() if hasattr(found, "executedPlan") else found.collectLeaves()
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        while "QueryStage" in leaf.getClass().getSimpleName():
            leaf = leaf.plan().collectLeaves().apply(0)
        if "LogFileIndex" in str(leaf.toString()):
            return int(leaf.metrics().apply("numFiles").value())
    raise AssertionError(f"no scan of ours in {plan(frame)}")


def test_streams_go_from_one_name_to_another(spark, place, tmp_path):
    spark.sql("CREATE TABLE frames.source (id INT) USING indextables")
    spark.sql("INSERT INTO frames.source VALUES (1), (2)")
    stream = spark.readStream.table("frames.source").selectExpr("id + 10 AS id").writeStream
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.toTable("frames.target", format="indextables").awaitTermination()
    assert rows(spark.table("frames.target")) == [(11,), (12,)]
