"""Which jar is taken: one of these very sources and of this Spark, or none."""

from __future__ import annotations

import zipfile

import pytest

from indextables.spark.jvm import jar


@pytest.mark.parametrize(
    ("made_of", "made_for", "spark", "fits"),
    [
        (jar.digest(), "4.3.0", "4.3.0", True),
        (jar.digest(), "4.3.0", "4.3.2", True),
        (jar.digest(), "4.3.0", "4.1.0", False),
        ("another", "4.3.0", "4.3.0", False),
    ],
)
def test_a_jar_fits_the_sources_and_the_spark_it_was_made_of(tmp_path, made_of, made_for, spark, fits):
    packed = tmp_path / "some.jar"
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("io/indextables/sources", made_of)
        opened.writestr("io/indextables/spark-version", made_for)
    assert jar.fits(packed, spark) is fits


def test_a_wheel_has_one_jar_per_line_of_spark():
    assert jar.carried_name("3.5.9") == jar.carried_name("3.5.2-amzn-1") == "indextables-spark-3.5.jar"
    assert jar.carried_name("4.10.0") == "indextables-spark-4.10.jar"
