"""Dictionary blocks: sorted words with their frequencies, their short lists, and offsets of long lists.

A block is about 4 KB of columns. Words are stored without the prefix they share with the
one before; every sixteenth word is stored whole, and a search in the block starts at
these. A word becomes an object only when it is looked up.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from indextables.index.codec.lists import counts_of, is_cut, page_count
from indextables.index.codec.numbers import (
    Array,
    column_ranges,
    damaged,
    decodes,
    read_column,
    read_columns,
    starts_of,
    unvarints,
    write_columns,
)
from indextables.records import dataclass

BLOCK_BYTES = 4 << 10
"""Approximate size of a block before compression."""
RESTART = 16
"""Every this many words one is stored whole."""
_COLUMNS = 19
_SHARED, _SUFFIX_LENGTHS, _SUFFIXES, _FREQUENCIES, _INLINE_LENGTHS, _INLINE, _TAIL_LENGTHS, _TAILS, _EXTRA = (
    range(9)
)
(
    _LONG, _LIST_OFFSETS, _LIST_LENGTHS, _POSITION_OFFSETS, _POSITION_LENGTHS,
    _PAGE_FREQUENCIES, _PAGE_LENGTHS, _PAGE_POSITION_LENGTHS, _SHORT_POSITIONS, _SEPARATE,
) = range(9, _COLUMNS)  # fmt: skip
"""The columns that a search for one word needs, by their number in BlockColumns."""
_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class BlockColumns:
    """The contents of a block, by column; byte strings belong to all words of the block."""

    shared: Array
    """For every word, how many bytes it shares with the one before it."""
    suffix_lengths: Array
    suffixes: bytes
    frequencies: Array
    inline_lengths: Array
    inline: bytes
    """Lists of words in few rows, stored in the block itself."""
    tail_lengths: Array
    tails: bytes
    """The occurrences above 1 in those lists."""
    extra: Array
    """Occurrences beyond one per row of every short word, if positions are kept."""
    long: Array
    """The words whose lists are stored outside the dictionary."""
    list_offsets: Array
    list_lengths: Array
    position_offsets: Array
    position_lengths: Array
    page_frequencies: Array
    """For every paged list: rows, list bytes and position bytes of each page."""
    page_lengths: Array
    page_position_lengths: Array
    short_positions: Array
    """Offset and length of the positions of the short words, if there are any."""
    separate: Array
    """1 if lists are divided into pages."""

    def encode(self) -> bytes:
        """The block as bytes."""
        return write_columns([getattr(self, name) for name in self.__slots__])

    @staticmethod
    @decodes("a block of words")
    def decode(raw: bytes) -> BlockColumns:
        """The columns that `encode` wrote."""
        columns = read_columns(raw)
        if len(columns) != _COLUMNS:
            raise damaged("a dictionary block lacks columns that were written")
        return BlockColumns(*columns)


class Entry(NamedTuple):
    """One word of a dictionary: its number of rows, and where its list and positions are."""

    frequency: int
    inline: bytes | None = None
    """The list itself, if it is stored in the dictionary; otherwise offset and length locate it."""
    tail: bytes = b""
    offset: int = 0
    length: int = 0
    position_offset: int = 0
    position_length: int = 0
    first_position: int = 0
    """Where the positions of a short word begin among those of its block's short words."""
    occurrences: int = 0
    """Number of positions of a short word."""
    page_frequencies: Array | None = None
    """Per page, for a paged list."""
    page_lengths: Array | None = None
    page_position_lengths: Array | None = None


class Block:
    """A block of sorted words; its columns are decoded when they are needed."""

    @decodes("a block of words")
    def __init__(self, raw: bytes, rows: int) -> None:
        self.rows = rows
        self._raw = raw
        self._ranges = column_ranges(raw)
        if len(self._ranges) != _COLUMNS:
            raise damaged("a dictionary block lacks columns that were written")
        lengths = self._column(_SUFFIX_LENGTHS)
        self.count = len(lengths)
        self.suffix_at = starts_of(lengths)
        _, self._suffixes, end = self._ranges[_SUFFIXES]
        if self.suffix_at[-1] != end - self._suffixes or not self.count:
            raise damaged("a dictionary block does not hold the words that were written")
        self._suffix = self.suffix_at.data
        self.size = len(raw) + 8 * len(self.suffix_at) + 500
        self._entries: dict[bytes, Entry | None] = {}

    @cached_property
    def columns(self) -> BlockColumns:
        """All columns."""
        return BlockColumns.decode(self._raw)

    def _column(self, number: int) -> Any:
        return read_column(self._raw, *self._ranges[number])

    def _has(self, column: int) -> bool:
        _, begin, end = self._ranges[column]
        return end > begin

    def _number(self, column: int, at: int) -> int:
        width, begin, _ = self._ranges[column]
        begin += at * width
        return int.from_bytes(self._raw[begin : begin + width], "little")

    def lower_bound(self, word: bytes) -> tuple[int, bytes | None]:
        """The index of the first word that is not below `word`, and that word; None if there is none."""
        low, high = 0, (self.count - 1) // RESTART + 1
        raw, begin, ends = self._raw, self._suffixes, self._suffix
        while high - low > 1:
            middle = (low + high) // 2
            at = middle * RESTART
            if raw[begin + ends[at] : begin + ends[at + 1]] <= word:
                low = middle
            else:
                high = middle
        at = low * RESTART
        width, first, _ = self._ranges[_SHARED]
        current = b""
        while at < self.count:
            offset = first + at * width
            shared = raw[offset] if width == 1 else int.from_bytes(raw[offset : offset + width], "little")
            current = current[:shared] + raw[begin + ends[at] : begin + ends[at + 1]]
            if current >= word:
                return at, current
            at += 1
        return at, None

    @decodes("a block of words")
    def find(self, word: bytes) -> Entry | None:
        """The entry of a word, or None; it is cached as long as the block is."""
        try:
            return self._entries[word]
        except KeyError:
            at, first = self.lower_bound(word)
            entry = self.entry(at) if first == word else None
            if len(self._entries) < _REMEMBERED:
                self._entries[word] = entry
            return entry

    @decodes("a block of words")
    def spelling(self) -> tuple[Array, Array, bytes]:
        """For every word the bytes it shares with the one before and its own; and all of their own bytes."""
        _, begin, end = self._ranges[_SUFFIXES]
        return self._column(_SHARED), self._column(_SUFFIX_LENGTHS), self._raw[begin:end]

    def words(self) -> list[bytes]:
        """Every word."""
        words, current = [], b""
        c = self.columns
        at = self.suffix_at.tolist()
        for shared, begin, end in zip(c.shared.tolist(), at, at[1:], strict=False):
            current = current[:shared] + c.suffixes[begin:end]
            words.append(current)
        return words

    @cached_property
    def inline_at(self) -> Array:
        """The offsets of the short lists."""
        return starts_of(self._column(_INLINE_LENGTHS))

    @cached_property
    def tail_at(self) -> Array:
        """The offsets of the occurrences of short lists."""
        return starts_of(self._column(_TAIL_LENGTHS))

    @cached_property
    def position_at(self) -> Array:
        """The offsets of the positions of short words."""
        c = self.columns
        return starts_of(np.where(c.inline_lengths > 0, c.frequencies.astype(np.int64) + c.extra, 0))

    def _before(self, column: int, at: int) -> int:
        """The sum of a column's numbers before an index."""
        width, begin, _ = self._ranges[column]
        if not at:
            return 0
        if width == 1:
            return sum(self._raw[begin : begin + at])
        return int(self._column(column)[:at].sum(dtype=np.int64))

    def _short(self, at: int, frequency: int, length: int) -> Entry:
        """The entry of a word whose list is in the block."""
        begin = self._ranges[_INLINE][1] + self._before(_INLINE_LENGTHS, at)
        inline = self._raw[begin : begin + length]
        tail = b""
        size = self._number(_TAIL_LENGTHS, at)
        if size:
            begin = self._ranges[_TAILS][1] + self._before(_TAIL_LENGTHS, at)
            tail = self._raw[begin : begin + size]
        stored = self._column(_SHORT_POSITIONS)
        if not len(stored):
            return Entry(frequency, inline, tail)
        # Long words have a frequency, but no inline list and no extra occurrences.
        first = self._before(_FREQUENCIES, at) + self._before(_EXTRA, at)
        long = self._column(_LONG)
        if len(long):
            earlier = long[: long.searchsorted(at)]
            first -= int(self._column(_FREQUENCIES).take(earlier).sum(dtype=np.int64))
        occurrences = frequency + self._number(_EXTRA, at)
        return Entry(frequency, inline, tail, 0, 0, int(stored[0]), int(stored[1]), first, occurrences)

    def entry(self, at: int) -> Entry:
        """The entry of the word at an index."""
        frequency = self._number(_FREQUENCIES, at)
        length = self._number(_INLINE_LENGTHS, at)
        if length:
            return self._short(at, frequency, length)
        k = int(self._column(_LONG).searchsorted(at))
        offset, size = self._number(_LIST_OFFSETS, k), self._number(_LIST_LENGTHS, k)
        positions = (0, 0)
        if self._has(_POSITION_OFFSETS):
            positions = self._number(_POSITION_OFFSETS, k), self._number(_POSITION_LENGTHS, k)
        if not is_cut(frequency, self.rows):
            return Entry(
                frequency,
                offset=offset,
                length=size,
                position_offset=positions[0],
                position_length=positions[1],
            )
        pages = page_count(self.rows)
        begin = self._before(_SEPARATE, k) * pages
        cuts = [
            self._column(column)[begin : begin + pages] if self._has(column) else None
            for column in (_PAGE_FREQUENCIES, _PAGE_LENGTHS, _PAGE_POSITION_LENGTHS)
        ]
        return Entry(frequency, None, b"", offset, size, *positions, 0, 0, *cuts)

    @decodes("the short lists of a block")
    def short_rows(self, begin: int, end: int) -> tuple[Array, Array]:
        """The rows of all short words in a range, concatenated, and how many each word has."""
        c = self.columns
        sizes = c.frequencies[begin:end][c.inline_lengths[begin:end] > 0].astype(np.int64)
        steps = unvarints(c.inline[int(self.inline_at[begin]) : int(self.inline_at[end])])
        first = starts_of(sizes)
        if first[-1] != len(steps):
            raise damaged("a dictionary block does not hold the lists that were written")
        if not len(steps):
            return steps, sizes
        total = np.cumsum(steps, dtype=np.int64)
        at = first[:-1]
        total -= np.repeat(total[at] - steps[at], sizes)
        if total.max() >= self.rows:
            raise damaged("a list has a row beyond the last")
        return total.astype(np.uint32), sizes

    @decodes("the occurrences of a block")
    def short_counts(self, begin: int, end: int, sizes: Array) -> Array | None:
        """The occurrences for those rows; None when all are 1."""
        c = self.columns
        short = (c.inline_lengths[begin:end] > 0).nonzero()[0] + begin
        repeated = (c.tail_lengths[short] > 0).nonzero()[0]
        if not len(repeated):
            return None
        first = starts_of(sizes)
        counts = np.ones(int(first[-1]), np.uint32)
        for k in repeated.tolist():
            at = int(short[k])
            tail = c.tails[int(self.tail_at[at]) : int(self.tail_at[at + 1])]
            of_word = counts_of(tail, int(sizes[k]))
            assert of_word is not None
            counts[int(first[k]) : int(first[k + 1])] = of_word
        return counts
