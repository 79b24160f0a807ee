"""From Spark's own filters to the tree.

Spark sends a filter while it plans a query, as a tree of its expression nodes:
columns by path and type, literals as internal values with their types (see
`LogFileIndex`). Spark has resolved names, coerced types and will check every
row again, so this side needs no exactness: whatever it does not recognise, or
cannot be sure to read as Spark does, becomes `Unknown` and keeps the file.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.types import type_from_sql
from indextables.model.values import to_float32
from indextables.predicate import coerce
from indextables.predicate.coerce import FLIPPED, Unsupported
from indextables.predicate.names import resolve
from indextables.predicate.tree import (
    NULL,
    Constant,
    IsUndecided,
    Literal,
    Match,
    Node,
    Not,
    Operand,
    Unknown,
    all_of,
    any_of,
)

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_CONDITIONS = frozenset(
    {*_COMPARISONS, "And", "Or", "Not", "In", "InSet", "Like", "RLike", "IsNull", "IsNotNull",
     "StartsWith", "EndsWith", "Contains"}
)  # fmt: skip
# Null exactly where one of their operands is; not true for decimals, whose sums may overflow to null.
_ARITHMETIC = frozenset({"Add", "Subtract", "Multiply"})
_TEXT_FUNCTIONS = frozenset({"Upper", "Lower", "Length"})
_MATCHES = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_POSITIONS = frozenset({"StringInstr", "StringLocate"})
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Tree = Mapping[str, Any]


def from_typed(tree: Tree, schema: pa.Schema) -> Node:
    """Return the tree of one of Spark's filters."""
    try:
        return _Filter(schema).predicate(tree)
    except (Unsupported, PredicateError, KeyError, IndexError, TypeError, ValueError, InvalidOperation):
        return Unknown(_words(tree))


def _words(tree: Any) -> str:
    return str(tree.get("node")) if isinstance(tree, Mapping) else repr(tree)


class _Filter:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def predicate(self, tree: Tree) -> Node:
        node = tree["node"]
        if node == "And":
            return all_of([from_typed(child, self._schema) for child in tree["children"]])
        if node == "Or":
            return any_of([from_typed(child, self._schema) for child in tree["children"]])
        if node == "Not":
            return Not(from_typed(tree["children"][0], self._schema))
        if node in _COMPARISONS:
            return self._comparison(_COMPARISONS[node], *tree["children"])
        if node in {"IsNull", "IsNotNull"}:
            absent = self._is_null(tree["children"][0])
            return absent if node == "IsNull" else Not(absent)
        if node == "literal":
            value = self._literal(tree)
            return NULL if value.value is None else Constant(value=bool(value.value))
        if node == "column":
            return coerce.compare("=", self._operand(tree), Literal(True, pa.bool_()), "UTC")
        return self._lists_and_texts(str(node), tree)

    def _is_null(self, tree: Tree) -> Node:
        """Whether an expression is null, derived from the columns in it."""
        node, children = str(tree["node"]), tree.get("children", ())
        if node == "literal":
            return Constant(value=self._literal(tree).value is None)
        if node in _ARITHMETIC:
            if not all(coerce.never_null(_kind(child)) for child in children):
                raise Unsupported
            return any_of([self._is_null(child) for child in children])
        if node in _TEXT_FUNCTIONS:
            return self._is_null(children[0])
        if node in _COMPARISONS and node != "EqualNullSafe":
            condition = from_typed(tree, self._schema)
            if isinstance(condition, Unknown):
                return any_of([self._is_null(child) for child in children])
            return IsUndecided(condition)
        if node in _CONDITIONS:
            return IsUndecided(from_typed(tree, self._schema))
        return coerce.is_null(self._operand(tree))

    def _lists_and_texts(self, node: str, tree: Tree) -> Node:
        children = tree["children"]
        if node in {"In", "InSet"}:
            items = tree["values"] if node == "InSet" else children[1:]
            literals = [self._literal(item) for item in items]
            operand = self._operand(children[0])
            self._check_same(operand, literals)
            return coerce.in_list(operand, literals, "UTC")
        if node in _MATCHES:
            return coerce.match(_MATCHES[node], self._operand(children[0]), self._literal(children[1]))
        if node == "Like":
            return coerce.like(self._operand(children[0]), self._literal(children[1]), str(tree["escape"]))
        if node == "RLike":
            return coerce.rlike(self._operand(children[0]), self._literal(children[1]))
        raise Unsupported

    def _comparison(self, op: str, left: Tree, right: Tree) -> Node:
        if left["node"] == "literal":
            op, left, right = FLIPPED[op], right, left
        if left["node"] in _POSITIONS:
            return coerce.position(op, self._contains(left), _whole(self._literal(right).value))
        operand, literal = self._operand(left), self._literal(right)
        self._check_same(operand, [literal])
        return coerce.compare(op, operand, literal, "UTC")

    def _contains(self, tree: Tree) -> Match:
        """Whether a text is where `instr` or `locate` look for it: from the first character on."""
        text, part, *start = tree["children"]
        if tree["node"] == "StringLocate":
            text, part = part, text
        if any(self._literal(one).value != 1 for one in start):
            raise Unsupported
        contains = coerce.match("contains", self._operand(text), self._literal(part))
        if not isinstance(contains, Match):
            raise Unsupported
        return contains

    @staticmethod
    def _check_same(operand: Operand, literals: list[Literal]) -> None:
        """Spark has already cast both sides to one type; anything else means that we misread the filter."""
        for literal in literals:
            if literal.value is not None and literal.type != operand.type:
                raise Unsupported

    def _operand(self, tree: Tree) -> Operand:
        if tree["node"] == "column":
            column = resolve(tree["path"], self._schema)
            if _kind(tree) != column.type or column.order != "binary":
                raise Unsupported
            return column
        if tree["node"] == "Cast":
            return self._cast(self._operand(tree["children"][0]), _kind(tree))
        raise Unsupported

    @staticmethod
    def _cast(operand: Operand, target: pa.DataType) -> Operand:
        """Numbers may be cast to wider numbers; every other cast depends on settings of the session."""
        is_ = pa.types
        numbers = (is_.is_integer, is_.is_floating, is_.is_decimal)
        if not all(any(test(kind) for test in numbers) for kind in (operand.type, target)):
            raise Unsupported
        return coerce.cast_operand(operand, target, "UTC")

    @staticmethod
    def _literal(tree: Tree) -> Literal:
        if tree["node"] != "literal":
            raise Unsupported
        kind, value = _kind(tree), tree["value"]
        if value is None:
            return Literal(None, kind)
        return Literal(_reader(kind)(value), kind)


def _kind(tree: Tree) -> pa.DataType:
    text = str(tree["type"]).lower()
    if "collate" in text and not text.endswith("collate utf8_binary"):
        raise Unsupported
    kind = type_from_sql(text)
    if kind is None or text.startswith("char"):
        raise Unsupported
    return kind


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    is_ = pa.types
    if is_.is_boolean(kind):
        return _boolean
    if is_.is_floating(kind):
        return _float32 if is_.is_float32(kind) else _float
    if is_.is_decimal(kind):
        return Decimal
    if is_.is_binary(kind):
        return base64.b64decode
    if is_.is_string(kind):
        return _text
    return _whole


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unsupported
    return value


def _float(value: Any) -> float:
    return _FLOATS[value] if value in _FLOATS else float(value)


def _float32(value: Any) -> float:
    """Spark writes a float with the digits that identify it among floats, not among doubles."""
    return to_float32(_float(value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unsupported
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unsupported
    return value
