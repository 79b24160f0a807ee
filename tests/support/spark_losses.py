"""Writes on a cluster of two machines whose tasks get lost: an executor dies, or a straggler has a twin.

Spark starts a twin only on another host than the straggler's. The two workers
of this cluster are two addresses of the loopback interface.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark

import indextables as it
from support.ports import free_port

PART, PARTS = 50_000, 4
PATIENCE_S = 90


def _executor() -> int:
    """The JVM that runs this task: the parent of the daemon that is the parent of this worker."""
    status = Path(f"/proc/{os.getppid()}/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def _ends_second_part(batch: Any) -> bool:
    return bool(batch.column(0)[-1].as_py() == 2 * PART - 1)


def _dies(marks: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows as they are; the first task to come to the end of the second part takes its executor with it."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if _ends_second_part(batch) and not (marks / "died").exists():
                (marks / "died").touch()
                os.kill(_executor(), signal.SIGKILL)
            yield batch

    return run


def _straggles(marks: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows as they are; the first attempt at the second part waits at its end until it is killed."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if _ends_second_part(batch):
                if (marks / "straggler").exists():
                    (marks / "twin").touch()
                else:
                    (marks / "straggler").touch()
                    until = time.monotonic() + PATIENCE_S
                    while time.monotonic() < until and not (marks / "over").exists():
                        time.sleep(0.05)
            yield batch

    return run


def _cluster(directory: Path) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """A master and two workers, each on an address of its own."""
    port = free_port()
    launcher = str(Path(pyspark.__path__[0], "bin", "spark-class"))
    url = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    workers = [
        [*worker, "--host", f"127.0.0.{number}", "--work-dir", str(directory / f"work-{number}"), url]
        for number in (2, 3)
    ]
    log = (directory / "cluster.log").open("wb")
    started = [
        subprocess.Popen([launcher, f"org.apache.spark.deploy.{name}", *rest], stdout=log, stderr=log)
        for name, *rest in (master, *workers)
    ]
    return url, started


def _session(url: str) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(url)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.cores.max", "2")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "100ms")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.multiplier", "1.1")
        .getOrCreate()
    )


def main(directory: str) -> None:
    """Write with either loss, and say what the tables hold."""
    root = Path(directory)
    url, processes = _cluster(root)
    try:
        spark = it.connect(_session(url))
        said = {
            "straggler": _written(spark, root, "straggler", _straggles),
            "executor": _written(spark, root, "executor", _dies),
        }
        spark.stop()
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
    sys.stdout.write("\n" + json.dumps(said) + "\n")


def _written(spark: Any, root: Path, name: str, loss: Callable[[Path], Any]) -> dict[str, Any]:
    marks, path = root / f"marks-{name}", str(root / name)
    marks.mkdir()
    frame = spark.range(0, PART * PARTS, 1, PARTS).mapInArrow(loss(marks), "id long")
    # Small splits: the attempt that is lost has published some of its rows already.
    frame.write.format("indextables").option("write.maxRowsPerSplit", "10000").save(path)
    (marks / "over").touch()
    table = it.Table.open(path)
    found = spark.read.format("indextables").load(path)
    return {
        "rows": found.count(),
        "distinct": found.distinct().count(),
        "last": found.groupBy().max("id").first()[0],
        "version": table.version,
        "marks": sorted(file.name for file in marks.iterdir()),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
