"""Phrases: words that follow each other, possibly with others in between.

Rows with all the words are found first; positions are read only for the pages of these
rows. Every occurrence is then given one number, its place, such that a phrase is found by
adding and looking up numbers. For words that are used again and again, places in the whole
index are cached; see `places`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from indextables.index.codec.lists import has, pack
from indextables.index.codec.numbers import Array, gather, starts_of
from indextables.index.read.adjacent import are_in, rows_in_order
from indextables.index.read.lookup import Index
from indextables.index.read.places import LONGEST, Found, kept_phrase
from indextables.index.read.rowset import NO_ROWS, Rows, found_in, intersection
from indextables.index.read.words import Word, pages_of, read_positions

_SEARCHED = 16
"""If more than one in this many numbers is wanted, a bitmap is used for the lookup."""


class Part(Protocol):
    """One word of a phrase, or several alternatives in its place."""

    def rows(self) -> Rows:
        """The rows that contain it."""
        ...

    def words(self) -> Sequence[Word]:
        """The words whose positions have to be read."""
        ...

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """For ascending rows, the index of the row and the position of every occurrence, in order."""
        ...


class OneWord:
    """A word of a phrase."""

    def __init__(self, word: Word) -> None:
        self.word = word

    def rows(self) -> Rows:
        """See Part."""
        return self.word

    def words(self) -> Sequence[Word]:
        """See Part."""
        return (self.word,)

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """See Part."""
        return placed(rows, *self.word.occurrences(pages))


def placed(rows: Array, held: Array, counts: Array | None, positions: Array) -> tuple[Array, Array]:
    """The occurrences in some rows of a list: the index of the row among these, and the position."""
    at, wanted = _shared(rows, held)
    if counts is None:
        return wanted, positions.take(at)
    size = counts.take(at).astype(np.int64)
    return wanted.repeat(size), positions.take(gather(starts_of(counts)[at], size))


def _shared(rows: Array, held: Array) -> tuple[Array, Array]:
    """The rows that two ascending lists share: their indexes in the second list and in the first."""
    if len(rows) == len(held) and bool((rows == held).all()):
        every = np.arange(len(rows))
        return every, every
    if len(rows) * _SEARCHED > len(held) and len(rows):
        # Looking up all of them in a bitmap is faster than searching for each.
        universe = int(max(rows[-1], held[-1])) + 1 if len(held) else int(rows[-1]) + 1
        at = has(pack(rows, universe), held).nonzero()[0]
        if len(at) == len(rows):
            return at, np.arange(len(rows))
        return at, has(pack(held, universe), rows).nonzero()[0]
    at, inside = found_in(held, rows)
    wanted = inside.nonzero()[0]
    return at[wanted], wanted


def find_words(index: Index, field: int, words: Sequence[Word], *, counted: bool) -> Found:
    """The rows in which words follow each other directly."""
    kept = kept_phrase(index, field, words, counted=counted) if len(words) <= LONGEST else None
    return Found(*rows_in_order(index, words)) if kept is None else kept


def find_phrase(index: Index, parts: Sequence[Part], *, slop: int, gaps: Word | None) -> Found:
    """The rows in which the parts follow each other, with at most `slop` other words between them.

    `gaps` are positions that a phrase may not cross: the ends of the values of a row.
    """
    rows = intersection([part.rows() for part in parts], index.rows).array()
    if not len(rows):
        return Found(NO_ROWS, NO_ROWS)
    pages = pages_of(rows, index.rows)
    more = [gaps] if gaps is not None and slop else []
    read_positions(
        index, [(word, pages) for part in parts for word in part.words()] + [(w, pages) for w in more]
    )
    numbered = [part.occurrences(rows, pages) for part in parts]
    most = max((int(at.max(initial=0)) for _, at in numbered), default=0)
    slop = min(slop, most + 1)
    # Far enough apart that neither a phrase nor its gaps reach into another row.
    stride = most + len(parts) + (most + 1 + slop if slop else 0)
    numbering = _Numbering(len(rows), stride, len(parts))
    places = [numbering.places(*one) for one in numbered]
    if slop:
        between = None
        if more:
            number, at = OneWord(more[0]).occurrences(rows, pages)
            # Gaps after the last word of a row separate nothing and get no place.
            inside = at <= most
            between = numbering.places(number[inside], at[inside])
        first = _spread(places, slop, between)
    else:
        first = _consecutive(places, numbering.total)
    return _by_row(rows, numbering.numbers(first))


class _Numbering:
    """Numbers the places of some rows: `stride` places per row, after `lead` unused ones."""

    def __init__(self, rows: int, stride: int, lead: int) -> None:
        self.total = (rows + 1) * stride + 2 * lead
        self.kind: Any = np.uint32 if self.total < 1 << 32 else np.int64
        self.stride: Any = self.kind(stride)
        self.lead: Any = self.kind(lead)

    def places(self, numbers: Array, positions: Array) -> Array:
        """The places of positions in rows, which are given by index."""
        found: Array = numbers.astype(self.kind)
        found *= self.stride
        found += self.lead
        found += positions.astype(self.kind)
        return found

    def numbers(self, places: Array) -> Array:
        """The indexes of the rows that places belong to."""
        found: Array = (places - self.lead) // self.stride
        return found


def _by_row(rows: Array, numbers: Array) -> Found:
    if not len(numbers):
        return Found(NO_ROWS, NO_ROWS)
    new = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    at = new.nonzero()[0]
    return Found(rows[numbers[at]], np.diff(np.append(at, len(numbers))))


def _consecutive(places: Sequence[Array], total: int) -> Array:
    """Where a phrase begins: places whose successors are places of the other words; all below `total`."""
    order = sorted(range(len(places)), key=lambda at: len(places[at]))
    first = order[0]
    here = places[first]
    for at in order[1:]:
        if not len(here):
            break
        kind = here.dtype.type
        to = here + kind(at - first) if at > first else here - kind(first - at)
        here = here.compress(are_in(places[at], to, total))
    start: Array = here - here.dtype.type(first)
    return start


def _spread(places: Sequence[Array], slop: int, between: Array | None) -> Array:
    """Where a phrase with gaps begins; the earliest place of each word leaves the most room for the rest."""
    start = here = places[0]
    for held in places[1:]:
        if not len(held) or not len(start):
            return start[:0]
        at = held.searchsorted(here, "right")
        inside = at < len(held)
        start, here = start[inside], held[at[inside]]
        near = here <= start + (len(places) - 1 + slop)
        start, here = start[near], here[near]
    if between is not None and len(between):
        whole = between.searchsorted(start) == between.searchsorted(here)
        start = start[whole]
    return start


__all__ = ["Found", "OneWord", "Part", "find_phrase", "find_words"]
