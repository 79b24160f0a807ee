"""Writes an index: sorted postings in, the sections of the index as bytes out.

The same postings give the same bytes however they are divided into slices, which is why
merging indexes equals building from the rows: the words of an incomplete block wait for
the next slice.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from indextables.index.build.runs import Postings, concatenated
from indextables.index.codec.blocks import BLOCK_BYTES, RESTART, BlockColumns
from indextables.index.codec.lengths import NORM_PAGE, length_classes
from indextables.index.codec.lists import (
    INLINE,
    PAGE,
    differences,
    encode_differences,
    encode_page,
    exceptions,
    is_cut,
    is_dense,
    page_count,
)
from indextables.index.codec.numbers import Array, frame, gather, planes, starts_of, varints
from indextables.index.codec.root import PIECES, FieldRoot, Root
from indextables.index.settings import IndexField, IndexSpec
from indextables.index.tokenise import word_bytes

_PER_WORD = 4
_PER_PAGE = 12
"""Estimated bytes that a word, and a page of a paged list, take in a block."""
_LONGEST_SHARED = 255
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A finished index."""

    chunks: tuple[bytes, ...]
    """The bytes of the index in consecutive parts; the last is the root."""
    rows: int
    tokens: dict[str, int]
    """Number of tokens of every column of words, for ranking."""
    sizes: dict[str, int]
    """Bytes by component."""

    @property
    def length(self) -> int:
        """Bytes of the index."""
        return sum(map(len, self.chunks))

    @property
    def root_length(self) -> int:
        """Bytes of the root: with this number an index can be opened in one read."""
        return len(self.chunks[-1])

    def to_bytes(self) -> bytes:
        """The whole index."""
        return b"".join(self.chunks)


@dataclass(slots=True)
class _Section:
    data: bytearray = field(default_factory=bytearray)

    def add(self, raw: bytes) -> tuple[int, int]:
        """Append a frame; returns its offset and length."""
        offset = len(self.data)
        self.data += frame(raw, offset)
        return offset, len(self.data) - offset


class IndexWriter:
    """The sections of an index while they are written; fields are written one after the other."""

    def __init__(self, spec: IndexSpec, rows: int) -> None:
        self.spec = spec
        self.rows = rows
        self.lists, self.positions, self.norms, self.words = (_Section() for _ in PIECES)
        self.fields: list[FieldRoot] = []
        self.block_lengths: list[int] = []
        self.separators: list[bytes] = []
        self.seen: dict[bytes, tuple[int, int, Array | None]] = {}

    def write_field(
        self, item: IndexField, slices: Iterable[Postings], root: FieldRoot, lengths: Array
    ) -> None:
        """Write one field: its postings in order, its properties, and the number of tokens of every row."""
        before = len(self.block_lengths)
        writer = _FieldWriter(self, positions=item.record == "position")
        for part in slices:
            writer.add(part, last=False)
        writer.add(None, last=True)
        classes = length_classes(lengths)
        pages = [
            self.norms.add(classes[start : start + NORM_PAGE].tobytes())[1]
            for start in range(0, len(classes), NORM_PAGE)
        ]
        self.fields.append(
            FieldRoot(
                blocks=len(self.block_lengths) - before,
                words=writer.count,
                tokens=root.tokens,
                nulls=root.nulls,
                norms=tuple(pages),
                least=root.least,
                most=root.most,
                gaps=root.gaps,
            )
        )

    def finish(self) -> BuiltIndex:
        """The sections, followed by the root."""
        pieces = [bytes(piece.data) for piece in (self.lists, self.positions, self.norms, self.words)]
        root = Root(
            rows=self.rows,
            spec=self.spec,
            fields=tuple(self.fields),
            pieces=tuple(map(len, pieces)),
            checksums=tuple(map(zlib.crc32, pieces)),
            block_lengths=np.array(self.block_lengths, np.int64),
            separator_lengths=np.array([len(one) for one in self.separators], np.int64),
            separators=b"".join(self.separators),
        ).encode()
        sizes = {name: len(piece) for name, piece in zip(PIECES, pieces, strict=True)} | {"root": len(root)}
        tokens = {
            item.column: written.tokens
            for item, written in zip(self.spec.fields, self.fields, strict=True)
            if written.norms or written.tokens
        }
        return BuiltIndex((*pieces, root), self.rows, tokens, sizes)


@dataclass(slots=True)
class _Encoded:
    """A slice of words, encoded as far as this does not depend on neighbouring words."""

    part: Postings
    first: Array
    """Offset of every word's postings."""
    occurrences: Array
    """Offset of every posting's positions, and the end; empty where every word occurs once per row."""
    position_at: Array | None
    """Offset of every word's positions."""
    body: Array
    """All rows as varints, and the offset of every word's first."""
    body_at: Array
    tail: Array
    tail_at: Array
    short: Array
    shared: Array
    ends: Array
    """Estimated bytes up to and including every word."""

    @classmethod
    def of(cls, part: Postings, rows: int) -> _Encoded:
        first = starts_of(part.frequencies)
        body, at = varints(differences(part.rows, first[:-1]))
        body_at = at[first]
        tail, tail_at = np.zeros(0, np.uint8), np.zeros(len(first), np.int64)
        position_at, occurrences = None, np.zeros(0, np.int64)
        if part.counts is not None:
            tail, tail_at = exceptions(part.counts, first)
        if part.positions is not None:
            position_at = first
            if part.counts is not None:
                occurrences = starts_of(part.counts)
                position_at = occurrences[first]
        sizes = np.diff(body_at) + np.diff(tail_at)
        short = sizes <= INLINE
        shared = _shared(part.words)
        _, word_at = word_bytes(part.words)
        cost = np.diff(word_at) - shared + np.where(short, sizes, 0) + _PER_WORD
        cost[is_cut(part.frequencies, rows)] += _PER_PAGE * page_count(rows)
        ends = np.cumsum(cost)
        return cls(part, first, occurrences, position_at, body, body_at, tail, tail_at, short, shared, ends)


class _FieldWriter:
    def __init__(self, index: IndexWriter, *, positions: bool) -> None:
        self.index = index
        self.keeps_positions = positions
        self.left_over: Postings | None = None
        self.last_word: bytes | None = None
        self.count = 0

    def add(self, part: Postings | None, *, last: bool) -> None:
        """Write the complete blocks; the remaining words wait for more, unless this is the last slice."""
        parts = [one for one in (self.left_over, part) if one is not None]
        self.left_over = None
        if not parts:
            return
        whole = parts[0] if len(parts) == 1 else concatenated(parts)
        encoded = _Encoded.of(whole, self.index.rows)
        begin, count = 0, len(whole.words)
        while begin < count:
            before = int(encoded.ends[begin - 1]) if begin else 0
            # The first word of a block has no prefix in common with a predecessor.
            limit = before + BLOCK_BYTES - (int(encoded.shared[begin]) if begin else 0)
            end = int(np.searchsorted(encoded.ends, limit)) + 1
            if end > count and not last:
                self.left_over = _words_from(encoded, begin)
                return
            end = min(end, count)
            self._block(encoded, begin, end)
            begin = end

    def _block(self, encoded: _Encoded, a: int, b: int) -> None:
        part = encoded.part
        local = np.arange(b - a)
        shared = np.where(local % RESTART == 0, 0, encoded.shared[a:b])
        data, at = word_bytes(part.words)
        at = at[a : b + 1]
        sizes = np.diff(at) - shared
        short = encoded.short[a:b]
        long = (~short).nonzero()[0]
        inline = np.where(short, np.diff(encoded.body_at[a : b + 1]), 0)
        tails = np.where(short, np.diff(encoded.tail_at[a : b + 1]), 0)
        where, cuts = self._long_lists(encoded, long + a)
        extra, short_positions = self._short_positions(encoded, a, b, short)
        columns = BlockColumns(
            shared=shared,
            suffix_lengths=sizes,
            suffixes=data[gather(at[:-1] + shared, sizes)].tobytes(),
            frequencies=part.frequencies[a:b].astype(np.int64),
            inline_lengths=inline,
            inline=encoded.body[gather(encoded.body_at[a:b], inline)].tobytes(),
            tail_lengths=tails,
            tails=encoded.tail[gather(encoded.tail_at[a:b], tails)].tobytes(),
            extra=extra,
            long=long,
            list_offsets=where[:, 0],
            list_lengths=where[:, 1],
            position_offsets=where[:, 2] if self.keeps_positions else _NONE,
            position_lengths=where[:, 3] if self.keeps_positions else _NONE,
            page_frequencies=cuts[0],
            page_lengths=cuts[1],
            page_position_lengths=cuts[2] if self.keeps_positions else _NONE,
            short_positions=short_positions,
            separate=is_cut(part.frequencies[a:b][long], self.index.rows).astype(np.int64),
        )
        self._put(columns, part.words[a].as_py(), part.words[b - 1].as_py())
        self.count += b - a

    def _put(self, columns: BlockColumns, first: bytes, last: bytes) -> None:
        _, length = self.index.words.add(columns.encode())
        self.index.block_lengths.append(length)
        before, common = self.last_word, 0
        if before is not None:
            while common < len(before) and before[common] == first[common]:
                common += 1
        self.index.separators.append(first[: common + 1] if before is not None else b"")
        self.last_word = last

    def _long_lists(self, encoded: _Encoded, words: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        where = np.zeros((len(words), 4), np.int64)
        pages: list[tuple[Array, Array, Array]] = []
        for k, word in enumerate(words.tolist()):
            offset, length, per_page = self._list(encoded, word)
            where[k, :2] = offset, length
            ends = [encoded.first[word], encoded.first[word + 1]]
            if per_page is not None:
                rows = encoded.part.rows[ends[0] : ends[1]]
                edges = np.searchsorted(
                    rows, np.arange(page_count(self.index.rows) + 1, dtype=np.int64) * PAGE
                )
            else:
                edges = np.array([0, ends[1] - ends[0]])
            lengths = self._long_positions(encoded, edges + ends[0], where[k])
            if per_page is not None:
                pages.append((np.diff(edges), per_page, lengths))
        if not pages:
            return where, (_NONE, _NONE, _NONE)
        a, b, c = (np.concatenate([page[i] for page in pages]) for i in range(3))
        return where, (a, b, c)

    def _list(self, encoded: _Encoded, word: int) -> tuple[int, int, Array | None]:
        """Write a list, or reuse an equal one written before; returns offset, length, and length by page."""
        part, rows = encoded.part, self.index.rows
        a, b = int(encoded.first[word]), int(encoded.first[word + 1])
        if is_cut(b - a, rows):
            raws = list(_page_bytes(part, a, b, rows))
        elif is_dense(b - a, rows):
            raws = [encode_page(part.rows[a:b], None if part.counts is None else part.counts[a:b], rows)]
        else:
            body = encoded.body[int(encoded.body_at[word]) : int(encoded.body_at[word + 1])]
            tail = encoded.tail[int(encoded.tail_at[word]) : int(encoded.tail_at[word + 1])]
            raws = [encode_differences(body.data, tail.data)]
        digest = hashlib.blake2b(digest_size=16)
        for raw in raws:
            digest.update(raw)
        # A list of several pages never equals one of a single page: a header begins every page.
        key = digest.digest() + len(raws).to_bytes(4, "little")
        written = self.index.seen.get(key)
        if written is None:
            offset = len(self.index.lists.data)
            lengths = np.array([self.index.lists.add(raw)[1] if raw else 0 for raw in raws], np.int64)
            written = (offset, int(lengths.sum()), lengths if is_cut(b - a, rows) else None)
            self.index.seen[key] = written
        return written

    def _long_positions(self, encoded: _Encoded, edges: Array, where: Array) -> Array:
        """Write the positions of a word page by page; offset and length are added to `where`."""
        if encoded.position_at is None or encoded.part.positions is None:
            return _NONE
        at = edges if encoded.part.counts is None else encoded.occurrences[edges]
        where[2] = len(self.index.positions.data)
        lengths = [
            self.index.positions.add(planes(encoded.part.positions[x:y]))[1] if y > x else 0
            for x, y in zip(at[:-1].tolist(), at[1:].tolist(), strict=True)
        ]
        where[3] = sum(lengths)
        return np.array(lengths, np.int64)

    def _short_positions(self, encoded: _Encoded, a: int, b: int, short: Array) -> tuple[Array, Array]:
        """Write the positions of a block's short words: occurrences beyond one per row, and positions."""
        if encoded.position_at is None or encoded.part.positions is None or not short.any():
            return _NONE, _NONE
        counts = np.where(short, np.diff(encoded.position_at[a : b + 1]), 0)
        extra = np.where(short, counts - encoded.part.frequencies[a:b].astype(np.int64), 0)
        positions = encoded.part.positions[gather(encoded.position_at[a:b], counts)]
        return extra, np.array(self.index.positions.add(planes(positions)), np.int64)


def _page_bytes(part: Postings, a: int, b: int, rows: int) -> Iterable[bytes]:
    listed, counts = part.rows[a:b], None if part.counts is None else part.counts[a:b]
    for start in range(0, rows, PAGE):
        x, y = np.searchsorted(listed, (start, start + PAGE))
        local = listed[x:y] - np.uint32(start)
        yield (
            encode_page(local, None if counts is None else counts[x:y], min(PAGE, rows - start))
            if y > x
            else b""
        )


def _words_from(encoded: _Encoded, word: int) -> Postings:
    """The postings of a slice from one word on, copied so that the rest of the slice can be freed."""
    part, at = encoded.part, int(encoded.first[word])
    position = 0 if encoded.position_at is None else int(encoded.position_at[word])
    return Postings(
        pa.concat_arrays([part.words.slice(word), part.words.slice(0, 0)]),
        part.frequencies[word:].copy(),
        part.rows[at:].copy(),
        None if part.counts is None else part.counts[at:].copy(),
        None if part.positions is None else part.positions[position:].copy(),
    )


def _shared(words: pa.BinaryArray) -> Array:
    """For every word, how many bytes it shares with the one before it."""
    data, at = word_bytes(words)
    size = np.diff(at)
    shared = np.zeros(len(size), np.int64)
    if len(size) < 2:  # noqa: PLR2004 - the first word shares nothing
        return shared
    most = np.minimum(np.minimum(size[:-1], size[1:]), _LONGEST_SHARED)
    pairs, depth = np.arange(len(size) - 1), 0
    while len(pairs):
        pairs = pairs[most[pairs] > depth]
        pairs = pairs[data[at[pairs] + depth] == data[at[pairs + 1] + depth]]
        depth += 1
        shared[pairs + 1] = depth
    return shared
