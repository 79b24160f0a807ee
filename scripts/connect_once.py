"""Connect one fresh session and print what that took: `connect_once.py [a directory that has PySpark]`.

`make test-wheel` runs it in its environment, with each PySpark that `make wheel` compiled for. It prints a
line of JSON: the version of Spark, and the CPU seconds that Python, the JVM and the tasks took since
Spark had started. Linux only: the seconds are read from /proc.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Start Spark, connect, and print the figures."""
    if len(sys.argv) > 1:
        sys.path.insert(0, sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import indextables

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    # What the first statement and the first Python task cost without us is Spark's own start.
    spark.range(2).selectExpr("id + 1").rdd.map(lambda row: row[0]).count()
    before = cpu_seconds()
    indextables.connect(spark)
    used = cpu_seconds() - before
    sys.stdout.write(json.dumps({"spark": spark.version, "cpu_s": round(used, 2)}) + "\n")
    spark.stop()


def cpu_seconds() -> float:
    """The CPU seconds of this process and all below it, those that ended included."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        process = int(entry.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))
    return sum(ticks[process] for process in ticks if _is_below(process, parents)) / _TICKS


def _is_below(process: int, parents: dict[int, int]) -> bool:
    while process not in (0, os.getpid()):
        process = parents.get(process, 0)
    return process != 0


if __name__ == "__main__":
    main()
