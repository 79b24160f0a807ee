"""Where the pages of somebody's Parquet file lie: found when it is indexed, used when a few rows are fetched.

The page map of a file has the form of a split's row map, without checksums: it tells which bytes to read, so
that neither the footer of the file nor a whole row group is. What is read is what the file holds. Without a
map, whole row groups are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from indextables.errors import StorageError
from indextables.ops.delta.data_file import DataFile, RowReader, StoredFile
from indextables.split.parquet.fields import ChunkFields, FileFields, GroupFields, items, value
from indextables.split.parquet.thrift import Struct, ThriftError, decode
from indextables.split.read.page_reader import read_pages, schema_of
from indextables.split.read.row_map import RowMap, foreign_row_map_bytes
from indextables.split.source import SplitFile
from indextables.storage.store import Store

MOST_CHUNKS = 10_000
"""A file of more column chunks has no page map: to read its footer here would take seconds."""
MOST_BYTES = 8 << 20
"""Footers and page indexes larger than this are not read again here."""
_TAIL = 8
_FIRST_READ = 64 << 10


def find_pages(store: Store, file: DataFile, group_rows: tuple[int, ...]) -> bytes | None:
    """The page map of a file, as it is stored; None where its pages cannot be found."""
    stored = StoredFile.of(store, file.path, file.size)
    local = stored.store.local_path(stored.path)
    try:
        if local is None:
            return _found_by_ranges(stored, group_rows)
        with pa.memory_map(local) as mapped:
            whole = memoryview(mapped.read_buffer()).cast("B")
            length = int.from_bytes(whole[-_TAIL : 4 - _TAIL], "little")
            if length > MOST_BYTES:
                return None
            footer, _ = decode(whole, len(whole) - _TAIL - length)
            if _has_many_chunks(footer):
                return None
            return foreign_row_map_bytes(
                footer, group_rows, lambda start, size: whole[start : start + size], whole
            )
    except (ThriftError, StorageError, pa.ArrowException, OSError, LookupError, TypeError, ValueError):
        # Files that are not as Parquet says are read by who can read them, in whole row groups.
        return None


def _found_by_ranges(stored: StoredFile, group_rows: tuple[int, ...]) -> bytes | None:
    """The same by two or three reads: the footer, and all offset indexes together."""
    size = stored.size or stored.store.head(stored.path).size
    first = min(size, _FIRST_READ)
    tail = stored.store.get_range(stored.path, size - first, first)
    length = int.from_bytes(tail[-_TAIL : 4 - _TAIL], "little")
    if length + _TAIL > MOST_BYTES:
        return None
    if length + _TAIL > len(tail):
        tail = stored.store.get_range(stored.path, size - _TAIL - length, length + _TAIL)
    footer, _ = decode(tail, len(tail) - _TAIL - length)
    places = [
        (value(chunk, ChunkFields.OFFSET_INDEX), value(chunk, ChunkFields.OFFSET_INDEX_LENGTH))
        for group in items(footer, FileFields.GROUPS)
        for chunk in items(group, GroupFields.COLUMNS)
    ]
    known = [(start, count) for start, count in places if start is not None and count]
    if _has_many_chunks(footer) or not known:
        return None
    begin, end = min(start for start, _ in known), max(start + count for start, count in known)
    if end - begin > MOST_BYTES:
        return None
    body = stored.store.get_range(stored.path, begin, end - begin)
    return foreign_row_map_bytes(
        footer, group_rows, lambda start, count: body[start - begin : start - begin + count], None
    )


def _has_many_chunks(footer: Struct) -> bool:
    groups = items(footer, FileFields.GROUPS)
    return sum(len(items(group, GroupFields.COLUMNS)) for group in groups) > MOST_CHUNKS


class FilePages:
    """The pages of one file, for fetching some of its rows."""

    def __init__(self, row_map: RowMap) -> None:
        self._map = row_map

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns of the file, as pyarrow reads them from its pages."""
        return schema_of(self._map.skeleton, "the page map")

    def picked(
        self,
        reader: RowReader,
        store: Store,
        file: DataFile,
        rows_by_group: Mapping[int, np.ndarray | None],
    ) -> Iterator[pa.Table] | None:
        """Some rows of some row groups, in order; None where it is not known in which pages they are."""
        names = reader.stored_columns(self._schema)
        leaves = [leaf for name in names for leaf in self._map.skeleton.columns[name].leaves]
        pages = self._map.pages
        if not leaves or not all(pages.has(group, leaf) for group in rows_by_group for leaf in leaves):
            return None
        place = SplitFile.of(store, file.path)
        rows = read_pages(place, self._map.skeleton, pages, names, rows_by_group)
        # Columns may be known by the ids that stand in the schema alone.
        fields = pa.schema([self._schema.field(name) for name in names])
        return reader.shown(pa.Table.from_arrays(rows.columns, schema=fields), file)
