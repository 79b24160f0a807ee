"""What a statement becomes: a text for the engine, and what the hidden views in it have to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indextables.sql.select.mentions import ChangeRange


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a statement reads a table."""

    name: tuple[str, ...]
    """The parts of the name; the path alone when it is read by path."""
    by_path: bool = False
    version: int | None = None
    timestamp: str | None = None
    """A SQL expression, as written."""
    changes: ChangeRange | None = None
    """The commits whose changes are read, in the place of rows."""


@dataclass(frozen=True, slots=True)
class ResolvedSearch:
    """One search, and the reference whose rows it is about."""

    reference: int
    column: str | None
    """None searches all indexed columns."""
    query: str
    required: bool
    """Whether rows without a match can be left out of the view."""
    hidden: str
    """The boolean column of the hidden view; empty where the search is required."""
    score: bool = False
    """Whether the view has a `_score` column, which no `*` shows."""
    best: int | None = None
    """How many of the best rows are enough of those that the whole WHERE leaves; None: all of them."""
    beside: int = 0
    """How many other conditions stand beside it in WHERE."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A text with the matches of a query marked, as a column of the hidden view that no `*` shows."""

    reference: int
    column: str
    query: str
    hidden: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A statement for the engine, over hidden views that the caller provides."""

    text: str
    references: tuple[Reference, ...]
    searches: tuple[ResolvedSearch, ...]
    used_arguments: frozenset[int]
    """Positional arguments that were queries and are no longer in the text."""
    highlights: tuple[Highlight, ...] = ()
    columns: frozenset[str] | None = None
    """Every column name the statement mentions, in lower case; None where a `*` means all of them."""
    has_searches: bool = False
    """Whether the text still holds searches, as their author wrote them."""
    conditions: tuple[tuple[int, Any], ...] = ()
    """References with the conditions (sqlglot's) on their columns without which no row of them counts."""
