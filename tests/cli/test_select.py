"""`indextables sql "SELECT ..."`: DuckDB over our tables, with searches inside, and no Java."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError
from indextables.sql.select.run import is_select, run_select

SCHEMA = pa.schema([("id", pa.int64()), ("level", pa.string()), ("message", pa.string())])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    root = str(tmp_path_factory.mktemp("select") / "logs")
    table = it.Table.create(root, SCHEMA, options={"indexing.typemap.message": "text"})
    for n in range(3):
        ids = range(n * 10, n * 10 + 10)
        messages = [None if i % 10 == 9 else "a timeout" if i % 5 == 0 else "all quiet" for i in ids]
        table.append(
            pa.table(
                {"id": ids, "level": [["info", "error"][i % 2] for i in ids], "message": messages}, SCHEMA
            )
        )
    return root


def rows(text, path):
    return [tuple(row.values()) for row in run_select(text, {"logs": path}).to_pylist()]


def test_a_table_is_named_by_path_by_version_or_by_a_name(path):
    assert rows("SELECT count(*) FROM logs", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM indextables.`{path}`", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM indextables.`{path}` VERSION AS OF 1", path) == [(10,)]
    assert rows(f"SELECT count(*) FROM '{path}' a JOIN '{path}' b USING (id)", path) == [(30,)]
    assert rows(f"SELECT count(*) FROM '{path}' WHERE message indexquery 'timeout'", path) == [(6,)]
    assert rows("SELECT count(*) FROM logs a JOIN logs b USING (id)", path) == [(30,)]
    assert rows("SELECT 'from' || 'x' AS a FROM logs LIMIT 1", path) == [("fromx",)]


def test_a_search_may_stand_in_any_boolean_position(path):
    found = rows("SELECT id FROM logs WHERE message indexquery 'timeout' ORDER BY id", path)
    assert [n for (n,) in found] == [0, 5, 10, 15, 20, 25]
    assert rows("SELECT level, count(*) FROM logs WHERE indexquery(message, 'timeout') GROUP BY level ORDER BY 1", path) == [
        ("error", 3), ("info", 3),
    ]  # fmt: skip
    either = "SELECT count(*) FROM logs WHERE message indexquery 'timeout' OR id = 1"
    assert rows(either, path) == [(7,)]
    both = (
        "SELECT count(*) FROM logs WHERE message indexquery 'timeout' AND message indexquery 'a' AND id > 4"
    )
    assert rows(both, path) == [(5,)]
    without = "SELECT count(*) FROM logs WHERE NOT message indexquery 'timeout'"
    assert rows(without, path) == [(21,)]


def test_a_star_shows_the_columns_of_the_table_and_no_others(path):
    either = "SELECT * FROM logs WHERE message indexquery 'timeout' OR id = 1"
    assert run_select(either, {"logs": path}).column_names == ["id", "level", "message"]
    less = "SELECT * EXCLUDE (level) FROM logs WHERE message indexquery 'timeout' OR id = 1"
    assert run_select(less, {"logs": path}).column_names == ["id", "message"]


def test_a_text_that_is_null_is_neither_found_nor_not(path):
    found = rows("SELECT message indexquery 'timeout' AS hit, count(*) FROM logs GROUP BY 1", path)
    assert dict(found) == {True: 6, False: 21, None: 3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT nowhere FROM logs", "nowhere"),
        ("SELECT * FROM read_csv('/etc/passwd')", "DuckDB cannot run"),
        ("SELECT * FROM logs WHERE level indexquery 'x'", "not indexed"),
        ("SELECT * FROM elsewhere", "--table NAME=PATH"),
        ("SELECT * FROM elsewhere WHERE message indexquery 'x'", "--table NAME=PATH"),
    ],
)
def test_mistakes_are_told_and_files_outside_are_not_read(path, text, said):
    with pytest.raises((CommandError, it.errors.QueryError), match=said):
        rows(text, path)


def test_a_statement_is_read_as_duckdb_reads_it(path):
    assert rows(r"SELECT 'a\' AS back, $$it's$$ AS dollar FROM logs LIMIT 1", path) == [("a\\", "it's")]
    assert rows("SELECT count(*) FROM logs WHERE level IS DISTINCT FROM 'info'", path) == [(15,)]
    assert rows(f"SELECT extract(year FROM '2024-05-01'::DATE) AS y FROM '{path}' LIMIT 1", path) == [(2024,)]
    assert rows("""SELECT count(*) FROM logs WHERE "message" indexquery '(timeout)'""", path) == [(6,)]
    assert rows("SELECT count(*) FROM logs WHERE indexquery(message, 'timeout OR \"(\"')", path) == [(6,)]
    both = run_select(f"SELECT id FROM '{path}'; SELECT * FROM '{path}' LIMIT 1")
    assert both.column_names == SCHEMA.names


def test_a_search_that_only_excludes_finds_no_row_without_a_text(path):
    assert rows("SELECT count(*) FROM logs WHERE message indexquery 'NOT timeout'", path) == [(21,)]
    both = "SELECT count(*) FROM logs WHERE message indexquery 'NOT timeout' AND (message indexquery 'quiet' OR id > 0)"
    assert rows(both, path) == [(21,)]


def test_maintenance_commands_are_not_taken_for_a_select():
    assert is_select("  -- a comment\n SELECT 1")
    assert is_select("with a as (select 1) select * from a")
    assert not is_select("MERGE SPLITS 'x'")
    assert not is_select("DESCRIBE INDEXTABLES HISTORY 'x'")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Times around both changes of the clocks of New York, numbers of both signs, and nulls."""
    starts = (datetime(2024, 3, 9, tzinfo=UTC), datetime(2024, 11, 2, 20, tzinfo=UTC))
    moments = [start + timedelta(minutes=50 * n) for start in starts for n in range(60)]
    schema = pa.schema(
        [
            ("ts", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("price", pa.float64()),
            ("id", pa.int64()),
        ]
    )
    data = {
        "ts": [None, *moments[1:]],
        "local": [moment.replace(tzinfo=None) for moment in moments],
        "price": [None, float("nan"), float("inf"), *(n * 0.37 - 11 for n in range(117))],
        "id": range(-60, 60),
    }
    table = it.Table.create(str(tmp_path_factory.mktemp("counted") / "t"), schema)
    table.append(pa.table(data, schema))
    return table


def counts(table, value="bucket"):
    return Counter({repr(row[value]): row["count"] for row in table.to_pylist()})


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
@pytest.mark.parametrize(
    ("cut", "shift"), [("1h", None), ("day", None), ("2 days", "6h"), ("week", "1d"), ("3 months", None)]
)
def test_times_are_cut_into_the_buckets_of_a_histogram(counted, zone, cut, shift):
    called = f"indextables_date_histogram(ts, '{cut}'{f', {shift!r}' if shift else ''})"
    text = f"SELECT {called} AT TIME ZONE 'UTC' AS bucket, count(*) AS count FROM '{counted.uri}' GROUP BY 1"
    found = run_select(text, options={"timeZone": zone})
    wanted = counted.histogram("ts", cut, offset=shift, time_zone=zone)
    wanted = wanted.set_column(0, "bucket", wanted["bucket"].cast(pa.timestamp("us")))
    assert counts(found) == counts(wanted)


def test_a_time_without_a_zone_is_one_of_the_zone_that_is_asked_for(counted):
    text = (
        "SELECT indextables_date_histogram(local, 'day') AT TIME ZONE 'Asia/Tokyo' AS bucket, count(*) AS count "
        f"FROM '{counted.uri}' GROUP BY 1"
    )
    found = run_select(text, options={"timeZone": "Asia/Tokyo"})
    assert counts(found) == counts(counted.histogram("local", "day"))


@pytest.mark.parametrize(
    ("column", "width", "shift"), [("price", 0.5, 0.1), ("price", 3, None), ("id", 7, 3)]
)
def test_numbers_are_cut_into_the_buckets_of_a_histogram(counted, column, width, shift):
    called = f"indextables_histogram({column}, {width}{'' if shift is None else f', {shift}'})"
    found = run_select(f"SELECT {called} AS bucket, count(*) AS count FROM '{counted.uri}' GROUP BY 1")
    wanted = counted.histogram(column, width, offset=shift)
    assert counts(found) == counts(wanted.set_column(0, "bucket", wanted["bucket"].cast(pa.float64())))


def test_each_row_may_have_a_width_of_its_own_and_ranges_have_names(counted):
    own = f"SELECT id, indextables_histogram(id, CASE WHEN id < 0 THEN 10 ELSE 4 END) AS at FROM '{counted.uri}'"
    assert all(
        row["at"] == row["id"] - row["id"] % (10 if row["id"] < 0 else 4)
        for row in run_select(own).to_pylist()
    )
    named = (
        "SELECT indextables_range(id, 'low', NULL, 0, 'some', 0, 50, 'never', 10, 20) AS value, count(*) AS count "
        f"FROM '{counted.uri}' GROUP BY 1"
    )
    assert counts(run_select(named), "value") == {"'low'": 60, "'some'": 50, "None": 10}
    priced = f"SELECT indextables_range(price, 'high', 5) AS value, count(*) AS count FROM '{counted.uri}' GROUP BY 1"
    above = counted.count("price >= 5")
    assert counts(run_select(priced), "value") == {"'high'": above, "None": 120 - above}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("indextables_date_histogram(ts, '3 moons')", "statement: '3 moons' is not an interval of time"),
        ("indextables_date_histogram(ts, '1h', '1 month')", "offset is '1 month'"),
        ("indextables_histogram(price, 0)", "above 0"),
    ],
)
def test_a_bucket_that_cannot_be_is_refused(counted, call, said):
    with pytest.raises(CommandError, match=said):
        run_select(f"SELECT {call} FROM '{counted.uri}'")


def test_python_runs_the_same_select_without_spark(path):
    text = f"SELECT count(*) AS n FROM '{path}' WHERE message indexquery 'timeout'"
    assert it.sql(text).to_pylist() == [{"n": 6}]
    assert it.sql(f"-- all\n{text}").to_pylist() == [{"n": 6}]
    with pytest.raises(CommandError, match=r"spark\.sql"):
        it.sql(text, spark=object())
