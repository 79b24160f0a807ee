"""One split under construction: rows are written to Parquet row groups and added to the index.

The file is built in a local directory of its own, which `close` always removes. Memory
holds one row group being collected and the index of the text so far; the caller publishes
the finished file. If all rows come from splits with the same index settings, their
indexes are merged instead of built again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.errors import SplitError
from indextables.index.build.builder import IndexBuilder
from indextables.index.build.merge import merge_indexes
from indextables.index.build.writer import BuiltIndex
from indextables.index.read.lookup import Index
from indextables.index.settings import JSON, TEXT, IndexSpec
from indextables.lazy import pc, pq
from indextables.model.stats import FileStats, StatsCollector
from indextables.options import Options
from indextables.split.layout import TAIL, Footer, SplitManifest, finish
from indextables.split.parquet.page_map import ROWS_PER_PAGE
from indextables.split.parquet.thrift import Struct, decode
from indextables.split.read.row_map import row_map_bytes
from indextables.split.write.required_fields import with_values
from indextables.storage.scratch import discard, scratch

ROWS_PER_GROUP = 32_768
BYTES_PER_GROUP = 32 << 20
BYTES_PER_PAGE = 128 << 10
"""Large values get pages with fewer rows, since fetching one row decodes its whole page."""
MOST_ROWS_AT_ONCE = 1024
BATCHES_PER_PAGE = 4
"""Parquet looks whether a page is full after every batch of rows. If a batch filled a page, one a little
below the limit would get a second batch and be twice as large."""
DICTIONARY_BYTES = 64 << 10
"""A dictionary is read along with any page of its column, so it is kept small."""
BLOOM_FALSE_POSITIVES = 0.01
ROW_MAP = "row map"
"""The name of the row map in the list of component sizes."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete split file in a local directory."""

    path: str
    size: int
    footer: Footer
    stats: FileStats
    uncompressed_bytes: int


class SplitWriter:
    """Collects rows for one split."""

    def __init__(
        self,
        schema: pa.Schema,
        spec: IndexSpec,
        options: Options,
        *,
        partition_columns: tuple[str, ...] = (),
        partition_values: Mapping[str, str | None] | None = None,
        table_id: str = "",
        replaces: tuple[str, ...] = (),
        merged: Sequence[Index] = (),
    ) -> None:
        """Take the schema and index settings; `merged` are the indexes of splits whose rows will be written.

        With `merged`, all rows of those splits have to be written, in the same order.
        """
        self.schema = schema
        self.spec = spec
        self.replaces = replaces
        self.partition_values = dict(partition_values or {})
        self.table_id = table_id
        self.rows = 0
        self.uncompressed_bytes = 0
        self.directory = scratch("build")
        self._path = str(Path(self.directory, "rows.parquet"))
        self._stats = StatsCollector(schema, options, partition_columns)
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._group_rows: list[int] = []
        self._sink: Any = None
        self._parquet: Any = None
        self._merged = merged
        self._index = IndexBuilder(spec, schema) if spec.fields and not merged else None

    @property
    def text_bytes(self) -> int:
        """Bytes of text indexed so far."""
        return self._index.text_bytes if self._index is not None else 0

    @property
    def data_bytes(self) -> int:
        """Bytes of the rows written so far, including those collected for the next row group."""
        return (self._sink.tell() if self._sink is not None else 0) + self._pending_bytes

    def write(self, rows: pa.Table) -> None:
        """Add rows that have the schema's columns and types."""
        self._stats.update(rows)
        self.rows += rows.num_rows
        size = rows.nbytes
        self.uncompressed_bytes += size
        per_row = max(1, size // max(1, rows.num_rows))
        while rows.num_rows:
            room = min(
                ROWS_PER_GROUP - self._pending_rows,
                max(1, (BYTES_PER_GROUP - self._pending_bytes) // per_row),
            )
            part = rows.slice(0, room)
            rows = rows.slice(part.num_rows)
            self._pending.append(part)
            self._pending_rows += part.num_rows
            self._pending_bytes += part.num_rows * per_row
            if self._pending_rows >= ROWS_PER_GROUP or self._pending_bytes >= BYTES_PER_GROUP:
                self._flush()

    def _flush(self) -> None:
        group = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        if self._parquet is None:
            self._open(group)
        if self._index is not None:
            self._index.add(group)
        if group.num_rows:
            self._parquet.write_table(with_values(group), row_group_size=group.num_rows)
            self._group_rows.append(group.num_rows)

    def _open(self, first: pa.Table) -> None:
        self._sink = pa.OSFile(self._path, "wb")
        self._parquet = parquet_writer(self._sink, self.schema, self.spec, first)

    def finish(self) -> Finished:
        """Write the remaining rows, then the index, the row map and the footer."""
        if self._pending or self._parquet is None:
            self._pending = self._pending or [self.schema.empty_table()]
            self._flush()
        self._parquet.close()
        self._sink.close()
        index = self._finish_index()
        manifest = SplitManifest(
            rows=self.rows,
            group_rows=tuple(self._group_rows),
            fields=self.spec.to_wire(),
            partition_values=self.partition_values,
            table_id=self.table_id,
            replaces=self.replaces,
        )
        done = seal(self._path, footer_of(self._path), index, manifest)
        return Finished(self._path, done.end, done, self._stats.finish(), self.uncompressed_bytes)

    def _finish_index(self) -> BuiltIndex | None:
        if self._merged:
            built = merge_indexes(self._merged)
        elif self._index is not None:
            built = self._index.finish()
        else:
            return None
        if built.rows != self.rows:
            raise SplitError(f"an index of {built.rows} rows does not belong to {self.rows} rows")
        return built

    def close(self) -> None:
        """Remove everything this writer made locally."""
        for open_file in (self._parquet, self._sink):
            try:
                if open_file is not None:
                    open_file.close()
            except (OSError, ValueError, pa.ArrowException):
                # The file is about to be deleted; what matters is that its handle is closed.
                continue
        self._index = None
        discard(self.directory)


def parquet_writer(sink: Any, schema: pa.Schema, spec: IndexSpec, first: pa.Table) -> Any:
    """A writer of row groups as splits have them; `first` is the first one, which decides the encodings."""
    counted = _counted(first)
    return pq.ParquetWriter(
        sink,
        schema.remove_metadata(),
        compression="zstd",
        use_dictionary=_dictionary_columns(schema, spec, counted),
        column_encoding=dict.fromkeys(counted, "DELTA_BINARY_PACKED") or None,
        write_statistics=_statistics_columns(schema),
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=ROWS_PER_PAGE,
        write_batch_size=_rows_at_once(first),
        data_page_size=BYTES_PER_PAGE,
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        bloom_filter_options=_bloom_filters(first, spec) or None,
        store_schema=False,
    )


def _rows_at_once(first: pa.Table) -> int:
    """How many rows Parquet writes before it looks whether a page is full: fewer where values are long."""
    sizes = [column.nbytes for column in first.columns]
    per_row = max(sizes, default=0) // max(1, first.num_rows)
    return max(1, min(MOST_ROWS_AT_ONCE, BYTES_PER_PAGE // BATCHES_PER_PAGE // max(1, per_row)))


def seal(path: str, footer: Struct, index: BuiltIndex | None, manifest: SplitManifest) -> Footer:
    """Make a split of a finished Parquet file: add the index, the row map, and the manifest about both."""
    with Path(path).open("rb") as file:

        def read(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        row_map = row_map_bytes(footer, manifest.group_rows, read)
    manifest = replace(
        manifest,
        components={**(index.sizes if index is not None else {}), ROW_MAP: len(row_map)},
        tokens=index.tokens if index is not None else {},
    )
    return finish(path, footer, index.chunks if index is not None else (), row_map, manifest)


def footer_of(path: str) -> Struct:
    """The footer of a finished Parquet file."""
    with Path(path).open("rb") as file:
        file.seek(-TAIL, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-TAIL - length, os.SEEK_END)
        return decode(file.read(length))[0]


def _counted(first: pa.Table) -> list[str]:
    """Columns of integers or times with too many distinct values for a dictionary, by the first row group.

    Stored as differences they take a fraction of the space, and less time to read.
    """
    return [
        field.name
        for field in first.schema
        if (pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type))
        and field.type.bit_width >= 32  # noqa: PLR2004 -- narrower ones always fit
        and "." not in field.name
        and pc.count_distinct(first[field.name]).as_py() * field.type.bit_width > 8 * DICTIONARY_BYTES
    ]


def _dictionary_columns(schema: pa.Schema, spec: IndexSpec, counted: Sequence[str]) -> list[str] | bool:
    """Leaves worth a dictionary; running text is not, as it hardly repeats."""
    without = spec.of_kind(TEXT, JSON) | set(counted)
    if not without:
        return True
    return [path for field in schema if field.name not in without for path, _ in _leaf_paths(field)]


def _statistics_columns(schema: pa.Schema) -> list[str] | bool:
    """Leaves that get a minimum and a maximum: all but floats.

    Spark sorts NaN above every number and Parquet's statistics ignore it, so that with them Spark's reader
    would skip a NaN that its own filter keeps.
    """
    leaves = [leaf for field in schema for leaf in _leaf_paths(field)]
    ordered = [path for path, kind in leaves if not pa.types.is_floating(kind)]
    return True if len(ordered) == len(leaves) else ordered


def _leaf_paths(field: pa.Field, prefix: str = "") -> list[tuple[str, pa.DataType]]:
    path, kind = prefix + field.name, field.type
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _leaf_paths(child, path + ".")]
    if pa.types.is_map(kind):
        return _leaf_paths(kind.key_field.with_name("key"), f"{path}.key_value.") + _leaf_paths(
            kind.item_field.with_name("value"), f"{path}.key_value."
        )
    if pa.types.is_list(kind):
        return _leaf_paths(kind.value_field.with_name("element"), f"{path}.list.")
    return [(path, kind)]


def _bloom_filters(first: pa.Table, spec: IndexSpec) -> dict[str, dict[str, float]]:
    """Bloom filters for text columns that are searched by equality, sized by the first row group."""
    searched = spec.of_kind(TEXT, JSON)
    return {
        field.name: {
            "ndv": max(64, pc.count_distinct(first[field.name]).as_py()),
            "fpp": BLOOM_FALSE_POSITIVES,
        }
        for field in first.schema
        if pa.types.is_string(field.type) and field.name not in searched and "." not in field.name
    }
