"""Times of log lines as instants, and the years of those that do not say one, as in syslog.

A file's lines stand in the order of their times, so the months alone show where a year
ended, and the last time is not later than the file's modification. Both together give
every line its year; the clock of the machine that loads the file has no say.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from indextables.lazy import pc

INSTANT = pa.timestamp("us", "UTC")
FORMS = "2024-05-03 10:00:05, 2024-05-03T10:00:05.123+02:00, 03/May/2024:10:00:05 +0200 and May  3 10:00:05"
"""What can be read, for messages."""

_US = 1_000_000
_DAY_S = 86_400
_MONTHS = pa.array(calendar.month_abbr[1:])
_MONTH_DAYS = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_DAYS_BEFORE = np.concatenate([[0], np.cumsum(_MONTH_DAYS)[:-1]])
_LEAP_DAY = 31 + 28
_YEARLESS = r"^(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>[0-2]\d:[0-5]\d:\d\d)(?:[.,]\d+)?$"
_NEXT_YEAR = -183 * _DAY_S
"""A line that goes back this far began another year."""
_LAST_YEAR = 358 * _DAY_S
"""A line that goes forward this far is one of the year before that came late, just after New Year."""
_ZONES = timedelta(days=1)
"""Times are local and the modification is not: how far a line may lie after it."""
_LEAP_CYCLE = 8


@dataclass(slots=True)
class Years:
    """The year of each line of one file, as its lines come in order."""

    first: int
    turn: int = 0
    """How many years after the first the last line was."""
    last_s: int | None = None
    """The second within its year of the last line; every year counts as a leap year here."""

    @classmethod
    def of(cls, texts: Iterable[pa.Array], modified: datetime) -> Years:
        """The years of a file that was last modified at a time, from all its times."""
        scan = cls(0)
        latest, leaps = (0, 0), set[int]()
        for text in texts:
            yearless = _Yearless.of(text)
            turns = scan.turns(yearless.second)
            if len(turns):
                at = int(np.lexsort((yearless.second, turns))[-1])
                latest = max(latest, (int(turns[at]), int(yearless.second[at])))
                leaps |= set(turns[yearless.second // _DAY_S == _LEAP_DAY].tolist())
        turn, second = latest
        bound = modified.replace(tzinfo=None) + _ZONES
        possible = [
            year - turn
            for year in range(bound.year, bound.year - _LEAP_CYCLE - 1, -1)
            if _moment(year, second) <= bound
        ]
        leap = (year for year in possible if all(calendar.isleap(year + turn) for turn in leaps))
        return cls(next(leap, possible[0]))

    def turns(self, seconds: np.ndarray) -> np.ndarray:
        """For each further line, by its second of a year, how many years after the first it lies."""
        if not len(seconds):
            return seconds
        steps = np.diff(seconds, prepend=seconds[0] if self.last_s is None else self.last_s)
        turns: np.ndarray = self.turn + np.cumsum(
            (steps < _NEXT_YEAR).astype(np.int64) - (steps > _LAST_YEAR).astype(np.int64)
        )
        self.turn, self.last_s = int(turns[-1]), int(seconds[-1])
        return turns


@dataclass(frozen=True, slots=True)
class _Yearless:
    """The times of an array that say no year; the others, and days that no year has, are left out."""

    rows: np.ndarray
    """Where in the array each stands."""
    second: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Seconds since the beginning of a leap year."""

    @classmethod
    def of(cls, text: pa.Array) -> _Yearless:
        parts = pc.extract_regex(text, _YEARLESS)
        month = pc.index_in(pc.struct_field(parts, "month"), _MONTHS)
        rows = np.flatnonzero(pc.is_valid(month).to_numpy(zero_copy_only=False))
        if not len(rows):
            return cls(rows)
        parts, months = parts.take(pa.array(rows)), month.take(pa.array(rows)).to_numpy()
        days = pc.struct_field(parts, "day").cast(pa.int64()).to_numpy()
        clock = pc.struct_field(parts, "clock")
        seconds = sum(
            scale * pc.utf8_slice_codeunits(clock, start, start + 2).cast(pa.int64()).to_numpy()
            for start, scale in ((0, 3600), (3, 60), (6, 1))
        )
        real = (days >= 1) & (days <= _MONTH_DAYS[months]) & (seconds < _DAY_S)
        return cls(rows[real], ((_DAYS_BEFORE[months] + days - 1) * _DAY_S + seconds)[real])


def has_yearless(text: pa.Array) -> bool:
    """Whether any of the times says no year."""
    return bool(len(_Yearless.of(text).rows))


def instants(text: pa.Array, years: Years | None = None) -> pa.Array:
    """Times as instants, those without an offset in UTC; what is no time becomes null.

    Without `years`, neither is one that says no year.
    """
    iso = _dated(pc.replace_substring(pc.utf8_slice_codeunits(text, 0, 19), "T", " "), "%Y-%m-%d %H:%M:%S", 8)
    web = _dated(pc.utf8_slice_codeunits(text, 0, 20), "%d/%b/%Y:%H:%M:%S", 0)
    seconds = pc.coalesce(iso, web)
    if years is not None:
        seconds = pc.coalesce(seconds, _with_year(text, years))
    fraction = pc.struct_field(pc.extract_regex(text, r":\d\d[.,](?P<part>\d{1,6})"), "part")
    micros = pc.fill_null(pc.utf8_rpad(fraction, 6, "0").cast(pa.int64()), 0)
    offset = pc.extract_regex(text, r"(?P<sign>[+-])(?P<hour>\d\d):?(?P<minute>\d\d)$")
    minutes = pc.add(
        pc.multiply(pc.struct_field(offset, "hour").cast(pa.int64()), 60),
        pc.struct_field(offset, "minute").cast(pa.int64()),
    )
    signed = pc.if_else(pc.equal(pc.struct_field(offset, "sign"), "-"), pc.negate(minutes), minutes)
    shift = pc.multiply(pc.fill_null(signed, 0), 60 * _US)
    return pc.subtract(pc.add(seconds, micros), shift).cast(INSTANT)


def _with_year(text: pa.Array, years: Years) -> pa.Array:
    """Microseconds of the times that say no year; null elsewhere, and for 29 February of a common year."""
    yearless = _Yearless.of(text)
    year = years.first + years.turns(yearless.second)
    day = yearless.second // _DAY_S
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    real = leap | (day != _LEAP_DAY)
    start = (year - 1970).astype("datetime64[Y]").astype("datetime64[s]").astype(np.int64)
    second = start + yearless.second - np.where(~leap & (day > _LEAP_DAY), _DAY_S, 0)
    instants = np.zeros(len(text), np.int64)
    missing = np.ones(len(text), bool)
    instants[yearless.rows] = second * _US
    missing[yearless.rows] = ~real
    return pa.array(instants, mask=missing)


def _dated(text: pa.Array, form: str, day_at: int) -> pa.Array:
    """Microseconds of the times of one form. Arrow makes 1 March of 29 February 2023; here it is no time."""
    time = pc.strptime(text, format=form, unit="us", error_is_null=True)
    day = pc.utf8_slice_codeunits(text, day_at, day_at + 2)
    same = pc.equal(pc.utf8_lpad(pc.day(time).cast(pa.string()), 2, "0"), day)
    return pc.if_else(same, time.cast(pa.int64()), pa.scalar(None, pa.int64()))


def _moment(year: int, second: int) -> datetime:
    """The second of a leap year in another year; 29 February of a common year is the day before."""
    day = second // _DAY_S
    shift = 0 if calendar.isleap(year) or day < _LEAP_DAY else 1
    return datetime(year, 1, 1) + timedelta(days=day - shift, seconds=second % _DAY_S)  # noqa: DTZ001 - compared with a naive time
