"""A file object over a function that reads byte ranges, for libraries that need a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


class RangedFile(io.RawIOBase):
    """A file of a known size whose bytes come from `fetch(start, length)`."""

    def __init__(self, fetch: Callable[[int, int], bytes | memoryview], size: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """Always seekable."""
        return True

    def tell(self) -> int:
        """The current position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, from the current position or from the end."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def size(self) -> int:
        """How many bytes it has."""
        return self._size

    def read(self, count: int | None = -1) -> bytes:
        """The next bytes, no more than are left; all of them by default."""
        rest = max(0, self._size - self._at)
        length = rest if count is None or count < 0 else min(count, rest)
        data = self._fetch(self._at, length) if length else b""
        self._at += len(data)
        return data if isinstance(data, bytes) else bytes(data)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; returns how many there were."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
