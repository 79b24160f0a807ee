"""A SELECT without Spark reads what `Table` would: few splits, one time zone, scores and highlights."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CommandError
from indextables.index.read.cache import MEMORY
from indextables.log.transaction_log import TransactionLog
from indextables.split.open_splits import forget_splits
from indextables.sql.select.run import run_select
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import CountingStore

DAYS = 300
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
INDEXED = {"indexing.typemap.message": "text", "checkpoint.enabled": "false"}


@pytest.fixture(scope="module")
def store():
    return CountingStore(MemoryStore(f"memory://select-{uuid.uuid4().hex}"))


@pytest.fixture(scope="module")
def days(store):
    """One partition, and one split, for each of three hundred days."""
    log = TransactionLog.open(store.uri, INDEXED, store=store)
    log.initialize(SCHEMA, ["day"], properties={f"spark.indextables.{key}": INDEXED[key] for key in INDEXED})
    made = Table(log, log.snapshot())
    names = [f"d{n:03}" for n in range(DAYS)]
    rows = {
        "id": range(2 * DAYS),
        "day": [name for name in names for _ in range(2)],
        "message": ["disk full", "all quiet"] * DAYS,
    }
    made.append(pa.table(rows, SCHEMA))
    return made


def splits_opened(store, table, text):
    """How many split files a statement opens in a process that has opened none."""
    forget_splits()
    MEMORY.clear()
    store.clear()
    found = run_select(text, {"logs": table}).to_pylist()
    return len({path for path in store.reads if path.endswith(".split") or ".parquet" in path}), found


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("SELECT id FROM logs WHERE day = 'd001'", [2, 3]),
        ("SELECT l.id FROM logs AS l WHERE l.day IN ('d001') AND lower(l.message) <> ''", [2, 3]),
        ("SELECT id FROM logs WHERE message indexquery 'disk' AND day = 'd001'", [2]),
        ("SELECT id FROM logs WHERE day = 'd001' AND (message indexquery 'disk' OR id = 3)", [2, 3]),
        ("SELECT id, _score FROM logs WHERE message indexquery 'disk' AND day = 'd001'", [2]),
        ("WITH one AS (SELECT * FROM logs WHERE day = 'd001') SELECT id FROM one", [2, 3]),
        ("SELECT id FROM (VALUES (3)) AS v(n) JOIN logs ON id = n AND day = 'd001'", [3]),
        ("SELECT id FROM logs LEFT JOIN (VALUES (3)) AS v(n) ON id = n WHERE day = 'd001'", [2, 3]),
    ],
)
def test_a_condition_on_a_partition_opens_one_split_of_three_hundred(store, days, text, ids):
    opened, found = splits_opened(store, days, text)
    assert sorted(row["id"] for row in found) == ids
    assert opened == (DAYS if "_score" in text else 1)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # A row of the optional side is replaced by nulls, which this WHERE is after.
        ("SELECT count(*) FROM (VALUES (3)) v(n) LEFT JOIN logs ON id = n WHERE day IS NULL", 0),
        ("SELECT count(*) FROM logs a POSITIONAL JOIN logs b WHERE a.day = 'd002' AND b.day = 'd002'", 2),
        ("SELECT count(*) FROM logs a ASOF JOIN logs b ON a.id > b.id WHERE b.day = 'd000'", 2),
        (
            "SELECT count(*) FROM logs a ASOF JOIN logs b ON a.id > b.id WHERE b.message indexquery 'disk'",
            300,
        ),
        ("SELECT count(*) FROM logs AS l(a, day, c) WHERE day = 'd001'", 2),
    ],
)
def test_a_row_that_counts_without_being_shown_is_read(days, text, count):
    assert [tuple(row.values()) for row in run_select(text, {"logs": days}).to_pylist()] == [(count,)]


def test_the_best_rows_are_asked_for_with_what_where_says_beside_the_search(days):
    text = (
        "SELECT _score, * FROM logs WHERE message indexquery 'disk' AND day >= 'd290' "
        "ORDER BY _score DESC LIMIT 3"
    )
    best = run_select(text, {"logs": days})
    assert best.column_names == ["_score", "id", "day", "message"]
    expected = days.search("message:disk", where="day >= 'd290'", limit=3, score=True).to_arrow()
    assert best["_score"].to_pylist() == pytest.approx(expected["_score"].to_pylist())
    assert best.num_rows == 3
    share = run_select(text.replace("LIMIT 3", "LIMIT 50%"), {"logs": days})
    assert share.num_rows == 5
    # What the index cannot decide is decided before rows are counted.
    odd = text.replace("day >= 'd290'", "id % 4 = 2 AND day >= 'd290'")
    assert [row["id"] % 4 for row in run_select(odd, {"logs": days}).to_pylist()] == [2, 2, 2]


def test_matches_are_highlighted_beside_a_search_and_without_one(days):
    marked = "SELECT highlight(message, 'disk') AS m FROM logs WHERE message indexquery 'disk' LIMIT 1"
    assert run_select(marked, {"logs": days}).to_pylist() == [{"m": "<em>disk</em> full"}]
    alone = "SELECT highlight(l.message, 'quiet') AS m FROM logs l WHERE id = 1"
    assert run_select(alone, {"logs": days}).to_pylist() == [{"m": "all <em>quiet</em>"}]
    shown = run_select("SELECT * FROM logs WHERE highlight(message, 'x') IS NULL", {"logs": days})
    assert shown.column_names == SCHEMA.names


def test_a_score_without_a_search_says_what_it_needs(days):
    with pytest.raises(CommandError, match="it needs one indexquery"):
        run_select("SELECT _score FROM logs", {"logs": days})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT nowhere FROM '{path}'", "the statement reads has no column 'nowhere'; it has id, ts, local"),
        ("SELECT t.nowhere FROM '{path}' t", "has no column 'nowhere'"),
        ("SELECT nowhere FROM '{path}' WHERE id = 1 OR ts IS NULL", "has no column 'nowhere'"),
        ("SELECT u.id FROM '{path}' t", "there is no table 'u' here"),
        ("SELECT id FROM '{path}' JOIN '{path}' ON true", "DuckDB cannot run the statement: .*'{path}'"),
    ],
)
def test_messages_name_what_the_author_wrote(times, text, message):
    with pytest.raises(CommandError, match=message.replace("{path}", times.uri)) as raised:
        it.sql(text.replace("{path}", times.uri))
    assert "__" not in str(raised.value)


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    """A row for each hour of three days, in UTC and as a local time."""
    start = datetime(2024, 3, 9, tzinfo=UTC)
    moments = [start + timedelta(hours=n) for n in range(72)]
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))])
    table = it.Table.create(str(tmp_path_factory.mktemp("times") / "t"), schema)
    local = [moment.replace(tzinfo=None) for moment in moments]
    table.append(pa.table({"id": range(72), "ts": moments, "local": local}, schema))
    return table


FROM_A_TIME = "ts >= '2024-03-10 05:00:00' AND local < '2024-03-11 07:30:00'"


def test_times_are_not_read_in_the_zone_of_the_machine(times):
    text = f"SELECT id FROM '{times.uri}' WHERE {FROM_A_TIME}"
    script = f"import indextables as it; print(it.sql({text!r}).num_rows)"
    ran = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "TZ": "Asia/Tokyo"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert int(ran.stdout) == times.count(FROM_A_TIME)


@pytest.fixture
def in_new_york(times):
    log = TransactionLog.open(times.uri)
    log.update_properties({"spark.indextables.timeZone": "America/New_York"})
    yield it.Table.open(times.uri)
    log.update_properties({"spark.indextables.timeZone": None})


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "+05:30", "-08:00"])
def test_the_option_decides_the_zone_and_then_the_property(in_new_york, zone):
    options = {} if zone is None else {"timeZone": zone}
    table = it.Table.open(in_new_york.uri, options=options)
    found = it.sql(f"SELECT * FROM '{table.uri}' WHERE {FROM_A_TIME} ORDER BY id", options=options)
    assert found.to_pylist() == table.scan(FROM_A_TIME).to_arrow().to_pylist()
    assert found.schema.field("ts").type == pa.timestamp("us", "UTC")
    grouped = (
        f"SELECT indextables_date_histogram(ts, 'day') AS bucket, count(*) AS count FROM '{table.uri}' "
        "GROUP BY 1 ORDER BY 1"
    )
    assert it.sql(grouped, options=options).to_pylist() == table.histogram("ts", "day").to_pylist()


@pytest.mark.parametrize("written", ["'{}'", "TIMESTAMP '{}'", "TIMESTAMPTZ '{}'", "TIMESTAMP'{}'"])
@pytest.mark.parametrize("moment", ["2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-11-03"])
def test_a_time_that_happened_twice_is_the_first_and_one_that_never_did_is_moved_on(
    tmp_path, written, moment
):
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    options = {"timeZone": "America/New_York" if len(moment) > 10 else "America/Havana"}
    table = it.Table.create(str(tmp_path / "t"), schema, options=options)
    start = datetime(2024, 11, 2, 20, tzinfo=UTC) if "11" in moment else datetime(2024, 3, 10, tzinfo=UTC)
    table.append(
        pa.table({"id": range(48), "ts": [start + timedelta(minutes=30 * n) for n in range(48)]}, schema)
    )
    literal = written.format(moment)
    for condition in (
        f"ts >= {literal}",
        f"NOT ts < {literal}",
        f"ts IN ({literal})",
        f"ts = {literal} OR id < 3",
    ):
        plain = condition.replace("TIMESTAMPTZ ", "TIMESTAMP ")
        expected = it.Table.open(table.uri, options=options).scan(plain).to_arrow().column("id").to_pylist()
        found = it.sql(f"SELECT id FROM '{table.uri}' WHERE {condition} ORDER BY id", options=options)
        assert found.column("id").to_pylist() == expected, condition


def test_tables_in_two_zones_need_the_option_and_a_table_in_utc_gives_way(in_new_york, days, tmp_path):
    other = it.Table.create(str(tmp_path / "paris"), pa.schema([("id", pa.int64())]))
    other.append(pa.table({"id": [30]}))
    other.log.update_properties({"spark.indextables.timeZone": "Europe/Paris"})
    joined = f"SELECT count(*) AS n FROM '{in_new_york.uri}' a JOIN {{}} b USING (id) WHERE {FROM_A_TIME}"
    with pytest.raises(CommandError, match=r"America/New_York.*Europe/Paris.*give the option timeZone"):
        it.sql(joined.format(f"'{other.uri}'"))
    assert it.sql(joined.format(f"'{other.uri}'"), options={"timeZone": "UTC"}).to_pylist() == [{"n": 1}]
    expected = in_new_york.count(FROM_A_TIME)
    assert run_select(joined.format("days"), {"days": days}).to_pylist() == [{"n": expected}]


def test_buckets_of_nothing_but_nulls_are_null(tmp_path):
    """DuckDB calls a function with no row at all where every value is null."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    made = it.Table.create(str(tmp_path / "nulls"), schema)
    made.append(pa.table({"ts": [None, None], "n": [None, None]}, schema))
    for call in ("indextables_date_histogram(ts, 'day')", "indextables_histogram(n, 10)"):
        rows = it.sql(f"SELECT {call} AS bucket, count(*) AS c FROM '{made.uri}' GROUP BY 1").to_pylist()
        assert rows == [{"bucket": None, "c": 2}]
