"""The SQL functions that cut columns into buckets: indextables_histogram, _date_histogram and _range.

They are temporary SQL functions of the session, made when a statement names one. Spark
puts their text in the place of the call, so they cost what the text costs.
They cut as `ops.counting.buckets` does, dates and timestamps in the session's zone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from indextables.ops.counting.buckets import UNITS
from indextables.spark.versions import check_sql_functions
from indextables.sql.select.bucket_functions import RANGE_NAMES, RANGES

_DAY = 86_400_000_000
_MICROSECONDS = {name: span.microseconds for name, span in UNITS.items() if span.microseconds}
_DAYS = {name: span.days for name, span in UNITS.items() if span.days}
_MONTHS = {name: span.months for name, span in UNITS.items() if span.months}

_zones: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""The zone that each session had when its functions were made."""


def make_functions(spark: Any, sql: Callable[[str], Any]) -> None:
    """Make the functions known to a session.

    A function keeps the session's settings of the time it was made, and its arguments are cast by them:
    after a change of the session's zone it is made again.
    """
    check_sql_functions()
    zone = spark.conf.get("spark.sql.session.timeZone")
    if _zones.get(spark) != zone:
        for statement in (_histogram(), _date_histogram(), _range()):
            sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {statement}")
        _zones[spark] = zone


def _histogram() -> str:
    return (
        "indextables_histogram(value DOUBLE, width DOUBLE, shift DOUBLE DEFAULT 0D) RETURNS DOUBLE "
        "RETURN CASE "
        "WHEN NOT width > 0 THEN double(raise_error('indextables_histogram: the interval must be above 0')) "
        # The floor of what does not fit a long is not to be had, and such a value is its own bucket.
        "WHEN isnan(value) OR abs((value - shift) / width) >= 9.2e18D THEN value "
        "ELSE floor((value - shift) / width) * width + shift END"
    )


def _range() -> str:
    names = ", ".join(
        f"name{at} STRING{' DEFAULT NULL' if at > 1 else ''}, "
        f"from{at} DOUBLE DEFAULT NULL, to{at} DOUBLE DEFAULT NULL"
        for at in RANGES
    )
    return (
        f"indextables_range(value DOUBLE, {names}) RETURNS STRING "
        f"RETURN CASE WHEN value IS NULL THEN NULL {RANGE_NAMES} END"
    )


def _date_histogram() -> str:
    local = _local("moment")
    since = f"({local} - {_shift()})"
    clock, days, months = _length("cut", _MICROSECONDS), _length("cut", _DAYS), _length("cut", _MONTHS)
    by_clock = f"({since} - pmod({since}, {clock}) + {_shift()})"
    near = f"timestamp_micros(unix_micros(moment) - ({local} - {by_clock}))"
    week = f"if({days} % 7 = 0, {3 * _DAY}L, 0L)"
    by_days = f"({since} - pmod({since} + {week}, {days} * {_DAY}L))"
    date = f"date_from_unix_date(CAST(({since} - pmod({since}, {_DAY}L)) DIV {_DAY}L AS INT))"
    month = f"((year({date}) - 1970) * 12L + month({date}) - 1)"
    by_months = f"add_months(DATE'1970-01-01', CAST({month} - pmod({month}, {months}) AS INT))"
    day = f"date_from_unix_date(CAST({by_days} DIV {_DAY}L AS INT))"
    return (
        "indextables_date_histogram(moment TIMESTAMP, cut STRING, shift STRING DEFAULT NULL) "
        "RETURNS TIMESTAMP RETURN CASE "
        # The same offset as the value has, so that an hour that happens twice is two buckets.
        f"WHEN {clock} > 0 THEN if({_local(near)} = {by_clock}, {near}, {_instant(by_clock)}) "
        f"WHEN {days} > 0 THEN {_begins(day)} WHEN {months} > 0 THEN {_begins(by_months)} "
        "ELSE to_timestamp(raise_error(concat('indextables_date_histogram: ', cut, ' is not an interval; "
        "use a number and ms, s, m, h, d, w, mon, q or y'))) END"
    )


def _local(moment: str) -> str:
    return f"unix_micros(from_utc_timestamp({moment}, current_timezone()))"


def _instant(local: str) -> str:
    return f"to_utc_timestamp(timestamp_micros({local}), current_timezone())"


def _begins(date: str) -> str:
    """The instant of local midnight of a date, plus the shift.

    A cast of the date would take the zone that the session had when the function was made.
    """
    return _instant(f"unix_date({date}) * {_DAY}L + {_shift()}")


def _shift() -> str:
    days = _length("shift", _DAYS)
    return f"if(shift IS NULL, 0L, {_length('shift', _MICROSECONDS)} + {days} * {_DAY}L)"


def _length(text: str, units: Mapping[str, int]) -> str:
    """The length of an interval such as `15 minutes` in the smallest unit; 0 if its unit is another one."""
    extracted = f"regexp_extract(lower(trim({text})), '^([0-9]*) *([a-z]+)$', %d)"
    cases = " ".join(f"WHEN '{name}' THEN {size}L" for name, size in units.items())
    count = f"coalesce(CAST(nullif({extracted % 1}, '') AS BIGINT), 1L)"
    return f"({count} * CASE {extracted % 2} {cases} ELSE 0L END)"
