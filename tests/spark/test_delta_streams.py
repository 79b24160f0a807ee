"""Streams over Delta tables, by the same source as those over ours."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from indextables.log.scans import last_scans
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, remove, schema_string


def read(spark: SparkSession, path: object, checkpoint: Path, **options: object) -> list[dict[str, object]]:
    """Run a stream up to now and return its rows."""
    seen: list[dict[str, object]] = []

    def collect(batch: DataFrame, _: int) -> None:
        seen.extend(row.asDict() for row in batch.collect())

    frame = spark.readStream.format("indextables").options(**options).load(str(path))
    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(300)
    failed = query.exception()
    if failed is not None:
        raise failed
    return sorted(seen, key=lambda row: str(row["id"]))


def ids(rows: list[dict[str, object]]) -> list[object]:
    return [row["id"] for row in rows]


def append(path: Path, *numbers: int) -> None:
    rows = pa.table({"id": pa.array(numbers, pa.int64()), "p": ["x"] * len(numbers)})
    write_deltalake(str(path), rows, mode="append", partition_by=["p"])


def test_a_stream_over_a_delta_table_reads_what_deltalake_appends(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    append(path, 1, 2)
    append(path, 3)
    assert ids(read(spark, path, tmp_path / "c")) == [1, 2, 3]
    append(path, 4)
    DeltaTable(str(path)).create_checkpoint()
    append(path, 5)
    assert ids(read(spark, path, tmp_path / "c", maxFilesPerTrigger=1)) == [4, 5]
    assert ids(read(spark, path, tmp_path / "v", startingVersion=3)) == [5]
    assert ids(read(spark, path, tmp_path / "w", startingTimestamp="1999-01-01")) == [1, 2, 3, 4, 5]
    assert ids(read(spark, path, tmp_path / "l", startingVersion="latest")) == []
    assert ids(read(spark, path, tmp_path / "n", startingVersion=DeltaTable(str(path)).version() + 1)) == []
    with pytest.raises(Exception, match=r"'startingVersion' is 99, and the newest version of .* is 3"):
        read(spark, path, tmp_path / "b", startingVersion=99)


def test_compacted_files_are_not_told_again(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(3):
        append(path, number)
    assert ids(read(spark, path, tmp_path / "c")) == [0, 1, 2]
    DeltaTable(str(path)).optimize.compact()
    append(path, 3)
    assert ids(read(spark, path, tmp_path / "c")) == [3]


def test_a_delta_commit_that_removes_rows_stops_a_stream_unless_it_is_passed_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    append(path, 1, 2)
    append(path, 3)
    DeltaTable(str(path)).delete("id = 1")
    append(path, 4)
    with pytest.raises(Exception, match=r"version 2 removes 1 files with their rows.*skipChangeCommits=true"):
        read(spark, path, tmp_path / "a", startingVersion=0)
    assert ids(read(spark, path, tmp_path / "b", startingVersion=0, skipChangeCommits="true")) == [1, 2, 3, 4]
    DeltaTable(str(path)).delete("p = 'x'")
    append(path, 5)
    with pytest.raises(Exception, match="ignoreDeletes=true"):
        read(spark, path, tmp_path / "d", startingVersion=3)
    assert ids(read(spark, path, tmp_path / "e", startingVersion=3, ignoreDeletes="true")) == [4, 5]


def test_deletion_vectors_and_mapped_columns_are_respected(spark: SparkSession, tmp_path: Path) -> None:
    """In the table as it is, and in what commits add; a vector over a file that was read removes rows."""
    schema = json.loads(schema_string(id="long", name="string"))
    names = {"id": "col-1", "name": "id"}
    for number, field in enumerate(schema["fields"], start=1):
        field["metadata"] = {
            "delta.columnMapping.id": number, "delta.columnMapping.physicalName": names[field["name"]],
        }  # fmt: skip
    mode = {"delta.columnMapping.mode": "name"}
    log = DeltaLog(open_store(str(tmp_path / "t")), json.dumps(schema), configuration=mode)

    def put(path: str, *numbers: int, deleted: list[int] | None = None) -> None:
        rows = pa.table({"col-1": list(numbers), "id": [f"n{number}" for number in numbers]})
        log.commit(put_file(log, path, rows, dv=None if deleted is None else inline_vector(deleted)))

    put("f0", 1, 2, 3, deleted=[0])
    put("f1", 4)
    rows = read(spark, tmp_path / "t", tmp_path / "c")
    assert rows == [{"id": number, "name": f"n{number}"} for number in (2, 3, 4)]
    put("f2", 5, 6, 7, deleted=[1])
    put("f3", 8)
    again = read(spark, tmp_path / "t", tmp_path / "c", maxFilesPerTrigger=1)
    assert again == [{"id": number, "name": f"n{number}"} for number in (5, 7, 8)]
    vector = put_file(log, "f1", pa.table({"col-1": [4], "id": ["n4"]}), dv=inline_vector([0]))
    log.commit(remove("f1"), vector)
    with pytest.raises(Exception, match="which a stream cannot take back"):
        read(spark, tmp_path / "t", tmp_path / "c")


def test_a_batch_of_a_delta_table_reads_only_what_its_query_needs(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(4):
        append(tmp_path / "t", number)
    frame = spark.readStream.format("indextables").load(str(tmp_path / "t")).filter("id = 2").select("id")
    writer = frame.writeStream.format("memory").queryName("needed_of_delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    query.awaitTermination(300)
    plan = str(query._jsq.explainInternal(True))
    scan = last_scans(open_store(str(tmp_path / "t")).uri)[0]
    assert (scan.considered, scan.kept) == (4, 1)
    assert "ReadSchema: struct<id:bigint>" in plan
    assert [row.id for row in spark.table("needed_of_delta").collect()] == [2]
