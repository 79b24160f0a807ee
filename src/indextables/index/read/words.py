"""The postings of one word of an open index: rows, occurrences and positions, decoded when they are needed.

`read_lists` and `read_positions` read what is missing of several words in one round trip and
add it to them. Postings may be cached between searches; what was decoded stays with them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from indextables.index.codec.blocks import Entry
from indextables.index.codec.lists import (
    PAGE,
    empty_bits,
    has,
    is_bitmap,
    pack,
    page_bits,
    page_count,
    page_rows,
    pages_repeats,
    pages_rows,
    ranks,
    repeats_of,
    unpack,
)
from indextables.index.codec.numbers import (
    Array,
    Bytes,
    Planes,
    damaged,
    decodes,
    few_varints,
    part_of_planes,
    starts_of,
    unframe,
    unplanes,
)
from indextables.index.read.rowset import NO_ROWS, TESTED, find_in


class Reader(Protocol):
    """The index that a word belongs to."""

    rows: int

    def read_piece(self, piece: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """Byte ranges of one section, in one round trip."""
        ...


class Frame:
    """One page of a list or of positions as stored, decoded when it is first used; words may share it."""

    __slots__ = ("_data", "_offset", "_piece", "_raw")

    def __init__(self, data: Bytes, offset: int, piece: str, raw: bytes | None = None) -> None:
        self._data: Bytes = data
        self._offset = offset
        self._piece = piece
        self._raw = raw

    def __len__(self) -> int:
        return len(self._data if self._raw is None else self._raw)

    def open(self) -> bytes:
        """The decoded content."""
        raw = self._raw
        if raw is None:
            raw = self._raw = unframe(self._data, self._offset, self._piece)
            self._data = b""
        return raw


_BITS_LOCK = threading.Lock()
_BITMAP_FROM = 32
"""If more than one in this many rows of a list is looked up, its bitmap is made for that."""
_PAGE_BITS = PAGE.bit_length() - 1


class WordPostings:
    """The postings of a word of a field: a set of rows for `rowset`, with occurrences and positions."""

    __slots__ = (
        "_array", "_bits", "_counts", "_done", "_filled", "_index", "_pages", "_parts", "_positions",
        "_repeats",
        "count", "entry", "grown", "impact_cache", "position_cache", "whole",
    )  # fmt: skip

    def __init__(self, index: Reader, entry: Entry) -> None:
        self._index = index
        self.entry = entry
        self.count = entry.frequency
        self.grown = True
        """Whether it takes more memory than when it was last cached."""
        self._pages: dict[int, Frame] = {}
        self._parts = 1 if entry.page_lengths is None else int(np.count_nonzero(entry.page_lengths))
        self.whole = entry.inline is not None
        """Whether its complete list has been read."""
        self._filled = False
        """Whether the bitmap has all pages."""
        self._positions: dict[int, Frame] = {}
        self._array: Array | None = None
        self._bits: Array | None = None
        self._done: Array | None = None
        """Which pages the bitmap has."""
        self._counts: Array | None = None
        self._repeats: tuple[Array, Array] | None = None
        """What `repeats` returns."""
        self.position_cache: Any = None
        """A `PositionCache`, if the word was part of a phrase."""
        self.impact_cache: Any = None
        """An `ImpactCache`, if the word was ranked."""

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        arrays = [self._array, self._bits, self._counts, *(self._repeats or ())]
        total = sum(array.nbytes for array in arrays if array is not None)
        total += sum(map(len, self._pages.values())) + sum(map(len, self._positions.values()))
        caches = (self.position_cache, self.impact_cache)
        return int(total + 600 + sum(cache.size for cache in caches if cache is not None))

    @property
    def cut(self) -> bool:
        """Whether the list is divided into pages."""
        return self.entry.page_lengths is not None

    # Lists

    def missing(self, pages: Array | None = None) -> list[tuple[int, int, int]]:
        """Parts of the list that have not been read: page, offset and length."""
        entry = self.entry
        if self.whole:
            return []
        if entry.page_lengths is None:
            return [(0, entry.offset, entry.length)]
        lengths = entry.page_lengths.tolist()
        at = list(accumulate(lengths, initial=entry.offset))
        numbers = range(len(lengths)) if pages is None else pages.tolist()
        return [
            (page, at[page], lengths[page]) for page in numbers if lengths[page] and page not in self._pages
        ]

    def put(self, page: int, frame: Frame) -> None:
        """Add a part of the list that was read."""
        self._pages[page] = frame
        self.whole = len(self._pages) == self._parts
        self.grown = True

    def _page(self, page: int) -> tuple[bytes, int]:
        """A page, and how many rows it holds."""
        per_page = self.entry.page_frequencies
        return self._pages[page].open(), self.count if per_page is None else int(per_page[page])

    def _span(self, page: int) -> int:
        return min(PAGE, self._index.rows - page * PAGE) if self.cut else self._index.rows

    def array(self) -> Array:
        """The rows, ascending."""
        if self._array is None:
            entry = self.entry
            if entry.inline is not None:
                self._array = _inline_rows(entry, self._index.rows)
            elif not self.cut:
                read_lists(self._index, [(self, None)])
                self._array = page_rows(*self._page(0), self._index.rows)
            else:
                self._array = self._all_rows()
            self.grown = True
        return self._array

    def _all_rows(self) -> Array:
        """The rows of a paged list."""
        if self._filled and self._bits is not None:
            return unpack(self._bits)
        read_lists(self._index, [(self, None)])
        return self._rows_of(sorted(self._pages))

    def bits(self) -> Array:
        """The bitmap of the rows."""
        if self.cut and not self._filled:
            self._fill(None)
        elif self._bits is None:
            universe = self._index.rows
            self._bits = (
                page_bits(*self._page(0), universe) if self._is_bitmap() else pack(self.array(), universe)
            )
            self.grown = True
        assert self._bits is not None
        return self._bits

    def _is_bitmap(self) -> bool:
        """Whether the list is a single page, stored as a bitmap."""
        if self.entry.inline is not None or self.cut:
            return False
        if not self.whole:
            read_lists(self._index, [(self, None)])
        return is_bitmap(self._pages[0].open())

    def _at(self, rows: Array) -> Array:
        """The indexes of some of its rows in the list."""
        if self._array is None and (self.cut or self._is_bitmap()):
            return ranks(self.bits(), rows)
        return self.array().searchsorted(rows)

    def _fill(self, pages: Array | None) -> None:
        """Fill in some pages of the bitmap."""
        entry = self.entry
        assert entry.page_lengths is not None
        if pages is not None and self._done is not None and self._done[pages].all():
            return
        read_lists(self._index, [(self, pages)])
        with _BITS_LOCK:
            # Both are replaced together: threads that share a word must not mark pages of another's bitmap.
            if self._bits is None or self._done is None:
                self._bits, self._done = empty_bits(self._index.rows), entry.page_lengths == 0
        self.grown = True
        todo = np.arange(len(self._done)) if pages is None else pages
        missing = todo[~self._done[todo]].tolist()
        sparse = [page for page in missing if not is_bitmap(self._pages[page].open())]
        if sparse:
            bits = pack(self._rows_of(sparse), self._index.rows)
        for page in missing:
            begin = page * PAGE // 8
            if page in sparse:
                self._bits[begin : begin + PAGE // 8] = bits[begin : begin + PAGE // 8]
            else:
                in_page = page_bits(*self._page(page), self._span(page))
                self._bits[begin : begin + len(in_page)] = in_page
            self._done[page] = True
        self._filled = bool(self._done.all())

    def test(self, rows: Array) -> Array:
        """For some ascending rows, whether each is in the list."""
        if self.cut:
            if not self._filled:
                self._fill(pages_of(rows, self._index.rows))
            assert self._bits is not None
            return has(self._bits, rows)
        if self._bits is not None or self._is_bitmap() or self._worth_a_bitmap(rows):
            return has(self.bits(), rows)
        return find_in(self.array(), rows)[1]

    def _worth_a_bitmap(self, rows: Array) -> bool:
        return self.count * TESTED > self._index.rows and len(rows) * _BITMAP_FROM > self.count

    def repeats(self) -> tuple[Array, Array]:
        """The rows with more than one occurrence, by their index in the list, and how many they have."""
        if self._repeats is None:
            entry = self.entry
            if entry.inline is not None:
                self._repeats = _inline_repeats(entry)
            else:
                read_lists(self._index, [(self, None)])
                self._repeats = self._repeats_of(sorted(self._pages))
            self.grown = True
        return self._repeats

    def _repeats_of(self, pages: Sequence[int]) -> tuple[Array, Array]:
        """The same for some pages of the list; indexes count from the first row of these."""
        return pages_repeats([self._page(page) for page in pages])

    def counts(self) -> Array | None:
        """Occurrences in every row; None when they are all 1."""
        if self._counts is None:
            repeated, counts = self.repeats()
            if not len(repeated):
                return None
            self._counts = np.ones(self.count, np.uint32)
            self._counts[repeated] = counts
            self.grown = True
        return self._counts

    def counts_in(self, rows: Array) -> Array:
        """The number of occurrences in each of some ascending rows; only the pages of these rows are used."""
        counts: Array = self.test(rows).astype(np.uint32)
        present = counts.nonzero()[0]
        if not len(present):
            return counts
        listed = rows if len(present) == len(rows) else rows.take(present)
        if not self.cut or self._repeats is not None:
            repeated, repeats = self.repeats()
            if not len(repeated):
                return counts
            at = self._at(listed)
        else:
            pages = pages_of(listed, self._index.rows)
            repeated, repeats = self._repeats_of(pages.tolist())
            if not len(repeated):
                return counts
            at = self._ranks(listed, pages)
        k = repeated.searchsorted(at)
        hit = (repeated.take(k, mode="clip") == at).nonzero()[0]
        counts[present.take(hit)] = repeats.take(k.take(hit))
        return counts

    # Positions

    def missing_positions(self, pages: Array) -> list[tuple[int, int, int]]:
        """Positions that are not read yet: page, offset and length. A list of one page has page 0."""
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

    def put_positions(self, page: int, frame: Frame) -> None:
        """Add positions that were read."""
        self._positions[page] = frame
        self.grown = True

    def _planes(self, page: int) -> bytes:
        """The positions of a page as byte planes."""
        raw, entry = self._positions[page].open(), self.entry
        if entry.inline is not None and len(raw) > 1 + entry.occurrences * raw[0]:
            # Positions are stored for all short words of a block together; only this word's are kept.
            raw = part_of_planes(raw, entry.first_position, entry.occurrences)
            self._positions[page] = Frame(b"", 0, "positions", raw)
        return raw

    def _all_positions(self, pages: Sequence[int]) -> Array:
        return _joined([_decoded_positions(self._planes(page)) for page in pages])

    def occurrences(self, pages: Array) -> tuple[Array, Array | None, Array]:
        """Rows, counts and positions of the pages whose positions were read; of an uncut list, all."""
        if not self.cut:
            rows, counts, positions = self.array(), self.counts(), self._all_positions([0])
        else:
            numbers = [page for page in pages.tolist() if page in self._positions]
            rows, counts = self._rows_of(numbers), None
            repeated, repeats = self._repeats_of(numbers)
            if len(repeated):
                counts = np.ones(len(rows), np.uint32)
                counts[repeated] = repeats
            positions = self._all_positions(numbers)
        if len(positions) != (len(rows) if counts is None else int(counts.sum(dtype=np.int64))):
            raise damaged("a word has more or fewer positions than occurrences")
        return rows, counts, positions

    def located(self, rows: Array, pages: Array) -> tuple[Array, Array | None, Planes]:
        """For ascending rows of the list: the start and number of each one's positions, and all positions.

        `pages` are the pages of these rows if the list is cut; their positions have been read. None means one
        position each.
        """
        if not self.cut:
            total, (repeated, repeats), positions = self.count, self.repeats(), _planes([self._planes(0)])
            at = np.arange(total) if len(rows) == total else self._at(rows)
        else:
            numbers = pages.tolist()
            assert self.entry.page_frequencies is not None
            total = int(self.entry.page_frequencies.take(pages).sum())
            repeated, repeats = self._repeats_of(numbers)
            positions = _planes([self._planes(page) for page in numbers])
            at = np.arange(total) if len(rows) == total else self._ranks(rows, pages)
        if len(positions) != total + int(repeats.sum(dtype=np.int64)) - len(repeats):
            raise damaged("a word has more or fewer positions than occurrences")
        if not len(repeated):
            return at, None, positions
        # A row's positions begin after one for each earlier row and the further ones of repeated rows.
        k = repeated.searchsorted(at)
        further = starts_of(repeats - np.uint32(1))
        size = np.ones(len(rows), np.int64)
        hit = (repeated.take(k, mode="clip") == at).nonzero()[0]
        size[hit] = repeats.take(k.take(hit))
        return at + further.take(k), size, positions

    def _ranks(self, rows: Array, pages: Array) -> Array:
        """The indexes of rows among the rows of their pages."""
        self._fill(pages)
        assert self._bits is not None
        first, last = int(pages[0]), int(pages[-1]) + 1
        bits = self._bits[first * PAGE // 8 : last * PAGE // 8]
        if last - first == len(pages):
            return ranks(bits, rows - np.uint32(first * PAGE))
        step = PAGE // 8
        in_pages = [bits[(page - first) * step : (page - first + 1) * step] for page in pages.tolist()]
        number = np.zeros(last, np.int64)
        number[pages] = np.arange(len(pages))
        moved = (number << _PAGE_BITS).take(rows >> np.uint32(_PAGE_BITS)) + (rows & np.uint32(PAGE - 1))
        return ranks(np.concatenate(in_pages), moved)

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
        if not len(pages):
            return NO_ROWS
        stored = [(*self._page(page), self._span(page)) for page in pages]
        return pages_rows(stored, [page * PAGE for page in pages])


def pages_of(rows: Array, universe: int) -> Array:
    """The pages of some rows."""
    touched = np.zeros(page_count(universe), bool)
    touched[rows >> np.uint32(_PAGE_BITS)] = True
    return touched.nonzero()[0]


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else NO_ROWS


@decodes("a short list")
def _inline_rows(entry: Entry, rows: int) -> Array:
    assert entry.inline is not None
    listed = list(accumulate(few_varints(entry.inline)))
    if len(listed) != entry.frequency or listed[-1] >= rows:
        raise damaged("a list does not hold the rows that were written")
    return np.array(listed, np.uint32)


@decodes("a short list")
def _inline_repeats(entry: Entry) -> tuple[Array, Array]:
    return repeats_of(entry.tail, entry.frequency)


@decodes("positions")
def _planes(texts: Sequence[bytes]) -> Planes:
    return Planes(texts)


@decodes("positions")
def _decoded_positions(raw: bytes) -> Array:
    return unplanes(raw)


def read_lists(index: Reader, words: Sequence[tuple[WordPostings, Array | None]]) -> None:
    """Read the missing parts of words' lists, of some pages or (None) of all, in one round trip."""
    parts = [(word, *part) for word, pages in words for part in word.missing(pages)]
    if parts:
        data = _read(index, "lists", parts)
        frames = {offset: Frame(stored, offset, "lists") for offset, stored in data.items()}
        for word, page, offset, _ in parts:
            word.put(page, frames[offset])


def read_positions(index: Reader, words: Sequence[tuple[WordPostings, Array]]) -> None:
    """Read the missing positions of words in some pages, in one round trip."""
    parts = [(word, *part) for word, pages in words for part in word.missing_positions(pages)]
    if parts:
        data = _read(index, "positions", parts)
        frames = {offset: Frame(stored, offset, "positions") for offset, stored in data.items()}
        for word, page, offset, _ in parts:
            word.put_positions(page, frames[offset])


def _read(index: Reader, piece: str, parts: Sequence[tuple[WordPostings, int, int, int]]) -> dict[int, Bytes]:
    """The bytes of parts by their offset; adjacent parts are read as one range."""
    distinct = sorted({(offset, length) for _, _, offset, length in parts})
    ranges: list[tuple[int, int]] = []
    end = -1
    for offset, length in distinct:
        if offset == end:
            ranges[-1] = (ranges[-1][0], end + length - ranges[-1][0])
        else:
            ranges.append((offset, length))
        end = offset + length
    by_offset: dict[int, Bytes] = {}
    bodies = iter(zip(ranges, index.read_piece(piece, ranges), strict=True))
    first, last, data = 0, -1, memoryview(b"")
    for offset, length in distinct:
        if offset >= last:
            (first, size), whole = next(bodies)
            last, data = first + size, memoryview(whole)
        by_offset[offset] = data[offset - first : offset - first + length]
    return by_offset
