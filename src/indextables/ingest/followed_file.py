"""A file that is being read while others write, rotate or replace it, and the place up to which it was read.

A name and an inode do not tell a file from its successor: file systems give the inode of
a removed file to the next one, and `copytruncate` keeps it. A place therefore holds a
digest of the first and of the last bytes before it. A file is the same if its inode and
that digest are; a copy that was made before the original was cut short has the digest
alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from indextables.errors import StorageError

MOST_BYTES = 64 << 20
"""Read at once at most."""
_MARK = 1024
"""How many of the first and of the last bytes tell a file from another."""


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and what tells it from others."""

    path: str
    """Where it was when it was opened, with links resolved."""
    inode: int
    offset: int
    digest: str

    def to_wire(self) -> dict[str, Any]:
        """The place as JSON."""
        return {"path": self.path, "inode": self.inode, "offset": self.offset, "digest": self.digest}

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Place:
        """The place that `to_wire` wrote."""
        return cls(str(wire["path"]), int(wire["inode"]), int(wire["offset"]), str(wire["digest"]))


class FollowedFile:
    """An open file; what was read of it stays known, so a change of that is seen."""

    def __init__(self, path: str) -> None:
        """Open the file at its beginning."""
        self.path = os.path.realpath(path)
        # Without a buffer: its bytes would be those before a change.
        self._file = open(self.path, "rb", buffering=0)  # noqa: SIM115, PTH123 - stays open
        self.inode = os.fstat(self._file.fileno()).st_ino
        self.offset = 0
        self._first = self._last = b""

    @classmethod
    def at(cls, path: str) -> FollowedFile | None:
        """Open the file that has a name now; None if there is none."""
        try:
            return cls(path)
        except FileNotFoundError:
            return None
        except OSError as refused:
            raise StorageError(f"cannot read {path}: {refused.strerror}") from refused

    @property
    def place(self) -> Place:
        """How far it was read."""
        return Place(self.path, self.inode, self.offset, _digest(self._first, self._last))

    @property
    def size(self) -> int:
        """The bytes it has now."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def modified(self) -> datetime:
        """When it was last written."""
        return datetime.fromtimestamp(os.fstat(self._file.fileno()).st_mtime, UTC)

    @property
    def is_removed(self) -> bool:
        """Whether no name leads to it any more."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def name_digest(self) -> str:
        """A digest of the inode and the first line, which stay as they are while the file grows."""
        return _digest(str(self.inode).encode(), self._bytes(0, _MARK).partition(b"\n")[0])

    def is_same(self, other: FollowedFile) -> bool:
        """Whether another opened one is this file, with all that was read still in it."""
        return other.inode == self.inode and self.is_intact()

    def is_intact(self) -> bool:
        """Whether it still holds the first and the last bytes that were read."""
        return self._marks(self.offset) == (self._first, self._last)

    def resume(self, place: Place, *, copy: bool = False) -> bool:
        """Go on at a place if it is one of this file, or with `copy` of the file that this is a copy of."""
        if place.inode != self.inode and not copy:
            return False
        first, last = self._marks(place.offset)
        if len(last) != min(_MARK, place.offset) or _digest(first, last) != place.digest:
            return False
        self.offset, self._first, self._last = place.offset, first, last
        return True

    def skip_to(self, offset: int) -> None:
        """Take the bytes before an offset for read."""
        self._first, self._last = self._marks(offset)
        self.offset = offset

    def read(self, *, final: bool = False) -> bytes | None:
        """The next whole lines, with `final` also one without its end; None if what was read has changed.

        Looked at before and after: a file may be cut short and grow again between two calls.
        """
        if not self.is_intact():
            return None
        data = self._bytes(self.offset, MOST_BYTES)
        if not self.is_intact():
            return None
        whole, end, _ = data.rpartition(b"\n")
        if not end and len(data) == MOST_BYTES:
            raise StorageError(
                f"{self.path} has a line of more than {MOST_BYTES >> 20} MiB after byte {self.offset:,}; "
                "such a line cannot be loaded"
            )
        return data if final and not end else whole + end

    def advance(self, data: bytes) -> None:
        """Take the bytes that `read` returned for read."""
        self._first = (self._first + data[:_MARK])[:_MARK]
        self._last = (self._last + data[-_MARK:])[-_MARK:]
        self.offset += len(data)

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay unread."""
        return self._bytes(self.offset, size)

    def take(self, size: int) -> bytes:
        """Read the next bytes, be they whole lines or not."""
        data = self.peek(size)
        self.advance(data)
        return data

    def rest(self) -> Iterator[bytes]:
        """All that was not read yet, in pieces that end with a line where they can."""
        at = self.offset
        while data := self._bytes(at, MOST_BYTES):
            whole, end, _ = data.rpartition(b"\n")
            yield whole + end or data
            at += len(whole + end or data)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _marks(self, offset: int) -> tuple[bytes, bytes]:
        size = min(_MARK, offset)
        return self._bytes(0, size), self._bytes(offset - size, size)

    def _bytes(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size) or b""


def find(place: Place) -> FollowedFile | None:
    """The file that was read up to a place, under its old name or another one in the same directory.

    Else the one copy of it there whose name begins alike, as `copytruncate` leaves it behind.
    """
    old_path = Path(place.path)
    stem = old_path.name.split(".")[0]
    other_paths: list[str] = []
    with contextlib.suppress(OSError), os.scandir(old_path.parent) as entries:
        other_paths = sorted(
            entry.path
            for entry in entries
            if entry.is_file(follow_symlinks=False) and entry.name != old_path.name
        )
    for path in (place.path, *other_paths):
        if (same := _resumed(path, place, copy=False)) is not None:
            return same
    candidates = [path for path in other_paths if stem and Path(path).name.startswith(stem)]
    copies = [file for path in candidates if (file := _resumed(path, place, copy=True)) is not None]
    if len(copies) == 1 and place.offset:
        return copies[0]
    for copy in copies:
        copy.close()
    return None


def _resumed(path: str, place: Place, *, copy: bool) -> FollowedFile | None:
    try:
        if not copy and os.stat(path).st_ino != place.inode:  # noqa: PTH116 - one of many, without a Path each
            return None
        file = FollowedFile(path)
    except OSError:
        return None
    if file.resume(place, copy=copy):
        return file
    file.close()
    return None


def _digest(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()
