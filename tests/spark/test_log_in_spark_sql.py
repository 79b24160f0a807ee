"""What a user of Spark sees of the log: of its repair, of a swap, of what was skipped, lost or lies elsewhere."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import indextables as it


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    """A table of four versions, three splits and thirty rows."""
    path = tmp_path / "t"
    for number in range(3):
        frame = spark.range(10 * number, 10 * number + 10, 1, 1).selectExpr("id", "concat('n', id) AS name")
        frame.write.format("indextables").mode("append").save(str(path))
    return path


def ids(spark: SparkSession, root: Path) -> list[int]:
    return sorted(row.id for row in spark.read.format("indextables").load(str(root)).collect())


def repair(spark: SparkSession, log: Path, target: Path, clause: str = "") -> str:
    statement = f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{target}' {clause}"
    return str(spark.sql(statement).first()["status"])


def test_swap_puts_the_repaired_log_in_place_and_keeps_the_old_one(spark: SparkSession, root: Path) -> None:
    """J1: the same rows, an append through Spark, the repair in the history."""
    assert repair(spark, root / "_transaction_log", root / "_new", "SWAP").startswith("SUCCESS")
    assert ids(spark, root) == list(range(30))
    assert len([*root.glob("_transaction_log.*")]) == 1
    spark.range(30, 31).selectExpr("id", "'n' AS name").write.format("indextables").mode("append").save(
        str(root)
    )
    assert ids(spark, root) == list(range(31))
    operations = [row.operation for row in spark.sql(f"DESCRIBE INDEXTABLES HISTORY '{root}'").collect()]
    assert operations[0] == "WRITE"
    assert any("REPAIR" in operation for operation in operations)


def test_a_repair_keeps_how_often_a_file_was_skipped(spark: SparkSession, root: Path) -> None:
    """E9: also past its cooldown, as `DESCRIBE INDEXTABLES SKIPPED FILES` shows."""
    log = it.TransactionLog.open(str(root))
    path = log.list_files()[0].path
    for _ in range(4):
        log.record_skipped_file(path, "bad footer", "merge", cooldown_hours=0)
    assert repair(spark, root / "_transaction_log", root / "_new", "SWAP").startswith("SUCCESS")
    (row,) = spark.sql(f"DESCRIBE INDEXTABLES SKIPPED FILES '{root}'").collect()
    assert (row.path, row.operation, row.skip_count, row.in_cooldown) == (path, "merge", 4, False)


def test_a_log_that_was_copied_away_from_its_splits_is_not_called_a_success(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    """J2: the status says so, and with `repair.failOnMissing` nothing is written."""
    alone = tmp_path / "elsewhere" / "_transaction_log"
    shutil.copytree(root / "_transaction_log", alone)
    assert repair(spark, alone, alone.parent / "a").startswith("WARNING: none of the 3 splits")
    spark.conf.set("spark.indextables.repair.failOnMissing", "true")
    try:
        status = repair(spark, alone, alone.parent / "b")
    finally:
        spark.conf.unset("spark.indextables.repair.failOnMissing")
    assert status.startswith("ERROR: 3 of 3 splits are missing")
    assert not (alone.parent / "b").exists()


def test_a_log_that_cannot_be_read_names_the_other_ways_of_repairing(spark: SparkSession, root: Path) -> None:
    """J7."""
    newest = max((root / "_transaction_log").glob("*.json"))
    newest.write_bytes(b"{")
    status = repair(spark, root / "_transaction_log", root / "_new")
    assert status.startswith("ERROR: ")
    assert "UP TO VERSION" in status
    assert "FROM SPLITS" in status


def test_the_history_shows_a_version_whose_file_is_gone(spark: SparkSession, root: Path) -> None:
    spark.sql(f"CHECKPOINT INDEXTABLES '{root}'")
    versions = sorted((root / "_transaction_log").glob("?" * 20 + ".json"))
    versions[1].unlink()
    rows = spark.sql(f"DESCRIBE INDEXTABLES HISTORY '{root}'").collect()
    assert f"MISSING {int(versions[1].stem)}" in [row.operation for row in rows]


def test_a_split_behind_a_link_out_of_the_table_names_the_option(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    split = root / it.TransactionLog.open(str(root)).list_files()[0].path
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.move(split, outside / split.name)
    split.symlink_to(outside / split.name)
    with pytest.raises(Exception, match=r"read\.allowedRoots"):
        ids(spark, root)
    frame = spark.read.format("indextables").option("read.allowedRoots", str(outside)).load(str(root))
    assert frame.count() == 30


def test_the_driver_says_that_a_checkpoint_was_created(
    spark: SparkSession, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """C1: with its version and the number of active files."""
    with caplog.at_level(logging.INFO, logger="indextables"):
        row = spark.sql(f"CHECKPOINT INDEXTABLES '{root}'").first()
    expected = f"Created checkpoint at version {row.checkpoint_version} with 3 active files"
    assert expected in [record.getMessage() for record in caplog.records]


def test_a_secret_in_user_metadata_is_not_in_the_history(spark: SparkSession, root: Path) -> None:
    secret = "wJalr/XUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    frame = spark.range(30, 31).selectExpr("id", "'n' AS name").write.format("indextables").mode("append")
    frame.option("userMetadata", f"nightly secret_key={secret}").save(str(root))
    newest = spark.sql(f"DESCRIBE INDEXTABLES HISTORY '{root}' LIMIT 1").first()
    assert newest.user_metadata.startswith("nightly")
    assert all(part not in newest.user_metadata for part in secret.split("/"))
