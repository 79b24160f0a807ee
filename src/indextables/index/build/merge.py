"""Merges indexes: their sorted lists become those of one index, without reading any text.

The rows of the first index come first, then those of the second. The result has the same
bytes as an index built from all the rows. Indexes are read some blocks at a time, so
memory does not grow with their size.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from indextables.index.build.builder import IndexBuilder
from indextables.index.build.runs import Postings, concatenated, first_not_below, merge_postings
from indextables.index.build.writer import BuiltIndex, IndexWriter
from indextables.index.codec.blocks import Block
from indextables.index.codec.lengths import LENGTHS
from indextables.index.codec.lists import page_count
from indextables.index.codec.numbers import Array, damaged, decodes, gather, starts_of, unframe, unplanes
from indextables.index.codec.root import PIECES, FieldRoot
from indextables.index.read.lookup import Index
from indextables.index.read.words import WordPostings, read_lists, read_positions

BLOCKS_AT_ONCE = 32


def merge_indexes(parts: Sequence[Index]) -> BuiltIndex:
    """One index of the rows of several, in the order given; all must have the same settings."""
    if not parts:
        raise ValueError("there is nothing to merge")
    spec = parts[0].spec
    if any(part.spec != spec for part in parts):
        raise ValueError("indexes with different settings cannot be merged; index the rows again")
    rows = [part.rows for part in parts]
    writer = IndexWriter(spec, sum(rows))
    first_rows = starts_of(np.array(rows, np.int64))
    for number in range(len(spec.fields)):
        _write_merged(writer, number, parts, first_rows)
    return writer.finish()


def copy_index(index: Index) -> BuiltIndex:
    """The same index, byte for byte; DamagedIndexError when a byte is not what was written."""
    root = index.root
    pieces = [bytes(index.read_piece(name, [(0, size)])[0]) for name, size in index.sizes.items()]
    for name, piece, crc in zip(PIECES, pieces, root.checksums, strict=True):
        if zlib.crc32(piece) != crc:
            raise damaged(f"the checksum of its {name} does not match")
    body = root.encode()
    return BuiltIndex((*pieces, body), index.rows, dict(index.tokens), {**index.sizes, "root": len(body)})


def replace_fields(index: Index, fields: IndexBuilder) -> BuiltIndex:
    """The index with some fields built from other values; the rest is taken over without reading any text."""
    if not fields.spec.fields:
        return copy_index(index)
    writer = IndexWriter(index.spec, index.rows)
    for number, item in enumerate(index.spec.fields):
        new = next((one for one in fields.spec.fields if one == item), None)
        if new is None:
            _write_merged(writer, number, [index], np.zeros(1, np.int64))
        else:
            fields.write_field(writer, new)
    return writer.finish()


def _write_merged(writer: IndexWriter, number: int, parts: Sequence[Index], first_rows: Array) -> None:
    item = writer.spec.fields[number]
    sources = [
        _FieldSource(part, number, int(first), positions=item.record == "position")
        for part, first in zip(parts, first_rows, strict=False)
    ]
    classes = [part.norms(number) for part in parts if part.root.fields[number].norms]
    lengths = LENGTHS[np.concatenate(classes)] if classes else np.zeros(0, np.int64)
    root = _merged_root([part.root.fields[number] for part in parts])
    writer.write_field(item, merge_postings(sources), root, lengths)


def _merged_root(fields: Sequence[FieldRoot]) -> FieldRoot:
    least = [one.least for one in fields if one.least is not None]
    most = [one.most for one in fields if one.most is not None]
    return FieldRoot(
        blocks=0,
        tokens=sum(one.tokens for one in fields),
        nulls=sum(one.nulls for one in fields),
        least=min(least, default=None),
        most=max(most, default=None),
        gaps=any(one.gaps for one in fields),
    )


class _FieldSource:
    """The postings of one field of an index, read block by block."""

    def __init__(self, index: Index, field: int, first_row: int, *, positions: bool) -> None:
        self._index = index
        self._first_row = first_row
        self._positions = positions
        self._next = int(index.root.first_block[field])
        self._end = int(index.root.first_block[field + 1])
        self._per_block = max(1, index.root.fields[field].tokens // max(1, self._end - self._next))
        self._left_over: list[Postings] = []

    def samples(self, step: int) -> Sequence[tuple[bytes, int]]:
        """See runs.PostingsSource: the first words of some blocks."""
        stride = max(1, step // self._per_block)
        root = self._index.root
        return [
            (root.separator(block), stride * self._per_block)
            for block in range(self._next + stride, self._end, stride)
        ]

    def take(self, until: bytes | None) -> Postings:
        root, parts = self._index.root, self._left_over
        self._left_over = []
        while self._next < self._end and (until is None or root.separator(self._next) < until):
            last = min(self._end, self._next + BLOCKS_AT_ONCE)
            numbers = [
                number
                for number in range(self._next, last)
                if until is None or root.separator(number) < until
            ]
            parts += self._blocks(numbers)
            self._next += len(numbers)
        if not parts:
            return _none(positions=self._positions)
        whole = parts[0] if len(parts) == 1 else concatenated(parts)
        if until is None:
            return whole
        begin = first_not_below(whole.words, until, 0)
        self._left_over = [_part(whole, begin, len(whole.words))] if begin < len(whole.words) else []
        return _part(whole, 0, begin)

    def _blocks(self, numbers: Sequence[int]) -> list[Postings]:
        index = self._index
        at, lengths = index.root.block_at, index.root.block_lengths
        ranges = [(int(at[number]), int(lengths[number])) for number in numbers]
        blocks = [
            Block(unframe(data, offset, "a block of words"), index.rows)
            for (offset, _), data in zip(ranges, index.read_piece("words", ranges), strict=True)
        ]
        words = [
            {int(number): WordPostings(index, block.entry(int(number))) for number in block.columns.long}
            for block in blocks
        ]
        every = [word for in_block in words for word in in_block.values()]
        read_lists(index, [(word, None) for word in every])
        short: list[Array | None] = [None] * len(blocks)
        if self._positions:
            pages = np.arange(page_count(index.rows))
            read_positions(index, [(word, pages) for word in every])
            short = self._short_positions(blocks)
        return [
            self._postings(block, in_block, positions)
            for block, in_block, positions in zip(blocks, words, short, strict=True)
        ]

    def _short_positions(self, blocks: Sequence[Block]) -> list[Array | None]:
        stored = [tuple(map(int, block.columns.short_positions)) for block in blocks]
        ranges = [(one[0], one[1]) for one in stored if one]
        bodies = iter(zip(ranges, self._index.read_piece("positions", ranges), strict=True))
        positions: list[Array | None] = []
        for one in stored:
            if not one:
                positions.append(None)
                continue
            (offset, _), data = next(bodies)
            positions.append(_numbers(unframe(data, offset, "positions")))
        return positions

    def _postings(self, block: Block, words: dict[int, WordPostings], short: Array | None) -> Postings:
        """All postings of a block in word order: short lists decoded together, long ones singly."""
        pages = np.arange(page_count(self._index.rows))
        rows, sizes = block.short_rows(0, block.count)
        counts = block.short_counts(0, block.count, sizes)
        pieces = [(rows, counts, short)]
        for word in words.values():
            if self._positions:
                pieces.append(word.occurrences(pages))
            else:
                pieces.append((word.array(), word.counts(), None))
        frequencies = block.columns.frequencies.astype(np.int64)
        # The short words were decoded first; now every word is moved to where it belongs.
        is_short = block.columns.inline_lengths > 0
        order = np.concatenate([is_short.nonzero()[0], np.fromiter(words, np.int64, len(words))])
        start = np.empty(block.count, np.int64)
        start[order] = starts_of(frequencies[order])[:-1]
        at = gather(start, frequencies)
        repeated = any(piece[1] is not None for piece in pieces)
        all_counts = np.concatenate([_counts(piece) for piece in pieces]) if repeated else None
        positions = None
        if self._positions:
            all_positions = np.concatenate([piece[2] for piece in pieces if piece[2] is not None])
            if all_counts is None:
                positions = all_positions[at]
            else:
                first = starts_of(all_counts)
                positions = all_positions[gather(first[start], first[start + frequencies] - first[start])]
        return Postings(
            _words(block),
            frequencies,
            np.concatenate([piece[0] for piece in pieces])[at] + np.uint32(self._first_row),
            None if all_counts is None else all_counts[at],
            positions,
        )


def _counts(piece: tuple[Array, Array | None, Array | None]) -> Array:
    return np.ones(len(piece[0]), np.uint32) if piece[1] is None else piece[1]


@decodes("positions")
def _numbers(raw: bytes) -> Array:
    return unplanes(raw)


def _words(block: Block) -> pa.BinaryArray:
    words = block.words()
    if any(one >= other for one, other in pairwise(words)):
        raise damaged("the words of a block are not in order")
    return pa.array(words, pa.binary())


def _part(whole: Postings, begin: int, end: int) -> Postings:
    first = starts_of(whole.frequencies)
    a, b = int(first[begin]), int(first[end])
    x, y = a, b
    if whole.counts is not None and whole.positions is not None:
        first_position = starts_of(whole.counts)
        x, y = int(first_position[a]), int(first_position[b])
    return Postings(
        whole.words.slice(begin, end - begin),
        whole.frequencies[begin:end],
        whole.rows[a:b],
        None if whole.counts is None else whole.counts[a:b],
        None if whole.positions is None else whole.positions[x:y],
    )


def _none(*, positions: bool) -> Postings:
    empty = np.zeros(0, np.uint32)
    return Postings(pa.array([], pa.binary()), empty, empty, None, empty if positions else None)
