"""Reads byte ranges of a split from a local file or an object store."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from indextables.errors import DamagedSplitError, Error, MissingSplitError, NotFoundError, StorageError
from indextables.records import dataclass
from indextables.runtime import in_threads
from indextables.storage.store import Store, resolve
from indextables.storage.stores.local import ABSENT, open_regular

Range = tuple[int, int]
"""Offset and length."""

LOCAL_GAP = 16 << 10
"""On a local disk, reading up to this many unwanted bytes is cheaper than skipping them."""
REMOTE_GAP = 64 << 10
"""The same for an object store, where each request costs a round trip."""
REMOTE_READS_AT_ONCE = 8


class Tally:
    """Counts the bytes of splits that were read; safe to use from several threads."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Count some more."""
        with self._lock:
            self.bytes += count


_tally: ContextVar[Tally | None] = ContextVar("indextables_bytes_read", default=None)


@contextmanager
def counting_bytes() -> Iterator[Tally]:
    """Count the bytes of splits read inside the block, also by threads that work for it.

    Bytes that come from a cache are not counted.
    """
    tally = Tally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def bytes_counted() -> int | None:
    """How many bytes were counted so far, inside `counting_bytes`; None outside of it."""
    tally = _tally.get()
    return None if tally is None else tally.bytes


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One split file, readable by ranges."""

    store: Store
    path: str
    content: bytes | None = None
    """The whole file, where it was read at once."""

    @classmethod
    def of(cls, root: Store, path: str) -> SplitFile:
        """The file named by the log: a path relative to the table, or an absolute address."""
        return cls(*resolve(root, path))

    def read_whole(self, size: int) -> SplitFile:
        """The same file with its content in memory."""
        return replace(self, content=bytes(self.read_one(0, size)))

    @property
    def name(self) -> str:
        """The file's address, for messages."""
        return f"{self.store.uri}/{self.path}"

    @property
    def local(self) -> str | None:
        """The local path of the file, if it is on this machine."""
        return self.store.local_path(self.path)

    def size(self) -> int:
        """How many bytes the file has."""
        try:
            return self.store.head(self.path).size
        except NotFoundError as gone:
            raise missing(self.name) from gone

    def read(self, ranges: Iterable[Range]) -> dict[Range, memoryview]:
        """The bytes of every range, read with few requests."""
        ascending = sorted(set(ranges))
        if self.content is not None and all(
            start + length <= len(self.content) for start, length in ascending
        ):
            whole = memoryview(self.content)
            return {(start, length): whole[start : start + length] for start, length in ascending}
        local = self.local
        blocks = coalesce(ascending, LOCAL_GAP if local is not None else REMOTE_GAP)
        tally = _tally.get()
        if tally is not None:
            tally.add(sum(length for _, length in blocks))
        bodies = _read_local(local, blocks, self.name) if local is not None else self._read_remote(blocks)
        bytes_of: dict[Range, memoryview] = {}
        waiting = deque(ascending)
        for (start, length), body in zip(blocks, bodies, strict=True):
            view = memoryview(body)
            while waiting and sum(waiting[0]) <= start + length:
                offset, size = waiting.popleft()
                bytes_of[offset, size] = view[offset - start : offset - start + size]
        return bytes_of

    def read_one(self, start: int, length: int) -> memoryview:
        """The bytes of a single range."""
        return self.read([(start, length)])[start, length]

    def _read_remote(self, blocks: Sequence[Range]) -> list[bytes]:
        def fetch(block: Range) -> bytes:
            return self.store.get_range(self.path, *block)

        try:
            return list(in_threads(fetch, blocks, REMOTE_READS_AT_ONCE))
        except NotFoundError as gone:
            raise missing(self.name) from gone
        except StorageError as failed:
            if "ends early" in str(failed):
                raise cut_short(self.name) from failed
            raise


def coalesce(ranges: Sequence[Range], gap: int) -> list[Range]:
    """Join sorted ranges that lie no further apart than `gap` bytes."""
    blocks: list[Range] = []
    for start, length in ranges:
        if blocks and start <= blocks[-1][0] + blocks[-1][1] + gap:
            first, before = blocks[-1]
            blocks[-1] = (first, max(before, start + length - first))
        else:
            blocks.append((start, length))
    return blocks


def _read_local(path: str, blocks: Sequence[Range], name: str) -> list[bytes]:
    try:
        handle = open_regular(path)
    except ABSENT as gone:
        raise missing(name) from gone
    except OSError as failed:
        raise StorageError(f"cannot open {name}: {failed.strerror}", uri=name) from failed
    try:
        size = os.fstat(handle).st_size
        return [_read_block(handle, block, size, name) for block in blocks]
    finally:
        os.close(handle)


def _read_block(handle: int, block: Range, size: int, name: str) -> bytes:
    start, length = block
    # A wrong offset may ask for more than memory holds: never read more than the file has.
    if start < 0 or length < 0 or start + length > size:
        raise cut_short(name)
    body = os.pread(handle, length, start)
    while len(body) < length:
        more = os.pread(handle, length - len(body), start + len(body))
        if not more:
            raise cut_short(name)
        body += more
    return body


def missing(name: str) -> Error:
    """The error for a split that is not there."""
    return MissingSplitError(
        f"{name} is part of the table but does not exist. Something other than IndexTables removed it, or "
        "the log was copied here without its files; "
        "bring it back, restore an older version, or REPAIR the log to leave it out.",
        path=name,
    )


def cut_short(name: str) -> Error:
    """The error for a split that ends too early."""
    return DamagedSplitError(
        f"{name} is shorter than the file that was written. Bring back an intact copy, "
        "or restore an older version of the table.",
        path=name,
    )
