"""Translates conditions of DuckDB's SQL into filters of IndexTables, as far as both mean the same.

DuckDB evaluates the whole WHERE by itself. A filter that is handed to the scan only
saves reading, so it may let rows through that WHERE leaves out, and never the other
way round. Only comparisons of a column with a literal are taken over, and of those
only the ones in which no cast, collation, rounding or rule about time zones can
make a difference. Whatever else stands in a condition is not pushed down.

A local time in a zone with rules is taken for the day around it: which instant it
means depends on DuckDB's copy of those rules, and on how a time that happened twice
is read. Such a filter is wider than the condition, so it is `exact` no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.calendar import US_PER_DAY
from indextables.model.types import decimal_type
from indextables.predicate import coerce
from indextables.predicate.names import resolve
from indextables.predicate.search_function import search
from indextables.predicate.searchable import CALLS
from indextables.predicate.tree import Column, Literal, Node, Not, Or, Value, all_of
from indextables.predicate.values import condition
from indextables.predicate.zones import zone_of

_COMPARISONS = {"EQ": "=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_MATCHES = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_SEARCHES = {call: name for name, call in CALLS.items()}
_FLIPPED = coerce.FLIPPED
# The attributes that a node may have; any other changes its meaning.
_ARGUMENTS = {
    **dict.fromkeys([*_COMPARISONS, *_MATCHES, "NEQ", "And", "Or", "Is"], frozenset({"this", "expression"})),
    **dict.fromkeys(["Paren", "Not", "Neg", "Boolean"], frozenset({"this"})),
    "Like": frozenset({"this", "expression", "negate"}),
    "Between": frozenset({"this", "low", "high"}),
    "In": frozenset({"this", "expressions"}),
    "Literal": frozenset({"this", "is_string"}),
    "Cast": frozenset({"this", "to", "_type"}),
    "Column": frozenset({"this", "table"}),
    "Null": frozenset[str](),
    "Anonymous": frozenset({"this", "expressions"}),
}
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T]((?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d(?::\d\d)?)?)?",
    re.ASCII,
)
_EXACT_INTEGERS = 1 << 53
"""Whole numbers up to this one are doubles."""
_EXACT_DIGITS = 15
"""A decimal with at most this many digits converts to the same double in every library."""
_INTEGER_DIGITS = 18
_DECIMAL_DIGITS = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pushed:
    """A filter that is true at least wherever a condition is."""

    node: Node
    exact: bool = True
    """Whether it is true, false and null exactly where the condition is."""


def pushed_down(condition: Any, schema: pa.Schema, zone: str) -> Pushed | None:
    """The filter for a condition that sqlglot parsed; None if there is none.

    `zone` is the one in which DuckDB reads times without an offset.
    """
    try:
        return _Conversion(schema, zone).of(condition)
    except (_OtherMeaningError, coerce.Unsupported, PredicateError):
        return None


class _OtherMeaningError(Exception):
    """A part of a condition that may mean something else in our filters."""


@dataclass(frozen=True, slots=True)
class _ValueRange:
    """The value a literal has for a column, or the bounds of what it may be."""

    low: Any
    high: Any
    type: pa.DataType

    @property
    def exact(self) -> bool:
        return bool(self.low == self.high)


class _Conversion:
    def __init__(self, schema: pa.Schema, zone: str) -> None:
        self._schema = schema
        self._zone = zone

    def of(self, item: Any) -> Pushed:
        name = _kind(item)
        if name == "Paren":
            return self.of(item.this)
        if name == "And":
            return self._all(item)
        if name == "Or":
            parts = [self.of(item.this), self.of(item.expression)]
            return Pushed(Or(tuple(part.node for part in parts)), all(part.exact for part in parts))
        if name == "Not":
            return _opposite(self.of(item.this))
        if name in _COMPARISONS:
            return self._comparison(_COMPARISONS[name], item.this, item.expression)
        if name == "NEQ":
            return _opposite(self._comparison("=", item.this, item.expression))
        if name == "Between":
            low = self._comparison(">=", item.this, item.args["low"])
            high = self._comparison("<=", item.this, item.args["high"])
            return Pushed(all_of([low.node, high.node]), low.exact and high.exact)
        if name == "In":
            return self._in(item)
        if name == "Is":
            if _kind(item.expression) != "Null":
                raise _OtherMeaningError
            return Pushed(coerce.is_null(self._column(item.this)))
        if name == "Column":
            column = self._column(item)
            return self._compared("=", column, _ValueRange(True, True, _only(column, pa.bool_())))
        if name == "Anonymous" and str(item.this).lower() in _SEARCHES:
            return self._search(item)
        return self._text(name, item)

    def _all(self, item: Any) -> Pushed:
        """A conjunction without what is not understood: it lets more rows through."""
        parts: list[Pushed | None] = []
        for part in (item.this, item.expression):
            try:
                parts.append(self.of(part))
            except (_OtherMeaningError, coerce.Unsupported, PredicateError):
                parts.append(None)
        left = [part for part in parts if part is not None]
        if not left:
            raise _OtherMeaningError
        return Pushed(
            all_of([part.node for part in left]), len(left) == len(parts) and all(part.exact for part in left)
        )

    def _comparison(self, op: str, left: Any, right: Any) -> Pushed:
        if type(left).__name__ != "Column":
            op, left, right = _FLIPPED[op], right, left
        column = self._column(left)
        return self._compared(op, column, self._span(right, column))

    def _compared(self, op: str, column: Column, span: _ValueRange) -> Pushed:
        compare = partial(self._compare, column, span.type)
        if span.exact or op in {"<", "<=", ">", ">="}:
            return Pushed(compare(op, span.low if op in {">", ">="} else span.high), span.exact)
        return Pushed(all_of([compare(">=", span.low), compare("<=", span.high)]), exact=False)

    def _compare(self, column: Column, kind: pa.DataType, op: str, value: Any) -> Node:
        return coerce.compare(op, column, Literal(value, kind), "UTC")

    def _in(self, item: Any) -> Pushed:
        column = self._column(item.this)
        values = item.expressions
        # DuckDB compares in one type that all values have in common.
        if len({_sort(value) for value in values}) != 1:
            raise _OtherMeaningError
        parts = [self._compared("=", column, self._span(value, column)) for value in values]
        if len(parts) == 1:
            return parts[0]
        return Pushed(Or(tuple(part.node for part in parts)), all(part.exact for part in parts))

    def _text(self, name: str, item: Any) -> Pushed:
        if name not in _MATCHES and name != "Like":
            raise _OtherMeaningError
        column, pattern = self._column(item.this), item.expression
        _only(column, pa.string())
        if _kind(pattern) != "Literal" or not pattern.is_string:
            raise _OtherMeaningError
        text = Literal(str(pattern.this), pa.string())
        if name != "Like":
            return Pushed(coerce.match(_MATCHES[name], column, text))
        # DuckDB has no escape sign unless it is told one. What `_` stands for is left to it.
        if "\\" in text.value or "_" in text.value:
            raise _OtherMeaningError
        pushed = Pushed(coerce.like(column, text))
        return _opposite(pushed) if item.args.get("negate") else pushed

    def _search(self, item: Any) -> Pushed:
        """`indextables_search(mode, columns, pattern)`: the same function decides here and in DuckDB."""
        mode, *columns, pattern = item.expressions
        args: list[Value] = [*map(self._column, columns), Literal(_string(pattern), pa.string())]
        name = _SEARCHES[str(item.this).lower()]
        return Pushed(condition(search(name, args, Literal(_string(mode), pa.string()))))

    def _column(self, item: Any) -> Column:
        if _kind(item) != "Column" or type(item.this).__name__ != "Identifier":
            raise _OtherMeaningError
        column = resolve((item.name,), self._schema)
        if column.order != "binary":
            raise _OtherMeaningError
        return column

    def _span(self, item: Any, column: Column) -> _ValueRange:
        """The value of a literal in the type of a column."""
        is_ = pa.types
        if is_.is_timestamp(column.type):
            return self._moment(item, column.type)
        if is_.is_date(column.type):
            return self._day(item, column.type)
        if is_.is_string(column.type):
            return _same(_string(item), column.type)
        if is_.is_boolean(column.type):
            if _kind(item) != "Boolean":
                raise _OtherMeaningError
            return _same(bool(item.this), column.type)
        number = _number(item)
        digits = number.as_tuple()
        scale = max(0, -int(digits.exponent))
        if is_.is_signed_integer(column.type) and not scale and number.adjusted() < _INTEGER_DIGITS:
            return _same(int(number), pa.int64())
        if is_.is_float64(column.type) and (
            abs(number) <= _EXACT_INTEGERS if not scale else len(digits.digits) <= _EXACT_DIGITS
        ):
            return _same(float(number), column.type)
        if is_.is_decimal(column.type) and number.adjusted() < _INTEGER_DIGITS:
            # DuckDB compares in a decimal that holds both, and as doubles where there is none.
            fraction = max(scale, column.type.scale)
            if (
                max(column.type.precision - column.type.scale, _INTEGER_DIGITS + 1) + fraction
                <= _DECIMAL_DIGITS
            ):
                return _same(number, decimal_type(_DECIMAL_DIGITS, fraction))
        raise _OtherMeaningError

    def _day(self, item: Any, kind: pa.DataType) -> _ValueRange:
        if _cast(item) not in {"", "DATE"}:
            raise _OtherMeaningError
        text = _string(item.this if _cast(item) else item)
        if _DATE.fullmatch(text) is None:
            raise _OtherMeaningError
        return _same(_micros(text) // US_PER_DAY, kind)

    def _moment(self, item: Any, kind: pa.DataType) -> _ValueRange:
        cast = _cast(item)
        match = _TIME.fullmatch(_string(item.this if cast else item))
        if match is None or (cast == "DATE" and match[2] is not None):
            raise _OtherMeaningError
        day, clock, offset = match.groups()
        local = _micros(f"{day} {clock}" if clock else day)
        if kind.tz is None:
            # An offset would move the time; a literal with a zone is an instant, and the column becomes one.
            if offset is not None or cast == "TIMESTAMPTZ":
                raise _OtherMeaningError
            return _same(local, kind)
        if offset is not None:
            if cast in {"TIMESTAMP", "TIMESTAMPNTZ"}:
                raise _OtherMeaningError
            return _same(_micros(f"{day} {clock}{offset}"), kind)
        zone = zone_of(self._zone)
        if isinstance(zone, int):
            return _same(local - zone, kind)
        return _ValueRange(local - US_PER_DAY, local + US_PER_DAY, kind)


def _kind(item: Any) -> str:
    name = type(item).__name__
    allowed: Iterable[str] = _ARGUMENTS.get(name, ())
    if any(value and key not in allowed for key, value in item.args.items()):
        raise _OtherMeaningError
    return name


def _opposite(pushed: Pushed) -> Pushed:
    if not pushed.exact:
        raise _OtherMeaningError
    return Pushed(Not(pushed.node))


def _same(value: Any, kind: pa.DataType) -> _ValueRange:
    return _ValueRange(value, value, kind)


def _only(column: Column, kind: pa.DataType) -> pa.DataType:
    if column.type != kind:
        raise _OtherMeaningError
    return kind


def _sort(item: Any) -> str:
    """What kind of literal it is; numbers are all of one kind."""
    name = _kind(item)
    if name == "Cast":
        return _cast(item)
    return (
        "text" if name == "Literal" and item.is_string else "number" if name in {"Literal", "Neg"} else name
    )


def _cast(item: Any) -> str:
    """The type that a literal names, as `DATE '2024-01-01'` does; empty if it names none."""
    if _kind(item) != "Cast":
        return ""
    name = str(item.args["to"].this.name)
    if name not in {"DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ"} or item.args["to"].expressions:
        raise _OtherMeaningError
    return name


def _string(item: Any) -> str:
    if _kind(item) != "Literal" or not item.is_string:
        raise _OtherMeaningError
    return str(item.this)


def _number(item: Any) -> Decimal:
    if _kind(item) == "Neg":
        return -_number(item.this)
    if (
        _kind(item) != "Literal"
        or item.is_string
        or re.fullmatch(r"\d+(\.\d+)?", item.this, re.ASCII) is None
    ):
        raise _OtherMeaningError
    return Decimal(item.this)


def _micros(text: str) -> int:
    """Microseconds since 1970 of a time; without an offset, of a clock that has no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as bad:
        raise _OtherMeaningError from bad
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
