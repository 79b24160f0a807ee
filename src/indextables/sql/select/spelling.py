"""Searches in a text that Spark is going to parse, spelled as SQL: calls of functions that the session knows.

`message indexquery 'words'` becomes `indexquery(message, 'words')`, a search of all
columns `indexqueryall(struct(*), 'words')`, and `_score`, where it belongs to a
search, `indexscore(message)`. Every other character stays as it is. What the calls
mean is decided later, in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from indextables.errors import CommandError
from indextables.lazy import exp
from indextables.sql.select.mentions import (
    ALL_COLUMNS,
    edited,
    words_of,
    written_highlights,
    written_searches,
)
from indextables.sql.select.scopes import NO_SEARCH, SCORE, scopes_of

NamesOf = Callable[[Sequence[str]], Collection[str]]
"""The columns of a table by the parts of its name; none for a name that is not known."""

_SEARCH, _ALL, _SCORE, _HIGHLIGHT = "indexquery", "indexqueryall", "indexscore", "indexhighlight"
_QUALIFIED = re.compile(rf"(?:(.*)\.)?\s*`?{ALL_COLUMNS}`?", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(
    r"(?:(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN(?:\s+(?:EXTENDED|CODEGEN|COST|FORMATTED|LOGICAL))?\s)?",
    re.IGNORECASE | re.DOTALL,
)


def spelled(text: str, columns_of: NamesOf) -> str:
    """The statement, or the expression, for Spark's parser."""
    # The tokenizer takes what follows EXPLAIN for one piece.
    start = _EXPLAIN.match(text).end()  # type: ignore[union-attr]
    return text[:start] + _spelled(text[start:], columns_of)


def _spelled(text: str, columns_of: NamesOf) -> str:
    words = words_of(text)
    searches = written_searches(text, words)
    if not searches:
        return text
    edits = [
        (one.start, one.end, ("NOT " if one.negated else "") + _called(one.column, one.query))
        for one in searches
        if one.column is not None
    ]
    edits += [(words[at].start, words[at].end, _HIGHLIGHT) for at in written_highlights(words)]
    called = edited(text, edits)
    return _with_scores(called, columns_of) if SCORE in text.lower() else called


def _called(column: str | None, query: str | None) -> str:
    if query is None:
        return f"{_SEARCH}({column})"
    every = _QUALIFIED.fullmatch(column or "")
    if every is None:
        return f"{_SEARCH}({column}, {query})"
    return f"{_ALL}(struct({f'{every[1]}.*' if every[1] else '*'}), {query})"


def _with_scores(text: str, columns_of: NamesOf) -> str:
    """The text with every `_score` of a search as a call."""
    edits: list[tuple[int, int, str]] = []
    for scope in scopes_of(text):
        scores = [column for column in scope.find_all(exp.Column) if column.name.lower() == SCORE]
        if not scores or _has_own(scope, columns_of):
            continue
        searches = [call for call in scope.find_all(exp.Anonymous) if call.name.lower() in (_SEARCH, _ALL)]
        if not searches:
            continue
        if len({call.sql("spark") for call in searches}) > 1:
            raise CommandError(f"{NO_SEARCH}; this statement searches the same table more than once")
        about = _text(text, searches[0].expressions[0])
        for column in scores:
            first, last = column.parts[0].meta["start"], column.parts[-1].meta["end"] + 1
            shown = f" AS {SCORE}" if _is_shown(column) else ""
            edits.append((first, last, f"{_SCORE}({about}){shown}"))
    return edited(text, edits)


def _has_own(scope: Any, columns_of: NamesOf) -> bool:
    """Whether something that a query reads has a column of that name itself."""
    for _, source in scope.selected_sources.values():
        if isinstance(source, exp.Table):
            names: Collection[str] = columns_of([part.name for part in source.parts])
        else:
            names = source.expression.named_selects
        if any(name.lower() == SCORE for name in names):
            return True
    return False


def _is_shown(column: Any) -> bool:
    """Whether it is a whole item of a SELECT list, which keeps its name."""
    return isinstance(column.parent, exp.Select) and column.arg_key == "expressions"


def _text(text: str, column: Any) -> str:
    """A column, or the struct of all of them, as it is written."""
    if not isinstance(column, exp.Column):
        return str(column.sql("spark"))
    return text[column.parts[0].meta["start"] : column.parts[-1].meta["end"] + 1]
