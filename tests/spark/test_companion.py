"""Companion indexes in a Spark session: built by a statement, and refused by name where Spark would read rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError
from support.companions import rows_of as made_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def places(tmp_path):
    import random

    import deltalake

    deltalake.write_deltalake(str(tmp_path / "source"), pa.table(made_rows(random.Random(1), 0, 50)))
    return str(tmp_path / "source"), str(tmp_path / "index")


def test_a_statement_builds_one_and_python_searches_it(spark, places):
    source, index = places
    text = f"BUILD INDEXTABLES COMPANION FOR DELTA '{source}' INDEXING MODES ('msg':'text') AT LOCATION '{index}'"
    assert spark.sql(f"{text} DRY RUN").first()["status"] == "dry_run"
    row = spark.sql(text).first()
    assert (row["status"], row["parquet_files_indexed"], row["source_version"]) == ("success", 1, 0)
    assert it.open(index).count(query="disk") == it.DeltaTable.open(source).count(query="msg:disk")


def test_spark_does_not_read_one_and_says_so(spark, places):
    source, index = places
    it.companion(source, index, {"msg": "text"})
    with pytest.raises(TableError, match="is a companion index"):
        spark.read.format("indextables").load(index).collect()
    with pytest.raises(TableError, match="is a companion index"):
        it.Table.open(index, spark=spark).to_df()
    with pytest.raises(TableError, match="is a companion index"):
        spark.createDataFrame([(1,)], ["id"]).write.format("indextables").mode("append").save(index)
    assert it.open(index).count() == 50
