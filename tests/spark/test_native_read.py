"""A loaded table is a native relation: Spark reads the rows, the log chooses the files, per query."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import indextables as it
from indextables.errors import (
    MissingSplitError,
    NotATableError,
    OptionError,
    TableError,
    VersionNotFoundError,
)
from indextables.log.scans import last_scans

ODD = ["a", "b", None, "", "100%25", "a%2Fb", "__HIVE_DEFAULT_PARTITION__", "🙂", "a/b=c", "x" * 70_000]


def read(spark: SparkSession, path: object, **options: object) -> DataFrame:
    return spark.read.format("indextables").options(**options).load(str(path))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight splits of 100 rows, ordered by id, two partitions."""
    root = tmp_path_factory.mktemp("events") / "t"
    schema = pa.schema([("id", pa.int64()), ("word", pa.string()), ("day", pa.date32())])
    table = it.Table.create(str(root), schema, partition_by=["day"])
    for block in range(8):
        ids = range(block * 100, block * 100 + 100)
        day = date(2026, 1, 1 + block % 2)
        table.append(
            pa.table({"id": list(ids), "word": [f"w{i:04}" for i in ids], "day": [day] * 100}, schema=schema)
        )
    return root


@pytest.mark.core
def test_files_are_skipped_per_query_and_the_metrics_say_so(spark: SparkSession, events: Path) -> None:
    """H9: considered, pruned by partition, skipped by statistics, kept."""
    frame = read(spark, events)
    assert frame.filter("id = 250").collect()[0].word == "w0250"
    scan = last_scans(limit=1)[0]
    assert (scan.considered, scan.kept, scan.skipped_by_statistics, scan.version) == (8, 1, 7, 8)
    assert frame.filter("day = DATE '2026-01-02'").count() == 400
    assert last_scans(limit=1)[0].pruned_by_partition == 4


def test_explain_shows_the_index_with_version_and_counts(
    spark: SparkSession, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read(spark, events).filter("id < 50").explain()
    shown = capsys.readouterr().out
    assert "LogFileIndex" in shown
    assert "version 8, kept 1 of 8" in shown


def test_skipped_files_are_never_opened(spark: SparkSession, tmp_path: Path) -> None:
    """The specification's own proof: the query succeeds though the skipped files are gone."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    table = it.Table.create(str(tmp_path / "t"), schema)
    for block in range(3):
        table.append(pa.table({"id": [block], "text": [str(block)]}, schema=schema))
    frame = read(spark, tmp_path / "t")
    kept = frame.filter("id = 1").inputFiles()
    for split in (tmp_path / "t").glob("*.split"):
        if not any(name.endswith(split.name) for name in kept):
            pytest.fail("inputFiles names every file of the version")
    wanted = [row["path"] for row in table.files("id = 1").to_pylist()]
    for split in (tmp_path / "t").glob("*.split"):
        if split.name not in wanted:
            split.unlink()
    assert frame.filter("id = 1").collect()[0].text == "1"
    with pytest.raises(MissingSplitError, match="purged"):
        frame.collect()


def test_one_frame_with_many_filters_unions_and_threads(spark: SparkSession, events: Path) -> None:
    """No state is shared between uses of one DataFrame: contents, not counts, are compared."""
    frame = read(spark, events)
    both = frame.filter("id = 150").union(frame.filter("id = 7")).select("id", "word")
    assert sorted(map(tuple, both.collect())) == [(7, "w0007"), (150, "w0150")]
    assert frame.count() == 800
    joined = frame.alias("a").join(frame.alias("b"), "id").filter("a.id in (1, 101)").select("id")
    assert sorted(row.id for row in joined.collect()) == [1, 101]
    answers: dict[int, list[tuple[object, ...]]] = {}

    def ask(number: int) -> None:
        answers[number] = [
            tuple(row) for row in frame.filter(f"id = {number * 100}").select("id", "word").collect()
        ]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: [(number * 100, f"w{number * 100:04}")] for number in range(8)}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("odd") / "t"
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    rows = pa.table({"id": list(range(len(ODD))), "p": pa.array(ODD, pa.string())}, schema=schema)
    if os.pathconf("/", "PC_NAME_MAX") < 70_000:
        # A value of 70,000 characters has no directory; its file lies at the root, and the log knows better.
        from indextables.index.settings import IndexSpec
        from indextables.options import Options
        from indextables.split.write.build import build_splits

        log = it.TransactionLog.open(str(root))
        log.initialize(schema, ["p"])
        for at, value in enumerate(ODD):
            (built,) = build_splits(
                rows.slice(at, 1).to_batches(), schema, [], IndexSpec(), Options(), log.store
            )
            from dataclasses import replace

            log.add_files([replace(built.add, partition_values={"p": value})])
    return root


def test_partition_values_come_back_exactly(spark: SparkSession, odd: Path) -> None:
    """I1, I2: the log's value, whatever it looks like, and never the path's."""
    frame = read(spark, odd)
    assert {row.id: row.p for row in frame.collect()} == dict(enumerate(ODD))
    for at, value in enumerate(ODD):
        found = frame.filter(F.col("p").eqNullSafe(F.lit(value))).select("id").collect()
        assert [row.id for row in found] == [at], value


@pytest.mark.core
def test_partition_filters_are_exact_for_any_expression(spark: SparkSession, odd: Path) -> None:
    frame = read(spark, odd)
    cases: dict[str, Callable[[str | None], bool]] = {
        "upper(p) = 'A' OR p IS NULL": lambda p: p is None or p.upper() == "A",
        "length(p) > 1000": lambda p: p is not None and len(p) > 1000,
        "p LIKE '%\\%%'": lambda p: p is not None and "%" in p,
        "coalesce(p, 'none') = 'none'": lambda p: p is None,
        "p <> 'a' AND NOT p <=> 'b'": lambda p: p is not None and p not in ("a", "b"),
        "p IN ('a', '', 'zz') AND id >= 0": lambda p: p in ("a", ""),
    }
    for condition, holds in cases.items():
        expected = {at for at, value in enumerate(ODD) if holds(value)}
        assert {row.id for row in frame.filter(condition).select("id").collect()} == expected, condition


@pytest.mark.core
def test_typed_partition_values_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    """H7: typed, not textual, in any session zone."""
    columns = {
        "i": (pa.int32(), [2, 10, None]),
        "l": (pa.int64(), [2**62, -1, None]),
        "b": (pa.bool_(), [True, False, None]),
        "d": (pa.date32(), [date(1969, 12, 31), date(2026, 2, 3), None]),
        "t": (pa.timestamp("us", tz="UTC"), [datetime(2026, 3, 29, 1, 30, tzinfo=timezone.utc), datetime(1960, 1, 1, tzinfo=timezone.utc), None]),
        "n": (pa.timestamp("us"), [datetime(2026, 3, 29, 2, 30), datetime(1900, 1, 1), None]),
        "m": (pa.decimal128(38, 10), [Decimal("123456789012345678901234567.0123456789"), Decimal("-0.5"), None]),
        "f": (pa.float64(), [1.5, float("inf"), None]),
        "x": (pa.binary(), [b"\x00\xff", b"", None]),
    }  # fmt: skip
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in columns.items())])
    table = it.Table.create(str(tmp_path / "t"), schema, partition_by=list(columns))
    values = {name: pa.array(given, kind) for name, (kind, given) in columns.items()}
    table.append(pa.table({"id": [0, 1, 2], **values}, schema=schema))
    frame = read(spark, tmp_path / "t")
    expected = spark.createDataFrame(pa.table({"id": [0, 1, 2], **values}, schema=schema))
    assert sorted(frame.collect(), key=lambda r: r.id) == sorted(expected.collect(), key=lambda r: r.id)
    for condition, ids in {
        "i > 9": {1}, "l = 4611686018427387904": {0}, "b": {0}, "d < DATE '1970-01-01'": {0},
        "t = TIMESTAMP '2026-03-29 01:30:00Z'": {0}, "n = TIMESTAMP_NTZ '2026-03-29 02:30:00'": {0},
        "m < 0": {1}, "f > 100": {1}, "x = X''": {1}, "i IS NULL AND x IS NULL": {2},
    }.items():  # fmt: skip
        assert {row.id for row in frame.filter(condition).collect()} == ids, condition


def test_the_schema_keeps_order_nullability_comments_and_metadata(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    schema = StructType(
        [
            StructField("p", StringType(), True, {"comment": "where"}),
            StructField("id", LongType(), False, {"comment": "which", "unit": "row"}),
            StructField("s", StructType([StructField("a", IntegerType(), False)]), True),
        ]
    )
    it.Table.create(str(tmp_path / "t"), schema, partition_by=["p"])
    assert read(spark, tmp_path / "t").schema == schema


def test_a_frame_keeps_its_version_and_refresh_does_not(spark: SparkSession, tmp_path: Path) -> None:
    """Snapshot isolation; A13 for both ways to name a version."""
    schema = pa.schema([("id", pa.int64())])
    table = it.Table.create(str(tmp_path / "t"), schema)
    table.append(pa.table({"id": [1]}, schema=schema))
    pinned, live = read(spark, tmp_path / "t"), read(spark, tmp_path / "t", refresh="true")
    table.append(pa.table({"id": [2]}, schema=schema))
    assert (pinned.count(), live.count(), read(spark, tmp_path / "t").count()) == (1, 2, 2)
    assert read(spark, tmp_path / "t", versionAsOf=0).count() == 0
    committed = table.history(1)["timestamp"][0].as_py()
    assert read(spark, tmp_path / "t", timestampAsOf=committed.isoformat()).count() == 2
    with pytest.raises(VersionNotFoundError, match="0-2"):
        read(spark, tmp_path / "t", versionAsOf=9)
    with pytest.raises(OptionError, match="cannot be used together"):
        read(spark, tmp_path / "t", versionAsOf=1, timestampAsOf="2026-01-01")


def test_ignoring_missing_files_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64())])
    it.Table.create(str(tmp_path / "t"), schema).append(pa.table({"id": [1]}, schema=schema))
    next((tmp_path / "t").glob("*.split")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(MissingSplitError):
            read(spark, tmp_path / "t").collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_columns_aggregates_and_metadata_are_those_of_parquet(spark: SparkSession, events: Path) -> None:
    frame = read(spark, events, columns="word, id")
    assert frame.columns == ["word", "id"]
    assert read(spark, events).agg(F.sum("id"), F.max("word")).first()[:] == (319_600, "w0799")
    names = (
        read(spark, events).select(F.input_file_name().alias("f"), "_metadata.file_name").distinct().collect()
    )
    assert len(names) == 8
    assert all(row.f.endswith(row.file_name) for row in names)
    plan = read(spark, events).select("id")._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<id:bigint>" in plan
    assert "Batched: true" in plan


def test_two_loads_of_one_version_are_one_relation(spark: SparkSession, events: Path) -> None:
    """equals and hashCode go by table, version and read options, so Spark can reuse exchanges and caches."""
    first, second = read(spark, events), read(spark, events)
    other = read(spark, events, versionAsOf=3)
    same = first._jdf.queryExecution().analyzed().canonicalized()
    assert same.equals(second._jdf.queryExecution().analyzed().canonicalized())
    assert not same.equals(other._jdf.queryExecution().analyzed().canonicalized())


def test_a_table_made_anew_is_not_read_through_an_old_frame(spark: SparkSession, tmp_path: Path) -> None:
    """F4: a directory deleted and re-created at the same path never shows the old table."""
    import shutil

    schema = pa.schema([("id", pa.int64())])
    it.Table.create(str(tmp_path / "t"), schema).append(pa.table({"id": [1]}, schema=schema))
    frame = read(spark, tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    it.Table.create(str(tmp_path / "t"), schema).append(pa.table({"id": [5]}, schema=schema))
    assert [row.id for row in read(spark, tmp_path / "t").collect()] == [5]
    with pytest.raises(TableError, match="created again"):
        frame.filter("id > 0").collect()


def test_wrong_requests_say_what_to_do(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    """A7: not a table is said cleanly, and nothing is created."""
    with pytest.raises(NotATableError):
        read(spark, tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(OptionError, match="versionAsOf"):
        read(spark, events, verzionAsOf=1)
    with pytest.raises(TableError, match="own schema"):
        spark.read.format("indextables").schema("id int").load(str(events))
    with pytest.raises(TableError, match="one table"):
        spark.read.format("indextables").load([str(events), str(events)])


def test_options_go_before_session_before_hadoop_before_table_before_default(
    spark: SparkSession, events: Path
) -> None:
    from indextables.spark.options import READ_KEYS, settings_for

    key = "spark.indextables.write.maxRowsPerSplit"
    properties = {key: "1"}

    def resolved(**given: object) -> int:
        return (
            settings_for(spark, given, READ_KEYS, None)
            .options()
            .over(properties, "t")
            .write.max_rows_per_split
        )

    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    try:
        assert resolved() == 1
        hadoop.set(key, "2")
        assert resolved() == 2
        spark.conf.set(key, "3")
        assert resolved() == 3
        assert resolved(**{"write.maxRowsPerSplit": 4}) == 4
    finally:
        hadoop.unset(key)
        spark.conf.unset(key)


def test_connect_is_idempotent_and_leaves_other_formats_alone(spark: SparkSession, tmp_path: Path) -> None:
    before = type(spark.read).load
    assert it.connect(it.connect(spark)) is spark
    assert type(spark.read).load is before
    spark.range(3).write.parquet(str(tmp_path / "p"))
    assert spark.read.load(str(tmp_path / "p")).count() == 3
    assert spark.newSession().read.format("indextables") is not None
