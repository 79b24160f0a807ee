"""A filter as a condition of DuckDB's SQL, where both say the same of every row.

The filter's meaning is Spark's (`predicate.evaluate.rows`). What DuckDB might decide otherwise is
not written: casts, computed values, floating point numbers (NaN and bounds in statistics), collations
and `char(n)`, `_` in LIKE, regular expressions, fields of structs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from indextables.duck import database
from indextables.model.names import quoted_text
from indextables.predicate.coerce import like_pieces
from indextables.predicate.tree import (
    And,
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Match,
    Node,
    Not,
    Or,
)

MOST_VALUES = 1_000
"""Longer lists of IN are left to Arrow, whose look-up needs no text of every value."""
_OPERATORS = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "IS NOT DISTINCT FROM"}
_TESTS = {"contains": "contains", "startswith": "starts_with", "endswith": "suffix"}


class UnlikeError(Exception):
    """A part of a filter or a question that DuckDB may decide in another way."""


def condition_of(node: Node) -> str | None:
    """The condition for a filter on columns that are stored in the types it names; None if there is none."""
    try:
        return _of(node)
    except UnlikeError:
        return None


def _of(node: Node) -> str:
    write = _WRITERS.get(type(node))
    if write is None:
        raise UnlikeError(str(node))
    return f"({write(node)})"


def _compare(node: Compare) -> str:
    return f"{column_text(node.column)} {_OPERATORS[node.op]} {_literal(node.literal, node.column)}"


def _in(node: In) -> str:
    if not 0 < len(node.values) <= MOST_VALUES:
        raise UnlikeError(str(node))
    values = [_literal(literal, node.column) for literal in node.values] + ["NULL"] * node.has_null
    return f"{column_text(node.column)} IN ({', '.join(values)})"


def _match(node: Match) -> str:
    return f"{_TESTS[node.kind]}({column_text(node.column)}, {_text(node.text)})"


def _like(node: Like) -> str:
    pieces = like_pieces(node.pattern, node.escape)
    if "_" in pieces:
        raise UnlikeError(str(node))
    spelled = "".join(piece if piece == "%" else _escaped(piece[1:]) for piece in pieces)
    return f"{column_text(node.column)} LIKE {_text(spelled)} ESCAPE '!'"


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    Compare: _compare,
    In: _in,
    Match: _match,
    Like: _like,
    IsNull: lambda node: f"{column_text(node.column)} IS NULL",
    And: lambda node: " AND ".join(map(_of, node.children)),
    Or: lambda node: " OR ".join(map(_of, node.children)),
    Not: lambda node: f"NOT {_of(node.child)}",
}


def column_text(operand: Any) -> str:
    """The name of a top-level column whose values compare by their bytes; UnlikeError for any other."""
    if not isinstance(operand, Column) or len(operand.path) > 1 or operand.order != "binary":
        raise UnlikeError(str(operand))
    return database.quoted(operand.path[0])


def _literal(literal: Literal, operand: Any) -> str:
    kind, value = literal.type, literal.value
    if kind != operand.type:
        raise UnlikeError(str(literal))
    if is_a.is_boolean(kind):
        return str(bool(value))
    if is_a.is_string(kind):
        return _text(value)
    if is_a.is_date32(kind):
        return f"(DATE '1970-01-01' + CAST({int(value)} AS INTEGER))"
    if is_a.is_signed_integer(kind):
        return f"CAST({int(value)} AS BIGINT)"
    if is_a.is_timestamp(kind) and kind.unit == "us":
        moment = f"make_timestamp(CAST({int(value)} AS BIGINT))"
        return moment if kind.tz is None else f"({moment} AT TIME ZONE 'UTC')"
    raise UnlikeError(str(literal))


def _text(value: str) -> str:
    if "\0" in value:
        raise UnlikeError("SQL text cannot contain a zero byte")
    try:
        value.encode()
    except UnicodeEncodeError as bad:
        raise UnlikeError("SQL text cannot contain half of a surrogate pair") from bad
    return quoted_text(value)


def is_comparable(kind: pa.DataType) -> bool:
    """Whether DuckDB orders and groups values of a type as they are compared here."""
    return bool(
        is_a.is_boolean(kind)
        or is_a.is_signed_integer(kind)
        or is_a.is_string(kind)
        or is_a.is_date32(kind)
        or (is_a.is_timestamp(kind) and kind.unit == "us")
    )
