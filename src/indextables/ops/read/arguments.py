"""The arguments of a read, checked against the table before any split is opened: filter, columns, limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.errors import OptionError, SchemaError
from indextables.index.query.plain_text import PlainText
from indextables.lazy import later
from indextables.log.snapshot import Snapshot
from indextables.model.names import require_name

if TYPE_CHECKING:
    from indextables.predicate.evaluate import rows
    from indextables.predicate.tree import Node
else:
    rows = later("indextables.predicate.evaluate.rows")


def check_limit(limit: int | None) -> None:
    """Refuse a number of rows below zero."""
    if limit is not None and limit < 0:
        raise OptionError(f"limit is {limit}; give a number of rows, or leave it out")


def question_of(query: str | None, text: str | None) -> str | None:
    """The one of a query and a plain text that a call gives, or None."""
    if text is None:
        return query
    if query is not None:
        raise OptionError("give query or text: a text is searched by all of its words, and is no query")
    return PlainText(text)


def require_question(query: str | None, text: str | None) -> str:
    """The same; OptionError if there is neither."""
    question = question_of(query, text)
    if question is None:
        raise OptionError("give a query, or text for any text whose words are to be found")
    return question


def row_filter(snapshot: Snapshot, where: Any) -> Node | None:
    """A filter that can decide every row; PredicateError names what it cannot."""
    if where is None:
        return None
    node = snapshot.filter_of(where)
    if node is not None:
        rows.require_exact(node)
    return node


def column_names(snapshot: Snapshot, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns to return as the schema spells them, by default all; SchemaError names what it lacks."""
    if columns is None:
        return tuple(snapshot.schema.names)
    if isinstance(columns, str):
        raise SchemaError(f"columns is the text {columns!r}; give a list of names")
    names: list[str] = []
    for name in columns:
        spelled = require_name(snapshot.schema.names, name)
        if spelled in names:
            raise SchemaError(f"column {spelled!r} is asked for twice", column=spelled)
        names.append(spelled)
    return tuple(names)
