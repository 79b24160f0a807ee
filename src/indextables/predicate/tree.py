"""The predicate tree: what a filter says, with every name resolved and every literal typed.

A node is true, false or null for a row, as in Spark, and a row matches if the whole tree
is true. `Compare`, `In` and the other tests of a column against values are what statistics
can answer; `Holds` is any other condition, over computed values (`id % 100 = 7`, `a < b`):
it is evaluated for every row, and pruning keeps every file for it.

Dates in literals are days, timestamps microseconds, decimals `Decimal`. Comparisons have
the column on their left; the type they compare in was decided when the tree was built, and
appears as a `Cast` if it is not the column's own. `Unknown` represents what the builder did
not understand: pruning keeps every file for it, an exact row filter refuses it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from msgspec import Struct

from indextables.model.calendar import format_date, format_timestamp
from indextables.model.names import quoted_text
from indextables.model.types import type_to_sql
from indextables.predicate.expr import Expr, col

__all__ = [
    "FALSE",
    "NULL",
    "TRUE",
    "And",
    "Call",
    "Cast",
    "Column",
    "Compare",
    "Constant",
    "Expr",
    "Holds",
    "In",
    "IsNull",
    "IsTrue",
    "IsUndecided",
    "Like",
    "Literal",
    "Match",
    "Node",
    "Not",
    "Operand",
    "Or",
    "RLike",
    "Unknown",
    "Value",
    "all_of",
    "any_of",
    "col",
    "columns_of",
    "type_of",
    "values_of",
    "walk",
    "with_columns",
]

FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
INFIX = {op: op for op in (*FLIPPED, "+", "-", "*", "/", "%", "div")} | {
    "concat": "||",
    "like": "LIKE",
    "rlike": "RLIKE",
}


class Column(Struct, frozen=True):
    """A column or a field inside structs, as the schema spells it; `order` is how its strings compare."""

    path: tuple[str, ...]
    type: pa.DataType
    order: str = "binary"

    @property
    def name(self) -> str:
        """The dotted name, as statistics use it."""
        return ".".join(self.path)

    def is_one_of(self, names: Container[str]) -> bool:
        """Whether it is one of these top-level columns; a field in a struct never is, whatever its name."""
        return len(self.path) == 1 and self.path[0] in names

    def __str__(self) -> str:
        return self.name


class Cast(Struct, frozen=True):
    """A column cast to another type; `zone` is the time zone for local times in the cast."""

    column: Column
    type: pa.DataType
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"CAST({self.column} AS {type_to_sql(self.type).upper()})"


Operand = Column | Cast


class Literal(Struct, frozen=True):
    """A value in its internal form, with its type; None is SQL's NULL."""

    value: Any
    type: pa.DataType

    def __str__(self) -> str:
        return _literal_text(self.value, self.type)


class Compare(Struct, frozen=True):
    """`column op literal` with op one of = <=> < <= > >=; the literal is never null."""

    op: str
    column: Operand
    literal: Literal

    def __str__(self) -> str:
        return f"{self.column} {self.op} {self.literal}"


class In(Struct, frozen=True):
    """`column IN (values)`; a NULL among the values is told apart, since it is never equal."""

    column: Operand
    values: tuple[Literal, ...]
    has_null: bool = False

    def __str__(self) -> str:
        shown = [str(value) for value in self.values[:8]] + (["NULL"] if self.has_null else [])
        more = f", ... {len(self.values) - 8} more" if len(self.values) > 8 else ""  # noqa: PLR2004 - readable
        return f"{self.column} IN ({', '.join(shown)}{more})"


class IsNull(Struct, frozen=True):
    """`column IS NULL`; never null itself."""

    column: Column

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


class Match(Struct, frozen=True):
    """A text test without wildcards; kind is `startswith`, `endswith` or `contains`."""

    kind: str
    column: Column
    text: str

    def __str__(self) -> str:
        return f"{self.kind}({self.column}, {_quote(self.text)})"


class Like(Struct, frozen=True):
    """`column LIKE pattern`, with `%` and `_` as wildcards."""

    column: Column
    pattern: str
    escape: str = "\\"

    def __str__(self) -> str:
        suffix = "" if self.escape == "\\" else f" ESCAPE {_quote(self.escape)}"
        return f"{self.column} LIKE {_quote(self.pattern)}{suffix}"


class RLike(Struct, frozen=True):
    """`column RLIKE pattern`: the pattern, a regular expression of Java's, is found somewhere."""

    column: Column
    pattern: str

    def __str__(self) -> str:
        return f"{self.column} RLIKE {_quote(self.pattern)}"


class And(Struct, frozen=True):
    """All children."""

    children: tuple[Node, ...]

    def __str__(self) -> str:
        return " AND ".join(_nested(child) for child in self.children)


class Or(Struct, frozen=True):
    """Any child."""

    children: tuple[Node, ...]

    def __str__(self) -> str:
        return " OR ".join(_nested(child) for child in self.children)


class Not(Struct, frozen=True):
    """The opposite; null stays null."""

    child: Node

    def __str__(self) -> str:
        return f"NOT {_nested(self.child)}"


class IsTrue(Struct, frozen=True):
    """`child IS TRUE`: false where the child is null."""

    child: Node

    def __str__(self) -> str:
        return f"{_nested(self.child)} IS TRUE"


class IsUndecided(Struct, frozen=True):
    """`child IS NULL` of a condition: true where the child is neither true nor false; never null itself."""

    child: Node

    def __str__(self) -> str:
        return f"({self.child}) IS NULL"


class Constant(Struct, frozen=True):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).upper()


class Call(Struct, frozen=True):
    """A value computed from others: an operator or a function, by Spark's name for it.

    The arguments have the types that the function takes: every cast Spark would add is a call of `cast`.
    `zone` is the time zone where the result depends on one.
    """

    name: str
    args: tuple[Value, ...]
    type: pa.DataType
    zone: str | None = None

    def __str__(self) -> str:
        shown = [f"({arg})" if _is_compound(arg) else str(arg) for arg in self.args]
        if self.name == "cast":
            return f"CAST({self.args[0]} AS {type_to_sql(self.type).upper()})"
        if self.name == "in":
            return f"{shown[0]} IN ({', '.join(shown[1:9])}{', ...' if len(shown) > 9 else ''})"  # noqa: PLR2004 - readable
        if self.name == "like" and shown[2] == _quote("\\"):
            shown = shown[:2]
        if self.name in INFIX and len(shown) == 2:  # noqa: PLR2004 - on both sides of the operator
            return f"{shown[0]} {INFIX[self.name]} {shown[1]}"
        return f"{self.name}({', '.join(map(str, self.args))})"


class Holds(Struct, frozen=True):
    """A condition over computed values; true, false or null as its value is."""

    value: Call

    def __str__(self) -> str:
        return str(self.value)


class Unknown(Struct, frozen=True):
    """A part that the builder did not understand, as text."""

    text: str

    def __str__(self) -> str:
        return self.text


Node = (
    Compare
    | In
    | IsNull
    | Match
    | Like
    | RLike
    | Holds
    | And
    | Or
    | Not
    | IsTrue
    | IsUndecided
    | Constant
    | Unknown
)
Value = Column | Literal | Call | Node
"""What a call takes; a condition is a boolean value."""

TRUE, FALSE, NULL = Constant(value=True), Constant(value=False), Constant(value=None)


def all_of(nodes: list[Node]) -> Node:
    """Return the conjunction of nodes; TRUE of none."""
    if not nodes:
        return TRUE
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def any_of(nodes: list[Node]) -> Node:
    """Return the disjunction of nodes; FALSE of none."""
    if not nodes:
        return FALSE
    return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    if isinstance(node, (And, Or)):
        for child in node.children:
            yield from walk(child)
    elif isinstance(node, (Not, IsTrue, IsUndecided)):
        yield from walk(node.child)
    elif isinstance(node, Holds):
        for value in values_of(node.value):
            if not isinstance(value, (Column, Literal, Call)):
                yield from walk(value)


def values_of(call: Call) -> Iterator[Value]:
    """Yield a call and the values it is computed from, down to columns, literals and conditions."""
    yield call
    for arg in call.args:
        if isinstance(arg, Call):
            yield from values_of(arg)
        else:
            yield arg


def columns_of(node: Node) -> frozenset[Column]:
    """Return every column in the tree."""
    columns: set[Column] = set()
    for item in walk(node):
        if isinstance(item, (Compare, In, IsNull, Match, Like, RLike)):
            operand = item.column
            columns.add(operand.column if isinstance(operand, Cast) else operand)
        elif isinstance(item, Holds):
            columns.update(value for value in values_of(item.value) if isinstance(value, Column))
    return frozenset(columns)


def with_columns(node: Node, names: Mapping[str, str]) -> Node:
    """Return the tree with other names for its columns."""
    renamed: Node = _with_columns(node, names)
    return renamed


def _with_columns(part: Any, names: Mapping[str, str]) -> Any:
    if isinstance(part, Column):
        return Column((names.get(part.path[0], part.path[0]), *part.path[1:]), part.type, part.order)
    if isinstance(part, tuple):
        return tuple(_with_columns(item, names) for item in part)
    if isinstance(part, Struct) and not isinstance(part, Literal):
        return type(part)(*(_with_columns(getattr(part, name), names) for name in part.__struct_fields__))
    return part


def type_of(value: Value) -> pa.DataType:
    """Return the type of a value; a condition is boolean."""
    return value.type if isinstance(value, (Column, Literal, Call)) else pa.bool_()


def _is_compound(value: Value) -> bool:
    if isinstance(value, (Column, Literal)):
        return False
    return not isinstance(value, Call) or value.name in INFIX


def _nested(node: Node) -> str:
    return f"({node})" if isinstance(node, (And, Or, Not)) else str(node)


def _quote(text: str) -> str:
    shown = text if len(text) <= 64 else text[:61] + "..."  # noqa: PLR2004 - readable in one line
    return quoted_text(shown)


def _literal_text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "NULL"
    if pa.types.is_timestamp(kind):
        return (
            f"TIMESTAMP '{format_timestamp(value)}Z'"
            if kind.tz
            else f"TIMESTAMP_NTZ '{format_timestamp(value)}'"
        )
    if pa.types.is_date(kind):
        return f"DATE '{format_date(value)}'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bytes):
        return f"X'{value[:32].hex().upper()}'"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
