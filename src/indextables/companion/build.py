"""Builds companion splits: an index over the rows of some files of a source, and the map of these files.

A split is an empty Parquet file with the page maps of the files, the index and the source map before its
footer, so whatever opens splits by their footers opens it. Rows that a deletion vector hides are indexed
too: the vector may change, and it is the vector of the version that is read that hides them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from indextables.companion.pages import find_pages
from indextables.companion.settings import CompanionSettings, own_schema
from indextables.companion.source import Source, SourceFile, SourceFiles
from indextables.companion.source_map import CoveredFile, SourceMap, coverage_tags
from indextables.errors import TableError
from indextables.index.build.builder import IndexBuilder
from indextables.index.build.writer import BuiltIndex
from indextables.index.settings import IndexSpec
from indextables.lazy import pq
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.model.stats import FileStats
from indextables.ops.delta.data_file import RowReader, group_rows
from indextables.options import Options
from indextables.split.layout import MAGIC, SplitManifest, finish
from indextables.split.write.build import publish
from indextables.split.write.writer import Finished, footer_of
from indextables.storage.checksum import crc32
from indextables.storage.scratch import scratch_directory
from indextables.storage.store import Store, StoreSpec, open_store

SOURCE_MAP = "source map"
PAGE_MAPS = "page maps"
"""The names of the source map and of the page maps beside it in the list of component sizes."""
MOST_INSIDE = 32 << 10
"""Page maps of this size together are part of the source map, which is read anyway."""


@dataclass(frozen=True, slots=True)
class SplitPlace:
    """Where the splits of a companion are put, and what they say of it."""

    store: Store
    options: Options
    table_id: str
    now_ms: int

    @classmethod
    def of(cls, own: Snapshot) -> SplitPlace:
        """The place of a companion."""
        return cls(own.store, own.settings, own.split_table_id, own.runtime.clock.now_ms())

    def __reduce__(self) -> tuple[Any, ...]:
        return _place_again, (self.store.spec(), self.options, self.table_id, self.now_ms)


def _place_again(store: StoreSpec, options: Options, table_id: str, now_ms: int) -> SplitPlace:
    return SplitPlace(open_store(store), options, table_id, now_ms)


@dataclass(frozen=True, slots=True)
class IndexForm:
    """What the indexes of one refresh are like: settings, columns by their names in the files, and types."""

    spec: IndexSpec
    schema: pa.Schema
    types: Mapping[str, str]
    names: tuple[str, ...]
    """The names that the source has for these columns now."""

    @classmethod
    def of(cls, settings: CompanionSettings, source: Source) -> IndexForm:
        """The form for a version of the source; columns that it has no longer are left out."""
        indexed = settings.on(source)
        present = [item for item in settings.spec.fields if item.column in indexed.logical_names]
        spec = IndexSpec(tuple(present))
        schema = own_schema(spec, source)
        names = tuple(indexed.logical_names[name] for name in schema.names)
        return cls(spec, schema, indexed.types, names)


def build_split(
    place: SplitPlace, form: IndexForm, source: SourceFiles, items: Sequence[SourceFile]
) -> AddAction:
    """Index some files, here or on an executor, and put the split into the store of the companion."""
    reader = RowReader(source.columns, form.names)
    builder = IndexBuilder(form.spec, form.schema)
    covered, ends, page_maps = [], [0], []
    for item in items:
        with_hidden = replace(item.file, vector=None)
        groups = group_rows(source.store, with_hidden)
        for table in reader.rows(source.store, with_hidden):
            builder.add(pa.Table.from_arrays(table.columns, schema=form.schema))
        page_maps.append(find_pages(source.store, with_hidden, groups))
        source.require_unchanged(item)
        ends.append(builder.rows)
        if sum(groups) != ends[-1] - ends[-2]:
            raise TableError(f"{source.uri}/{item.file.path} changed while it was indexed; refresh again")
        covered.append(CoveredFile(item.key, item.file.path, item.file.size, groups))
    tokens = builder.token_counts(ends[1:])
    files = tuple(
        msgspec.structs.replace(file, tokens={column: counts[at] for column, counts in tokens.items()})
        for at, file in enumerate(covered)
    )
    return write_split(place, form, builder.finish(), files, page_maps)


def write_split(
    place: SplitPlace,
    form: IndexForm,
    index: BuiltIndex,
    files: Sequence[CoveredFile],
    page_maps: Sequence[bytes | memoryview | None],
) -> AddAction:
    """Put an index and the maps of its files into the companion's store, as a split."""
    maps = [bytes(data or b"") for data in page_maps]
    beside = sum(map(len, maps)) > MOST_INSIDE
    starts = accumulate(map(len, maps), initial=len(MAGIC))
    source_map = SourceMap(
        tuple(
            msgspec.structs.replace(
                file, pages=((start, len(one), crc32(one)) if beside else one) if one else None
            )
            for file, start, one in zip(files, starts, maps, strict=False)
        )
    )
    data = source_map.to_bytes()
    with scratch_directory("build") as directory:
        path = str(Path(directory, "index.parquet"))
        pq.ParquetWriter(path, form.schema.remove_metadata(), store_schema=False).close()
        empty = Path(path).read_bytes()
        Path(path).write_bytes(b"".join([MAGIC, *(maps if beside else ()), empty[len(MAGIC) :]]))
        manifest = SplitManifest(
            rows=index.rows,
            fields=form.spec.to_wire(),
            table_id=place.table_id,
            components={
                **index.sizes,
                SOURCE_MAP: len(data),
                PAGE_MAPS: sum(map(len, maps)) if beside else 0,
            },
            tokens=index.tokens,
        )
        footer = finish(path, footer_of(path), index.chunks, data, manifest)
        done = Finished(path, footer.end, footer, FileStats(num_records=index.rows), 0)
        built = publish(
            done, form.schema, form.spec, place.options, place.store,
            partition_values={}, data_change=True, now_ms=place.now_ms,
        )  # fmt: skip
    tags = {**(built.add.tags or {}), **coverage_tags(source_map, form.types)}
    return replace(built.add, tags=tags)
