"""What every test shares: one hypothesis profile, one Spark session per process, and how long tests took last time."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "support" / "spark_conf"))

# Packages of the development group and the extras. A file that imports one that is not here is skipped.
OPTIONAL_PACKAGES = {
    "anyio", "boto3", "cryptography", "deltalake", "elasticsearch", "greenlet", "httpx", "hypothesis", "moto", "nbclient",
    "nbformat", "opensearchpy", "pandas", "playwright", "polars", "psutil", "py4j", "pyspark", "starlette", "uvicorn",
}  # fmt: skip

if importlib.util.find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "suite",
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.function_scoped_fixture,
        ],
    )
    settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """`importorskip` for every file: one missing package does not stop the collection of all others."""
    report = yield
    failure = report.call.excinfo.value if report.failed else None
    missing = getattr(failure and failure.__cause__, "name", None)
    if isinstance(missing, str) and missing.partition(".")[0] in OPTIONAL_PACKAGES:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 1, f"Skipped: {missing} is not installed")
    return report


# What `--keep-durations` wrote: seconds of the tests that took a second or more, and what each whole run came to.
DURATIONS = Path(__file__).parent / "durations.json"
SHORTEST_KEPT_S = 1.0
SLOW_S = 4.0
TYPICAL_S = 0.05


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-durations", action="store_true", help="write how long each test took to tests/durations.json"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--keep-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(DurationKeeper(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """By the durations of the last run that kept them: mark what is slow, and start with the longest files.

    Processes that share the files of a run then end together.
    """
    durations = read_durations()["tests"]
    for item in items:
        if durations.get(item.nodeid, 0) >= SLOW_S:
            item.add_marker(pytest.mark.slow)
    if not hasattr(config, "workerinput"):
        return
    of_file: dict[Path, float] = defaultdict(float)
    for item in items:
        of_file[item.path] += durations.get(item.nodeid, TYPICAL_S)
    items.sort(key=lambda item: (-of_file[item.path], item.path))


def read_durations() -> dict[str, Any]:
    return json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {"runs": {}, "tests": {}}


class DurationKeeper:
    """Adds up setup, call and teardown of each test, and writes the file when the run ends."""

    def __init__(self, config: pytest.Config) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcomes: Counter[str] = Counter()
        self._began = time.monotonic()
        is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        self._run = config.getoption("markexpr") if is_whole else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        root = DURATIONS.parent.parent
        before = read_durations()
        others = {
            name: seconds
            for name, seconds in before["tests"].items()
            if name not in self._seconds and (root / name.partition("::")[0]).exists()
        }
        long = {
            name: round(seconds, 1) for name, seconds in self._seconds.items() if seconds >= SHORTEST_KEPT_S
        }
        runs = before["runs"]
        if self._run:
            minutes = round((time.monotonic() - self._began) / 60, 1)
            runs[self._run] = {"commit": commit(root), "minutes": minutes, **self._outcomes}
        kept = {"runs": runs, "tests": dict(sorted((others | long).items()))}
        DURATIONS.write_text(json.dumps(kept, indent=1) + "\n")


def commit(root: Path) -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A connected session with two threads, in which a failed task is tried a second time.

    There is one context in a process, and the first to ask for it decides what it is like. So every test
    in this process that needs Spark takes it from here. Its warehouse is its own: other processes of this
    run have a session too.
    """
    from pyspark.sql import SparkSession

    import indextables
    from support.spark_versions import teach_arrow

    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("indextables tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    indextables.connect(session)
    teach_arrow()
    assert session.sparkContext.master == "local[2,2]", "another test has started a session of its own"
    yield session
    session.stop()
