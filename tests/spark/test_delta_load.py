"""Delta tables through Spark's own doors: load, SQL by path and name, views, and a Column as a filter."""

from __future__ import annotations

import json
import logging

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import indextables as it
from indextables.errors import CommandError, NotATableError, OptionError, TableError
from indextables.log.scans import last_scans
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, remove, schema_string
from support.shared import shared

pytestmark = pytest.mark.spark


def sales(root, *, vectors=False, mapped=False):
    """Four files of ten rows in two partitions; with `vectors` one row of two of them is deleted.

    With `mapped` the files call each column by the name that another one has in the table.
    """
    schema = json.loads(schema_string(id="long", p="string", name="string"))
    physical = {"id": "p", "p": "name", "name": "id"} if mapped else {"id": "id", "p": "p", "name": "name"}
    for number, field in enumerate(schema["fields"] if mapped else (), start=1):
        name = physical[field["name"]]
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
    mode = {"delta.columnMapping.mode": "name"} if mapped else {}
    log = DeltaLog(open_store(root), json.dumps(schema), ("p",), configuration=mode)
    log.physical = physical
    for number in range(4):
        dv = inline_vector([5]) if vectors and number % 2 else None
        append(log, f"f{number}", range(number * 10, number * 10 + 10), f"x{number % 2}", dv=dv)
    return log


def append(log, path, ids, part, **more):
    """Commit a file of rows in one partition."""
    names = log.physical
    rows = pa.table({names["id"]: list(ids), names["name"]: [f"n{at}" for at in ids]})
    log.commit(put_file(log, path, rows, partitionValues={names["p"]: part}, **more))


@pytest.fixture(params=["plain", "vectors", "vectors and mapped"])
def log(request, tmp_path):
    kinds = {"vectors": "vectors" in request.param, "mapped": "mapped" in request.param}
    # Spark decodes what looks like an escape in a LOCATION.
    return sales(tmp_path / ("a [table]" if "named" in request.fixturenames else "a [table] %41"), **kinds)


def path_of(log):
    return log.store.local_path("")


def ids(frame):
    return sorted(row["id"] for row in frame.collect())


@pytest.fixture
def rows(log, request):
    deleted = {15, 35} if "vectors" in request.node.name else set()
    return [at for at in range(40) if at not in deleted]


@pytest.mark.core
def test_load_reads_the_rows_the_log_has(spark, log, rows):
    frame = spark.read.format("indextables").load(path_of(log))
    assert frame.columns == ["id", "p", "name"]
    assert ids(frame) == rows
    assert ids(frame.filter("id > 12 AND p = 'x1'")) == [at for at in rows if 12 < at < 20 or at >= 30]
    assert frame.groupBy("p").count().orderBy("p").collect()[0]["count"] == 20


def test_every_query_reads_only_the_files_its_filter_leaves(spark, log):
    frame = spark.read.format("indextables").load(path_of(log))
    assert ids(frame.filter("id = 12")) == [12]
    scan = last_scans(log.store.uri)[0]
    assert (scan.considered, scan.kept) == (4, 1)
    assert ids(frame.filter("p = 'x0' AND id < 5")) == list(range(5))
    assert last_scans(log.store.uri)[0].kept == 1


def test_an_older_version_is_read_as_it_was(spark, log, rows):
    reader = spark.read.format("indextables")
    assert ids(reader.option("versionAsOf", "1").load(path_of(log))) == list(range(10))
    times = it.DeltaTable.open(path_of(log)).history().to_pylist()
    moment = times[-2]["timestamp"].isoformat()
    assert ids(spark.read.format("indextables").option("timestampAsOf", moment).load(path_of(log))) == list(
        range(10)
    )
    text = f"SELECT id FROM indextables.`{path_of(log)}` VERSION AS OF 2"
    assert ids(spark.sql(text)) == [at for at in rows if at < 20]


@pytest.mark.core
def test_sql_by_path_reads_the_newest_version(spark, log, rows):
    text = f"SELECT id FROM indextables.`{path_of(log)}` WHERE p = 'x0'"
    even = [at for at in rows if at // 10 % 2 == 0]
    assert ids(spark.sql(text)) == even
    append(log, "new", [99], "x0")
    assert ids(spark.sql(text)) == [*even, 99]


def test_a_view_follows_the_table(spark, log, rows):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW dv USING indextables OPTIONS (path '{path_of(log)}')")
    assert ids(spark.sql("SELECT id FROM dv")) == rows
    append(log, "new", [99], "x0")
    assert ids(spark.sql("SELECT id FROM dv WHERE id > 38")) == [39, 99]


def test_a_view_over_a_table_that_gets_deletion_vectors_never_shows_deleted_rows(spark, tmp_path):
    log = sales(tmp_path / "t")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW late USING indextables OPTIONS (path '{tmp_path}/t')")
    assert spark.sql("SELECT * FROM late").count() == 40
    rows = pa.table({"id": list(range(10)), "name": ["n"] * 10})
    log.commit(remove("f0"), put_file(log, "f0", rows, dv=inline_vector([3]), partitionValues={"p": "x0"}))
    with pytest.raises(
        Exception, match="has gained deletion vectors since it was loaded at version 4. Load it again"
    ):
        spark.table("late").collect()


def test_columns_and_engine_are_options_of_a_load(spark, log, rows):
    frame = spark.read.format("indextables").option("columns", "name,id").load(path_of(log))
    assert frame.columns == ["name", "id"]
    assert ids(frame) == rows


def test_a_load_says_what_it_cannot_do(spark, log):
    with pytest.raises(OptionError, match="is a Delta table, which has none"):
        spark.read.format("indextables").option("query", "n1").load(path_of(log))
    with pytest.raises(CommandError, match="is a Delta table, which has none"):
        spark.sql(f"SELECT * FROM indextables.`{path_of(log)}` WHERE name indexquery 'n1'").collect()


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_writing_to_a_delta_table_is_refused_before_anything_is_written(spark, log, mode):
    before = sorted(meta.path for meta in log.store.list())
    with pytest.raises(TableError, match="is a Delta table, which IndexTables does not write to"):
        spark.range(3).write.format("indextables").mode(mode).save(path_of(log))
    assert sorted(meta.path for meta in log.store.list()) == before


def test_inserting_into_a_delta_table_is_refused(spark, tmp_path):
    log = sales(tmp_path / "t")
    before = sorted(meta.path for meta in log.store.list())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW kept USING indextables OPTIONS (path '{tmp_path}/t')")
    for text in ("INSERT INTO kept VALUES (1, 'x', 'y')", "INSERT OVERWRITE kept VALUES (1, 'x', 'y')"):
        with pytest.raises(NotATableError, match="read and never written"):
            spark.sql(text)
    spark.catalog.dropTempView("kept")
    assert sorted(meta.path for meta in log.store.list()) == before


def test_explain_says_which_files_are_left_and_by_what(spark, tmp_path, capsys):
    sales(tmp_path / "t")
    frame = spark.read.format("indextables").load(str(tmp_path / "t")).filter("p = 'x1' AND id > 32")
    frame.explain()
    assert (
        "version 4, kept 1 of 4, 2 pruned by partition, 1 by statistics, engine columnar"
        in capsys.readouterr().out
    )


def test_a_query_is_logged_once(spark, tmp_path, caplog):
    sales(tmp_path / "t")
    frame = spark.read.format("indextables").load(str(tmp_path / "t")).filter("id > 32")
    with caplog.at_level(logging.INFO, "indextables"):
        assert frame.count() == 7
    lines = [entry.getMessage() for entry in caplog.records if "files to read" in entry.getMessage()]
    assert len(lines) == 1
    assert "version 4: 1 of 4 files to read" in lines[0]


def test_the_spark_engine_says_how_many_entries_executors_parsed(spark, tmp_path):
    log = sales(tmp_path / "t")
    log.checkpoint("classic")
    table = it.DeltaTable.open(tmp_path / "t", spark=spark)
    assert table.files("id > 32", engine="spark").num_rows == 1
    replay = table.last_scan.replay
    assert (replay.engine, replay.why) == ("spark", "engine=spark was asked for")
    assert replay.rows_on_executors == 4
    assert set(replay.seconds) >= {"plan", "run"}


def test_to_df_takes_text_expressions_and_columns_of_spark(spark, log, rows):
    table = it.DeltaTable.open(path_of(log), spark=spark)
    wanted = [at for at in rows if at > 30]
    for where in (
        "id > 30",
        it.col("id") > 30,
        F.col("id") > 30,
        (F.col("id") > 30) & (F.length("name") > 2),
    ):
        assert ids(table.to_df(where)) == wanted
        assert table.count(where) == len(wanted)
    assert table.to_df("id = 7", columns=["name"]).collect()[0].asDict() == {"name": "n7"}
    assert sorted(table.scan(F.col("id") > 30).read_all().column("id").to_pylist()) == wanted


def test_a_column_of_spark_prunes_files_as_its_text_would(spark, log):
    table = it.DeltaTable.open(path_of(log), spark=spark)
    for column, text in (
        (F.col("id") > 25, "id > 25"),
        ((F.col("p") == "x1") & (F.col("id") < 15), "p = 'x1' AND id < 15"),
        (F.col("name").startswith("n3"), "name LIKE 'n3%'"),
        (F.col("id").isin(3, 33), "id IN (3, 33)"),
        (F.rand() > 2, None),
    ):
        mine = table.files(column).column("path").to_pylist()
        assert mine == table.files(text).column("path").to_pylist(), text


def test_a_column_that_spark_cannot_resolve_is_its_error(spark, log):
    with pytest.raises(Exception, match="nowhere"):
        it.DeltaTable.open(path_of(log), spark=spark).files(F.col("nowhere") > 1)


@pytest.fixture
def named(spark, log):
    """A name for a Delta table."""
    location = path_of(log).replace("'", "\\'")
    spark.sql(f"CREATE TABLE named_delta USING indextables LOCATION '{location}'")
    yield "named_delta"
    spark.sql("DROP TABLE IF EXISTS named_delta")


@pytest.mark.core
def test_a_named_delta_table_is_read_by_queries_of_every_kind(spark, log, named, rows):
    assert spark.table(named).columns == ["id", "p", "name"]
    assert ids(spark.table(named)) == rows
    assert ids(spark.sql("SELECT id FROM named_delta WHERE id > 12 AND p = 'x1'")) == [
        at for at in rows if 12 < at < 20 or at >= 30
    ]
    counted = spark.sql("SELECT p, count(*) AS n, max(name) AS most FROM named_delta GROUP BY p ORDER BY p")
    assert [row["n"] for row in counted.collect()] == [20, len(rows) - 20]
    both = "SELECT a.id FROM named_delta a JOIN named_delta b ON a.id = b.id + 10 WHERE a.p = 'x0'"
    assert ids(spark.sql(both)) == [at for at in rows if 20 <= at < 30 and at - 10 in rows]
    inner = "SELECT id FROM named_delta WHERE id = (SELECT max(id) FROM named_delta WHERE p = 'x0')"
    assert ids(spark.sql(inner)) == [29]
    assert ids(spark.sql("SELECT id FROM named_delta VERSION AS OF 1")) == list(range(10))
    append(log, "new", [99], "x0")
    assert ids(spark.sql("SELECT id FROM named_delta WHERE id > 38")) == [39, 99]


def test_a_query_by_name_reads_only_the_files_its_filter_leaves(spark, log, named):
    assert ids(spark.sql("SELECT id FROM named_delta WHERE id = 12")) == [12]
    scan = last_scans(log.store.uri)[0]
    assert (scan.considered, scan.kept) == (4, 1)
    assert spark.sql("SELECT name FROM named_delta WHERE p = 'x0' AND id < 5").count() == 5
    assert last_scans(log.store.uri)[0].kept == 1


def test_a_named_delta_table_is_cached_once(spark, log, named, rows):
    spark.sql("CACHE TABLE named_delta")
    try:
        assert ids(spark.sql("SELECT id FROM named_delta")) == rows
        before = len(last_scans(log.store.uri, 1000))
        assert ids(spark.sql("SELECT id FROM named_delta WHERE id < 3")) == [0, 1, 2]
        assert len(last_scans(log.store.uri, 1000)) == before
    finally:
        spark.sql("UNCACHE TABLE named_delta")


def test_a_named_delta_table_says_what_it_is(spark, log, named, rows):
    by_path = f"indextables.`{path_of(log)}`"
    for subject in (named, by_path):
        detail = spark.sql(f"DESCRIBE DETAIL {subject}").first()
        assert (detail["provider"], detail["num_files"], detail["num_rows"]) == ("delta", 4, len(rows))
        assert [row["version"] for row in spark.sql(f"DESCRIBE HISTORY {subject} LIMIT 2").collect()] == [
            4,
            3,
        ]
        properties = {
            row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {subject}").collect()
        }
        assert properties["delta.minReaderVersion"] == str(
            it.DeltaTable.open(path_of(log)).protocol.min_reader_version
        )
        listed = spark.sql(f"DESCRIBE INDEXTABLES FILES {subject} COLUMNS (path, size) WHERE id = 12")
        assert (listed.columns, listed.count()) == (["path", "size"], 1)
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {named}").collect()] == ["p=x0", "p=x1"]
    shown = spark.sql(f"SHOW PARTITIONS {by_path}").collect()
    assert [(row["p"], row["num_rows"]) for row in shown] == [("x0", 20), ("x1", len(rows) - 20)]
    described = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {named}").collect()
    }
    assert (described["id"], described["Provider"]) == ("bigint", "indextables")


CHANGES = [
    ("INSERT INTO {t} VALUES (1, 'x', 'y')", "INSERT"),
    ("INSERT OVERWRITE {t} VALUES (1, 'x', 'y')", "INSERT"),
    ("INSERT INTO {t} REPLACE WHERE p = 'x0' VALUES (1, 'x0', 'y')", "INSERT"),
    ("DELETE FROM {t} WHERE id = 3", "DELETE"),
    ("DELETE FROM {t}", "DELETE"),
    ("UPDATE {t} SET id = 4", "UPDATE"),
    ("MERGE INTO {t} USING (SELECT 3L AS id) s ON s.id = {t}.id WHEN MATCHED THEN DELETE", "MERGE"),
    ("TRUNCATE TABLE {t}", "TRUNCATE TABLE"),
    ("ALTER TABLE {t} ADD COLUMN x INT", "ALTER TABLE"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('a.b' = 'c')", "ALTER TABLE"),
    ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id > 0)", "ALTER TABLE ADD CONSTRAINT"),
    ("ALTER TABLE {t} DROP CONSTRAINT c", "ALTER TABLE DROP CONSTRAINT"),
    ("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL", "ALTER TABLE ALTER COLUMN SET NOT NULL"),
    ("ALTER TABLE {t} DROP PARTITION (p = 'x0')", "ALTER TABLE DROP PARTITION"),
    ("ALTER TABLE {t} ADD PARTITION (p = 'x9')", "ALTER TABLE ADD PARTITION"),
    ("CREATE OR REPLACE TABLE {t} USING indextables LOCATION '{l}' AS SELECT 1 AS id", "REPLACE TABLE"),
    ("CREATE TABLE other USING indextables LOCATION '{l}' AS SELECT 1 AS id", "CREATE TABLE"),
    ("OPTIMIZE {t}", "OPTIMIZE"),
    ("VACUUM {t}", "VACUUM"),
    ("RESTORE TABLE {t} TO VERSION AS OF 1", "RESTORE"),
    ("CHECKPOINT INDEXTABLES {t}", "CHECKPOINT INDEXTABLES"),
    ("DROP INDEXTABLES PARTITIONS FROM {t} WHERE p = 'x0'", "DROP INDEXTABLES PARTITIONS"),
    ("TRUNCATE INDEXTABLES TIME TRAVEL {t}", "TRUNCATE INDEXTABLES TIME TRAVEL"),
]


def test_every_change_of_a_named_delta_table_is_refused_by_its_words(spark, log, named, rows):
    location = path_of(log)
    before = sorted(meta.path for meta in log.store.list())
    for text, words in CHANGES:
        with pytest.raises(TableError, match=f"{words}.* is not possible: .* is a Delta table, which"):
            spark.sql(text.format(t=named, l=location)).collect()
    with pytest.raises(TableError, match="which keeps its columns"):
        spark.sql(f"CREATE TABLE other (id LONG) USING indextables LOCATION '{location}'")
    assert sorted(meta.path for meta in log.store.list()) == before
    assert ids(spark.table(named)) == rows


def test_the_name_of_a_delta_table_is_changed_and_dropped_without_the_table(spark, log, named, rows):
    spark.sql("ALTER TABLE named_delta RENAME TO renamed_delta")
    assert ids(spark.table("renamed_delta")) == rows
    spark.sql("DROP TABLE renamed_delta")
    assert ids(spark.read.format("indextables").load(path_of(log))) == rows


@pytest.mark.core
def test_delta_without_its_package_is_answered_with_how_to_read_it(spark, tmp_path):
    sales(tmp_path / "t")
    path = str(tmp_path / "t")
    for ask in (
        lambda: spark.sql(f"SELECT * FROM delta.`{path}`"),
        lambda: spark.table(f"delta.`{path}`"),
    ):
        with pytest.raises(CommandError, match=f"use indextables.`{path}` in SQL"):
            ask()
    for ask in (
        lambda: spark.read.format("delta").load(path),
        lambda: spark.range(1).write.format("delta").save(f"{path}-new"),
    ):
        with pytest.raises(CommandError, match="reads Delta tables without it, and never writes them"):
            ask()


def test_golden_tables_load_natively_with_the_rows_of_the_reader_without_spark(spark):
    """K7: one table of every kind that Spark's reader needs help with, and several that it does not."""
    for name in (
        "dat__deletion_vectors", "dat__column_mapping", "dat__multi_partitioned", "dat__all_primitive_types",
        "kernel-rs__type-widening", "kernel-rs__partition_cm~id", "delta-golden__data-reader-escaped-chars",
        "delta-rs__delta-0.8.0-null-partition", "delta-golden__v2-checkpoint-json",
        "delta-golden__data-reader-nested-struct",
    ):  # fmt: skip
        path = str(shared("golden", "delta", "tables", name))
        ours = it.DeltaTable.open(path).scan().read_all()
        loaded = spark.read.format("indextables").load(path).toArrow()
        assert loaded.column_names == ours.column_names, name
        assert sorted(map(str, loaded.to_pylist())) == sorted(map(str, ours.to_pylist())), name
        by_path = spark.sql(f"SELECT * FROM indextables.`{path}`").toArrow()
        assert sorted(map(str, by_path.to_pylist())) == sorted(map(str, ours.to_pylist())), name
