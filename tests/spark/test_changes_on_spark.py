"""Changes in Spark: the same rows as `Table.changes`, by options, by SQL, and as a stream that tells each once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import indextables as it
from indextables.errors import Error, OptionError, TableError, VersionNotFoundError

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.string()), ("message", pa.string()), ("tags", pa.list_(pa.string()))]
)
COMES = ("insert", "update_postimage")


def rows_of(ids: Iterable[int], word: str = "first") -> pa.Table:
    rows = [{"id": n, "day": str(n % 2), "message": f"{word} {n}", "tags": [word] * (n % 3)} for n in ids]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(params=["vectors", "written anew"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> it.Table:
    """Every kind of commit, in ten versions."""
    options = {"indexing.typemap.message": "text", "deletionVectors.enabled": str(request.param == "vectors")}
    made = it.Table.create(tmp_path / "t", SCHEMA, partition_by=["day"], options=options)
    made.append(rows_of(range(40)))
    made.append(rows_of(range(40, 60)))
    made.delete("id % 7 = 3")
    made.update("id = 5", {"message": "changed"})
    made.merge(rows_of([1, 2, 100], "merged"), on="id")
    made.merge_splits(target_size="10M")
    made.overwrite(rows_of([200, 202], "over"), where="day = '0'")
    made.restore(5)
    made.drop_partitions("day = '1'")
    return made


def shown(rows: Iterable[Any]) -> Counter[str]:
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)


def of_python(table: it.Table, *versions: int) -> Counter[str]:
    return shown(row | {"_commit_timestamp": None} for row in table.changes(*versions).to_pylist())


def of_spark(frame: DataFrame) -> Counter[str]:
    return shown(row.asDict(recursive=True) | {"_commit_timestamp": None} for row in frame.collect())


def changes(spark: SparkSession, table: it.Table, **options: object) -> DataFrame:
    reader = spark.read.format("indextables").option("readChangeFeed", "true")
    return reader.options(**options).load(table.uri)  # type: ignore[arg-type]


@pytest.mark.core
def test_a_read_and_sql_have_the_changes_that_python_has(spark: SparkSession, table: it.Table) -> None:
    path = table.uri.removeprefix("file://")
    for first in range(table.version + 1):
        for last in {first, table.version}:
            expected = of_python(table, first, last)
            assert of_spark(changes(spark, table, startingVersion=first, endingVersion=last)) == expected
    assert of_spark(spark.sql(f"SELECT * FROM table_changes('{path}', 1)")) == of_python(table, 1)
    counted = spark.sql(
        f"SELECT _change_type, count(*) AS n FROM table_changes('{path}', 3, 5) c WHERE id < 50 GROUP BY 1"
    )
    assert {row[0]: row[1] for row in counted.collect()} == Counter(
        row["_change_type"] for row in table.changes(3, 5, where="id < 50").to_pylist()
    )


@pytest.mark.core
def test_changes_of_a_name_of_a_view_and_of_a_time(spark: SparkSession, table: it.Table) -> None:
    spark.sql(f"CREATE TABLE changed_rows USING indextables LOCATION '{table.uri}'")
    try:
        assert of_spark(spark.sql("SELECT * FROM table_changes('default.changed_rows', 2, 4)")) == of_python(
            table, 2, 4
        )
        with pytest.raises(Exception, match="table_changes"):
            spark.read.option("readChangeFeed", "true").option("startingVersion", 1).table(
                "changed_rows"
            ).collect()
    finally:
        spark.sql("DROP TABLE changed_rows")
    spark.read.format("indextables").load(table.uri).createOrReplaceTempView("changed_view")
    assert of_spark(spark.sql("SELECT * FROM table_changes('changed_view', 3)")) == of_python(table, 3)
    moment = spark.sql(
        "SELECT date_format(_commit_timestamp, 'yyyy-MM-dd HH:mm:ss.SSS') "
        "FROM table_changes('changed_view', 4, 4) LIMIT 1"
    ).first()[0]  # type: ignore[index]
    assert of_spark(spark.sql(f"SELECT * FROM table_changes('changed_view', '{moment}', '{moment}')")) == (
        of_python(table, 4, 4)
    )
    view = f"USING indextables OPTIONS (path '{table.uri}', readChangeFeed 'true', startingVersion '5')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW changed_since {view}")
    assert of_spark(spark.sql("SELECT * FROM changed_since")) == of_python(table, 5)


def test_programs_of_the_jvm_read_changes(spark: SparkSession, table: it.Table) -> None:
    reader = spark._jsparkSession.read().format("indextables").option("readChangeFeed", "true")
    frame = DataFrame(reader.option("startingVersion", "3").load(table.uri), spark)
    assert of_spark(frame) == of_python(table, 3)
    assert of_spark(frame.where("_change_type = 'insert'").select("*")) == shown(
        row | {"_commit_timestamp": None}
        for row in table.changes(3, where="_change_type = 'insert'").to_pylist()
    )


def test_what_cannot_be_read_is_an_error(spark: SparkSession, table: it.Table, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="startingVersion"):
        changes(spark, table)
    with pytest.raises(OptionError, match="needs the option 'readChangeFeed'"):
        spark.read.format("indextables").option("startingVersion", 1).load(table.uri)
    with pytest.raises(OptionError, match="cannot be used together"):
        changes(spark, table, startingVersion=1, startingTimestamp="2026-01-01")
    with pytest.raises(VersionNotFoundError, match="there are no changes up to version 99"):
        changes(spark, table, startingVersion=1, endingVersion=99)
    with pytest.raises(Error, match="table_changes takes a table in quotes"):
        spark.sql(f"SELECT * FROM table_changes('{table.uri}')")
    with pytest.raises(OptionError, match="ignoreDeletes"):
        spark.readStream.format("indextables").options(readChangeFeed="true", ignoreDeletes="true").load(
            table.uri
        )
    # A file that left and is gone: the error names the version from which there are changes.
    removed = {row["path"] for row in table.files().to_pylist()}
    gone = next(path for path in Path(tmp_path, "t").rglob("*.split") if path.name not in str(removed))
    gone.unlink()
    with pytest.raises(VersionNotFoundError, match="oldest version|no changes up to version"):
        changes(spark, table, startingVersion=1).collect()


def run(writer: Any) -> None:
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(120)
    if query.exception() is not None:
        raise query.exception()


@pytest.mark.core
def test_a_stream_tells_every_change_once_over_restarts(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    seen: list[list[Any]] = []

    def note(batch: DataFrame, number: int) -> None:
        seen.append([row.asDict(recursive=True) for row in batch.collect()])

    def follow(checkpoint: str = "c", **options: object) -> list[dict[str, Any]]:
        seen.clear()
        reader = spark.readStream.format("indextables").option("readChangeFeed", "true")
        frame = reader.options(**options).load(table.uri)  # type: ignore[arg-type]
        run(frame.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / checkpoint)))
        return [row | {"_commit_timestamp": None} for batch in seen for row in batch]

    # Without a beginning the table as it is comes first, as inserts of its version.
    first = follow()
    assert {(row["_change_type"], row["_commit_version"]) for row in first} == {("insert", table.version)}
    assert sorted(row["id"] for row in first) == sorted(table.scan().to_arrow()["id"].to_pylist())
    from_start = table.version + 1
    table.append(rows_of([300, 301], "new"))
    table.delete("id = 300")
    assert shown(follow()) == of_python(table, from_start, from_start + 1)
    # A batch whose end was not recorded is told again, with the same rows.
    for record in (tmp_path / "c" / "commits").glob("*1*"):
        record.unlink()
    assert shown(follow()) == of_python(table, from_start, from_start + 1)
    assert follow() == []
    table.update("id = 301", {"message": "again"})
    assert shown(follow()) == of_python(table, from_start + 2)
    # From a version on, commit by commit: a limit divides no commit.
    assert shown(follow("d", startingVersion=1, maxFilesPerTrigger=1)) == of_python(table, 1)
    for batch in seen:
        assert len({row["_commit_version"] for row in batch}) <= 1
    assert len([batch for batch in seen if batch]) >= 8


def test_a_stream_keeps_a_copy_equal_exactly_once(
    spark: SparkSession, table: it.Table, tmp_path: Path
) -> None:
    """Written to a table of ours, a batch that is run again adds nothing, and the copy has every change once."""

    def write() -> None:
        frame = (
            spark.readStream.format("indextables")
            .option("readChangeFeed", "true")
            .option("startingVersion", 1)
        )
        writer = frame.load(table.uri).writeStream.format("indextables")
        run(writer.option("checkpointLocation", str(tmp_path / "c")).option("path", str(tmp_path / "copy")))

    write()
    for record in (tmp_path / "c" / "commits").glob("*0*"):
        record.unlink()
    write()
    copy = it.open(tmp_path / "copy").scan().to_pylist()
    assert shown(row | {"_commit_timestamp": None} for row in copy) == of_python(table, 1)
    left: Counter[int] = Counter()
    for row in copy:
        left[row["id"]] += 1 if row["_change_type"] in COMES else -1
    assert sorted(+left) == sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_stream_by_name_and_a_cleaned_version(spark: SparkSession, table: it.Table, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE streamed_changes USING indextables LOCATION '{table.uri}'")
    try:
        seen: list[Any] = []
        reader = spark.readStream.option("readChangeFeed", "true").option("startingVersion", "4")
        writer = reader.table("streamed_changes").writeStream.foreachBatch(
            lambda batch, _: seen.extend(row.asDict(recursive=True) for row in batch.collect())
        )
        run(writer.option("checkpointLocation", str(tmp_path / "c")))
        assert shown(row | {"_commit_timestamp": None} for row in seen) == of_python(table, 4)
    finally:
        spark.sql("DROP TABLE streamed_changes")
    table.checkpoint()
    table.truncate_history()
    with pytest.raises((VersionNotFoundError, TableError)):
        changes(spark, table, startingVersion=1)
