"""The table that a companion indexes: a Delta table at one version, or the Parquet files below a directory.

Either gives its columns, its live files with a key each, and the files in which a filter may be true. The
key of a file is a digest of all that tells it from another file of its name, so an index that covers a key
covers that file and no other. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from indextables.errors import MissingSplitError, NotFoundError, OptionError, SchemaError, TableError
from indextables.log.delta.columns import DeltaColumns, columns_of
from indextables.log.delta.snapshot import DeltaSnapshot, open_snapshot
from indextables.log.replay.rule import ReplayMetrics
from indextables.log.table_kind import TableKind, recognise
from indextables.model.actions import MetadataAction, ProtocolAction
from indextables.model.fields import normalise_schema, schema_to_json
from indextables.ops.delta.data_file import NAMES, DataFile, StoredFile, data_files, file_errors
from indextables.ops.delta.scan import count, require_schema
from indextables.ops.rewrite.drop_partitions import require_partition_columns
from indextables.ops.write.evolution import evolved
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.tree import Node
from indextables.runtime import Runtime, in_threads
from indextables.storage.objects import ObjectMeta
from indextables.storage.store import Store, StoreSpec, open_store, requests_at_once, require_allowed

DELTA, PARQUET = "delta", "parquet"
FORMATS = (DELTA, PARQUET)
KEY_BYTES = 12
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One live file of a source."""

    file: DataFile
    key: bytes
    """What tells it from every other file, also from one that had its name before."""
    modified_ms: int = 0

    @property
    def num_records(self) -> int | None:
        """How many of its rows are live, by the log; None when it does not say."""
        rows, vector = self.file.num_records, self.file.vector
        return rows if rows is None or vector is None else rows - vector.cardinality


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """The paths of the files in which a filter may be true, and how they were chosen."""

    paths: frozenset[str]
    metrics: PruneMetrics
    replay: ReplayMetrics


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """All that is needed to read files of a source; pickled, it carries the address of the store."""

    format: str
    id: str
    store: Store
    columns: DeltaColumns
    version: int | None = None
    """The version that was planned; None for files without a log."""

    @property
    def uri(self) -> str:
        """Where they are."""
        return self.store.uri

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Say of a file that is gone when it is read which version needs it."""
        try:
            yield
        except MissingSplitError as gone:
            path = gone.fields["path"]
            if self.version is None:
                raise self._changed(path) from gone
            raise MissingSplitError(
                f"{path} is part of version {self.version} of {self.uri}, which was planned, and is not "
                "there any more: VACUUM removed it, or somebody did by hand. Open the table again to read "
                "the newest version, or bring the file back.",
                path=path, version=self.version,
            ) from gone  # fmt: skip

    def require_unchanged(self, item: SourceFile) -> None:
        """Raise if another file has the name of one that was just read."""
        if self.format == DELTA:
            # Files of a Delta table never change.
            return
        try:
            meta = self.store.head(item.file.path)
        except NotFoundError as gone:
            raise self._changed(f"{self.uri}/{item.file.path}") from gone
        if _key(self.id, meta.path, meta.size, meta.etag or meta.modified_ms) != item.key:
            raise self._changed(f"{self.uri}/{item.file.path}")

    def _changed(self, path: str) -> TableError:
        return TableError(
            f"{path} was replaced or removed while it was read. Open the companion again: it will "
            "list the files as they are now.",
            uri=self.uri, path=path,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return _files_again, (self.format, self.id, self.store.spec(), self.columns, self.version)


def _files_again(
    kind: str, source_id: str, store: StoreSpec, columns: DeltaColumns, version: int | None
) -> SourceFiles:
    return SourceFiles(kind, source_id, open_store(store), columns, version)


class Source(ABC):
    """One version of the table that is indexed."""

    format: str
    id: str
    """The id of the table, which goes into the keys of its files."""
    store: Store
    columns: DeltaColumns

    @property
    def rows_in(self) -> SourceFiles:
        """What is needed to read its files."""
        return SourceFiles(self.format, self.id, self.store, self.columns, self.version)

    @property
    def uri(self) -> str:
        """Where it is."""
        return self.store.uri

    @property
    @abstractmethod
    def version(self) -> int | None:
        """The version of the table; None for files without a log."""

    @property
    @abstractmethod
    def files(self) -> Sequence[SourceFile]:
        """Its live files, in the same order every time."""

    @abstractmethod
    def chosen(self, where: Node | None) -> ChosenFiles:
        """The files in which a filter may be true for a row."""

    @abstractmethod
    def count(self) -> int | None:
        """How many live rows there are; None when they have to be counted in the files."""


class DeltaTableSource(Source):
    """One version of a Delta table."""

    format = DELTA

    def __init__(self, snapshot: DeltaSnapshot) -> None:
        require_schema(snapshot)
        self.snapshot = snapshot
        self.id = snapshot.table_id
        self.store = snapshot.store
        self.columns = snapshot.columns

    @property
    def version(self) -> int | None:
        return self.snapshot.version

    @property
    def files(self) -> Sequence[SourceFile]:
        return self.snapshot.once("companion files", self._list)

    def _list(self) -> Sequence[SourceFile]:
        files = self.snapshot.plan(columns=(*NAMES, "modification_time")).files
        require_allowed(self.store, files.column("path").to_pylist())
        times = files.column("modification_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        return [
            SourceFile(file, _key(self.id, file.path, file.size, time), (time or 0) // 1000)
            for file, time in zip(data_files(files), times.to_pylist(), strict=True)
        ]

    def chosen(self, where: Node | None) -> ChosenFiles:
        plan = self.snapshot.plan(where, columns={"path"})
        return ChosenFiles(frozenset(plan.files.column("path").to_pylist()), plan.metrics, plan.replay)

    def count(self) -> int | None:
        return count(self.snapshot)[0]


class ParquetFiles(Source):
    """The Parquet files below a directory, as one listing shows them; Hive's `name=value` are partitions."""

    format = PARQUET

    def __init__(self, store: Store, source_id: str, schema: pa.Schema | None) -> None:
        """List the files; without a schema it is read from all of them."""
        self.store = store
        self.id = source_id
        listed = [meta for meta in store.list() if _is_data(meta.path)]
        if not listed and schema is None:
            raise TableError(
                f"{store.uri} holds no Parquet files, so it has no columns to index", uri=store.uri
            )
        values = [_partition_texts(meta.path) for meta in listed]
        names = _partition_names(values, store.uri)
        partitions = _partition_fields(names, values, schema)
        if schema is None:
            schema = self.schema_of(listed, partitions)
        self._schema = schema
        self.columns = _columns(schema, names)
        fields = {field.name: field for field in partitions}
        self._files = [
            SourceFile(
                DataFile(meta.path, meta.size, {name: _typed(texts[name], fields[name]) for name in names}),
                _key(self.id, meta.path, meta.size, meta.etag or meta.modified_ms),
                meta.modified_ms,
            )
            for meta, texts in zip(listed, values, strict=True)
        ]

    @property
    def version(self) -> int | None:
        return None

    @property
    def files(self) -> Sequence[SourceFile]:
        return self._files

    def chosen(self, where: Node | None) -> ChosenFiles:  # noqa: ARG002 - they have no statistics
        every = len(self._files)
        return ChosenFiles(
            frozenset(item.file.path for item in self._files),
            PruneMetrics(considered=every, kept=every),
            ReplayMetrics("none", why="files without a log"),
        )

    def count(self) -> int | None:
        return None

    def grown(self, files: Iterable[SourceFile]) -> ParquetFiles:
        """The same files with the columns that some of them have beyond those known."""
        schema = self._schema
        for stored in self._schemas(item.file for item in files):
            schema = evolved(schema, stored, self.columns.partition_columns)
        other = object.__new__(ParquetFiles)
        other.__dict__.update(self.__dict__)
        other._schema = schema
        other.columns = _columns(schema, self.columns.partition_columns)
        return other

    def schema_of(self, listed: Sequence[ObjectMeta], partitions: Sequence[pa.Field]) -> pa.Schema:
        """The columns of all files together."""
        schema: pa.Schema | None = None
        for stored in self._schemas(DataFile(meta.path, meta.size, None) for meta in listed):
            schema = stored if schema is None else evolved(schema, stored)
        assert schema is not None
        own = [field for field in schema if field.name not in {item.name for item in partitions}]
        return pa.schema([*own, *partitions])

    def _schemas(self, files: Iterable[DataFile]) -> Iterator[pa.Schema]:
        def schema_in(file: DataFile) -> pa.Schema:
            with StoredFile.of(self.store, file.path, file.size) as stored, file_errors(stored.name):
                fields = [field.with_nullable(True) for field in stored.parquet().schema_arrow]
            try:
                return normalise_schema(pa.schema([field.remove_metadata() for field in fields]))
            except SchemaError as bad:
                raise SchemaError(f"{self.uri}/{file.path} cannot be indexed: {bad}") from bad

        return in_threads(schema_in, files, requests_at_once(self.store))


def open_source(
    uri: str,
    kind: str | None,
    *,
    options: Options,
    runtime: Runtime,
    version: int | None = None,
    as_of_ms: int | None = None,
    source_id: str = "",
    schema: pa.Schema | None = None,
) -> Source:
    """Open a source; without a kind, by what lies there. Id and schema are those of files without a log."""
    store = open_store(uri, options.storage)
    lies_there = recognise(store) if kind is None else None
    if kind == DELTA or lies_there is TableKind.DELTA:
        return DeltaTableSource(
            open_snapshot(uri, version=version, as_of_ms=as_of_ms, options=options, runtime=runtime)
        )
    if lies_there not in (None, TableKind.FILES):
        raise TableError(
            f"{store.uri} is {lies_there.value}: a companion is made for a Delta table or for a directory of "
            "Parquet files",
            uri=store.uri,
        )
    if version is not None or as_of_ms is not None:
        raise OptionError(
            f"{store.uri} holds Parquet files without a log, so it has no earlier versions: leave out "
            "version and as_of"
        )
    return ParquetFiles(store, source_id, schema)


def in_partitions(source: Source, where: str) -> Sequence[SourceFile]:
    """The live files whose partition values make a condition true; one on other columns is an error."""
    columns = source.columns
    node = require_partition_columns(
        as_node(where, columns.schema), columns.partition_columns, source.uri, " Index the other columns too."
    )
    # A value that is not of its column's type is no value a condition could be true for.
    values = [item.file.partition_values or {} for item in source.files]
    partitions = pa.schema([columns.schema.field(name) for name in columns.partition_columns])
    rows = pa.Table.from_pylist(
        [{name: row.get(name) for name in partitions.names} for row in values], partitions
    )
    matches = mask(node, rows, columns.schema).to_pylist()
    return [item for item, matching in zip(source.files, matches, strict=True) if matching]


def _key(*parts: object) -> bytes:
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogateescape"), digest_size=KEY_BYTES).digest()


def _columns(schema: pa.Schema, partition_columns: Sequence[str]) -> DeltaColumns:
    protocol = ProtocolAction(min_reader_version=1, min_writer_version=1)
    metadata = MetadataAction(
        id="", schema_string=schema_to_json(schema), partition_columns=tuple(partition_columns)
    )
    return columns_of(protocol, metadata)


def _is_data(path: str) -> bool:
    hidden = any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))
    return path.endswith((".parquet", ".parq")) and not hidden


def _partition_texts(path: str) -> dict[str, str | None]:
    """The values of `name=value` in the directories of a path."""
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name): None if value == _NULL_PARTITION else unquote(value) for name, _, value in pairs}


def _partition_names(values: Sequence[dict[str, str | None]], uri: str) -> tuple[str, ...]:
    names = tuple(values[0]) if values else ()
    for texts in values:
        if tuple(texts) != names:
            raise TableError(
                f"the files below {uri} are not partitioned alike: some by {', '.join(names) or 'nothing'}, "
                f"others by {', '.join(texts) or 'nothing'}. Index the directories one by one.",
                uri=uri,
            )
    return names


def _partition_fields(
    names: Sequence[str], values: Sequence[dict[str, str | None]], schema: pa.Schema | None
) -> list[pa.Field]:
    """The partition columns: those of the schema, or whole numbers and else texts."""
    fields = []
    for name in names:
        texts = [texts[name] for texts in values]
        if schema is not None and name in schema.names:
            fields.append(schema.field(name))
            continue
        numbers = all(text is None or _WHOLE_NUMBER.fullmatch(text) for text in texts)
        fields.append(pa.field(name, pa.int64() if numbers else pa.string()))
    return fields


def _typed(text: str | None, field: pa.Field) -> Any:
    if text is None or pa.types.is_string(field.type):
        return text
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise TableError(
            f"the partition {field.name}={text} is no whole number, and {field.name!r} is a column of such: "
            "make the companion anew"
        )
    return int(text)
