"""Phrases: words that follow each other, possibly with others in between.

Rows with all the words are found first; positions are read only for the pages of these rows. Every
occurrence is then given one number, so that a phrase is found by adding and looking up numbers. For
words that are used again and again, such numbers for the whole index are cached:
`global_positions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from indextables.index.codec.numbers import Array, gather, starts_of
from indextables.index.read.adjacent import rows_in_order
from indextables.index.read.global_positions import (
    LONGEST_PHRASE,
    NO_PHRASE,
    PhraseRows,
    count_by_row,
    phrase_by_global_positions,
)
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import RowSetLike, find_in, intersection
from indextables.index.read.words import WordPostings, pages_of, read_positions


class PhrasePart(Protocol):
    """One word of a phrase, or several alternatives for it."""

    def rows(self) -> RowSetLike:
        """The rows that contain it."""
        ...

    def words(self) -> Sequence[WordPostings]:
        """The words whose positions have to be read."""
        ...

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """For ascending rows, the index of the row and the position of every occurrence, in order."""
        ...


class OneWord:
    """A word of a phrase."""

    def __init__(self, word: WordPostings) -> None:
        self.word = word

    def rows(self) -> RowSetLike:
        """The rows of the word."""
        return self.word

    def words(self) -> Sequence[WordPostings]:
        """The word itself."""
        return (self.word,)

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """For ascending rows, the index of the row and the position of every occurrence, in order."""
        listed, counts, positions = self.word.occurrences(pages)
        in_list, in_rows = _shared(rows, listed)
        if counts is None:
            return in_rows, positions.take(in_list)
        size = counts.take(in_list).astype(np.int64)
        return in_rows.repeat(size), positions.take(gather(starts_of(counts)[in_list], size))


def _shared(rows: Array, listed: Array) -> tuple[Array, Array]:
    """The rows that two ascending lists share: their indexes in the second list and in the first."""
    at, inside = find_in(listed, rows)
    in_rows = inside.nonzero()[0]
    return at[in_rows], in_rows


def find_words(index: Index, field: int, words: Sequence[WordPostings]) -> PhraseRows:
    """The rows in which words follow each other directly."""
    cached = phrase_by_global_positions(index, field, words) if len(words) <= LONGEST_PHRASE else None
    return PhraseRows(*rows_in_order(index, words)) if cached is None else cached


def find_phrase(
    index: Index, parts: Sequence[PhrasePart], *, slop: int, gaps: WordPostings | None
) -> PhraseRows:
    """The rows in which the parts follow each other, with at most `slop` other words between them.

    `gaps` are positions that a phrase may not cross: the ends of the values of a row.
    """
    rows = intersection([part.rows() for part in parts], index.rows).array()
    if not len(rows):
        return NO_PHRASE
    pages = pages_of(rows, index.rows)
    separators = [gaps] if gaps is not None and slop else []
    words = [word for part in parts for word in part.words()] + separators
    read_positions(index, [(word, pages) for word in words])
    occurrences = [part.occurrences(rows, pages) for part in parts]
    last = max((int(positions.max(initial=0)) for _, positions in occurrences), default=0)
    slop = min(slop, last + 1)
    # Far enough apart that neither a phrase nor its gaps reach into another row.
    stride = last + len(parts) + (last + 1 + slop if slop else 0)
    numbering = _Numbering(len(rows), stride, len(parts))
    numbers = [numbering.encode(*one) for one in occurrences]
    if slop:
        between = None
        if separators:
            row, position = OneWord(separators[0]).occurrences(rows, pages)
            # Gaps after the last word of a row separate nothing and get no number.
            inside = position <= last
            between = numbering.encode(row[inside], position[inside])
        starts = _starts_with_slop(numbers, slop, between)
    else:
        starts = _starts_in_order(numbers)
    return count_by_row(rows.take(numbering.row_indexes(starts)))


class _Numbering:
    """One number for a row and a position in it: `stride` numbers per row, after `lead` unused ones."""

    def __init__(self, rows: int, stride: int, lead: int) -> None:
        total = (rows + 1) * stride + 2 * lead
        self.kind: Any = np.uint32 if total < 1 << 32 else np.int64
        self.stride: Any = self.kind(stride)
        self.lead: Any = self.kind(lead)

    def encode(self, row_indexes: Array, positions: Array) -> Array:
        """The numbers of positions in rows, which are given by index."""
        numbers: Array = row_indexes.astype(self.kind)
        numbers *= self.stride
        numbers += self.lead
        numbers += positions.astype(self.kind)
        return numbers

    def row_indexes(self, numbers: Array) -> Array:
        """The indexes of the rows that numbers belong to."""
        indexes: Array = (numbers - self.lead) // self.stride
        return indexes


def _starts_in_order(numbers: Sequence[Array]) -> Array:
    """Numbers of the first word whose successors are numbers of the other words."""
    order = sorted(range(len(numbers)), key=lambda at: len(numbers[at]))
    rarest = order[0]
    here = numbers[rarest]
    for at in order[1:]:
        if not len(here):
            break
        kind = here.dtype.type
        following = here + kind(at - rarest) if at > rarest else here - kind(rarest - at)
        here = here.compress(find_in(numbers[at], following)[1])
    start: Array = here - here.dtype.type(rarest)
    return start


def _starts_with_slop(numbers: Sequence[Array], slop: int, between: Array | None) -> Array:
    """Where a phrase with gaps begins; the earliest next word leaves the most room for the rest."""
    start = here = numbers[0]
    for following in numbers[1:]:
        if not len(following) or not len(start):
            return start[:0]
        at = following.searchsorted(here, "right")
        inside = at < len(following)
        start, here = start[inside], following[at[inside]]
        near = here <= start + (len(numbers) - 1 + slop)
        start, here = start[near], here[near]
    if between is not None and len(between):
        whole = between.searchsorted(start) == between.searchsorted(here)
        start = start[whole]
    return start
