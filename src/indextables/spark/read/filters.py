"""Converts one of our filters to a condition on a DataFrame."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.errors import PredicateError
from indextables.model.calendar import format_timestamp
from indextables.model.names import quoted_name
from indextables.model.types import type_to_sql
from indextables.predicate import tree
from indextables.predicate.build.from_sql import as_node
from indextables.spark.options import session_zone


def filtered(frame: Any, where: Any, schema: Any, zone: str) -> Any:
    """The rows for which a filter is true: SQL text, a `col(...)` tree or a Column of Spark.

    Times without an offset in text or tree are those of `zone`. Spark parses text itself, with all its
    functions, but in the zone of its session: for another zone the text is parsed here.
    """
    if where is None:
        return frame
    here = session_zone(frame.sparkSession)
    if is_column(where) or (isinstance(where, str) and zone == here):
        return frame.filter(where)
    node = as_node(where, schema, zone)
    if node is None:
        return frame
    if zone != here:
        _require_no_local_times(node, zone, here)
    return frame.filter(condition(node))


def _require_no_local_times(node: tree.Node, zone: str, here: str) -> None:
    """Refuse what Spark would evaluate in the zone of its session, where another one was asked for."""
    for part in tree.walk(node):
        operand = getattr(part, "column", None)
        calls = tree.values_of(part.value) if isinstance(part, tree.Holds) else ()
        if (
            isinstance(part, tree.Unknown)
            or (isinstance(operand, tree.Cast) and _has_zone(operand.type) != _has_zone(operand.column.type))
            or any(isinstance(call, tree.Call) and call.zone is not None for call in calls)
        ):
            raise PredicateError(
                f"Spark evaluates {part} in the time zone of its session, {here}, but the option timeZone is "
                f"{zone}. Set spark.sql.session.timeZone to {zone}, or compare columns with values only.",
                part=str(part),
            )


def _has_zone(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def is_column(where: Any) -> bool:
    """Whether a filter is a Column of Spark, of either kind of session."""
    return type(where).__module__.startswith("pyspark.")


def condition(node: tree.Node) -> Column:
    """The same condition as a Spark column."""
    match node:
        case tree.And(children):
            return reduce(and_, [condition(child) for child in children])
        case tree.Or(children):
            return reduce(or_, [condition(child) for child in children])
        case tree.Not(child):
            return ~condition(child)
        case tree.IsTrue(child):
            return F.coalesce(condition(child), F.lit(False))
        case tree.IsUndecided(child):
            return condition(child).isNull()
        case tree.Constant(value):
            return F.lit(value).cast("boolean")
        case tree.IsNull(column):
            return _operand(column).isNull()
        case tree.Compare():
            return _comparison(node)
        case tree.In():
            values: list[Any] = [literal(item.value, item.type) for item in node.values]
            return _operand(node.column).isin(*values, *([F.lit(None)] if node.has_null else []))
        case tree.Match(kind, column, text):
            test = {"startswith": F.startswith, "endswith": F.endswith, "contains": F.contains}[kind]
            return test(_operand(column), F.lit(text))
        case tree.Like():
            return _like(node)
        case tree.RLike(column, pattern):
            return F.rlike(_operand(column), F.lit(pattern))
        case tree.Holds(value):
            return _value(value)
    raise PredicateError(f"this part of the filter is not understood: {node}", part=str(node))


_OPERATORS: Mapping[str, Callable[[Any, Any], Column]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda left, right: left.eqNullSafe(right),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def _comparison(node: tree.Compare) -> Column:
    return _OPERATORS[node.op](_operand(node.column), literal(node.literal.value, node.literal.type))


def _value(value: tree.Value) -> Column:
    """A computed value; types are those of the tree, so that Spark adds no cast of its own."""
    match value:
        case tree.Column():
            return _operand(value)
        case tree.Literal(constant, kind):
            return literal(constant, kind).cast(type_to_sql(kind))
        case tree.Call():
            args = [_value(arg) for arg in value.args]
            if value.name in _OPERATORS:
                return _OPERATORS[value.name](*args)
            if value.name == "cast":
                return args[0].cast(type_to_sql(value.type))
            if value.name == "in":
                return args[0].isin(*args[1:])
            if value.name == "if":
                return F.when(args[0], args[1]).otherwise(args[2])
            return F.call_function(value.name, *args)
    return condition(value)


def _like(node: tree.Like) -> Column:
    return F.like(_operand(node.column), F.lit(node.pattern), F.lit(node.escape))


def _operand(operand: tree.Operand) -> Column:
    if isinstance(operand, tree.Cast):
        return _operand(operand.column).cast(type_to_sql(operand.type))
    return F.col(".".join(quoted_name(part) for part in operand.path))


def literal(value: Any, kind: pa.DataType) -> Column:
    """A value in the tree's internal form as a Spark literal of its type."""
    if pa.types.is_date(kind):
        return F.date_from_unix_date(F.lit(value))
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return F.timestamp_micros(F.lit(value).cast("long"))
        return F.expr(f"TIMESTAMP_NTZ '{format_timestamp(value)}'")
    if pa.types.is_decimal(kind):
        return F.lit(value if isinstance(value, Decimal) else Decimal(value))
    return F.lit(bytearray(value)) if isinstance(value, bytes) else F.lit(value)
