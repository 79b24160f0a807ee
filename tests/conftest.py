"""What every test shares: one hypothesis profile and, where Spark is asked for, one session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

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


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A connected session with two threads, in which a failed task is tried a second time.

    There is one context in a process, and the first to ask for it decides what it is like. So every test
    in this process that needs Spark takes it from here.
    """
    from pyspark.sql import SparkSession

    import indextables

    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("indextables tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    indextables.connect(session)
    assert session.sparkContext.master == "local[2,2]", "another test has started a session of its own"
    yield session
    session.stop()
