"""Text codecs for single values: partition values and statistics.

Both are strings in the log and typed everywhere else. Integers and decimals are plain
digits, booleans `true`/`false`, dates ISO, doubles their shortest round-trip form. They
differ in two places: a partition value writes a timestamp as
`yyyy-MM-ddTHH:mm:ss.ffffffZ` (without `Z` when it has no zone) and binary as base64; a
statistic writes a timestamp as microseconds since 1970 and has no binary. Null stays null
and the empty string stays the empty string.

In the internal form, dates are days, timestamps microseconds, and all else is its Python
value: `parse_*` returns that form, `decode_*` the value a user expects. A statistic that
cannot be read is unknown (null in an array); a partition value that cannot be read is an
error, because null would be a value.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.lazy import pc
from indextables.model.calendar import (
    format_date,
    format_timestamp,
    parse_date,
    parse_timestamp,
)
from indextables.model.types import type_to_sql

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of local and UTC reckoning alike
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTEGER = re.compile(r"-?\d+\Z", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|nan|inf|infinity)\Z", re.ASCII | re.IGNORECASE
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\Z", re.ASCII)
_BOOLEANS = {"true": True, "false": False}
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])
_FLOAT32_DIGITS = 9


def to_internal(value: Any, kind: pa.DataType) -> Any:
    """Return a Python value in Spark's internal form: days for dates, microseconds for timestamps."""
    if pa.types.is_timestamp(kind) and isinstance(value, datetime):
        origin = _EPOCH if value.tzinfo is None else _EPOCH_UTC
        return (value - origin) // _MICROSECOND
    if pa.types.is_date(kind) and isinstance(value, date):
        return value.toordinal() - 719_163
    if pa.types.is_decimal(kind):
        return exact_decimal(Decimal(value), kind)
    return value


def from_internal(value: Any, kind: pa.DataType) -> Any:
    """Return an internal value as the Python value a user expects; OverflowError beyond `datetime`."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return (_EPOCH if kind.tz is None else _EPOCH_UTC) + timedelta(microseconds=value)
    if pa.types.is_date(kind):
        return date(1970, 1, 1) + timedelta(days=value)
    return value


def exact_decimal(value: Decimal, kind: pa.DataType) -> Decimal:
    """Return the decimal with the type's scale; ValueError when that would change it or it is too long."""
    try:
        exact = value.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except (Inexact, InvalidOperation) as bad:
        raise ValueError(f"{value} does not fit {type_to_sql(kind)}") from bad
    if len(exact.as_tuple().digits) > kind.precision:
        raise ValueError(f"{value} does not fit {type_to_sql(kind)}")
    return exact


def encode_partition(value: Any, kind: pa.DataType) -> str | None:
    """Write a partition value as the log's text."""
    if value is None:
        return None
    value = to_internal(value, kind)
    if pa.types.is_timestamp(kind):
        return format_timestamp(value) + ("" if kind.tz is None else "Z")
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_float32(kind):
        return _shortest_float32(value)
    return _encode(value, kind)


def encode_stat(value: Any, kind: pa.DataType) -> str | None:
    """Write a minimum or maximum as the log's text; None for a type that has no statistics."""
    if value is None or not has_order(kind):
        return None
    return _encode(to_internal(value, kind), kind)


def _encode(value: Any, kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if pa.types.is_date(kind):
        return format_date(value)
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if pa.types.is_floating(kind):
        return _float_text(float(value), repr)
    return str(value)


def _float_text(value: float, write: Callable[[float], str]) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return write(value)


def _shortest_float32(value: float) -> str:
    rounded = to_float32(float(value))
    for digits in range(6, _FLOAT32_DIGITS):
        text = repr(float(f"{rounded:.{digits}g}"))
        if math.isfinite(rounded) and to_float32(float(text)) == rounded:
            return text
    return _float_text(rounded, lambda number: repr(float(f"{number:.{_FLOAT32_DIGITS}g}")))


def to_float32(value: float) -> float:
    """Round to the nearest 32-bit float; ValueError when it is too large."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError as bad:
        raise ValueError(f"{value!r} does not fit a float") from bad


def has_order(kind: pa.DataType) -> bool:
    """Whether values of this type get a minimum and a maximum."""
    is_ = pa.types
    tests = (
        is_.is_integer,
        is_.is_floating,
        is_.is_string,
        is_.is_boolean,
        is_.is_date,
        is_.is_timestamp,
        is_.is_decimal,
    )
    return any(test(kind) for test in tests)


def parse_partition(text: str, kind: pa.DataType) -> Any:
    """Read a partition value into its internal form; ValueError when it is not one."""
    if pa.types.is_timestamp(kind):
        return parse_timestamp(text)[0]
    if pa.types.is_binary(kind):
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error as bad:
            raise ValueError(f"{text!r} is not base64") from bad
    return _parse(text, kind)


def parse_stat(text: str, kind: pa.DataType) -> Any:
    """Read a statistic into its internal form; ValueError when it is not one.

    A timestamp may also be in ISO form, as other writers have it; for a type with a zone the text must then
    include its offset.
    """
    if pa.types.is_timestamp(kind):
        if _INTEGER.match(text):
            return _within(int(text), 64, text)
        micros, has_offset = parse_timestamp(text)
        if has_offset != (kind.tz is not None):
            raise ValueError(f"{text!r} is not a {type_to_sql(kind)}")
        return micros
    return _parse(text, kind)


def _parse(text: str, kind: pa.DataType) -> Any:
    is_ = pa.types
    if is_.is_string(kind):
        return text
    if is_.is_integer(kind) and _INTEGER.match(text):
        return _within(int(text), kind.bit_width, text)
    if is_.is_floating(kind) and _FLOAT.match(text):
        value = float(text)
        if math.isinf(value) and "inf" not in text.lower():
            raise ValueError(f"{text!r} is out of range")
        return to_float32(value) if is_.is_float32(kind) else value
    if is_.is_boolean(kind) and text in _BOOLEANS:
        return _BOOLEANS[text]
    if is_.is_date(kind):
        return parse_date(text)
    if is_.is_decimal(kind) and _DECIMAL.match(text):
        return exact_decimal(Decimal(text), kind)
    raise ValueError(f"{text!r} is not a {type_to_sql(kind)}")


def _within(value: int, bits: int, text: str) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"{text!r} is out of range")
    return value


def decode_partition(text: str | None, kind: pa.DataType) -> Any:
    """Read a partition value as a Python value; CorruptLogError when it is not one."""
    return None if text is None else from_internal(_checked(text, kind), kind)


def _checked(text: str, kind: pa.DataType) -> Any:
    try:
        return parse_partition(text, kind)
    except ValueError as bad:
        raise CorruptLogError(
            f"partition value {text!r} in the log is not a {type_to_sql(kind)}", value=text
        ) from bad


def decode_stat(text: str | None, kind: pa.DataType) -> Any:
    """Read a statistic as a Python value; None when it is absent or cannot be read."""
    if text is None:
        return None
    try:
        return from_internal(parse_stat(text, kind), kind)
    except (ValueError, OverflowError):
        return None


def decode_partition_array(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of partition values; CorruptLogError when one is not of the type."""
    return _decode_array(texts, kind, lambda text: _checked(text, kind), _fast_partition)


def decode_stat_array(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of statistics; null where one is absent or cannot be read."""

    def parse(text: str) -> Any:
        try:
            return parse_stat(text, kind)
        except ValueError:
            return None

    return _decode_array(texts, kind, parse, _fast_stat)


def _decode_array(
    texts: pa.Array,
    kind: pa.DataType,
    parse: Callable[[str], Any],
    fast: Callable[[pa.Array, pa.DataType], pa.Array | None],
) -> pa.Array:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if not pa.types.is_string(texts.type):
        texts = texts.cast(pa.string())
    if pa.types.is_string(kind):
        return texts
    decoded = fast(texts, kind)
    if decoded is not None:
        return decoded
    distinct = texts.dictionary_encode()
    values = [parse(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(values, kind).take(distinct.indices)


def _fast_partition(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    return _fast_stat(texts, kind) if pa.types.is_integer(kind) else None


def _has_hexadecimal(texts: pa.Array) -> bool:
    """Whether any text of the column contains an x; then each value is parsed on its own."""
    text = texts.buffers()[2]
    whole = b"" if text is None else text.to_pybytes()
    return b"x" in whole or b"X" in whole


def _fast_stat(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Parse the whole column with Arrow if its syntax is ours; None if a text needs its own parsing."""
    is_ = pa.types
    if is_.is_boolean(kind):
        is_boolean_text = pc.is_in(texts, value_set=pa.array(["true", "false"]))
        return pc.if_else(is_boolean_text, pc.equal(texts, "true"), pa.scalar(None, pa.bool_()))
    through = pa.int64() if is_.is_timestamp(kind) else kind
    if is_.is_integer(through) and _has_hexadecimal(texts):
        return None  # Arrow reads hexadecimal numbers, the log has none
    try:
        read = pc.cast(pc.cast(texts, through), kind)
    except pa.ArrowInvalid:
        return None
    if is_.is_floating(kind):
        infinite = pc.is_inf(read)
        if pc.any(infinite).as_py():
            # A number beyond the type's range is not infinity; it counts as unknown.
            named = pc.match_substring(texts, "inf", ignore_case=True)
            return pc.if_else(pc.and_not(infinite, named), pa.scalar(None, kind), read)
    return read
