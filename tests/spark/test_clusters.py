"""Programs that `spark-submit` sends to executors in processes of their own: a standalone cluster, and `local-cluster`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import indextables as it
from support.ports import free_port
from support.spark_sql import HOME

pytestmark = pytest.mark.long

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import indextables as it

path = sys.argv[1]
spark = it.connect(it.configure(SparkSession.builder).getOrCreate())
rows = spark.range(0, 200, 1, 4).selectExpr("id", "if(id % 7 = 0, 'an error', 'all quiet') AS message")
rows.write.format("indextables").option("indexing.typemap.message", "text").save(path)
spark.sql(f"DELETE FROM indextables.`{path}` WHERE id < 10")
found = spark.read.format("indextables").load(path).filter("message indexquery 'error'")
ids = sorted(row.id for row in found.collect())
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("executors", executors, "hits", len(ids), "first", ids[0], flush=True)
spark.stop()
"""
SMALL = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def daemon(directory: Path, word: str, *arguments: str) -> Iterator[None]:
    """A process of a standalone cluster, from when it has said a word."""
    process = subprocess.Popen(
        [HOME / "bin" / "spark-class", *arguments],
        cwd=directory, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            break
    else:
        raise AssertionError("".join(lines))
    drain = threading.Thread(target=process.stdout.read, daemon=True)
    drain.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
        drain.join(60)


def environment() -> dict[str, str]:
    own = {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **own}


@pytest.mark.parametrize("cluster", ["standalone", "local-cluster"])
def test_a_program_runs_on_executors_of_a_cluster(tmp_path: Path, cluster: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    master, confs = "local-cluster[2,1,512]", SMALL
    with ExitStack() as stack:
        if cluster == "standalone":
            port = free_port()
            master, confs = f"spark://127.0.0.1:{port}", {**SMALL, "spark.cores.max": "2"}
            at = ["--host", "127.0.0.1", "--webui-port", "0"]
            package = "org.apache.spark.deploy"
            listening = ["Starting Spark master", f"{package}.master.Master", "--port", str(port)]
            stack.enter_context(daemon(tmp_path, *listening, *at))
            worker = ["Successfully registered with master", f"{package}.worker.Worker", master]
            size = ["--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
            stack.enter_context(daemon(tmp_path, *worker, *size, *at))
        done = subprocess.run(
            [HOME / "bin" / "spark-submit", "--master", master]
            + [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
            + [program, tmp_path / "t"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert "executors 2 hits 27 first 14" in done.stdout, done.stdout[-500:] + done.stderr[-3000:]
    assert it.Table.open(str(tmp_path / "t")).count() == 190
