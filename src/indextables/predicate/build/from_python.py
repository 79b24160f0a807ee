"""From a Python expression to the tree, and from Python values to typed literals."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.types import TIMESTAMP, TIMESTAMP_NTZ, decimal_type, type_from_sql
from indextables.model.values import to_internal
from indextables.predicate import conditions, functions, values
from indextables.predicate.coerce import Unsupported
from indextables.predicate.expr import Expr
from indextables.predicate.names import resolve, split_name
from indextables.predicate.tree import (
    FLIPPED,
    NULL,
    Constant,
    Literal,
    Node,
    Not,
    Unknown,
    Value,
    all_of,
    any_of,
)

_INT, _LONG = 1 << 31, 1 << 63
_CONDITIONS = frozenset({*FLIPPED, "and", "or", "not", "in"})


def integer(value: int) -> Literal:
    """Return a whole number with the smallest of Spark's literal types: int, bigint, decimal."""
    if -_INT <= value < _INT:
        return Literal(value, pa.int32())
    return Literal(value, pa.int64()) if -_LONG <= value < _LONG else decimal(Decimal(value), str(value))


def decimal(value: Decimal, text: str) -> Literal:
    """Return a decimal with its own precision and scale."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise PredicateError(f"{text} is not a number a decimal can hold", part=text)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:  # noqa: PLR2004 - Spark's longest decimal
        raise PredicateError(f"{text} has more digits than a decimal can hold (38)", part=text)
    return Literal(value, decimal_type(precision, scale))


def literal_of(value: Any) -> Literal:
    """Return the literal of a Python value; a datetime without zone is a local time."""
    if value is None:
        return Literal(None, pa.string())
    if isinstance(value, bool):
        return Literal(value, pa.bool_())
    if isinstance(value, int):
        return integer(int(value))
    if isinstance(value, float):
        return Literal(float(value), pa.float64())
    if isinstance(value, Decimal):
        return decimal(value, str(value))
    if isinstance(value, str):
        return Literal(str(value), pa.string())
    if isinstance(value, (bytes, bytearray)):
        return Literal(bytes(value), pa.binary())
    if isinstance(value, datetime):
        kind = TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP
        return Literal(to_internal(value, kind), kind)
    if isinstance(value, date):
        return Literal(to_internal(value, pa.date32()), pa.date32())
    raise PredicateError(f"{value!r} of type {type(value).__name__} has no SQL type", part=repr(value))


class Builder:
    """Resolves expressions against one schema and time zone."""

    def __init__(self, schema: pa.Schema, zone: str) -> None:
        self._schema = schema
        self._zone = zone

    def predicate(self, item: Any) -> Node:
        """Return the tree of a condition."""
        if isinstance(item, bool) or item is None:
            return NULL if item is None else Constant(value=item)
        if not isinstance(item, Expr):
            raise PredicateError(f"{item!r} is not a condition", part=repr(item))
        try:
            return self._predicate(item)
        except Unsupported:
            return Unknown(repr(item))

    def _predicate(self, item: Expr) -> Node:
        op, args = item.op, item.args
        if op in {"and", "or"}:
            return (all_of if op == "and" else any_of)([self.predicate(child) for child in args])
        if op == "not":
            return Not(self.predicate(args[0]))
        if op in FLIPPED:
            return conditions.compare(op, self._value(args[0]), self._value(args[1]), self._zone)
        if op == "in":
            return conditions.in_list(
                self._value(args[0]), [self._value(value) for value in args[1]], self._zone
            )
        return values.condition(self._value(item))

    def _value(self, item: Any) -> Value:
        if not isinstance(item, Expr):
            return literal_of(item)
        if item.op == "column":
            return resolve(split_name(item.args[0]), self._schema)
        if item.op == "cast":
            kind = type_from_sql(item.args[1])
            if kind is None:
                raise PredicateError(f"{item.args[1]!r} is not a SQL type", part=str(item.args[1]))
            return values.cast(self._value(item.args[0]), kind, self._zone)
        if item.op in _CONDITIONS:
            return values.as_value(self._predicate(item))
        return functions.call(item.op, [self._value(arg) for arg in item.args], self._zone)
