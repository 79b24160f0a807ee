"""Streams into and out of tables: exactly once by transaction, and over new splits only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import indextables as it
from indextables.errors import OptionError, TableError

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def append(table: it.Table, *ids: int) -> None:
    table.append(pa.table({"id": list(ids), "p": ["x"] * len(ids)}, schema=SCHEMA))


def run(writer: object) -> None:
    query = writer.trigger(availableNow=True).start()  # type: ignore[attr-defined]
    query.awaitTermination(120)
    failed = query.exception()
    if failed is not None:
        raise failed


def source(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    return spark.readStream.format("indextables").options(**options).load(str(path))


@pytest.mark.core
def test_a_stream_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    """E10: a batch run again after a lost commit record writes nothing."""
    src, path, checkpoint = tmp_path / "src", tmp_path / "t", tmp_path / "checkpoint"
    spark.range(0, 5).selectExpr("id", "'x' AS p").write.parquet(str(src))

    def write() -> None:
        frame = spark.readStream.schema("id long, p string").parquet(str(src))
        writer = frame.writeStream.format("indextables").option("checkpointLocation", str(checkpoint))
        run(writer.partitionBy("p").option("path", str(path)))

    write()
    table = it.Table.open(str(path))
    assert (table.count(), table.partition_columns) == (5, ("p",))
    (checkpoint / "commits" / "0").unlink()
    for crc in (checkpoint / "commits").glob(".0.crc"):
        crc.unlink()
    write()
    assert it.Table.open(str(path)).version == table.version
    spark.range(5, 7).selectExpr("id", "'x' AS p").write.mode("append").parquet(str(src))
    write()
    assert it.Table.open(str(path)).count() == 7


def test_a_batch_function_may_write_with_its_own_transaction(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "src"))
    path = str(tmp_path / "t")

    def twice(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            options = {"txnAppId": "mine", "txnVersion": str(number)}
            batch.write.format("indextables").mode("append").options(**options).save(path)

    frame = spark.readStream.schema("id long").parquet(str(tmp_path / "src"))
    run(frame.writeStream.foreachBatch(twice).option("checkpointLocation", str(tmp_path / "c")))
    assert it.Table.open(path).count() == 3


def test_a_batch_function_upserts_and_a_repeated_batch_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    src, checkpoint = tmp_path / "src", tmp_path / "c"
    table = it.Table.create(tmp_path / "t", data=pa.table({"id": [0, 1], "p": ["old", "old"]}, schema=SCHEMA))

    def upsert(batch: DataFrame, number: int) -> None:
        newest = batch.groupBy("id").agg({"p": "max"}).toDF("id", "p")
        it.open(table.uri).merge(newest.toPandas(), on="id")

    def read() -> list[tuple[int, str]]:
        frame = spark.readStream.schema("id long, p string").parquet(str(src))
        run(frame.writeStream.foreachBatch(upsert).option("checkpointLocation", str(checkpoint)))
        return sorted((row["id"], row["p"]) for row in table.refresh().scan().to_pylist())

    spark.sql("SELECT * FROM VALUES (1L, 'a'), (1L, 'b'), (2L, 'a')").toDF("id", "p").write.parquet(str(src))
    assert read() == [(0, "old"), (1, "b"), (2, "a")]
    for record in (checkpoint / "commits").glob("*0*"):
        record.unlink()
    assert read() == [(0, "old"), (1, "b"), (2, "a")]
    assert [row["id"] for row in table.changes(3).to_pylist()] == []


@pytest.mark.core
def test_a_stream_reads_the_table_and_then_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    """Offset = version; a merge is not told again; maxFilesPerTrigger bounds a batch."""
    path = tmp_path / "t"
    table = it.Table.create(str(path), SCHEMA)
    append(table, 1, 2)
    append(table, 3)
    batches: list[list[int]] = []

    def collect(batch: DataFrame, number: int) -> None:
        batches.append(sorted(row.id for row in batch.collect()))

    def read(**options: object) -> None:
        frame = source(spark, path, **options)
        run(frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(tmp_path / "c")))

    read()
    assert [row for batch in batches for row in batch] == [1, 2, 3]
    batches.clear()
    append(table, 4)
    table.merge_splits()
    append(table, 5)
    read(maxFilesPerTrigger=1)
    assert [batch for batch in batches if batch] == [[4], [5]]


def test_a_stream_from_a_version_and_past_changes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = it.Table.create(str(path), SCHEMA)
    for number in (1, 2, 3):
        append(table, number)
    table.delete("id = 1")
    append(table, 9)
    seen: list[int] = []

    def read(name: str, **options: object) -> None:
        seen.clear()
        writer = source(spark, path, **options).writeStream.option("checkpointLocation", str(tmp_path / name))
        run(writer.foreachBatch(lambda batch, _: seen.extend(row.id for row in batch.collect())))

    with pytest.raises(Exception, match="skipChangeCommits"):
        read("a", startingVersion=2)
    read("b", startingVersion=2, skipChangeCommits="true")
    assert sorted(seen) == [2, 3, 9]
    read("c", startingVersion="latest")
    assert seen == []


def test_streams_say_what_they_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    it.Table.create(str(tmp_path / "t"), SCHEMA)
    with pytest.raises(OptionError, match="startingVersion"):
        source(spark, tmp_path / "t", startingVersion="soon")
    frame = spark.readStream.format("rate").load()
    with pytest.raises(TableError, match="output mode"):
        frame.writeStream.format("indextables").outputMode("update").start(str(tmp_path / "t"))
