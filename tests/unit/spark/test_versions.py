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
