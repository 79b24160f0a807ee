"""Companions of real Delta tables in Spark: deleted rows stay away, and columns have the names of the table."""

from __future__ import annotations

import pytest

import indextables as it
from support.golden import plain, table_path, versions

pytestmark = pytest.mark.spark

VECTORS = ("dat__deletion_vectors", "delta-golden__dv-partitioned-with-checkpoint")
MAPPED = ("dat__column_mapping", "delta-rs__table_with_partitioning_mapping")


def texts_of(table):
    import pyarrow as pa

    columns = [field.name for field in table.schema if pa.types.is_string(field.type)]
    return [name for name in columns if name not in table.partition_columns]


def as_rows(rows):
    return sorted(str([plain(value) for value in row.values()]) for row in rows)


@pytest.mark.parametrize("name", [*VECTORS, *MAPPED])
def test_spark_shows_the_rows_that_a_scan_of_the_source_shows(spark, tmp_path, name):
    if name not in {table for table, _ in versions("ok")}:
        pytest.skip(f"the golden tables have no {name}")
    source, index = str(table_path(name)), str(tmp_path / "index")
    table = it.DeltaTable.open(source)
    columns = texts_of(table)
    assert columns, f"{name} has no text to index"
    it.companion(source, index, columns)
    scanned = table.scan().read_all()
    frame = spark.read.format("indextables").load(index)
    assert as_rows(row.asDict(recursive=True) for row in frame.collect()) == as_rows(scanned.to_pylist())
    assert frame.count() == scanned.num_rows
    words = [text.split()[0] for text in scanned.column(columns[0]).to_pylist() if text and text.split()]
    opened = it.Table.open(index, spark=spark)
    for word in sorted(set(words))[:2]:
        query = f'{columns[0]}:"{word}"'
        hits = table.count(query=query)
        assert opened.search_df(query).count() == hits, word
        if name in VECTORS:
            # Mapped columns are read in Python, where a search cannot be part of Spark's plan.
            assert frame.filter(f"`{columns[0]}` indexquery '\"{word}\"'").count() == hits, word
