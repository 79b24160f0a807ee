"""The usage examples of the specifications, as PySpark code."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

import indextables as it
from indextables.log.scans import last_scans
from indextables.spark.write.job import last_writes

PROVIDER = "io.indextables.spark.core.IndexTables4SparkTableProvider"


@pytest.fixture
def long_text(spark: SparkSession) -> object:
    text = "concat(chr(97 + cast(id AS int)), repeat('x', 2000))"
    return spark.range(0, 4, 1, 4).selectExpr("id", f"{text} AS content", "concat('name', id) AS short")


def test_long_values_leave_the_statistics_and_short_ones_skip_files(
    spark: SparkSession, long_text: object, tmp_path: Path
) -> None:
    """H1, H3: skipping by a column with statistics; a truncated column gives correct answers."""
    path = str(tmp_path / "t")
    long_text.write.format(PROVIDER).save(path)
    result = last_writes(1)[0][1]
    assert result.columns_truncated == 1
    assert result.bytes_saved > 4 * 2 * 2000 - 1000
    for add in it.TransactionLog.open(path).list_files(0):
        assert "content" not in (add.min_values or {})
        assert "short" in add.min_values
    assert sum(file.stat().st_size for file in Path(path, "_transaction_log").iterdir()) < 100_000
    frame = spark.read.format(PROVIDER).load(path)
    assert [row.length for row in frame.selectExpr("length(content) AS length").collect()] == [2001] * 4
    assert frame.filter("short = 'name2'").select("id").first().id == 2
    assert (last_scans(limit=1)[0].kept, last_scans(limit=1)[0].considered) == (1, 4)
    assert frame.filter("content LIKE 'c%'").select("id").first().id == 2
    assert frame.filter("content = concat('d', repeat('x', 2000))").count() == 1
    assert last_scans(limit=1)[0].kept == 4


def test_the_driver_reports_what_the_executors_truncated(
    spark: SparkSession, long_text: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line per column and their sum over four tasks, and the same numbers in the history."""
    path = str(tmp_path / "t")
    with caplog.at_level(logging.INFO, logger="indextables"):
        long_text.write.format("indextables").option("stats.truncation.strategy", "halve").save(path)
    told = [record.getMessage() for record in caplog.records if "tatistics" in record.getMessage()]
    saved = last_writes(1)[0][1].bytes_saved
    assert told == [
        "Truncating statistics for column 'content' (min length: 2001, max length: 2001, strategy: drop)",
        f"Statistics truncated: 1 columns, estimated size reduction: {saved} bytes",
    ]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings.count("Unknown truncation strategy 'halve', using 'drop'") == 1
    newest = spark.sql(f"DESCRIBE INDEXTABLES HISTORY '{path}' LIMIT 1").first()
    metrics = newest["operation_metrics"]
    numbers = json.loads(metrics) if isinstance(metrics, str) else metrics
    assert int(numbers["numTruncatedColumns"]) == 1
    assert int(numbers["statsBytesSaved"]) == saved


def test_statistics_are_suggested_from_the_queries_of_the_session(
    spark: SparkSession, long_text: object, tmp_path: Path
) -> None:
    """A query of Spark's is remembered, and ANALYZE says which of its columns pay."""
    path = str(tmp_path / "t")
    long_text.write.format("indextables").save(path)
    frame = spark.read.format("indextables").load(path)
    assert frame.filter("short = 'name2'").count() == 1
    rows = {row.column: row for row in spark.sql(f"ANALYZE INDEXTABLES '{path}' FOR SKIPPING").collect()}
    assert [name for name, row in rows.items() if row.suggested] == ["short"]
    assert (rows["short"].files_skipped, rows["content"].files_without_statistics) == (
        3 * rows["short"].filters,
        4,
    )


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({"spark.indextables.stats.truncation.strategy": "truncate", "spark.indextables.stats.truncation.maxLength": "100"}, 100),
        ({"spark.indextables.stats.truncation.enabled": "false"}, 2001),
        ({"spark.indextables.stats.truncation.maxLength": "4096"}, 2001),
    ],
)  # fmt: skip
def test_truncation_can_be_set_per_write(
    spark: SparkSession, long_text: object, tmp_path: Path, options: dict[str, str], length: int
) -> None:
    """H2, H4: by option; and by session configuration, which an option overrides."""
    path = str(tmp_path / "t")
    long_text.write.format("indextables").options(**options).save(path)
    lengths = {len(add.max_values["content"]) for add in it.TransactionLog.open(path).list_files(0)}
    assert lengths == {length}
    frame = spark.read.format("indextables").load(path)
    assert [row.id for row in frame.filter("content > 'd'").collect()] == [3]


def test_truncation_can_be_set_for_the_session(
    spark: SparkSession, long_text: object, tmp_path: Path
) -> None:
    key = "spark.indextables.stats.truncation.enabled"
    spark.conf.set(key, "false")
    try:
        long_text.write.format("indextables").save(str(tmp_path / "a"))
        long_text.write.format("indextables").option(key, "true").save(str(tmp_path / "b"))
    finally:
        spark.conf.unset(key)
    for name, kept in (("a", True), ("b", False)):
        adds = it.TransactionLog.open(str(tmp_path / name)).list_files(0)
        assert all(("content" in (add.max_values or {})) is kept for add in adds)


def test_repair_through_sql(spark: SparkSession, tmp_path: Path) -> None:
    """J1: write, repair, swap, read the same rows."""
    path = tmp_path / "t"
    spark.range(0, 50, 1, 3).selectExpr("id", "concat('n', id) AS name").write.format("indextables").save(
        str(path)
    )
    rows = spark.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{path}/_transaction_log' AT LOCATION '{tmp_path}/repaired'"
    ).collect()
    assert rows[0].status.startswith("SUCCESS")
    assert (rows[0].total_splits, rows[0].valid_splits, rows[0].missing_splits) == (3, 3, 0)
    (path / "_transaction_log").rename(path / "old_log")
    (tmp_path / "repaired").rename(path / "_transaction_log")
    frame = spark.read.format("indextables").load(str(path))
    assert sorted(row.id for row in frame.collect()) == list(range(50))


def test_checkpoints_and_compression_by_option(spark: SparkSession, tmp_path: Path) -> None:
    """C1, G1 by write option."""
    path = tmp_path / "t"
    options = {
        "spark.indextables.checkpoint.interval": "2",
        "spark.indextables.transaction.compression.enabled": "false",
    }
    for number in range(2):
        frame = spark.range(number, number + 1)
        frame.write.format("indextables").mode("append").options(**options).save(str(path))
    assert (path / "_transaction_log" / f"{2:020}.checkpoint.json").read_bytes().startswith(b"{")


def test_a_task_that_runs_twice_leaves_its_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    """A lost executor or a speculative twin: the attempt that counts is the one that reports."""

    def fails_first(batches):  # noqa: ANN001, ANN202
        for batch in batches:
            yield batch
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == 1:
            raise RuntimeError("the first attempt is lost after its rows were produced")

    frame = spark.range(0, 40, 1, 2).mapInArrow(fails_first, "id long")
    frame.write.format("indextables").option("write.maxRowsPerSplit", "5").save(str(tmp_path / "t"))
    found = spark.read.format("indextables").load(str(tmp_path / "t"))
    assert sorted(row.id for row in found.collect()) == list(range(40))
    assert it.Table.open(str(tmp_path / "t")).count() == 40
