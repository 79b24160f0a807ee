"""A tail of commits too large to hold as objects, whose adds and removes executors decode.

Commits of hundreds of megabytes are scanned once, line by line, for protocol, metadata
and transactions. Lines about files are only counted, and each commit becomes one or more
pieces of work, which executors decode. If an engine in this process needs the adds after
all, they are read then. How a commit is scanned and cut is up to the dialect; this module
decides whether there are executors and when it pays to use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol

from indextables.log.format.dialect import LogFile
from indextables.log.replay.rule import Tail, reduce_tail
from indextables.log.state import LogSource, read_tail
from indextables.model.actions import Action
from indextables.records import dataclass
from indextables.storage.store import Store

_ABOUT_FILES = re.compile(rb'\s*\{\s*"(add|remove)"\s*:\s*\{')
# A second action in the line of a first.
_FURTHER = re.compile(rb'\}\s*,\s*"(add|remove|protocol|metaData|txn|commitInfo)"\s*:')
_OF_TAIL = ("version", "protocol", "metadata", "skips", "txns", "info", "table_ids", "bare", "commit_ids")
LONG_BYTES = 32 << 20
"""Commits with more text than this are left to executors, or folded where there are none: an add takes
several times its text as an object."""
BYTES_OF_MEMORY = 8


class CommitPiece(Protocol):
    """Some actions of a commit: a unit of work that is sent to an executor."""

    @property
    def length(self) -> int:
        """Bytes to read."""
        ...

    def actions(self, store: Store) -> Sequence[Action]:
        """The actions, oldest first: of two about one file the later one wins."""
        ...


@dataclass(frozen=True, slots=True)
class ScannedCommit:
    """The result of scanning a commit: its other actions, the number of lines about files, and its pieces."""

    version: int
    """The newest version it covers."""
    heads: tuple[Action, ...]
    pieces: tuple[CommitPiece, ...]
    """In the order in which they count: what a later piece says of a file wins."""
    adds: int
    removes: int


@dataclass(slots=True)
class LineCount:
    """Counts lines about files and keeps the others."""

    adds: int = 0
    removes: int = 0
    others: list[bytes] = field(default_factory=list)

    def take(self, block: bytes) -> None:
        """Process a block of whole lines."""
        for line in block.split(b"\n"):
            about = _ABOUT_FILES.match(line)
            further = () if about is None else _FURTHER.findall(line)
            if (about is None and line.strip()) or further:
                self.others.append(line)
            if about is not None:
                kinds = (about[1], *further)
                self.adds += kinds.count(b"add")
                self.removes += kinds.count(b"remove")

    @property
    def rest(self) -> bytes:
        """The other lines as one text."""
        return b"\n".join(self.others)


class LongTail(Tail):
    """A tail whose adds and removes are still undecoded in its files.

    The slots `adds` and `removed` are empty at first. Reading one calls `__getattr__`, which decodes the
    files and fills both.
    """

    __slots__ = ("files", "pieces", "read", "removes", "total")
    files: tuple[LogFile, ...]
    pieces: tuple[CommitPiece, ...]
    """Pieces of all files, oldest first."""
    total: int
    """Lines about added files."""
    removes: int
    """Lines about removed files."""
    read: Callable[[], Tail]

    def __init__(  # noqa: PLR0917 - one value, made in one place
        self,
        heads: Tail,
        files: tuple[LogFile, ...],
        pieces: tuple[CommitPiece, ...],
        total: int,
        removes: int,
        read: Callable[[], Tail],
    ) -> None:
        own = {"files": files, "pieces": pieces, "total": total, "removes": removes, "read": read}
        for name, value in {**{name: getattr(heads, name) for name in _OF_TAIL}, **own}.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in {"adds", "removed"}:
            raise AttributeError(f"a tail has no {name!r}")
        near = self.read()
        object.__setattr__(self, "adds", near.adds)
        object.__setattr__(self, "removed", near.removed)
        return getattr(near, name)

    @property
    def decoded(self) -> bool:
        """Whether the adds and removes were used in this process, so that their files were read."""
        try:
            object.__getattribute__(self, "adds")
        except AttributeError:
            return False
        return True

    def size(self) -> tuple[int, int]:
        """Lines about added and about removed files; one file may have several."""
        return self.total, self.removes


class LongTailSource(LogSource):
    """A log whose commits can be left to executors: the base class of both dialects' sources."""

    __slots__ = ()

    def scan_commit(self, file: LogFile) -> ScannedCommit:
        """Scan one commit without decoding its adds and removes."""
        raise NotImplementedError

    def text_bytes(self, files: Sequence[LogFile]) -> int:
        """Estimated size of the text in the files."""
        return sum(file.size for file in files)

    def reduced(self, files: Sequence[LogFile], start: Tail) -> Tail:
        """Reduce the commits after a tail; if they are large and there are executors, only their heads."""
        goes_on = isinstance(start, LongTail)
        if not files or not (goes_on or (start.size() == (0, 0) and self._is_large(files))):
            return LogSource.reduced(self, files, start)
        return self._long(start, tuple(files), read_tail(self, files, self.scan_commits))

    def scan_commits(self, files: Sequence[LogFile]) -> list[ScannedCommit]:
        """Scan several files concurrently; results are in order."""
        return self.read_each(files, lambda source, file: source.scan_commit(file))

    def _is_large(self, files: Sequence[LogFile]) -> bool:
        replay = self.options.replay
        if "spark" not in self.runtime.engines or not replay.enabled:
            return False
        return self.text_bytes(files) > min(LONG_BYTES, replay.local_memory // BYTES_OF_MEMORY)

    def _long(self, start: Tail, files: tuple[LogFile, ...], scanned: Sequence[ScannedCommit]) -> LongTail:
        before = Tail(**{name: getattr(start, name) for name in _OF_TAIL})
        adds, removes = start.size()
        pieces = [piece for commit in scanned for piece in commit.pieces]
        if isinstance(start, LongTail):
            files, pieces = (*start.files, *files), [*start.pieces, *pieces]
        first = Tail(files[0].version - 1)
        return LongTail(
            reduce_tail([(commit.version, commit.heads) for commit in scanned], self.dialect, before),
            files,
            tuple(pieces),
            adds + sum(commit.adds for commit in scanned),
            removes + sum(commit.removes for commit in scanned),
            lambda: LogSource.reduced(self, files, first),
        )
