"""Assembles a Parquet file from column chunks of finished files, without decoding them.

Pages are copied as bytes, and the offsets in the metadata follow them. Page
indexes and bloom filters are copied too and follow the row groups, as Parquet has it.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from indextables.split.parquet.fields import (
    ChunkFields,
    FileFields,
    GroupFields,
    MetaFields,
    PageFields,
    value,
)
from indextables.split.parquet.fields import items as structs
from indextables.split.parquet.thrift import I32, I64, LIST, STRUCT, Struct, decode, encode

MAGIC = b"PAR1"

Read = Callable[[int, int], Any]
"""Bytes of a file by offset and length."""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A column chunk of a finished file."""

    chunk: Struct
    read: Read

    @property
    def place(self) -> tuple[int, int]:
        """Offset and length of its pages, its dictionary included."""
        return range_of(self.chunk)


def range_of(chunk: Struct) -> tuple[int, int]:
    """Offset and length of the pages of a column chunk, its dictionary included."""
    meta = value(chunk, ChunkFields.META)
    start = value(meta, MetaFields.DICTIONARY_PAGE, value(meta, MetaFields.DATA_PAGE))
    return start, value(meta, MetaFields.COMPRESSED_BYTES)


def assemble_file(out: BinaryIO, footer: Struct, groups: Iterable[Sequence[StoredChunk]]) -> Struct:
    """Write a whole Parquet file, with the schema and row groups of `footer`, from chunks in its order.

    Returns the footer of the new file.
    """
    out.write(MAGIC)
    placed: list[tuple[Struct, list[_Moved]]] = []
    for group, chunks in zip(structs(footer, FileFields.GROUPS), groups, strict=True):
        placed.append((group, [_Moved.to(out, one) for one in chunks]))
    moved = [one for _, chunks in placed for one in chunks]
    for one in moved:
        one.put_bloom_filter(out)
    for one in moved:
        one.put_column_index(out)
    for one in moved:
        one.put_offset_index(out)
    written = [_group(group, chunks) for group, chunks in placed]
    new = dict(sorted({**footer, FileFields.GROUPS: (LIST, (STRUCT, written))}.items()))
    body = encode(new)
    out.write(body + packing.pack("<I", len(body)) + MAGIC)
    return new


@dataclass(slots=True)
class _Moved:
    """A chunk whose pages are in the new file; its metadata is completed bit by bit."""

    source: StoredChunk
    by: int
    """How many bytes further on its pages are than in their own file."""
    chunk: Struct
    meta: Struct

    @classmethod
    def to(cls, out: BinaryIO, source: StoredChunk) -> _Moved:
        start, length = source.place
        by = out.tell() - start
        out.write(source.read(start, length))
        chunk, meta = dict(source.chunk), dict(value(source.chunk, ChunkFields.META))
        for number in (MetaFields.DATA_PAGE, MetaFields.INDEX_PAGE, MetaFields.DICTIONARY_PAGE):
            if number in meta:
                meta[number] = (I64, meta[number][1] + by)
        if value(chunk, ChunkFields.FILE_OFFSET):
            chunk[ChunkFields.FILE_OFFSET] = (I64, value(chunk, ChunkFields.FILE_OFFSET) + by)
        return cls(source, by, chunk, meta)

    def put_bloom_filter(self, out: BinaryIO) -> None:
        offset, length = value(self.meta, MetaFields.BLOOM), value(self.meta, MetaFields.BLOOM_LENGTH)
        if offset is None or length is None:
            # Without its length it cannot be copied, and without it readers find the same rows.
            self.meta.pop(MetaFields.BLOOM, None)
            return
        self.meta[MetaFields.BLOOM] = (I64, out.tell())
        out.write(self.source.read(offset, length))

    def put_column_index(self, out: BinaryIO) -> None:
        offset = value(self.chunk, ChunkFields.COLUMN_INDEX)
        if offset is not None:
            length = value(self.chunk, ChunkFields.COLUMN_INDEX_LENGTH)
            self.chunk[ChunkFields.COLUMN_INDEX] = (I64, out.tell())
            out.write(self.source.read(offset, length))

    def put_offset_index(self, out: BinaryIO) -> None:
        offset, length = (
            value(self.chunk, number)
            for number in (ChunkFields.OFFSET_INDEX, ChunkFields.OFFSET_INDEX_LENGTH)
        )
        index, _ = decode(self.source.read(offset, length))
        for location in structs(index, PageFields.LOCATIONS):
            location[PageFields.OFFSET] = (I64, value(location, PageFields.OFFSET) + self.by)
        body = encode(index)
        self.chunk[ChunkFields.OFFSET_INDEX] = (I64, out.tell())
        self.chunk[ChunkFields.OFFSET_INDEX_LENGTH] = (I32, len(body))
        out.write(body)

    def finished(self) -> Struct:
        return dict(sorted({**self.chunk, ChunkFields.META: (STRUCT, self.meta)}.items()))


def _group(group: Struct, chunks: Sequence[_Moved]) -> Struct:
    moved = dict(group)
    moved[GroupFields.COLUMNS] = (LIST, (STRUCT, [one.finished() for one in chunks]))
    moved[GroupFields.BYTES] = (I64, sum(value(one.meta, MetaFields.UNCOMPRESSED_BYTES) for one in chunks))
    stored = sum(value(one.meta, MetaFields.COMPRESSED_BYTES) for one in chunks)
    moved[GroupFields.COMPRESSED_BYTES] = (I64, stored)
    first, _ = range_of(chunks[0].finished())
    moved[GroupFields.FILE_OFFSET] = (I64, first)
    return dict(sorted(moved.items()))
