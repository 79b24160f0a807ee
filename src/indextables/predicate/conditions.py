"""Comparisons, IN, BETWEEN and IS NULL of any values.

A test of one column against literals becomes a node that statistics can answer (`coerce`);
any other becomes `Holds`, which is evaluated for every row.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as is_a

from indextables.errors import PredicateError
from indextables.predicate import coerce
from indextables.predicate.coerce import Unsupported
from indextables.predicate.tree import (
    FLIPPED,
    NULL,
    Call,
    Column,
    Constant,
    Holds,
    IsNull,
    IsTrue,
    IsUndecided,
    Literal,
    Match,
    Node,
    Not,
    Operand,
    Value,
    all_of,
    any_of,
    type_of,
)
from indextables.predicate.values import (
    Args,
    as_value,
    call_of,
    cast,
    common,
    condition,
    is_void,
    require_plain,
)

_NULL_AS_ARGUMENTS = frozenset(
    {"=", "<", "<=", ">", ">=", "lower", "upper", "length", "trim", "ltrim", "rtrim", "substring", "left",
     "right", "replace", "concat", "startswith", "endswith", "contains", "instr", "like", "rlike", "year",
     "month", "day", "hour", "minute", "second"}
)  # fmt: skip
"""These never fail, and are null exactly where one of their arguments is."""


def compare(op: str, left: Value, right: Value, zone: str) -> Node:
    """Return `left op right`; a comparison of a column with a literal is one that statistics can answer."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        op, left, right = FLIPPED[op], right, left
    if isinstance(right, Literal):
        if not isinstance(left, (Column, Literal)) and op in {"=", "<=>"} and is_a.is_boolean(type_of(left)):
            return _condition_is(op, condition(left), right)
        try:
            return coerce.compare(op, _operand(left), right, zone)
        except Unsupported:
            pass
    require_plain(left)
    require_plain(right)
    if is_void(left) or is_void(right):
        return is_null(right if is_void(left) else left) if op == "<=>" else NULL
    kind = common([left, right], f"{left} {op} {right}")
    if isinstance(left, Column) and isinstance(right, Column) and "char" in left.order + right.order:
        raise Unsupported  # padded to the longer of the two
    exactly = condition(call_of(op, [cast(left, kind, zone), cast(right, kind, zone)], pa.bool_()))
    return _of_position(op, left, right, exactly)


def _of_position(op: str, left: Value, right: Value, exactly: Node) -> Node:
    """Compare the place of one text in another: mostly that asks whether it is there at all."""
    if not isinstance(left, Call) or left.name != "instr" or not isinstance(right, Literal):
        return exactly
    text, part = left.args
    is_plain = isinstance(text, Column) and isinstance(part, Literal) and part.value is not None
    if not is_plain or not is_a.is_integer(right.type):
        return exactly
    assert isinstance(text, Column)
    assert isinstance(part, Literal)
    contains = Match("contains", text, part.value)
    try:
        return coerce.position(op, contains, right.value)
    except Unsupported:
        is_there = op in {"=", "<=>", ">", ">="} and right.value > 0
        return all_of([contains, exactly]) if is_there else exactly


def _condition_is(op: str, left: Node, right: Literal) -> Node:
    """Compare a condition with TRUE, FALSE or NULL."""
    if right.value is None:
        return NULL if op == "=" else is_null(as_value(left))
    if not isinstance(right.value, bool):
        raise PredicateError(f"{left} is a condition and cannot be compared with {right}", part=str(right))
    meant = left if right.value else Not(left)
    return meant if op == "=" else IsTrue(meant)


def _operand(value: Value) -> Operand:
    """A column, or a cast of one, that comparisons with literals are rewritten for."""
    if isinstance(value, Column):
        return value
    if isinstance(value, Call) and value.name == "cast":
        return coerce.cast_operand(_operand(value.args[0]), value.type, value.zone or "UTC")
    raise Unsupported


def in_list(value: Value, values: Args, zone: str) -> Node:
    """Return `value IN (values)`; all are compared in the one type that is common to them."""
    literals = [item for item in values if isinstance(item, Literal)]
    if len(literals) == len(values):
        try:
            return coerce.in_list(_operand(value), literals, zone)
        except Unsupported:
            pass
    everything = [value, *values]
    for item in everything:
        require_plain(item)
    present = [item for item in values if not is_void(item)]
    if is_void(value) or not present:
        return NULL
    kind = common([value, *present], f"{value} IN (...)")
    seen = cast(value, kind, zone)
    others = [cast(item, kind, zone) for item in present]
    if all(isinstance(item, Literal) for item in others):
        parts = [condition(call_of("in", [seen, *others], pa.bool_()))]
    else:
        parts = [compare("=", seen, item, zone) for item in others]
    return any_of([*parts, NULL] if len(present) < len(values) else parts)


def is_null(value: Value) -> Node:
    """Return `value IS NULL`: a test of columns, where that is the same."""
    if isinstance(value, Literal):
        return Constant(value=value.value is None)
    try:
        return coerce.is_null(_operand(value))
    except Unsupported:
        pass
    if isinstance(value, Column):
        return IsNull(value)
    if isinstance(value, Call):
        itself = Holds(Call("isnull", (value,), pa.bool_()))
        parts = any_of([is_null(arg) for arg in value.args])
        if value.name in _NULL_AS_ARGUMENTS:
            return parts
        if value.name in {"+", "-", "*"} and not is_a.is_decimal(value.type):
            return all_of([itself, parts])  # the first fails where it overflows, the second prunes
        return itself
    return is_null(value.value) if isinstance(value, Holds) else IsUndecided(value)


def between(value: Value, low: Value, high: Value, zone: str) -> Node:
    """Return `value BETWEEN low AND high`."""
    return all_of([compare(">=", value, low, zone), compare("<=", value, high, zone)])
