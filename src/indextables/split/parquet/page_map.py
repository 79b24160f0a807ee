"""The page map: the offset, length and checksum of every Parquet page of a split.

Parquet's own page checksums cover a page's body but not its header, and no Arrow reader
fetches single pages. With this map a reader fetches just the pages that hold the wanted
rows, checks every byte, and assembles them into a small Parquet file in memory, which
pyarrow then decodes like any other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.model.arrays import as_numpy, numbers
from indextables.records import dataclass
from indextables.split.parquet.fields import (
    ChunkFields,
    ElementFields,
    FileFields,
    GroupFields,
    MetaFields,
    PageFields,
    items,
    value,
)
from indextables.split.parquet.thrift import Struct, decode
from indextables.storage.checksum import crc32, crc32_combine

RowSpan = tuple[int, int]
"""A range of rows in one row group: first row, and the row after the last."""
Stretch = tuple[int, int, int]
"""Offset, length and checksum of some bytes."""

PAGES_SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        ("leaf", pa.int32()),
        ("first_row", pa.int32()),
        ("rows", pa.int32()),
        ("values", pa.int64()),
        ("offset", pa.int64()),
        ("length", pa.int32()),
        ("crc", pa.uint32()),
    ]
)
ROWS_PER_PAGE = 4096
DICTIONARY = -1
"""The `first_row` of a dictionary page, which holds no rows."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of one column in one row group; the dictionary page, if any, is kept apart."""

    rows: int
    first_rows: tuple[int, ...]
    values: list[int]
    offsets: list[int]
    lengths: list[int]
    crcs: list[int | None]
    """None where nobody has computed one, in files of other writers."""
    dictionary: tuple[int, int, int | None] | None

    def bytes_around(self, rows: np.ndarray) -> int:
        """The size of the pages that hold some rows (ascending)."""
        pages = np.unique(np.searchsorted(np.array(self.first_rows), rows, "right") - 1)
        return int(np.array(self.lengths)[pages].sum())

    def around(self, rows: np.ndarray) -> list[RowSpan]:
        """The pages that hold some rows (ascending), as ranges of rows."""
        first = np.array(self.first_rows)
        pages = np.searchsorted(first, rows, "right") - 1
        pages = pages[np.concatenate([[True], pages[1:] != pages[:-1]])]
        # A range ends where the next page is not the following one.
        gaps = np.flatnonzero(np.diff(pages) != 1)
        begins, lasts = pages[np.concatenate([[0], gaps + 1])], pages[np.concatenate([gaps, [-1]])]
        ends = np.append(first, self.rows)[lasts + 1]
        return list(zip(first[begins].tolist(), ends.tolist(), strict=True))

    def cover(self, spans: Sequence[RowSpan]) -> list[RowSpan]:
        """Widen ranges of rows to whole pages."""
        wide: list[RowSpan] = []
        for start, end in spans:
            first = self.first_rows[bisect_right(self.first_rows, start) - 1]
            at = bisect_left(self.first_rows, end)
            last = self.first_rows[at] if at < len(self.first_rows) else self.rows
            if wide and first <= wide[-1][1]:
                wide[-1] = (wide[-1][0], max(last, wide[-1][1]))
            else:
                wide.append((first, last))
        return wide

    def pages(self, spans: Sequence[RowSpan]) -> list[int]:
        """The pages of row ranges that begin and end at page boundaries."""
        numbers: list[int] = []
        for start, end in spans:
            numbers.extend(range(bisect_left(self.first_rows, start), bisect_left(self.first_rows, end)))
        return numbers


class PageMap:
    """All pages of one split, looked up by row group and leaf column."""

    def __init__(self, table: pa.Table, group_rows: Sequence[int]) -> None:
        self.group_rows = list(group_rows)
        self._columns = {name: table[name].combine_chunks() for name in table.column_names}
        groups, leaves = (as_numpy(self._columns[name]) for name in ("group", "leaf"))
        self.leaves = int(leaves.max()) + 1 if len(leaves) else 0
        keys = groups.astype(np.int64) * self.leaves + leaves
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        self._slices = dict(zip(keys[starts].tolist(), pairwise([*starts.tolist(), len(keys)]), strict=True))
        self._chunks: dict[int, Chunk] = {}

    @cached_property
    def _stretches(self) -> dict[int, list[Stretch]]:
        columns = (self._columns[name].to_pylist() for name in ("offset", "length", "crc"))
        pages = list(zip(*columns, strict=True))
        return {key: _joined(pages[start:end]) for key, (start, end) in self._slices.items()}

    def stretches(self, group: int, leaf: int) -> list[Stretch]:
        """The byte ranges of one column chunk with its dictionary; one range if its pages are contiguous."""
        return self._stretches[group * self.leaves + leaf]

    def has(self, group: int, leaf: int) -> bool:
        """Whether the pages of a column chunk are known; all are, of splits of ours."""
        return leaf < self.leaves and group * self.leaves + leaf in self._slices

    def chunk(self, group: int, leaf: int) -> Chunk:
        """The pages of one column chunk."""
        key = group * self.leaves + leaf
        chunk = self._chunks.get(key)
        if chunk is None:
            chunk = self._chunks[key] = self._load(key, group)
        return chunk

    def _load(self, key: int, group: int) -> Chunk:
        start, end = self._slices[key]
        names = ("first_row", "values", "offset", "length", "crc")
        first, values, offsets, lengths, crcs = (
            self._columns[name].slice(start, end - start).to_pylist() for name in names
        )
        dictionary = None
        if first and first[0] == DICTIONARY:
            dictionary = (offsets[0], lengths[0], crcs[0])
            first, values, offsets, lengths, crcs = (x[1:] for x in (first, values, offsets, lengths, crcs))
        return Chunk(self.group_rows[group], tuple(first), values, offsets, lengths, crcs, dictionary)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, group_rows: Sequence[int]) -> PageMap:
        """Read the stored form."""
        options = pa.ipc.IpcReadOptions(use_threads=False)
        with pa.ipc.open_file(pa.py_buffer(data), options=options) as reader:
            return cls(reader.read_all(), group_rows)


def _joined(pages: Iterable[Stretch]) -> list[Stretch]:
    """Adjacent pages joined into one range."""
    joined: list[Stretch] = []
    for offset, length, crc in pages:
        if joined and joined[-1][0] + joined[-1][1] == offset:
            first, before, so_far = joined[-1]
            joined[-1] = (first, before + length, crc32_combine(so_far, crc, length))
        else:
            joined.append((offset, length, crc))
    return joined


def map_pages(footer: Struct, read: Callable[[int, int], Any]) -> pa.Table:
    """List every page of a finished Parquet file with the checksum of its bytes."""
    repeated = _repeated_leaves(items(footer, FileFields.SCHEMA))
    listed: list[tuple[int, ...]] = []
    for group, item in enumerate(items(footer, FileFields.GROUPS)):
        total = value(item, GroupFields.ROWS)
        for leaf, chunk in enumerate(items(item, GroupFields.COLUMNS)):
            pages = _chunk_pages(chunk, total, read, counted=not repeated[leaf])
            listed.extend((group, leaf, *page) for page in pages)
    columns = list(zip(*listed, strict=True)) or [()] * len(PAGES_SCHEMA)
    arrays = [numbers(column, field.type) for column, field in zip(columns, PAGES_SCHEMA, strict=True)]
    return pa.table(arrays, schema=PAGES_SCHEMA)


def _chunk_pages(
    chunk: Struct, total: int, read: Callable[[int, int], Any], *, counted: bool
) -> Iterator[tuple[int, ...]]:
    """First row, rows, values, offset, length and checksum of each page; `counted` if values are rows."""
    index = read(value(chunk, ChunkFields.OFFSET_INDEX), value(chunk, ChunkFields.OFFSET_INDEX_LENGTH))
    locations = items(decode(index)[0], PageFields.LOCATIONS)
    firsts = [value(location, PageFields.FIRST_ROW, 0) for location in locations]
    meta = value(chunk, ChunkFields.META)
    begin = value(locations[0], PageFields.OFFSET)
    start = value(meta, MetaFields.DICTIONARY_PAGE, begin)
    body = memoryview(read(start, value(meta, MetaFields.COMPRESSED_BYTES)))
    if start < begin:
        yield DICTIONARY, 0, 0, start, begin - start, crc32(body[: begin - start])
    for location, (first, following) in zip(locations, pairwise([*firsts, total]), strict=True):
        offset, length = value(location, PageFields.OFFSET), value(location, PageFields.LENGTH)
        page = body[offset - start : offset - start + length]
        rows = following - first
        yield first, rows, rows if counted else _page_values(page), offset, length, crc32(page)


def map_foreign_pages(footer: Struct, read: Callable[[int, int], Any], whole: memoryview | None) -> pa.Table:
    """List the pages of a file that another writer has made, as far as they can be found; without checksums.

    An offset index tells where they are; without one, headers are followed from page to page, where the
    `whole` file is at hand. A column chunk is left out where a page has no first row of its own, or where
    values are read otherwise than pages of ours (INT96, a codec that changes between row groups).
    """
    leaves = [
        item for item in items(footer, FileFields.SCHEMA)[1:] if not value(item, ElementFields.CHILDREN)
    ]
    repeated = _repeated_leaves(items(footer, FileFields.SCHEMA))
    codecs: dict[int, Any] = {}
    columns: list[list[int]] = [[] for _ in PAGES_SCHEMA.names[:-1]]
    for group, item in enumerate(items(footer, FileFields.GROUPS)):
        total = value(item, GroupFields.ROWS)
        for leaf, chunk in enumerate(items(item, GroupFields.COLUMNS)):
            meta = value(chunk, ChunkFields.META)
            alike = meta is not None and codecs.setdefault(leaf, meta.get(MetaFields.CODEC)) == meta.get(
                MetaFields.CODEC
            )
            if not alike or value(leaves[leaf], ElementFields.TYPE) == ElementFields.INT96:
                continue
            for page in _foreign_pages(chunk, total, read, whole, repeated=repeated[leaf]):
                for column, number in zip(columns, (group, leaf, *page), strict=True):
                    column.append(number)
    arrays = [numbers(column, field.type) for column, field in zip(columns, PAGES_SCHEMA, strict=False)]
    return pa.table([*arrays, pa.nulls(len(columns[0]), pa.uint32())], schema=PAGES_SCHEMA)


def _foreign_pages(
    chunk: Struct, total: int, read: Callable[[int, int], Any], whole: memoryview | None, *, repeated: bool
) -> list[tuple[int, ...]]:
    """First row, rows, values, offset and length of each page, the dictionary first; none if not known."""
    meta = value(chunk, ChunkFields.META)
    places = [value(meta, number) for number in (MetaFields.DICTIONARY_PAGE, MetaFields.DATA_PAGE)]
    # Some writers say of neither that it is the dictionary; it is what stands before the first data page.
    start = min(place for place in places if place)
    offset, length = (
        value(chunk, number) for number in (ChunkFields.OFFSET_INDEX, ChunkFields.OFFSET_INDEX_LENGTH)
    )
    if offset is None or not length:
        if whole is None or repeated:
            return []
        pages = walk_pages(whole, start, start + value(meta, MetaFields.COMPRESSED_BYTES))
    elif repeated and whole is None:
        return []
    else:
        locations = items(decode(read(offset, length))[0], PageFields.LOCATIONS)
        firsts = [value(location, PageFields.FIRST_ROW, 0) for location in locations]
        pages = []
        for location, (first, following) in zip(locations, pairwise([*firsts, total]), strict=True):
            at, size = value(location, PageFields.OFFSET), value(location, PageFields.LENGTH)
            rows = following - first
            count = _page_values(whole[at : at + size]) if repeated and whole is not None else rows
            pages.append((first, rows, count, at, size))
        if pages and start < pages[0][3]:
            pages.insert(0, (DICTIONARY, 0, 0, start, pages[0][3] - start))
    held = [page for page in pages if page[0] != DICTIONARY]
    return pages if held and sum(page[1] for page in held) == total and held[0][0] == 0 else []


def walk_pages(whole: memoryview, start: int, end: int) -> list[tuple[int, ...]]:
    """The pages of a column chunk whose values are rows, by their headers."""
    pages: list[tuple[int, ...]] = []
    at, row = start, 0
    while at < end:
        header, body = decode(whole, at)
        size = body + value(header, PageFields.COMPRESSED_BYTES) - at
        kind = value(header, PageFields.KIND)
        if kind == PageFields.DICTIONARY_KIND:
            pages.append((DICTIONARY, 0, 0, at, size))
        elif kind in (PageFields.DATA_KIND, PageFields.DATA_V2_KIND):
            number = PageFields.DATA_HEADER if kind == PageFields.DATA_KIND else PageFields.DATA_HEADER_V2
            count = value(value(header, number), PageFields.VALUES)
            pages.append((row, count, count, at, size))
            row += count
        at += size
    return pages


def pages_bytes(table: pa.Table) -> bytes:
    """The stored form of a page map."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _page_values(page: memoryview) -> int:
    header, _ = decode(page)
    number = PageFields.DATA_HEADER_V2 if PageFields.DATA_HEADER_V2 in header else PageFields.DATA_HEADER
    values: int = value(value(header, number), PageFields.VALUES)
    return values


def _repeated_leaves(elements: list[Struct]) -> list[bool]:
    """For every leaf of the schema, whether a row may hold several of its values."""
    is_repeated: list[bool] = []

    def walk(at: int, *, inside: bool) -> int:
        element = elements[at]
        repeated = inside or value(element, ElementFields.REPETITION) == ElementFields.REPEATED
        children = value(element, ElementFields.CHILDREN, 0)
        at += 1
        if not children:
            is_repeated.append(repeated)
        for _ in range(children):
            at = walk(at, inside=repeated)
        return at

    at = 1
    while at < len(elements):
        at = walk(at, inside=False)
    return is_repeated
