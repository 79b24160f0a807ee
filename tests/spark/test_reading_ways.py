"""One read suite over every way: native, in Python on the executors, planned, Connect, and a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from indextables.errors import TableError
from indextables.log.scans import last_scans
from indextables.spark.load import load_table
from indextables.spark.requests import ReadRequest
from support import spark_reading
from support.spark_versions import needs


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("ways") / "t")
    spark_reading.build(path)
    return path


@pytest.mark.parametrize("way", ["native", "arrow", "planned"])
def test_every_way_gives_the_same_answers(spark: SparkSession, table: str, way: str) -> None:
    frame = load_table(spark, ReadRequest(table), way=way)
    assert spark_reading.answers(frame) == spark_reading.expected()


def test_names_of_files_alone_are_refused_where_rows_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    spark_reading.build(str(tmp_path / "t"))
    said = spark_reading.without_some(spark, str(tmp_path / "t"))
    assert said == spark_reading.expected_without_some()
    with pytest.raises(TableError, match="would bring deleted rows back"):
        load_table(spark, ReadRequest(str(tmp_path / "t")), way="planned")


@pytest.mark.parametrize("engine", ["reference", "columnar", "spark"])
def test_every_engine_gives_the_same_answers(spark: SparkSession, table: str, engine: str) -> None:
    """K1 through the reader."""
    frame = spark.read.format("indextables").option("engine", engine).load(table)
    assert spark_reading.answers(frame) == spark_reading.expected()
    assert last_scans(limit=1)[0].engine == engine


def test_files_that_share_a_name_are_told_apart_in_a_search(spark: SparkSession, tmp_path: Path) -> None:
    """Names carry a UUID, but a log made by hand may name two files alike in two directories."""
    import shutil
    from dataclasses import replace

    import indextables as it

    spark_reading.build(str(tmp_path / "t"))
    log = it.TransactionLog.open(str(tmp_path / "t"))
    add = log.list_files(0)[0]
    copy = f"copy/{add.path.rpartition('/')[2]}"
    (tmp_path / "t" / "copy").mkdir()
    shutil.copy(tmp_path / "t" / add.path, tmp_path / "t" / copy)
    log.add_files([replace(add, path=copy)])
    text = f"SELECT id, message indexquery 'seven' AS hit FROM indextables.`{tmp_path / 't'}`"
    found = [tuple(row) for row in spark.sql(text).collect()]
    assert len(found) == 40 + add.num_records
    assert {hit for number, hit in found if number % 7 == 0} == {True}
    assert {hit for number, hit in found if number % 7} == {False}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("connect", marks=needs("the server of Spark Connect in PySpark's package")),
        "cluster",
    ],
)
def test_in_a_session_of_its_own(tmp_path: Path, kind: str) -> None:
    """Spark Connect, and two executors that share nothing with the driver but the directory."""
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(tests), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", "support.spark_reading", kind, str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert said["answers"] == json.loads(json.dumps(spark_reading.expected()))
    assert said["searches"] == spark_reading.expected_searches()
    assert said["written"] == [*range(10), *range(30, 40)]
    assert said["inserted"] == 21
    assert said["search_df"] == [21, 28, 35]
    assert said["live"] == spark_reading.expected_without_some()
    assert said["error"] == "NotATableError"
    if kind == "connect":
        assert said["wrapped"] == ["convert_exception", "load", "insertInto", "sql", "save"]
        assert said["differing"] == []
        assert said["others"] == [[1, "mon"]] * 2
