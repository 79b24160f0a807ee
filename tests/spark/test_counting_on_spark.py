"""Counting equals Spark's GROUP BY: nulls, NaN, decimals, zones and changes of clocks."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError
from indextables.spark import versions
from support.spark_versions import needs

ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("level", pa.string()),
        ("day", pa.string()),
        ("price", pa.float64()),
        ("ratio", pa.float32()),
        ("amount", pa.decimal128(12, 3)),
        ("huge", pa.decimal128(38, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("message", pa.string()),
    ]
)
CHANGES = [
    datetime(2024, 3, 10, tzinfo=UTC),
    datetime(2024, 11, 3, tzinfo=UTC),
    datetime(2024, 4, 6, tzinfo=UTC),
]
CHANGES += [datetime(2023, 10, 26, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)]


def rows(seed, count, day):
    chance = random.Random(seed)
    nan = float("nan")
    decimals = [Decimal("1.105"), Decimal("-2.350"), Decimal("7.000"), None]
    return pa.table(
        {
            "id": [seed * 1000 + at for at in range(count)],
            "level": chance.choices(["ERROR", "INFO", "", None], k=count),
            "day": [day] * count,
            "price": chance.choices([1.5, nan, 0.0, -0.0, -7.25, 1e300, None], k=count),
            "ratio": chance.choices([0.1, nan, -0.0, 2.5, None], k=count),
            "amount": chance.choices(decimals, k=count),
            "huge": chance.choices([Decimal("123456789012345678901234.56"), Decimal("-0.01"), None], k=count),
            "at": [
                None
                if chance.random() < 0.05
                else chance.choice(CHANGES) + timedelta(seconds=chance.randrange(200_000))
                for _ in range(count)
            ],
            "message": chance.choices(["disk error", "error again", "all well", None], k=count),
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory, spark):
    options = {"indexing.typemap.message": "text", "indexing.typemap.level": "string"}
    made = it.Table.create(tmp_path_factory.mktemp("counting") / "t", SCHEMA, ["day"], options)
    for seed, day in enumerate(["a", "b", None]):
        made.append(rows(seed, 300, day))
    spark.read.format("indextables").load(made.uri).createOrReplaceTempView("counted")
    return made


def plain(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def same(found, frame, columns):
    """The answers as sets of rows, and Spark's types."""
    spark_rows = frame.toArrow()
    assert found.schema.types == spark_rows.schema.types
    mine, theirs = (
        sorted(
            (tuple(plain(row[name]) for name in table.column_names) for row in table.to_pylist()), key=repr
        )
        for table in (found, spark_rows)
    )
    assert columns == len(found.column_names)
    assert mine == theirs


AGGREGATES = {
    "n": "count(*)", "c": "count(price)", "d": "count(distinct price)", "s": "sum(id)", "a": "avg(id)",
    "p": "sum(amount)", "q": "avg(amount)", "h": "avg(huge)", "x": "max(price)", "y": "min(price)",
    "r": "max(ratio)", "t": "max(at)", "m": "min(message)",
}  # fmt: skip


@pytest.mark.parametrize("keys", [(), ("level", "day"), ("price",), ("ratio", "huge")])
def test_aggregates_equal_group_by(spark, table, keys):
    asked = ", ".join(f"{text} {name}" for name, text in AGGREGATES.items())
    names = "".join(f"{key}, " for key in keys)
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    frame = spark.sql(f"SELECT {names}{asked} FROM counted {group}")
    same(table.aggregate(keys, AGGREGATES), frame, len(keys) + len(AGGREGATES))


def test_a_searched_and_filtered_count_equals_group_by(spark, table):
    frame = spark.sql(
        "SELECT level, day, count(*) n, min(id) m FROM counted "
        "WHERE message LIKE '%error%' AND id % 2 = 1 AND id < 1100 GROUP BY level, day"
    )
    odd = f"id < 1100 AND id IN ({', '.join(str(at) for at in range(1, 1100, 2))})"
    found = table.aggregate(["level", "day"], {"n": "count(*)", "m": "min(id)"}, "error", odd)
    same(found, frame, 4)


UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
CUTS = (("6h", None), ("90m", None), ("2 days", "6h"), ("3 months", None), ("week", "1d"), ("hour", None))


@needs("functions written in SQL")
@pytest.mark.parametrize("zone", ZONES)
def test_calendar_buckets_equal_date_trunc_and_the_sql_function(spark, table, zone):
    calls = [f"date_trunc('{unit}', at) AS `{unit}`" for unit in UNITS]
    calls += [
        f"indextables_date_histogram(at, '{cut}'{f', {shift!r}' if shift else ''}) AS `{cut}/{shift}`"
        for cut, shift in CUTS
    ]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        theirs = spark.sql(f"SELECT {', '.join(calls)} FROM counted").toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for cut, shift, column in [
        *((unit, None, unit) for unit in UNITS),
        *((*one, f"{one[0]}/{one[1]}") for one in CUTS),
    ]:
        found = table.histogram("at", cut, time_zone=zone, offset=shift)
        wanted = Counter(map(plain, theirs.column(column).to_pylist()))
        assert pairs(found) == sorted(wanted.items(), key=repr), column


def pairs(table):
    return sorted(((plain(row["bucket"]), row["count"]) for row in table.to_pylist()), key=repr)


@needs("functions written in SQL")
def test_numbers_are_cut_by_the_sql_functions_as_in_python(spark, table):
    cuts = (("price", 0.5, 0.1), ("id", 7, 3), ("amount", 0.25, 0))
    calls = [f"indextables_histogram({column}, {width}, {shift}) {column}" for column, width, shift in cuts]
    theirs = spark.sql(f"SELECT {', '.join(calls)} FROM counted").toArrow()
    for column, width, shift in cuts:
        mine = pairs(table.histogram(column, width, offset=shift))
        mine = [(float(bucket) if isinstance(bucket, Decimal | int) else bucket, n) for bucket, n in mine]
        wanted = Counter(map(plain, theirs.column(column).to_pylist()))
        assert sorted(mine, key=repr) == sorted(wanted.items(), key=repr), column
    named = spark.sql(
        "SELECT indextables_range(id, 'low', NULL, 100, 'mid', 100, 1000, 'high', 1000, NULL) r, count(*) n "
        "FROM counted GROUP BY 1 ORDER BY 1"
    )
    assert [tuple(row) for row in named.collect()] == [("high", 600), ("low", 100), ("mid", 200)]
    with pytest.raises(Exception, match="is not an interval"):
        spark.sql("SELECT indextables_date_histogram(at, '3 moons') FROM counted").collect()


@needs("functions written in SQL")
def test_times_without_a_zone_are_cut_in_the_zone_the_session_has_now(spark):
    """A function made under one zone went on casting its argument by it."""
    text = "SELECT CAST(indextables_date_histogram(TIMESTAMP_NTZ'2024-06-01 12:00:00', 'day') AS STRING)"
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("America/New_York", "Asia/Tokyo"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            assert spark.sql(text).collect()[0][0] == "2024-06-01 00:00:00", zone
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_without_functions_written_in_sql_the_buckets_are_refused_by_name(spark, monkeypatch):
    monkeypatch.setattr(versions, "installed", lambda: (3, 5))
    with pytest.raises(TableError, match="indextables_histogram.*which Spark has since 4.0"):
        spark.sql("SELECT indextables_histogram(1, 2)")
