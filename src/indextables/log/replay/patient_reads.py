"""Reads many log files at the same time, and gives up on a store that stays silent.

The limit is on the time in which a request gets no answer. Waiting for a free thread and
decoding what came do not count: a busy machine is no reason to call a log unreadable.
Large files are asked for in pieces, each of which is an answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar, cast

from indextables.errors import LogTimeoutError
from indextables.log.format.dialect import Dialect, LogFile
from indextables.log.segment import ranges
from indextables.storage.store import Store

T = TypeVar("T")

_PIECE_BYTES = 16 << 20


def read_patiently(
    store: Store,
    dialect: Dialect,
    files: Sequence[LogFile],
    read: Callable[[Store, LogFile], T],
    *,
    threads: int,
    timeout_s: float,
) -> list[T]:
    """What `read` makes of every file, in order; all of them or an error."""
    if not files:
        return []
    watched = _Watched(store, {dialect.path(file.name): file.size for file in files})
    pool = ThreadPoolExecutor(min(threads, len(files)), thread_name_prefix="indextables-log")
    try:
        futures = [pool.submit(read, cast(Store, watched), file) for file in files]
        left_s: float | None = timeout_s
        while left_s is not None:
            if not wait(futures, timeout=left_s).not_done:
                break
            left_s = watched.patience_left_s(timeout_s)
        else:
            unfinished = [file for file, future in zip(files, futures, strict=True) if not future.done()]
            silent = watched.unanswered()
            versions = [file.version for file in unfinished if dialect.path(file.name) in silent]
            raise LogTimeoutError(
                f"{store.uri}: the store sent nothing of version(s) {ranges(versions)} for "
                f"{timeout_s} s. Try again, or raise checkpoint.read.timeoutSeconds.",
                versions=versions, uri=store.uri,
            )  # fmt: skip
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Watched:
    """A store that notes which requests it has not answered yet, and since when."""

    def __init__(self, store: Store, sizes: dict[str, int]) -> None:
        self._store = store
        self._sizes = sizes
        self._since_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object."""
        size = self._sizes.get(path, 0)
        if size <= _PIECE_BYTES or etag is None:
            return self._answered(path, lambda: self._store.get(path, etag=etag))
        return b"".join(
            self.get_range(path, start, min(_PIECE_BYTES, size - start), etag=etag)
            for start in range(0, size, _PIECE_BYTES)
        )

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Exactly the requested bytes."""
        return self._answered(path, lambda: self._store.get_range(path, start, length, etag=etag))

    def unanswered(self) -> set[str]:
        """The paths of requests without an answer."""
        with self._lock:
            return set(self._since_s)

    def patience_left_s(self, limit_s: float) -> float | None:
        """Seconds until the oldest request has had no answer for `limit_s`; None if that is so now."""
        with self._lock:
            oldest_s = min(self._since_s.values(), default=None)
        left_s = limit_s if oldest_s is None else limit_s - (time.monotonic() - oldest_s)
        return left_s if left_s > 0 else None

    def _answered(self, path: str, request: Callable[[], bytes]) -> bytes:
        with self._lock:
            self._since_s[path] = time.monotonic()
        try:
            return request()
        finally:
            with self._lock:
                self._since_s.pop(path, None)
