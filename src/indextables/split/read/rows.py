"""Reads the rows of a split: some rows, some row groups, or all of them, with the columns asked for.

Every byte is checked before it is decoded. If the page map itself is damaged, the rows
are still read, by pyarrow alone with Parquet's own page checksums. The result has the
table's types: columns added after the split was written are null, widened ones are cast,
and partition columns have the log's value.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedSplitError, SchemaError, SplitError
from indextables.model.arrays import cast, integers, taken
from indextables.model.fields import decode_partition_array
from indextables.split.layout import MAGIC, SplitManifest, SplitRef, read_footer
from indextables.split.parquet.page_map import ROWS_PER_PAGE
from indextables.split.read.kept_pages import KeptPages
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
from indextables.split.source import Range, Source

if TYPE_CHECKING:
    from indextables.predicate.tree import Node

T = TypeVar("T")

GROUPS_AT_ONCE = 4
"""Row groups that a scan reads together; the rows of one batch number at most what that many groups hold."""
MANY_ROWS = 20_000
SPARSE_SHARE = 0.5
"""Up to this share of the rows in their row groups, only the wanted rows are decoded."""
SPARSE_BYTES = 1 << 20
"""Below this many stored bytes, pyarrow decodes a whole row group faster than DuckDB plans its query."""
PAGE_SHARE = 0.5
"""Up to this share of a row group's pages are fetched singly; above it the whole group is read."""

Parts = Mapping[int, np.ndarray]
"""Wanted rows, by row group."""


def open_reader(source: Source, ref: SplitRef, row_map: bytes | memoryview | None = None) -> SplitReader:
    """Open a split for reading rows; `row_map` are its bytes at the offset the log names, if already read."""
    if ref.row_map is not None and ref.index_offset is not None and ref.index_length is not None:
        if row_map is None:
            end = ref.index_offset + ref.index_length
            row_map = source.read_one(end - ref.row_map.length, ref.row_map.length)
        try:
            found = RowMap.from_bytes(row_map, ref.row_map.crc32)
        except RowMapError:
            # The footer decides: the log may be wrong, or the row map damaged.
            pass
        else:
            return SplitReader(source, ref, found.group_rows, found)
    return _by_footer(source, ref)


def _by_footer(source: Source, ref: SplitRef) -> SplitReader:
    manifest: SplitManifest = read_footer(source, ref).manifest
    piece = manifest.row_map
    try:
        body = source.read_one(manifest.offset + manifest.length - piece.length, piece.length)
        found = RowMap.from_bytes(body, piece.crc32)
    except RowMapError:
        return SplitReader(source, ref, manifest.group_rows, None)
    return SplitReader(source, ref, manifest.group_rows, found)


class SplitReader:
    """The rows of one split."""

    def __init__(
        self, source: Source, ref: SplitRef, group_rows: Sequence[int], row_map: RowMap | None
    ) -> None:
        self.source = source
        self.ref = ref
        self.group_rows = tuple(group_rows)
        self.rows = sum(self.group_rows)
        self._map = row_map
        self._kept = KeptPages()
        self.group_starts = np.concatenate([[0], np.cumsum(self.group_rows, dtype=np.int64)])

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the file holds."""
        names = self._map.skeleton.columns if self._map is not None else self._plain().schema_arrow.names
        return tuple(names)

    @property
    def groups(self) -> range:
        """The row groups."""
        return range(len(self.group_rows))

    def read_groups(self, groups: Sequence[int], columns: Sequence[str], *, coded: bool = False) -> pa.Table:
        """All rows of some row groups; with `coded`, repeated text stays dictionary-encoded."""
        return self._read(dict.fromkeys(groups), columns, coded=coded)

    def has_whole_chunks(self, places: Sequence[Sequence[Range]]) -> bool:
        """Whether the page map has every column chunk as one range: at these offsets, with these lengths."""
        if self._map is None or len(places) != len(self.group_rows):
            return False
        pages = self._map.pages
        return all(
            len(leaves) == pages.leaves and [one[:2] for one in pages.stretches(group, leaf)] == [place]
            for group, leaves in enumerate(places)
            for leaf, place in enumerate(leaves)
        )

    def read_stored(self, group: int, columns: Sequence[str]) -> dict[Range, memoryview]:
        """Column chunks of a row group as they are stored; only where the page map has them whole."""
        assert self._map is not None
        return stored_pages(self.source, self._map.skeleton, self._map.pages, columns, [group])

    def read_rows(self, rows: np.ndarray, columns: Sequence[str]) -> pa.Table:
        """Some rows, given in ascending order."""
        parts = self.by_group(rows)
        wanted = {group: some - self.group_starts[group] for group, some in parts.items()}
        return self._read(wanted, columns, kept=self._kept)

    def by_group(self, rows: np.ndarray) -> dict[int, np.ndarray]:
        """The given rows (ascending), grouped by row group."""
        cuts = np.searchsorted(rows, self.group_starts).tolist()
        return {at: rows[cuts[at] : cuts[at + 1]] for at in self.groups if cuts[at] < cuts[at + 1]}

    def plan(self, rows: np.ndarray) -> str:
        """How wanted rows are fetched: single `pages`, whole `row_groups`, or a `scan` of everything."""
        wanted = self.by_group(rows)
        total = sum(self.group_rows[group] for group in wanted)
        pages = len(rows)
        if pages < MANY_ROWS:
            # Rows on the same page should count once; for many scattered rows the difference is negligible.
            pages = 1 + int(np.count_nonzero(np.diff(rows // ROWS_PER_PAGE))) if pages else 0
        if pages * ROWS_PER_PAGE <= PAGE_SHARE * total:
            return "pages"
        return "scan" if len(wanted) == len(self.group_rows) else "row_groups"

    def fetch(self, rows: np.ndarray, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """Wanted rows with their numbers, in batches of bounded size, read in the cheapest way."""
        return self.worked(rows, columns, lambda found, table: (found, table))

    def worked(
        self, rows: np.ndarray, columns: Sequence[str], work: Callable[[np.ndarray, pa.Table], T]
    ) -> Iterator[T]:
        """Apply `work` to each such batch, in the thread that read it, and return the results."""
        if not len(rows):
            return
        if self.plan(rows) == "pages":
            yield work(rows, self.read_rows(rows, columns))
            return
        parts = self.by_group(rows)
        sparse = self._is_sparse(parts, columns)
        pieces = self._pieces(parts, GROUPS_AT_ONCE if sparse else 0)
        pick = self._pick_sparse if sparse else self._pick

        def read(piece: Parts) -> T:
            return work(np.concatenate(list(piece.values())), pick(piece, columns=columns))

        with Ahead(read, pieces) as reading:
            for _, made in reading:
                yield made

    def _pieces(self, parts: Parts, most: int) -> list[Parts]:
        """Batches of row groups; their wanted rows number at most what `most` groups hold."""
        pieces: list[dict[int, np.ndarray]] = []
        size = 0.0
        for group, rows in parts.items():
            share = len(rows) / self.group_rows[group]
            if not pieces or size + share > most:
                pieces.append({})
                size = 0.0
            pieces[-1][group] = rows
            size += share
        return [*pieces]

    def _is_sparse(self, parts: Parts, columns: Sequence[str]) -> bool:
        """Whether skipping unwanted values pays, and whether these columns allow it."""
        wanted, total = sum(map(len, parts.values())), sum(self.group_rows[group] for group in parts)
        if not columns or self._map is None or wanted > SPARSE_SHARE * total:
            return False
        path = self.source.local
        if path is None or stored_bytes(self._map.skeleton, self._map.pages, columns, parts) < SPARSE_BYTES:
            return False
        return can_decode(path, self._schema, columns)

    @cached_property
    def _schema(self) -> pa.Schema:
        assert self._map is not None
        return schema_of(self._map.skeleton, self.source.name)

    def _pick_sparse(self, parts: Parts, columns: Sequence[str]) -> pa.Table:
        """A few of the rows of some row groups."""
        path = self.source.local
        assert path is not None
        assert self._map is not None
        check_pages(self.source, self._map.skeleton, self._map.pages, columns, parts)
        try:
            return decode_rows(path, self._schema, columns, np.concatenate(list(parts.values())), self.rows)
        except UndecodedError:
            return pa.concat_tables([self._pick({group: rows}, columns) for group, rows in parts.items()])

    def _pick(self, parts: Parts, columns: Sequence[str]) -> pa.Table:
        """Many of the rows of one row group."""
        ((group, rows),) = parts.items()
        if len(rows) == self.group_rows[group]:
            return self._read({group: None}, columns)
        table = self._read({group: None}, columns, coded=True)
        return decoded(taken(table, integers(rows - self.group_starts[group])))

    def groups_left(self, where: Node, partition_values: Mapping[str, str | None]) -> list[bool]:
        """For every row group, whether its statistics in the footer allow a match."""
        if self._metadata is None:
            return [True] * len(self.group_rows)
        from indextables.split.read.group_bounds import groups_left

        metadata, stored = self._metadata
        return groups_left(metadata, stored, where, partition_values)

    @cached_property
    def _metadata(self) -> tuple[Any, pa.Schema] | None:
        import pyarrow.parquet as pq

        try:
            body = read_footer(self.source, self.ref).body
            found = pq.read_metadata(pa.BufferReader(MAGIC + body + len(body).to_bytes(4, "little") + MAGIC))
        except (SplitError, pa.ArrowException):
            # Rows can be read without the footer: if it cannot be read, nothing is ruled out.
            return None
        same = found.num_row_groups == len(self.group_rows)
        return (found, found.schema.to_arrow_schema()) if same else None

    def scan(self, columns: Sequence[str], *, coded: bool = False) -> Iterator[tuple[int, pa.Table]]:
        """All rows, in batches, each with the number of its first row."""
        work = partial(self.read_groups, columns=columns, coded=coded)
        with Ahead(work, _batched(self.groups)) as reading:
            for some, table in reading:
                yield int(self.group_starts[some[0]]), table

    def _read(
        self,
        wanted: Mapping[int, np.ndarray | None],
        columns: Sequence[str],
        *,
        coded: bool = False,
        kept: KeptPages | None = None,
    ) -> pa.Table:
        if not columns:
            sizes = (self.group_rows[group] if rows is None else len(rows) for group, rows in wanted.items())
            return pa.table({"": pa.nulls(sum(sizes))}).select([])
        if self._map is not None:
            found = self._map
            return read_pages(
                self.source, found.skeleton, found.pages, columns, wanted, coded=coded, kept=kept
            )
        return self._read_plain(wanted, columns)

    def _read_plain(self, wanted: Mapping[int, np.ndarray | None], columns: Sequence[str]) -> pa.Table:
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

        from indextables.storage.ranged_file import RangedFile

        size = self.ref.size if self.ref.size is not None else self.source.size()
        file = pa.PythonFile(io.BufferedReader(RangedFile(self.source.read_one, size)), "r")
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
        held = rows[name]
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
    if column.type == field.type:
        return column
    try:
        return cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        raise SchemaError(
            f"column {field.name!r} of a split has type {column.type}, "
            f"which cannot become {field.type}: {bad}",
            column=field.name,
        ) from bad
