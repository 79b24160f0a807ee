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
