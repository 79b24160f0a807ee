"""CHECK and NOT NULL on Spark: every way of writing rows is refused a row that breaks one, and commits nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import indextables as it


@pytest.fixture
def table(spark, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE indextables.`{path}` (id INT NOT NULL, price INT) USING indextables")
    spark.sql(f"INSERT INTO indextables.`{path}` VALUES (1, 10), (2, 20), (3, NULL)")
    it.Table.open(path).add_constraint("positive", "price > 0")
    return path


STATEMENTS = [
    "INSERT INTO {t} VALUES (4, -1)",
    "INSERT OVERWRITE {t} VALUES (4, -1)",
    "INSERT INTO {t} REPLACE WHERE id = 1 SELECT 1, -1",
    "UPDATE {t} SET price = price - 15 WHERE id = 1",
    "MERGE INTO {t} x USING (SELECT 1 AS id) s ON x.id = s.id WHEN MATCHED THEN UPDATE SET price = -1",
    "MERGE INTO {t} x USING (SELECT 9 AS id) s ON x.id = s.id WHEN NOT MATCHED THEN INSERT (id, price) VALUES (9, -1)",
    "MERGE INTO {t} x USING (SELECT 1 AS id) s ON x.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET price = -2",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_breaks_a_check_is_refused_with_its_row(spark, table, statement):
    before = it.Table.open(table).version
    with pytest.raises(it.errors.ConstraintError, match="positive.*price"):
        spark.sql(statement.format(t=f"indextables.`{table}`"))
    assert it.Table.open(table).version == before


def test_a_frame_that_breaks_a_check_is_refused(spark, table):
    rows = spark.createDataFrame([(4, -1)], "id INT, price INT")
    for mode in ("append", "overwrite"):
        with pytest.raises(it.errors.ConstraintError, match="positive"):
            rows.write.format("indextables").mode(mode).save(table)
    assert it.Table.open(table).count() == 3


def test_a_stream_that_breaks_a_check_stops_and_commits_nothing(spark, table, tmp_path):
    source = tmp_path / "source"
    spark.createDataFrame([(4, -1)], "id INT, price INT").write.parquet(str(source))
    before = it.Table.open(table).version
    stream = (
        spark.readStream.schema("id INT, price INT").parquet(str(source)).writeStream.format("indextables")
    )
    query = stream.option("checkpointLocation", str(tmp_path / "progress")).start(table)
    with pytest.raises(Exception, match="positive"):
        query.processAllAvailable()
    query.stop()
    assert it.Table.open(table).version == before


def test_null_in_a_column_that_takes_none_is_refused(spark, table):
    before = it.Table.open(table).version
    with pytest.raises(Exception, match="(?i)null"):
        spark.sql(f"UPDATE indextables.`{table}` SET id = CAST(NULL AS INT) WHERE id = 1")
    assert it.Table.open(table).version == before
