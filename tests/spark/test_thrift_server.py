"""A Thrift server with plain settings, spoken to by Hive's own JDBC client: what a BI tool sees."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import indextables as it
from indextables.spark.jvm import jar
from support.ports import free_port
from support.recovery import REPAIRED, ROWS_LEFT, damaged_table, moves, repair, verify
from support.spark_sql import CONFS, HOME

pytestmark = pytest.mark.long

STATEMENTS = """
CREATE TABLE logs (id INT, message STRING) USING indextables TBLPROPERTIES ('indexing.typemap.message' = 'text');
INSERT INTO logs VALUES (1, 'disk error'), (2, 'all quiet'), (3, 'network error');
SELECT id AS found FROM logs WHERE message indexquery 'error' ORDER BY id;
DELETE FROM logs WHERE message indexquery 'disk';
UPDATE logs SET message = 'calm' WHERE id = 2;
MERGE INTO logs USING (SELECT 3 AS id, 'gone' AS message UNION ALL SELECT 4, 'new') s ON logs.id = s.id
  WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT concat(id, '=', message) AS left FROM logs ORDER BY id;
SELECT count(*) AS before FROM logs VERSION AS OF 1;
"""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The JDBC address of a server on Derby."""
    port = free_port()
    # Sessions of this server do not see the class loader of `spark.jars`.
    given = {
        **CONFS,
        "spark.driver.extraClassPath": str(jar.ready_jar()),
        "spark.log.level": "INFO",
        "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
    }
    command = [HOME / "bin" / "spark-submit", "--master", "local[2]"]
    command += [part for key, value in given.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
    command += [
        "--hiveconf",
        f"hive.server2.thrift.port={port}",
        "--hiveconf",
        "hive.server2.thrift.bind.host=127.0.0.1",
    ]
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "HiveThriftServer2 started" in line:
            break
    else:
        pytest.fail("".join(said[-100:]))
    threading.Thread(target=process.stdout.read, daemon=True).start()  # or the server waits for a reader
    try:
        yield f"jdbc:hive2://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def beeline(address: str, directory: Path, text: str) -> list[str]:
    """The lines that Hive's client prints for a script."""
    script = directory / "statements.sql"
    script.write_text(text)
    options = ["--silent=true", "--outputformat=tsv2", "--showHeader=false", "-f", str(script)]
    done = subprocess.run(
        [HOME / "bin" / "beeline", "-u", address, *options],
        cwd=directory, env={**os.environ, "SPARK_HOME": str(HOME)}, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = [line.strip().removeprefix("null") for line in done.stdout.splitlines()]
    return [line for line in lines if line]


def test_a_jdbc_client_runs_every_verb_and_recovers_a_table(address, tmp_path):
    damaged = tmp_path / "damaged"
    damaged_table(damaged)
    moved = "".join(f"!sh mv {source} {target}\n" for source, target in moves(damaged))
    lines = beeline(address, tmp_path, f"{STATEMENTS}{repair(damaged)};\n{moved}{verify(damaged)};\n")
    *answers, repaired, rows_left = lines
    found, changed, left = ["1", "3"], ["1", "1", "2\t1\t0\t1"], ["2=calm", "3=gone", "4=new", "3"]
    assert answers == [*found, *changed, *left], lines
    assert tuple(repaired.split("\t")[2:]) == REPAIRED
    assert rows_left == ROWS_LEFT
    table = it.Table.open(tmp_path / "warehouse" / "logs")
    assert [row["operation"] for row in table.history().to_pylist()][:3] == ["MERGE", "UPDATE", "DELETE"]
