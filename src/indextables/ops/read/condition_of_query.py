"""The condition that a query implies about columns without a search field, for pruning by the log.

Every row that the query finds satisfies it, so splits in which it cannot be true are not opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.index.query.tree import (
    Between,
    Boolean,
    Boosted,
    Everything,
    Matching,
    Query,
    Words,
)
from indextables.index.query.tree import Node as QueryNode
from indextables.index.settings import FAST, STRING
from indextables.model.names import quoted_name
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.expr import Expr, col
from indextables.predicate.tree import Node, all_of, any_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def implied_condition(query: Query, schema: pa.Schema) -> Node | None:
    """A condition that is true for every row the query finds; None if it implies nothing."""
    return _implied(query.node, query, schema) if query.compared.fields else None


def _implied(node: QueryNode, query: Query, schema: pa.Schema) -> Node | None:
    if isinstance(node, Boosted):
        return _implied(node.node, query, schema)
    if isinstance(node, Boolean):
        if node.must:
            parts = [_implied(part, query, schema) for part in node.must]
            needed = [part for part in parts if part is not None]
            return all_of(needed) if needed else None
        parts = [_implied(part, query, schema) for part in node.should]
        alternatives = [part for part in parts if part is not None]
        return any_of(alternatives) if parts and len(alternatives) == len(parts) else None
    if isinstance(node, Everything) or (item := query.compared.get(node.column)) is None:
        return None
    kind = schema.field(node.column).type
    column = col(quoted_name(node.column))
    conditions = [column.is_not_null()]
    try:
        if item.kind == STRING and not pa.types.is_nested(kind):
            conditions += _of_text(column, node)
        elif item.kind == FAST and isinstance(node, Between):
            conditions += _of_bounds(column, node, kind)
        nodes = [as_node(condition, schema, "UTC") for condition in conditions]
    except (PredicateError, OverflowError):
        # A value that the column's type cannot hold: the rows decide.
        return None
    return all_of([one for one in nodes if one is not None])


def _of_text(column: Expr, node: Any) -> Iterator[Expr]:
    if isinstance(node, Words):
        yield column == node.words[0] if node.prefix is None else column.startswith(node.prefix)
    elif isinstance(node, Matching) and node.pattern.prefix:
        yield column.startswith(node.pattern.prefix)
    elif isinstance(node, Between):
        if node.lower is not None:
            yield column >= node.lower
        if node.upper is not None:
            yield column <= node.upper


def _of_bounds(column: Expr, node: Between, kind: pa.DataType) -> Iterator[Expr]:
    if pa.types.is_boolean(kind):
        if node.lower == node.upper:
            yield column == bool(node.lower)
        return
    if node.lower is not None:
        yield column >= _literal(node.lower, kind)
    if node.upper is not None:
        yield column <= _literal(node.upper, kind)


def _literal(value: Any, kind: pa.DataType) -> Any:
    """A value as conditions have it: a query holds days and microseconds."""
    if pa.types.is_date32(kind):
        return (_EPOCH + timedelta(days=value)).date()
    if pa.types.is_timestamp(kind):
        moment = _EPOCH + timedelta(microseconds=value)
        return moment if kind.tz else moment.replace(tzinfo=None)
    return value
