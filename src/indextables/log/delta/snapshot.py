"""One version of a Delta table: its columns, and the files that are live in it.

Protocol and metadata are checked before any file is read. Scans of one snapshot share
what was read of the checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from indextables.cache import TtlCache
from indextables.errors import CorruptLogError, NotFoundError
from indextables.lazy import pa, pc
from indextables.log.delta.checkpoint.reader import DeltaCheckpointReader, num_adds
from indextables.log.delta.columns import DeltaColumns, columns_of
from indextables.log.delta.dialect import DELTA
from indextables.log.delta.features import require_metadata, require_readable
from indextables.log.delta.files.file_table import (
    COLUMNS,
    DEFAULT_COLUMNS,
    FileProjection,
    files_form,
    raw_table,
)
from indextables.log.delta.history import clone_sources
from indextables.log.delta.replay import DeltaColumnarEngine, DeltaReferenceEngine, DeltaRequest
from indextables.log.delta.source import DeltaSource
from indextables.log.delta.timestamps import version_as_of_ms
from indextables.log.format.dialect import Checkpoint, digits
from indextables.log.openable import openable
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.rule import LiveFiles, ReplayEngine, explain_choice
from indextables.log.snapshot import Snapshot
from indextables.log.state import LogSource, State, load_state, refresh_state
from indextables.model.actions import MetadataAction, ProtocolAction
from indextables.options import ALLOWED_ROOTS, Options
from indextables.predicate.tree import Node
from indextables.runtime import LOCAL, Runtime
from indextables.storage.store import Store, open_store

logger = logging.getLogger(__name__)

_CACHE_S = 300
_recent: TtlCache[tuple[object, ...], State] = TtlCache(_CACHE_S, max_entries=8)


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """What the `.crc` file of a version says about it."""

    num_files: int
    size_bytes: int


class DeltaSnapshot(Snapshot):
    """One version of a Delta table."""

    _summed = ("size", "num_records")
    _vectors = "dv"

    def _require_readable(self) -> None:
        """Check that protocol and metadata are supported, before anything else is used."""
        require_readable(self._declared_protocol(), uri=self.store.uri)
        require_metadata(self._declared_metadata(), uri=self.store.uri)

    @property
    def protocol(self) -> ProtocolAction:
        """Which readers and writers the table asks for."""
        return require_readable(self._declared_protocol(), uri=self.store.uri)

    @property
    def metadata(self) -> MetadataAction:
        """Schema, partitioning and properties."""
        return require_metadata(self._declared_metadata(), uri=self.store.uri)

    @property
    def columns(self) -> DeltaColumns:
        """Schema, partition columns and their physical names."""
        no_nan = self.settings.read.no_nan
        return self.once("columns", lambda: columns_of(self.protocol, self.metadata, no_nan=no_nan))

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, by logical name."""
        return self.columns.schema

    @property
    def num_files_hint(self) -> int | None:
        """About how many files are live; if a cluster could replay them, file footers are read too."""
        added, removed = self.state.tail.size()
        if isinstance(self.state.tail, LongTail):
            added = max(0, added - removed)
        checkpoint, head = self.segment.checkpoint, self.state.head
        if checkpoint is None:
            return added
        counted = head.num_files if head and head.num_files is not None else checkpoint.num_files
        if counted is None and self.settings.replay.enabled and "spark" in self.runtime.engines:
            counted = self.once("base files", lambda: self._count_base(checkpoint))
        return None if counted is None else counted + added

    def _count_base(self, checkpoint: Checkpoint) -> int | None:
        assert isinstance(self.source.reader, DeltaCheckpointReader)
        try:
            manifest = self.source.reader.manifest(self.store, checkpoint)
            counts = [num_adds(self.store, path, checkpoint) for path in manifest.parquet]
        except (CorruptLogError, NotFoundError):
            # Reading the files will fall back to an older checkpoint, or raise an error that says what is
            # wrong.
            return None
        return len(manifest.inline) + sum(counts)

    def files_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The columns of `files()`, or those that are named, in the order they are named in."""
        names = self._require_file_columns(columns, COLUMNS)
        shown = DEFAULT_COLUMNS if names is None else names
        projection = FileProjection.of(shown, self.columns, None)
        schema = files_form(raw_table([]), self.columns, projection, self.store).schema
        return pa.schema([schema.field(name) for name in shown])

    def request(self, where: Node | None = None, columns: frozenset[str] | None = None) -> DeltaRequest:
        """The request to a replay engine for this version."""
        return self._request(self.state, where, columns, explain=False)

    def replay_by(self, columns: DeltaColumns, where: Node | None, names: frozenset[str]) -> LiveFiles:
        """Replay with other names for the table's columns, both in the predicate and in the result."""
        engine = self._engine("auto")

        def ask(state: State) -> LiveFiles:
            request = self._request(state, where, names, explain=False)
            return engine.replay(
                replace(
                    request,
                    schema=columns.schema,
                    partition_columns=columns.partition_columns,
                    delta=columns,
                )
            )

        live = self._sound(ask)
        why = explain_choice(self.settings, self.num_files_hint, "auto")
        return replace(live, replay=replace(live.replay, why=why))

    def files_with_vectors(self, where: Node | None, columns: frozenset[str]) -> LiveFiles:
        """The files that have a deletion vector and can hold a matching row; others are never collected."""
        engine = self._engine("auto")

        def ask(state: State) -> LiveFiles:
            request = self._request(state, where, columns | {"dv"}, explain=False)
            return engine.replay(replace(request, only_with_vectors=True))

        return self._sound(ask)

    def _request(
        self, state: State, where: Node | None, columns: frozenset[str] | None, *, explain: bool
    ) -> DeltaRequest:
        return DeltaRequest(
            store=self.store,
            dialect=DELTA,
            reader=self.source.reader,
            segment=state.segment,
            tail=state.tail,
            schema=self.schema,
            partition_columns=self.columns.partition_columns,
            options=self.settings,
            where=where,
            columns=columns,
            explain=explain,
            memo=state.memo,
            delta=self.columns,
        )

    def _declared_protocol(self) -> ProtocolAction | None:
        head = self.state.head
        return self.state.tail.protocol or (head.protocol if head else None)

    def _declared_metadata(self) -> MetadataAction | None:
        head = self.state.head
        return self.state.tail.metadata or (head.metadata if head else None)

    def checksum(self) -> VersionChecksum | None:
        """Read the version's `.crc` file; None when there is none or it makes no sense."""
        try:
            data = self.store.get(DELTA.path(f"{digits(self.version)}.crc"))
            wire = msgspec.json.decode(data)
            return VersionChecksum(int(wire["numFiles"]), int(wire["tableSizeBytes"]))
        except (NotFoundError, msgspec.DecodeError, KeyError, TypeError, ValueError):
            return None

    def verify(self) -> None:
        """Compare the live files with the version's `.crc` file, if it has one; raise where they differ."""
        stated = self.checksum()
        if stated is None:
            return
        files = self.plan(columns=["size"], engine="local").files
        actual = VersionChecksum(files.num_rows, pc.sum(files.column("size")).as_py() or 0)
        if actual != stated:
            raise CorruptLogError(
                f"version {self.version} of {self.store.uri} replays to {actual.num_files} files of "
                f"{actual.size_bytes} bytes, its .crc file says {stated.num_files} of {stated.size_bytes}; "
                "the log was changed after it was written",
                version=self.version, uri=self.store.uri,
            )  # fmt: skip


def delta_source(store: Store, options: Options, runtime: Runtime) -> LogSource:
    """The location of a Delta log, and the options and runtime to read it with."""
    engines: Mapping[str, ReplayEngine] = {
        "columnar": DeltaColumnarEngine(),
        "reference": DeltaReferenceEngine(),
        **runtime.engines,
    }
    return DeltaSource(store, DELTA, DeltaCheckpointReader(), engines, options, runtime)


def open_snapshot(
    uri: Any,
    *,
    version: int | None = None,
    as_of_ms: int | None = None,
    options: Options,
    runtime: Runtime = LOCAL,
) -> DeltaSnapshot:
    """Open a version of a Delta table: by number, by time, or the newest."""
    source = delta_source(open_store(uri, options.storage), options, runtime)
    if options.read.allow_clone_source:
        roots = ",".join([*(options.read.allowed_roots or ()), *clone_sources(source)])
        source = delta_source(open_store(uri, {**options.storage, ALLOWED_ROOTS: roots}), options, runtime)
    if version is None and as_of_ms is None:
        return DeltaSnapshot(source, _newest(source))
    if as_of_ms is not None:
        newest = DeltaSnapshot(source, _newest_whole(source))
        version = version_as_of_ms(source, as_of_ms, newest.metadata.configuration)
        if version == newest.version:
            return newest
    return DeltaSnapshot(source, load_state(source, version))


def _newest_whole(source: LogSource) -> State:
    """The newest state that can be loaded."""
    try:
        return _newest(source)
    except CorruptLogError as bad:
        available = openable(source)
        if not available:
            raise
        logger.warning("%s: %s", source.store.uri, bad)
        return load_state(source, available[-1])


def _newest(source: LogSource) -> State:
    """The newest state; what an earlier call read of the same checkpoint is reused for a while."""
    if not source.options.transaction.cache_enabled:
        return load_state(source)
    key = (source.store.uri, tuple(sorted(source.options.storage.items())))
    recent = _recent.get(key)
    newest = load_state(source) if recent is None else refresh_state(source, recent)
    if newest is not recent:
        _recent.put(key, newest)
    return newest
