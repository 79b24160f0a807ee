"""Converts one of our filters to a condition on a DataFrame."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.errors import PredicateError
from indextables.model.calendar import format_timestamp
from indextables.model.types import type_to_sql
from indextables.predicate import tree
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.names import quoted_name


def filtered(frame: Any, where: Any, schema: Any, zone: str) -> Any:
    """The rows for which a filter is true: SQL text as Spark parses it, or a `col(...)` tree."""
    if where is None:
        return frame
    if isinstance(where, str) or is_column(where):
        return frame.filter(where)
    node = as_node(where, schema, zone)
    return frame if node is None else frame.filter(condition(node))


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
    raise PredicateError(f"this part of the filter is not understood: {node}", part=str(node))


def _comparison(node: tree.Compare) -> Column:
    left, right = _operand(node.column), literal(node.literal.value, node.literal.type)
    match node.op:
        case "=":
            return left == right
        case "<=>":
            return left.eqNullSafe(right)
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right


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
