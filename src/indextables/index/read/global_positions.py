"""Phrases of words that are used again and again: the global positions of each word are cached.

A global position is the number of an occurrence among all tokens of a field, counted row after row
by the row lengths that ranking has. So a phrase is found by adding to the global positions of its
rarest word and looking up the sums among those of the others.

Invariant: rows are at least as far apart as their length classes say, so that a phrase never reaches into the
next row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indextables.index.codec.lengths import LENGTHS
from indextables.index.codec.lists import has, page_count
from indextables.index.codec.numbers import Array, damaged, starts_of
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import NO_ROWS, find_in
from indextables.index.read.words import WordPostings, read_lists, read_positions
from indextables.records import dataclass

CACHED_AFTER = 2
"""The global positions of a word are cached when it is part of a phrase for this many times."""
LONGEST_PHRASE = 64
"""Unused positions before the first and after the last row: the longest phrase that can be answered."""
_BITS_PER_POSITION = 256
"""Before rounding up to a power of two; the bitmap has at most one bit for every global position."""


@dataclass(frozen=True, slots=True)
class PhraseRows:
    """The rows of a phrase, ascending, and its number of occurrences in each."""

    rows: Array
    counts: Array


NO_PHRASE = PhraseRows(NO_ROWS, NO_ROWS)


class PositionCache:
    """How often a word was part of a phrase, and its global positions if these are cached.

    They are looked up in a bitmap of a power of two bits. If that is too short for all global positions of
    the field, it is folded: it rules most positions out, and the others are searched for.
    """

    __slots__ = ("_bits", "_folded", "_mask", "positions", "rows", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.positions: Array | None = None
        """Ascending."""
        self.rows: Array = NO_ROWS
        """The row of each position."""

    def fill(self, rows: Array, positions: Array, total: int) -> None:
        """Cache the ascending global positions of the word, all below `total`, and their rows."""
        slots = 1 << (max(len(positions), 1) * _BITS_PER_POSITION - 1).bit_length()
        self._folded = slots < total
        self._mask = positions.dtype.type(slots - 1)
        flags = np.zeros(min(slots, total + 64 & ~63), bool)
        flags[positions & self._mask if self._folded else positions] = True
        self._bits = np.packbits(flags, bitorder="little")
        self.rows = rows
        self.positions = positions

    def contains(self, positions: Array) -> Array:
        """For each of some ascending global positions, whether the word is there."""
        if not self._folded:
            return has(self._bits, positions)
        inside = has(self._bits, positions & self._mask)
        candidates = inside.nonzero()[0]
        assert self.positions is not None
        inside[candidates] = find_in(self.positions, positions.take(candidates))[1]
        return inside

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        if self.positions is None:
            return 400
        return int(400 + self.rows.nbytes + self.positions.nbytes + self._bits.nbytes)


def has_global_positions(word: WordPostings) -> bool:
    """Whether the global positions of a word are cached."""
    return word.position_cache is not None and word.position_cache.positions is not None


def phrase_by_global_positions(index: Index, field: int, words: Sequence[WordPostings]) -> PhraseRows | None:
    """The rows in which words follow each other directly; None if their global positions are not cached."""
    if not all(map(has_global_positions, words)) and not _cache_positions(index, field, words):
        return None
    rarest, *others = sorted(range(len(words)), key=lambda at: len(words[at].position_cache.rows))
    first = words[rarest].position_cache
    starts, rows = first.positions, first.rows
    for at in others:
        distance, kind = at - rarest, starts.dtype.type
        following = starts + kind(distance) if distance > 0 else starts - kind(-distance)
        inside = words[at].position_cache.contains(following)
        if not inside.all():
            starts, rows = starts.compress(inside), rows.compress(inside)
    if words[rarest].counts() is None:
        return PhraseRows(rows, np.ones(len(rows), np.int64))
    return count_by_row(rows)


def count_by_row(rows: Array) -> PhraseRows:
    """The distinct ones of ascending rows, and how often each is repeated."""
    if not len(rows):
        return NO_PHRASE
    new = np.empty(len(rows), bool)
    new[0] = True
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    begin = new.nonzero()[0]
    return PhraseRows(rows.take(begin), np.diff(np.append(begin, len(rows))))


def _cache_positions(index: Index, field: int, words: Sequence[WordPostings]) -> bool:
    """Count a use of each word; returns whether the global positions of all are cached now."""
    for word in words:
        if word.position_cache is None:
            word.position_cache = PositionCache()
        word.position_cache.uses += 1
    if any(word.position_cache.uses < CACHED_AFTER for word in words):
        return False
    missing = [word for word in words if word.position_cache.positions is None]
    # A word whose positions would displace everything else is not cached.
    if sum(word.count for word in missing) * 24 > index.cache.max_bytes:
        return False
    room, row_starts, total = _row_starts(index, field)
    room_by_row = room[index.norms(field)]
    every_page = np.arange(page_count(index.rows))
    read_lists(index, [(word, None) for word in missing])
    read_positions(index, [(word, every_page) for word in missing])
    for word in missing:
        rows, counts, positions = word.occurrences(every_page)
        if counts is not None:
            rows = rows.repeat(counts)
        if len(rows) and bool((positions >= room_by_row.take(rows)).any()):
            raise damaged("a position lies beyond its row")
        global_positions = row_starts.take(rows) + positions.astype(row_starts.dtype)
        word.position_cache.fill(rows, global_positions, total)
        word.grown = True
    return True


def _row_starts(index: Index, field: int) -> tuple[Array, Array, int]:
    """Positions per row by length class, the first global position of every row, and the number of all."""
    room = np.append(LENGTHS[1:], LENGTHS[-1] * 2).astype(np.int64)
    key = index.identity, ("starts", field)
    cached: tuple[Array, int] | None = index.cache.get(key)
    if cached is None:
        starts = starts_of(room[index.norms(field)]) + LONGEST_PHRASE
        total = int(starts[-1]) + LONGEST_PHRASE
        row_starts = starts[:-1].astype(np.uint32 if total < 1 << 32 else np.int64)
        cached = row_starts, total
        index.cache.put(key, cached, row_starts.nbytes)
    return room, *cached
