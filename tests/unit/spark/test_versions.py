"""Which versions of Spark are taken, and what the others are told."""

from __future__ import annotations

import pytest

from indextables.errors import TableError
from indextables.spark import versions


@pytest.mark.parametrize("version", ["3.5.0", "3.5.2-amzn-1", "4.0.5", "4.3.0.dev0", "5.0.0"])
def test_every_spark_since_the_oldest_is_taken(version):
    versions.check_version(version)


@pytest.mark.parametrize("version", ["2.4.8", "3.3.2", "3.4.4"])
def test_an_older_spark_is_refused_with_the_reason(version):
    with pytest.raises(TableError, match=rf"runs {version}.*no UPDATE and MERGE INTO.*pyspark>=3\.5"):
        versions.check_version(version)


@pytest.mark.parametrize(
    ("version", "java", "scala"),
    [("3.5.0", "11.0.2", "2.12.18"), ("3.5.9", "17.0.15", "2.12.18"), ("4.0.2-amzn-0", "21", "2.13.16")],
)
def test_a_session_runs_on_the_java_and_scala_of_its_spark(version, java, scala):
    versions.check_machine(version, java, scala)


@pytest.mark.parametrize(
    ("version", "java", "scala", "reason"),
    [
        (
            "3.5.0",
            "1.8.0_412",
            "2.12.15",
            r"needs Java 11 or later with Spark 3\.5\.0.* runs Java 1\.8\.0_412",
        ),
        ("4.0.0", "11.0.2", "2.13.16", "needs Java 17"),
        ("3.5.1", "17.0.15", "2.13.8", r"built with Scala 2\.12, and this one was built with Scala 2\.13\.8"),
    ],
)
def test_another_java_or_scala_is_refused_by_name(version, java, scala, reason):
    with pytest.raises(TableError, match=reason):
        versions.check_machine(version, java, scala)
