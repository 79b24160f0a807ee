"""configure(builder): recommended settings, and the Hadoop package of a cloud in Spark's own version."""

from __future__ import annotations

import pytest

import indextables as it
from indextables.errors import TableError


class Builder:
    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self


def test_the_builder_comes_back_configured() -> None:
    builder = Builder()
    assert it.configure(builder) is builder
    assert "spark.jars.packages" not in builder.settings


@pytest.mark.parametrize(
    ("cloud", "package"), [("s3", "hadoop-aws"), ("azure", "hadoop-azure"), ("gcs", "gcs-connector")]
)
def test_a_cloud_adds_its_package(cloud: str, package: str) -> None:
    found = it.configure(Builder(), cloud=cloud).settings["spark.jars.packages"]
    group, name, version = found.split(":")
    assert name == package
    assert version[0].isdigit() or version.startswith("hadoop")


def test_an_unknown_cloud_is_refused() -> None:
    with pytest.raises(TableError, match="'s3'"):
        it.configure(Builder(), cloud="moon")
