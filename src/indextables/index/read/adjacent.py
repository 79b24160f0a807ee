"""Rows in which words follow each other directly, found from the two rarest words on.

After each word, only the places remain where the phrase can still begin. The commoner
words are asked about the rows of these places alone, so that most pages of their lists and
positions are not decoded. Positions take at most two round trips: those of the two rarest
words, with those of the others if they are small, else those of the others afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indextables.index.codec.lists import has, pack
from indextables.index.codec.numbers import Array, Planes, gather, starts_of
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import NO_ROWS, found_in, intersection
from indextables.index.read.words import Word, pages_of, read_positions

_PAIR = 2
_READ_ALONG = 128 << 10
"""Up to this many bytes, the positions of the other words are read before it is known whether they matter."""
_FEW = 24
"""Up to this many rows, positions are compared in a loop."""
_SEARCHED = 16
"""If more than one in this many numbers is wanted, all are marked for the lookup."""
_PLACES_PER_BIT = 512
_PLACES_PER_FLAG = 128
"""From one place in this many on, one byte per place is the fastest way to look places up."""


def rows_in_order(index: Index, words: Sequence[Word]) -> tuple[Array, Array]:
    """The rows in which at least two words follow each other, and how often they do in each."""
    order = sorted(range(len(words)), key=lambda at: words[at].count)
    pair, others = order[:_PAIR], order[_PAIR:]
    rows = intersection([words[at] for at in pair], index.rows).array()
    if not len(rows):
        return NO_ROWS, NO_ROWS
    pages = pages_of(rows, index.rows)
    more = sum(length for at in others for _, _, length in words[at].missing_positions(pages))
    read_positions(index, [(words[at], pages) for at in (order if more <= _READ_ALONG else pair)])
    found: _Starts | _FewStarts = _FewStarts(rows) if len(rows) <= _FEW else _Starts(rows)
    for at in pair:
        found.follow(words[at], at, index.rows)
    if others and isinstance(found, _Starts) and 0 < len(found.rows) <= _FEW:
        found = found.as_few()
    for at in others:
        found.within(words[at])
    if len(found.rows):
        pages = pages_of(found.rows, index.rows)
        read_positions(index, [(words[at], pages) for at in others])
        for at in others:
            found.follow(words[at], at, index.rows)
    return found.rows, found.counts()


class _Starts:
    """Where a phrase can begin: rows, and the positions in them."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._at: Array | None = None
        """The position of each start; None before the first word."""
        self._row: Array | None = None
        """The row of each start, by its index in `rows`; None when every row has one start."""

    def as_few(self) -> _FewStarts:
        """The same starts, when a few rows are left."""
        found = _FewStarts(self.rows)
        found.starts = [set() for _ in range(len(self.rows))]
        assert self._at is not None
        owner = range(len(self.rows)) if self._row is None else self._row.tolist()
        for row, start in zip(owner, self._at.tolist(), strict=True):
            found.starts[row].add(start)
        return found

    def counts(self) -> Array:
        """The number of starts in each row."""
        if self._row is None:
            return np.ones(len(self.rows), np.int64)
        return np.bincount(self._row, minlength=len(self.rows))

    def within(self, word: Word) -> None:
        """Keep only rows with a word."""
        inside = word.test(self.rows)
        if inside.all():
            return
        if self._row is None:
            assert self._at is not None
            self.rows, self._at = self.rows.compress(inside), self._at.compress(inside)
        else:
            self._keep(inside.take(self._row))

    def follow(self, word: Word, place: int, universe: int) -> None:
        """Keep only starts with a word so many positions behind them; all rows have the word."""
        if not len(self.rows):
            return
        pages = pages_of(self.rows, universe) if word.cut else NO_ROWS
        start, sizes, held = word.located(self.rows, pages)
        if self._at is None:
            if sizes is not None:
                self._row = np.arange(len(self.rows)).repeat(sizes)
                start = gather(start, sizes)
            self._at = held.take(start).astype(np.int64) - place
            self._keep(self._at >= 0)
            return
        wanted = self._at + place
        if sizes is None:
            each = start if self._row is None else start.take(self._row)
            self._keep(held.take(each) == wanted)
            return
        row = np.arange(len(self.rows)) if self._row is None else self._row
        several = sizes.take(row) > 1
        follows: Array = held.take(start.take(row)) == wanted
        some = several.nonzero()[0]
        if len(some):
            follows[some] = _among_several(row.take(some), wanted.take(some), start, sizes, held)
        self._keep(follows)

    def _keep(self, kept: Array) -> None:
        """Drop starts, and rows that have no start left."""
        assert self._at is not None
        if kept.all():
            return
        self._at = self._at.compress(kept)
        if self._row is None:
            self.rows = self.rows.compress(kept)
            return
        row = self._row.compress(kept)
        new = _first_of_each(row)
        self.rows = self.rows.take(row.compress(new))
        self._row = np.cumsum(new) - 1


class _FewStarts:
    """Where a phrase can begin in a few rows; a loop is faster than the fixed cost of array operations."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self.starts: list[set[int]] = []
        """The positions in each row; empty before the first word."""

    def counts(self) -> Array:
        """The number of starts in each row."""
        return np.array([*map(len, self.starts)], np.int64)

    def within(self, word: Word) -> None:
        """Keep only rows with a word."""
        if len(self.rows):
            self._keep(word.test(self.rows).tolist())

    def follow(self, word: Word, place: int, universe: int) -> None:
        """Keep only starts with a word so many positions behind them; all rows have the word."""
        if not len(self.rows):
            return
        pages = pages_of(self.rows, universe) if word.cut else NO_ROWS
        start, sizes, held = word.located(self.rows, pages)
        size = [1] * len(start) if sizes is None else sizes.tolist()
        # A word too near the beginning of its row has a negative start, which the first word never has.
        here = [
            {position - place for position in held.few(first, count)}
            for first, count in zip(start.tolist(), size, strict=True)
        ]
        self.starts = (
            [one & other for one, other in zip(self.starts, here, strict=True)] if self.starts else here
        )
        self._keep(self.starts)

    def _keep(self, kept: Sequence[Any]) -> None:
        """Keep only some rows."""
        if not all(kept):
            self.rows = self.rows.compress([*map(bool, kept)])
            self.starts = [one for one, stays in zip(self.starts, kept, strict=True) if stays]


def _among_several(row: Array, wanted: Array, start: Array, sizes: Array, held: Planes) -> Array:
    """For each start, whether a word that its row holds several times is at the wanted position.

    The rows of the starts get consecutive ranges of places, each as long as its last position needs.
    """
    new = _first_of_each(row)
    number, some = np.cumsum(new) - 1, row.compress(new)
    size = sizes.take(some)
    positions = held.take(gather(start.take(some), size))
    last = positions.take(np.cumsum(size) - 1).astype(np.int64)
    begin = starts_of(last + 2)
    places = begin[:-1].repeat(size) + positions
    # A position beyond the last one of its row is not in it, whichever it is.
    asked = begin.take(number) + np.minimum(wanted, last.take(number) + 1)
    return are_in(places, asked, int(begin[-1]))


def _first_of_each(ascending: Array) -> Array:
    """Whether each number differs from the one before."""
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new


def are_in(ascending: Array, wanted: Array, total: int) -> Array:
    """Whether each wanted number, all below `total`, is in an ascending list."""
    if len(ascending) == len(wanted):
        same: Array = ascending == wanted
        if same.all():
            return same
    if len(wanted) * _SEARCHED > len(ascending):
        if len(ascending) * _PLACES_PER_FLAG > total:
            flags = np.zeros(total, bool)
            flags[ascending] = True
            return flags.take(wanted)
        if len(wanted) * _PLACES_PER_BIT > total:
            return has(pack(ascending, total), wanted)
    return found_in(ascending, wanted)[1]
