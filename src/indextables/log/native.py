"""The native log put together: its dialect, its checkpoint reader and the engines that replay it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indextables.errors import NotFoundError
from indextables.log.checkpoint.reader import NativeCheckpointReader
from indextables.log.checkpoint.writer import write_checkpoint
from indextables.log.format.binding import check_version
from indextables.log.format.checksum import unsealed
from indextables.log.format.dialect import NATIVE, Checkpoint, LogFile, decode_lines
from indextables.log.replay.columnar import ColumnarEngine
from indextables.log.replay.long_tail import FarSource, LineCount, Passed
from indextables.log.replay.reference import ReferenceEngine
from indextables.log.replay.rule import ReplayEngine
from indextables.log.snapshot import Snapshot
from indextables.log.state import VersionCache
from indextables.model.actions import Action, CommitInfo
from indextables.options import Options
from indextables.runtime import Runtime
from indextables.storage.envelope import is_packed, unpack_blocks
from indextables.storage.store import Store

_TEXT_OF_STORED = 10
"""How many times its stored size the text of a commit has, where commits are compressed."""


@dataclass(frozen=True, slots=True)
class NativePiece:
    """One commit; compressed text has no place to begin in the middle."""

    name: str
    version: int
    length: int

    def actions(self, store: Store) -> Iterator[tuple[int, Action]]:
        """The actions with their numbers."""
        data = store.get(NATIVE.path(self.name))
        yield from enumerate(NATIVE.decode_commit(data, name=self.name, version=self.version))


class NativeSource(FarSource):
    """A native log in a store."""

    __slots__ = ()

    def text_bytes(self, files: Sequence[LogFile]) -> int:
        """About how much text the commits hold."""
        stored = FarSource.text_bytes(self, files)
        return stored * _TEXT_OF_STORED if self.options.compression.enabled else stored

    def pass_over(self, file: LogFile) -> Passed:
        """Pass over one commit: inflated block by block, its adds and removes only counted."""
        data = self.store.get(self.path(file.name))
        lines = LineCount()
        if is_packed(data):
            kept = b""
            for block in unpack_blocks(data, file.name):
                whole, end, kept = (kept + block).rpartition(b"\n")
                lines.take(whole + end)
            lines.take(kept)
        elif data:
            lines.take(unsealed(data, file.name, file.version))
        heads: Sequence[Action] = ()
        if lines.adds + lines.removes:
            heads = decode_lines(lines.rest, name=file.name, version=file.version)
            check_version(heads, file.name, file.version)
        else:
            heads = NATIVE.decode_commit(data, name=file.name, version=file.version)
        if heads and isinstance(heads[-1], CommitInfo) and heads[-1].retired:
            raise NotFoundError(
                f"{self.store.uri}: version {file.version} is history no longer; only its number is kept.",
                uri=self.store.uri, path=self.path(file.name),
            )  # fmt: skip
        piece = NativePiece(file.name, file.version, len(data))
        return Passed(file.version, tuple(heads), (piece,), lines.adds, lines.removes)


def native_source(
    store: Store, options: Options, runtime: Runtime, versions: VersionCache | None = None
) -> NativeSource:
    """How a native log in a store is read."""
    engines: dict[str, ReplayEngine] = {"reference": ReferenceEngine(), "columnar": ColumnarEngine()}
    return NativeSource(store, NATIVE, NativeCheckpointReader(), engines, options, runtime, versions)


def write_native_checkpoint(snapshot: Snapshot) -> Checkpoint:
    """Write a checkpoint of a snapshot and point to it."""
    return write_checkpoint(snapshot, snapshot.settings, snapshot.runtime.clock)
