"""Aggregates, facets and histograms: what they count, and who had to be asked for it."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError, PredicateError, QueryError, SchemaError, TableError
from indextables.index.read.cache import MEMORY
from indextables.log.scans import last_scans
from indextables.ops.counting.aggregation import Aggregate, Aggregation
from indextables.ops.counting.run import from_log_alone
from indextables.split.open_splits import forget_splits

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("level", pa.string()),
        ("day", pa.string()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("on", pa.date32()),
        ("message", pa.string()),
        ("place", pa.struct([("city", pa.string())])),
    ]
)
OPTIONS = {"indexing.typemap.message": "text", "indexing.typemap.level": "string"}
START = datetime(2024, 11, 3, tzinfo=UTC)
NAN = float("nan")


def rows(seed, count, day):
    chance = random.Random(seed)
    return pa.table(
        {
            "id": range(seed * 1000, seed * 1000 + count),
            "level": chance.choices(["ERROR", "INFO", "WARN", "", None], k=count),
            "day": [day] * count,
            "price": chance.choices([1.5, NAN, 0.0, -0.0, -7.25, None], k=count),
            "amount": chance.choices([Decimal("1.10"), Decimal("-2.35"), None], k=count),
            "at": [START + timedelta(minutes=chance.randrange(3000)) for _ in range(count)],
            "on": [date(2024, 1, 1) + timedelta(days=chance.randrange(90)) for _ in range(count)],
            "message": chance.choices(["disk error", "timeout after error", "all well", None], k=count),
            "place": chance.choices([{"city": "Oslo"}, {"city": None}, None], k=count),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = it.Table.create(tmp_path_factory.mktemp("counting") / "t", SCHEMA, ["day"], OPTIONS)
    for seed, day in enumerate(["a", "b", "b", None]):
        made.append(rows(seed, 200, day))
    return made


@pytest.fixture(scope="module")
def everything(table):
    return table.scan().read_all().to_pylist()


def grouped(everything, column, keep=lambda row: True):
    return Counter(key(row[column]) for row in everything if keep(row))


def key(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def counts(found, column="value"):
    return {key(row[column]): row["count"] for row in found.to_pylist()}


def has_error(row):
    return "error" in (row["message"] or "")


@pytest.mark.parametrize("column", ["level", "day", "price", "amount", "on"])
def test_facets_count_every_value_with_null_and_nan_as_values(table, everything, column):
    assert counts(table.facets(column, top=None)) == grouped(everything, column)
    assert counts(table.facets(column, "error", top=None)) == grouped(everything, column, has_error)
    wanted = grouped(everything, column, lambda row: has_error(row) and row["id"] % 1000 < 50)
    where = " OR ".join(f"id BETWEEN {start} AND {start + 49}" for start in range(0, 4000, 1000))
    assert counts(table.facets(column, "error", where, top=None)) == wanted


def test_facets_come_most_frequent_first_and_equal_ones_in_order(table, everything):
    found = table.facets("level", top=2)
    best = sorted(grouped(everything, "level").items(), key=lambda item: (-item[1], item[0] or ""))[:2]
    assert [(row["value"], row["count"]) for row in found.to_pylist()] == best
    tied = table.facets("id", where="id < 3", top=None)["value"].to_pylist()
    assert tied == [0, 1, 2]


def test_partition_columns_and_plain_counts_are_answered_by_the_log(table, everything):
    table.facets("day")
    assert (table.last_scan.files_from_log, table.last_scan.files_read) == (4, 0)
    whole = table.aggregate(None, ["count(*)", "count(level)", "min(id)", "max(id)", "max(at)", "min(day)"])
    assert (table.last_scan.files_from_log, table.last_scan.files_read) == (4, 0)
    assert whole.to_pylist() == [
        {
            "count(*)": 800,
            "count(level)": sum(row["level"] is not None for row in everything),
            "min(id)": 0,
            "max(id)": 3199,
            "max(at)": max(row["at"] for row in everything),
            "min(day)": "a",
        }
    ]


def test_files_that_a_filter_takes_whole_are_counted_by_the_log_and_only_the_others_read(table):
    found = table.aggregate("day", "count(*)", where="id < 1050")
    assert found.to_pylist() == [{"day": "a", "count(*)": 200}, {"day": "b", "count(*)": 50}]
    assert (table.last_scan.files_from_log, table.last_scan.files_read) == (1, 1)


def test_a_whole_value_column_is_counted_by_its_dictionary(table):
    table.facets("level")
    assert (table.last_scan.files_from_index, table.last_scan.files_read) == (4, 0)
    table.facets("level", where="id >= 1000")
    assert (table.last_scan.files_from_index, table.last_scan.files_read) == (3, 0)


def test_hits_in_a_file_that_is_one_group_are_counted_by_the_index(table, everything):
    found = counts(table.facets("day", "error"))
    assert found == grouped(everything, "day", has_error)
    assert (table.last_scan.files_from_index, table.last_scan.files_read) == (4, 0)


def test_a_file_within_one_bucket_is_counted_by_the_log(table):
    found = table.histogram("id", 1000)
    assert found.to_pydict() == {"bucket": [0, 1000, 2000, 3000], "count": [200] * 4}
    assert table.last_scan.files_from_log == 4
    assert table.histogram("id", 1000, offset=100).to_pydict()["bucket"] == [-900, 100, 1100, 2100, 3100]
    assert table.last_scan.files_read == 4


def test_a_damaged_index_leaves_the_count_to_the_rows(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), OPTIONS)
    made.append(rows(1, 300, "a"))
    right = counts(made.facets("level", top=None))
    (split,) = (tmp_path / "t").glob("*.split")
    data = bytearray(split.read_bytes())
    (file,) = made.files().to_pylist()
    tags = dict(file["tags"])
    kept = sum(int(tags[name].partition(":")[0]) for name in ("indexRoot", "rowMap"))
    start, end = file["index_offset"], file["index_offset"] + file["index_length"] - kept
    data[start:end] = bytes(end - start)
    split.write_bytes(data)
    forget_splits()
    MEMORY.clear()
    again = it.Table.open(tmp_path / "t")
    assert counts(again.facets("level", top=None)) == right
    assert (again.last_scan.files_from_index, again.last_scan.search.damaged) == (0, 1)


def test_aggregates_follow_spark(table, everything):
    asked = {
        "n": "count(*)", "known": "count(price)", "kinds": "count(distinct price)", "ids": "sum(id)",
        "total": "sum(amount)", "mean": "avg(amount)", "least": "min(price)", "most": "max(price)",
        "last": "max(at)", "word": "min(message)",
    }  # fmt: skip
    found = table.aggregate(["day", "level"], asked)
    assert found.schema.field("total").type == pa.decimal128(20, 2)
    assert found.schema.field("mean").type == pa.decimal128(14, 6)
    groups = {(row["day"], row["level"]) for row in everything}
    assert found.num_rows == len(groups)
    assert found.column("day").to_pylist() == sorted(found.column("day").to_pylist(), key=lambda d: d or "")
    for row in found.to_pylist():
        mine = [one for one in everything if (one["day"], one["level"]) == (row["day"], row["level"])]
        prices = [one["price"] for one in mine if one["price"] is not None]
        amounts = [one["amount"] for one in mine if one["amount"] is not None]
        assert (row["n"], row["known"]) == (len(mine), len(prices))
        assert row["kinds"] == len(set(map(key, prices)))
        assert row["ids"] == sum(one["id"] for one in mine)
        assert row["total"] == sum(amounts)
        assert abs(row["mean"] - sum(amounts) / len(amounts)) <= Decimal("0.0000005")
        assert row["least"] == min(price for price in prices if not math.isnan(price))
        assert math.isnan(row["most"]) or not any(map(math.isnan, prices))
        assert row["last"] == max(one["at"] for one in mine)


def test_a_field_of_a_struct_can_be_a_key(table, everything):
    found = {
        row["place.city"]: row["n"] for row in table.aggregate("place.city", {"n": "count(*)"}).to_pylist()
    }
    assert found == Counter((row["place"] or {}).get("city") for row in everything)


def test_no_rows_give_one_row_without_keys_and_none_with_them(table):
    asked = {"n": "count(*)", "s": "sum(id)", "k": "count(distinct level)", "m": "max(price)"}
    assert table.aggregate(None, asked, where="id < 0").to_pylist() == [
        {"n": 0, "s": None, "k": 0, "m": None}
    ]
    assert table.aggregate("level", asked, where="id < 0").num_rows == 0
    assert table.aggregate(None, asked, "nosuchword").to_pylist() == [{"n": 0, "s": None, "k": 0, "m": None}]
    assert table.histogram("id", 10, "nosuchword").num_rows == 0


def test_sums_of_whole_numbers_are_exact_and_an_overflow_is_an_error(tmp_path):
    made = it.Table.create(tmp_path / "t", pa.schema([("n", pa.int64()), ("d", pa.decimal128(38, 0))]))
    large = 2**62
    most = Decimal("9" * 38)
    made.append(
        pa.table(
            {"n": [large, large, -large, -1], "d": [most, most.copy_negate(), Decimal(7), None]}, made.schema
        )
    )
    found = made.aggregate(None, ["sum(n)", "avg(n)", "sum(d)"]).to_pylist()[0]
    assert found == {"sum(n)": large - 1, "avg(n)": (large - 1) / 4, "sum(d)": 7}
    made.append(pa.table({"n": [large, 1], "d": [most, most]}, made.schema))
    with pytest.raises(TableError, match=r"sum\(n\) is too large"):
        made.aggregate(None, "sum(n)")
    with pytest.raises(TableError, match=r"sum\(d\) is too large"):
        made.aggregate(None, "sum(d)")


def test_days_and_hours_are_those_of_the_zone_through_changes_of_clocks(tmp_path):
    made = it.Table.create(tmp_path / "t", pa.schema([("at", pa.timestamp("us", "UTC"))]))
    fall, spring = datetime(2024, 11, 3, 4, tzinfo=UTC), datetime(2024, 3, 10, 5, tzinfo=UTC)
    every = [start + timedelta(minutes=30 * step) for start in (fall, spring) for step in range(50)]
    made.append(pa.table({"at": every}, made.schema))
    days = made.histogram("at", "day", time_zone="America/New_York").to_pylist()
    assert [(row["bucket"], row["count"]) for row in days] == [
        (spring, 46),
        (spring + timedelta(hours=23), 4),
        (fall, 50),
    ]
    hours = made.histogram("at", "1h", time_zone="America/New_York").to_pylist()
    assert len(hours) == 50
    assert {row["count"] for row in hours} == {2}
    assert made.histogram("at", "year", time_zone="America/New_York").to_pylist() == [
        {"bucket": datetime(2024, 1, 1, 5, tzinfo=UTC), "count": 100}
    ]


def test_intervals_of_the_calendar_cut_dates(table, everything):
    def month(row):
        return row["on"].replace(day=1)

    wanted = Counter(map(month, everything))
    assert {row["bucket"]: row["count"] for row in table.histogram("on", "1 month").to_pylist()} == wanted
    weeks = table.histogram("on", "week")["bucket"].to_pylist()
    assert {day.weekday() for day in weeks} == {0}
    quarters = table.histogram("on", "quarter").to_pylist()
    assert quarters == [{"bucket": date(2024, 1, 1), "count": 800}]


def test_numbers_are_cut_at_multiples_with_nan_and_null_apart(table, everything):
    found = counts(table.histogram("price", 0.5), "bucket")
    wanted = Counter()
    for row in everything:
        price = row["price"]
        wanted[key(price) if price is None or math.isnan(price) else math.floor(price / 0.5) * 0.5] += 1
    assert found == wanted
    decimals = counts(table.histogram("amount", "0.5"), "bucket")
    assert set(decimals) == {None, Decimal("1.00"), Decimal("-2.50")}


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda t: t.facets("nothing"), SchemaError, "has no column 'nothing'"),
        (lambda t: t.facets("place"), SchemaError, "a field inside it"),
        (lambda t: t.facets("level", top=0), OptionError, "top is 0"),
        (lambda t: t.histogram("level", 5), OptionError, "facets"),
        (lambda t: t.histogram("at", 5), OptionError, "not an interval"),
        (lambda t: t.histogram("on", "2h"), OptionError, "shorter than the days"),
        (lambda t: t.histogram("id", 0), OptionError, "above 0"),
        (lambda t: t.histogram("at", "1h", time_zone="Moon/Sea"), PredicateError, "Moon/Sea"),
        (lambda t: t.aggregate("day", []), SchemaError, "nothing to compute"),
        (lambda t: t.aggregate("day", "median(id)"), SchemaError, "not an aggregate"),
        (lambda t: t.aggregate("day", "sum(level)"), SchemaError, "numbers"),
        (lambda t: t.aggregate("day", {"day": "count(*)"}), SchemaError, "two columns 'day'"),
        (lambda t: t.facets("level", "nosuch:word"), QueryError, "nosuch"),
    ],
)
def test_a_wrong_question_is_an_error_that_says_what_to_do(table, ask, error, says):
    with pytest.raises(error, match=says):
        ask(table)


def spark_sorted(rows, *keys):
    """Rows in the order of Spark: the least important key first, each sort stable."""
    for name, descends in reversed(keys):

        def place(row, name=name):
            value = row[name]
            nan = isinstance(value, float) and math.isnan(value)
            return (value is not None, nan, 0 if value is None or nan else value)

        rows = sorted(rows, key=place, reverse=descends)
    return rows


@pytest.mark.parametrize("limit", [1, 7, None])
@pytest.mark.parametrize(
    ("sort", "keys"),
    [
        ("id DESC", [("id", True)]),
        ("price, id desc", [("price", False), ("id", True)]),
        (["`level` DESC", "id"], [("level", True), ("id", False)]),
    ],
)
def test_found_rows_come_in_the_order_of_columns(table, everything, sort, keys, limit):
    found = table.search("error", where="id < 3100", columns=["id"], sort=sort, limit=limit, total=True)
    hits = [row for row in everything if has_error(row) and row["id"] < 3100]
    unique = [*keys, *([] if any(name == "id" for name, _ in keys) else [("id", False)])]
    wanted = [row["id"] for row in spark_sorted(hits, *unique)]
    assert found.read_all()["id"].to_pylist() == wanted[:limit]
    assert table.last_scan.total == len(hits)


def test_rows_that_are_equal_keep_their_order_when_sorted(table):
    plain = table.search("error", columns=["id", "level"]).read_all().to_pylist()
    found = table.search("error", columns=["id"], sort="day").read_all()["id"].to_pylist()
    by_day = {row["id"]: row for row in table.scan(columns=["id", "day"]).read_all().to_pylist()}
    assert found == [row["id"] for row in sorted(plain, key=lambda row: by_day[row["id"]]["day"] or "")]


@pytest.mark.parametrize(
    ("sort", "says"),
    [
        ("nothing", "sort: the table has no column 'nothing'; it has"),
        ("place", "cannot be sorted"),
        ("", "names no column"),
    ],
)
def test_a_wrong_sort_is_an_error(table, sort, says):
    with pytest.raises(SchemaError, match=says):
        table.search("error", sort=sort)
    with pytest.raises(OptionError, match="not both"):
        table.search("error", sort="id", score=True)


def test_texts_that_repeat_are_counted_alike_in_every_row_group(tmp_path):
    rows = 70_000
    host = [None if at % 11 == 0 else f"host-{(at * at) % 37}" for at in range(rows)]
    data = pa.table({"host": host, "line": [f"line {at // 2}" for at in range(rows)], "n": range(rows)})
    table = it.Table.create(tmp_path / "t", data.schema)
    table.append(data)
    wanted = data.group_by("host").aggregate([([], "count_all"), ("n", "sum"), ("line", "max")])
    found = table.aggregate("host", ["count(*)", "sum(n)", "max(line)"])
    assert sorted(map(repr, zip(*(c.to_pylist() for c in found.columns), strict=True))) == sorted(
        map(repr, zip(*(wanted.column(at).to_pylist() for at in (0, 1, 2, 3)), strict=True))
    )
    assert table.facets("line", top=None)["count"].unique().to_pylist() == [2]
    known = [name for name in host if name is not None]
    (whole,) = table.aggregate(None, ["count(distinct host)", "count(host)", "min(host)"]).to_pylist()
    assert [*whole.values()] == [len(set(known)), len(known), min(known)]


def test_a_query_that_counts_nothing_says_what_it_might_have_meant(tmp_path):
    data = pa.table({"level": ["ERROR", "INFO"], "n": [1, 2]})
    table = it.Table.create(tmp_path / "t", data.schema, options={"indexing.typemap.level": "string"})
    table.append(data)
    for ask in (
        lambda: table.facets("n", query="level:error"),
        lambda: table.histogram("n", 1, query="level:error"),
        lambda: table.search("level:error", sort="n").read_all(),
        lambda: table.search("level:error").read_all(),
        lambda: table.count(query="level:error"),
    ):
        ask()
        assert "'ERROR' is there" in table.last_scan.notes[0]
    table.facets("n", query="ERROR and INFO")
    assert "write AND for the operator" in table.last_scan.notes[0]


NARROW = pa.schema(
    [
        ("n", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("on", pa.date32()),
        ("level", pa.string()),
        ("big", pa.int64()),
        ("small", pa.int16()),
        ("f", pa.float64()),
    ]
)
AUTUMN = datetime(2024, 11, 3, 4, tzinfo=UTC)
FAR = {
    "n": 2**31 - 1,
    "at": datetime(8999, 1, 1, tzinfo=UTC),
    "local": datetime(8999, 1, 1),  # noqa: DTZ001 - a column without a zone
    "on": date(8999, 1, 1),
    "level": "far",
    "big": 0,
    "small": 2**15 - 1,
    "f": -1e300,
}


@pytest.fixture(scope="module")
def near_and_far(tmp_path_factory):
    """The same rows twice; in the second table one more row lies so far off that keys are no longer close."""
    chance = random.Random(5)
    some = [
        {
            "n": chance.choice([-3, -2, 0, 7, 11, None]),
            "at": chance.choice([AUTUMN + timedelta(microseconds=chance.randrange(10**10)), None]),
            "local": datetime(1969, 12, 31) + timedelta(microseconds=chance.randrange(2 * 10**11)),  # noqa: DTZ001
            "on": chance.choice([date(1969, 12, 20) + timedelta(days=chance.randrange(40)), None]),
            "level": chance.choice(["INFO", "", None]),
            "big": chance.choice([-(2**63), 2**63 - 1, 5, None]) if row % 2 else chance.choice([1, None]),
            "small": chance.choice([-5, 9, None]),
            "f": chance.choice([0.3, -0.0, 0.0, -2.6, 7e9, None]),
        }
        for row in range(500)
    ]
    made = []
    for name, extra in (("near", []), ("far", [FAR])):
        table = it.Table.create(tmp_path_factory.mktemp(name) / "t", NARROW)
        table.append(pa.Table.from_pylist([*some, *extra], schema=NARROW))
        made.append(table)
    return made


STATES = ["count(*)", "count(big)", "min(big)", "max(big)", "min(on)", "max(at)", "sum(small)", "sum(f)"]


@pytest.mark.parametrize("keys", [["n"], ["on"], ["n", "level"], ["level", "on", "n"], ["local"], ["small"]])
def test_keys_close_together_are_grouped_like_keys_far_apart(near_and_far, keys):
    near, far = (table.aggregate(keys, STATES).to_pylist() for table in near_and_far)
    assert near == [row for row in far if any(row[name] != FAR[name] for name in keys)]
    assert len(near) + 1 == len(far)


@pytest.mark.parametrize(
    ("column", "interval", "more"),
    [
        ("n", 3, {}),
        ("n", 3, {"offset": 1}),
        ("n", 2.5, {}),
        ("f", 0.1, {}),
        ("f", 3, {"offset": 0.5}),
        ("on", "week", {}),
        ("on", "month", {}),
        ("local", "90 minutes", {"offset": "7m"}),
        ("local", "month", {}),
        *[
            ("at", interval, {"time_zone": zone, **more})
            for zone in ("UTC", "+05:30", "America/New_York", "Australia/Lord_Howe")
            for interval, more in (("30m", {}), ("day", {"offset": "6h"}), ("1500ms", {}), ("week", {}))
        ],
    ],
)
def test_buckets_close_together_are_counted_like_buckets_far_apart(near_and_far, column, interval, more):
    near, far = (counts(table.histogram(column, interval, **more), "bucket") for table in near_and_far)
    beyond = set(far) - set(near)
    assert len(beyond) == 1
    assert {bucket: count for bucket, count in far.items() if bucket not in beyond} == near


@pytest.mark.parametrize(
    "names", [("mins", "min", "m", "minutes"), ("secs", "s", "seconds"), ("mons", "mon")]
)
def test_an_interval_may_be_written_in_every_way_that_spark_takes(names):
    from indextables.ops.counting.buckets import span_of

    assert len({span_of(f"15 {name}") for name in names}) == 1


def test_an_interval_beyond_all_times_is_refused_and_one_of_decimals_is_read_as_written(tmp_path):
    from decimal import Decimal

    schema = pa.schema([("d", pa.date32()), ("p", pa.decimal128(10, 2))])
    table = it.Table.create(tmp_path / "t", schema)
    table.append(pa.table({"d": [1, 2], "p": [Decimal("0.31"), Decimal("0.39")]}, schema))
    for interval in ("99999999999999d", "9" * 5000 + "d", "1001y"):
        with pytest.raises(OptionError, match="not an interval of time"):
            table.histogram("d", interval)
    for interval in (10**30, Decimal("1e-30")):
        with pytest.raises(OptionError, match="digits"):
            table.histogram("p", interval)
    assert table.histogram("p", 0.1).to_pylist() == [{"bucket": Decimal("0.30"), "count": 2}]


def test_what_the_log_alone_cannot_answer_is_no_scan(table):
    """The scan that Spark then makes is the one that is logged and counted."""
    snapshot = it.open(table.uri)._log.snapshot()
    count = Aggregation((), (Aggregate("n", "count"),))
    before = last_scans(table.uri, 1000)
    assert from_log_alone(snapshot, count, snapshot.filter_of("id > 5")) is None
    assert last_scans(table.uri, 1000) == before
    answer = from_log_alone(snapshot, count, snapshot.filter_of("day = 'b'"))
    assert answer is not None
    assert answer.to_pylist() == [{"n": 400}]
    assert [scan.kept for scan in last_scans(table.uri, 1)] == [2]
    assert len(last_scans(table.uri, 1000)) == len(before) + 1
