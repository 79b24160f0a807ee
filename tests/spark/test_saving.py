"""save(): every mode commits once or changes nothing, and what does not fit is refused before a row is written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import indextables as it
from indextables.errors import (
    ConflictError,
    OptionError,
    PredicateError,
    SchemaError,
    TableError,
)
from indextables.spark.write.job import last_writes


def rows(spark: SparkSession, ids: range, p: str = "id % 3") -> DataFrame:
    return spark.range(ids.start, ids.stop, 1, 2).selectExpr(
        "id", "concat('m', id) AS message", f"cast({p} AS int) AS p"
    )


def save(frame: DataFrame, path: Path, mode: str = "error", **options: object) -> None:
    frame.write.format("indextables").mode(mode).options(**options).save(str(path))


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    return spark.read.format("indextables").options(**options).load(str(path))


def ids(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row.id for row in read(spark, path).select("id").collect())


def fingerprint(path: Path) -> dict[str, str]:
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """Ids 0 to 8 in three partitions, made without a Spark job."""
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.int64()), ("message", pa.string()), ("p", pa.int32())])
    made = it.Table.create(str(path), schema, partition_by=["p"])
    numbers = list(range(9))
    made.append(
        pa.table(
            {"id": numbers, "message": [f"m{i}" for i in numbers], "p": [i % 3 for i in numbers]},
            schema=schema,
        )
    )
    return path


@pytest.mark.core
def test_the_first_save_makes_a_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "new"
    rows(spark, range(20)).write.format("indextables").partitionBy("p").option("userMetadata", "hello").save(
        str(path)
    )
    made = it.Table.open(str(path))
    assert (made.partition_columns, made.version, made.count()) == (("p",), 1, 20)
    assert made.history(1)["user_metadata"][0].as_py() == "hello"
    assert ids(spark, path) == list(range(20))
    assert last_writes(1)[0][1].rows == 20


def test_error_and_ignore_leave_a_table_as_it_is(spark: SparkSession, table: Path) -> None:
    before = fingerprint(table)
    with pytest.raises(TableError, match="table already"):
        save(rows(spark, range(3)), table)
    save(rows(spark, range(3)), table, "ignore")
    assert fingerprint(table) == before


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_a_table_that_has_never_been_written_to_takes_its_first_rows(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    """What a save that was killed between versions 0 and 1 has left is finished by the next."""
    schema = pa.schema([("id", pa.int64()), ("message", pa.string()), ("p", pa.int32())])
    it.Table.create(tmp_path / "t", schema)
    save(rows(spark, range(3)), tmp_path / "t", mode)
    assert ids(spark, tmp_path / "t") == [0, 1, 2]
    with pytest.raises(ConflictError, match="prepared on version 0"):
        save(rows(spark, range(3)), tmp_path / "t", "append", expectedVersion=0)


def test_append_remembers_the_partitioning(spark: SparkSession, table: Path) -> None:
    save(rows(spark, range(9, 12)), table, "append")
    assert ids(spark, table) == list(range(12))
    assert {add.partition_values["p"] for add in it.TransactionLog.open(str(table)).list_files(0)} == {
        "0",
        "1",
        "2",
    }
    with pytest.raises(SchemaError, match="partitioned by p, not by id"):
        rows(spark, range(2)).write.format("indextables").mode("append").partitionBy("id").save(str(table))


def test_overwrite_replaces_everything_in_one_version(spark: SparkSession, table: Path) -> None:
    """A9."""
    save(rows(spark, range(50, 53)), table, "overwrite")
    assert ids(spark, table) == [50, 51, 52]
    assert it.Table.open(str(table)).version == 2
    assert read(spark, table, versionAsOf=1).count() == 9


def test_empty_frames_append_nothing_and_overwrite_to_nothing(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    save(rows(spark, range(0)), table, "append")
    assert it.Table.open(str(table)).version == 1
    save(rows(spark, range(0)), table, "overwrite")
    assert ids(spark, table) == []
    save(rows(spark, range(0)), tmp_path / "empty")
    assert read(spark, tmp_path / "empty").columns == ["id", "message", "p"]


@pytest.mark.core
def test_replace_where_replaces_those_rows_only(spark: SparkSession, table: Path) -> None:
    save(rows(spark, range(100, 102), p="1"), table, "overwrite", replaceWhere="p = 1")
    assert ids(spark, table) == [0, 2, 3, 5, 6, 8, 100, 101]
    save(rows(spark, range(0)), table, "overwrite", replaceWhere="id < 3")
    assert ids(spark, table) == [3, 5, 6, 8, 100, 101]
    before = fingerprint(table)
    with pytest.raises(PredicateError, match="outside the condition"):
        save(rows(spark, range(5)), table, "overwrite", replaceWhere="p = 2")
    assert fingerprint(table) == before


def test_conditions_are_read_in_the_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    """H11: the same text means another instant in another zone, for replaceWhere, DELETE and search alike."""
    frame = spark.sql("SELECT id, timestamp_micros(id * 3600000000) AS ts FROM range(10)")
    save(frame, tmp_path / "t")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        condition = "ts < TIMESTAMP '1970-01-01 10:00:00'"
        assert sorted(row.id for row in frame.filter(condition).collect()) == [0]
        save(frame.filter("false"), tmp_path / "t", "overwrite", replaceWhere=condition)
        assert ids(spark, tmp_path / "t") == list(range(1, 10))
        spark.sql(f"DELETE FROM INDEXTABLES '{tmp_path / 't'}' WHERE ts < TIMESTAMP '1970-01-01 12:00:00'")
        assert ids(spark, tmp_path / "t") == list(range(3, 10))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.core
def test_dynamic_overwrite_replaces_the_partitions_it_writes(spark: SparkSession, table: Path) -> None:
    save(rows(spark, range(200, 201), p="2"), table, "overwrite", partitionOverwriteMode="dynamic")
    assert ids(spark, table) == [0, 1, 3, 4, 6, 7, 200]
    null = rows(spark, range(300, 301), p="NULL")
    save(null, table, "overwrite", partitionOverwriteMode="dynamic")
    save(null, table, "overwrite", partitionOverwriteMode="dynamic")
    assert ids(spark, table) == [0, 1, 3, 4, 6, 7, 200, 300]


def test_overwrite_schema_changes_columns_and_partitioning(spark: SparkSession, table: Path) -> None:
    frame = spark.range(2).selectExpr("id", "'x' AS kind")
    with pytest.raises(SchemaError, match="kind"):
        save(frame, table, "overwrite")
    frame.write.format("indextables").mode("overwrite").option("overwriteSchema", "true").partitionBy(
        "kind"
    ).save(str(table))
    assert read(spark, table).columns == ["id", "kind"]
    assert it.Table.open(str(table)).partition_columns == ("kind",)
    assert read(spark, table, versionAsOf=1).columns == ["id", "message", "p"]


@pytest.mark.core
def test_merge_schema_adds_columns_and_without_it_the_difference_is_shown(
    spark: SparkSession, table: Path
) -> None:
    wider = rows(spark, range(9, 10)).withColumn("extra", F.lit(1.5))
    before = fingerprint(table)
    with pytest.raises(SchemaError, match=r"\+ extra"):
        save(wider, table, "append")
    with pytest.raises(SchemaError, match="~ message"):
        save(rows(spark, range(1)).withColumn("message", F.array(F.lit(1))), table, "append")
    assert fingerprint(table) == before
    save(wider, table, "append", mergeSchema="true")
    found = {row.id: row.extra for row in read(spark, table).collect()}
    assert (found[9], found[0]) == (1.5, None)


def test_columns_match_by_name_and_a_null_column_takes_the_tables_type(
    spark: SparkSession, table: Path
) -> None:
    save(spark.range(9, 10).selectExpr("cast(0 AS int) AS p", "NULL AS message", "id"), table, "append")
    assert read(spark, table).filter("id = 9").first()[:] == (9, None, 0)


def test_overwriting_what_was_read_does_not_lose_a_foreign_commit(spark: SparkSession, table: Path) -> None:
    """The commit table of the design: a self-overwrite expects the version it read."""
    frame = read(spark, table)
    save(frame.filter("id < 4"), table, "overwrite")
    assert ids(spark, table) == [0, 1, 2, 3]
    stale = read(spark, table)
    save(rows(spark, range(70, 71)), table, "append")
    with pytest.raises(ConflictError):
        save(stale.filter("id < 2"), table, "overwrite")
    assert ids(spark, table) == [0, 1, 2, 3, 70]


def test_a_transaction_is_written_once(spark: SparkSession, table: Path) -> None:
    """E10: the same or an older number of an application writes nothing."""
    for number in (4, 4, 3):
        save(rows(spark, range(30, 31)), table, "append", txnAppId="job", txnVersion=number)
    assert ids(spark, table).count(30) == 1
    save(rows(spark, range(31, 32)), table, "append", txnAppId="job", txnVersion=5)
    assert 31 in ids(spark, table)
    with pytest.raises(OptionError, match="belong together"):
        save(rows(spark, range(1)), table, "append", txnAppId="job")


def test_a_failed_job_leaves_nothing_visible_and_no_table(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    broken = rows(spark, range(20)).withColumn(
        "message", F.expr("if(id = 19, raise_error('task failed'), message)")
    )
    for path, mode in ((table, "append"), (table, "overwrite"), (tmp_path / "new", "error")):
        with pytest.raises(Exception, match="task failed"):
            save(broken, path, mode)
    assert ids(spark, table) == list(range(9))
    assert it.Table.open(str(table)).version == 1
    assert not it.Table.exists(str(tmp_path / "new"))
    save(rows(spark, range(2)), tmp_path / "new")
    assert ids(spark, tmp_path / "new") == [0, 1]


def test_a_null_in_a_not_null_column_is_refused_as_our_error(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path / "t")
    with pytest.raises(SchemaError, match="id"):
        save(spark.range(2).selectExpr("nullif(id, 1) AS id"), tmp_path / "t", "append")
    assert ids(spark, tmp_path / "t") == [0, 1]


@pytest.mark.core
def test_optimize_write_gathers_partitions_into_few_files(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 400, 1, 8).selectExpr("id", "'m' AS message", "cast(id % 4 AS int) AS p")
    frame.write.format("indextables").partitionBy("p").option("optimizeWrite", "true").save(
        str(tmp_path / "t")
    )
    assert last_writes(1)[0][1].files_added == 4
    assert ids(spark, tmp_path / "t") == list(range(400))


@pytest.mark.parametrize("option", ["replaceWhere", "overwriteSchema"])
def test_options_of_overwrite_are_refused_elsewhere(spark: SparkSession, table: Path, option: str) -> None:
    with pytest.raises(OptionError, match="overwrite"):
        save(rows(spark, range(1)), table, "append", **{option: "true"})


def test_buckets_are_refused_by_name(spark: SparkSession) -> None:
    frame = rows(spark, range(1))
    with pytest.raises(AnalysisException, match="bucketBy"):
        frame.write.format("indextables").bucketBy(2, "id").save("/nowhere")


def test_provider_names_of_the_specifications_work(spark: SparkSession, tmp_path: Path) -> None:
    for number, name in enumerate(
        (
            "io.indextables.spark.core.IndexTables4SparkTableProvider",
            "io.indextables.provider.IndexTablesProvider",
        )
    ):
        path = str(tmp_path / str(number))
        rows(spark, range(2)).write.format(name).save(path)
        assert spark.read.format(name).load(path).count() == 2


TYPES = """
    SELECT id, cast(id AS tinyint) a, cast(id AS smallint) b, cast(id AS int) c, cast(id AS float) d,
      cast(id AS double) / 3 e, id = 1 f, cast(id AS decimal(38, 18)) / 7 g, cast('bytes' AS binary) h,
      timestamp_micros(id - 1) i, cast(timestamp_micros(id) AS timestamp_ntz) j, date_add(DATE '1969-12-31', cast(id AS int)) k,
      array(id, NULL) l, map('k', struct(id AS x, NULL AS y)) m, struct(array(struct('z' AS q)) AS r) n,
      cast(NULL AS string) o, cast('ab' AS char(4)) p, cast('ab' AS varchar(4)) q, '' r
    FROM range(3)
"""


def test_all_types_come_back(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(TYPES.replace("NULL AS y", "cast(NULL AS int) AS y"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        save(frame, tmp_path / "t")
        found = read(spark, tmp_path / "t")
        assert [f.dataType for f in found.schema] == [f.dataType for f in frame.schema]
        assert sorted(found.collect()) == sorted(frame.collect())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted(read(spark, tmp_path / "t").collect()) == sorted(frame.collect())


def test_what_a_table_cannot_store_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match="void"):
        save(spark.sql("SELECT NULL AS n"), tmp_path / "t")
    with pytest.raises(SchemaError, match="(?i)a"):
        spark.conf.set("spark.sql.caseSensitive", "true")
        try:
            save(spark.sql("SELECT 1 AS a, 2 AS A"), tmp_path / "t")
        finally:
            spark.conf.unset("spark.sql.caseSensitive")
    assert not (tmp_path / "t").exists()


def test_a_table_deleted_and_saved_again_is_new(spark: SparkSession, table: Path) -> None:
    """F4 for a writer: what the session remembers of the old table does not count."""
    import shutil

    assert ids(spark, table) == list(range(9))
    shutil.rmtree(table)
    save(spark.range(2), table)
    assert ids(spark, table) == [0, 1]


@pytest.mark.core
def test_another_front_end_saves_with_its_partitions_and_the_names_of_its_options(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Scala and R call the writer of the JVM, as here."""
    path = str(tmp_path / "t")
    frame = spark.createDataFrame(
        [(1, "a", "An Error"), (2, "b", "quiet")], "id INT, Day STRING, Message STRING"
    )
    writer = frame._jdf.write().format("indextables").option("indexing.typemap.Message", "text")
    by = spark._sc._gateway.new_array(spark._jvm.java.lang.String, 1)
    by[0] = "Day"
    writer.partitionBy(by).save(path)
    table = it.Table.open(path)
    assert table.partition_columns == ("Day",)
    assert table.search("error", columns=["id"]).read_all()["id"].to_pylist() == [1]
