"""Chosen pages of a split, checked and laid out as a small Parquet file in memory, then decoded."""

from __future__ import annotations

import struct as packing
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import DamagedSplitError
from indextables.split.arrays import integers
from indextables.split.pages import Chunk, PageMap, Span
from indextables.split.parquet_fields import (
    ChunkFields,
    ElementFields,
    FileFields,
    GroupFields,
    MetaFields,
    items,
    value,
)
from indextables.split.source import Range, Source
from indextables.split.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, decode, encode

MAGIC = b"PAR1"
SMALL_READ = 4 << 20
"""Bytes below which decoding on one thread is quicker than starting several."""


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column: its part of the schema, and its leaves."""

    name: str
    elements: tuple[Struct, ...]
    leaves: tuple[int, ...]

    @property
    def is_text(self) -> bool:
        """Whether it is a plain column of text."""
        kind = value(self.elements[0], ElementFields.CONVERTED)
        return len(self.elements) == 1 and kind == ElementFields.UTF8


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The footer of a split without its row groups: enough to write a footer for some of its pages."""

    root: Struct
    columns: Mapping[str, Column]
    chunks: tuple[Struct, ...]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Skeleton:
        """Read what `skeleton_bytes` wrote."""
        footer, _ = decode(data)
        elements = items(footer, FileFields.SCHEMA)
        columns: dict[str, Column] = {}
        at, leaf = 1, 0
        while at < len(elements):
            end = _subtree_end(elements, at)
            leaves = sum(1 for element in elements[at:end] if not _children(element))
            name = value(elements[at], ElementFields.NAME).decode()
            columns[name] = Column(name, tuple(elements[at:end]), tuple(range(leaf, leaf + leaves)))
            at, leaf = end, leaf + leaves
        groups = items(footer, FileFields.GROUPS)
        chunks = items(groups[0], GroupFields.COLUMNS) if groups else []
        return cls(elements[0], columns, tuple(value(chunk, ChunkFields.META) for chunk in chunks))


def skeleton_bytes(footer: Struct) -> bytes:
    """Keep the schema and the first row group's column descriptions, and drop everything else."""
    kept: list[Struct] = []
    for group in items(footer, FileFields.GROUPS)[:1]:
        chunks = [_described(value(chunk, ChunkFields.META)) for chunk in items(group, GroupFields.COLUMNS)]
        kept.append(_group(chunks, 0, 0))
    return encode(
        {
            FileFields.VERSION: footer[FileFields.VERSION],
            FileFields.SCHEMA: footer[FileFields.SCHEMA],
            FileFields.ROWS: (I64, 0),
            FileFields.GROUPS: (LIST, (STRUCT, kept)),
        }
    )


def _described(meta: Struct) -> Struct:
    kept = {key: item for key, item in meta.items() if key in MetaFields.DESCRIPTION}
    return {ChunkFields.FILE_OFFSET: (I64, 0), ChunkFields.META: (STRUCT, kept)}


def _group(chunks: list[Struct], size: int, rows: int) -> Struct:
    return {
        GroupFields.COLUMNS: (LIST, (STRUCT, chunks)),
        GroupFields.BYTES: (I64, size),
        GroupFields.ROWS: (I64, rows),
    }


def _children(element: Struct) -> int:
    found: int = value(element, ElementFields.CHILDREN, 0)
    return found


def _subtree_end(elements: Sequence[Struct], at: int) -> int:
    end = at + 1
    for _ in range(_children(elements[at])):
        end = _subtree_end(elements, end)
    return end


def read_pages(
    source: Source,
    skeleton: Skeleton,
    pages: PageMap,
    columns: Sequence[str],
    wanted: Mapping[int, Sequence[int] | None],
    *,
    coded: bool = False,
) -> pa.Table:
    """Read rows of some row groups: `wanted` maps a group to its rows in order, or None for all of them.

    With `coded`, text that repeats stays a dictionary: cheaper where only some rows are kept.
    """
    plans: dict[tuple[Any, ...], list[str]] = {}
    for name in columns:
        cover = tuple(
            (group, _cover(pages, skeleton.columns[name], group, rows)) for group, rows in wanted.items()
        )
        plans.setdefault(cover, []).append(name)
    ranges = {
        (offset, length): crc
        for cover, names in plans.items()
        for name in names
        for leaf in skeleton.columns[name].leaves
        for group, spans in cover
        for offset, length, crc in _page_ranges(pages.chunk(group, leaf), spans)
    }
    bodies = source.read(ranges)
    for place, crc in ranges.items():
        if zlib.crc32(bodies[place]) != crc:
            raise damaged_page(source.name, place[0])
    read: dict[str, Any] = {}
    for cover, names in plans.items():
        picks = _picks(cover, wanted)
        kept = _coded(skeleton, pages, names, cover) if coded or picks is not None else []
        table = _decode(_lay_out(skeleton, pages, names, cover, bodies), source.name, kept)
        if picks is not None:
            table = table.take(picks)
        read.update({name: table[name] for name in names})
    found = pa.table({name: read[name] for name in columns})
    return found if coded else decoded(found)


def decoded(table: pa.Table) -> pa.Table:
    """The table with dictionaries written out."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def damaged_page(name: str, offset: int) -> DamagedSplitError:
    """The error for a page whose bytes have changed."""
    return DamagedSplitError(
        f"{name} is damaged: the page at byte {offset} is not what was written. Bring back an intact copy, "
        "or restore a version of the table without this file.",
        path=name,
        offset=offset,
    )


def _cover(pages: PageMap, column: Column, group: int, rows: Sequence[int] | None) -> tuple[Span, ...]:
    total = pages.group_rows[group]
    if rows is None:
        return ((0, total),)
    spans = [(row, row + 1) for row in rows]
    # Leaves of one column may be cut into pages at different rows: widen until all of them agree.
    while True:
        before = spans
        for leaf in column.leaves:
            spans = pages.chunk(group, leaf).cover(spans)
        if spans == before:
            return tuple(spans)


def _page_ranges(chunk: Chunk, spans: Sequence[Span]) -> list[tuple[int, int, int]]:
    found = [(chunk.offsets[at], chunk.lengths[at], chunk.crcs[at]) for at in chunk.pages(spans)]
    return [chunk.dictionary, *found] if chunk.dictionary is not None else found


def _picks(
    cover: Sequence[tuple[int, Sequence[Span]]], wanted: Mapping[int, Sequence[int] | None]
) -> pa.Array | None:
    """Where the wanted rows stand among the covered ones; None when every covered row is wanted."""
    if all(wanted[group] is None for group, _ in cover):
        return None
    picks: list[int] = []
    base = 0
    for group, spans in cover:
        rows = wanted[group]
        covered = sum(end - start for start, end in spans)
        if rows is None:
            picks.extend(range(base, base + covered))
        else:
            at, before = 0, 0
            for row in rows:
                while row >= spans[at][1]:
                    before += spans[at][1] - spans[at][0]
                    at += 1
                picks.append(base + before + row - spans[at][0])
        base += covered
    return integers(picks)


def _coded(
    skeleton: Skeleton, pages: PageMap, names: Sequence[str], cover: Sequence[tuple[int, Sequence[Span]]]
) -> list[str]:
    """Text columns that have a dictionary in every row group."""
    return [
        name
        for name in names
        if skeleton.columns[name].is_text
        and all(
            pages.chunk(group, skeleton.columns[name].leaves[0]).dictionary is not None for group, _ in cover
        )
    ]


def _lay_out(
    skeleton: Skeleton,
    pages: PageMap,
    names: Sequence[str],
    cover: Sequence[tuple[int, Sequence[Span]]],
    bodies: Mapping[Range, memoryview],
) -> pa.Buffer:
    parts: list[bytes | memoryview] = [MAGIC]
    position = len(MAGIC)
    groups: list[Struct] = []
    for group, spans in cover:
        chunks: list[Struct] = []
        size = 0
        for leaf in (leaf for name in names for leaf in skeleton.columns[name].leaves):
            chunk = pages.chunk(group, leaf)
            places = [(offset, length) for offset, length, _ in _page_ranges(chunk, spans)]
            values = sum(chunk.values[at] for at in chunk.pages(spans))
            length = sum(place[1] for place in places)
            described = skeleton.chunks[leaf]
            has_dictionary = chunk.dictionary is not None
            chunks.append(_chunk(described, position, places, values, dictionary=has_dictionary))
            parts.extend(bodies[place] for place in places)
            position += length
            size += length
        rows = sum(end - start for start, end in spans)
        groups.append(_group(chunks, size, rows))
    footer = _small_footer(skeleton, names, groups)
    parts += [footer, packing.pack("<I", len(footer)), MAGIC]
    return pa.py_buffer(b"".join(parts))


def _small_footer(skeleton: Skeleton, names: Sequence[str], groups: list[Struct]) -> bytes:
    columns = [skeleton.columns[name] for name in names]
    root = dict(sorted({**skeleton.root, ElementFields.CHILDREN: (I32, len(columns))}.items()))
    elements = [root, *(element for column in columns for element in column.elements)]
    return encode(
        {
            FileFields.VERSION: (I32, 2),
            FileFields.SCHEMA: (LIST, (STRUCT, elements)),
            FileFields.ROWS: (I64, sum(value(group, GroupFields.ROWS) for group in groups)),
            FileFields.GROUPS: (LIST, (STRUCT, groups)),
            FileFields.CREATED_BY: (BINARY, b"indextables"),
        }
    )


def _chunk(meta: Struct, position: int, places: Sequence[Range], values: int, *, dictionary: bool) -> Struct:
    length = sum(place[1] for place in places)
    described = {
        **meta,
        MetaFields.VALUES: (I64, values),
        MetaFields.UNCOMPRESSED_BYTES: (I64, length),
        MetaFields.COMPRESSED_BYTES: (I64, length),
        MetaFields.DATA_PAGE: (I64, position + places[0][1] if dictionary else position),
    }
    if dictionary:
        described[MetaFields.DICTIONARY_PAGE] = (I64, position)
    return {ChunkFields.FILE_OFFSET: (I64, position), ChunkFields.META: (STRUCT, described)}


def _decode(buffer: pa.Buffer, name: str, coded: Sequence[str] = ()) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(pa.BufferReader(buffer), pre_buffer=False, read_dictionary=list(coded)) as file:
            return file.read(use_threads=buffer.size > SMALL_READ)
    except (pa.ArrowException, OSError, ValueError) as bad:
        raise DamagedSplitError(
            f"{name} is damaged: its pages cannot be decoded ({bad}). Bring back an intact copy, "
            "or restore a version of the table without this file.",
            path=name,
        ) from bad
