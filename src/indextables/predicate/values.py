"""Values that are computed: their types, the casts between them, and values as conditions.

Types follow Spark's ANSI rules. What is not computed exactly as Spark does raises
`Unsupported`; what Spark refuses is a PredicateError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa
import pyarrow.types as is_a

from indextables.errors import PredicateError
from indextables.lazy import later
from indextables.model.types import TIMESTAMP, type_to_sql
from indextables.predicate.coerce import Unsupported, common_type
from indextables.predicate.literals import cast_value
from indextables.predicate.tree import (
    NULL,
    Call,
    Column,
    Compare,
    Constant,
    Holds,
    Literal,
    Node,
    Unknown,
    Value,
    type_of,
    walk,
)

if TYPE_CHECKING:
    from indextables.predicate.evaluate import values
else:
    values = later("indextables.predicate.evaluate.values")

WIDTHS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
MOST_DIGITS = 38
Args = Sequence[Value]


def require_plain(value: Value) -> None:
    """Nested types, collations and conditions that are not understood are not computed with."""
    if is_a.is_nested(type_of(value)) or (isinstance(value, Column) and value.order == "collated"):
        raise Unsupported
    if _is_test(value) and any(isinstance(part, Unknown) for part in walk(value)):
        raise Unsupported


def _is_test(value: Value) -> TypeGuard[Node]:
    return not isinstance(value, (Column, Literal, Call))


def condition(value: Value) -> Node:
    """Return a boolean value as a condition."""
    if isinstance(value, Call):
        if not is_a.is_boolean(value.type):
            raise _not_a_condition(value)
        return Holds(value)
    if isinstance(value, Literal):
        if value.value is None:
            return NULL
        if not isinstance(value.value, bool):
            raise _not_a_condition(value)
        return Constant(value=value.value)
    if isinstance(value, Column):
        if not is_a.is_boolean(value.type):
            raise _not_a_condition(value)
        return Compare("=", value, Literal(True, pa.bool_()))
    return value


def _not_a_condition(value: Value) -> PredicateError:
    return PredicateError(f"{value} is {type_to_sql(type_of(value))}, not a condition", part=str(value))


def as_value(node: Node) -> Value:
    """Return a condition as a boolean value."""
    if isinstance(node, Holds):
        return node.value
    return Literal(node.value, pa.bool_()) if isinstance(node, Constant) else node


def cast(value: Value, kind: pa.DataType, zone: str) -> Value:
    """Return a value as another type, by an explicit CAST or because a function needs it."""
    source = type_of(value)
    if source == kind:
        return value
    if isinstance(value, Literal):
        if value.value is None:
            return Literal(None, kind)
        _require_cast(source, kind)
        try:
            return Literal(cast_value(value.value, source, kind, zone), kind)
        except ValueError as bad:
            raise PredicateError(
                f"{value} cannot be read as {type_to_sql(kind)}: {bad}", part=str(value)
            ) from bad
    require_plain(value)
    _require_cast(source, kind)
    return call_of("cast", [value], kind, zone if _is_local(source, kind) else None)


def _require_cast(source: pa.DataType, target: pa.DataType) -> None:
    """Refuse a cast that is not computed here exactly as Spark does."""
    is_number = is_a.is_integer(source) or is_a.is_floating(source) or is_a.is_decimal(source)
    to_number = is_a.is_integer(target) or is_a.is_floating(target) or is_a.is_decimal(target)
    is_time = is_a.is_date(source) or is_a.is_timestamp(source)
    if is_a.is_string(source):
        supported = not is_a.is_nested(target)
    elif is_a.is_boolean(source):
        supported = to_number or is_a.is_string(target)
    elif is_number and is_a.is_float32(target):
        # One rounding: a long or a decimal would be rounded to double first.
        supported = is_a.is_float64(source) or (is_a.is_integer(source) and source != pa.int64())
    elif is_number:
        # Java writes doubles in its own way, which differs between its versions.
        supported = (
            to_number or is_a.is_boolean(target) or (is_a.is_string(target) and not is_a.is_floating(source))
        )
    else:
        supported = is_time and (is_a.is_date(target) or is_a.is_timestamp(target) or is_a.is_string(target))
    if not supported:
        raise Unsupported


def _is_local(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast goes between an instant and something that has no zone."""
    return bool((source == TIMESTAMP) != (target == TIMESTAMP))


def is_void(value: Value) -> bool:
    """Whether a value is NULL."""
    return isinstance(value, Literal) and value.value is None


def common(values: Args, part: str) -> pa.DataType:
    """The type that is common to values; an untyped NULL has none of its own."""
    kinds = [type_of(value) for value in values if not is_void(value)] or [type_of(values[0])]
    shared: pa.DataType | None = kinds[0]
    for kind in kinds[1:]:
        shared = None if shared is None else common_type(shared, kind)
    if shared is None:
        names = ", ".join(dict.fromkeys(type_to_sql(kind) for kind in kinds))
        raise PredicateError(f"{part}: {names} have no type in common", part=part)
    if is_a.is_decimal(shared):
        if any(is_a.is_string(kind) for kind in kinds):
            raise Unsupported  # a text is read as a number of its own precision
        shapes = [shape(kind) for kind in kinds]
        if max(whole - scale for whole, scale in shapes) + max(scale for _, scale in shapes) > MOST_DIGITS:
            raise Unsupported
    return shared


def call_of(name: str, args: Args, kind: pa.DataType, zone: str | None = None) -> Value:
    """A call; if it depends on no column and does not fail, its value."""
    call = Call(name, tuple(args), kind, zone)
    if all(isinstance(arg, Literal) for arg in args):
        return values.constant_of(call)
    return call


def shape(kind: pa.DataType) -> tuple[int, int]:
    """Return precision and scale of the decimal that holds a number of this type."""
    return (kind.precision, kind.scale) if is_a.is_decimal(kind) else (WIDTHS[kind], 0)
