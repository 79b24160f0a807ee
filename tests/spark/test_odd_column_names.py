"""Columns whose names hold a dot, a backtick, a comma or a space are columns like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import indextables as it
from indextables.storage.store import open_store
from support.deltarows import put_file
from support.deltatables import DeltaLog, schema_string

NAMES = ["id", "a.b", "c`d", "e f", "g,h"]
ROWS = [(1, "x%y", "k", "u", "1"), (2, "xzy", "l", "v", "2")]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, NAMES)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("partition", [None, "a.b", "c`d", "g,h"])
@pytest.mark.parametrize("optimize", ["false", "true"])
def test_rows_are_written_and_read_whatever_the_columns_are_called(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, partition: str | None, optimize: str
) -> None:
    path = str(tmp_path / "t")
    writer = frame.write.format("indextables").option("write.optimizeWrite", optimize)
    (writer if partition is None else writer.partitionBy(partition)).save(path)
    frame.write.format("indextables").mode("append").save(path)
    read = spark.read.format("indextables").load(path)
    assert read.columns == NAMES
    assert sorted(tuple(row) for row in read.collect()) == sorted(ROWS * 2)
    if partition is not None:
        value = ROWS[0][NAMES.index(partition)]
        assert read.filter(f"{quoted(partition)} = '{value}'").count() == 2
        dropped = f"DROP INDEXTABLES PARTITIONS FROM '{path}' WHERE {quoted(partition)} = '{value}'"
        assert spark.sql(dropped).first()["partitions_dropped"] == 1
        assert it.Table.open(path).count() == 2


def test_conditions_and_choices_name_such_columns(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    """replaceWhere, DELETE, the `columns` option, to_df, INSERT and a NULL without a type."""
    path = str(tmp_path / "t")
    frame.write.format("indextables").save(path)
    frame.filter("`c``d` = 'k'").write.format("indextables").mode("overwrite").option(
        "replaceWhere", "`c``d` = 'k'"
    ).save(path)
    chosen = spark.read.format("indextables").option("columns", "id, `g,h`, `c``d`, `a.b`").load(path)
    assert chosen.columns == ["id", "g,h", "c`d", "a.b"]
    table = it.Table.open(path, spark=spark)
    assert [tuple(row) for row in table.to_df(where="`a.b` = 'xzy'", columns=["c`d"]).collect()] == [("l",)]
    assert [tuple(row) for row in table.to_df(where=it.col("`c``d`") == "l", columns=["id"]).collect()] == [
        (2,)
    ]
    frame.withColumn("a.b", F.lit(None)).write.format("indextables").mode("append").save(path)
    assert it.Table.open(path).count("`a.b` IS NULL") == 2
    spark.read.format("indextables").load(path).createOrReplaceTempView("odd_names")
    spark.sql("INSERT INTO odd_names (id, `a.b`) VALUES (9, 'nine')")
    spark.sql(f"DELETE FROM INDEXTABLES '{path}' WHERE `c``d` = 'k'")
    assert sorted(it.Table.open(path).scan(columns=["id"]).read_all()["id"].to_pylist()) == [2, 2, 9]


def test_such_columns_are_indexed_searched_and_have_statistics(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    typed = {"indexing.typemap.a.b": "text", "indexing.typemap.c`d": "text"}
    wanted = {"dataSkippingStatsColumns": "`a.b`, `c``d`"}
    frame.coalesce(1).write.format("indextables").options(**typed, **wanted).save(path)
    assert set(it.TransactionLog.open(path).list_files()[0].min_values) == {"a.b", "c`d"}
    for condition in ("`a.b` indexquery 'xzy'", "indexquery(`c``d`, 'l')"):
        found = spark.sql(f"SELECT id FROM indextables.`{path}` WHERE {condition}")
        assert [row.id for row in found.collect()] == [2]


@pytest.mark.parametrize(
    ("pattern", "escape", "found"),
    [("50!%", "!", [1]), ("a!_b", "!", [3]), ("5!!0", "!", [5]), ("a_b", "!", [3, 4]), ("x\\\\y", "\\", [6])],
)
def test_like_with_an_escape_means_the_same_on_spark_and_in_python(
    spark: SparkSession, tmp_path: Path, pattern: str, escape: str, found: list[int]
) -> None:
    path = str(tmp_path / "t")
    texts = [(1, "50%"), (2, "500"), (3, "a_b"), (4, "axb"), (5, "5!0"), (6, "x\\y"), (7, None)]
    spark.createDataFrame(texts, "id long, t string").write.format("indextables").save(path)
    where = it.col("t").like(pattern, escape)
    python = sorted(it.Table.open(path).scan(where=where).read_all()["id"].to_pylist())
    on_spark = sorted(row.id for row in it.Table.open(path, spark=spark).to_df(where=where).collect())
    assert python == on_spark == found


_OTHER_PROCESS = """
import sys
import pyarrow as pa
import indextables as it
table = it.Table.open(sys.argv[1])
for n in range(30):
    table.append(pa.table({"id": [n]}))
table.truncate_history()
"""


def test_the_newest_version_loads_right_after_another_process_truncated_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The session's handle may have looked a second ago; the version it saw is gone."""
    path = str(tmp_path / "t")
    spark.range(1).write.format("indextables").option("transaction.maxStalenessSeconds", "600").save(path)
    reader = spark.read.format("indextables").option("transaction.maxStalenessSeconds", "600")
    live = reader.option("refresh", "true").load(path)
    assert (reader.load(path).count(), live.count()) == (1, 1)
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, path], check=True)
    assert (reader.load(path).count(), live.count()) == (31, 31)


def test_columns_of_a_delta_table_are_chosen_whatever_they_are_called(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = DeltaLog(open_store(tmp_path / "delta"), schema_string(**{"id": "long", "c`d": "string"}))
    log.commit(put_file(log, "one.parquet", pa.table({"id": [1], "c`d": ["k"]})))
    chosen = spark.read.format("indextables").option("columns", "`c``d`").load(log.store.uri)
    assert [tuple(row) for row in chosen.collect()] == [("k",)]
    table = it.DeltaTable.open(log.store.uri, spark=spark)
    assert [tuple(row) for row in table.to_df(columns=["c`d"]).collect()] == [("k",)]


def test_a_view_may_have_a_backtick_in_its_name(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.select("id", F.col("`e f`").alias("text")).write.format("indextables").option(
        "indexing.typemap.text", "text"
    ).save(str(tmp_path / "t"))
    spark.sql(f"CREATE TEMPORARY VIEW `a``b` USING indextables OPTIONS (path '{tmp_path / 't'}')")
    found = spark.sql("SELECT id FROM `a``b` WHERE text indexquery 'u'").collect()
    assert [row["id"] for row in found] == [1]
