"""Splits for tests: built through the real write path, searched, and damaged on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from indextables.index.query.syntax import parse_query
from indextables.index.settings import IndexSpec, from_options
from indextables.model.actions import AddAction
from indextables.options import Options
from indextables.reading import Reading
from indextables.split.layout import SplitManifest, SplitRef, read_footer
from indextables.split.search.metrics import SearchMetrics
from indextables.split.search.run import count_split, hits_split, search_split
from indextables.split.search.selection import Selection
from indextables.split.source import SplitFile
from indextables.split.write.build import build_splits
from indextables.storage.store import Store, open_store


@dataclass(frozen=True)
class Built:
    """One split in a directory of its own, with the settings it was built with."""

    store: Store
    add: AddAction
    schema: pa.Schema
    spec: IndexSpec
    options: Options

    @property
    def path(self) -> Path:
        local = self.store.local_path(self.add.path)
        assert local is not None
        return Path(local)

    @property
    def reading(self) -> Reading:
        return Reading(self.store, self.schema, self.options)

    @property
    def ref(self) -> SplitRef:
        return SplitRef.of(self.add)

    @property
    def manifest(self) -> SplitManifest:
        return read_footer(SplitFile(self.store, self.add.path), self.ref).manifest

    def seen_with(self, options: Mapping[str, Any]) -> Built:
        """The same split in a table with other index settings."""
        other = Options.of(options)
        return replace(self, options=other, spec=from_options(other, self.schema))

    def copy(self, directory: Path) -> Built:
        """The same bytes under another root, so that nothing remembered applies."""
        other = open_store(directory)
        local = other.local_path(self.add.path)
        assert local is not None
        Path(local).parent.mkdir(parents=True, exist_ok=True)
        Path(local).write_bytes(self.path.read_bytes())
        return replace(self, store=other)

    def hits(
        self, query: str, note: list[SearchMetrics] | None = None, columns: Sequence[str] | None = None
    ) -> list[int]:
        parsed = parse_query(query, self.spec, self.schema, columns)
        noted = [] if note is None else note
        return hits_split(self.reading, self.ref, Selection(parsed), noted.append).to_pylist()

    def count(self, query: str, note: list[SearchMetrics] | None = None, **more: Any) -> int:
        parsed = parse_query(query, self.spec, self.schema)
        noted = [] if note is None else note
        return count_split(self.reading, self.ref, Selection(parsed, **more), noted.append)

    def search(
        self,
        query: str,
        columns: Sequence[str] | None = None,
        note: list[SearchMetrics] | None = None,
        **more: Any,
    ) -> pa.Table:
        parsed = parse_query(query, self.spec, self.schema)
        wanted = self.schema.names if columns is None else columns
        noted = [] if note is None else note
        selection = Selection(parsed, columns=tuple(wanted), **more)
        parts = list(search_split(self.reading, self.ref, selection, noted.append))
        empty = pa.schema([self.schema.field(name) for name in wanted]).empty_table()
        return pa.concat_tables(parts) if parts else empty


def build_split(
    directory: Path,
    rows: pa.Table,
    options: Mapping[str, Any] | None = None,
    partition_columns: Sequence[str] = (),
) -> Built:
    """Write rows as one split."""
    (built,) = build_all(directory, rows, options, partition_columns)
    return built


def build_all(
    directory: Path,
    rows: pa.Table,
    options: Mapping[str, Any] | None = None,
    partition_columns: Sequence[str] = (),
) -> list[Built]:
    """Write rows as splits."""
    resolved = Options.of(options or {})
    spec = from_options(resolved, rows.schema)
    store = open_store(directory / "table")
    built = build_splits(
        rows.to_batches(), rows.schema, partition_columns, spec, resolved, store, table_id="t"
    )
    return [Built(store, split.add, rows.schema, spec, resolved) for split in built]


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Turn over one bit of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(bytes(data))


def index_bytes(built: Built) -> list[tuple[int, int]]:
    """Where the index lies in a split, without its root, and where its root does: offset and length."""
    manifest = built.manifest
    assert manifest.root is not None
    length = manifest.length - manifest.row_map.length
    root = manifest.offset + length - manifest.root.length
    return [(manifest.offset, length - manifest.root.length), (root, manifest.root.length)]


def row_map_bytes(built: Built) -> tuple[int, int]:
    """Where the row map lies in a split: offset and length."""
    manifest = built.manifest
    return manifest.offset + manifest.length - manifest.row_map.length, manifest.row_map.length
