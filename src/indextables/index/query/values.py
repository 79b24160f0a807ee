"""Values in a query: numbers, dates, times, booleans and addresses as the index holds them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from indextables.index.query.tree import Between, Exists, Matching, Words
from indextables.index.tokens import address, network
from indextables.lazy import later, pc
from indextables.model.calendar import US_PER_DAY, parse_date, parse_timestamp
from indextables.model.values import to_float32

if TYPE_CHECKING:
    import zoneinfo
else:
    zoneinfo = later("zoneinfo")

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NETWORK_4 = re.compile(r"(?:[0-9]+\.){1,3}\*(?:\.\*)*")
_NETWORK_6 = re.compile(r"(?:[0-9A-Fa-f]+:){1,7}\*")
_WIDEST = pa.decimal256(76, 38)
"""Holds every decimal of 38 digits, wherever its point is."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def numeric(text: str) -> int | float | None:
    """The number a text spells, as JSON would; None when it is not one."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    if "." in text or "e" in text.lower():
        return number if math.isfinite(number) else None
    return int(text)


def number_text(text: str) -> str | None:
    """A number spelled as in the index; None when the text is not a number."""
    number = numeric(text)
    if number is None:
        return None
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


def address_bounds(text: str) -> tuple[str, str] | None:
    """The range of addresses a text represents: one address, or a network such as 10.1.0.0/16 or 10.1.*."""
    single = address(text)
    if single is not None:
        return single, single
    if _NETWORK_4.fullmatch(text) and text.count(".") <= 3:  # noqa: PLR2004
        numbers = text.rstrip(".*").split(".")
        return network(f"{'.'.join((*numbers, '0', '0', '0')[:4])}/{8 * len(numbers)}")
    if _NETWORK_6.fullmatch(text):
        return network(f"{text[:-1]}:/{16 * text.count(':')}")
    return network(text)


def typed_value(text: str, kind: pa.DataType, time_zone: str = "UTC") -> int | float | Decimal:
    """A literal for a column of typed values: days for dates, microseconds for timestamps."""
    if pa.types.is_decimal(kind):
        return _decimal(text)
    if pa.types.is_boolean(kind):
        return _boolean(text)
    if pa.types.is_date32(kind):
        return parse_date(text)
    if pa.types.is_timestamp(kind):
        return _micros(text, kind, time_zone)
    if pa.types.is_floating(kind):
        number = float(text)
        if math.isnan(number):
            raise ValueError(text)
        return (to_float32(number) if pa.types.is_float32(kind) else number) + 0.0
    return int(text)


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
        pa.scalar(number, _WIDEST)
    except (InvalidOperation, pa.ArrowInvalid):
        raise ValueError(text) from None
    return number


def _boolean(text: str) -> int:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError(text)
    return int(lowered == "true")


def _micros(text: str, kind: pa.DataType, time_zone: str) -> int:
    try:
        local, has_offset = parse_timestamp(text)
    except ValueError:
        local, has_offset = parse_date(text) * US_PER_DAY, False
    if has_offset or kind.tz is None or time_zone == "UTC":
        return local
    wall = (_EPOCH + timedelta(microseconds=local)).replace(tzinfo=zoneinfo.ZoneInfo(time_zone))
    return (wall - _EPOCH) // timedelta(microseconds=1)


def typed_numbers(column: pa.Array) -> pa.Array:
    """Typed values as comparable numbers: days, microseconds, 0 and 1; NaN counts as null."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return pc.cast(column, _WIDEST)
    if pa.types.is_floating(kind):
        wide = pc.add(pc.cast(column, pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(wide), None, wide)
    if pa.types.is_timestamp(kind):
        return pc.cast(pc.cast(column, pa.timestamp("us", kind.tz)), pa.int64())
    if pa.types.is_date32(kind):
        return pc.cast(pc.cast(column, pa.int32()), pa.int64())
    return pc.cast(column, pa.int64())


def typed_between(node: Between, column: pa.Array) -> pa.BooleanArray:
    """Which values of a column lie within the bounds."""
    numbers = typed_numbers(column)
    inside = pc.is_valid(numbers)
    for bound, at, beyond in (
        (node.lower, pc.greater_equal if node.include_lower else pc.greater, False),
        (node.upper, pc.less_equal if node.include_upper else pc.less, True),
    ):
        if bound is None:
            continue
        scalar = _bound_scalar(bound, numbers.type)
        if scalar is None:
            # A whole number beyond 64 bits is above, or below, every value.
            covered = (bound > 0) == beyond
            inside = pc.and_(inside, pa.scalar(covered))
        else:
            inside = pc.and_(inside, pc.fill_null(at(numbers, scalar), False))
    return inside


def value_mask(node: Words | Matching | Between | Exists, column: pa.Array) -> pa.BooleanArray:
    """Which values of a column without a search field match, whole text by whole text or number by number.

    A list of texts matches if one of them does.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(node, Exists):
        return pc.is_valid(column)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        matches = value_mask(node, column.flatten()).to_numpy(zero_copy_only=False)
        rows = np.zeros(len(column), bool)
        rows[pc.list_parent_indices(column).to_numpy()[matches]] = True
        return pa.array(rows)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        assert isinstance(node, Between)
        return typed_between(node, column)
    return pc.fill_null(_text_mask(node, column), False)


def _text_mask(node: Words | Matching | Between, column: pa.Array) -> pa.BooleanArray:
    if isinstance(node, Words):
        if node.prefix is not None:
            return pc.starts_with(column, node.prefix)
        return pc.equal(column, pa.scalar(node.words[0], column.type))
    if isinstance(node, Matching):
        coded = column.dictionary_encode()
        texts = coded.dictionary.cast(pa.string())
        return pa.array(np.asarray(node.pattern.matches(texts), bool)).take(coded.indices)
    inside = pc.is_valid(column)
    for bound, compare in (
        (node.lower, pc.greater_equal if node.include_lower else pc.greater),
        (node.upper, pc.less_equal if node.include_upper else pc.less),
    ):
        if bound is not None:
            inside = pc.and_(inside, compare(column, pa.scalar(bound, column.type)))
    return inside


def _bound_scalar(bound: float, kind: pa.DataType) -> pa.Scalar | None:
    try:
        return pa.scalar(bound, kind)
    except (OverflowError, pa.ArrowInvalid):
        return None
