"""Conditions of Spark's SQL: the searches of a WHERE text apart from the rest, and filters for pruning."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import CommandError, PredicateError
from indextables.lazy import exp, sqlglot
from indextables.predicate.build.from_sql import of_syntax
from indextables.predicate.tree import Node, all_of
from indextables.sql.select.mentions import ALL_COLUMNS, NO_QUERY, edited, mark
from indextables.sql.select.rewrite import call_number
from indextables.sql.select.scopes import conjuncts


@dataclass(frozen=True, slots=True)
class SearchedCondition:
    """A condition in which some conjuncts were searches."""

    where: str
    """The condition with `true` in place of every search."""
    searches: tuple[tuple[str | None, str], ...]
    """Column and query of each; no column means all indexed ones."""


def searched_condition(where: str) -> SearchedCondition:
    """Take the searches out of a condition; all of them have to hold, so they stand beside AND only."""
    marked = mark(where)
    if not marked.searches:
        return SearchedCondition(where, ())
    try:
        parsed: Any = sqlglot.parse_one(f"SELECT 1 WHERE {marked.parsable}", read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise CommandError(f"a condition with indexquery could not be read: {error}") from error
    searches = {}
    for part in conjuncts(parsed.args["where"]):
        number = call_number(part) if isinstance(part, exp.Anonymous) else None
        if number is not None:
            searches[number] = _search(part)
    if len(searches) != len(marked.searches):
        raise CommandError(
            "here indexquery can be combined with other conditions by AND only; "
            "for OR, run one statement for each alternative"
        )
    rest = edited(where, [(item.start, item.end, "true") for item in marked.searches])
    return SearchedCondition(rest, tuple(searches[number] for number in sorted(searches)))


def pruning_filter(conditions: Iterable[Any], schema: pa.Schema, zone: str) -> Node | None:
    """A filter by which splits can be left out where Spark evaluates all of the conditions by itself.

    What the filter does not understand is left out of it: so are texts that touch, which Spark joins in its
    own way.
    """
    nodes: list[Node] = []
    for condition in conditions:
        if condition.find(exp.Concat) is not None:
            continue
        bare = condition.copy()
        for column in bare.find_all(exp.Column):
            column.set("table", None)
        with suppress(PredicateError):
            nodes.append(of_syntax(bare, schema, zone))
    return all_of(nodes) if nodes else None


def _search(call: Any) -> tuple[str | None, str]:
    column, query = (*call.expressions, None, None)[:2]
    if not isinstance(query, exp.Literal) or not query.is_string or not isinstance(column, exp.Column):
        raise CommandError(NO_QUERY)
    return None if column.name.lower() == ALL_COLUMNS else column.name, str(query.this)
