"""Partition values and types that paths, logs and readers like to get wrong, written and read by Spark."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

import indextables as it
from indextables.errors import MissingSplitError, PredicateError, SchemaError
from indextables.spark.load import load_table
from indextables.spark.requests import ReadRequest
from support.spark_versions import needs

ODD = [
    "100%25", "a%2Fb", "__HIVE_DEFAULT_PARTITION__", "🙂", "a/b=c", "", None, " ", ".", "..", "x\n", "é", "e\u0301",
    "'quoted'", '"', "\\", "{}", "*?[a]", "C:\\x", "ä" * 40,
]  # fmt: skip


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("values") / "t")
    rows = [Row(id=number, p=value) for number, value in enumerate(ODD)]
    frame = spark.createDataFrame(rows, "id long, p string").repartition(1)
    frame.write.format("indextables").partitionBy("p").save(path)
    return path


@pytest.mark.parametrize("way", ["native", "arrow", "planned"])
def test_odd_partition_values_written_by_spark_come_back(spark: SparkSession, odd: str, way: str) -> None:
    frame = load_table(spark, ReadRequest(odd), way=way)
    assert {row.id: row.p for row in frame.collect()} == dict(enumerate(ODD))


def test_each_odd_value_finds_its_own_row(spark: SparkSession, odd: str) -> None:
    frame = spark.read.format("indextables").load(odd)
    for number, value in enumerate(ODD):
        found = frame.filter(frame.p.eqNullSafe(value)).collect()
        assert [row.id for row in found] == [number], value


def test_dynamic_overwrite_of_odd_values_replaces_those_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    frame = spark.createDataFrame([Row(id=n, p=v) for n, v in enumerate(ODD)], "id long, p string")
    frame.repartition(1).write.format("indextables").partitionBy("p").save(path)
    again = frame.filter("id < 7").selectExpr("id + 100 AS id", "p").repartition(1)
    again.write.format("indextables").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    found = {row.p: row.id for row in spark.read.format("indextables").load(path).collect()}
    assert found == {value: number + 100 * (number < 7) for number, value in enumerate(ODD)}


@pytest.mark.parametrize("way", ["native", "arrow", "planned"])
def test_a_missing_file_is_never_fewer_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    path = tmp_path / "t"
    spark.range(0, 20, 1, 2).write.format("indextables").save(str(path))
    frame = load_table(spark, ReadRequest(str(path)), way=way)
    next(path.glob("*.split")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception) as failed:  # noqa: PT011  (which one is said below)
            frame.collect()
        if way == "native":
            assert isinstance(failed.value, MissingSplitError)
        with pytest.raises(MissingSplitError):
            spark.read.format("indextables").load(str(path)).collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_eight_threads_write_read_and_search_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """Every thread sees whole commits only, and no commit is lost."""
    path = str(tmp_path / "t")
    first = spark.range(0, 10, 1, 1).selectExpr("id", "concat('word', id) AS message")
    first.write.format("indextables").option("indexing.typemap.message", "text").save(path)
    pinned = spark.read.format("indextables").load(path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            if number % 2:
                part = spark.range(number * 10, number * 10 + 10, 1, 1)
                rows = part.selectExpr("id", "concat('word', id) AS message")
                rows.write.format("indextables").mode("append").save(path)
            assert sorted(map(tuple, pinned.collect())) == [(n, f"word{n}") for n in range(10)]
            found = spark.sql(f"SELECT id FROM indextables.`{path}` WHERE message indexquery 'word{number}'")
            assert [row.id for row in found.collect()] == [number]
            assert spark.read.format("indextables").load(path).count() % 10 == 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    wanted = sorted([*range(10), *range(10, 20), *range(30, 40), *range(50, 60), *range(70, 80)])
    assert sorted(row.id for row in spark.read.format("indextables").load(path).collect()) == wanted


STORED = {
    "variant": "parse_json('{\"a\": [1, null]}')",
    "variants inside": "named_struct('one', parse_json('1'), 'more', array(parse_json('[]'), NULL))",
    "day-time interval": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "year-month interval": "INTERVAL '1-2' YEAR TO MONTH",
    "timestamp_ntz": "TIMESTAMP_NTZ'0001-01-01 00:00:00.000001'",
    "old date": "DATE'0001-01-01'",
    "last date": "DATE'9999-12-31'",
    "old timestamp": "TIMESTAMP'1582-10-04 12:00:00'",
    "decimal(38,0)": "CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))",
    "decimal(38,38)": "CAST('-0.99999999999999999999999999999999999999' AS DECIMAL(38, 38))",
    "decimal(10,2)": "CAST('-12345678.90' AS DECIMAL(10, 2))",
    "not a number": "CAST('NaN' AS DOUBLE)",
    "negative zero": "CAST('-0.0' AS DOUBLE)",
    "empty binary": "X''",
    "empty array": "CAST(array() AS ARRAY<STRUCT<a: INT>>)",
    "map of maps": "map('a', map(1, CAST(NULL AS STRING)))",
    "null array": "CAST(NULL AS ARRAY<INT>)",
    "null struct": "CAST(NULL AS STRUCT<a: INT>)",
    "collated string": "'Straße' COLLATE UTF8_LCASE",
}


REFUSED = frozenset({"day-time interval", "year-month interval"})


NEEDED = {"variant": "variants", "variants inside": "variants", "collated string": "collations"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs(NEEDED[name])] if name in NEEDED else []) for name in STORED]
)
def test_what_parquet_stores_comes_back_as_from_parquet(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """A type is stored as Spark's Parquet stores it, or refused by name before anything is written."""
    frame = spark.sql(f"SELECT 1 AS id, {STORED[name]} AS v UNION ALL SELECT 2, NULL")
    path = str(tmp_path / "t")
    if name in REFUSED:
        # Spark 3.5 refuses intervals itself, for any source.
        with pytest.raises(
            (SchemaError, AnalysisException),
            match=r"column v has the type .* cannot store|Cannot save interval",
        ):
            frame.write.format("indextables").save(path)
        assert not Path(path).exists()
        return
    frame.write.format("indextables").save(path)
    # Spark 3.5 writes no day before 1582 unless it is told how.
    told = [f"spark.sql.parquet.{kind}RebaseModeInWrite" for kind in ("datetime", "int96")]
    for setting in told:
        spark.conf.set(setting, "CORRECTED")
    frame.write.parquet(str(tmp_path / "parquet"))
    for setting in told:
        spark.conf.unset(setting)
    ours = spark.read.format("indextables").load(path)
    oracle = spark.read.parquet(str(tmp_path / "parquet"))
    assert ours.schema["v"].dataType == frame.schema["v"].dataType
    texts = [sorted(map(str, found.collect())) for found in (ours, oracle)]
    assert texts[0] == texts[1]


def test_commits_carry_the_users_words(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("indextables").option("userMetadata", "nightly load").save(path)
    spark.range(2).write.format("indextables").mode("append").option("userMetadata", "again").save(path)
    said = it.Table.open(path).history().column("user_metadata").to_pylist()
    assert said[0] == "again"
    assert "nightly load" in said


def test_sessions_and_threads_may_connect_at_once(spark: SparkSession, tmp_path: Path) -> None:
    """connect is idempotent, and every session of a context knows the format and the statements."""
    path = str(tmp_path / "t")
    spark.range(3).write.format("indextables").save(path)
    answers: list[int] = []

    def work() -> None:
        session = it.connect(it.connect(spark.newSession()))
        answers.append(session.read.format("indextables").load(path).count())
        answers.append(session.sql(f"SELECT * FROM indextables.`{path}`").count())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [3] * 8


def test_an_old_spark_is_refused_with_what_to_do() -> None:
    from indextables.errors import TableError

    class Old:
        version = "3.4.1"

    with pytest.raises(TableError, match=r"3\.5 or later .* 3\.4\.1.*pip install"):
        it.connect(Old())


@needs("variants")
def test_variants_are_read_in_every_way_and_survive_maintenance(spark: SparkSession, tmp_path: Path) -> None:
    """Natively, through Python, without Spark; after a second append, a merge and a rebuilt log."""
    path = str(tmp_path / "t")
    frame = spark.sql(
        "SELECT id, if(id = 1, NULL, parse_json(concat('{\"a\":', id, '}'))) AS v FROM range(3)"
    )
    for _ in range(2):
        frame.coalesce(1).write.format("indextables").mode("append").save(path)
    it.Table.open(path).merge_splits(target_size="1M")
    wanted = sorted([(0, 0), (1, None), (2, 2)] * 2, key=str)
    for way in ("native", "planned", "arrow"):
        read = load_table(spark, ReadRequest(path), way=way)
        assert read.schema["v"].dataType.simpleString() == "variant"
        found = read.selectExpr("id", "variant_get(v, '$.a', 'int')").collect()
        assert sorted(map(tuple, found), key=str) == wanted, way
    table = it.Table.open(path)
    assert table.count("v IS NULL") == 2
    with pytest.raises(PredicateError, match="is variant and has no field"):
        table.count("v.value IS NULL")
    log = f"{path}/_transaction_log"
    it.sql(f"REPAIR INDEXFILES TRANSACTION LOG '{log}' AT LOCATION '{path}/_new' FROM SPLITS")
    shutil.rmtree(log)
    Path(path, "_new").rename(log)
    assert it.Table.open(path).spark_schema == table.spark_schema
