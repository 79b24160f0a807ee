"""bin/spark-sql as a real process on a Hive metastore: no Python driver, and the tables are there after a restart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import indextables as it
from indextables.spark.catalog import CATALOG, EXTENSIONS
from indextables.spark.jar import made

pytestmark = pytest.mark.slow


def spark_sql(root: Path, statements: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    settings = {
        "spark.jars": str(made()),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalog.spark_catalog": CATALOG,
        "spark.sql.warehouse.dir": f"{root}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/metastore;create=true",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-sql"), "--master", "local[1]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    return subprocess.run(
        [*command, "-e", statements], capture_output=True, text=True, cwd=root, env=environment, check=False
    )


def test_spark_sql_changes_rows_and_finds_them_again_after_a_restart(tmp_path):
    first = spark_sql(
        tmp_path,
        "CREATE TABLE t (id INT, day STRING, message STRING) USING indextables PARTITIONED BY (day) "
        "TBLPROPERTIES ('indexing.typemap.message' = 'text');"
        "INSERT INTO t VALUES (1, 'a', 'one'), (2, 'b', 'two'), (3, 'b', 'three');"
        "UPDATE t SET message = 'changed' WHERE id = 1;"
        "DELETE FROM t WHERE id = 2;"
        "MERGE INTO t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, day) VALUES (9, 'c');",
    )
    assert first.returncode == 0, first.stdout + first.stderr
    second = spark_sql(tmp_path, "SELECT id, message FROM t ORDER BY id; SHOW PARTITIONS t;")
    assert second.stdout.split() == ["1", "changed", "3", "three", "9", "NULL", "day=a", "day=b", "day=c"]
    table = it.Table.open(f"{tmp_path}/warehouse/t")
    operations = table.history().column("operation").to_pylist()
    assert operations[:4] == ["MERGE", "DELETE", "UPDATE", "WRITE"]
    assert table.count(query="message:changed") == 1


def test_a_python_that_is_missing_is_an_error_that_says_so(tmp_path):
    failed = spark_sql(tmp_path, "CREATE TABLE t (id INT) USING indextables", python="/nowhere/python")
    assert failed.returncode != 0
    assert "/nowhere/python cannot be started" in failed.stderr + failed.stdout
