"""One word of an open index: its rows, occurrences and positions, decoded as far as a query needs them.

The parts of a word's list are put here as they are read; `fetch` reads those of
several words at once. A word may be kept between searches and then grows: what was
decoded stays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from indextables.index.codec.blocks import Entry
from indextables.index.codec.lists import (
    PAGE,
    counts_of,
    empty_bits,
    has,
    pack,
    page_bits,
    page_count,
    page_counts,
    page_rows,
    unpack,
)
from indextables.index.codec.numbers import (
    Array,
    Bytes,
    believing,
    damaged,
    starts_of,
    unframe,
    unplanes,
    unvarints,
)
from indextables.index.read.rowset import NO_ROWS, TESTED, found_in


class Reader(Protocol):
    """The index that a word belongs to."""

    rows: int

    def read_piece(self, piece: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """Ranges of one piece, in one round trip."""
        ...


_MAKING = threading.Lock()
_PAGE_BITS = PAGE.bit_length() - 1


class Word:
    """A word of a field; the row sets of `rowset` are made of these."""

    __slots__ = (
        "_array", "_bits", "_counts", "_counts_known", "_done", "_filled", "_index", "_pages", "_parts",
        "_positions", "_whole",
        "count", "entry", "grown", "phrases", "ranked",
    )  # fmt: skip

    def __init__(self, index: Reader, entry: Entry) -> None:
        self._index = index
        self.entry = entry
        self.count = entry.frequency
        self.grown = True
        """Whether it takes more memory than when it was last kept."""
        self._pages: dict[int, bytes] = {}
        self._parts = 1 if entry.page_lengths is None else int(np.count_nonzero(entry.page_lengths))
        self._whole = entry.inline is not None
        self._filled = False
        self._positions: dict[int, Array] = {}
        self._array: Array | None = None
        self._bits: Array | None = None
        self._done: Array | None = None
        self._counts: Array | None = None
        self._counts_known = False
        self.phrases: Any = None
        """What `phrases` keeps of the word."""
        self.ranked: Any = None
        """What `ranking` keeps of the word."""

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        held = [self._array, self._bits, self._counts, *self._positions.values()]
        total = sum(one.nbytes for one in held if one is not None) + sum(map(len, self._pages.values()))
        kept = (one.size for one in (self.phrases, self.ranked) if one is not None)
        return int(total + 600 + sum(kept))

    @property
    def cut(self) -> bool:
        """Whether the list is cut into pages."""
        return self.entry.page_lengths is not None

    # Lists

    def missing(self, pages: Array | None = None) -> list[tuple[int, int, int]]:
        """Parts of the list that are not here yet: page, offset and length."""
        entry = self.entry
        if self._whole:
            return []
        if entry.page_lengths is None:
            return [(0, entry.offset, entry.length)]
        at = starts_of(entry.page_lengths)
        wanted = range(len(entry.page_lengths)) if pages is None else pages.tolist()
        return [
            (page, entry.offset + int(at[page]), int(entry.page_lengths[page]))
            for page in wanted
            if entry.page_lengths[page] and page not in self._pages
        ]

    def put(self, page: int, raw: bytes) -> None:
        """A part of the list, as it was read."""
        self._pages[page] = raw
        self._whole = len(self._pages) == self._parts
        self.grown = True

    def _span(self, page: int) -> int:
        return min(PAGE, self._index.rows - page * PAGE) if self.cut else self._index.rows

    def _frequency(self, page: int) -> int:
        per_page = self.entry.page_frequencies
        return self.count if per_page is None else int(per_page[page])

    def array(self) -> Array:
        """The rows, ascending."""
        if self._array is None:
            entry = self.entry
            if entry.inline is not None:
                self._array = _inline_rows(entry, self._index.rows)
            elif not self.cut:
                read_lists(self._index, [(self, None)])
                self._array = page_rows(self._pages[0], self.count, self._index.rows)
            else:
                self._array = self._all_rows()
            self.grown = True
        return self._array

    def _all_rows(self) -> Array:
        """The rows of a list that is cut."""
        if self._filled and self._bits is not None:
            return unpack(self._bits)
        read_lists(self._index, [(self, None)])
        return self._rows_of(sorted(self._pages))

    def bits(self) -> Array:
        """The bitmap of the rows."""
        if self.cut and not self._filled:
            self._fill(None)
        elif self._bits is None:
            self._bits = pack(self.array(), self._index.rows)
            self.grown = True
        assert self._bits is not None
        return self._bits

    def _fill(self, pages: Array | None) -> None:
        """Make some pages of the bitmap."""
        entry = self.entry
        assert entry.page_lengths is not None
        if pages is not None and self._done is not None and self._done[pages].all():
            return
        read_lists(self._index, [(self, pages)])
        with _MAKING:
            # Both at once: threads that share a word must not mark pages of another's bitmap.
            if self._bits is None or self._done is None:
                self._bits, self._done = empty_bits(self._index.rows), entry.page_lengths == 0
        self.grown = True
        todo = np.arange(len(self._done)) if pages is None else pages
        for page in todo[~self._done[todo]].tolist():
            found = page_bits(self._pages[page], self._frequency(page), self._span(page))
            self._bits[page * PAGE // 8 : page * PAGE // 8 + len(found)] = found
            self._done[page] = True
        self._filled = bool(self._done.all())

    def test(self, rows: Array) -> Array:
        """Which of some ascending rows are in the list."""
        if self.cut:
            if not self._filled:
                self._fill(pages_of(rows, self._index.rows))
            assert self._bits is not None
            return has(self._bits, rows)
        if self._bits is not None or self.count * TESTED > self._index.rows:
            return has(self.bits(), rows)
        return found_in(self.array(), rows)[1]

    def counts(self) -> Array | None:
        """Occurrences in every row; None when they are all 1."""
        if not self._counts_known:
            self._counts = self._decoded_counts()
            self._counts_known = self.grown = True
        return self._counts

    def _decoded_counts(self) -> Array | None:
        entry = self.entry
        if entry.inline is not None:
            return _inline_counts(entry)
        read_lists(self._index, [(self, None)])
        if not self.cut:
            return page_counts(self._pages[0], self.count)
        parts = [(page_counts(raw, self._frequency(page)), page) for page, raw in sorted(self._pages.items())]
        return _joined_counts(parts, self._frequency)

    # Positions

    def missing_positions(self, pages: Array) -> list[tuple[int, int, int]]:
        """Positions that are not here yet: page, offset and length. A list that is not cut is one page, 0."""
        entry = self.entry
        if not self.cut:
            return [] if self._positions else [(0, entry.position_offset, entry.position_length)]
        lengths = entry.page_position_lengths
        assert lengths is not None
        at = starts_of(lengths)
        return [
            (page, entry.position_offset + int(at[page]), int(lengths[page]))
            for page in pages.tolist()
            if lengths[page] and page not in self._positions
        ]

    def put_positions(self, page: int, raw: bytes) -> None:
        """Positions, as they were read."""
        found = _decoded_positions(raw)
        entry = self.entry
        if entry.inline is not None:
            found = found[entry.first_position : entry.first_position + entry.occurrences]
        self._positions[page] = found
        self.grown = True

    def occurrences(self, pages: Array) -> tuple[Array, Array | None, Array]:
        """Rows, occurrences and positions of pages whose positions are here; of the whole list if uncut."""
        if not self.cut:
            rows, counts, positions = self.array(), self.counts(), self._positions[0]
        else:
            some = [page for page in pages.tolist() if page in self._positions]
            rows = self._rows_of(some)
            counted = [(page_counts(self._pages[page], self._frequency(page)), page) for page in some]
            counts = _joined_counts(counted, self._frequency)
            held = [self._positions[page] for page in some]
            positions = held[0] if len(held) == 1 else np.concatenate(held) if held else NO_ROWS
        if len(positions) != (len(rows) if counts is None else int(counts.sum(dtype=np.int64))):
            raise damaged("a word has other positions than occurrences")
        return rows, counts, positions

    def _rows_of(self, pages: Sequence[int]) -> Array:
        if self._array is not None:
            edges = np.array([(page * PAGE, (page + 1) * PAGE) for page in pages], np.int64)
            at = np.searchsorted(self._array, edges)
            return np.concatenate([self._array[a:b] for a, b in at]) if len(at) else NO_ROWS
        if self._bits is not None and self._done is not None and len(pages) and self._done[pages].all():
            first = pages[0] * PAGE // 8
            last = min(len(self._bits), (pages[-1] + 1) * PAGE // 8)
            if pages[-1] - pages[0] + 1 == len(pages):
                return unpack(self._bits[first:last]) + np.uint32(pages[0] * PAGE)
        found = [
            page_rows(self._pages[page], self._frequency(page), self._span(page)) + np.uint32(page * PAGE)
            for page in pages
        ]
        return np.concatenate(found) if found else NO_ROWS


def pages_of(rows: Array, universe: int) -> Array:
    """The pages that rows lie in."""
    touched = np.zeros(page_count(universe), bool)
    touched[rows >> np.uint32(_PAGE_BITS)] = True
    return touched.nonzero()[0]


def _joined_counts(parts: Iterable[tuple[Array | None, int]], frequency: Any) -> Array | None:
    held = list(parts)
    if all(counts is None for counts, _ in held):
        return None
    return np.concatenate(
        [np.ones(frequency(page), np.uint32) if counts is None else counts for counts, page in held]
    )


@believing("a short list")
def _inline_rows(entry: Entry, rows: int) -> Array:
    assert entry.inline is not None
    found = np.cumsum(unvarints(entry.inline), dtype=np.uint32)
    if len(found) != entry.frequency or found[-1] >= rows:
        raise damaged("a list has other rows than were written")
    return found


@believing("a short list")
def _inline_counts(entry: Entry) -> Array | None:
    return counts_of(entry.tail, entry.frequency)


@believing("positions")
def _decoded_positions(raw: bytes) -> Array:
    return unplanes(raw)


def read_lists(index: Reader, wanted: Sequence[tuple[Word, Array | None]]) -> None:
    """Read the parts of several words' lists that are not here yet, in one round trip."""
    parts = [(word, *part) for word, pages in wanted for part in word.missing(pages)]
    _read(index, "lists", parts)


def read_positions(index: Reader, wanted: Sequence[tuple[Word, Array]]) -> None:
    """Read the positions of several words that are not here yet, in one round trip."""
    parts = [(word, *part) for word, pages in wanted for part in word.missing_positions(pages)]
    _read(index, "positions", parts)


def _read(index: Reader, piece: str, parts: Sequence[tuple[Word, int, int, int]]) -> None:
    if not parts:
        return
    distinct = list(dict.fromkeys((offset, length) for _, _, offset, length in parts))
    data = dict(zip(distinct, index.read_piece(piece, distinct), strict=True))
    opened: dict[int, bytes] = {}
    for word, page, offset, length in parts:
        raw = opened.get(offset)
        if raw is None:
            raw = opened[offset] = unframe(data[offset, length], offset, piece)
        if piece == "lists":
            word.put(page, raw)
        else:
            word.put_positions(page, raw)
