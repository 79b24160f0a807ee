"""The root: the part of an index that a reader needs first.

It is at the end of the index and says which fields there are, where their dictionary
blocks are, how long each section ("piece") is, and what ranking needs. Its length is kept
outside the index, so that one range read opens it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from indextables.errors import DamagedIndexError
from indextables.index.codec.numbers import (
    Array,
    Bytes,
    damaged,
    decodes,
    read_columns,
    starts_of,
    write_columns,
)
from indextables.index.settings import IndexSpec
from indextables.records import dataclass

FORMAT = 2
PIECES = ("lists", "positions", "norms", "words")
"""The sections before the root, in order."""
_TAIL = struct.Struct("<4sIIII")
_MAGIC = b"ITIX"
_LEVEL = 9


class FieldRoot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field: its part of the dictionary, and properties of all its rows."""

    blocks: int
    """Number of dictionary blocks; those of the first field come first."""
    words: int = 0
    tokens: int = 0
    nulls: int = 0
    norms: tuple[int, ...] = ()
    """Bytes of every page of row lengths."""
    least: int | float | None = None
    most: int | float | None = None
    """Bounds of a field of typed values."""
    gaps: bool = False
    """Whether a row may hold several values."""


class _Head(msgspec.Struct, frozen=True):
    format: int
    rows: int
    spec: list[dict[str, Any]]
    fields: list[FieldRoot]
    pieces: list[int]
    checksums: list[int]


_HEADS = msgspec.msgpack.Decoder(_Head)


@dataclass(frozen=True)
class Root:
    """A decoded root."""

    rows: int
    spec: IndexSpec
    fields: tuple[FieldRoot, ...]
    pieces: tuple[int, ...]
    """Bytes of every section."""
    checksums: tuple[int, ...]
    """CRC32 of every section, so that two indexes with different content have different roots."""
    block_lengths: Array
    separator_lengths: Array
    separators: bytes
    """For every block, a text above all words of the previous block and not above its own first word."""
    identity: bytes = b""

    @cached_property
    def block_at(self) -> Array:
        """The offset of every block in the words section."""
        return starts_of(self.block_lengths)

    @cached_property
    def separator_at(self) -> Array:
        """The offset of every separator."""
        return starts_of(self.separator_lengths)

    @cached_property
    def first_block(self) -> Array:
        """The first block of every field, and the end."""
        return starts_of(np.array([field.blocks for field in self.fields], np.int64))

    def piece_at(self, piece: str) -> int:
        """The offset of a section in the index."""
        return sum(self.pieces[: PIECES.index(piece)])

    def separator(self, block: int) -> bytes:
        """The separator of a block."""
        return self._separators[block]

    def block_of(self, field: int, word: bytes) -> int:
        """The only block that can hold a word of a field; -1 for a field without words."""
        low, high = self._blocks_of[field]
        return bisect_right(self._separators, word, low + 1, high) - 1 if low < high else -1

    @cached_property
    def _blocks_of(self) -> list[tuple[int, int]]:
        return list(pairwise(self.first_block.tolist()))

    @cached_property
    def _separators(self) -> list[bytes]:
        return [self.separators[begin:end] for begin, end in pairwise(self.separator_at.tolist())]

    @cached_property
    def block_ranges(self) -> list[tuple[int, int]]:
        """Offset and length of every block in the words section."""
        return list(zip(self.block_at.tolist(), self.block_lengths.tolist(), strict=False))

    def encode(self) -> bytes:
        """The root as bytes."""
        head = _Head(
            FORMAT,
            self.rows,
            [dict(item) for item in self.spec.to_wire()],
            list(self.fields),
            list(self.pieces),
            list(self.checksums),
        )
        text = msgspec.msgpack.encode(head)
        raw = write_columns([text, self.separator_lengths, self.block_lengths, self.separators])
        body = zlib.compress(raw, _LEVEL)
        tail = (len(body), len(raw), FORMAT)
        crc = zlib.crc32(struct.pack("<III", *tail), zlib.crc32(body))
        return body + _TAIL.pack(_MAGIC, *tail, crc)


def _another_format(version: int) -> DamagedIndexError:
    """The error for a sound index of another format number: it cannot be used, though nothing is damaged."""
    age = "an older" if version < FORMAT else "a newer"
    return DamagedIndexError(
        f"the search index has {age} format ({version}) than this version of IndexTables reads ({FORMAT})",
        piece="the root",
    )


@decodes("the root")
def decode_root(data: Bytes) -> Root:
    """The root that `Root.encode` wrote."""
    if len(data) < _TAIL.size:
        raise damaged("the root is cut off")
    magic, length, raw_length, version, crc = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    body = memoryview(data)[: len(data) - _TAIL.size]
    lengths = struct.pack("<III", length, raw_length, version)
    if magic != _MAGIC or length != len(body) or zlib.crc32(lengths, zlib.crc32(body)) != crc:
        raise damaged("the root does not match its checksum or length")
    if version != FORMAT:
        raise _another_format(version)
    raw = zlib.decompress(body, bufsize=raw_length)
    text, separator_lengths, block_lengths, separators = read_columns(raw)
    head = _HEADS.decode(text)
    if len(head.pieces) != len(PIECES) or len(head.fields) != len(head.spec):
        raise damaged("the root does not describe its pieces")
    return Root(
        rows=head.rows,
        spec=IndexSpec.from_wire(head.spec),
        fields=tuple(head.fields),
        pieces=tuple(head.pieces),
        checksums=tuple(head.checksums),
        block_lengths=block_lengths,
        separator_lengths=separator_lengths,
        separators=separators,
        identity=hashlib.blake2b(data, digest_size=16).digest(),
    )
