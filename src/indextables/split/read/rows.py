"""Reads the rows of a split: some rows, some row groups, or all of them, with the requested columns.

Every byte is checked before it is decoded. If the page map itself is damaged, the rows
are still read, by pyarrow alone with Parquet's own page checksums. The result has the
table's types: columns added after the split was written are null, widened ones are cast,
and partition columns have the log's value.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedSplitError, SchemaError, SplitError
from indextables.lazy import later, pq
from indextables.model.arrays import from_values, integers
from indextables.model.arrow_internals import cast_values, take_rows
from indextables.model.fields import decode_partition_array
from indextables.model.types import holds_variants
from indextables.split.layout import MAGIC, Region, SplitManifest, SplitRef, read_footer
from indextables.split.parquet.page_map import ROWS_PER_PAGE
from indextables.split.read.hidden_rows import without
from indextables.split.read.page_cache import PageCache
from indextables.split.read.page_reader import (
    check_pages,
    decoded,
    read_pages,
    schema_of,
    stored_bytes,
    stored_pages,
)
from indextables.split.read.read_ahead import Ahead
from indextables.split.read.row_map import RowMap, RowMapError
from indextables.split.read.sparse import UndecodedError, can_decode, decode_rows
from indextables.split.source import Range, SplitFile
from indextables.storage.checksum import crc32

if TYPE_CHECKING:
    from indextables.predicate import tree
    from indextables.predicate.tree import Node
    from indextables.split.read import group_bounds
    from indextables.split.read.group_bounds import GroupStatistics
    from indextables.storage import ranged_file
else:
    group_bounds = later("indextables.split.read.group_bounds")
    tree = later("indextables.predicate.tree")
    ranged_file = later("indextables.storage.ranged_file")

T = TypeVar("T")

GROUPS_AT_ONCE = 4
"""Row groups that a scan reads together; the rows of one batch number at most what that many groups hold."""
MANY_ROWS = 20_000
SPARSE_SHARE = 0.5
"""Up to this share of the rows in their row groups, only the requested rows are decoded."""
SPARSE_BYTES = 1 << 20
"""Below this many stored bytes, pyarrow decodes a whole row group faster than DuckDB plans its query."""
PAGE_SHARE = 0.75
"""Up to this share of a row group's pages are fetched singly; above it the whole group is read."""
FEW_ROWS = 64
"""So few rows are fetched by their pages if any page can be left out."""
BYTES_AT_ONCE = 512 << 10
"""Row groups of narrow columns are read together up to this weight."""
WORTH_STATISTICS = 128 << 10
"""From this weight of a filter's columns on, looking at statistics takes less time than decoding."""

RowsByGroup = Mapping[int, np.ndarray | None]
"""Rows (ascending numbers in the split) by row group; None for all rows of the group."""


def open_reader(source: SplitFile, ref: SplitRef, row_map: bytes | memoryview | None = None) -> SplitReader:
    """Open a split for reading rows; `row_map` are its bytes at the offset the log names, if already read."""
    if ref.row_map is not None and ref.index_offset is not None and ref.index_length is not None:
        if row_map is None:
            end = ref.index_offset + ref.index_length
            row_map = source.read_one(end - ref.row_map.length, ref.row_map.length)
        try:
            opened = RowMap.from_bytes(row_map, ref.row_map.crc32)
        except RowMapError:
            # The footer decides: the log may be wrong, or the row map damaged.
            pass
        else:
            return SplitReader(source, ref, opened.group_rows, opened)
    return _by_footer(source, ref)


def _by_footer(source: SplitFile, ref: SplitRef) -> SplitReader:
    manifest: SplitManifest = read_footer(source, ref).manifest
    piece = manifest.row_map
    try:
        body = source.read_one(manifest.offset + manifest.length - piece.length, piece.length)
        row_map = RowMap.from_bytes(body, piece.crc32)
    except RowMapError:
        return SplitReader(source, ref, manifest.group_rows, None)
    return SplitReader(source, ref, manifest.group_rows, row_map)


class SplitReader:
    """The rows of one split."""

    def __init__(
        self, source: SplitFile, ref: SplitRef, group_rows: Sequence[int], row_map: RowMap | None
    ) -> None:
        self.source = source
        self.ref = ref
        self._names = ref.names
        self.group_rows = tuple(group_rows)
        self.rows = sum(self.group_rows)
        self._map = row_map
        self._page_cache = PageCache()
        self.group_starts = np.concatenate([[0], np.cumsum(self.group_rows, dtype=np.int64)])
        self.hidden: np.ndarray | None = None
        """The numbers of the rows that a deletion vector hides, ascending."""

    def hiding(self, rows: np.ndarray) -> SplitReader:
        """The same split, of which these rows (ascending) are deleted."""
        other = copy(self)
        other.hidden = rows
        return other

    @property
    def live_rows(self) -> int:
        """How many rows are not deleted."""
        return self.rows if self.hidden is None else self.rows - len(self.hidden)

    def live(self) -> np.ndarray:
        """The numbers of all rows that are not deleted."""
        return without(np.arange(self.rows), self.hidden)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the file holds."""
        names = self._map.skeleton.columns if self._map is not None else self._plain().schema_arrow.names
        return tuple(names if self._names is None else self._names.present(names))

    def _stored(self, columns: Sequence[str]) -> Sequence[str]:
        """The names that the file has for some columns."""
        return columns if self._names is None else self._names.stored(columns)

    @property
    def groups(self) -> range:
        """The row groups."""
        return range(len(self.group_rows))

    def read_groups(self, groups: Sequence[int], columns: Sequence[str], *, coded: bool = False) -> pa.Table:
        """All stored rows of some row groups; with `coded`, repeated text stays dictionary-encoded."""
        return self._read(dict.fromkeys(groups), columns, coded=coded)

    @property
    def stored_schema(self) -> pa.Schema | None:
        """The columns as another reader of the file sees them; None if it would not see the table's."""
        return None if self._map is None or self._names is not None else self._schema

    def check(self, columns: Sequence[str]) -> None:
        """Read some columns of all rows and raise unless every byte is what was written."""
        assert self._map is not None
        check_pages(self.source, self._map.skeleton, self._map.pages, self._stored(columns), self.groups)

    def has_intact_footer(self) -> bool:
        """Whether the footer of the file is what was written."""
        if self._footer is None:
            return False
        start, body = self._footer
        return crc32(self.source.read_one(start, body.length)) == body.crc32

    @cached_property
    def _footer(self) -> tuple[int, Region] | None:
        """Where the footer and the eight bytes after it lie, with their checksum; None if damaged."""
        try:
            body = read_footer(self.source, self.ref).body
        except SplitError:
            return None
        whole = body + len(body).to_bytes(4, "little") + MAGIC
        size = self.ref.size if self.ref.size is not None else self.source.size()
        return size - len(whole), Region(len(whole), crc32(whole))

    def has_whole_chunks(self, ranges: Sequence[Sequence[Range]]) -> bool:
        """Whether the page map has every column chunk as one range, and these are its ranges."""
        if self._map is None or len(ranges) != len(self.group_rows):
            return False
        pages = self._map.pages
        return all(
            len(leaves) == pages.leaves and [one[:2] for one in pages.stretches(group, leaf)] == [whole]
            for group, leaves in enumerate(ranges)
            for leaf, whole in enumerate(leaves)
        )

    def read_stored(self, group: int, columns: Sequence[str]) -> dict[Range, memoryview]:
        """Column chunks of a row group as they are stored; only where the page map has them whole."""
        assert self._map is not None
        return stored_pages(self.source, self._map.skeleton, self._map.pages, self._stored(columns), [group])

    def read_rows(self, rows: np.ndarray, columns: Sequence[str]) -> pa.Table:
        """Some rows, given in ascending order."""

        def read() -> pa.Table:
            parts = self.by_group(rows)
            rows_in_groups = {group: some - self.group_starts[group] for group, some in parts.items()}
            return self._read(rows_in_groups, columns, cache=self._page_cache)

        return self._page_cache.picked(rows, columns, read)

    def by_group(self, rows: np.ndarray) -> dict[int, np.ndarray]:
        """The given rows (ascending), grouped by row group."""
        cuts = np.searchsorted(rows, self.group_starts).tolist()
        return {at: rows[cuts[at] : cuts[at + 1]] for at in self.groups if cuts[at] < cuts[at + 1]}

    def numbers(self, parts: RowsByGroup) -> np.ndarray:
        """Their numbers in the split, ascending."""
        starts = self.group_starts
        each = [
            np.arange(starts[group], starts[group + 1]) if rows is None else rows
            for group, rows in parts.items()
        ]
        return np.concatenate(each) if each else np.zeros(0, np.int64)

    def plan(self, parts: RowsByGroup, columns: Sequence[str]) -> str:
        """How rows are fetched: single `pages`, whole `row_groups`, or a `scan` of everything.

        The bytes of the pages that hold the rows decide, in the column that takes the most.
        """
        count = self.count_of(parts)
        if 0 < count < MANY_ROWS and self._map is not None and columns:
            covered, total = self._bytes_of(parts, self._heaviest(columns, parts))
        else:
            # For many scattered rows it is negligible that some are on the same page.
            covered, total = count * ROWS_PER_PAGE, sum(self.group_rows[group] for group in parts)
        if covered <= PAGE_SHARE * total or (count <= FEW_ROWS and covered < total):
            return "pages"
        return "scan" if len(parts) == len(self.group_rows) else "row_groups"

    def _heaviest(self, columns: Sequence[str], parts: RowsByGroup) -> int:
        """The leaf, of some columns, with the most stored bytes in one of the row groups."""
        assert self._map is not None
        pages, group = self._map.pages, next(iter(parts))
        chunks = self._map.skeleton.columns
        leaves = [leaf for name in self._stored(columns) for leaf in chunks[name].leaves]
        return max(leaves, key=lambda leaf: sum(length for _, length, _ in pages.stretches(group, leaf)))

    def _bytes_of(self, parts: RowsByGroup, leaf: int) -> tuple[int, int]:
        """The bytes of the pages of a leaf that hold these rows, and of all its pages in these row groups."""
        assert self._map is not None
        covered = total = 0
        for group, rows in parts.items():
            chunk = self._map.pages.chunk(group, leaf)
            size = sum(chunk.lengths)
            total += size
            covered += size if rows is None else chunk.bytes_around(rows - self.group_starts[group])
        return covered, total

    def count_of(self, parts: RowsByGroup) -> int:
        """How many rows they are."""
        return sum(self._counts_of(parts))

    def _counts_of(self, parts: RowsByGroup) -> list[int]:
        """How many rows they are in each row group."""
        return [self.group_rows[group] if rows is None else len(rows) for group, rows in parts.items()]

    def weight(self, parts: RowsByGroup, columns: Sequence[str]) -> int:
        """The cost of decoding columns of these row groups: their values plus their stored bytes."""
        values = len(columns) * sum(self.group_rows[group] for group in parts)
        if self._map is None:
            return values
        return values + stored_bytes(self._map.skeleton, self._map.pages, self._stored(columns), parts)

    def fetch(self, rows: np.ndarray, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """Rows with their numbers, in batches of bounded size, read in the cheapest way."""
        return self.worked(self.by_group(rows), columns, lambda piece, table: (self.numbers(piece), table))

    def worked(
        self, parts: RowsByGroup, columns: Sequence[str], work: Callable[[RowsByGroup, pa.Table], T]
    ) -> Iterator[T]:
        """Apply `work` to each such batch, in the thread that read it, and return the results."""
        if not parts:
            return
        if self.plan(parts, columns) == "pages":
            yield work(parts, self.read_rows(self.numbers(parts), columns))
            return
        sparse = self.is_sparse(parts, columns)
        pieces = self._pieces(parts, columns, sparse=sparse)

        pick = self._pick_sparse if sparse else self._pick

        def read(piece: RowsByGroup) -> T:
            if any(rows is None for rows in piece.values()):
                return work(piece, pick(piece, columns))
            picked = self._page_cache.picked(self.numbers(piece), columns, lambda: pick(piece, columns))
            return work(piece, picked)

        if len(pieces) == 1:
            yield read(pieces[0])
            return
        with Ahead(read, pieces) as reading:
            for _, result in reading:
                yield result

    def _pieces(self, parts: RowsByGroup, columns: Sequence[str], *, sparse: bool) -> list[RowsByGroup]:
        """Batches of row groups; what is decoded at once is limited.

        If only these rows are decoded, they count, otherwise the row groups and what they weigh.
        """
        pieces: list[dict[int, np.ndarray | None]] = []
        size = weight = 0.0
        for (group, rows), count in zip(parts.items(), self._counts_of(parts), strict=True):
            share = count / self.group_rows[group] if sparse else 1
            stored = 0 if sparse else self.weight({group: rows}, columns)
            if not pieces or size + share > GROUPS_AT_ONCE or weight + stored > BYTES_AT_ONCE:
                pieces.append({})
                size = weight = 0.0
            pieces[-1][group] = rows
            size += share
            weight += stored
        return [*pieces]

    def is_sparse(self, parts: RowsByGroup, columns: Sequence[str]) -> bool:
        """Whether skipping the values between the rows pays, and whether these columns allow it."""
        count, total = self.count_of(parts), sum(self.group_rows[group] for group in parts)
        if not columns or self._map is None or count > SPARSE_SHARE * total:
            return False
        path, stored = self.source.local, self._stored(columns)
        if path is None or stored_bytes(self._map.skeleton, self._map.pages, stored, parts) < SPARSE_BYTES:
            return False
        return can_decode(path, self._schema, stored)

    @cached_property
    def _schema(self) -> pa.Schema:
        assert self._map is not None
        return schema_of(self._map.skeleton, self.source.name)

    def _pick_sparse(self, parts: RowsByGroup, columns: Sequence[str]) -> pa.Table:
        """A few of the rows of some row groups."""
        path = self.source.local
        assert path is not None
        assert self._map is not None
        stored = self._stored(columns)
        check_pages(self.source, self._map.skeleton, self._map.pages, stored, parts)
        try:
            rows = decode_rows(path, self._schema, stored, self.numbers(parts), self.rows)
            return rows.rename_columns(list(columns))
        except UndecodedError:
            return pa.concat_tables([self._pick({group: rows}, columns) for group, rows in parts.items()])

    def _pick(self, parts: RowsByGroup, columns: Sequence[str]) -> pa.Table:
        """Many or all of the rows of some row groups."""
        if not columns:
            return self._read(parts, columns)
        if self._counts_of(parts) == [self.group_rows[group] for group in parts]:
            return self._read(dict.fromkeys(parts), columns)
        table = self._read(dict.fromkeys(parts), columns, coded=True)
        ends = np.cumsum([self.group_rows[group] for group in parts])
        shifts = {group: end - self.group_starts[group + 1] for group, end in zip(parts, ends, strict=True)}
        picked = [self.numbers({group: rows}) + shifts[group] for group, rows in parts.items()]
        return decoded(take_rows(table, integers(np.concatenate(picked))))

    def groups_left(self, where: Node, partition_values: Collection[str]) -> list[bool]:
        """For every row group, whether its statistics in the footer allow a match."""
        if self._statistics is None:
            return [True] * len(self.group_rows)
        if self._names is not None:
            where = tree.with_columns(where, self._names.stored_names)
            partition_values = self._names.stored(partition_values)
        return self._statistics.groups_left(where, partition_values)

    @cached_property
    def _statistics(self) -> GroupStatistics | None:
        try:
            body = read_footer(self.source, self.ref).body
            file = MAGIC + body + len(body).to_bytes(4, "little") + MAGIC
            metadata = pq.read_metadata(pa.BufferReader(file))
        except (SplitError, pa.ArrowException):
            # Rows can be read without the footer: if it cannot be read, nothing is ruled out.
            return None
        same = metadata.num_row_groups == len(self.group_rows)
        return group_bounds.GroupStatistics(metadata, metadata.schema.to_arrow_schema()) if same else None

    def scan(self, columns: Sequence[str], *, coded: bool = False) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """All rows that are not deleted, in batches, with their numbers."""
        for start, count, table in self.scan_stored(columns, coded=coded):
            numbers = np.arange(start, start + count)
            live = without(numbers, self._hidden_in(start, start + count))
            if len(live) == count:
                yield numbers, table
            elif not columns:
                yield live, pa.table({"": pa.nulls(len(live))}).select([])
            elif len(live):
                yield live, take_rows(table, integers(live - start))

    def _hidden_in(self, start: int, end: int) -> np.ndarray | None:
        if self.hidden is None:
            return None
        low, high = np.searchsorted(self.hidden, [start, end])
        return self.hidden[low:high]

    def scan_stored(
        self, columns: Sequence[str], *, coded: bool = False
    ) -> Iterator[tuple[int, int, pa.Table]]:
        """All rows of the file, deleted ones included: the number of the first, how many, and the rows."""
        work = partial(self.read_groups, columns=columns, coded=coded)
        with Ahead(work, _batched(self.groups)) as reading:
            for some, table in reading:
                start, end = int(self.group_starts[some[0]]), int(self.group_starts[some[-1] + 1])
                yield start, end - start, table

    def _read(
        self,
        rows_by_group: Mapping[int, np.ndarray | None],
        columns: Sequence[str],
        *,
        coded: bool = False,
        cache: PageCache | None = None,
    ) -> pa.Table:
        if not columns:
            return pa.table({"": pa.nulls(self.count_of(rows_by_group))}).select([])
        stored, row_map = self._stored(columns), self._map
        if row_map is not None:
            rows = read_pages(
                self.source, row_map.skeleton, row_map.pages, stored, rows_by_group, coded=coded, cache=cache
            )
        else:
            rows = self._read_plain(rows_by_group, stored)
        return rows if stored is columns else rows.rename_columns(list(columns))

    def _read_plain(self, rows_by_group: Mapping[int, np.ndarray | None], columns: Sequence[str]) -> pa.Table:
        parts = []
        try:
            with self._plain() as file:
                for group, rows in rows_by_group.items():
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
        size = self.ref.size if self.ref.size is not None else self.source.size()
        file = pa.PythonFile(io.BufferedReader(ranged_file.RangedFile(self.source.read_one, size)), "r")
        # Not with Arrow's threads: they call into Python, possibly after the interpreter has ended.
        return pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)


def _batched(groups: Sequence[int]) -> list[Sequence[int]]:
    return [groups[at : at + GROUPS_AT_ONCE] for at in range(0, len(groups), GROUPS_AT_ONCE)]


def to_table_schema(
    rows: pa.Table,
    schema: pa.Schema,
    columns: Sequence[str],
    partition_values: Mapping[str, str | None],
    *,
    coded: bool = False,
) -> pa.Table:
    """Stored rows as rows of the table: its types, its partition values, nulls for later columns.

    With `coded`, dictionary columns whose values have the table's type stay encoded.
    """
    stored = dict(zip(rows.column_names, rows.columns, strict=True))
    arrays = []
    for name in columns:
        field = schema.field(name)
        if name in partition_values:
            text = from_values([partition_values[name]], pa.string())
            value = decode_partition_array(text, field.type)
            if value[0].is_valid or partition_values[name] is None:
                arrays.append(pa.chunked_array([_repeat(value, rows.num_rows)], field.type))
                continue
        held = stored.get(name)
        if held is None:
            arrays.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)], field.type))
            continue
        same = coded and pa.types.is_dictionary(held.type) and held.type.value_type == field.type
        arrays.append(held if same else _cast(held, field))
    if not columns:
        return rows
    fields = [schema.field(name).with_type(array.type) for name, array in zip(columns, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _repeat(value: pa.Array, count: int) -> pa.Array:
    if not value[0].is_valid:
        return pa.nulls(count, value.type)
    return pa.repeat(value[0], count)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type and not holds_variants(field.type):
        return column
    try:
        return cast_values(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        raise SchemaError(
            f"column {field.name!r} of a split has type {column.type}, "
            f"which cannot become {field.type}: {bad}",
            column=field.name,
        ) from bad
