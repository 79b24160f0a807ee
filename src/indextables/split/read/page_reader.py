"""Fetches chosen pages of a split, checks them, assembles a small Parquet file in memory and decodes it."""

from __future__ import annotations

import struct as packing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedSplitError
from indextables.model.arrays import integers
from indextables.model.arrow_internals import cast_values, read_parquet, take_rows
from indextables.records import dataclass
from indextables.split.parquet.fields import (
    ChunkFields,
    ElementFields,
    FileFields,
    GroupFields,
    MetaFields,
    items,
    value,
)
from indextables.split.parquet.page_map import Chunk, PageMap, RowSpan, Stretch
from indextables.split.parquet.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Struct,
    decode,
    encode,
    encode_more,
)
from indextables.split.read.page_cache import Cover, PageCache
from indextables.split.read.read_ahead import at_once
from indextables.split.source import Range, SplitFile
from indextables.storage.checksum import crc32

MAGIC = b"PAR1"
MANY_CHUNKS = 40
"""From this many column chunks on, decoding in two threads is faster despite their synchronisation."""
POOL = pa.system_memory_pool()
"""The memory pool for small reads. Arrow's default pool returns most memory to the system at once, and
getting it back for the next search can cost more than decoding a few pages. For whole row groups the
default is better."""
SMALL_READ = 256 << 10
"""Below this many bytes, decoding on one thread is faster than starting several."""


@dataclass(frozen=True, slots=True)
class ColumnTree:
    """A top-level column: its elements of the schema, and its leaves."""

    name: str
    elements: tuple[bytes, ...]
    leaves: tuple[int, ...]
    is_text: bool
    """Whether it is a plain column of text."""


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """Pages of one leaf in one row group, preceded by its dictionary page if it has one."""

    ranges: list[Range]
    crcs: list[int | None]
    values: int
    dictionary: bool


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The footer of a split without its row groups: enough to write a footer for some of its pages."""

    root: Struct
    columns: Mapping[str, ColumnTree]
    chunks: tuple[bytes, ...]
    """The part of a column chunk's metadata that is the same in every row group, already encoded."""

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Skeleton:
        """Read what `skeleton_bytes` wrote."""
        footer, _ = decode(data)
        elements = items(footer, FileFields.SCHEMA)
        columns: dict[str, ColumnTree] = {}
        at, leaf = 1, 0
        while at < len(elements):
            end = _subtree_end(elements, at)
            leaves = sum(1 for element in elements[at:end] if not _children(element))
            name = value(elements[at], ElementFields.NAME).decode()
            text = end == at + 1 and value(elements[at], ElementFields.CONVERTED) == ElementFields.UTF8
            encoded = tuple(map(encode, elements[at:end]))
            columns[name] = ColumnTree(name, encoded, tuple(range(leaf, leaf + leaves)), text)
            at, leaf = end, leaf + leaves
        groups = items(footer, FileFields.GROUPS)
        chunks = items(groups[0], GroupFields.COLUMNS) if groups else []
        # The end markers of the structures are cut off, because number fields are appended later.
        opened = encode({ChunkFields.FILE_OFFSET: (I64, 0), ChunkFields.META: (STRUCT, b"")})[:-1]
        begun = tuple(opened + encode(_description(value(chunk, ChunkFields.META)))[:-1] for chunk in chunks)
        return cls(elements[0], columns, begun)


def skeleton_bytes(footer: Struct) -> bytes:
    """Keep the schema and the first row group's column descriptions, and drop everything else."""
    first_group: list[Struct] = []
    for group in items(footer, FileFields.GROUPS)[:1]:
        chunks = [_described(value(chunk, ChunkFields.META)) for chunk in items(group, GroupFields.COLUMNS)]
        first_group.append(_group(chunks, 0, 0))
    return encode(
        {
            FileFields.VERSION: footer[FileFields.VERSION],
            FileFields.SCHEMA: footer[FileFields.SCHEMA],
            FileFields.ROWS: (I64, 0),
            FileFields.GROUPS: (LIST, (STRUCT, first_group)),
        }
    )


def _described(meta: Struct) -> Struct:
    return {ChunkFields.FILE_OFFSET: (I64, 0), ChunkFields.META: (STRUCT, _description(meta))}


def _description(meta: Struct) -> Struct:
    return {key: meta[key] for key in MetaFields.DESCRIPTION}


def _group(chunks: Sequence[Struct | bytes], size: int, rows: int) -> Struct:
    return {
        GroupFields.COLUMNS: (LIST, (STRUCT, chunks)),
        GroupFields.BYTES: (I64, size),
        GroupFields.ROWS: (I64, rows),
    }


def _children(element: Struct) -> int:
    children: int = value(element, ElementFields.CHILDREN, 0)
    return children


def _subtree_end(elements: Sequence[Struct], at: int) -> int:
    end = at + 1
    for _ in range(_children(elements[at])):
        end = _subtree_end(elements, end)
    return end


def read_pages(
    source: SplitFile,
    skeleton: Skeleton,
    pages: PageMap,
    columns: Sequence[str],
    rows_by_group: Mapping[int, np.ndarray | None],
    *,
    coded: bool = False,
    cache: PageCache | None = None,
) -> pa.Table:
    """Read rows of some row groups: `rows_by_group` maps a group to its rows in order, or to None for all.

    With `coded`, repeated text stays dictionary-encoded, which is cheaper if only some rows are used. Pages
    in `cache` are not read again, and newly read ones are added to it.
    """
    plans = _plans(skeleton, pages, columns, rows_by_group)
    cached = {} if cache is None else {cover: cache.find(cover, names) for cover, names in plans.items()}
    layouts = [
        [] if cached.get(cover) is not None else _layout(skeleton, pages, names, cover)
        for cover, names in plans.items()
    ]
    crc_by_range = {
        place: crc
        for layout in layouts
        for leaves in layout
        for piece in leaves
        for place, crc in zip(piece.ranges, piece.crcs, strict=True)
    }
    bodies = _checked(source, crc_by_range)

    def decode_plan(plan: tuple[Cover, Sequence[str], Sequence[Sequence[ColumnChunk]]]) -> pa.Table:
        cover, names, layout = plan
        picks, table = _picks(cover, rows_by_group), cached.get(cover)
        if table is None:
            texts = _coded(skeleton, names, layout) if coded or picks is not None else []
            table = _decode(_lay_out(skeleton, names, cover, layout, bodies), source.name, texts)
            if cache is not None:
                cache.put(cover, table)
        return table if picks is None else take_rows(table, picks)

    work = list(zip(plans, plans.values(), layouts, strict=True))
    chunks = sum(len(leaves) for layout in layouts for leaves in layout)
    tables = at_once(decode_plan, work) if chunks >= MANY_CHUNKS else [decode_plan(plan) for plan in work]
    read = {name: table[name] for table in tables for name in table.column_names}
    selected = pa.table({name: read[name] for name in columns})
    return selected if coded else decoded(selected)


def check_pages(
    source: SplitFile, skeleton: Skeleton, pages: PageMap, columns: Sequence[str], groups: Iterable[int]
) -> None:
    """Read the pages of some row groups and raise unless every byte is what was written."""
    for group in groups:
        stored_pages(source, skeleton, pages, columns, [group])


def stored_bytes(skeleton: Skeleton, pages: PageMap, columns: Sequence[str], groups: Iterable[int]) -> int:
    """How many bytes of the file hold some columns of some row groups."""
    return sum(length for group in groups for _, length, _ in _stretches(skeleton, pages, columns, group))


def stored_pages(
    source: SplitFile, skeleton: Skeleton, pages: PageMap, columns: Sequence[str], groups: Sequence[int]
) -> dict[Range, memoryview]:
    """The pages of some columns as they are stored, every byte checked, by offset and length."""
    stretches = [one for group in groups for one in _stretches(skeleton, pages, columns, group)]
    return _checked(source, {(offset, length): crc for offset, length, crc in stretches})


def _stretches(skeleton: Skeleton, pages: PageMap, columns: Sequence[str], group: int) -> list[Stretch]:
    leaves = [leaf for name in columns for leaf in skeleton.columns[name].leaves]
    return [stretch for leaf in leaves for stretch in pages.stretches(group, leaf)]


def _checked(source: SplitFile, ranges: Mapping[Range, int | None]) -> dict[Range, memoryview]:
    """The bytes of every range, after verifying the checksums that there are."""
    bodies = source.read(ranges)
    for (offset, length), crc in ranges.items():
        if crc is not None and crc32(bodies[offset, length]) != crc:
            raise damaged_page(source.name, offset, length)
    return bodies


def schema_of(skeleton: Skeleton, name: str) -> pa.Schema:
    """The columns of a split as pyarrow reads them."""
    return _decode(_lay_out(skeleton, list(skeleton.columns), (), (), {}), name).schema


def decoded(table: pa.Table) -> pa.Table:
    """The table with dictionary columns converted to plain ones."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, cast_values(table.column(at), field.type.value_type))
    return table


def damaged_page(name: str, offset: int, length: int) -> DamagedSplitError:
    """The error for pages whose bytes have changed."""
    return DamagedSplitError(
        f"{name} is damaged: bytes {offset} to {offset + length - 1} are not what was written. "
        "Bring back an intact copy, or restore a version of the table without this file.",
        path=name,
        offset=offset,
    )


def _plans(
    skeleton: Skeleton,
    pages: PageMap,
    columns: Sequence[str],
    rows_by_group: Mapping[int, np.ndarray | None],
) -> dict[Cover, list[str]]:
    """Group columns by the rows that their pages cover, which usually are the same for all columns."""
    covers: dict[Any, tuple[RowSpan, ...]] = {}
    plans: dict[Cover, list[str]] = {}
    for name in columns:
        cover = []
        leaves = skeleton.columns[name].leaves
        for group, rows in rows_by_group.items():
            chunks = [pages.chunk(group, leaf) for leaf in leaves]
            key = (group, chunks[0].first_rows, *[chunk.first_rows for chunk in chunks[1:]])
            spans = covers.get(key)
            if spans is None:
                total = pages.group_rows[group]
                spans = covers[key] = ((0, total),) if rows is None else _cover(chunks, rows)
            cover.append((group, spans))
        plans.setdefault(tuple(cover), []).append(name)
    return plans


def _cover(chunks: Sequence[Chunk], rows: np.ndarray) -> tuple[RowSpan, ...]:
    spans = chunks[0].around(rows)
    # Leaves of one column may have page boundaries at different rows: widen until all agree.
    while len(chunks) > 1:
        before = spans
        for chunk in chunks:
            spans = chunk.cover(spans)
        if spans == before:
            break
    return tuple(spans)


def _layout(
    skeleton: Skeleton, pages: PageMap, names: Sequence[str], cover: Cover
) -> list[list[ColumnChunk]]:
    """For every row group of a cover, the pages of the leaves of some columns."""
    leaves = [leaf for name in names for leaf in skeleton.columns[name].leaves]
    return [[_piece(pages.chunk(group, leaf), spans) for leaf in leaves] for group, spans in cover]


def _piece(chunk: Chunk, spans: Sequence[RowSpan]) -> ColumnChunk:
    pages = chunk.pages(spans)
    ranges = [(chunk.offsets[at], chunk.lengths[at]) for at in pages]
    crcs = [chunk.crcs[at] for at in pages]
    if chunk.dictionary is not None:
        offset, length, crc = chunk.dictionary
        ranges.insert(0, (offset, length))
        crcs.insert(0, crc)
    return ColumnChunk(ranges, crcs, sum([chunk.values[at] for at in pages]), chunk.dictionary is not None)


def _picks(cover: Cover, rows_by_group: Mapping[int, np.ndarray | None]) -> pa.Array | None:
    """The positions of the rows among the covered ones; None when they are all of them."""
    if all(rows_by_group[group] is None for group, _ in cover):
        return None
    # Row groups are numbered as if each ended with its last range.
    starts: list[int] = []
    ends: list[int] = []
    picked: list[np.ndarray] = []
    base = 0
    for group, spans in cover:
        rows = rows_by_group[group]
        starts += [base + first for first, _ in spans]
        ends += [base + end for _, end in spans]
        if rows is None:
            picked += [np.arange(base + first, base + end) for first, end in spans]
        else:
            picked.append(rows + base)
        base = ends[-1]
    all_rows, all_ends = np.concatenate(picked), np.array(ends)
    before = np.cumsum(all_ends - starts) - all_ends
    return integers(before[np.searchsorted(all_ends, all_rows, "right")] + all_rows)


def _coded(skeleton: Skeleton, names: Sequence[str], layout: Sequence[Sequence[ColumnChunk]]) -> list[str]:
    """Text columns that have a dictionary in every row group."""
    leaves = [name for name in names for _ in skeleton.columns[name].leaves]
    return [
        name
        for at, name in enumerate(leaves)
        if skeleton.columns[name].is_text and all(group[at].dictionary for group in layout)
    ]


def _lay_out(
    skeleton: Skeleton,
    names: Sequence[str],
    cover: Cover,
    layout: Sequence[Sequence[ColumnChunk]],
    bodies: Mapping[Range, memoryview],
) -> pa.Buffer:
    parts: list[bytes | memoryview] = [MAGIC]
    start = len(MAGIC)
    groups: list[Struct] = []
    begun = [skeleton.chunks[leaf] for name in names for leaf in skeleton.columns[name].leaves]
    for (_, spans), pieces in zip(cover, layout, strict=True):
        chunks: list[bytes] = []
        position = start
        for description, piece in zip(begun, pieces, strict=True):
            length = sum([place[1] for place in piece.ranges])
            chunks.append(_chunk(description, position, length, piece))
            parts.extend([bodies[place] for place in piece.ranges])
            position += length
        groups.append(_group(chunks, position - start, sum(end - first for first, end in spans)))
        start = position
    footer = _small_footer(skeleton, names, groups)
    parts += [footer, packing.pack("<I", len(footer)), MAGIC]
    return _owned(b"".join(parts))


def _owned(data: bytes) -> pa.Buffer:
    """Copy the bytes into Arrow's memory: its threads may release them last, even after Python has ended."""
    owned = pa.allocate_buffer(len(data), memory_pool=POOL)
    memoryview(owned).cast("B")[:] = data
    return owned


def _small_footer(skeleton: Skeleton, names: Sequence[str], groups: list[Struct]) -> bytes:
    columns = [skeleton.columns[name] for name in names]
    root = dict(sorted({**skeleton.root, ElementFields.CHILDREN: (I32, len(columns))}.items()))
    elements: list[Struct | bytes] = [root]
    elements += [element for column in columns for element in column.elements]
    return encode(
        {
            FileFields.VERSION: (I32, 2),
            FileFields.SCHEMA: (LIST, (STRUCT, elements)),
            FileFields.ROWS: (I64, sum(value(group, GroupFields.ROWS) for group in groups)),
            FileFields.GROUPS: (LIST, (STRUCT, groups)),
            FileFields.CREATED_BY: (BINARY, b"indextables"),
        }
    )


def _chunk(begun: bytes, position: int, length: int, piece: ColumnChunk) -> bytes:
    data = position + piece.ranges[0][1] if piece.dictionary else position
    numbers = [
        (MetaFields.VALUES, piece.values),
        (MetaFields.UNCOMPRESSED_BYTES, length),
        (MetaFields.COMPRESSED_BYTES, length),
        (MetaFields.DATA_PAGE, data),
    ]
    if piece.dictionary:
        numbers.append((MetaFields.DICTIONARY_PAGE, position))
    return encode_more(begun, MetaFields.DESCRIPTION[-1], numbers) + b"\0"


def _decode(buffer: pa.Buffer, name: str, coded: Sequence[str] = ()) -> pa.Table:
    small = buffer.size <= SMALL_READ
    pool = POOL if small else pa.default_memory_pool()
    try:
        return read_parquet(buffer, pool, threads=not small, dictionary_columns=coded)
    except (pa.ArrowException, OSError, ValueError) as bad:
        raise DamagedSplitError(
            f"{name} is damaged: its pages cannot be decoded ({bad}). Bring back an intact copy, "
            "or restore a version of the table without this file.",
            path=name,
        ) from bad
