"""Columns that are renamed, dropped, added and moved in Spark and in Python, which read each other's tables."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, run_state_machine_as_test

import indextables as it
from indextables.spark.workers import spark_schema
from support.column_life import OPTIONS, PHASES, Life, as_sorted

TYPES = {"text": "STRING", "number": "BIGINT", "struct": "STRUCT<x: BIGINT>"}


def plain(row):
    return row.asDict(recursive=True)


class LifeInSpark(Life):
    """The life of a table whose statements run in Spark, and which Spark and Python read alike."""

    spark: ClassVar = None
    streamed: ClassVar = 0

    @initialize()
    def create(self):
        super().create()
        self.append([1, 2, 3, 4, 5])
        self.rename_to("a", "c")
        self.rename_to("b", "a")
        self.append([6, 7])

    def run(self, statement):
        self.spark.sql(statement.format(t=f"indextables.`{self.root / 't'}`"))
        self.table = it.Table.open(self.root / "t", options=self.options)

    def do_append(self, rows):
        schema = spark_schema(self.table.spark_schema)
        frame = self.spark.createDataFrame([tuple(row.values()) for row in rows], schema)
        frame.write.format("indextables").mode("append").options(**self.options).save(str(self.root / "t"))
        self.table = it.Table.open(self.root / "t", options=self.options)

    def do_rename(self, old, new):
        self.run(f"ALTER TABLE {{t}} RENAME COLUMN `{old}` TO `{new}`")

    def do_drop(self, name):
        self.run(f"ALTER TABLE {{t}} DROP COLUMN `{name}`")

    def do_add(self, name, kind, after):
        place = "FIRST" if after is None else f"AFTER `{after}`"
        self.run(f"ALTER TABLE {{t}} ADD COLUMN `{name}` {TYPES[kind]} {place}")

    def do_move(self, name, after):
        place = "FIRST" if after is None else f"AFTER `{after}`"
        self.run(f"ALTER TABLE {{t}} ALTER COLUMN `{name}` {place}")

    def do_delete(self, condition):
        self.run(f"DELETE FROM {{t}} WHERE {condition}")

    def do_update(self, above, name):
        self.run(f"UPDATE {{t}} SET `{name}` = {above} WHERE id > {above}")

    def do_upsert(self, source):
        others = [f"`{name}`" for name in source if name != "id"]
        self.run(
            f"MERGE INTO {{t}} AS x USING (SELECT {source['id']}L AS id) AS s ON x.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f'x.{name} = NULL' for name in others)} "
            f"WHEN NOT MATCHED THEN INSERT (id, {', '.join(others)}) VALUES (s.id{', NULL' * len(others)})"
        )

    def check(self, table, columns, rows, indexed):
        """One query for the rows, and one that counts what each filter and search finds."""
        super().check(table, columns, rows, indexed)
        path = str(self.root / "t")
        frame = self.spark.read.format("indextables").option("versionAsOf", table.version).load(path)
        assert frame.columns == list(columns)
        assert as_sorted(map(plain, frame.collect())) == as_sorted(rows)
        questions = {}
        for name, kind in columns.items():
            if kind in {"number", "partition"}:
                condition = f"`{name}` >= 5" if kind == "number" else f"`{name}` = 'x'"
                questions[condition] = sum(
                    row[name] is not None and (row[name] >= 5 if kind == "number" else row[name] == "x")
                    for row in rows
                )
            if kind == "text":
                questions[f"`{name}` = 'error'"] = sum(row[name] == "error" for row in rows)
            questions[f"`{name}` IS NULL"] = sum(row[name] is None for row in rows)
        for name in indexed:
            questions[f"`{name}` indexquery 'error'"] = sum("error" in (row[name] or "") for row in rows)
        of = f"indextables.`{path}` VERSION AS OF {table.version}"
        texts = [
            f"SELECT {at} AS at, count(*) AS n FROM {of} WHERE {question}"
            for at, question in enumerate(questions)
        ]
        counts = {row["at"]: row["n"] for row in self.spark.sql(" UNION ALL ".join(texts)).collect()}
        assert counts == dict(enumerate(questions.values())), list(questions)

    def teardown(self):
        """Before the table goes, a stream has all of its rows."""
        if getattr(self, "rows", None) is not None and self.rows:
            name = f"life_{LifeInSpark.streamed}"
            LifeInSpark.streamed += 1
            stream = self.spark.readStream.format("indextables").load(str(self.root / "t"))
            stream.writeStream.format("memory").queryName(name).trigger(
                availableNow=True
            ).start().awaitTermination()
            assert as_sorted(map(plain, self.spark.table(name).collect())) == as_sorted(self.rows)
        super().teardown()


class LifeInSparkWithVectors(LifeInSpark):
    """The same, where rows are deleted by vectors."""

    options: ClassVar = {**OPTIONS, "deletionVectors.enabled": "true", "checkpoint.format": "parquet"}


@pytest.fixture
def lives(spark, plain_plans):
    """Runs some histories, each of that many steps."""

    def run(life, histories, steps):
        life.spark = spark
        chosen = settings(
            max_examples=histories, stateful_step_count=steps, deadline=None, phases=PHASES, database=None
        )
        run_state_machine_as_test(life, settings=chosen)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("life", [LifeInSpark, LifeInSparkWithVectors])
def test_spark_and_python_read_every_version_as_it_was(lives, life):
    lives(life, 2, 12)


@pytest.mark.long
@pytest.mark.parametrize("life", [LifeInSpark, LifeInSparkWithVectors])
def test_many_histories_are_read_alike(lives, life):
    lives(life, 40, 25)


@pytest.fixture
def path(spark, tmp_path):
    """A table whose columns got other names, with rows from before and after."""
    path = str(tmp_path / "t")
    t = f"indextables.`{path}`"
    spark.sql(
        f"CREATE TABLE {t} (id BIGINT, day STRING, msg STRING, n INT) USING indextables PARTITIONED BY (day)"
    )
    spark.sql(
        f"INSERT INTO {t} SELECT id, CAST(id % 2 AS STRING), 'old', CAST(id AS INT) FROM range(0, 1000, 1, 1)"
    )
    for change in (
        "RENAME COLUMN msg TO message", "RENAME COLUMN day TO `the day`", "DROP COLUMN n", "ADD COLUMN n BIGINT AFTER id",
    ):  # fmt: skip
        spark.sql(f"ALTER TABLE {t} {change}")
    spark.sql(
        f"INSERT INTO {t} SELECT id AS id, id AS n, '7' AS `the day`, 'new' AS message FROM range(1000, 1010, 1, 1)"
    )
    return path


@pytest.mark.core
def test_renamed_columns_are_read_and_written(spark, path):
    t = f"indextables.`{path}`"
    assert spark.table(t).columns == ["id", "n", "the day", "message"]
    rows = spark.sql(
        f"SELECT `the day`, message, count(*), count(n), min(n) FROM {t} GROUP BY ALL ORDER BY 1"
    )
    assert [tuple(row) for row in rows.collect()] == [
        ("0", "old", 500, 0, None), ("1", "old", 500, 0, None), ("7", "new", 10, 10, 1000),
    ]  # fmt: skip
    assert spark.sql(f"SELECT sum(n) AS s FROM {t} VERSION AS OF 1").first()["s"] == 499500
    changes = spark.sql(f"SELECT count(message) AS old, count(n) AS new FROM table_changes('{path}', 1, 6)")
    assert tuple(changes.first()) == (1010, 10)
    assert tuple(spark.sql(f"UPDATE {t} SET message = 'changed' WHERE id IN (3, 1003)").first()) == (2,)
    assert tuple(spark.sql(f"DELETE FROM {t} WHERE n = 1004").first()) == (1,)
    merged = spark.sql(
        f"MERGE INTO {t} AS x USING (SELECT 1005L AS id UNION ALL SELECT 5000L) AS s ON x.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = -1 "
        "WHEN NOT MATCHED THEN INSERT (id, n, `the day`, message) VALUES (s.id, 0, '9', 'merged')"
    )
    assert tuple(merged.first()) == (2, 1, 0, 1)
    table = it.Table.open(path)
    assert table.stored_names == {"id": "id", "n": "n-5", "the day": "day", "message": "msg"}
    changed = sorted(
        tuple(row.values()) for row in table.scan("message <> 'old' and id < 1004 or n < 1").to_pylist()
    )
    assert changed == [
        (3, None, "1", "changed"), (1000, 1000, "7", "new"), (1001, 1001, "7", "new"), (1002, 1002, "7", "new"),
        (1003, 1003, "7", "changed"), (1005, -1, "7", "new"), (5000, 0, "9", "merged"),
    ]  # fmt: skip


def scan_metrics(frame):
    """How many files Spark's scan had, and how many rows it gave out."""
    plan = frame._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    metrics = plan.collectLeaves().apply(0).metrics()
    return metrics.apply("numFiles").value(), metrics.apply("numOutputRows").value()


def test_files_and_row_groups_without_a_value_of_a_renamed_column_are_passed_over(
    spark, path, plain_plans, tmp_path
):
    frame = spark.read.format("indextables").load(path)
    assert scan_metrics(frame.filter("message < 'o'"))[0] == 1
    assert scan_metrics(frame.filter("`the day` = '7'"))[0] == 1
    assert scan_metrics(frame.filter("message > 'new'"))[0] == 2
    # A log without statistics leaves it to those of Parquet, which know columns by their stored names.
    bare = f"indextables.`{tmp_path / 'bare'}`"
    spark.sql(
        f"CREATE TABLE {bare} (id BIGINT, n INT) USING indextables TBLPROPERTIES ('dataSkippingNumIndexedCols' = '0')"
    )
    spark.sql(f"INSERT INTO {bare} SELECT id, CAST(id AS INT) FROM range(0, 100, 1, 1)")
    spark.sql(f"ALTER TABLE {bare} RENAME COLUMN n TO `the n`")
    spark.sql(f"ALTER TABLE {bare} RENAME COLUMN id TO n")
    frame = spark.table(bare)
    assert scan_metrics(frame.filter("`the n` > 99")) == (1, 0)
    assert scan_metrics(frame.filter("`the n` IN (100, 200) OR NOT (n >= 0)")) == (1, 0)
    assert scan_metrics(frame.filter("`the n` = 7")) == (1, 100)


def test_a_live_view_shows_columns_by_the_names_of_today(spark, path):
    t = f"indextables.`{path}`"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW live USING indextables OPTIONS (path '{path}')")
    before = spark.read.format("indextables").load(path)
    follower = spark.read.format("indextables").option("refresh", "true").load(path)
    # The same name and type, and yet another column.
    spark.sql(f"ALTER TABLE {t} DROP COLUMN n")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN n BIGINT AFTER id")
    assert spark.sql("SELECT count(n) AS n FROM live").first()["n"] == 0
    assert before.filter("n IS NOT NULL").count() == 10
    with pytest.raises(Exception, match="the columns n were renamed or dropped"):
        follower.count()
    spark.sql(f"ALTER TABLE {t} RENAME COLUMN n TO number")
    assert spark.sql("SELECT count(number) AS n FROM live").first()["n"] == 0


def test_a_stream_stops_at_a_rename_and_goes_on_after_it(spark, path, tmp_path):
    t = f"indextables.`{path}`"

    def run():
        stream = spark.readStream.format("indextables").load(path).writeStream.format("indextables")
        query = stream.option("checkpointLocation", str(tmp_path / "c")).option("mergeSchema", "true")
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        return it.Table.open(tmp_path / "out")

    assert run().count() == 1010
    spark.sql(f"ALTER TABLE {t} RENAME COLUMN message TO text")
    spark.sql(f"INSERT INTO {t} SELECT id AS id, id AS n, '8' AS `the day`, 'later' AS text FROM range(3)")
    assert run().count() == 1013
    assert run().count("text = 'later'") == 3
