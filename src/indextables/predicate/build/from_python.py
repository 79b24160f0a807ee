"""From a Python expression to the tree, and from Python values to typed literals."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.types import TIMESTAMP, TIMESTAMP_NTZ, decimal_type, type_from_sql, type_to_sql
from indextables.model.values import to_internal
from indextables.predicate import coerce
from indextables.predicate.coerce import Unsupported
from indextables.predicate.expr import Expr
from indextables.predicate.names import resolve, split_name
from indextables.predicate.tree import (
    FLIPPED,
    NULL,
    Constant,
    IsTrue,
    IsUndecided,
    Literal,
    Node,
    Not,
    Operand,
    Unknown,
    all_of,
    any_of,
)

_INT, _LONG = 1 << 31, 1 << 63
_CONDITIONS = frozenset({"=", "<=>", "<", "<=", ">", ">=", "and", "or", "not", "in", "isnull", "like",
                         "startswith", "endswith", "contains"})  # fmt: skip


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
            return self._comparison(op, args[0], args[1])
        if op in {"column", "cast"}:
            operand = self._operand(item)
            if not pa.types.is_boolean(operand.type):
                raise PredicateError(
                    f"{operand} is {type_to_sql(operand.type)}, not a condition", part=str(operand)
                )
            return coerce.compare("=", operand, Literal(True, pa.bool_()), self._zone)
        if op == "isnull" and isinstance(args[0], Expr) and args[0].op in _CONDITIONS:
            return IsUndecided(self.predicate(args[0]))
        operand = self._operand(args[0])
        if op == "isnull":
            return coerce.is_null(operand)
        if op == "in":
            return coerce.in_list(operand, [literal_of(value) for value in args[1]], self._zone)
        if op == "like":
            return coerce.like(operand, literal_of(args[1]), args[2])
        if op == "rlike":
            return coerce.rlike(operand, literal_of(args[1]))
        return coerce.match(op, operand, literal_of(args[1]))

    def _comparison(self, op: str, left: Expr, right: Any) -> Node:
        if isinstance(right, Expr):
            raise Unsupported
        if left.op in _CONDITIONS:
            if not isinstance(right, bool) or op not in {"=", "<=>"}:
                raise Unsupported
            meant = self.predicate(left) if right else Not(self.predicate(left))
            return meant if op == "=" else IsTrue(meant)
        return coerce.compare(op, self._operand(left), literal_of(right), self._zone)

    def _operand(self, item: Any) -> Operand:
        if isinstance(item, Expr) and item.op == "column":
            return resolve(split_name(item.args[0]), self._schema)
        if isinstance(item, Expr) and item.op == "cast":
            kind = type_from_sql(item.args[1])
            if kind is None:
                raise PredicateError(f"{item.args[1]!r} is not a SQL type", part=str(item.args[1]))
            return coerce.cast_operand(self._operand(item.args[0]), kind, self._zone)
        raise Unsupported
