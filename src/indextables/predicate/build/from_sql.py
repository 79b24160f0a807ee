"""From SQL text, or a Python expression, to the tree.

The grammar is Spark's, through sqlglot; a simple condition is read without it
(`plain_sql`). A text that Spark itself would refuse (bad syntax, an unknown column,
a literal that is no date) is an error here too. A part that Spark understands and the
tree does not becomes `Unknown`, in its own words: it keeps every file when pruning and
is an error for exact filters.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.lazy import sqlglot
from indextables.model.types import TIMESTAMP_NTZ, type_from_sql
from indextables.predicate import conditions, functions, search_function, values
from indextables.predicate.build.from_python import Builder, decimal, integer
from indextables.predicate.build.plain_sql import read_plain
from indextables.predicate.coerce import Unsupported
from indextables.predicate.expr import Expr
from indextables.predicate.literals import cast_value, names_zone
from indextables.predicate.names import resolve
from indextables.predicate.searchable import CALLS
from indextables.predicate.tree import (
    Column,
    Literal,
    Node,
    Not,
    Unknown,
    Value,
    all_of,
    any_of,
    walk,
)

_COMPARISONS = {"EQ": "=", "NullSafeEQ": "<=>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_NEGATED = {"NEQ": "=", "NullSafeNEQ": "<=>"}
_OPERATORS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "DPipe": "concat",
}  # fmt: skip
_BINARY = ("this", "expression")
# Functions with a syntax of their own, and the order of their arguments; all others are Anonymous.
_SPECIAL = {
    "Substring": ("substring", ("this", "start", "length")),
    "Trim": ("trim", ("this",)),
    "Floor": ("floor", ("this",)),
    "Ceil": ("ceil", ("this",)),
    "If": ("if", ("this", "true", "false")),
    "RegexpLike": ("rlike", _BINARY),
    **{name: (name.lower(), _BINARY) for name in ("StartsWith", "EndsWith", "Contains")},
    "StrPosition": ("instr", ("this", "substr")),
    "Neg": ("negative", ("this",)),
    **{name: (operator, _BINARY) for name, operator in _OPERATORS.items()},
}
_CONDITIONS = frozenset(
    {"And", "Or", "Not", "Between", "In", "Is", "Like", "Escape", *_COMPARISONS, *_NEGATED}
)
# The attributes a node of the syntax tree may have. Any other changes its meaning in an unknown way.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([*_COMPARISONS, *_NEGATED, "And", "Or", "Is", "Escape", "Dot"], _BINARY),
    **dict.fromkeys(["Paren", "Not", "Boolean", "HexString", "RawString"], ("this",)),
    **dict.fromkeys(["Cast", "TryCast"], ("this", "to")),
    **{name: arguments for name, (_, arguments) in _SPECIAL.items()},
    "DPipe": ("this", "expression", "safe"),
    "Div": ("this", "expression", "typed", "safe"),
    "Like": ("this", "expression", "negate"),
    "Between": ("this", "low", "high"),
    "In": ("this", "expressions"),
    "Null": (),
    "Anonymous": ("this", "expressions"),
    "Concat": ("expressions",),
    "Case": ("this", "ifs", "default"),
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
    simple = read_plain(text)
    if simple is not None:
        # What is wrong with a filter, and what is not understood, sqlglot says in the words of the text.
        with suppress(PredicateError):
            node = Builder(schema, time_zone).predicate(simple)
            if not any(isinstance(part, Unknown) for part in walk(node)):
                return node
    return of_syntax(_syntax(text), schema, time_zone)


def of_syntax(tree: Any, schema: pa.Schema, time_zone: str) -> Node:
    """Return the tree of a condition that sqlglot parsed as SQL of Spark."""
    return _TreeBuilder(schema, time_zone).predicate(tree)


@lru_cache(maxsize=1)
def _dialect() -> Any:
    return sqlglot.Dialect.get_or_raise("spark")


def _syntax(text: str) -> Any:
    try:
        parser = _dialect().parser()
        parser.FUNCTIONS = {}  # a function keeps the name and the arguments it was written with
        trees = parser.parse(_joined(_dialect().tokenize(text), text), text)
    except sqlglot.ParseError as bad:
        first = bad.errors[0] if bad.errors else {}
        at = f" at line {first.get('line')}, column {first.get('col')}" if first else ""
        near = f" near {first.get('highlight')!r}" if first.get("highlight") else ""
        raise PredicateError(f"the filter {text!r} is not valid SQL{at}{near}", part=text) from bad
    except sqlglot.errors.SqlglotError as bad:
        raise PredicateError(f"the filter {text!r} is not valid SQL: {bad}", part=text) from bad
    if len(trees) != 1 or trees[0] is None:
        raise PredicateError(f"the filter {text!r} is not one condition", part=text)
    return trees[0]


def _joined(tokens: list[Any], text: str) -> list[Any]:
    """Join strings that touch: in Spark a doubled quote is a quote."""
    joined: list[Any] = []
    for token in tokens:
        before: Any = joined[-1] if joined else token
        touching = before.end + 1 == token.start and text[before.end] == text[token.start]
        if touching and before.token_type == token.token_type == sqlglot.TokenType.STRING:
            before.text += text[token.start] + token.text
            before.end = token.end
        else:
            joined.append(token)
    return joined


def _kind(item: Any) -> str:
    """Return the name of a node's class; Unsupported when it carries more than is understood."""
    name = type(item).__name__
    supported = _ARGUMENTS.get(name, ())
    if any(value and key not in supported for key, value in item.args.items()):
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
            low, high = item.args["low"], item.args["high"]
            return conditions.between(self._value(item.this), self._value(low), self._value(high), self._zone)
        if name == "In":
            if not item.expressions:
                raise Unsupported
            listed = [self._value(value) for value in item.expressions]
            return conditions.in_list(self._value(item.this), listed, self._zone)
        if name == "Is":
            return self._is(item)
        if name == "Like":
            return self._like(item, Literal("\\", pa.string()))
        if name == "Escape" and _kind(item.this) == "Like":
            return self._like(item.this, self._value(item.expression))
        return values.condition(self._value(item))

    def _like(self, item: Any, escape: Value) -> Node:
        operands = [self._value(item.this), self._value(item.expression), escape]
        matches = values.condition(functions.call("like", operands, self._zone))
        return Not(matches) if item.args.get("negate") else matches

    def _comparison(self, op: str, left: Any, right: Any) -> Node:
        return conditions.compare(op, self._value(left), self._value(right), self._zone)

    def _is(self, item: Any) -> Node:
        kind = _kind(item.expression)
        if kind == "Null":
            return conditions.is_null(self._value(item.this))
        if kind == "Boolean":
            return self._comparison("<=>", item.this, item.expression)
        raise Unsupported

    def _value(self, item: Any) -> Value:
        name = _kind(item)
        if name == "Paren":
            return self._value(item.this)
        if name in _CONDITIONS:
            return values.as_value(self._predicate(item))
        if name in {"Column", "Dot"}:
            return self._column(item)
        if name in {"Cast", "TryCast"}:
            return self._cast(item, self._value(item.this))
        if name == "Case":
            return self._case(item)
        if name == "Neg":
            return self._negated(item.this)
        if name in _SPECIAL:
            function, arguments = _SPECIAL[name]
            parts = [item.args.get(argument) for argument in arguments]
            return self._call(function, [part for part in parts if part is not None])
        if name == "Anonymous":
            function = str(item.this).lower()
            if function in CALLS:
                return self._search(function, item.expressions)
            return self._call(function, item.expressions)
        return self._literal(name, item)

    def _call(self, name: str, arguments: list[Any]) -> Value:
        return functions.call(name, [self._value(argument) for argument in arguments], self._zone)

    def _search(self, name: str, arguments: list[Any]) -> Value:
        """`search(a, b, 'text', mode => 'word')`: the mode has a name, and stands last."""
        named = [one for one in arguments if type(one).__name__ == "Kwarg"]
        if any(one.this.name.lower() != "mode" for one in named) or len(named) > 1:
            raise PredicateError(f"{name} has one named argument, mode => 'word'", part=name)
        plain = [self._value(one) for one in arguments if one not in named]
        return search_function.search(name, plain, self._value(named[0].expression) if named else None)

    def _case(self, item: Any) -> Value:
        subject = item.args.get("this")
        tests: list[tuple[Node, Value]] = []
        for branch in item.args["ifs"]:
            test = (
                self._predicate(branch.this)
                if subject is None
                else self._comparison("=", subject, branch.this)
            )
            tests.append((test, self._value(branch.args["true"])))
        default = item.args.get("default")
        otherwise = Literal(None, pa.string()) if default is None else self._value(default)
        return functions.case(tests, otherwise, self._zone)

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
        is_padded_or_collated = text.startswith(("char", "varchar")) or "collate" in text
        kind = None if is_padded_or_collated else type_from_sql(text)
        if kind is None:
            raise Unsupported
        return kind

    def _literal(self, name: str, item: Any) -> Literal:
        if name == "Null":
            return Literal(None, pa.string())
        if name == "Boolean":
            return Literal(bool(item.this), pa.bool_())
        if name == "RawString":
            return Literal(item.this, pa.string())
        if name == "Concat" and all(_kind(piece) == "Literal" for piece in item.expressions):
            return Literal("".join(piece.this for piece in item.expressions), pa.string())
        if name == "HexString":
            digits = item.this
            return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), pa.binary())
        if name == "Literal":
            return Literal(item.this, pa.string()) if item.is_string else _number(item.this)
        raise Unsupported

    def _negated(self, item: Any) -> Value:
        """Read `-128Y`, whose digits alone would not fit its type, as one literal."""
        suffixed = _kind(item) == "TryCast" and _kind(item.this) == "Literal"
        if suffixed and not item.this.is_string:
            return self._cast(item, _negative(_number(item.this.this)))
        value = self._value(item)
        if isinstance(value, Literal) and value.value is not None:
            return _negative(value)
        return functions.call("negative", [value], self._zone)

    def _cast(self, item: Any, inner: Value) -> Value:
        kind = self._type(item)
        if not isinstance(inner, Literal):
            return values.cast(inner, kind, self._zone)
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
