"""Times of log lines as instants, and the years of those that do not say one, as in syslog.

`SHAPES` has the ways of writing a time that can be read. A file's lines stand in the order
of their times, so the months alone show where a year ended, and the last time is not later
than the file's modification. Both together give every line its year; the clock of the
machine that loads the file has no say.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.lazy import pc

INSTANT = pa.timestamp("us", "UTC")
FORMS = (
    "2024-05-03 10:00:05, 2024-05-03T10:00:05.123+02:00, 03/May/2024:10:00:05 +0200, May  3 10:00:05, "
    "Fri May  3 10:00:05 2024, 24/05/03 10:00:05, 05-03 10:00:05.123 and 1714730405"
)
"""What can be read, for messages."""

_CLOCK = r"(?P<hour>[0-2]?\d):(?P<minute>[0-5]?\d):(?P<second>[0-6]?\d)"
_DIGITS = r"(?P<hour>[0-2]\d)(?P<minute>[0-5]\d)(?P<second>[0-6]\d)"
_FRACTION = r"(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)|(?P<hours>[+-]\d\d))?"
_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>[01]\d)", r"(?P<day>[0-3]\d)"
_NAME = r"(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?"
_SOME_DAY = r"(?P<day>[0-3]?\d)"
SHAPES = {
    "ISO times": rf"{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}[T _]{_CLOCK}{_FRACTION}{_ZONE}",
    "web server times": rf"{_WEEKDAY}{_SOME_DAY}[-/ ]{_NAME}[-/ ]{_YEAR}[: ]{_CLOCK}{_FRACTION}{_ZONE}",
    "ctime times": rf"{_WEEKDAY}{_NAME} +{_SOME_DAY} {_CLOCK}{_FRACTION}(?: (?P<zone>UTC|GMT))? {_YEAR}",
    "syslog times with a year": rf"{_NAME} +{_SOME_DAY},? {_YEAR} {_CLOCK}{_FRACTION}{_ZONE}",
    "syslog times": rf"{_NAME} +{_SOME_DAY} {_CLOCK}{_FRACTION}",
    "log4j times": rf"(?P<short>\d\d)/{_MONTH}/{_DAY} {_CLOCK}{_FRACTION}",
    "times of digits": rf"{_YEAR}{_MONTH}{_DAY}[-T _]?{_DIGITS}{_FRACTION}{_ZONE}",
    "dates of digits": rf"{_YEAR}{_MONTH}{_DAY}[-T _]{_CLOCK}(?::(?P<millis>\d{{1,3}})|{_FRACTION}{_ZONE})",
    "HDFS times": rf"(?P<short>\d\d){_MONTH}{_DAY} {_DIGITS}",
    "dashed times": rf"{_YEAR}-{_MONTH}-{_DAY}-(?P<hour>[0-2]\d)\.(?P<minute>[0-5]\d)\.(?P<second>[0-6]\d)"
    + _FRACTION,
    "Android times": rf"{_MONTH}[-.]{_DAY} {_CLOCK}{_FRACTION}",
    "klog times": rf"{_MONTH}{_DAY} {_CLOCK}\.(?P<fraction>\d{{6}})",
    "epoch times": r"(?P<epoch>1\d{9})(?:\.(?P<fraction>\d{1,9})|(?P<parts>\d{9}|\d{6}|\d{3}))?",
}
"""Ways of writing a time, as patterns whose groups are its parts. A 1 fits wherever a digit does."""
_COMPILED = [re.compile(shape.encode()) for shape in SHAPES.values()]
_LAYOUT = np.arange(256, dtype=np.uint8)
_LAYOUT[ord("0") : ord("9") + 1] = ord("1")
_LONGEST = 64
"""No time is longer."""
_EPOCHS = (1_000_000_000, 2_000_000_000)
"""An epoch in seconds has ten digits, of which the first is 1."""

_US = 1_000_000
_DAY_S = 86_400
_MONTHS = [name.encode() for name in calendar.month_abbr[1:]]
_DAYS_BEFORE = np.concatenate([[0], np.cumsum([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30])])
_LEAP_DAY = 31 + 28
_LEAP_YEAR = 2024
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
            seconds = _Times.of(text).yearless_seconds()
            turns = scan.turns(seconds)
            if len(turns):
                at = int(np.lexsort((seconds, turns))[-1])
                latest = max(latest, (int(turns[at]), int(seconds[at])))
                leaps |= set(turns[seconds // _DAY_S == _LEAP_DAY].tolist())
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


@dataclass(slots=True)
class _Times:
    """The parts of an array's times, one value per text."""

    year: np.ndarray
    """0 where the text says no year, -1 where it is no time, or of a day that no year has."""
    month: np.ndarray
    """From 0."""
    day: np.ndarray
    """From 0."""
    second: np.ndarray
    """Of the day; of an epoch all of them."""
    micros: np.ndarray

    @classmethod
    def of(cls, text: pa.Array) -> _Times:
        times = cls(np.full(len(text), -1), *(np.zeros(len(text), np.int64) for _ in range(4)))
        for layout, rows, characters in _layouts(text):
            parts = _parts_of(layout)
            if parts is not None:
                times._read(rows, characters, parts)
        return times

    def _read(self, rows: np.ndarray, characters: np.ndarray, parts: dict[str, tuple[int, int]]) -> None:
        """Fill in the values of some rows, which have the parts of their times at the same places."""

        def number(name: str, most_digits: int = 4) -> Any:
            """A part as a number, 0 where it is missing."""
            begin, end = parts.get(name, (0, 0))
            value: Any = 0
            for place in range(begin, min(end, begin + most_digits)):
                value = value * 10 + (characters[:, place].astype(np.int64) - ord("0"))
            return value

        def micros(name: str) -> Any:
            """A part that is a fraction of a second."""
            begin, end = parts.get(name, (0, 0))
            return number(name, 6) * 10 ** (6 - min(6, end - begin))

        def offset_s(name: str) -> Any:
            """Seconds east of Greenwich: of +0200, +02:00 or +02; 0 of a name."""
            begin, end = parts.get(name, (0, 0))
            if end - begin < len("+02") or characters[0, begin] not in b"+-":
                return 0
            places = [at for at in range(begin + 1, end) if characters[0, at] != ord(":")]
            digits = [characters[:, at].astype(np.int64) - ord("0") for at in places]
            hours, minutes = digits[0] * 10 + digits[1], digits[2] * 10 + digits[3] if digits[2:] else 0
            return (hours * 3600 + minutes * 60) * (-1 if characters[0, begin] == ord("-") else 1)

        begin, end = parts.get("name", (0, 0))
        month = _MONTHS.index(characters[0, begin:end].tobytes()) if end else number("month") - 1
        year, day = number("year") + (number("short") + 2000 if "short" in parts else 0), number("day")
        hour, minute, second = number("hour"), number("minute"), number("second")
        self.second[rows] = hour * 3600 + minute * 60 + second
        self.micros[rows] = micros("fraction") + micros("parts") + number("millis") * 1000
        self.micros[rows] -= (offset_s("zone") + offset_s("hours")) * _US
        real = (hour < 24) & (minute < 60) & (second <= 60)  # noqa: PLR2004
        if "epoch" in parts:
            epoch = self.second[rows] = number("epoch", 10)
            year, month, day = 1970, 0, 1
            real = (epoch >= _EPOCHS[0]) & (epoch < _EPOCHS[1])
        self.month[rows], self.day[rows], self.year[rows] = month, day - 1, year
        checked_year = np.where(self.year[rows] == 0, _LEAP_YEAR, self.year[rows])
        month, day = self.month[rows], self.day[rows]
        real &= (month >= 0) & (month < 12) & (day >= 0)  # noqa: PLR2004
        real &= (checked_year < 9999) & (day < _days_of_month(checked_year, np.clip(month, 0, 11)))  # noqa: PLR2004
        self.year[rows[~real]] = -1

    def yearless_seconds(self) -> np.ndarray:
        """The seconds since the beginning of a leap year of the times that say no year, in order."""
        rows = self.year == 0
        seconds: np.ndarray = (_DAYS_BEFORE[self.month[rows]] + self.day[rows]) * _DAY_S + self.second[rows]
        return seconds


def instants(text: pa.Array, find_years: Callable[[], Years]) -> pa.Array:
    """Times as instants, those without an offset in UTC; what is no time becomes null.

    `find_years` is called if a time says no year.
    """
    times = _Times.of(text)
    yearless = times.year == 0
    if yearless.any():
        years = find_years()
        year = years.first + years.turns(times.yearless_seconds())
        # 29 February is no day of a common year.
        real = times.day[yearless] < _days_of_month(year, times.month[yearless])
        times.year[yearless] = np.where(real, year, -1)
    missing = times.year <= 0
    day = _month(np.where(missing, 1970, times.year), times.month).astype("datetime64[D]") + times.day
    micros = (day.astype(np.int64) * _DAY_S + times.second) * _US + times.micros
    return pa.array(micros, mask=missing).cast(INSTANT)


def _month(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    year_start = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]")
    start: np.ndarray = year_start + np.clip(month, 0, 11)
    return start


def _days_of_month(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    start = _month(year, month)
    days: np.ndarray = ((start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")).astype(np.int64)
    return days


def _layouts(text: pa.Array) -> Iterator[tuple[bytes, np.ndarray, np.ndarray]]:
    """Texts that are alike but for their digits: what they look like, their rows, and their characters.

    The layout is the text with a 1 for every digit. Texts longer than any time are left out.
    """
    text = text.cast(pa.string())
    offsets = np.frombuffer(text.buffers()[1], np.int32, len(text) + 1, text.offset * 4)
    characters = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    lengths[pc.is_null(text).to_numpy(zero_copy_only=False)] = 0
    for length in np.unique(lengths[(lengths > 0) & (lengths <= _LONGEST)]):
        rows = np.flatnonzero(lengths == length)
        of_rows = characters[offsets[rows, np.newaxis] + np.arange(length)]
        texts = _LAYOUT[of_rows].view(f"S{length}").ravel()
        if (texts == texts[0]).all():
            yield texts[0].ljust(length, b"\0"), rows, of_rows
            continue
        distinct, which = np.unique(texts, return_inverse=True)
        for number, layout in enumerate(distinct):
            alike = which == number
            yield layout.ljust(length, b"\0"), rows[alike], of_rows[alike]


@lru_cache(maxsize=1024)
def _parts_of(layout: bytes) -> dict[str, tuple[int, int]] | None:
    """Where the parts of a time begin and end in texts of a layout; None if these are no times."""
    for shape in _COMPILED:
        if fit := shape.fullmatch(layout):
            return {name: fit.span(name) for name, part in fit.groupdict().items() if part is not None}
    return None


def _moment(year: int, second: int) -> datetime:
    """The second of a leap year in another year; 29 February of a common year is the day before."""
    day = second // _DAY_S
    shift = 0 if calendar.isleap(year) or day < _LEAP_DAY else 1
    return datetime(year, 1, 1) + timedelta(days=day - shift, seconds=second % _DAY_S)  # noqa: DTZ001 - compared with a naive time
