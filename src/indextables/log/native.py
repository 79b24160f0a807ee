"""The native log, assembled from its dialect, its checkpoint reader and the engines that replay it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from indextables.errors import Error
from indextables.lazy import later
from indextables.log.checkpoint.head import CheckpointHead, CheckpointReader
from indextables.log.format.binding import check_version
from indextables.log.format.checksum import unsealed
from indextables.log.format.dialect import NATIVE, Checkpoint, LogFile, decode_lines
from indextables.log.replay.long_tail import (
    BYTES_OF_MEMORY,
    LONG_BYTES,
    LineCount,
    LongTailSource,
    ScannedCommit,
)
from indextables.log.replay.rule import Fold, LiveFiles, ReplayEngine, ReplayRequest
from indextables.log.segment import Segment
from indextables.log.snapshot import Snapshot
from indextables.log.state import VersionCache, read_tail
from indextables.model.actions import Action, AddAction
from indextables.options import Options
from indextables.records import dataclass
from indextables.runtime import Runtime
from indextables.storage.envelope import is_packed, unpack_blocks
from indextables.storage.store import Store

if TYPE_CHECKING:
    from indextables.log.checkpoint import reader, writer
    from indextables.log.replay import columnar, fold, reference
else:
    reader = later("indextables.log.checkpoint.reader")
    writer = later("indextables.log.checkpoint.writer")
    columnar = later("indextables.log.replay.columnar")
    fold = later("indextables.log.replay.fold")
    reference = later("indextables.log.replay.reference")

logger = logging.getLogger(__name__)

_ADD_BYTES = 300
_LARGEST_SHARE = 4
"""A checkpoint is folded with its tail unless it has more than this many times the tail's text."""
_TEXT_OF_STORED = 10
"""Assumed ratio between the text of a commit and its stored size, where commits are compressed."""


@dataclass(frozen=True, slots=True)
class NativePiece:
    """One whole commit as a unit of work: compressed text cannot be read from the middle."""

    name: str
    version: int
    length: int
    etag: str | None = None

    def actions(self, store: Store) -> Sequence[Action]:
        """The actions of the commit, oldest first."""
        data = store.get(NATIVE.path(self.name), etag=self.etag)
        return NATIVE.decode_commit(data, name=self.name, version=self.version)


class NativeSource(LongTailSource):
    """A native log in a store."""

    __slots__ = ()

    def text_bytes(self, files: Sequence[LogFile]) -> int:
        """Estimated size of the commits' text, uncompressed."""
        stored = LongTailSource.text_bytes(self, files)
        return stored * _TEXT_OF_STORED if self.options.compression.enabled else stored

    def folds(self, files: Sequence[LogFile], head: CheckpointHead | None = None) -> bool:
        """Whether the commits are large, also beside the checkpoint, and no executors are there for them."""
        text = self.text_bytes(files)
        limit = min(LONG_BYTES, self.options.replay.local_memory // BYTES_OF_MEMORY)
        if "spark" in self.runtime.engines or text <= limit:
            return False
        return head is None or (head.num_files or 0) * _ADD_BYTES <= _LARGEST_SHARE * text

    def fold(self, segment: Segment) -> Fold | None:
        """The segment's files as a private checkpoint; None if it cannot be made here."""
        try:
            return read_tail(self, segment.commits, lambda _: fold.fold(self, segment))
        except OSError as full:
            if isinstance(full, Error):
                raise
            logger.warning("%s: the log cannot be sorted on local disk: %s", self.store.uri, full)
            return None

    def scan_commit(self, file: LogFile) -> ScannedCommit:
        """Scan one commit: inflated block by block, its adds and removes counted but not decoded."""
        data = self.store.get(self.path(file.name), etag=file.etag)
        lines = LineCount()
        if is_packed(data):
            partial_line = b""
            for block in unpack_blocks(data, file.name):
                whole_lines, end, partial_line = (partial_line + block).rpartition(b"\n")
                lines.take(whole_lines + end)
            lines.take(partial_line)
        elif data:
            lines.take(unsealed(data, file.name, file.version))
        heads: Sequence[Action] = ()
        if lines.adds + lines.removes:
            heads = decode_lines(lines.rest, name=file.name, version=file.version)
            check_version(heads, file.name, file.version)
        else:
            heads = NATIVE.decode_commit(data, name=file.name, version=file.version)
        self.refuse_retired(file, heads)
        piece = NativePiece(file.name, file.version, len(data), file.etag)
        return ScannedCommit(file.version, tuple(heads), (piece,), lines.adds, lines.removes)


@dataclass(frozen=True, slots=True)
class LazyEngine:
    """An engine whose module is imported by its first replay: opening a small table does not need it."""

    name: str
    make: Callable[[], ReplayEngine]

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request."""
        return self.make().replay(request)


def _columnar() -> ReplayEngine:
    return columnar.ColumnarEngine()


def _reference() -> ReplayEngine:
    return reference.ReferenceEngine()


class LazyReader:
    """The native checkpoint reader, whose module is imported when the first checkpoint is read."""

    def head(self, store: Store, checkpoint: Checkpoint) -> CheckpointHead:
        """Protocol, metadata, skips and transactions."""
        return self._reader().head(store, checkpoint)

    def adds(
        self, store: Store, checkpoint: Checkpoint, paths: AbstractSet[str] | None = None
    ) -> Iterator[AddAction]:
        """Adds as whole actions; only those of `paths` when given."""
        return self._reader().adds(store, checkpoint, paths)

    def _reader(self) -> CheckpointReader:
        return reader.NativeCheckpointReader()


def native_source(
    store: Store, options: Options, runtime: Runtime, versions: VersionCache | None = None
) -> NativeSource:
    """How a native log in a store is read."""
    engines: dict[str, ReplayEngine] = {
        "reference": LazyEngine("reference", _reference),
        "columnar": LazyEngine("columnar", _columnar),
    }
    return NativeSource(store, NATIVE, LazyReader(), engines, options, runtime, versions)


def write_native_checkpoint(snapshot: Snapshot) -> Checkpoint:
    """Write a checkpoint of a snapshot and point to it."""
    return writer.write_checkpoint(snapshot, snapshot.settings, snapshot.runtime.clock)
