"""Streams over a repaired log: every row once, or an explanation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import indextables as it
from indextables.errors import TableError
from indextables.spark.stream.source import Columns, TableStream

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> it.Table:
    made = it.Table.create(str(tmp_path / "t"), SCHEMA)
    for n in range(3):
        append(made, *range(10 * n, 10 * n + 10))
    return made


def append(table: it.Table, *ids: int) -> None:
    table.append(pa.table({"id": list(ids)}, schema=SCHEMA))


def repair_and_swap(root: Path) -> None:
    log, target = root / "_transaction_log", root / "_repaired"
    assert it.repair_log(str(log), str(target)).status == "SUCCESS"
    log.rename(root / "_transaction_log_backup")
    target.rename(log)


def follow(spark: SparkSession, root: Path, checkpoint: Path, **options: object) -> list[int]:
    """Run a stream up to now and return what it read."""
    seen: list[int] = []

    def collect(batch: DataFrame, _: int) -> None:
        seen.extend(row.id for row in batch.collect())

    frame = spark.readStream.format("indextables").options(**options).load(str(root))
    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    failed = query.exception()
    if failed is not None:
        raise failed
    return sorted(seen)


def test_a_stream_from_version_0_reads_every_row_after_merge_and_repair(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """The merged split says that it changes no data; in the repaired log it is the first to bring its rows."""
    table.merge_splits()
    repair_and_swap(tmp_path / "t")
    assert follow(spark, tmp_path / "t", tmp_path / "c", startingVersion=0) == list(range(30))


def test_a_stream_that_meets_a_repaired_log_stops_with_an_explanation(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """Versions restart: going on would pass over the rows of the new log's versions 2 to 4."""
    assert follow(spark, tmp_path / "t", tmp_path / "c") == list(range(30))
    repair_and_swap(tmp_path / "t")
    repaired = it.Table.open(str(tmp_path / "t"))
    for n in range(30, 33):
        append(repaired, n)
    with pytest.raises(Exception, match="it was repaired, or the table was created again"):
        follow(spark, tmp_path / "t", tmp_path / "c")
    assert follow(spark, tmp_path / "t", tmp_path / "c2", startingVersion=2) == [30, 31, 32]


def started(spark: SparkSession, table: it.Table, **options: str) -> tuple[TableStream, Columns]:
    """A stream as its source asks Python about it, each time anew."""
    return TableStream.of(spark, table.uri, options), Columns(table.spark_schema, table.version)


@pytest.mark.parametrize("moment", ["between batches", "between planning and reading"])
def test_no_moment_lets_a_repaired_log_through(
    spark: SparkSession, table: it.Table, tmp_path: Path, moment: str
) -> None:
    """Offsets are planned first and read later; both look whose they are."""
    stream, columns = started(spark, table, startingVersion="1")
    end = stream.next_end(None, None, limited=True, columns=columns)
    repair_and_swap(tmp_path / "t")
    stream, _ = started(spark, table, startingVersion="1")
    with pytest.raises(TableError, match="another checkpointLocation"):
        if moment == "between batches":
            stream.next_end(end, None, limited=True, columns=columns)
        else:
            stream.batch(None, end, columns)


def test_a_stream_of_a_table_made_anew_stops_too(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """A directory deleted and filled again under the same name is another table."""
    import shutil

    stream, columns = started(spark, table)
    end = stream.next_end(None, None, limited=True, columns=columns)
    shutil.rmtree(tmp_path / "t")
    for _ in range(5):
        append(it.Table.create(str(tmp_path / "t"), SCHEMA), 1)
    with pytest.raises(TableError, match="created again"):
        started(spark, table)[0].next_end(end, None, limited=True, columns=columns)
