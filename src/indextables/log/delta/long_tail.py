"""Scans large Delta commits without decoding their adds, and cuts them into pieces for executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indextables.log.delta.commits import decode_commit
from indextables.log.delta.dialect import DELTA
from indextables.log.format.dialect import LogFile
from indextables.log.replay.long_tail import LineCount, ScannedCommit
from indextables.model.actions import Action, CommitInfo
from indextables.storage.store import Store

READ_BYTES = 4 << 20
PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class DeltaPiece:
    """Some consecutive whole lines of a commit or compaction file."""

    name: str
    version: int
    start: int
    length: int
    engine: str | None
    is_compacted: bool

    def actions(self, store: Store) -> Sequence[Action]:
        """The actions, oldest first: of two about one file the later one wins."""
        data = store.get_range(DELTA.path(self.name), self.start, self.length)
        actions = decode_commit(data, name=self.name, version=self.version, engine=self.engine)
        return actions[::-1] if self.is_compacted else actions


def scan_commit(
    store: Store, file: LogFile, read_bytes: int = READ_BYTES, piece_bytes: int = PIECE_BYTES
) -> ScannedCommit:
    """Scan one commit or compaction file; its adds and removes are counted but not decoded.

    The file is read `read_bytes` at a time, and a piece ends with the read in which it reaches `piece_bytes`.
    """
    lines = LineCount()
    cuts: list[tuple[int, int]] = []
    start = end = 0
    for block in _blocks(store, file, read_bytes):
        lines.take(block)
        end += len(block)
        if end - start >= piece_bytes:
            cuts.append((start, end - start))
            start = end
    if end > start or not end:
        cuts.append((start, end - start))
    heads: Sequence[Action] = ()
    if lines.rest or not lines.adds + lines.removes:
        heads = decode_commit(lines.rest, name=file.name, version=file.version)
    engine = next((item.engine_info for item in heads if isinstance(item, CommitInfo)), None)
    is_compacted = file.last_version is not None
    version = file.version if file.last_version is None else file.last_version
    pieces = [DeltaPiece(file.name, version, start, length, engine, is_compacted) for start, length in cuts]
    # In a compaction file the first line about a file counts, in a commit the last one.
    order = -1 if is_compacted else 1
    return ScannedCommit(version, tuple(heads[::order]), tuple(pieces[::order]), lines.adds, lines.removes)


def _blocks(store: Store, file: LogFile, read_bytes: int) -> Iterator[bytes]:
    """The bytes of a file in blocks that end with a whole line; a longer line comes as a block of its own."""
    path, at, rest = DELTA.path(file.name), 0, b""
    while at < file.size:
        data = store.get_range(path, at, min(read_bytes, file.size - at))
        at += len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest += data
    if rest:
        yield rest
