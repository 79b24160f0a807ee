"""Phrases of words that are used again and again: the places of each word in the whole index are cached.

A place is the number of an occurrence among all tokens, counted row after row by the row
lengths that ranking has. So a phrase is found by adding to the places of its rarest word
and looking up the sums. Large words are asked through a filter of one byte per slot first;
a few places are looked up in a loop, which is faster than the fixed cost of array operations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from indextables.index.codec.lengths import LENGTHS
from indextables.index.codec.lists import has, pack, page_count
from indextables.index.codec.numbers import Array, damaged, starts_of
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import NO_ROWS, found_in
from indextables.index.read.words import Word, read_positions
from indextables.records import dataclass

KEPT_AFTER = 2
"""After this many phrases with a word, its places in the whole index are cached."""
LONGEST = 64
"""Unused places before the first and after the last row: the longest phrase cached places can answer."""
_LISTED = 1024
"""Words with up to this many places are looked up in a dict, others in a filter."""
_SPREAD = 16
"""Slots of a filter per place."""
_DENSE = 256
"""From one place in this many on, a bitmap of all places is not larger than a filter."""
_LOOPED, _SEARCHED = 32, 16
"""Up to this many places are looked up in a loop: those of the rarest word, and those left by a filter."""


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a phrase, and its number of occurrences in each."""

    rows: Array
    counts: Array


_NOTHING = Found(NO_ROWS, NO_ROWS)


class _Kept:
    """The places of a word in the whole index."""

    def __init__(self) -> None:
        self.uses = 0
        self.count = 0
        self.places: Array | None = None
        self.rows: Array = NO_ROWS
        self.filter: Array | None = None
        """One byte per slot, set if a place modulo their number is the slot; None for a few places."""
        self.mask: Any = None
        """The bits of a place that say its slot."""
        self.bits: Array | None = None
        """The bitmap of all places, instead of a filter, of a word that is frequent enough."""

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        held = (self.places, self.rows, self.filter, self.bits)
        listed = 100 * self.count if self.count <= _LISTED else 0
        return sum(one.nbytes for one in held if one is not None) + listed + 400

    @cached_property
    def row_at(self) -> dict[int, int]:
        """The row of every place, for a few places."""
        assert self.places is not None
        return dict(zip(self.places.tolist(), self.rows.tolist(), strict=True))

    @cached_property
    def slots(self) -> memoryview:
        """The filter, or the bitmap, for single places."""
        return memoryview(self.bits if self.filter is None else self.filter)  # type: ignore[arg-type]

    @cached_property
    def sorted(self) -> memoryview:
        """The places, for single ones."""
        return memoryview(self.places)  # type: ignore[arg-type]

    def some(self, starts: list[int], step: int) -> list[int]:
        """Those of a few starts that have the word so many places behind them."""
        if self.count <= _LISTED:
            known = self.row_at
            return [one for one in starts if one + step in known]
        slots = self.slots
        if self.filter is None:
            return [one for one in starts if slots[(one + step) >> 3] >> ((one + step) & 7) & 1]
        mask, places = len(slots) - 1, self.sorted
        found = []
        for one in starts:
            place = one + step
            if slots[place & mask]:
                at = bisect_left(places, place)
                if at < len(places) and places[at] == place:
                    found.append(one)
        return found

    def rows_of(self, starts: list[int], *, counted: bool) -> Found:
        """The rows of a few of its places, and how many are in each."""
        if self.count <= _LISTED:
            known = self.row_at
            rows = [known[one] for one in starts]
        else:
            held, places = self.rows.item, self.sorted
            rows = [held(bisect_left(places, one)) for one in starts]
        if not counted:
            return Found(np.array([*dict.fromkeys(rows)], np.uint32), NO_ROWS)
        often = Counter(rows)
        return Found(np.array([*often], np.uint32), np.array([*often.values()], np.int64))

    def possible(self, starts: Array, step: int) -> Array:
        """For many starts, whether each may have the word so many places behind it."""
        to = _moved(starts, step)
        if self.filter is not None:
            found: Array = self.filter.take(to & self.mask)
            return found
        if self.bits is not None:
            return has(self.bits, to)
        return self.exact(starts, step)

    def exact(self, starts: Array, step: int) -> Array:
        """For many starts, whether each has the word so many places behind it."""
        assert self.places is not None
        return found_in(self.places, _moved(starts, step))[1]


def _moved(places: Array, step: int) -> Array:
    kind = places.dtype.type
    moved: Array = places + kind(step) if step >= 0 else places - kind(-step)
    return moved


def is_kept(word: Word) -> bool:
    """Whether the places of a word in the whole index are cached."""
    return word.phrases is not None and word.phrases.places is not None


def kept_phrase(index: Index, field: int, words: Sequence[Word], *, counted: bool) -> Found | None:
    """The rows in which words follow each other directly; None if their places are not cached yet."""
    held: list[_Kept] = [word.phrases for word in words]
    for kept in held:
        if kept is None or kept.places is None:
            if not _keep_all(index, field, words):
                return None
            held = [word.phrases for word in words]
            break
    rarest = min(held, key=_count)
    first = held.index(rarest)
    steps = [(at - first, kept) for at, kept in enumerate(held) if at != first]
    if len(steps) > 1:
        steps.sort(key=_size)
    assert rarest.places is not None
    left = rarest.places
    if rarest.count > _LOOPED:
        kept_ones = []
        # The filters first: then few places are left to be searched for.
        for step, test in _tests(steps):
            keep = test(left, step)
            if np.count_nonzero(keep) < len(keep):
                kept_ones.append(keep)
                left = left.compress(keep)
            if len(left) <= _SEARCHED:
                break
        else:
            rows = rarest.rows
            for keep in kept_ones:
                rows = rows.compress(keep)
            return _by_row(rows, repeats=words[first].counts() is not None, counted=counted)
    starts = left.tolist()
    for step, kept in steps:
        starts = kept.some(starts, step)
    return rarest.rows_of(starts, counted=counted) if starts else _NOTHING


def _tests(steps: Sequence[tuple[int, _Kept]]) -> Iterator[tuple[int, Callable[[Array, int], Array]]]:
    for step, kept in steps:
        yield step, kept.possible
    for step, kept in steps:
        if kept.filter is not None:
            yield step, kept.exact


_count = attrgetter("count")


def _size(step: tuple[int, _Kept]) -> int:
    return step[1].count


def _by_row(rows: Array, *, repeats: bool, counted: bool) -> Found:
    """The rows of many occurrences; no row comes twice unless the word repeats."""
    if not repeats or not len(rows):
        return Found(rows, np.ones(len(rows), np.int64) if counted else NO_ROWS)
    new = np.empty(len(rows), bool)
    new[0] = True
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    if not counted:
        return Found(rows.compress(new), NO_ROWS)
    begin = new.nonzero()[0]
    return Found(rows.take(begin), np.diff(np.append(begin, len(rows))))


def _keep_all(index: Index, field: int, words: Sequence[Word]) -> bool:
    """Count a use of each word; returns whether the places of all are, or now should be, cached."""
    for word in words:
        if word.phrases is None:
            word.phrases = _Kept()
        word.phrases.uses += 1
    if any(word.phrases.uses < KEPT_AFTER for word in words):
        return False
    missing = [word for word in words if word.phrases.places is None]
    # A word whose places would displace everything else is not cached.
    if sum(word.count for word in missing) * 24 > index.cache.max_bytes:
        return False
    room, start, total = _row_starts(index, field)
    everywhere = np.arange(page_count(index.rows))
    for word in missing:
        index.fetch([(word, None)])
    read_positions(index, [(word, everywhere) for word in missing])
    for word in missing:
        _keep(word, everywhere, room[index.norms(field)], start, total)
    return True


def _row_starts(index: Index, field: int) -> tuple[Array, Array, int]:
    """Places per row for each length class, the first place of every row, and the number of all places."""
    room = np.append(LENGTHS[1:], LENGTHS[-1] * 2).astype(np.int64)
    kept = index.cache.get((index.identity, ("starts", field)))
    if kept is None:
        at = starts_of(room[index.norms(field)]) + LONGEST
        total = int(at[-1]) + LONGEST
        start = at[:-1].astype(np.uint32 if total < 1 << 32 else np.int64)
        kept = start, total
        index.cache.put((index.identity, ("starts", field)), kept, start.nbytes)
    return room, *kept


def _keep(word: Word, pages: Array, room: Array, start: Array, total: int) -> None:
    rows, counts, positions = word.occurrences(pages)
    if counts is not None:
        rows = rows.repeat(counts)
    if len(rows) and bool((positions >= room.take(rows)).any()):
        raise damaged("a position lies beyond its row")
    kept = word.phrases
    places = start.take(rows) + positions.astype(start.dtype)
    if len(places) > _LISTED:
        if len(places) * _DENSE > total:
            kept.bits = pack(places, total)
        else:
            slots = 1 << (len(places) * _SPREAD - 1).bit_length()
            kept.filter, kept.mask = np.zeros(slots, bool), start.dtype.type(slots - 1)
            kept.filter[places & kept.mask] = True
    kept.rows, kept.count = rows, len(rows)
    kept.places = places
    word.grown = True


__all__ = ["LONGEST", "Found", "is_kept", "kept_phrase"]
