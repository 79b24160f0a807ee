"""A tail of commits too large to be held as objects: its heads are known here, its files elsewhere.

Commits of hundreds of megabytes are passed over once, line by line, for
protocol, metadata and transactions; lines about files are only counted, and the
commits become pieces of work. Executors decode the pieces. An engine of this
process may still ask for the adds, and then they are read. How a commit is
passed over and cut is the dialect's; that there are executors, and when it
pays, is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

from indextables.log.format.dialect import LogFile
from indextables.log.replay.rule import Tail, reduce_tail
from indextables.log.state import LogSource
from indextables.model.actions import Action
from indextables.records import dataclass
from indextables.runtime import in_threads
from indextables.storage.store import Store

_ABOUT_FILES = re.compile(rb'\s*\{\s*"(add|remove)"\s*:\s*\{')
_OF_TAIL = ("version", "protocol", "metadata", "skips", "txns", "info", "table_ids", "bare")
_FAR_BYTES = 32 << 20
"""Commits of more text are left to executors: an add takes several times its text as an object."""
_BYTES_OF_MEMORY = 8


class CommitPiece(Protocol):
    """Some actions of a commit: a piece of work for an executor, which it travels to."""

    @property
    def version(self) -> int:
        """The version of its commit."""
        ...

    @property
    def length(self) -> int:
        """Bytes to read."""
        ...

    def actions(self, store: Store) -> Iterator[tuple[int, Action]]:
        """The actions with a number each; of two about one file in the same version the higher counts."""
        ...


@dataclass(frozen=True, slots=True)
class Passed:
    """What passing over a commit found: its other actions, how many lines are about files, its pieces."""

    version: int
    """The newest version it speaks for."""
    heads: tuple[Action, ...]
    pieces: tuple[CommitPiece, ...]
    adds: int
    removes: int


@dataclass(slots=True)
class LineCount:
    """Lines about files, counted; the others, kept."""

    adds: int = 0
    removes: int = 0
    others: list[bytes] = field(default_factory=list)

    def take(self, block: bytes) -> None:
        """Look at a block of whole lines."""
        for line in block.split(b"\n"):
            about = _ABOUT_FILES.match(line)
            if about is None:
                if line.strip():
                    self.others.append(line)
            elif about[1] == b"add":
                self.adds += 1
            else:
                self.removes += 1

    @property
    def rest(self) -> bytes:
        """The other lines as one text."""
        return b"\n".join(self.others)


class FarTail(Tail):
    """A tail whose adds and removes stay in its files until somebody asks for them here.

    Their slots are empty at first. Python then asks `__getattr__`, which reads the files and fills both.
    """

    __slots__ = ("files", "pieces", "read", "removes", "total")
    files: tuple[LogFile, ...]
    pieces: tuple[CommitPiece, ...]
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

    def size(self) -> tuple[int, int]:
        """Lines about added and removed files: one file may have several."""
        return self.total, self.removes


class FarSource(LogSource):
    """A log whose commits can be left to executors."""

    __slots__ = ()

    def pass_over(self, file: LogFile) -> Passed:
        """Pass over one commit without decoding what it says of files."""
        raise NotImplementedError

    def text_bytes(self, files: Sequence[LogFile]) -> int:
        """About how much text the files hold."""
        return sum(file.size for file in files)

    def reduced(self, files: Sequence[LogFile], start: Tail) -> Tail:
        """The commits after a tail; above a size only their heads, if there are executors for the rest."""
        far = isinstance(start, FarTail)
        if not files or not (far or (start.size() == (0, 0) and self._is_large(files))):
            return LogSource.reduced(self, files, start)
        return self._far(start, tuple(files), self.pass_over_all(files))

    def pass_over_all(self, files: Sequence[LogFile]) -> list[Passed]:
        """Pass over several files side by side, in order."""
        return list(in_threads(self.pass_over, files, self.options.checkpoint.parallelism))

    def _is_large(self, files: Sequence[LogFile]) -> bool:
        replay = self.options.replay
        if "spark" not in self.runtime.engines or not replay.enabled:
            return False
        return self.text_bytes(files) > min(_FAR_BYTES, replay.local_memory // _BYTES_OF_MEMORY)

    def _far(self, start: Tail, files: tuple[LogFile, ...], passed: Sequence[Passed]) -> FarTail:
        before = Tail(**{name: getattr(start, name) for name in _OF_TAIL})
        adds, removes = start.size()
        pieces = [piece for found in passed for piece in found.pieces]
        if isinstance(start, FarTail):
            files, pieces = (*start.files, *files), [*start.pieces, *pieces]
        first = Tail(files[0].version - 1)
        return FarTail(
            reduce_tail([(found.version, found.heads) for found in passed], self.dialect, before),
            files,
            tuple(pieces),
            adds + sum(found.adds for found in passed),
            removes + sum(found.removes for found in passed),
            lambda: LogSource.reduced(self, files, first),
        )
