"""The searches of a WHERE text, apart from the rest of its condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indextables.errors import CommandError
from indextables.sql.mentions import ALL_COLUMNS, NO_QUERY, edited, mark
from indextables.sql.rewrite import call_number


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
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed: Any = sqlglot.parse_one(f"SELECT 1 WHERE {marked.text}", read="spark")
    except SqlglotError as error:
        raise CommandError(f"a condition with indexquery could not be read: {error}") from error
    condition = parsed.args["where"].this.unnest()
    parts = [
        part.unnest() for part in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    ]
    found = {}
    for part in parts:
        number = call_number(part) if isinstance(part, exp.Anonymous) else None
        if number is not None:
            found[number] = _search(part)
    if len(found) != len(marked.searches):
        raise CommandError(
            "here indexquery can be combined with other conditions by AND only; "
            "for OR, run one statement for each alternative"
        )
    rest = edited(marked.text, [(item.start, item.end, "true") for item in marked.searches])
    return SearchedCondition(rest, tuple(found[number] for number in sorted(found)))


def _search(call: Any) -> tuple[str | None, str]:
    from sqlglot import exp

    column, query = (*call.expressions, None, None)[:2]
    if not isinstance(query, exp.Literal) or not query.is_string or not isinstance(column, exp.Column):
        raise CommandError(NO_QUERY)
    return None if column.name.lower() == ALL_COLUMNS else column.name, str(query.this)
