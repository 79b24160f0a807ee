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


def statement(text):
    return lambda spark, table, row, _: spark.sql(text.format(t=f"indextables.`{table}`", **row))


def frame(mode):
    return lambda spark, table, row, _: rows_of(spark, row).write.format("indextables").mode(mode).save(table)


def rows_of(spark, row):
    return spark.sql("SELECT {id} AS id, {price} AS price".format(**row))


def stream(spark, table, row, place):
    rows_of(spark, row).write.parquet(f"{place}/source")
    rows = spark.readStream.schema("id INT, price INT").parquet(f"{place}/source")
    query = (
        rows.writeStream.format("indextables").option("checkpointLocation", f"{place}/progress").start(table)
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def saved_as_table(spark, table, row, _):
    spark.sql(f"CREATE TABLE checked_by_name USING indextables LOCATION '{table}'")
    try:
        rows_of(spark, row).write.format("indextables").mode("append").saveAsTable("checked_by_name")
    finally:
        spark.sql("DROP TABLE checked_by_name")


MERGE = "MERGE INTO {t} x USING (SELECT 1 AS id) s ON x.id = s.id"
WRITERS = {
    "INSERT": statement("INSERT INTO {t} VALUES ({id}, {price})"),
    "INSERT OVERWRITE": statement("INSERT OVERWRITE {t} VALUES ({id}, {price})"),
    "REPLACE WHERE": statement("INSERT INTO {t} REPLACE WHERE price = {price} SELECT {id}, {price}"),
    "UPDATE": statement("UPDATE {t} SET id = {id}, price = {price} WHERE id = 1"),
    "MERGE that updates": statement(MERGE + " WHEN MATCHED THEN UPDATE SET id = {id}, price = {price}"),
    "MERGE that inserts": statement(
        MERGE + " + 8 WHEN NOT MATCHED THEN INSERT (id, price) VALUES ({id}, {price})"
    ),
    "MERGE by source": statement(
        MERGE + " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = {id}, price = {price}"
    ),
    "append": frame("append"),
    "overwrite": frame("overwrite"),
    "saveAsTable": saved_as_table,
    "stream": stream,
}
BREAKING = {
    "positive.*price": {"id": "4", "price": "-1"},
    "(?i)null": {"id": "CAST(NULL AS INT)", "price": "5"},
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("message", BREAKING, ids=["CHECK", "NOT NULL"])
def test_every_writer_of_sparks_refuses_a_row_that_breaks_a_constraint(
    spark, table, tmp_path, writer, message
):
    before = it.read(table).to_pylist()
    version = it.Table.open(table).version
    with pytest.raises(Exception, match=message) as refused:
        WRITERS[writer](spark, table, BREAKING[message], tmp_path)
    if "price" in message and writer != "stream":
        assert isinstance(refused.value, it.errors.ConstraintError)
    assert it.Table.open(table).version == version
    assert it.read(table).to_pylist() == before


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
