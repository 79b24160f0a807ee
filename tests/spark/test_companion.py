"""Companion indexes in a Spark session: built by a statement, read and searched like tables, never written."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.errors import MissingSplitError, TableError
from support.companions import rows_of as made_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def places(tmp_path):
    import deltalake

    source = str(tmp_path / "source")
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(1), 0, 50)))
    return source, str(tmp_path / "index")


def test_a_statement_builds_one_and_python_searches_it(spark, places):
    source, index = places
    text = f"BUILD INDEXTABLES COMPANION FOR DELTA '{source}' INDEXING MODES ('msg':'text') AT LOCATION '{index}'"
    assert spark.sql(f"{text} DRY RUN").first()["status"] == "dry_run"
    row = spark.sql(text).first()
    assert (row["status"], row["parquet_files_indexed"], row["source_version"]) == ("success", 1, 0)
    assert it.open(index).count(query="disk") == it.DeltaTable.open(source).count(query="msg:disk")


@pytest.mark.core
def test_much_is_indexed_on_the_executors(spark, places, monkeypatch):
    import deltalake

    source, index = places
    monkeypatch.setattr("indextables.companion.refresh.DISTRIBUTE_BYTES", 0)
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(2), 50, 90)), mode="append")
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("indexing", "indexing")
    companion = it.companion(source, index, {"msg": "text"}, {"write.targetSplitBytes": "1"}, spark)
    assert tracker.getJobIdsForGroup("indexing")
    spark.sparkContext.setJobGroup("", "")
    assert companion.status().splits == 2
    assert _searched(spark, index) == _brute(source)


def _ids(frame):
    return sorted(row["id"] for row in frame.select("id").collect())


def _searched(spark, index, **options):
    """The same search at every door: SQL by path, a DataFrame, a condition that may be false."""
    frame = spark.read.format("indextables").options(**options).load(index)
    by_frame = _ids(frame.filter("msg indexquery 'disk'"))
    assert _ids(frame.filter("msg indexquery 'disk' OR id < 0")) == by_frame
    if not options:
        assert (
            _ids(spark.sql(f"SELECT id FROM indextables.`{index}` WHERE msg indexquery 'disk'")) == by_frame
        )
        assert _ids(it.Table.open(index, spark=spark).search_df("msg:disk")) == by_frame
    return by_frame


def _brute(source, version=None):
    rows = it.DeltaTable.open(source, version=version).search("msg:disk", columns=["id"]).read_all()
    return sorted(rows.column("id").to_pylist())


@pytest.mark.core
def test_its_rows_are_searched_fresh_and_stale_and_at_older_versions(spark, places):
    import deltalake

    source, index = places
    it.companion(source, index, {"msg": "text"})
    assert _ids(spark.read.format("indextables").load(index)) == list(range(50))
    assert _searched(spark, index) == _brute(source) != []
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(2), 50, 90)), mode="append")
    deltalake.DeltaTable(source).delete("id >= 60 AND id < 70")
    assert _searched(spark, index) == _brute(source)
    it.companion(source, index).refresh()
    assert _searched(spark, index) == _brute(source)
    assert _searched(spark, index, versionAsOf="0") == _brute(source, 0)
    assert spark.read.format("indextables").load(index).filter("id >= 55").count() == 75


def test_a_source_is_loaded_by_its_own_path_with_the_place_of_its_index(spark, places):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    frame = spark.read.format("indextables").option("companion", index).load(source)
    assert _ids(frame.filter("msg indexquery 'disk'")) == _brute(source)
    spark.sql(
        f"CREATE TEMPORARY VIEW by_source USING indextables OPTIONS (path '{source}', companion '{index}')"
    )
    assert _ids(spark.sql("SELECT id FROM by_source WHERE msg indexquery 'disk'")) == _brute(source)
    with pytest.raises(TableError, match="not an index of"):
        spark.read.format("indextables").option("companion", index).load(f"{source}2")


def test_a_name_given_to_one_is_searched_and_not_written(spark, places):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    spark.sql(f"CREATE TABLE named_companion USING indextables LOCATION '{index}'")
    try:
        found = spark.sql("SELECT id FROM named_companion WHERE msg indexquery 'disk' AND id < 40")
        assert _ids(found) == [number for number in _brute(source) if number < 40]
        with pytest.raises(TableError, match="is a companion index"):
            spark.sql("DELETE FROM named_companion WHERE id = 1").collect()
    finally:
        spark.sql("DROP TABLE named_companion")
    assert it.open(index).count() == 50


def test_files_without_a_log_are_listed_for_every_query(spark, tmp_path):
    source, index = tmp_path / "files", str(tmp_path / "index")
    source.mkdir()
    pq.write_table(pa.table(made_rows(random.Random(3), 0, 40)), source / "a.parquet")
    it.companion(str(source), index, {"msg": "text"})
    frame = spark.read.format("indextables").load(index)
    assert frame.count() == 40
    pq.write_table(pa.table(made_rows(random.Random(4), 40, 60)), source / "b.parquet")
    assert frame.count() == 100
    expected = sorted(it.open(index).search("disk", columns=["id"]).read_all().column("id").to_pylist())
    assert _searched(spark, index) == expected


def test_a_source_that_moves_under_a_query_gives_the_version_it_planned_or_names_it(spark, places):
    import deltalake

    source, index = places
    it.companion(source, index, {"msg": "text"})
    expected = _brute(source)
    frame = spark.read.format("indextables").load(index)
    found = frame.filter("msg indexquery 'disk'")
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(2), 50, 90)), mode="append")
    delta = deltalake.DeltaTable(source)
    delta.optimize.compact()
    assert (_ids(found), frame.count()) == (expected, 50)
    delta.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for rows in (frame, frame.filter("msg indexquery 'disk' OR n > 50"), frame.filter("id > 3")):
        with pytest.raises(MissingSplitError, match="(?s)version 0.*VACUUM|VACUUM.*version 0"):
            rows.collect()
    assert _searched(spark, index) == _brute(source)


def test_a_plan_says_which_files_are_indexed_scanned_and_masked(spark, places, capsys):
    import deltalake

    source, index = places
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(3), 50, 90)), mode="append")
    it.companion(source, index, {"msg": "text"})
    deltalake.write_deltalake(source, pa.table(made_rows(random.Random(2), 100, 160)), mode="append")
    deltalake.DeltaTable(source).delete("id < 50")
    spark.read.format("indextables").load(index).filter("msg indexquery 'disk'").explain()
    said = capsys.readouterr().out
    coverage = "files of the source: 1 indexed, 1 scanned, 1 masked"
    assert "2 splits, 0 pruned by the log, 0 by word filters, 2 searched by msg as text" in said
    assert coverage in said
    spark.read.format("indextables").load(index).explain()
    assert coverage in capsys.readouterr().out
    spark.sql(f"EXPLAIN SELECT id FROM indextables.`{index}` WHERE msg indexquery 'disk'").show(
        truncate=False
    )
    assert coverage in capsys.readouterr().out


def test_what_a_search_finds_is_marked(spark, places):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    text = (
        f"SELECT id, highlight(msg, 'disk') AS marked FROM indextables.`{index}` WHERE msg indexquery 'disk'"
    )
    rows = spark.sql(text).collect()
    assert sorted(row["id"] for row in rows) == _brute(source)
    assert all("<em>disk</em>" in row["marked"] for row in rows)


def test_a_stream_of_the_source_triggers_refreshes(spark, places, tmp_path):
    import deltalake

    source, index = places
    companion = it.companion(source, index, {"msg": "text"})

    def run():
        changes = spark.readStream.format("indextables").load(source)
        query = (
            changes.writeStream.foreachBatch(lambda *_: companion.refresh())
            .option("checkpointLocation", str(tmp_path / "progress"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert query.exception() is None

    run()
    for first in (50, 100):
        deltalake.write_deltalake(source, pa.table(made_rows(random.Random(first), first, 90)), mode="append")
        assert companion.status().files_stale == 1
        run()
        status = companion.status()
        assert (status.files_stale, status.indexed_version) == (0, status.source_version)
    assert _searched(spark, index) == _brute(source)


def test_spark_does_not_write_one_or_stream_it_and_says_so(spark, places):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    with pytest.raises(TableError, match="is a companion index"):
        spark.createDataFrame([(1,)], ["id"]).write.format("indextables").mode("append").save(index)
    with pytest.raises(TableError, match="is a companion index"):
        spark.readStream.format("indextables").load(index)
    assert it.open(index).count() == 50


@pytest.mark.core
def test_indexes_are_made_by_name_where_the_table_is_ours_deltas_or_of_parquet_files(spark, places, tmp_path):
    source, _ = places
    files, own = str(tmp_path / "files"), str(tmp_path / "own")
    rows = pa.table(made_rows(random.Random(2), 0, 20))
    spark.createDataFrame(rows.to_pylist()).write.parquet(files)
    it.Table.create(own, rows.schema).append(rows)
    spark.sql(f"CREATE TABLE indexed_files USING parquet LOCATION '{files}'")
    spark.read.format("indextables").load(own).createOrReplaceTempView("indexed_rows")
    try:
        for name, place in (
            (f"delta.`{source}`", f"{source}_indexes/words"),
            ("indexed_files", f"{files}_indexes/words"),
            ("indexed_rows", own),
        ):
            made = spark.sql(f"CREATE INDEX IF NOT EXISTS words ON TABLE {name} USING search (msg)").first()
            assert (made["status"], made["index_path"]) == ("SUCCESS", f"file://{place}")
            spark.sql(f"/* now */ REFRESH INDEX words ON {name}")
            (row,) = spark.sql(f"SHOW INDEXES FROM {name}").collect()
            assert (row["index_name"], row["columns"], row["state"]) == ("words", "msg text", "CURRENT")
            assert it.open(place).count(query="disk") > 0
            assert spark.sql(f"DROP INDEX words ON {name}").first()["status"] == "SUCCESS"
            assert spark.sql(f"SHOW INDEXES IN {name}").collect() == []
        spark.sql("CREATE TABLE of_csv (msg STRING) USING csv")
        with pytest.raises(Exception, match="(?i)index"):
            spark.sql("CREATE INDEX words ON of_csv (msg)").collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS indexed_files")
        spark.sql("DROP TABLE IF EXISTS of_csv")
        spark.sql("DROP VIEW IF EXISTS indexed_rows")
