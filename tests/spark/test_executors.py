"""connect: what it says of executors that cannot do our work, and what Spark says without it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import indextables as it
from indextables.errors import TableError
from indextables.spark import executors
from support.spark_versions import needs

pytestmark = pytest.mark.spark


@pytest.fixture
def python(spark, tmp_path, monkeypatch):
    """Let tasks of the shared session run in an environment of their own, with the directories given."""

    def made(*directories: str) -> None:
        home = tmp_path / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        (site,) = home.glob("lib/*/site-packages")
        (site / "more.pth").write_text("".join(f"{name}\n" for name in directories))
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(home / "bin" / "python"))

    executors.forget()
    yield made
    executors.forget()


def site_packages() -> list[str]:
    """Where the packages are that the driver imports."""
    own = sysconfig.get_path("purelib")
    linked = [line for file in Path(own).glob("*.pth") for line in file.read_text().splitlines()]
    return [own, *(line for line in linked if os.path.isdir(line))]


def test_executors_without_the_packages_are_reported_by_the_first_one_missing(spark, python):
    python()
    with pytest.raises(
        TableError, match=r"executors of this session have no pyarrow, which .*docs/deploy.md"
    ):
        it.connect(spark)


def test_executors_with_another_version_are_reported_with_both(spark, python, tmp_path):
    other = tmp_path / "other" / "indextables"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("__version__ = '0.0.1'\n")
    for name in ("ops/write/rows", "split/search/run", "storage/stores/remote"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / f"{name}.py").touch()
    python(str(other.parent), *site_packages())
    with pytest.raises(TableError, match=f"have indextables 0.0.1, this driver {it.__version__}. Give them"):
        it.connect(spark)


def test_executors_with_the_same_packages_are_found_fit_and_asked_once(spark, python):
    python(*site_packages())
    it.connect(spark)
    assert spark.sparkContext in executors._checked


def test_the_look_at_the_executors_can_be_left_out(spark, python):
    python()
    it.connect(spark, check=False)


NOT_CONNECTED = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for act in (
    lambda: spark.read.format("indextables").load("x"),
    lambda: spark.range(1).write.format("indextables").mode("append").save("x"),
    lambda: spark.sql("CREATE TEMPORARY VIEW v USING indextables OPTIONS (path 'x')"),
):
    try:
        act()
        print("went through")
    except Exception as error:
        print("call indextables.connect(spark) once" in str(error), type(error).__name__)
"""


@needs("data sources in Python, which say what to do")
def test_a_session_that_is_not_connected_says_so(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", NOT_CONNECTED], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["True"] * 3, ran.stdout
