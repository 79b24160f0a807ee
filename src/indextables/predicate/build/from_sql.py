"""From SQL text, or a Python expression, to the tree.

The grammar is Spark's, through sqlglot. A text that Spark itself would refuse
(bad syntax, an unknown column, a literal that is no date) is an error here too.
A part that Spark understands and the tree does not becomes `Unknown`, in its
own words: it keeps every file when pruning and is an error for exact filters.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.types import TIMESTAMP_NTZ, type_from_sql, type_to_sql
from indextables.predicate import coerce
from indextables.predicate.build.from_python import Builder, decimal, integer
from indextables.predicate.coerce import FLIPPED, Unsupported
from indextables.predicate.expr import Expr
from indextables.predicate.literals import cast_value, names_zone
from indextables.predicate.names import resolve
from indextables.predicate.tree import (
    NULL,
    Column,
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

_COMPARISONS = {"EQ": "=", "NullSafeEQ": "<=>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_NEGATED = {"NEQ": "=", "NullSafeNEQ": "<=>"}
_MATCHES = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_BINARY = ("this", "expression")
# Null exactly where one of their operands is; not true for decimals, whose sums may overflow to null.
_ARITHMETIC = ("Add", "Sub", "Mul")
_TEXT_FUNCTIONS = ("Upper", "Lower", "Length")
# The attributes a node of the syntax tree may have. Any other changes its meaning in an unknown way.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([*_COMPARISONS, *_NEGATED, *_MATCHES, "And", "Or", "Is", "Escape", "Dot"], _BINARY),
    **dict.fromkeys(["Paren", "Not", "Neg", "Boolean", "HexString", "RawString"], ("this",)),
    **dict.fromkeys(["Cast", "TryCast"], ("this", "to")),
    **dict.fromkeys(_ARITHMETIC, _BINARY),
    **dict.fromkeys(_TEXT_FUNCTIONS, ("this",)),
    "Like": ("this", "expression", "negate"),
    "RegexpLike": ("this", "expression"),
    "Between": ("this", "low", "high"),
    "In": ("this", "expressions"),
    "Null": (),
    "Anonymous": ("this", "expressions"),
    "Concat": ("expressions",),
    "Literal": ("this", "is_string"),
    "Column": ("this", "table", "db", "catalog"),
}


def as_node(where: str | Expr | Node | None, schema: pa.Schema, time_zone: str = "UTC") -> Node | None:
    """Return the tree of a filter in any of its forms; None for none."""
    if where is None:
        return None
    try:
        if isinstance(where, str):
            return parse(where, schema, time_zone)
        if isinstance(where, Expr):
            return Builder(schema, time_zone).predicate(where)
    except RecursionError as deep:
        raise PredicateError(
            "the filter is nested too deeply to be read; write it with fewer brackets, "
            "or as a list (IN, AND, OR without brackets in between)"
        ) from deep
    if isinstance(where, Node):
        return where
    raise PredicateError(
        f"a filter is SQL text or an expression made with col(...), not {type(where).__name__}",
        part=repr(where),
    )


def parse(text: str, schema: pa.Schema, time_zone: str = "UTC") -> Node:
    """Return the tree of a SQL condition over a table's columns.

    Timestamps without an offset are read in `time_zone`.
    """
    return _TreeBuilder(schema, time_zone).predicate(_syntax(text))


def of_syntax(tree: Any, schema: pa.Schema, time_zone: str) -> Node:
    """Return the tree of a condition that sqlglot parsed as SQL of Spark."""
    return _TreeBuilder(schema, time_zone).predicate(tree)


@lru_cache(maxsize=1)
def _dialect() -> Any:
    import sqlglot

    return sqlglot.Dialect.get_or_raise("spark")


def _syntax(text: str) -> Any:
    from sqlglot.errors import ParseError, SqlglotError

    try:
        trees = _dialect().parser().parse(_joined(_dialect().tokenize(text), text), text)
    except ParseError as bad:
        first = bad.errors[0] if bad.errors else {}
        at = f" at line {first.get('line')}, column {first.get('col')}" if first else ""
        near = f" near {first.get('highlight')!r}" if first.get("highlight") else ""
        raise PredicateError(f"the filter {text!r} is not valid SQL{at}{near}", part=text) from bad
    except SqlglotError as bad:
        raise PredicateError(f"the filter {text!r} is not valid SQL: {bad}", part=text) from bad
    if len(trees) != 1 or trees[0] is None:
        raise PredicateError(f"the filter {text!r} is not one condition", part=text)
    return trees[0]


def _joined(tokens: list[Any], text: str) -> list[Any]:
    """Join strings that touch: in Spark a doubled quote is a quote."""
    from sqlglot.tokens import TokenType

    kept: list[Any] = []
    for token in tokens:
        before: Any = kept[-1] if kept else token
        touching = before.end + 1 == token.start and text[before.end] == text[token.start]
        if touching and before.token_type == token.token_type == TokenType.STRING:
            before.text += text[token.start] + token.text
            before.end = token.end
        else:
            kept.append(token)
    return kept


def _kind(item: Any) -> str:
    """Return the name of a node's class; Unsupported when it carries more than is understood."""
    name = type(item).__name__
    known = _ARGUMENTS.get(name, ())
    if any(value and key not in known for key, value in item.args.items()):
        raise Unsupported
    return name


class _TreeBuilder:
    """Walks sqlglot's tree."""

    def __init__(self, schema: pa.Schema, zone: str) -> None:
        self._schema = schema
        self._zone = zone

    def predicate(self, item: Any) -> Node:
        """Read a condition; a part the tree cannot hold becomes Unknown."""
        try:
            return self._predicate(item)
        except Unsupported:
            return Unknown(item.sql(dialect="spark"))

    def _predicate(self, item: Any) -> Node:
        name = _kind(item)
        if name == "Paren":
            return self.predicate(item.this)
        if name in {"And", "Or"}:
            join = all_of if name == "And" else any_of
            return join([self.predicate(child) for child in item.flatten()])
        if name == "Not":
            return Not(self.predicate(item.this))
        if name in _COMPARISONS:
            return self._comparison(_COMPARISONS[name], item.this, item.expression)
        if name in _NEGATED:
            return Not(self._comparison(_NEGATED[name], item.this, item.expression))
        if name == "Between":
            low = self._comparison(">=", item.this, item.args["low"])
            high = self._comparison("<=", item.this, item.args["high"])
            return all_of([low, high])
        if name == "In":
            return self._in(item)
        if name == "Is":
            return self._is(item)
        if name == "Boolean":
            return Constant(value=bool(item.this))
        if name == "Null":
            return NULL
        return self._function(name, item)

    def _function(self, name: str, item: Any) -> Node:
        if name in _MATCHES:
            return coerce.match(_MATCHES[name], self._operand(item.this), self._literal(item.expression))
        if name == "Like":
            return self._like(item, "\\")
        if name == "RegexpLike":
            return coerce.rlike(self._operand(item.this), self._literal(item.expression))
        if name == "Escape" and _kind(item.this) == "Like":
            escape = self._literal(item.expression).value
            if not isinstance(escape, str) or len(escape) != 1:
                raise PredicateError("ESCAPE takes one character", part=item.sql(dialect="spark"))
            return self._like(item.this, escape)
        if (
            name == "Anonymous"
            and str(item.this).lower() in {"isnull", "isnotnull"}
            and len(item.expressions) == 1
        ):
            absent = self._is_null(item.expressions[0])
            return absent if str(item.this).lower() == "isnull" else Not(absent)
        operand = self._operand(item)
        if not pa.types.is_boolean(operand.type):
            raise PredicateError(
                f"{item.sql(dialect='spark')} is {type_to_sql(operand.type)}, not a condition",
                part=item.sql(dialect="spark"),
            )
        return coerce.compare("=", operand, Literal(True, pa.bool_()), self._zone)

    def _like(self, item: Any, escape: str) -> Node:
        found = coerce.like(self._operand(item.this), self._literal(item.expression), escape)
        return Not(found) if item.args.get("negate") else found

    def _comparison(self, op: str, left: Any, right: Any) -> Node:
        if self._is_value(left):
            op, left, right = FLIPPED[op], right, left
        if not self._is_value(right):
            raise Unsupported
        if self._is_value(left):
            return self._fold(op, left, right)
        if _kind(right) in {"Boolean", "Null"} and self._is_condition(left):
            return self._condition_is(op, left, right)
        return coerce.compare(op, self._operand(left), self._literal(right), self._zone)

    def _fold(self, op: str, left: Any, right: Any) -> Node:
        """Evaluate a comparison of two literals, such as 1 = 1."""
        first, second = self._literal(left), self._literal(right)
        if first.value is None or second.value is None:
            return Constant(value=first.value is None and second.value is None) if op == "<=>" else NULL
        if first.type != second.type or isinstance(first.value, float):
            raise Unsupported
        a, b = first.value, second.value
        truth = {"=": a == b, "<=>": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        return Constant(value=bool(truth))

    def _is_condition(self, item: Any) -> bool:
        name = _kind(item)
        if name == "Paren":
            return self._is_condition(item.this)
        return (
            name
            in {"And", "Or", "Not", "Between", "In", "Is", "Like", "RegexpLike"}
            | _COMPARISONS.keys()
            | _NEGATED.keys()
            | _MATCHES.keys()
        )

    def _condition_is(self, op: str, left: Any, right: Any) -> Node:
        condition = self.predicate(left)
        wanted = None if _kind(right) == "Null" else bool(right.this)
        if op not in {"=", "<=>"}:
            raise Unsupported
        if wanted is None:
            return NULL if op == "=" else IsUndecided(condition)
        meant = condition if wanted else Not(condition)
        return meant if op == "=" else IsTrue(meant)

    def _is(self, item: Any) -> Node:
        kind = _kind(item.expression)
        if kind == "Null":
            return self._is_null(item.this)
        if kind == "Boolean":
            return self._comparison("<=>", item.this, item.expression)
        raise Unsupported

    def _is_null(self, item: Any) -> Node:
        if self._is_value(item):
            return Constant(value=self._literal(item).value is None)
        name = _kind(item)
        if name == "Paren":
            return self._is_null(item.this)
        if name in _ARITHMETIC or name in _TEXT_FUNCTIONS:
            return self._is_null_of_parts(item)
        if self._is_condition(item):
            condition = self.predicate(item)
            if isinstance(condition, Unknown) and name in {"EQ", "NEQ", "LT", "LTE", "GT", "GTE"}:
                return any_of([self._is_null(item.this), self._is_null(item.expression)])
            return IsUndecided(condition)
        return coerce.is_null(self._operand(item))

    def _is_null_of_parts(self, item: Any) -> Node:
        """An expression that is null exactly where one of its parts is."""
        parts = [part for part in (item.this, item.args.get("expression")) if part is not None]
        if _kind(item) in _ARITHMETIC and not all(self._is_never_null(part) for part in parts):
            raise Unsupported
        return any_of([self._is_null(part) for part in parts])

    def _is_never_null(self, item: Any) -> bool:
        name = _kind(item)
        if name == "Paren":
            return self._is_never_null(item.this)
        if name in _ARITHMETIC:
            return all(self._is_never_null(part) for part in (item.this, item.expression))
        found = self._literal(item) if self._is_value(item) else self._operand(item)
        return coerce.never_null(found.type)

    def _in(self, item: Any) -> Node:
        if not item.expressions or not all(self._is_value(value) for value in item.expressions):
            raise Unsupported
        literals = [self._literal(value) for value in item.expressions]
        return coerce.in_list(self._operand(item.this), literals, self._zone)

    def _is_value(self, item: Any) -> bool:
        name = _kind(item)
        if name in {"Paren", "Neg", "Cast", "TryCast"}:
            return self._is_value(item.this)
        if name == "Concat":
            return all(_kind(piece) == "Literal" for piece in item.expressions)
        return name in {"Literal", "Boolean", "Null", "HexString", "RawString"}

    def _operand(self, item: Any) -> Operand:
        name = _kind(item)
        if name == "Paren":
            return self._operand(item.this)
        if name in {"Column", "Dot"}:
            return self._column(item)
        if name in {"Cast", "TryCast"}:
            return coerce.cast_operand(self._operand(item.this), self._type(item), self._zone)
        raise Unsupported

    def _column(self, item: Any) -> Column:
        names: list[str] = []
        while _kind(item) == "Dot":
            names.insert(0, item.expression.name)
            item = item.this
        if _kind(item) != "Column":
            raise Unsupported
        return resolve([part.name for part in item.parts] + names, self._schema)

    def _type(self, item: Any) -> pa.DataType:
        text = item.args["to"].sql(dialect="spark").lower()
        found = None if text.startswith(("char", "varchar")) or "collate" in text else type_from_sql(text)
        if found is None:
            raise Unsupported
        return found

    def _literal(self, item: Any) -> Literal:
        name = _kind(item)
        if name == "Paren":
            return self._literal(item.this)
        if name == "Null":
            return Literal(None, pa.string())
        if name == "Boolean":
            return Literal(bool(item.this), pa.bool_())
        if name == "RawString":
            return Literal(item.this, pa.string())
        if name == "Concat":
            return Literal("".join(piece.this for piece in item.expressions), pa.string())
        if name == "HexString":
            digits = item.this
            return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), pa.binary())
        if name == "Neg":
            return self._negated(item.this)
        if name == "Literal":
            return Literal(item.this, pa.string()) if item.is_string else _number(item.this)
        if name in {"Cast", "TryCast"}:
            return self._cast(item)
        raise Unsupported

    def _negated(self, item: Any) -> Literal:
        """Read `-128Y`, whose digits alone would not fit its type, as one literal."""
        suffixed = _kind(item) == "TryCast" and _kind(item.this) == "Literal"
        if suffixed and not item.this.is_string:
            return self._cast(item, _negative(_number(item.this.this)))
        return _negative(self._literal(item))

    def _cast(self, item: Any, inner: Literal | None = None) -> Literal:
        kind = self._type(item)
        inner = inner or self._literal(item.this)
        words = item.sql(dialect="spark")
        if _kind(item) == "Cast" and kind == TIMESTAMP_NTZ and names_zone(str(inner.value)):
            raise PredicateError(f"{words}: a TIMESTAMP_NTZ has no zone", part=words)
        try:
            return Literal(cast_value(inner.value, inner.type, kind, self._zone), kind)
        except ValueError as bad:
            raise PredicateError(f"{words}: {bad}", part=words) from bad


def _number(text: str) -> Literal:
    """Type a number as Spark does: digits by their size, decimal with a point, double with an exponent."""
    if "e" in text.lower():
        value = float(text)
        if value in {float("inf"), float("-inf")}:
            raise PredicateError(f"{text} is out of the range of a double", part=text)
        return Literal(value, pa.float64())
    return integer(int(text)) if text.isdigit() else decimal(Decimal(text), text)


def _negative(literal: Literal) -> Literal:
    if pa.types.is_integer(literal.type) or (pa.types.is_decimal(literal.type) and literal.type.scale == 0):
        whole = integer(-int(literal.value))
        return whole if pa.types.is_decimal(literal.type) else Literal(whole.value, literal.type)
    if isinstance(literal.value, (float, Decimal)):
        return Literal(-literal.value, literal.type)
    raise Unsupported
