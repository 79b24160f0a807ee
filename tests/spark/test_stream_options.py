"""The options of streams from tables, and what a stream reads of a file."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import indextables as it
from indextables.errors import OptionError, TableError
from indextables.log.scans import last_scans

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("text", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> it.Table:
    """Four versions after the first, each of one file with one row."""
    made = it.Table.create(str(tmp_path / "t"), SCHEMA, partition_by=["p"])
    for number in range(4):
        append(made, number)
    return made


def append(table: it.Table, *ids: int, part: str = "x") -> None:
    texts = [f"row {number}" for number in ids]
    table.append(pa.table({"id": list(ids), "p": [part] * len(ids), "text": texts}, schema=SCHEMA))


def batches(
    spark: SparkSession, table: it.Table, checkpoint: Path, *, where: str = "true", **options: object
) -> list[list[int]]:
    """Run a stream up to now and return what its batches had; empty ones are left out."""
    seen: list[list[int]] = []

    def collect(batch: DataFrame, _: int) -> None:
        seen.append(sorted(row.id for row in batch.collect()))

    frame = spark.readStream.format("indextables").options(**options).load(table.uri)
    writer = frame.filter(where).writeStream.foreachBatch(collect)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(300)
    failed = query.exception()
    if failed is not None:
        raise failed
    return [batch for batch in seen if batch]


def test_a_limit_of_files_divides_the_whole_table_and_what_follows(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    first = batches(spark, table, tmp_path / "c", maxFilesPerTrigger=3)
    assert [len(batch) for batch in first] == [3, 1]
    assert sorted(sum(first, [])) == [0, 1, 2, 3]
    append(table, 4)
    append(table, 5)
    append(table, 6)
    assert batches(spark, table, tmp_path / "c", maxFilesPerTrigger=2) == [[4, 5], [6]]


def test_a_limit_of_bytes_ends_a_batch_before_the_file_that_exceeds_it(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """A file that is larger than the limit is a batch by itself."""
    largest = max(table.files()["size"].to_pylist())
    assert batches(spark, table, tmp_path / "a", startingVersion=1, maxBytesPerTrigger=1) == [
        [0],
        [1],
        [2],
        [3],
    ]
    two = batches(spark, table, tmp_path / "b", startingVersion=1, maxBytesPerTrigger=2 * largest)
    assert two == [[0, 1], [2, 3]]
    assert batches(spark, table, tmp_path / "c", startingVersion=1, maxBytesPerTrigger="1g") == [[0, 1, 2, 3]]


def test_a_stream_begins_with_the_first_commit_at_or_after_a_time(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    times = {row["version"]: row["timestamp"] for row in table.history().to_pylist()}
    at = times[3].astimezone(UTC).isoformat()
    assert sum(batches(spark, table, tmp_path / "a", startingTimestamp=at), []) == [2, 3]
    assert sum(batches(spark, table, tmp_path / "b", startingTimestamp="1999-01-01"), []) == [0, 1, 2, 3]
    with pytest.raises(Exception, match="no version at or after 2999"):
        batches(spark, table, tmp_path / "c", startingTimestamp="2999-01-01")


def test_commits_that_only_remove_rows_are_passed_over_where_that_is_allowed(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    append(table, 7, 8, part="y")
    table.delete("p = 'y'")
    append(table, 9)
    with pytest.raises(Exception, match="ignoreDeletes=true"):
        batches(spark, table, tmp_path / "a", startingVersion=1)
    after = batches(spark, table, tmp_path / "b", startingVersion=1, ignoreDeletes="true")
    assert sorted(sum(after, [])) == [0, 1, 2, 3, 7, 8, 9]


def test_a_commit_that_rewrites_rows_stops_a_stream_that_ignores_deletes(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    append(table, 7, 8, part="y")
    table.delete("id = 7")
    append(table, 9)
    with pytest.raises(Exception, match="skipChangeCommits=true"):
        batches(spark, table, tmp_path / "a", startingVersion=1, ignoreDeletes="true")
    after = batches(spark, table, tmp_path / "b", startingVersion=1, skipChangeCommits="true")
    assert sorted(sum(after, [])) == [0, 1, 2, 3, 7, 8, 9]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingVersion": "1", "startingTimestamp": "2024-01-01"}, "together"),
        ({"startingTimestamp": "soon"}, "startingTimestamp='soon' is not a time"),
        ({"maxFilesPerTrigger": "0"}, "no batch could hold a file"),
        ({"maxBytesPerTrigger": "many"}, "expected bytes"),
        ({"ignoreDeletes": "perhaps"}, "true or false"),
        ({"maxFilesPerTriger": "1"}, "maxFilesPerTrigger"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_load(
    spark: SparkSession, table: it.Table, options: dict[str, str], expected: str
) -> None:
    with pytest.raises(OptionError, match=expected):
        spark.readStream.format("indextables").options(**options).load(table.uri)


@pytest.mark.parametrize(
    "name",
    [
        "IndexTables",
        "io.indextables.spark.core.IndexTables4SparkTableProvider",
        "io.indextables.provider.IndexTablesProvider",
    ],
)
def test_a_stream_knows_every_name_of_the_format(spark: SparkSession, table: it.Table, name: str) -> None:
    assert spark.readStream.format(name).load(table.uri).columns == ["id", "p", "text"]


def test_a_stream_has_the_columns_of_its_table(spark: SparkSession, table: it.Table) -> None:
    reader = spark.readStream.format("indextables")
    assert reader.load(table.uri).schema == spark.read.format("indextables").load(table.uri).schema
    with pytest.raises(TableError, match="its own schema"):
        reader.schema("id long").load(table.uri)


def test_a_batch_reads_only_the_files_and_columns_that_its_query_needs(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    frame = spark.readStream.format("indextables").load(table.uri).filter("id = 2").select("id")
    writer = frame.writeStream.format("memory").queryName("needed_of_stream").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    query.awaitTermination(300)
    plan = str(query._jsq.explainInternal(True))
    scan = last_scans(table.uri)[0]
    assert (scan.considered, scan.kept) == (4, 1)
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,2)]" in plan
    assert "ReadSchema: struct<id:bigint>" in plan
    assert [row.id for row in spark.table("needed_of_stream").collect()] == [2]
    assert query.lastProgress["numInputRows"] == 1


def test_new_columns_are_read_after_the_query_is_started_again(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    rows = pa.table({"id": [4], "p": ["x"], "text": ["new"], "more": [1.5]})
    frame = spark.readStream.format("indextables").load(table.uri)
    assert sum(batches(spark, table, tmp_path / "c"), []) == [0, 1, 2, 3]
    query = frame.writeStream.format("memory").queryName("old_columns").start()
    try:
        query.processAllAvailable()
        wider = spark.createDataFrame(rows).write.format("indextables").mode("append")
        wider.option("mergeSchema", "true").save(table.uri)
        with pytest.raises(Exception, match="adds or changes the columns more"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert sum(batches(spark, table, tmp_path / "c", where="more = 1.5"), []) == [4]


def _kept(checkpoint: Path, kind: str) -> list[int]:
    return sorted(int(path.name) for path in (checkpoint / kind).iterdir() if path.name.isdigit())


def _forget_commit(checkpoint: Path, number: int) -> None:
    for name in (str(number), f".{number}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def _rewrite_offset(checkpoint: Path, number: int, **fields: Any) -> None:
    """An offset as an earlier stream wrote it."""
    path = checkpoint / "offsets" / str(number)
    lines = path.read_text().splitlines()
    offset = {**json.loads(lines[-1]), **fields}
    offset.pop("start", None)
    path.write_text("\n".join([*lines[:-1], json.dumps(offset)]))
    (path.parent / f".{number}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("options", [{}, {"startingVersion": 2}, {"startingVersion": "latest"}])
def test_a_first_batch_that_is_run_again_has_the_same_rows(
    spark: SparkSession, table: it.Table, tmp_path: Path, options: dict[str, object]
) -> None:
    """Spark keeps where the first batch ends and not where it began; meanwhile the table has grown."""
    first = batches(spark, table, tmp_path / "c", **options)
    _forget_commit(tmp_path / "c", 0)
    append(table, 9)
    table.merge_splits()
    assert batches(spark, table, tmp_path / "c", **options) == [*first, [9]]


def test_offsets_of_earlier_streams_are_read_on(spark: SparkSession, table: it.Table, tmp_path: Path) -> None:
    checkpoint = tmp_path / "c"
    assert sum(batches(spark, table, checkpoint), []) == [0, 1, 2, 3]
    assert _kept(checkpoint, "offsets") == [0]
    _rewrite_offset(checkpoint, 0, index=0, whole=False)
    append(table, 4)
    assert batches(spark, table, checkpoint) == [[4]]


def test_an_earlier_stream_that_died_in_its_first_batch_goes_on(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "c"
    batches(spark, table, checkpoint)
    _rewrite_offset(checkpoint, 0, index=0, whole=False)
    _forget_commit(checkpoint, 0)
    append(table, 4)
    assert batches(spark, table, checkpoint) == [[0, 1, 2, 3], [4]]


def test_a_running_stream_follows_the_table(spark: SparkSession, table: it.Table) -> None:
    frame = spark.readStream.format("indextables").load(table.uri)
    query = frame.writeStream.format("memory").queryName("followed").start()
    try:
        query.processAllAvailable()
        append(table, 4)
        query.processAllAvailable()
        assert sorted(row.id for row in spark.table("followed").collect()) == [0, 1, 2, 3, 4]
    finally:
        query.stop()


def test_a_stream_counts_with_state_into_a_table(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """The state of an aggregate is that of the query, not of the batch that is written."""
    for _ in range(2):
        counted = spark.readStream.format("indextables").load(table.uri).groupBy("p").count()
        writer = counted.writeStream.format("indextables").outputMode("complete").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "counted"))
        query.awaitTermination(300)
        append(table, 4)
    rows = it.Table.open(str(tmp_path / "counted")).scan().read_all().to_pylist()
    assert rows == [{"p": "x", "count": 5}]
