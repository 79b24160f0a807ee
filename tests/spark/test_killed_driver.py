"""A Spark application that is killed while it writes: what was acknowledged is there, and nothing is half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import indextables as it

pytestmark = pytest.mark.long
ROWS = 40
_APPLICATION = """
import sys
from pyspark.sql import SparkSession
import indextables as it

spark = it.configure(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
it.connect(spark)
for number in range(1000):
    print("begun", number, flush=True)
    frame = spark.range(number * 40, number * 40 + 40, 1, 4)
    frame.write.format("indextables").mode("append").save(sys.argv[1])
    print("done", number, flush=True)
"""


@pytest.mark.parametrize("after", ["begun 0", "begun 2", "done 3"])
def test_a_killed_driver_loses_nothing_it_acknowledged(tmp_path: Path, after: str) -> None:
    """The driver, its JVM and its Python workers die together, in the middle of a write."""
    path = str(tmp_path / "t")
    application = subprocess.Popen(
        [sys.executable, "-c", _APPLICATION, path], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert application.stdout is not None
    told: list[str] = []
    for line in application.stdout:
        told.append(line.strip())
        if line.strip() == after:
            break
    os.killpg(application.pid, signal.SIGKILL)
    told += [line.strip() for line in application.stdout]
    application.wait(60)
    done = {int(line.split()[1]) for line in told if line.startswith("done")}
    begun = {int(line.split()[1]) for line in told if line.startswith("begun")}
    if not it.Table.exists(path):
        assert not done
        return
    found = Counter(it.Table.open(path).scan(columns=["id"]).read_all()["id"].to_pylist())
    whole = {number for number in begun if found.keys() >= set(batch(number))}
    assert done <= whole
    assert found == Counter(row for number in whole for row in batch(number))
    assert it.check(path).status in {"OK", "NOTE"}


def batch(number: int) -> range:
    return range(number * ROWS, number * ROWS + ROWS)
