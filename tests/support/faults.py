"""Stores around a store: one that counts what is asked of it, one that fails at a chosen moment.

counting = CountingStore(MemoryStore())
counting.opens            # [("get", "_transaction_log/0...0.json"), ...]

for n in itertools.count(1):
    store = FaultyStore(inner(), fail_at=n, mode="crash")
    ...                   # run the operation, then look at what it left
    if not store.fired:
        break             # n is past the last operation: every moment has been tried
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from indextables.errors import StorageError
from indextables.storage.store import ObjectMeta, Store, StoreSpec

T = TypeVar("T")
Mode = Literal["error", "crash", "crash_after", "lost_reply"]


class Crash(BaseException):
    """The process died here. Not an Exception, so nothing that handles errors catches it."""


class Around:
    """A store that passes every operation on through `_do`."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def _do(self, operation: str, path: str, call: Callable[[], T]) -> T:
        raise NotImplementedError

    @property
    def uri(self) -> str:
        return self.inner.uri

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        return self._do("get", path, lambda: self.inner.get(path, etag=etag))

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        return self._do("get_range", path, lambda: self.inner.get_range(path, start, length, etag=etag))

    def head(self, path: str) -> ObjectMeta:
        return self._do("head", path, lambda: self.inner.head(path))

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        return self._do("list", prefix, lambda: iter([*self.inner.list(prefix, start_after)]))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Any:
        return self._do("list_level", prefix, lambda: self.inner.list_level(prefix, start_after))

    def put(self, path: str, data: bytes) -> None:
        return self._do("put", path, lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._do("put_if_absent", path, lambda: self.inner.put_if_absent(path, data))

    def put_file(self, path: str, local_path: str) -> None:
        return self._do("put_file", path, lambda: self.inner.put_file(path, local_path))

    def delete(self, path: str) -> None:
        return self._do("delete", path, lambda: self.inner.delete(path))

    def local_path(self, path: str) -> str | None:
        return self.inner.local_path(path)

    def spark_uri(self, path: str) -> str:
        return self.inner.spark_uri(path)

    def spec(self) -> StoreSpec:
        return self.inner.spec()


class CountingStore(Around):
    """Remembers every operation, in `opens`, as (operation, path).

    Asking for the local path of a file counts too: whoever asks is about to open it.
    """

    READS = frozenset({"get", "get_range", "local_path"})

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.opens: list[tuple[str, str]] = []
        self.bytes_read = 0

    def _do(self, operation: str, path: str, call: Callable[[], T]) -> T:
        self.opens.append((operation, path))
        found = call()
        if isinstance(found, bytes):
            self.bytes_read += len(found)
        return found

    def local_path(self, path: str) -> str | None:
        found = self.inner.local_path(path)
        if found is not None:
            self.opens.append(("local_path", path))
        return found

    @property
    def reads(self) -> Any:
        """The paths whose content was read, in order."""
        return [path for operation, path in self.opens if operation in self.READS]

    def count(self, *operations: str) -> int:
        """How many of these operations there were; of all operations when none is named."""
        return sum(1 for operation, _ in self.opens if not operations or operation in operations)

    def clear(self) -> None:
        self.opens.clear()
        self.bytes_read = 0


class FaultyStore(Around):
    """Fails at the `fail_at`-th operation, counted from 1 over all kinds of them; 0 never fails.

    error        that operation does not happen and raises StorageError; later ones work
    lost_reply   it happens and raises StorageError all the same; later ones work
    crash        it does not happen and raises Crash, as does every later one: the process is dead
    crash_after  it happens, then the process is dead

    Writes by way of `local_path` are not seen. `fired` tells whether the moment came.
    """

    def __init__(self, inner: Store, fail_at: int, mode: Mode = "error") -> None:
        super().__init__(inner)
        self.fail_at = fail_at
        self.mode = mode
        self.operations: list[tuple[str, str]] = []
        self.fired = False
        self._lock = threading.Lock()

    def _do(self, operation: str, path: str, call: Callable[[], T]) -> T:
        with self._lock:
            if self.fired and self.mode in {"crash", "crash_after"}:
                raise Crash(f"{operation} {path} after the crash")
            self.operations.append((operation, path))
            now = len(self.operations) == self.fail_at
            self.fired = self.fired or now
        if not now:
            return call()
        if self.mode == "crash":
            raise Crash(f"{operation} {path}")
        if self.mode == "error":
            raise StorageError(f"injected: {operation} {self.uri}/{path} failed", uri=self.uri, path=path)
        call()
        if self.mode == "crash_after":
            raise Crash(f"after {operation} {path}")
        raise StorageError(f"injected: no answer to {operation} {self.uri}/{path}", uri=self.uri, path=path)
