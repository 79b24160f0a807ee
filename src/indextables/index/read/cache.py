"""Caches of index contents: decoded blocks and lists in memory, byte ranges on disk.

Both are bounded by bytes and drop what was least recently used. The key includes a digest
of the index's root, which differs between indexes, so an entry can never belong to
another index. What is read back from disk is checked against its checksum; a damaged file
counts as absent.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from indextables.index.codec.numbers import Bytes

CacheKey: TypeAlias = tuple[bytes, Hashable]
"""The identity of an index, and the name of a part of it."""
DEFAULT_BYTES = 256 << 20
_CHECKSUM = 4
_TRIMMED_TO = 0.9


class RangeReader(Protocol):
    """Reads an index; offsets count from its first byte."""

    def many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        """The bytes of every (offset, length), in one round trip where that is possible."""
        ...


class BlockCache:
    """Decoded parts of any number of indexes, bounded by bytes."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._parts: OrderedDict[CacheKey, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: CacheKey) -> Any:
        """A cached part, or None."""
        part = self._parts.get(key)
        if part is None:
            return None
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
        return part[0]

    def get_all(self, identity: bytes, pieces: Sequence[Hashable]) -> list[Any] | None:
        """Some parts of one index; None unless all of them are cached."""
        parts = []
        with self._lock:
            for piece in pieces:
                key = identity, piece
                part = self._parts.get(key)
                if part is None:
                    return None
                self._parts.move_to_end(key)
                parts.append(part[0])
        return parts

    def put(self, key: CacheKey, piece: Any, size: int) -> None:
        """Cache a part, or update its size."""
        with self._lock:
            before = self._parts.pop(key, None)
            if before is not None:
                self.used -= before[1]
            if size > self.max_bytes:
                return
            self._parts[key] = (piece, size)
            self.used += size
            while self.used > self.max_bytes:
                _, (_, freed) = self._parts.popitem(last=False)
                self.used -= freed

    def forget(self, identity: bytes) -> None:
        """Drop all parts of one index."""
        with self._lock:
            for key in [key for key in self._parts if key[0] == identity]:
                self.used -= self._parts.pop(key)[1]

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._parts.clear()
            self.used = 0

    def __len__(self) -> int:
        return len(self._parts)


MEMORY = BlockCache()
"""The cache of this process."""


_written: dict[str, int] = {}
"""Bytes this process wrote into each directory since it last checked the directory's size."""
_lock = threading.Lock()


class DiskRanges:
    """Byte ranges of one index, cached as files in a directory; others are read through `inner`."""

    def __init__(self, inner: RangeReader, directory: str, identity: bytes, max_bytes: int) -> None:
        self._inner = inner
        self._directory = Path(directory)
        self._name = identity.hex()
        self._max_bytes = max_bytes

    def many(self, ranges: Sequence[tuple[int, int]]) -> Sequence[Bytes]:
        parts: list[Bytes | None] = [self._load(*one) for one in ranges]
        missing = [number for number, part in enumerate(parts) if part is None]
        if missing:
            read = self._inner.many([ranges[number] for number in missing])
            for number, data in zip(missing, read, strict=True):
                parts[number] = data
                self._store(*ranges[number], data)
            self._trim_sometimes(sum(ranges[number][1] for number in missing))
        return [part for part in parts if part is not None]

    def _path(self, offset: int, length: int) -> Path:
        return self._directory / f"{self._name}-{offset:x}-{length:x}"

    def _load(self, offset: int, length: int) -> bytes | None:
        path = self._path(offset, length)
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        data = stored[:-_CHECKSUM]
        if len(data) != length or zlib.crc32(data).to_bytes(_CHECKSUM, "little") != stored[-_CHECKSUM:]:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def _store(self, offset: int, length: int, data: Bytes) -> None:
        """Cache one range; on a full or read-only disk nothing is cached."""
        if len(data) != length or length > self._max_bytes:
            return
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
        directory = str(self._directory)
        with _lock:
            _written[directory] = _written.get(directory, self._max_bytes) + written
            due = _written[directory] >= self._max_bytes // 20
            if due:
                _written[directory] = 0
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
