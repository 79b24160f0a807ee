"""Every maintenance statement through `spark.sql`, and plain SQL that only looks like one."""

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError
from support.statements import DRY_RUNS, STATEMENTS, make_table
from support.upkeep import fingerprint

pytestmark = pytest.mark.spark

SPARK_NAMES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
    pa.float64(): "double",
    pa.timestamp("ms", tz="UTC"): "timestamp",
    pa.map_(pa.string(), pa.string()): "map<string,string>",
    pa.list_(pa.string()): "array<string>",
}


@pytest.fixture
def path(tmp_path):
    make_table(str(tmp_path / "t"))
    return str(tmp_path / "t")


@pytest.fixture
def view(spark, path):
    spark.read.format("indextables").load(path).createOrReplaceTempView("kept_events")
    yield "kept_events"
    spark.catalog.dropTempView("kept_events")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_returns_a_dataframe_with_exactly_its_columns(spark, path, statement):
    frame = spark.sql(statement.format(t=path))
    assert frame.dtypes == [(name, SPARK_NAMES[kind]) for name, kind in STATEMENTS[statement]]
    rows = frame.collect()
    if "status" in frame.columns:
        assert {row.status for row in rows} <= {"SUCCESS", "NO ACTION"}


@pytest.mark.parametrize("statement", DRY_RUNS)
def test_a_dry_run_leaves_the_directory_byte_identical(spark, path, tmp_path, statement):
    before = fingerprint(tmp_path)
    spark.conf.set("spark.indextables.purge.retentionCheckEnabled", "false")
    try:
        (row,) = spark.sql(statement.format(t=path)).collect()
    finally:
        spark.conf.unset("spark.indextables.purge.retentionCheckEnabled")
    assert row.status == "DRY RUN"
    assert fingerprint(tmp_path) == before


def test_a_view_of_a_table_can_be_named(spark, path, view):
    (row,) = spark.sql(f"MERGE SPLITS {view} DRY RUN").collect()
    assert (row.table_path, row.merged_files) == (it.Table.open(path).uri, 4)
    assert spark.sql(f"DESCRIBE INDEXTABLES STATE `{view}`").first().num_rows == 20


def test_a_view_of_something_else_is_refused(spark):
    spark.range(3).createOrReplaceTempView("plain_numbers")
    with pytest.raises(CommandError, match="not a view of an IndexTables table"):
        spark.sql("CHECKPOINT INDEXTABLES plain_numbers")


def test_a_syntax_error_is_ours_and_shows_where(spark):
    """J8: a syntax error shows line, column and what was expected."""
    with pytest.raises(CommandError, match=r"Line 2, column 4.*LOCATION"):
        spark.sql("REPAIR INDEXFILES TRANSACTION LOG '/a'\nAT LOCATON '/b'")


@pytest.mark.parametrize(
    "statement",
    [
        "REPAIR TABLE never_created",
        "DESCRIBE never_created",
        "DROP TABLE never_created",
        "TRUNCATE TABLE never_created",
        "DELETE FROM never_created WHERE id = 1",
    ],
)
def test_plain_sql_with_the_same_words_goes_to_spark(spark, statement):
    with pytest.raises(Exception) as caught:
        spark.sql(statement)
    assert not isinstance(caught.value, it.Error), "Spark itself answered"


def test_ordinary_statements_are_parsed_without_python(spark, monkeypatch):
    """Python is asked about a statement only if its first words may make it ours."""
    from indextables.spark.bridge import attach

    texts = []

    def listening(request):
        texts.append(request.arguments["text"])
        return {}

    monkeypatch.setitem(attach._ANSWERS, "statement", listening)
    ordinary = [
        "SELECT 'MERGE SPLITS x'",
        "-- OPTIMIZE x\nSHOW TABLES",
        "/* a /* MERGE SPLITS */ b */ SHOW DATABASES",
        "DESCRIBE FUNCTION abs",
        "CREATE OR REPLACE TEMPORARY VIEW ordinary_one AS SELECT 1",
        "DROP VIEW ordinary_one",
        "SET spark.sql.shuffle.partitions",
    ]
    for text in ordinary:
        spark.sql(text)
    assert texts == []
    perhaps = ["OPTIMIZE x", " /* a */ merge -- b\n splits x", "RESTORE 'x' TO VERSION 1", "VACUUM'x'"]
    for text in perhaps:
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            spark.sql(text)
    assert texts == perhaps


def test_a_command_runs_once_however_often_its_rows_are_read(spark, path):
    frame = spark.sql(f"DELETE FROM INDEXTABLES '{path}' WHERE id = 3")
    version = it.Table.open(path).version
    assert frame.collect() == frame.filter("rows_deleted = 1").collect()
    assert frame.count() == 1
    assert it.Table.open(path).version == version


def test_threads_and_new_sessions_run_commands(spark, path):
    from concurrent.futures import ThreadPoolExecutor

    other = spark.newSession()
    other.sql(f"CREATE TEMPORARY VIEW seen_by_one USING indextables OPTIONS (path '{path}')")

    def versions(at: int) -> int:
        session, table = ((spark, f"'{path}'"), (other, "seen_by_one"))[at % 2]
        return session.sql(f"DESCRIBE INDEXTABLES HISTORY {table}").count()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(versions, range(12))) == {5}
    with pytest.raises(CommandError, match="not a view of an IndexTables table"):
        spark.sql("DESCRIBE INDEXTABLES HISTORY seen_by_one")


def test_describe_and_drop_of_sparks_own_tables_still_work(spark, tmp_path):
    spark.sql(f"CREATE TABLE indextables (id INT, state STRING) USING parquet LOCATION '{tmp_path}/p'")
    try:
        assert [row.col_name for row in spark.sql("DESCRIBE indextables").collect()] == ["id", "state"]
    finally:
        spark.sql("DROP TABLE indextables")


def test_it_sql_with_a_session_knows_views_and_session_settings(spark, path, view):
    spark.conf.set("spark.indextables.merge.targetBytes", "1")
    try:
        assert it.sql(f"MERGE SPLITS {view} DRY RUN", spark=spark)["merge_groups"].to_pylist() == [0]
    finally:
        spark.conf.unset("spark.indextables.merge.targetBytes")
    assert it.sql(f"MERGE SPLITS {view} DRY RUN", spark=spark)["merge_groups"].to_pylist() == [2]


@pytest.mark.core
def test_merge_on_the_executors_keeps_rows_and_searches(spark, path):
    frame = spark.read.format("indextables").load(path)
    before = sorted(map(tuple, frame.collect()))
    found = it.Table.open(path).count(query="message:happened")
    (row,) = spark.sql(f"MERGE SPLITS '{path}'").collect()
    assert (row.status, row.merged_files, row.merge_groups) == ("SUCCESS", 4, 2)
    after = spark.read.format("indextables").load(path)
    assert sorted(map(tuple, after.collect())) == before
    assert it.Table.open(path).count(query="message:happened") == found
    assert len(after.inputFiles()) == 2


def test_delete_on_the_executors_is_exact(spark, path):
    (row,) = spark.sql(f"DELETE FROM INDEXTABLES '{path}' WHERE id IN (2, 4) OR id > 17").collect()
    assert row.rows_deleted == 4
    ids = [r.id for r in spark.read.format("indextables").load(path).select("id").collect()]
    assert sorted(ids) == [i for i in range(18) if i not in (2, 4)]


def test_a_condition_without_an_offset_is_read_in_the_zone_of_the_session(spark, tmp_path):
    """H11: text without an offset means the session's zone; an offset in the literal wins."""
    import datetime as dt

    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    table = it.Table.create(tmp_path / "z", schema)
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    table.append(pa.table({"id": [0, 5], "ts": [noon, noon + dt.timedelta(hours=5)]}, schema))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        spark.sql(f"DELETE FROM INDEXTABLES '{table.uri}' WHERE ts = TIMESTAMP '2024-01-01 12:00:00'")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert [row["id"] for row in table.refresh().scan().read_all().to_pylist()] == [0]


@pytest.mark.core
def test_the_whole_manual_recovery_in_spark(spark, tmp_path, path):
    """The specification's workflow: repair, back up, swap, verify."""
    from pathlib import Path

    root = Path(path)
    spark.sql(f"CHECKPOINT INDEXTABLES '{path}'")
    before = spark.read.format("indextables").load(path).count()
    (checkpoint,) = (root / "_transaction_log").glob("*.checkpoint.json")
    checkpoint.write_bytes(b"broken")
    damaged = fingerprint(root / "_transaction_log")
    (row,) = spark.sql(
        f"""REPAIR INDEXFILES TRANSACTION LOG '{path}/_transaction_log'
            AT LOCATION '{path}/_transaction_log_repaired'"""
    ).collect()
    assert (row.status, row.valid_splits, row.missing_splits) == ("SUCCESS", 4, 0)
    assert fingerprint(root / "_transaction_log") == damaged
    (root / "_transaction_log").rename(root / "_transaction_log_backup")
    (root / "_transaction_log_repaired").rename(root / "_transaction_log")
    spark.sql("INVALIDATE INDEXTABLES TRANSACTION LOG CACHE")
    assert spark.sql(f"SELECT count(*) AS n FROM indextables.`{path}`").first().n == before


def test_a_large_check_runs_on_the_executors(spark, path, monkeypatch):
    """REPAIR validates on Spark workers above a threshold."""
    import indextables.ops.existence as existence
    from indextables.spark.workers import SparkWorkers

    monkeypatch.setattr(existence, "DISTRIBUTE_FROM", 1)
    used = []
    original = SparkWorkers.map

    def watched(self, function, items, *, parallelism=None):
        used.append(parallelism)
        return original(self, function, items, parallelism=parallelism)

    monkeypatch.setattr(SparkWorkers, "map", watched)
    result = it.repair_log(f"{path}/_transaction_log", f"{path}/_new", spark=spark)
    assert (result.status, result.valid_splits) == ("SUCCESS", 4)
    assert used == [4]


@pytest.fixture
def known(spark, tmp_path):
    """A table by its path, as a view and as a named table, each of its own."""
    from support.familiar_statements import make_familiar_table

    for name in ("by_path", "by_view", "by_name"):
        make_familiar_table(str(tmp_path / name))
    spark.read.format("indextables").load(str(tmp_path / "by_view")).createOrReplaceTempView("known_view")
    spark.sql(f"CREATE TABLE known_name USING indextables LOCATION '{tmp_path / 'by_name'}'")
    yield (f"'{tmp_path / 'by_path'}'", "known_view", "known_name")
    spark.catalog.dropTempView("known_view")
    spark.sql("DROP TABLE known_name")


def test_statements_of_other_systems_reach_a_table_by_path_view_and_name(spark, known):
    from support.familiar_statements import REFUSED, UNNEEDED, WORKING

    for table in known:
        for statement, wanted in WORKING.items():
            if statement.startswith("SHOW") and table == "known_name":
                # Spark asks the catalog for the partitions of a named table.
                assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {table}").collect()] == [
                    "day=mon",
                    "day=tue",
                ]
                continue
            row = spark.sql(statement.format(t=table)).first()
            assert {key: row[key] for key in wanted} == wanted, (statement, table)
    for statement, words in UNNEEDED.items():
        row = spark.sql(statement.format(t=known[0])).first()
        assert (row.status, words in row.message) == ("NOT NEEDED", True), statement
    for statement, words in REFUSED.items():
        with pytest.raises(CommandError, match=words):
            spark.sql(statement.format(t=known[1]))


def test_the_same_words_about_a_table_of_another_format_are_left_to_spark(spark):
    spark.sql("CREATE TABLE plain_parquet (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    try:
        spark.sql("INSERT INTO plain_parquet VALUES (1, 'mon')")
        assert spark.sql("SHOW PARTITIONS plain_parquet").first()[0] == "day=mon"
        spark.sql("ANALYZE TABLE plain_parquet COMPUTE STATISTICS")
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            spark.sql("OPTIMIZE plain_parquet")
    finally:
        spark.sql("DROP TABLE plain_parquet")


def test_a_version_at_the_end_of_a_path_in_a_query_is_answered_with_how_to_say_it(spark, path):
    with pytest.raises(it.Error, match="VERSION AS OF 1"):
        spark.sql(f"SELECT * FROM indextables.`{path}@v1`")


def test_statistics_are_suggested_for_a_table_by_its_name(spark, tmp_path):
    """Spark has an ANALYZE TABLE of its own, which does not know FOR SKIPPING."""
    table = it.Table.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    spark.sql(f"CREATE TABLE suggested USING indextables LOCATION '{table.uri}'")
    try:
        by_name = spark.sql("ANALYZE TABLE suggested FOR SKIPPING").collect()
        assert by_name == spark.sql(f"ANALYZE INDEXTABLES '{table.uri}' FOR SKIPPING").collect()
        assert spark.sql("ANALYZE TABLE suggested COMPUTE STATISTICS").collect() == []
    finally:
        spark.sql("DROP TABLE suggested")
