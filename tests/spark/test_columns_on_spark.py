"""Columns that are added and moved in Spark, and tables with renamed columns, which Spark refuses by name."""

from __future__ import annotations

import pytest

import indextables as it


def test_columns_are_added_and_moved_and_a_renamed_one_is_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    t = f"indextables.`{path}`"
    spark.sql(f"CREATE TABLE {t} (id BIGINT, msg STRING) USING indextables")
    spark.sql(f"INSERT INTO {t} VALUES (1, 'disk error')")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN level BIGINT AFTER id")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN head STRING FIRST")
    spark.sql(f"ALTER TABLE {t} ALTER COLUMN msg AFTER head")
    spark.sql(f"INSERT INTO {t} (id, level, msg) VALUES (2, 7, 'new error')")
    frame = spark.sql(f"SELECT * FROM {t} ORDER BY id")
    assert frame.columns == ["head", "msg", "id", "level"]
    assert [tuple(row) for row in frame.collect()] == [
        (None, "disk error", 1, None),
        (None, "new error", 2, 7),
    ]
    for change in ("RENAME COLUMN msg TO message", "DROP COLUMN level"):
        with pytest.raises(Exception, match=r"renamed or dropped in Spark yet"):
            spark.sql(f"ALTER TABLE {t} {change}")
    it.Table.open(path).rename_column("msg", "message")
    for refused in (
        lambda: spark.sql(f"SELECT * FROM {t}").collect(),
        lambda: spark.sql(f"INSERT INTO {t} (id) VALUES (3)"),
        lambda: spark.read.format("indextables").load(path).collect(),
        lambda: spark.range(1).write.format("indextables").mode("append").save(path),
        lambda: it.Table.open(path, spark=spark).to_df().collect(),
        lambda: spark.readStream.format("indextables").load(path).isStreaming,
    ):
        with pytest.raises(Exception, match="columnMapping"):
            refused()
