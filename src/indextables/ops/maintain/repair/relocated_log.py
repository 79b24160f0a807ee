"""A log under another name: a store in which some directory stands where the log is looked for.

REPAIR reads and writes log directories of any name, such as a backup beside
the real log. Everything that reads logs asks for `_transaction_log`; this store
answers from the directory it was given instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from indextables.log.format.dialect import NATIVE
from indextables.storage.store import ObjectMeta, Store, StoreSpec, open_store
from indextables.storage.urls import parse_url

Listing: TypeAlias = list[ObjectMeta]
_SHOWN = NATIVE.log_dir


class LogDirectory:
    """The store around a log directory, with that directory in the log's usual place."""

    def __init__(self, around: Store, name: str) -> None:
        self.around = around
        self.name = name

    @classmethod
    def at(cls, uri: str, options: dict[str, str]) -> LogDirectory:
        """The log directory at an address; its parent is the table."""
        directory, name = parse_url(uri).parent()
        return cls(open_store(directory.uri, options), name)

    @property
    def uri(self) -> str:
        """The root of the store around it."""
        return self.around.uri

    @property
    def log_uri(self) -> str:
        """The canonical address of the directory itself."""
        return f"{self.around.uri.rstrip('/')}/{self.name}"

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object."""
        return self.around.get(self._real(path), etag=etag)

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Some bytes of an object."""
        return self.around.get_range(self._real(path), start, length, etag=etag)

    def head(self, path: str) -> ObjectMeta:
        """Size, time and etag of one object."""
        return self._seen(self.around.head(self._real(path)))

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object below a directory."""
        after = None if start_after is None else self._real(start_after)
        return (self._seen(meta) for meta in self.around.list(self._real(prefix), after))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Listing:
        """The objects directly in a directory."""
        after = None if start_after is None else self._real(start_after)
        return [self._seen(meta) for meta in self.around.list_level(self._real(prefix), after)]

    def put(self, path: str, data: bytes) -> None:
        """Write an object."""
        self.around.put(self._real(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object."""
        return self.around.put_if_absent(self._real(path), data)

    def put_file(self, path: str, local_path: str) -> None:
        """Publish a local file."""
        self.around.put_file(self._real(path), local_path)

    def delete(self, path: str) -> None:
        """Remove an object."""
        self.around.delete(self._real(path))

    def local_path(self, path: str) -> str | None:
        """Where the object lies in the local file system."""
        return self.around.local_path(self._real(path))

    def spark_uri(self, path: str) -> str:
        """The address a Hadoop reader takes."""
        return self.around.spark_uri(self._real(path))

    def spec(self) -> StoreSpec:
        """What another process needs to open the store around it; splits are found there."""
        return self.around.spec()

    def _real(self, path: str) -> str:
        if path == _SHOWN or path.startswith(f"{_SHOWN}/"):
            return self.name + path[len(_SHOWN) :]
        return path

    def _seen(self, meta: ObjectMeta) -> ObjectMeta:
        if meta.path.startswith(f"{self.name}/"):
            return replace(meta, path=_SHOWN + meta.path[len(self.name) :])
        return meta
