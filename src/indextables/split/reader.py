"""Reading the rows of a split: some rows, some row groups, or all of them, with the columns asked for.

Every byte is checked before it is decoded. When the page map itself is damaged
the rows are still read, by pyarrow alone with Parquet's own page checksums.
What comes out has the table's types: columns that are younger than the split are
null, widened ones are cast, and partition columns take the log's value.
"""

from __future__ import annotations

import io
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import DamagedSplitError, SchemaError
from indextables.model.fields import decode_partition_array
from indextables.split.ahead import Ahead
from indextables.split.arrays import integers
from indextables.split.assemble import Skeleton, check_pages, decoded, read_pages, schema_of
from indextables.split.index_cache import PAGES, SKELETON, Entry, entry_key
from indextables.split.layout import Manifest, SplitRef, read_footer
from indextables.split.pages import ROWS_PER_PAGE, PageMap
from indextables.split.source import Source
from indextables.split.sparse import UndecodedError, can_decode, decode_rows
from indextables.split.thrift import ThriftError
from indextables.storage.checksum import crc32
from indextables.storage.store import Store

READERS_KEPT = 256
GROUPS_AT_ONCE = 4
"""Row groups that a scan reads together, and how many of them found rows may amount to."""
MANY_ROWS = 20_000
SPARSE_SHARE = 0.5
"""Up to this share of the rows of their row groups, wanted rows are decoded alone."""
PAGE_SHARE = 0.5
"""Up to this share of a row group's pages are fetched one by one; above it the whole group is."""

Parts = Mapping[int, Sequence[int]]
"""Wanted rows by their row group."""

_kept: OrderedDict[str, SplitReader] = OrderedDict()
_kept_lock = threading.Lock()


def open_split(store: Store, ref: SplitRef, entry: Entry | None = None) -> SplitReader:
    """Open a split for reading rows; `entry` saves looking into the file for what was extracted already."""
    source = Source.of(store, ref.path)
    key = entry_key(source, ref)
    with _kept_lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
            return found
    opened = _from_entry(source, ref, entry) if entry is not None else _from_file(source, ref)
    with _kept_lock:
        _kept[key] = opened
        while len(_kept) > READERS_KEPT:
            _kept.popitem(last=False)
    return opened


def forget_readers() -> None:
    """Drop what is remembered about split files."""
    with _kept_lock:
        _kept.clear()


def _from_entry(source: Source, ref: SplitRef, entry: Entry) -> SplitReader:
    pages, skeleton = entry.content(PAGES), entry.content(SKELETON)
    assert pages is not None
    assert skeleton is not None
    return SplitReader(source, ref, entry.manifest, *_parsed(pages, skeleton, entry.manifest))


def _from_file(source: Source, ref: SplitRef) -> SplitReader:
    manifest = read_footer(source, ref).manifest
    places = [manifest.files.get(name) for name in (PAGES, SKELETON)]
    pages: PageMap | None = None
    skeleton: Skeleton | None = None
    if all(place is not None for place in places):
        ranges = [(manifest.offset + place.offset, place.length) for place in places if place is not None]
        bodies = source.read(ranges)
        sound = all(
            crc32(bodies[where]) == place.crc32
            for where, place in zip(ranges, places, strict=True)
            if place is not None
        )
        if sound:
            pages, skeleton = _parsed(bodies[ranges[0]], bodies[ranges[1]], manifest)
    return SplitReader(source, ref, manifest, pages, skeleton)


def _parsed(pages: Any, skeleton: Any, manifest: Manifest) -> tuple[PageMap | None, Skeleton | None]:
    try:
        return PageMap.from_bytes(pages, manifest.group_rows), Skeleton.from_bytes(skeleton)
    except (pa.ArrowException, ThriftError, KeyError, ValueError):
        return None, None


class SplitReader:
    """The rows of one split."""

    def __init__(
        self,
        source: Source,
        ref: SplitRef,
        manifest: Manifest,
        pages: PageMap | None,
        skeleton: Skeleton | None,
    ) -> None:
        self.source = source
        self.ref = ref
        self.manifest = manifest
        self.rows = manifest.rows
        self._pages = pages
        self._skeleton = skeleton
        starts = [0]
        for rows in manifest.group_rows:
            starts.append(starts[-1] + rows)
        self.group_starts = starts
        self._names: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the file holds."""
        if self._names is None:
            names = self._skeleton.columns if self._skeleton is not None else self._plain().schema_arrow.names
            self._names = tuple(names)
        return self._names

    @property
    def groups(self) -> range:
        """The row groups."""
        return range(len(self.manifest.group_rows))

    def read_groups(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """All rows of some row groups."""
        return self._read(dict.fromkeys(groups), columns)

    def read_rows(self, rows: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Some rows, which are given in order."""
        wanted = {
            group: [rows[at] - self.group_starts[group] for at in places]
            for group, places in self.by_group(rows).items()
        }
        return self._read(wanted, columns)

    def by_group(self, rows: Sequence[int]) -> dict[int, range]:
        """Which of the given rows, which are in order, lie in which row group: positions in `rows`."""
        found: dict[int, range] = {}
        at = 0
        while at < len(rows):
            group = bisect_right(self.group_starts, rows[at]) - 1
            end = bisect_left(rows, self.group_starts[group + 1], at)
            found[group] = range(at, end)
            at = end
        return found

    def plan(self, rows: Sequence[int]) -> str:
        """How wanted rows are fetched: single `pages`, whole `row_groups`, or a `scan` of everything."""
        wanted = self.by_group(rows)
        total = sum(self.manifest.group_rows[group] for group in wanted)
        pages = len(rows)
        if pages < MANY_ROWS:
            # Rows of one page count once; among many rows that are spread it makes no difference.
            pages = len({row // ROWS_PER_PAGE for row in rows})
        if pages * ROWS_PER_PAGE <= PAGE_SHARE * total:
            return "pages"
        return "scan" if len(wanted) == len(self.manifest.group_rows) else "row_groups"

    def fetch(self, rows: Sequence[int], columns: Sequence[str]) -> Iterator[tuple[Sequence[int], pa.Table]]:
        """Wanted rows with their numbers, in pieces of bounded size, read by the cheapest plan."""
        if not rows:
            return
        if self.plan(rows) == "pages":
            yield rows, self.read_rows(rows, columns)
            return
        parts = {group: rows[at.start : at.stop] for group, at in self.by_group(rows).items()}
        sparse = self._is_sparse(parts, columns)
        pieces = self._pieces(parts, GROUPS_AT_ONCE if sparse else 0)
        pick = self._pick_sparse if sparse else self._pick
        with Ahead(partial(pick, columns=columns), pieces) as reading:
            for piece, table in reading:
                yield list(chain.from_iterable(piece.values())), table

    def _pieces(self, parts: Parts, most: int) -> list[Parts]:
        """Row groups in pieces whose wanted rows are no more than so many groups hold; one group at least."""
        pieces: list[dict[int, Sequence[int]]] = []
        size = 0.0
        for group, rows in parts.items():
            share = len(rows) / self.manifest.group_rows[group]
            if not pieces or size + share > most:
                pieces.append({})
                size = 0.0
            pieces[-1][group] = rows
            size += share
        return [*pieces]

    def _is_sparse(self, parts: Parts, columns: Sequence[str]) -> bool:
        """Whether it pays to pass over unwanted values, and whether they can be."""
        wanted, total = sum(map(len, parts.values())), sum(self.manifest.group_rows[group] for group in parts)
        if not columns or self._pages is None or self._skeleton is None or wanted > SPARSE_SHARE * total:
            return False
        path = self.source.local
        return path is not None and can_decode(path, self._schema, columns)

    @cached_property
    def _schema(self) -> pa.Schema:
        assert self._skeleton is not None
        return schema_of(self._skeleton, self.source.name)

    def _pick_sparse(self, parts: Parts, columns: Sequence[str]) -> pa.Table:
        """Few of the rows of some row groups."""
        path = self.source.local
        assert path is not None
        assert self._skeleton is not None
        assert self._pages is not None
        check_pages(self.source, self._skeleton, self._pages, columns, parts)
        try:
            return decode_rows(path, self._schema, columns, list(chain.from_iterable(parts.values())))
        except UndecodedError:
            return pa.concat_tables([self._pick({group: rows}, columns) for group, rows in parts.items()])

    def _pick(self, parts: Parts, columns: Sequence[str]) -> pa.Table:
        """Many of the rows of one row group."""
        ((group, rows),) = parts.items()
        table = self._read({group: None}, columns, coded=True)
        if len(rows) < table.num_rows:
            table = table.take(pc.subtract(integers(rows), integers([self.group_starts[group]])[0]))
        return decoded(table)

    def scan(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """All rows, in pieces; each with the number of its first row."""
        with Ahead(partial(self.read_groups, columns=columns), _batched(self.groups)) as reading:
            for some, table in reading:
                yield self.group_starts[some[0]], table

    def _read(
        self, wanted: Mapping[int, Sequence[int] | None], columns: Sequence[str], *, coded: bool = False
    ) -> pa.Table:
        if not columns:
            sizes = (
                self.manifest.group_rows[group] if rows is None else len(rows)
                for group, rows in wanted.items()
            )
            return pa.table({"": pa.nulls(sum(sizes))}).select([])
        if self._pages is not None and self._skeleton is not None:
            return read_pages(self.source, self._skeleton, self._pages, columns, wanted, coded=coded)
        return self._read_plain(wanted, columns)

    def _read_plain(self, wanted: Mapping[int, Sequence[int] | None], columns: Sequence[str]) -> pa.Table:
        parts = []
        try:
            with self._plain() as file:
                for group, rows in wanted.items():
                    part = file.read_row_group(group, columns=list(columns), use_threads=False)
                    part = part.select(list(columns))
                    parts.append(part if rows is None else part.take(integers(rows)))
        except (pa.ArrowException, OSError, ValueError) as bad:
            raise DamagedSplitError(
                f"{self.source.name} is damaged: its rows cannot be read ({bad}). Bring back an intact copy, "
                "or restore a version of the table without this file.",
                path=self.source.name,
            ) from bad
        return pa.concat_tables(parts)

    def _plain(self) -> Any:
        import pyarrow.parquet as pq

        size = self.ref.size if self.ref.size is not None else self.source.size()
        file = pa.PythonFile(io.BufferedReader(_Ranges(self.source, size)), "r")
        # No threads of Arrow's: they would call into Python, and may do so when it has ended.
        return pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)


def _batched(groups: Sequence[int]) -> list[Sequence[int]]:
    return [groups[at : at + GROUPS_AT_ONCE] for at in range(0, len(groups), GROUPS_AT_ONCE)]


class _Ranges(io.RawIOBase):
    """A split as a file, for readers that want one."""

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = max(0, min(len(buffer), self._size - self._at))
        if length:
            buffer[:length] = self._source.read_one(self._at, length)
            self._at += length
        return length


def to_table_schema(
    rows: pa.Table, schema: pa.Schema, columns: Sequence[str], partition_values: Mapping[str, str | None]
) -> pa.Table:
    """Rows of a split as rows of the table: its types, its partition values, nulls for younger columns."""
    arrays = []
    for name in columns:
        field = schema.field(name)
        if name in partition_values:
            text = pa.repeat(pa.scalar(partition_values[name], pa.string()), 1)
            value = decode_partition_array(text, field.type)
            if value[0].is_valid or partition_values[name] is None:
                arrays.append(pa.chunked_array([_repeat(value, rows.num_rows)], field.type))
                continue
        if name not in rows.column_names:
            arrays.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)], field.type))
            continue
        arrays.append(_cast(rows[name], field))
    return (
        pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in columns]))
        if columns
        else rows
    )


def _repeat(value: pa.Array, count: int) -> pa.Array:
    if not value[0].is_valid:
        return pa.nulls(count, value.type)
    return pa.repeat(value[0], count)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        raise SchemaError(
            f"column {field.name!r} of a split has type {column.type}, "
            f"which cannot become {field.type}: {bad}",
            column=field.name,
        ) from bad
