"""An open index: looks up words, and properties of its fields and rows, by reading byte ranges.

Opening takes one read of the root, whose length the caller knows; a small index is read
completely by it. After that a word costs its dictionary block, and its list only if that
is not in the block.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from indextables.index.codec.blocks import Block, Entry
from indextables.index.codec.lengths import NORM_PAGE
from indextables.index.codec.numbers import Array, Bytes, damaged, starts_of, unframe
from indextables.index.codec.root import PIECES, FieldRoot, Root, decode_root
from indextables.index.read.cache import MEMORY, BlockCache, RangeReader
from indextables.index.read.live_rows import LiveRows
from indextables.index.read.word_list import WordList
from indextables.index.read.word_list import word_list as decode_words
from indextables.index.read.words import Frame, WordPostings
from indextables.index.settings import FAST, IndexField, IndexSpec

_BLOCKS_AT_ONCE = 64
SMALL_INDEX = 64 << 10
"""An index of at most this many bytes is read completely."""
_REMEMBERED = 512
_ROWS_A_PAGE = 8
"""A word in more rows than this for each page of length classes is taken to need all of them."""
_NORMS_AHEAD = 256 << 10
"""Length classes of at most so many bytes are read with a list."""
Term: TypeAlias = tuple[str, bytes]
"""A column and one of its words, spelled as in the index."""


Fields: TypeAlias = Mapping[tuple[str, str | None], tuple[int, IndexField, FieldRoot]]
"""Fields by column and kind; with None for a kind, the one of the column that queries search."""


def fields_of(spec: IndexSpec, roots: Sequence[FieldRoot]) -> Fields:
    """The number, the settings and the root of every field of an index with these settings."""
    return {key: (number, spec.fields[number], roots[number]) for key, number in spec.numbers.items()}


class BytesRanges:
    """An index in memory."""

    def __init__(self, data: Bytes, offset: int = 0) -> None:
        self._data = memoryview(data)
        self._offset = offset

    def many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        return [
            self._data[offset - self._offset : offset - self._offset + length] for offset, length in ranges
        ]


class Index:
    """An open index."""

    def __init__(
        self, root: Root, ranges: RangeReader, *, name: str = "", cache: BlockCache | None = None
    ) -> None:
        self.root = root
        self.rows = root.rows
        self.name = name
        self.cache = MEMORY if cache is None else cache
        self._ranges = ranges
        self._remembered: dict[tuple[int, bytes], Entry | None] = {}
        self.plans: dict[Any, Any] = {}
        """The plans of the last queries, stored here by `query`."""
        self.live: LiveRows | None = None
        """Which rows are there, if not all: queries are answered with the numbers of live rows."""

    def seen_through(self, live: LiveRows | None, columns: Mapping[str, str]) -> Index:
        """The same index with only its live rows, and with other names for its columns.

        A field whose column `columns` does not name answers for none.
        """
        fields = tuple(
            replace(item, column=columns.get(item.column, f"\0{item.column}")) for item in self.spec.fields
        )
        view = Index(
            replace(self.root, spec=IndexSpec(fields)), self._ranges, name=self.name, cache=self.cache
        )
        view.live = live
        return view

    @classmethod
    def open(
        cls,
        ranges: RangeReader,
        length: int,
        root_length: int,
        *,
        name: str = "",
        cache: BlockCache | None = None,
    ) -> Index:
        """Open an index of `length` bytes, whose last `root_length` bytes are the root."""
        if not 0 < root_length <= length:
            raise damaged(f"a root of {root_length} bytes does not fit an index of {length}")
        size = length if length <= SMALL_INDEX else root_length
        data = _checked(ranges.many([(length - size, size)]), [(length - size, size)])[0]
        root = decode_root(memoryview(data)[size - root_length :])
        if sum(root.pieces) + root_length != length:
            raise damaged("the pieces of the index do not add up to its length")
        return cls(root, BytesRanges(data) if size == length else ranges, name=name, cache=cache)

    @property
    def spec(self) -> IndexSpec:
        """The settings it was made with."""
        return self.root.spec

    @property
    def identity(self) -> bytes:
        """A digest that differs between indexes with different content."""
        return self.root.identity

    @cached_property
    def fields(self) -> Fields:
        """The number, the settings and the root of every field; see `fields_of`."""
        return fields_of(self.spec, self.root.fields)

    @cached_property
    def tokens(self) -> Mapping[str, int]:
        """Tokens of every column of words."""
        fields = zip(self.root.spec.fields, self.root.fields, strict=True)
        return {item.column: field.tokens for item, field in fields if field.norms or field.tokens}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes by component."""
        return dict(zip(PIECES, self.root.pieces, strict=True))

    def value_bounds(self, column: str) -> tuple[Any, Any] | None:
        """The minimum and maximum of a column of typed values; None when it has none."""
        field = self.fields.get((column, FAST))
        return None if field is None or field[2].least is None else (field[2].least, field[2].most)

    # Reading

    def read_piece(self, piece: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """Ranges of one piece, in one round trip."""
        return self.read_pieces([(piece, ranges)])

    def read_pieces(self, parts: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> Sequence[Bytes]:
        """Ranges of several pieces one after the other, in one round trip."""
        moved: list[tuple[int, int]] = []
        for piece, ranges in parts:
            at = self.root.piece_at(piece)
            end = at + self.root.pieces[PIECES.index(piece)]
            inside = [(at + offset, length) for offset, length in ranges]
            if any(offset < at or length < 0 or offset + length > end for offset, length in inside):
                raise damaged(f"a place in the {piece} lies beyond their end")
            moved += inside
        return _checked(self._ranges.many(moved), moved)

    def blocks(self, numbers: Sequence[int]) -> dict[int, Block]:
        """Dictionary blocks; those not cached are read in one round trip."""
        blocks: dict[int, Block] = {}
        missing = []
        for number in dict.fromkeys(numbers):
            block = self.cache.get((self.identity, number))
            if block is None:
                missing.append(number)
            else:
                blocks[number] = block
        if missing:
            ranges = [self.root.block_ranges[number] for number in missing]
            for number, (offset, _), data in zip(
                missing, ranges, self.read_piece("words", ranges), strict=True
            ):
                block = blocks[number] = Block(unframe(data, offset, "a block of words"), self.rows)
                self.cache.put((self.identity, number), block, block.size)
        return blocks

    def word_list(self, numbers: range) -> WordList:
        """The words of consecutive dictionary blocks; they are cached like the blocks themselves."""
        key = self.identity, ("words", numbers.start, numbers.stop)
        words: WordList | None = self.cache.get(key)
        if words is None:
            blocks = self.blocks(numbers)
            words = decode_words([blocks[number] for number in numbers], numbers.start)
            self.cache.put(key, words, words.size)
        return words

    def entries(self, words: Sequence[tuple[int, bytes]]) -> list[Entry | None]:
        """The entries of words, each given with its field number; one round trip."""
        entries: dict[tuple[int, bytes], Entry | None] = {}
        self.add_remembered(words, entries)
        missing = [key for key in words if key not in entries]
        numbers = [self.root.block_of(*key) for key in missing]
        blocks = self.blocks([number for number in numbers if number >= 0])
        for key, number in zip(missing, numbers, strict=True):
            entries[key] = None if number < 0 else blocks[number].find(key[1])
            self.remember(key, entries[key])
        return [entries[key] for key in words]

    def add_remembered(
        self, keys: Sequence[tuple[int, bytes]], entries: dict[tuple[int, bytes], Entry | None]
    ) -> bool:
        """Add the entries of words that were looked up before; returns whether `entries` has all now."""
        remembered, complete = self._remembered, True
        for key in keys:
            if key in remembered:
                entries[key] = remembered[key]
            elif key not in entries:
                complete = False
        return complete

    def remember(self, key: tuple[int, bytes], entry: Entry | None) -> None:
        """Remember the entry of a word."""
        if self.cache.max_bytes:
            if len(self._remembered) >= _REMEMBERED:
                # A new dict, since other threads may be reading the old one.
                self._remembered = {}
            self._remembered[key] = entry

    def frequencies(self, words: Sequence[Term]) -> list[int]:
        """In how many rows each word is; 0 if the column has no field. No list is read."""
        numbers = self.spec.numbers
        keys = [(numbers[column, None], word) for column, word in words if (column, None) in numbers]
        looked_up = iter(self.entries(keys))
        entries = [next(looked_up) if (column, None) in numbers else None for column, _ in words]
        return [0 if entry is None else entry.frequency for entry in entries]

    def word(self, field: int, word: bytes, entry: Entry) -> WordPostings:
        """A word by its entry; one that is cached has what was decoded of it."""
        cached = self.cache.get((self.identity, (field, word)))
        return cached if cached is not None else WordPostings(self, entry)

    def cache_word(self, field: int, text: bytes, word: WordPostings) -> None:
        """Cache a word for later searches."""
        self.cache.put((self.identity, (field, text)), word, word.size)
        word.grown = False

    def norms(self, field: int) -> Array:
        """The length class of every row of a field."""
        norms: Array | None = self.cache.get((self.identity, ("norms", field)))
        if norms is None:
            norms = self._keep_norms(field, self.read_piece("norms", [self._norm_range(field)])[0])
        return norms

    def _norm_range(self, field: int) -> tuple[int, int]:
        offsets = self._norm_offsets(field)
        return int(offsets[0]), int(offsets[-1] - offsets[0])

    def _keep_norms(self, field: int, data: Bytes) -> Array:
        offsets = self._norm_offsets(field).tolist()
        stored, first = memoryview(data), offsets[0]
        pages = [unframe(stored[a - first : b - first], a, "lengths") for a, b in pairwise(offsets)]
        norms = np.frombuffer(b"".join(pages), np.uint8)
        if len(norms) != self.rows:
            raise damaged("the number of row lengths is not the number of rows")
        self.cache.put((self.identity, ("norms", field)), norms, norms.nbytes)
        return norms

    def read_with_norms(self, word: WordPostings, field: int) -> None:
        """Read the list of a word and the length classes of all rows of its field, in one round trip.

        Nothing is read if one of them is in memory already, if the rows of the word need few of the classes,
        or if these are so many that the trip matters less.
        """
        missing, all_norms = word.missing(), self._norm_range(field)
        needs_all = word.count > _ROWS_A_PAGE * len(self.root.fields[field].norms)
        if not missing or not needs_all or all_norms[1] > _NORMS_AHEAD:
            return
        if self.cache.get((self.identity, ("norms", field))) is not None:
            return
        lists = [(offset, length) for _, offset, length in missing]
        *bodies, norms = self.read_pieces([("lists", lists), ("norms", [all_norms])])
        for (page, offset, _), body in zip(missing, bodies, strict=True):
            word.put(page, Frame(body, offset, "lists"))
        self._keep_norms(field, norms)

    def _norm_offsets(self, field: int) -> Array:
        """The offsets of a field's pages of row lengths, and the end of the last."""
        before = sum(sum(earlier.norms) for earlier in self.root.fields[:field])
        return before + starts_of(np.array(self.root.fields[field].norms, np.int64))

    def classes(self, field: int, rows: Array) -> Array:
        """The length classes of some ascending rows; only the pages with these rows are read."""
        if not len(rows):
            return np.zeros(0, np.uint8)
        norms: Array | None = self.cache.get((self.identity, ("norms", field)))
        if norms is None:
            number = rows // np.uint32(NORM_PAGE)
            pages = np.unique(number)
            if len(pages) * 2 > len(self.root.fields[field].norms):
                return self.norms(field).take(rows)
            at = self._norm_offsets(field)
            ranges = [(int(at[page]), int(at[page + 1] - at[page])) for page in pages.tolist()]
            data = self.read_piece("norms", ranges)
            decoded = [unframe(one, offset, "lengths") for one, (offset, _) in zip(data, ranges, strict=True)]
            if any(
                len(one) != min(NORM_PAGE, self.rows - page * NORM_PAGE)
                for one, page in zip(decoded, pages.tolist(), strict=True)
            ):
                raise damaged("the number of row lengths is not the number of rows")
            norms = np.frombuffer(b"".join(decoded), np.uint8)
            rows = pages.searchsorted(number) * NORM_PAGE + rows % np.uint32(NORM_PAGE)
        return norms.take(rows)

    def every_block(self) -> Iterator[tuple[int, Block]]:
        """All dictionary blocks with their field numbers, read in order and not cached."""
        block_ranges, starts = self.root.block_ranges, self.root.first_block
        for first in range(0, len(block_ranges), _BLOCKS_AT_ONCE):
            ranges = block_ranges[first : first + _BLOCKS_AT_ONCE]
            numbers = range(first, first + len(ranges))
            bodies = self.read_piece("words", ranges)
            for number, (offset, _), data in zip(numbers, ranges, bodies, strict=True):
                field = int(np.searchsorted(starts, number, "right")) - 1
                yield field, Block(unframe(data, offset, "a block of words"), self.rows)

    def verify(self) -> None:
        """Read everything and compare it with its checksums."""
        for piece, length, checksum in zip(PIECES, self.root.pieces, self.root.checksums, strict=True):
            crc, step = 0, 8 << 20
            for start in range(0, length, step):
                part = self.read_piece(piece, [(start, min(step, length - start))])[0]
                crc = zlib.crc32(part, crc)
            if crc != checksum:
                raise damaged(f"the {piece} do not match their checksum")


def _checked(parts: Sequence[Bytes], ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
    """The bytes of ranges, if they have the lengths of the ranges."""
    if len(parts) != len(ranges) or any(
        len(data) != length for data, (_, length) in zip(parts, ranges, strict=True)
    ):
        raise damaged("the file ends before the index does")
    return parts
