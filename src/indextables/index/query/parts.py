"""The parts of a query as its text has them, before anybody knows which columns there are."""

from __future__ import annotations

from typing import TypeAlias

from indextables.index.query.patterns import Gap
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A word or a quoted text; `~` and `*` behind it say how it is compared."""

    text: str
    at: int
    quoted: bool = False
    distance: int | None = None
    """Words between the words of a quoted text, or edits of a word."""
    prefix: bool = False
    shape: tuple[str | Gap, ...] = ()
    """The word with its wildcards, when it has any besides one `*` at its end."""


@dataclass(frozen=True, slots=True)
class Regular:
    """A regular expression."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range; None is open."""

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
    """A value, or without a column every row."""

    at: int


@dataclass(frozen=True, slots=True)
class Within:
    """A part about one column."""

    column: str
    part: Part
    at: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Parts that must, may and must not match."""

    must: tuple[Part, ...] = ()
    should: tuple[Part, ...] = ()
    must_not: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part whose score counts more or less."""

    part: Part
    factor: float


Part: TypeAlias = Text | Regular | Bounds | OneOf | Anything | Within | Joined | Weighed


@dataclass(frozen=True, slots=True)
class Read:
    """A query as it was read, and what its reader should know about it."""

    part: Part
    notes: tuple[str, ...]
