"""A split written anew because some of its values changed: all else is copied as bytes.

The rows stay the same in number and order. Of every row group only the columns that have
other values are encoded again; their neighbours are copied, page by page, with the
checksums of the page map verified. Of the index only the fields of changed columns are
built again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from indextables.index.build.builder import IndexBuilder
from indextables.index.build.merge import replace_fields
from indextables.index.build.writer import BuiltIndex
from indextables.index.read.lookup import Index
from indextables.index.settings import IndexSpec
from indextables.lazy import pq
from indextables.model.actions import AddAction
from indextables.model.stats import FileStats, StatsCollector, indexed_columns, of_add
from indextables.options import Options
from indextables.split.layout import TAIL, SplitManifest, read_footer
from indextables.split.parquet.assemble import StoredChunk, assemble_file, range_of
from indextables.split.parquet.fields import ChunkFields, FileFields, GroupFields, MetaFields, items, value
from indextables.split.parquet.thrift import Struct, decode
from indextables.split.read.rows import SplitReader
from indextables.split.write.required_fields import with_values
from indextables.split.write.writer import Finished, parquet_writer, seal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewValues:
    """The columns of a row group that have other values now."""

    columns: pa.Table
    grown_bytes: int
    """How many bytes more they take in memory than before."""


NewValuesOf = Callable[[int], NewValues | None]
"""The new values of a row group, by its number; None when it has none."""


@dataclass(frozen=True, slots=True)
class Original:
    """The split that changes, as far as its bytes can be used again."""

    add: AddAction
    reader: SplitReader
    footer: Struct
    index: Index | None
    index_offset: int

    @classmethod
    def of(
        cls, add: AddAction, reader: SplitReader, index: Index | None, schema: pa.Schema, spec: IndexSpec
    ) -> Original | None:
        """The split if a new one of this schema and index settings would be laid out alike; else None."""
        if (None if index is None else index.spec) != (spec if spec.fields else None):
            return None
        stored = read_footer(reader.source, reader.ref)
        footer, _ = decode(stored.body)
        if items(footer, FileFields.SCHEMA) != items(_empty_footer(schema, spec), FileFields.SCHEMA):
            return None
        groups = items(footer, FileFields.GROUPS)
        ranges = [[range_of(chunk) for chunk in items(group, GroupFields.COLUMNS)] for group in groups]
        if not reader.has_whole_chunks(ranges):
            return None
        return cls(add, reader, footer, index, stored.manifest.offset)

    def reading(self) -> Callable[[int, int], memoryview]:
        """Bytes by offset and length; what follows the row groups is read once."""
        source = self.reader.source
        chunks = [
            chunk
            for group in items(self.footer, FileFields.GROUPS)
            for chunk in items(group, GroupFields.COLUMNS)
        ]
        end = max(sum(range_of(chunk)) for chunk in chunks)
        rest = source.read_one(end, self.index_offset - end)

        def read(offset: int, length: int) -> memoryview:
            if offset < end:
                return source.read_one(offset, length)
            return rest[offset - end : offset - end + length]

        return read


@dataclass(slots=True)
class _ChangedColumn:
    """A column of which some row groups have new values."""

    stats: StatsCollector
    groups: set[int] = field(default_factory=set)


@dataclass(slots=True)
class ChangedSplit:
    """The new split under construction."""

    original: Original
    schema: pa.Schema
    spec: IndexSpec
    options: Options
    partition_columns: tuple[str, ...]
    directory: str
    """Where it is built; the caller removes it."""
    changed: dict[str, _ChangedColumn] = field(default_factory=dict)
    grown_bytes: int = 0

    @property
    def path(self) -> str:
        """Where it is built."""
        return str(Path(self.directory, "rows.parquet"))

    def write(self, new_values: NewValuesOf, table_id: str) -> Finished:
        """Write the split with the new values of each row group."""
        original = self.original
        with Path(self.path).open("wb") as out:
            footer = assemble_file(out, original.footer, self._groups(new_values))
        manifest = SplitManifest(
            rows=original.reader.rows,
            group_rows=original.reader.group_rows,
            fields=self.spec.to_wire(),
            partition_values=dict(original.add.partition_values),
            table_id=table_id,
            replaces=(original.add.path,),
        )
        done = seal(self.path, footer, self._index(), manifest)
        size = (original.add.uncompressed_size_bytes or done.end) + self.grown_bytes
        return Finished(self.path, done.end, done, self._stats(), size)

    def _groups(self, new_values: NewValuesOf) -> Iterator[Sequence[StoredChunk]]:
        """The chunks of each row group: those of new values, and the original ones for the rest."""
        reader, read_rest = self.original.reader, self.original.reading()
        for number, group in enumerate(items(self.original.footer, FileFields.GROUPS)):
            new = new_values(number)
            encoded = {} if new is None else self._encoded(number, new)
            names = {path[0] for path in encoded}
            bodies = reader.read_stored(number, [name for name in reader.columns if name not in names])

            def read(
                offset: int, length: int, bodies: Mapping[tuple[int, int], memoryview] = bodies
            ) -> memoryview:
                body = bodies.get((offset, length))
                return read_rest(offset, length) if body is None else body

            yield [
                encoded.get(_path(chunk)) or StoredChunk(chunk, read)
                for chunk in items(group, GroupFields.COLUMNS)
            ]

    def _encoded(self, group: int, new: NewValues) -> dict[tuple[str, ...], StoredChunk]:
        self.grown_bytes += new.grown_bytes
        for name in new.columns.column_names:
            values = new.columns.select([name])
            change = self.changed.get(name)
            if change is None:
                every = replace(self.options.stats, columns=None, num_indexed_cols=-1)
                change = self.changed[name] = _ChangedColumn(StatsCollector(values.schema, every))
            change.stats.update(values)
            change.groups.add(group)
        return _parquet_chunks(new.columns, self.spec)

    def _stats(self) -> FileStats:
        """The statistics of the original split, with those of changed columns computed anew."""
        original = of_add(self.original.add)
        columns = {item.name for item in indexed_columns(self.schema, self.options, self.partition_columns)}
        # The table may have changed its mind about which columns have statistics.
        low = {leaf: one for leaf, one in original.min_values.items() if leaf in columns}
        high = {leaf: one for leaf, one in original.max_values.items() if leaf in columns}
        nulls = {leaf: one for leaf, one in original.null_count.items() if leaf in columns}
        for name, change in self.changed.items():
            for group in self.original.reader.groups:
                if group not in change.groups:
                    rows = self.original.reader.read_groups([group], [name])
                    change.stats.update(rows.cast(pa.schema([self.schema.field(name)])))
            new = change.stats.finish()
            _replace(low, name, new.min_values, columns)
            _replace(high, name, new.max_values, columns)
            _replace(nulls, name, new.null_count, columns)
        return FileStats(self.original.reader.rows, low, high, nulls)

    def _index(self) -> BuiltIndex | None:
        index = self.original.index
        if index is None:
            return None
        again = IndexSpec(tuple(item for item in self.spec.fields if item.column in self.changed))
        builder = IndexBuilder(again, self.schema)
        if again.fields:
            with pq.ParquetFile(self.path, pre_buffer=False) as file:
                for group in range(file.num_row_groups):
                    names = list(dict.fromkeys(again.columns))
                    rows = file.read_row_group(group, columns=names, use_threads=False)
                    builder.add(rows.select(names).cast(pa.schema([self.schema.field(one) for one in names])))
        return replace_fields(index, builder)


def _replace(statistics: dict[str, T], column: str, new: Mapping[str, T], columns: Collection[str]) -> None:
    """Give a column, or the fields inside it, other statistics."""
    for leaf in [one for one in statistics if one == column or one.startswith(column + ".")]:
        del statistics[leaf]
    statistics.update({leaf: one for leaf, one in new.items() if leaf in columns})


def _path(chunk: Struct) -> tuple[str, ...]:
    """The names that lead to the column of a chunk."""
    _, names = value(value(chunk, ChunkFields.META), MetaFields.PATH)
    return tuple(name.decode() for name in names)


def _parquet_chunks(rows: pa.Table, spec: IndexSpec) -> dict[tuple[str, ...], StoredChunk]:
    """Encode one row group in memory."""
    sink = pa.BufferOutputStream()
    with parquet_writer(sink, rows.schema, spec, rows) as writer:
        writer.write_table(with_values(rows), row_group_size=max(1, rows.num_rows))
    held = memoryview(sink.getvalue()).cast("B")
    footer = _footer_in(held)

    def read(offset: int, length: int) -> memoryview:
        return held[offset : offset + length]

    (group,) = items(footer, FileFields.GROUPS)
    return {_path(chunk): StoredChunk(chunk, read) for chunk in items(group, GroupFields.COLUMNS)}


def _footer_in(file: memoryview) -> Struct:
    length = int.from_bytes(file[-TAIL : -TAIL + 4], "little")
    return decode(file[-TAIL - length : -TAIL])[0]


def _empty_footer(schema: pa.Schema, spec: IndexSpec) -> Struct:
    """The footer of a split of this schema without rows."""
    sink = pa.BufferOutputStream()
    parquet_writer(sink, schema, spec, schema.empty_table()).close()
    return _footer_in(memoryview(sink.getvalue()).cast("B"))
