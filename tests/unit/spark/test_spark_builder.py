"""configure(builder): recommended settings, the Hadoop package of a cloud, and a look for Java."""

from __future__ import annotations

import pytest

import indextables as it
from indextables.errors import MissingPackageError, TableError


class Builder:
    def __init__(self, **options: str) -> None:
        self._options = options
        self.settings: dict[str, str] = {}

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java home whose java says which version it is."""

    def made(version: str):
        program = tmp_path / "bin" / "java"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return program

    # As in a process in which no session has been started.
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    made("17.0.1")
    return made


@pytest.mark.parametrize(
    ("spark", "version", "refusal"),
    [
        ((4, 3), "1.8.0_392", "Spark needs Java 17 or later and {program} is Java 8. Install Java 17"),
        ((4, 0), "11.0.2", "Spark needs Java 17 or later and {program} is Java 11. Install Java 17"),
        ((3, 5), "1.8.0_392", "Spark needs Java 11 or later and {program} is Java 8. Install Java 17"),
        ((3, 5), "11.0.2", None),
    ],
)
def test_a_java_too_old_for_spark_is_named_with_what_to_do(
    java, monkeypatch, spark, version, refusal
) -> None:
    monkeypatch.setattr("indextables.spark.jvm.installed.installed", lambda: spark)
    program = java(version)
    if refusal is None:
        it.configure(Builder())
        return
    with pytest.raises(MissingPackageError) as refused:
        it.configure(Builder())
    assert refusal.format(program=program) in str(refused.value)


def test_a_java_home_without_java_is_named(java, tmp_path) -> None:
    java("17").unlink()
    with pytest.raises(MissingPackageError, match=f"JAVA_HOME is {tmp_path}, which has no bin/java. Install"):
        it.configure(Builder())


def test_no_java_at_all_is_said(java, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPackageError, match="there is no java on the path. Install Java 17"):
        it.configure(Builder())


def test_a_builder_for_a_server_elsewhere_needs_no_java(java) -> None:
    java("17").unlink()
    it.configure(Builder(**{"spark.remote": "sc://elsewhere"}))


def test_the_builder_comes_back_configured(java) -> None:
    builder = Builder()
    assert it.configure(builder) is builder
    assert "spark.jars.packages" not in builder.settings


@pytest.mark.parametrize(
    ("cloud", "package"), [("s3", "hadoop-aws"), ("azure", "hadoop-azure"), ("gcs", "gcs-connector")]
)
def test_a_cloud_adds_its_package(java, cloud: str, package: str) -> None:
    found = it.configure(Builder(), cloud=cloud).settings["spark.jars.packages"]
    group, name, version = found.split(":")
    assert name == package
    assert version[0].isdigit() or version.startswith("hadoop")


def test_an_unknown_cloud_is_refused(java) -> None:
    with pytest.raises(TableError, match="'s3'"):
        it.configure(Builder(), cloud="moon")
