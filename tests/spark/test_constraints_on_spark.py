"""CHECK and NOT NULL on Spark: every way of writing rows is refused a row that breaks one, and commits nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import indextables as it
from support.spark_versions import needs


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


def test_a_column_becomes_not_null_only_if_every_row_has_a_value(spark, table):
    alter = f"ALTER TABLE indextables.`{table}` ALTER COLUMN price"
    version = it.Table.open(table).version
    with pytest.raises(it.errors.ConstraintError, match="price IS NOT NULL.*'id': 3"):
        spark.sql(f"{alter} SET NOT NULL")
    assert it.Table.open(table).version == version
    spark.sql(f"DELETE FROM indextables.`{table}` WHERE price IS NULL")
    spark.sql(f"{alter} SET NOT NULL")
    with pytest.raises(Exception, match="(?i)null"):
        spark.sql(f"INSERT INTO indextables.`{table}` VALUES (4, NULL)")
    with pytest.raises(it.errors.ConstraintError, match="price"):
        it.Table.open(table).append([{"id": 4, "price": None}])
    spark.sql(f"{alter} DROP NOT NULL")
    spark.sql(f"INSERT INTO indextables.`{table}` VALUES (4, NULL)")
    assert [
        row[0] for row in spark.sql(f"SELECT price FROM indextables.`{table}` ORDER BY id").collect()
    ] == [10, 20, None]


@needs("CREATE TABLE LIKE")
def test_a_table_like_another_keeps_its_checks(spark, table):
    spark.sql(f"CREATE TABLE lake_of_checks USING indextables LOCATION '{table}'")
    try:
        spark.sql("CREATE TABLE like_checks LIKE lake_of_checks")
        with pytest.raises(it.errors.ConstraintError, match="positive"):
            spark.sql("INSERT INTO like_checks VALUES (4, -1)")
        spark.sql("INSERT INTO like_checks VALUES (4, 1)")
        assert spark.table("like_checks").count() == 1
        location = spark.sql("SHOW CREATE TABLE lake_of_checks").first()[0]
        assert f"LOCATION 'file:{table}'" in location.replace("file://", "file:")
    finally:
        spark.sql("DROP TABLE IF EXISTS like_checks")
        spark.sql("DROP TABLE lake_of_checks")


@needs("CHECK in CREATE TABLE")
def test_checks_are_part_of_a_definition(spark, tmp_path):
    path = f"indextables.`{tmp_path}/checked`"
    spark.sql(
        f"CREATE TABLE {path} (id INT, price INT CHECK (price > 0), CONSTRAINT Small CHECK (id < 9)) USING indextables"
    )
    created = it.Table.open(f"{tmp_path}/checked")
    assert created.version == 0
    assert sorted(created.constraints.values()) == ["id < 9", "price > 0"]
    for row in ("(1, -1)", "(10, 1)"):
        with pytest.raises(it.errors.ConstraintError, match="price|small"):
            spark.sql(f"INSERT INTO {path} VALUES {row}")
    spark.sql(f"INSERT INTO {path} VALUES (1, 1)")
    assert it.Table.open(f"{tmp_path}/checked").count() == 1


@needs("CHECK in CREATE TABLE")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id INT, CONSTRAINT odd CHECK (hash(id) = 1)", "(?i)hash"),
        ("id INT PRIMARY KEY", "CHECK"),
        ("id INT, twice INT GENERATED ALWAYS AS (id * 2)", "(?i)generated"),
    ],
)
def test_a_definition_with_what_cannot_be_kept_is_refused(spark, tmp_path, columns, message):
    with pytest.raises(Exception, match=message):
        spark.sql(f"CREATE TABLE indextables.`{tmp_path}/refused` ({columns}) USING indextables")
    assert not it.Table.exists(f"{tmp_path}/refused")


def test_a_constraint_that_a_row_breaks_or_that_is_not_understood_is_not_added(spark, table):
    add = f"ALTER TABLE indextables.`{table}` ADD CONSTRAINT more CHECK"
    with pytest.raises(it.errors.ConstraintError, match="'id': 2"):
        spark.sql(f"{add} (price < 15)")
    with pytest.raises(it.errors.Error, match="(?i)hash"):
        spark.sql(f"{add} (hash(price) = 1)")
    assert list(it.Table.open(table).constraints) == ["positive"]


@needs("DataFrame.mergeInto")
def test_a_merge_of_a_frame_that_breaks_a_check_is_refused(spark, table):
    from pyspark.sql import functions as F

    spark.sql(f"CREATE TABLE merged_checks USING indextables LOCATION '{table}'")
    try:
        merging = spark.sql("SELECT 9 AS key").mergeInto("merged_checks", F.expr("id = key"))
        with pytest.raises(it.errors.ConstraintError, match="positive"):
            merging.whenNotMatched().insert({"id": F.col("key"), "price": F.lit(-1)}).merge()
    finally:
        spark.sql("DROP TABLE merged_checks")
    assert it.Table.open(table).count() == 3
