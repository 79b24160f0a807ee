"""A tail of commits too large to be held as objects: its heads are known here, its files elsewhere.

Commits of hundreds of megabytes are passed through once, line by line, for
protocol, metadata and transactions; lines about files are only counted, and
the commits are cut into pieces of whole lines. Executors decode the pieces. An
engine of this process may still ask for the adds, and then they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from indextables.log.delta.commits import decode_commit
from indextables.log.delta.paths import LOG_DIR
from indextables.log.format.dialect import Key, LogFile
from indextables.log.replay.rule import Tail
from indextables.model.actions import Action, AddAction, CommitInfo
from indextables.storage.store import Store

_READ_BYTES = 8 << 20
_PIECE_BYTES = 16 << 20
_ABOUT_FILES = re.compile(rb'\s*\{\s*"(add|remove)"\s*:\s*\{')
_OF_TAIL = ("version", "protocol", "metadata", "skips", "txns", "info", "table_ids", "bare")


@dataclass(frozen=True, slots=True)
class CommitPiece:
    """Whole lines of a commit or compaction file: a piece of work for an executor."""

    name: str
    version: int
    start: int
    length: int
    engine: str | None
    is_compacted: bool

    def actions(self, store: Store) -> Iterator[tuple[int, Action]]:
        """The actions with a number each; of two about one file in the same version the higher counts."""
        data = store.get_range(f"{LOG_DIR}/{self.name}", self.start, self.length)
        found = decode_commit(data, name=self.name, version=self.version, engine=self.engine)
        # A line has more than one byte, so the place of a piece is above every number before it. In a
        # compaction file the first line about a file is the one that counts.
        for number, action in enumerate(found, start=self.start):
            yield (-number if self.is_compacted else number), action


class FarTail(Tail):
    """A tail whose adds and removes stay in its files until somebody asks for them here."""

    __slots__ = ("_near", "_read", "files", "pieces", "removes", "total")
    files: tuple[LogFile, ...]
    pieces: tuple[CommitPiece, ...]
    total: int
    removes: int
    _read: Callable[[], Tail]
    _near: Tail | None

    def __init__(  # noqa: PLR0917 - one value, made in one place
        self,
        heads: Tail,
        files: tuple[LogFile, ...],
        pieces: tuple[CommitPiece, ...],
        total: int,
        removes: int,
        read: Callable[[], Tail],
    ) -> None:
        for name in _OF_TAIL:
            object.__setattr__(self, name, getattr(heads, name))
        rest: dict[str, object] = {
            "files": files, "pieces": pieces, "total": total, "removes": removes,
            "_read": read, "_near": None,
        }  # fmt: skip
        for name, value in rest.items():
            object.__setattr__(self, name, value)

    def size(self) -> tuple[int, int]:
        """Lines about added and removed files: one file may have several."""
        return self.total, self.removes

    @property
    def adds(self) -> Mapping[Key, AddAction]:
        """Read in this process."""
        return self._here().adds

    @property
    def removed(self) -> AbstractSet[Key]:
        """Read in this process."""
        return self._here().removed

    def _here(self) -> Tail:
        near = self._near
        if near is None:
            near = self._read()
            object.__setattr__(self, "_near", near)
        return near


@dataclass(frozen=True, slots=True)
class Passed:
    """What a pass over a commit found: its other actions, how many lines are about files, where to cut it."""

    heads: tuple[Action, ...]
    cuts: tuple[tuple[int, int], ...]
    adds: int
    removes: int

    @property
    def engine(self) -> str | None:
        """Who wrote the commit, where it says so."""
        return next((item.engine_info for item in self.heads if isinstance(item, CommitInfo)), None)


def pass_over(store: Store, file: LogFile) -> Passed:
    """Pass over one commit without decoding what it says of files."""
    others: list[bytes] = []
    cuts: list[tuple[int, int]] = []
    counts = {b"add": 0, b"remove": 0}
    start = end = 0
    for block in _blocks(store, file):
        for line in block.split(b"\n"):
            about = _ABOUT_FILES.match(line)
            if about is None:
                others.append(line)
            else:
                counts[about[1]] += 1
        end += len(block)
        if end - start >= _PIECE_BYTES:
            cuts.append((start, end - start))
            start = end
    if end > start or not end:
        cuts.append((start, end - start))
    rest = b"\n".join(line for line in others if line.strip())
    heads: Sequence[Action] = ()
    if rest or not any(counts.values()):
        heads = decode_commit(rest, name=file.name, version=file.version)
    return Passed(tuple(heads), tuple(cuts), counts[b"add"], counts[b"remove"])


def _blocks(store: Store, file: LogFile) -> Iterator[bytes]:
    """The bytes of a file in blocks that end with a line; one that is longer than a block comes whole."""
    path, at, kept = f"{LOG_DIR}/{file.name}", 0, b""
    while at < file.size:
        data = store.get_range(path, at, min(_READ_BYTES, file.size - at))
        at += len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield kept + data[:cut]
            kept = data[cut:]
        else:
            kept += data
    if kept:
        yield kept


def pieces_of(file: LogFile, passed: Passed) -> list[CommitPiece]:
    """The pieces of one commit or compaction file."""
    version = file.version if file.last_version is None else file.last_version
    is_compacted = file.last_version is not None
    return [
        CommitPiece(file.name, version, start, length, passed.engine, is_compacted)
        for start, length in passed.cuts
    ]
