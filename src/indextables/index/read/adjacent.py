"""Rows in which words follow each other directly, found from the two rarest words on.

After each word, only the starts remain from which the phrase can still be complete. The commoner
words are looked up in the rows of these starts alone, so that most pages of their lists and
positions are not decoded. Positions take at most two round trips: those of the two rarest words,
with those of the others if they are small, else those of the others afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indextables.index.codec.numbers import Array, Planes, gather, starts_of
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import NO_ROWS, find_in, intersection
from indextables.index.read.words import WordPostings, pages_of, read_positions

_PAIR = 2
_READ_ALONG = 128 << 10
"""Up to this many bytes, the positions of the other words are read before it is known whether they matter."""


def rows_in_order(index: Index, words: Sequence[WordPostings]) -> tuple[Array, Array]:
    """The rows in which two or more words follow each other, and how often they do in each."""
    order = sorted(range(len(words)), key=lambda offset: words[offset].count)
    pair, others = order[:_PAIR], order[_PAIR:]
    rows = intersection([words[offset] for offset in pair], index.rows).array()
    if not len(rows):
        return NO_ROWS, NO_ROWS
    pages = pages_of(rows, index.rows)
    more = sum(length for offset in others for _, _, length in words[offset].missing_positions(pages))
    read_positions(index, [(words[offset], pages) for offset in (order if more <= _READ_ALONG else pair)])
    starts = _Starts(rows)
    for offset in pair:
        starts.require(words[offset], offset, index.rows)
    for offset in others:
        starts.require_in_row(words[offset])
    if len(starts.rows):
        pages = pages_of(starts.rows, index.rows)
        read_positions(index, [(words[offset], pages) for offset in others])
        for offset in others:
            starts.require(words[offset], offset, index.rows)
    return starts.rows, starts.counts()


class _Starts:
    """Where a phrase can begin: rows, and the positions in them."""

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._positions: Array | None = None
        """The position of each start; None before the first word."""
        self._owner: Array | None = None
        """The row of each start, by its index in `rows`; None while every row has one start."""

    def counts(self) -> Array:
        """The number of starts in each row."""
        if self._owner is None:
            return np.ones(len(self.rows), np.int64)
        return np.bincount(self._owner, minlength=len(self.rows))

    def require_in_row(self, word: WordPostings) -> None:
        """Keep only rows with a word."""
        inside = word.test(self.rows)
        if inside.all():
            return
        if self._owner is None:
            assert self._positions is not None
            self.rows, self._positions = self.rows.compress(inside), self._positions.compress(inside)
        else:
            self._filter(inside.take(self._owner))

    def require(self, word: WordPostings, offset: int, universe: int) -> None:
        """Keep only starts with a word `offset` positions behind them; all rows have the word."""
        if not len(self.rows):
            return
        pages = pages_of(self.rows, universe) if word.cut else NO_ROWS
        begin, sizes, positions = word.located(self.rows, pages)
        if self._positions is None:
            if sizes is not None:
                self._owner = np.arange(len(self.rows)).repeat(sizes)
                begin = gather(begin, sizes)
            self._positions = positions.take(begin).astype(np.int64) - offset
            self._filter(self._positions >= 0)
            return
        expected = self._positions + offset
        if sizes is None:
            each = begin if self._owner is None else begin.take(self._owner)
            self._filter(positions.take(each) == expected)
            return
        owner = np.arange(len(self.rows)) if self._owner is None else self._owner
        follows: Array = positions.take(begin.take(owner)) == expected
        several = (sizes.take(owner) > 1).nonzero()[0]
        if len(several):
            follows[several] = _among_several(
                owner.take(several), expected.take(several), begin, sizes, positions
            )
        self._filter(follows)

    def _filter(self, mask: Array) -> None:
        """Keep only some starts, and the rows that have a start left."""
        assert self._positions is not None
        if mask.all():
            return
        self._positions = self._positions.compress(mask)
        if self._owner is None:
            self.rows = self.rows.compress(mask)
            return
        owner = self._owner.compress(mask)
        new = _first_of_each(owner)
        self.rows = self.rows.take(owner.compress(new))
        self._owner = np.cumsum(new) - 1


def _among_several(owner: Array, expected: Array, begin: Array, sizes: Array, positions: Planes) -> Array:
    """For each start, whether a word that its row has several times is at the expected position.

    The rows of the starts get consecutive ranges of numbers, each as long as its last position needs.
    """
    new = _first_of_each(owner)
    number, rows = np.cumsum(new) - 1, owner.compress(new)
    size = sizes.take(rows)
    in_rows = positions.take(gather(begin.take(rows), size))
    last = in_rows.take(np.cumsum(size) - 1).astype(np.int64)
    first = starts_of(last + 2)
    # A position beyond the last one of its row is not in it, whichever it is.
    looked_up = first.take(number) + np.minimum(expected, last.take(number) + 1)
    return find_in(first[:-1].repeat(size) + in_rows, looked_up)[1]


def _first_of_each(ascending: Array) -> Array:
    """Whether each number differs from the one before."""
    new = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new
