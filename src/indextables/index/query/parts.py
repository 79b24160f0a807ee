"""The parts of a parsed query, before they are resolved to columns."""

from __future__ import annotations

from typing import TypeAlias

from indextables.index.query.patterns import Gap
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class QueryRules:
    """How a query is read, whatever it says."""

    operator: str = "or"
    """What joins parts side by side: `or` or `and`."""
    lowercase_operators: bool = False
    """Whether `and` and `or` are operators, and `not` is refused; else the three are words."""


@dataclass(frozen=True, slots=True)
class Text:
    """A word or a quoted text; a following `~` or `*` says how it is compared."""

    text: str
    at: int
    quoted: bool = False
    distance: int | None = None
    """For a quoted text, the words allowed between its words; for a word, the edits allowed."""
    prefix: bool = False
    shape: tuple[str | Gap, ...] = ()
    """The word with its wildcards, if it has others than one `*` at its end."""


@dataclass(frozen=True, slots=True)
class RegexPart:
    """A regular expression."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class RangePart:
    """A range; None is an open end."""

    lower: str | None
    upper: str | None
    include_lower: bool
    include_upper: bool
    at: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of some values."""

    values: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value of a column; without a column, every row."""

    at: int


@dataclass(frozen=True, slots=True)
class InColumn:
    """A part that applies to one column."""

    column: str
    part: QueryPart
    at: int


@dataclass(frozen=True, slots=True)
class BooleanPart:
    """Parts that must, may and must not match."""

    must: tuple[QueryPart, ...] = ()
    should: tuple[QueryPart, ...] = ()
    must_not: tuple[QueryPart, ...] = ()


@dataclass(frozen=True, slots=True)
class BoostedPart:
    """A part whose score is multiplied by a factor."""

    part: QueryPart
    factor: float


QueryPart: TypeAlias = Text | RegexPart | RangePart | OneOf | Anything | InColumn | BooleanPart | BoostedPart


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query, and notes for its author."""

    part: QueryPart
    notes: tuple[str, ...]
