"""Buckets: the histogram interval of a value, identified by the start of the interval.

Numbers are divided at multiples of a width. Dates and timestamps are divided by the
calendar: `15 minutes`, `day`, `week`, `3 months`. A timestamp with a zone is divided at
local times of that zone, as Spark's date_trunc does: days begin at local midnight however
long they are, and an hour that occurs twice is two buckets. Weeks begin on Monday; other
multiples are counted from 1970-01-01.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import OptionError
from indextables.lazy import pc
from indextables.model.arrays import integers
from indextables.model.types import type_to_sql
from indextables.predicate.evaluate.casts import instants_of, local_times_of
from indextables.predicate.zones import zone_of

_TEXT = re.compile(r"\s*(\d{0,18})\s*([A-Za-z]+)\s*\Z")
_US_PER_DAY = 86_400_000_000
_US_PER_SECOND, _US_PER_HOUR = 1_000_000, 3_600_000_000
_WEEK = 7
_MONDAY = 3  # days from the Monday of the week of 1970-01-01 to that day
_LONGEST_US = 1000 * 366 * _US_PER_DAY
_INT64_DIGITS = 18
_EXACT_STEPS = 2.0**52
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Values as whole numbers, such that equal numbers are in the same bucket."""

    numbers: np.ndarray
    buckets: Callable[[np.ndarray], pa.Array]
    """The bucket of each of some numbers."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A length of time in microseconds, days or months; the other two are 0."""

    microseconds: int = 0
    days: int = 0
    months: int = 0

    @property
    def longest_us(self) -> int:
        """The microseconds it has at most."""
        return self.microseconds + (self.days + 31 * self.months) * _US_PER_DAY


_NAMES = {
    TimeSpan(microseconds=1_000): ("ms", "millisecond"),
    TimeSpan(microseconds=_US_PER_SECOND): ("s", "sec", "second"),
    TimeSpan(microseconds=60_000_000): ("m", "min", "minute"),
    TimeSpan(microseconds=_US_PER_HOUR): ("h", "hour"),
    TimeSpan(days=1): ("d", "day"),
    TimeSpan(days=7): ("w", "week"),
    TimeSpan(months=1): ("mon", "month"),
    TimeSpan(months=3): ("q", "quarter"),
    TimeSpan(months=12): ("y", "year"),
}
_LETTERS = 2
"""Names longer than this many letters have a plural: `mins`, but not `hs`."""
UNITS = {
    name + ending: span
    for span, names in _NAMES.items()
    for name in names
    for ending in ("", "s" if len(name) > _LETTERS else "")
}
"""Every unit that an interval may be written in, in Python and in SQL."""


@dataclass(frozen=True, slots=True)
class Width:
    """Buckets of numbers: `[offset + n * size, offset + (n + 1) * size)`."""

    size: int | float | Decimal
    offset: int | float | Decimal = 0

    def of(self, values: pa.Array) -> pa.Array:
        """The start of every value's bucket; null and NaN are unchanged."""
        kind = values.type
        if pa.types.is_decimal(kind):
            return _decimal_floor(values, Decimal(self.size), Decimal(self.offset))
        if self.is_whole(kind):
            whole = values.cast(pa.int64())
            whole_steps = (pc.fill_null(whole, 0).to_numpy() - int(self.offset)) // int(self.size)
            return pc.if_else(
                pc.is_valid(whole), self.starts(integers(whole_steps)), pa.nulls(1, pa.int64())[0]
            )
        numbers = values.cast(pa.float64())
        steps = pc.floor(pc.divide(pc.subtract(numbers, float(self.offset)), float(self.size)))
        return pc.if_else(pc.is_finite(values), self.starts(steps), numbers)

    def is_whole(self, kind: pa.DataType) -> bool:
        """Whether buckets of a column of that type are computed in whole numbers."""
        return pa.types.is_integer(kind) and isinstance(self.size, int) and isinstance(self.offset, int)

    def starts(self, steps: pa.Array) -> pa.Array:
        """Where buckets begin, given their numbers: the bucket with number 0 begins at the offset."""
        as_steps = int if pa.types.is_integer(steps.type) else float
        return pc.add(pc.multiply(steps, as_steps(self.size)), as_steps(self.offset))

    def ticks(self, values: pa.Array) -> Ticks | None:
        """Values without nulls by the number of their bucket; None where numbers cannot stand for buckets."""
        kind = values.type
        if self.is_whole(kind):
            numbers = (values.cast(pa.int64()).to_numpy() - int(self.offset)) // int(self.size)
            return Ticks(numbers, lambda some: self.starts(integers(some)))
        if not pa.types.is_floating(kind):
            return None
        steps = (values.cast(pa.float64()).to_numpy() - float(self.offset)) / float(self.size)
        if not (np.abs(steps) < _EXACT_STEPS).all():
            # NaN, infinite, or so large that steps are no longer told apart.
            return None
        numbers = steps.astype(np.int64)
        numbers -= numbers > steps
        return Ticks(numbers, lambda some: self.starts(pa.array(some.astype(np.float64))))

    def is_constant(self, low: pa.Array, high: pa.Array) -> pa.Array:
        """Whether two values, and all between them, are in the same bucket."""
        return pc.equal(self.of(low), self.of(high))

    def kind_for(self, kind: pa.DataType) -> pa.DataType:
        """The type of the buckets of a column."""
        return self.of(pa.nulls(0, kind)).type


@dataclass(frozen=True, slots=True)
class Calendar:
    """Buckets of dates and timestamps; `zone` is where local times are read."""

    span: TimeSpan
    zone: str = "UTC"
    offset: int = 0
    """Microseconds by which every bucket is shifted."""

    def of(self, values: pa.Array) -> pa.Array:
        """The start of every value's bucket; null is unchanged."""
        kind = values.type
        if pa.types.is_date(kind):
            days = values.cast(pa.int32()).cast(pa.int64())
            midnights = self._floor(pc.multiply(days, _US_PER_DAY))
            return pc.divide(midnights, _US_PER_DAY).cast(pa.int32()).cast(pa.date32())
        if kind.tz is None:
            return self._floor(values.cast(pa.int64())).cast(kind)
        instants = values.cast(pa.int64())
        local = local_times_of(values, self.zone).cast(pa.int64())
        floored = self._floor(local)
        if self.span.microseconds == 0:
            return _first_instants(floored, self.zone).cast(kind)
        # With the value's own UTC offset, so that an hour that occurs twice is two buckets.
        near = pc.subtract(instants, pc.subtract(local, floored))
        is_same_offset = pc.equal(local_times_of(near.cast(kind), self.zone).cast(pa.int64()), floored)
        moved = instants_of(floored.cast(pa.timestamp("us")), self.zone).cast(pa.int64())
        starts: pa.Array = pc.if_else(is_same_offset, near, moved).cast(kind)
        return starts

    def ticks(self, values: pa.Array) -> Ticks | None:
        """Values without nulls, by spans of time so short that none lies in two buckets.

        Clocks are changed at whole seconds, by whole seconds. None if buckets are shorter than that.
        """
        kind = values.type
        if pa.types.is_date(kind):
            days = values.cast(pa.int32()).cast(pa.int64()).to_numpy()
            return Ticks(days, lambda some: self.of(integers(some).cast(pa.int32()).cast(kind)))
        fixed = self.fixed_steps(kind)
        unit, origin = fixed or (_US_PER_SECOND, 0)
        if fixed is None and (self.span.microseconds % unit or self.offset % unit):
            return None
        numbers = (values.cast(pa.int64()).to_numpy() - origin) // unit
        return Ticks(numbers, lambda some: self.of(integers(some * unit + origin).cast(kind)))

    def fixed_steps(self, kind: pa.DataType) -> tuple[int, int] | None:
        """Length and origin of equal steps of a timestamp, in microseconds, none of which is in two buckets.

        None where clocks change.
        """
        place = 0 if kind.tz is None else zone_of(self.zone)
        return (
            (self.span.microseconds or _US_PER_DAY, self.offset - place) if isinstance(place, int) else None
        )

    def is_constant(self, low: pa.Array, high: pa.Array) -> pa.Array:
        """Whether two values, and all between them, are in the same bucket.

        Local time goes back when clocks are set back, so equal buckets at both ends are not enough: either
        the UTC offset does not change between them, or the next bucket is more than a day away on both sides.
        """
        same = pc.equal(self.of(low), self.of(high))
        if pa.types.is_date(low.type) or low.type.tz is None or isinstance(zone_of(self.zone), int):
            return same
        first, last = low.cast(pa.int64()), high.cast(pa.int64())
        offsets = [
            pc.subtract(local_times_of(end, self.zone).cast(pa.int64()), end.cast(pa.int64()))
            for end in (low, high)
        ]
        still = pc.and_(pc.equal(*offsets), pc.less(pc.subtract(last, first), 2 * _US_PER_DAY))
        margin = _US_PER_DAY + _US_PER_HOUR
        before = pc.subtract(first, margin).cast(low.type)
        after = pc.add(last, margin).cast(low.type)
        return pc.and_(same, pc.or_(still, pc.equal(self.of(before), self.of(after))))

    def kind_for(self, kind: pa.DataType) -> pa.DataType:
        """The type of the buckets of a column."""
        return kind

    def _floor(self, local: pa.Array) -> pa.Array:
        numbers = pc.fill_null(local, 0).to_numpy() - self.offset
        span = self.span
        if span.microseconds:
            floored = numbers - numbers % span.microseconds
        elif span.days:
            shift = _MONDAY * _US_PER_DAY if span.days % _WEEK == 0 else 0
            floored = numbers - (numbers + shift) % (span.days * _US_PER_DAY)
        else:
            months = (numbers // _US_PER_DAY).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            first = (months - months % span.months).astype("datetime64[M]").astype("datetime64[D]")
            floored = first.astype(np.int64) * _US_PER_DAY
        return pc.if_else(pc.is_valid(local), pa.array(floored + self.offset), pa.nulls(1, pa.int64())[0])


Bucket = Width | Calendar


def bucket_of(kind: pa.DataType, interval: Any, *, offset: Any = None, zone: str = "UTC") -> Bucket:
    """The buckets that an interval makes of a column of this type; OptionError says what does not fit."""
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind) and not pa.types.is_time(kind):
        span = span_of(interval)
        if pa.types.is_date(kind) and span.microseconds:
            raise OptionError(f"the interval {interval!r} is shorter than the days of a date column")
        shift = span_of(offset) if offset is not None else TimeSpan()
        if shift.months:
            raise OptionError(f"offset is {offset!r}; give hours, minutes or days, such as '6h'")
        if pa.types.is_date(kind) and shift.microseconds:
            raise OptionError(f"the offset {offset!r} is not a number of days, and the column holds dates")
        zone_of(zone)
        return Calendar(span, zone, shift.microseconds + shift.days * _US_PER_DAY)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise OptionError(
            f"a histogram needs numbers, dates or timestamps, and the column is {type_to_sql(kind)}; "
            "facets() counts the values of any column"
        )
    if pa.types.is_decimal(kind):
        # As it is written: 0.1 as a binary fraction has more digits than any decimal column.
        interval, offset = str(interval), str(offset or 0)
    width = Width(_number(interval, "interval", positive=True), _number(offset or 0, "offset"))
    for number in (width.size, width.offset):
        if not pa.types.is_floating(kind) and not isinstance(number, float) and not _fits(number):
            raise OptionError(f"{number} has more digits than a column of {type_to_sql(kind)} can hold")
    return width


def _fits(number: int | Decimal) -> bool:
    """Whether a number has at most 18 digits on each side of its point."""
    digits = -int(number.as_tuple().exponent) if isinstance(number, Decimal) else 0
    return abs(number) < 10**_INT64_DIGITS and digits <= _INT64_DIGITS


def span_of(interval: Any) -> TimeSpan:
    """Read `1h`, `15 minutes`, `day`, `3 months`, or a timedelta."""
    if isinstance(interval, timedelta):
        micros = interval // timedelta(microseconds=1)
        if micros < 1:
            raise OptionError(f"the interval {interval} is not positive")
        whole, rest = divmod(micros, _US_PER_DAY)
        return TimeSpan(microseconds=micros) if rest else TimeSpan(days=whole)
    match = _TEXT.match(interval) if isinstance(interval, str) else None
    count = int(match[1] or 1) if match else 0
    unit = UNITS.get(match[2].lower()) if match else None
    if unit is None or not 1 <= count <= _LONGEST_US // unit.longest_us:
        raise OptionError(
            f"{interval!r} is not an interval of time; use a number and ms, s, m, h, d, w, mon, q or y, "
            "such as '15m', '1h', 'day', 'week', '3 months'"
        )
    return TimeSpan(count * unit.microseconds, count * unit.days, count * unit.months)


def _number(value: Any, what: str, *, positive: bool = False) -> int | float | Decimal:
    try:
        number = value if isinstance(value, (int, float, Decimal)) else Decimal(str(value))
    except InvalidOperation:
        raise OptionError(f"{what} is {value!r}; a column of numbers needs a number") from None
    if isinstance(value, bool) or not math.isfinite(number) or (positive and number <= 0):
        raise OptionError(f"{what} is {value!r}; give a number{' above 0' if positive else ''}")
    return int(number) if isinstance(number, Decimal) and number == number.to_integral_value() else number


def _decimal_floor(values: pa.Array, size: Decimal, offset: Decimal) -> pa.Array:
    scale = max(values.type.scale, *(-min(0, int(part.as_tuple().exponent)) for part in (size, offset)))
    whole, shift = (int(part.scaleb(scale)) for part in (size, offset))
    kind = pa.decimal128(38, scale)
    if values.type.precision - values.type.scale + scale <= _INT64_DIGITS:
        # The digits without their point fit a long: the lower half of the 128 bits, the upper is its sign.
        held = pc.fill_null(values.cast(kind), pa.scalar(Decimal(0), kind))
        halves = np.frombuffer(held.buffers()[1], np.int64)[2 * held.offset : 2 * (held.offset + len(held))]
        digits = halves[::2]
        cut = digits - (digits - shift) % whole
        both = np.stack([cut, cut >> 63], axis=1)
        starts = pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(both.tobytes())])
        return pc.if_else(pc.is_valid(values), starts, pa.nulls(1, kind)[0])
    distinct = values.dictionary_encode()
    with localcontext(_EXACT):
        cut_one = [
            offset + ((value - offset) / size).to_integral_value(ROUND_FLOOR) * size
            for value in distinct.dictionary.to_pylist()
        ]
    return pa.array(cut_one, kind).take(distinct.indices)


def _first_instants(local: pa.Array, zone: str) -> pa.Array:
    """The first instant of local days: midnight, or the end of the gap that midnight fell into."""
    place = zone_of(zone)
    if isinstance(place, int):
        return pc.subtract(local, place)
    times = local.cast(pa.timestamp("us"))
    named = pc.assume_timezone(times, place.key, ambiguous="earliest", nonexistent="latest")
    return named.cast(pa.int64())
