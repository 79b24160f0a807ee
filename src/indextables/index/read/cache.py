"""Caches of index contents: decoded blocks and lists in memory, byte ranges on disk.

Both are bounded by bytes and drop what was least recently used. The key includes a digest
of the index's root, which differs between indexes, so an entry can never belong to
another index. What is read back from disk is checked against its checksum; a damaged file
counts as absent.
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from indextables.index.codec.numbers import Bytes

Key: TypeAlias = tuple[bytes, Hashable]
"""The identity of an index, and the name of a part of it."""
DEFAULT_BYTES = 256 << 20
_CHECKSUM = 4
_TRIMMED_TO = 0.9


class Ranges(Protocol):
    """Reads an index; offsets count from its first byte."""

    def many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """The bytes of every (offset, length), in one round trip where that is possible."""
        ...


class BlockCache:
    """Decoded parts of any number of indexes, bounded by bytes."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._held: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Any:
        """A cached part, or None."""
        found = self._held.get(key)
        if found is None:
            return None
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
        return found[0]

    def get_all(self, identity: bytes, pieces: Sequence[Hashable]) -> list[Any] | None:
        """Some parts of one index; None unless all of them are cached."""
        found, held = [], self._held
        with self._lock:
            for piece in pieces:
                key = identity, piece
                one = held.get(key)
                if one is None:
                    return None
                held.move_to_end(key)
                found.append(one[0])
        return found

    def put(self, key: Key, piece: Any, size: int) -> None:
        """Cache a part, or update its size."""
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self.used -= before[1]
            if size > self.max_bytes:
                return
            self._held[key] = (piece, size)
            self.used += size
            while self.used > self.max_bytes:
                _, (_, freed) = self._held.popitem(last=False)
                self.used -= freed

    def forget(self, identity: bytes) -> None:
        """Drop all parts of one index."""
        with self._lock:
            for key in [key for key in self._held if key[0] == identity]:
                self.used -= self._held.pop(key)[1]

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self.used = 0

    def __len__(self) -> int:
        return len(self._held)


MEMORY = BlockCache()
"""The cache of this process."""


_written: dict[str, int] = {}
"""Bytes this process wrote into each directory since it last checked the directory's size."""
_lock = threading.Lock()


class DiskRanges:
    """Byte ranges of one index, cached as files in a directory; others are read through `inner`."""

    def __init__(self, inner: Ranges, directory: str, identity: bytes, max_bytes: int) -> None:
        self._inner = inner
        self._directory = Path(directory)
        self._name = identity.hex()
        self._max_bytes = max_bytes

    def many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """See Ranges."""
        found: list[Bytes | None] = [self._kept(*one) for one in ranges]
        missing = [at for at, held in enumerate(found) if held is None]
        if missing:
            for at, data in zip(missing, self._inner.many([ranges[at] for at in missing]), strict=True):
                found[at] = data
                self._keep(*ranges[at], data)
            self._trim_sometimes(sum(ranges[at][1] for at in missing))
        return [held for held in found if held is not None]

    def _path(self, offset: int, length: int) -> Path:
        return self._directory / f"{self._name}-{offset:x}-{length:x}"

    def _kept(self, offset: int, length: int) -> bytes | None:
        path = self._path(offset, length)
        try:
            held = path.read_bytes()
        except OSError:
            return None
        data = held[:-_CHECKSUM]
        if len(data) != length or zlib.crc32(data).to_bytes(_CHECKSUM, "little") != held[-_CHECKSUM:]:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def _keep(self, offset: int, length: int, data: Bytes) -> None:
        """Cache one range; on a full or read-only disk nothing is cached."""
        if len(data) != length or length > self._max_bytes:
            return
        import tempfile

        with contextlib.suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._directory, prefix=".keeping-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.write(zlib.crc32(data).to_bytes(_CHECKSUM, "little"))
                Path(temporary).replace(self._path(offset, length))
            except OSError:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
                raise

    def _trim_sometimes(self, written: int) -> None:
        """Check the size of the whole directory only after a twentieth of its limit was written."""
        place = str(self._directory)
        with _lock:
            _written[place] = _written.get(place, self._max_bytes) + written
            due = _written[place] >= self._max_bytes // 20
            if due:
                _written[place] = 0
        if due:
            self._trim()

    def _trim(self) -> None:
        with contextlib.suppress(OSError):
            files = []
            for entry in os.scandir(self._directory):
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    files.append((status.st_mtime, status.st_size, entry.path))
            used = sum(size for _, size, _ in files)
            if used <= self._max_bytes:
                return
            for _, size, path in sorted(files):
                with contextlib.suppress(OSError):
                    Path(path).unlink()
                used -= size
                if used <= self._max_bytes * _TRIMMED_TO:
                    return
