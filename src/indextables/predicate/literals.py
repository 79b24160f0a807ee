"""Literals seen as another type: Spark's ANSI casts, for one value at a time.

Values are internal (days, microseconds, `Decimal`). A value that does not fit
raises ValueError, as the same cast fails in Spark.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.model.calendar import US_PER_DAY, US_PER_SECOND, days_of, format_date, format_timestamp
from indextables.model.types import type_to_sql
from indextables.model.values import to_float32
from indextables.predicate.zones import Zone, start_of_day, to_instant, to_local, zone_of

_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_INTEGER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?\Z", re.ASCII)
_NOT_NUMBERS = re.compile(r"([+-]?)(?:inf|infinity)\Z|nan\Z", re.ASCII | re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\Z", re.ASCII)
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\Z", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?(.*))?)?)?\Z",
    re.ASCII,
)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_WIDE = Context(prec=100)
_TWO_63 = float(1 << 63)


def cast_value(value: Any, source: pa.DataType, target: pa.DataType, zone: str = "UTC") -> Any:
    """Return an internal value of type `source` as type `target`; ValueError when it cannot be."""
    if value is None or source == target:
        return value
    is_ = pa.types
    if is_.is_string(source):
        return from_text(value, target, zone)
    if is_.is_integer(source) or is_.is_decimal(source) or is_.is_floating(source):
        return _from_number(value, source, target)
    if is_.is_date(source) or is_.is_timestamp(source):
        return _from_time(value, source, target, zone_of(zone))
    if is_.is_boolean(source):
        if is_.is_string(target):
            return "true" if value else "false"
        return _from_number(int(value), pa.int8(), target)
    raise _unknown(source, target)


def _unknown(source: pa.DataType, target: pa.DataType) -> ValueError:
    return ValueError(f"a {type_to_sql(source)} cannot be cast to {type_to_sql(target)}")


def from_text(text: str, target: pa.DataType, zone: str = "UTC") -> Any:
    """Cast a string, blanks around it ignored."""
    is_ = pa.types
    if is_.is_string(target):
        return text
    if is_.is_binary(target):
        return text.encode()
    trimmed = text.strip(_BLANKS)
    if is_.is_integer(target) and _INTEGER.match(trimmed):
        return _whole(int(trimmed), target)
    if is_.is_floating(target):
        value = _float_of(trimmed)
        if value is not None:
            return to_float32(value) if is_.is_float32(target) else value
    if is_.is_boolean(target) and trimmed.lower() in _TRUE | _FALSE:
        return trimmed.lower() in _TRUE
    if is_.is_decimal(target) and _DECIMAL.match(trimmed):
        return _rounded(Decimal(trimmed), target)
    if is_.is_date(target):
        return date_of_text(trimmed)
    if is_.is_timestamp(target):
        return timestamp_of_text(trimmed, zone if target.tz else None)
    raise ValueError(f"{text!r} is not a {type_to_sql(target)}")


def _float_of(text: str) -> float | None:
    if special := _NOT_NUMBERS.match(text):
        return (
            math.nan
            if special.group(1) is None
            else math.copysign(math.inf, -1 if special.group(1) == "-" else 1)
        )
    return float(text.rstrip("dDfF")) if _FLOAT.match(text) else None


def date_of_text(text: str) -> int:
    """Read a date as Spark casts it: the month and day may be short or absent, a time after it is ignored."""
    match = _DATE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day = match.groups()
    return _fitting(days_of(int(year), int(month or 1), int(day or 1)), 32, text)


def timestamp_of_text(text: str, zone: str | None) -> int:
    """Read a timestamp as Spark casts it.

    An offset or zone in the text wins over `zone`; with `zone` None the result
    is the local time, and whatever zone the text names is ignored.
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day, hour, minute, second, fraction, tail = match.groups()
    clock = int(hour or 0), int(minute or 0), int(second or 0)
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:  # noqa: PLR2004 - the clock
        raise ValueError(f"{text!r} is not a timestamp")
    local = days_of(int(year), int(month or 1), int(day or 1)) * US_PER_DAY
    local += (clock[0] * 3600 + clock[1] * 60 + clock[2]) * US_PER_SECOND
    local += int((fraction or "0").ljust(6, "0")[:6])
    named = (tail or "").strip()
    if named and second is None:
        raise ValueError(f"{text!r} is not a timestamp: a zone comes after the seconds")
    return _fitting(local if zone is None else to_instant(local, zone_of(named or zone)), 64, text)


def _fitting(value: int, bits: int, text: Any) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{text!r} is beyond the range of its type")
    return value


def names_zone(text: str) -> bool:
    """Whether a timestamp text carries an offset or zone of its own."""
    match = _TIMESTAMP.match(text.strip(_BLANKS))
    return bool(match and (match.group(8) or "").strip())


def _from_number(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    is_ = pa.types
    if is_.is_floating(target):
        number = float(value)
        return to_float32(number) if is_.is_float32(target) and not math.isnan(number) else number
    if is_.is_boolean(target):
        return bool(value)
    if is_.is_floating(source):
        if not math.isfinite(value):
            if is_.is_decimal(target):
                return None  # not an error in Spark, under ANSI rules either
            raise ValueError(f"{value} is not a {type_to_sql(target)}")
        if is_.is_int64(target) and value == _TWO_63:
            return (1 << 63) - 1  # Java compares with the greatest long as a double, which is this one
        value = int(value) if is_.is_integer(target) else Decimal(repr(value))
    if is_.is_integer(target):
        return _whole(int(Decimal(value).to_integral_value(ROUND_DOWN)), target)
    if is_.is_decimal(target):
        return _rounded(Decimal(value), target)
    if is_.is_string(target) and not is_.is_floating(source):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    raise _unknown(source, target)


def _whole(value: int, target: pa.DataType) -> int:
    half = 1 << (target.bit_width - 1)
    if not -half <= value < half:
        raise ValueError(f"{value} does not fit {type_to_sql(target)}")
    return value


def _rounded(value: Decimal, target: pa.DataType) -> Decimal:
    try:
        scaled = value.quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP, context=_WIDE)
    except InvalidOperation as bad:
        raise ValueError(f"{value} does not fit {type_to_sql(target)}") from bad
    if scaled and scaled.adjusted() + target.scale + 1 > target.precision:
        raise ValueError(f"{value} does not fit {type_to_sql(target)}")
    return scaled


def _from_time(value: int, source: pa.DataType, target: pa.DataType, zone: Zone) -> Any:
    is_ = pa.types
    if is_.is_date(source):
        if is_.is_timestamp(target):
            return _fitting(start_of_day(value, zone) if target.tz else value * US_PER_DAY, 64, value)
        if is_.is_string(target):
            return format_date(value)
    else:
        local = to_local(value, zone) if source.tz else value
        if is_.is_date(target):
            return local // US_PER_DAY
        if is_.is_timestamp(target):
            return to_instant(local, zone) if target.tz else local
        if is_.is_string(target):
            whole, _, fraction = format_timestamp(local).replace("T", " ").partition(".")
            fraction = fraction.rstrip("0")
            return f"{whole}.{fraction}" if fraction else whole
    raise _unknown(source, target)
