"""Objects kept in the memory of this process, shared by name: for tests and for trying things out.

Every MemoryStore of one name sees the same objects, as two clients of one bucket would. They
end with the process, and another process that opens the name starts with nothing.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from indextables.errors import NotFoundError, StorageError
from indextables.records import dataclass
from indextables.storage.objects import (
    ObjectMeta,
    StoreSpec,
    carried,
    directory_path,
    object_path,
    range_end,
    replaced,
    short_read,
    sort_key,
)
from indextables.storage.urls import parse_url

Listing: TypeAlias = list[ObjectMeta]


@dataclass(frozen=True, slots=True)
class _Entry:
    data: bytes
    modified_ms: int
    etag: str


@dataclass(slots=True)
class _Space:
    entries: dict[str, _Entry] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


_spaces: dict[str, _Space] = {}
_spaces_lock = threading.Lock()
_serial = itertools.count(1)


def wall_clock_ms() -> int:
    """The time of day in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def forget_memory(name: str | None = None) -> None:
    """Drop the objects of one name, or of all names."""
    with _spaces_lock:
        if name is None:
            _spaces.clear()
        else:
            _spaces.pop(name, None)


class MemoryStore:
    """A store in memory. Without an address it gets a name that nobody else has."""

    def __init__(
        self,
        uri: str | None = None,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._options = carried(options)
        place = parse_url(uri if uri is not None else f"memory://anonymous-{next(_serial)}")
        self._uri = place.uri
        self._root = f"{place.path}/" if place.path else ""
        self._now_ms = now_ms
        with _spaces_lock:
            self._space = _spaces.setdefault(place.bucket, _Space())

    @property
    def uri(self) -> str:
        """The canonical root."""
        return self._uri

    def __repr__(self) -> str:
        return f"MemoryStore({self._uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self._uri,)

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object."""
        return self._entry(path, etag).data

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Exactly the requested bytes."""
        end = range_end(path, start, length, uri=self._uri)
        data = self._entry(path, etag).data
        if end > len(data):
            raise short_read(path, start, length, max(0, len(data) - start), uri=self._uri)
        return data[start:end]

    def head(self, path: str) -> ObjectMeta:
        """Size, time and etag of one object."""
        entry = self._entry(path)
        return ObjectMeta(path, len(entry.data), entry.modified_ms, entry.etag)

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object below a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        below = self._root + (f"{directory}/" if directory else "")
        cut = len(self._root)
        with self._space.lock:
            objects = [
                (key[cut:], entry) for key, entry in self._space.entries.items() if key.startswith(below)
            ]
        objects.sort(key=lambda item: sort_key(item[0]))
        first = sort_key(start_after) if start_after is not None else None
        return iter(
            [
                ObjectMeta(path, len(entry.data), entry.modified_ms, entry.etag)
                for path, entry in objects
                if first is None or sort_key(path) > first
            ]
        )

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Listing:
        """The objects directly in a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        cut = len(directory) + 1 if directory else 0
        return [meta for meta in self.list(prefix, start_after) if "/" not in meta.path[cut:]]

    def put(self, path: str, data: bytes) -> None:
        """Write or replace an object."""
        key = self._key(path)
        with self._space.lock:
            self._space.entries[key] = self._new_entry(data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object unless it is there."""
        key = self._key(path)
        with self._space.lock:
            if key in self._space.entries:
                return False
            self._space.entries[key] = self._new_entry(data)
            return True

    def put_file(self, path: str, local_path: str) -> None:
        """Take over the content of a local file."""
        try:
            data = Path(local_path).read_bytes()
        except OSError as error:
            raise StorageError(
                f"Could not write {self._uri}/{path}: the local file {local_path} cannot be read "
                f"({error.strerror}). It must be complete before it is published.",
                uri=self._uri,
                path=path,
            ) from error
        self.put(path, data)

    def delete(self, path: str) -> None:
        """Remove an object if it is there."""
        key = self._key(path)
        with self._space.lock:
            self._space.entries.pop(key, None)

    def local_path(self, path: str) -> str | None:
        """None: nothing here is a file."""
        del path
        return None

    def spark_uri(self, path: str) -> str:
        """The address; no Hadoop reader can open it."""
        return f"{self._uri}/{path}" if path else self._uri

    def spec(self) -> StoreSpec:
        """The name; in another process it is an empty store."""
        return StoreSpec(self._uri, dict(self._options))

    def _key(self, path: str) -> str:
        return self._root + object_path(path, uri=self._uri)

    def _new_entry(self, data: bytes) -> _Entry:
        return _Entry(bytes(data), self._now_ms(), f"m{next(_serial)}")

    def _entry(self, path: str, etag: str | None = None) -> _Entry:
        key = self._key(path)
        with self._space.lock:
            entry = self._space.entries.get(key)
        if entry is None:
            raise NotFoundError(f"There is no {self._uri}/{path}.", uri=self._uri, path=path)
        if etag not in (None, entry.etag):
            raise replaced(path, uri=self._uri)
        return entry
