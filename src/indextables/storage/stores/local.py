"""Files of the local file system as a store, written so that a power cut loses nothing acknowledged.

Every write goes to a temporary of its own in the target's directory, `.<uuid>.tmp`, is synced to
disk, and gets its real name in one step: by `link` for put-if-absent, which fails if the name is
taken, by `rename` otherwise. Then the directory is synced, and so is every directory that had to
be made; those that were there are synced once per process, since whoever made them may have been
stopped before that. A crash leaves at most such a temporary; no log file begins with a dot, and listings show
it, so that purging finds it.

Where the file system has no hard links, put-if-absent creates the target exclusively and writes
into it. Exactly one writer still wins there, but a reader may meet the file while it grows, and a
crash may leave it cut short.
"""

# ruff: noqa: PTH100, PTH108, PTH116, PTH208
# because a path given by the user is used character by character
from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from indextables.errors import NotFoundError, StorageError
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
from indextables.storage.stores import durable
from indextables.storage.urls import file_uri

Listing: TypeAlias = list[ObjectMeta]
_Entries: TypeAlias = list[tuple[bytes, str, os.DirEntry[str]]]

ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""What says that there is no object of a name."""
_ADVICE = {
    errno.EACCES: "Check the permissions of the file and of the directories above it.",
    errno.EPERM: "Check the permissions of the file and of the directories above it.",
    errno.EROFS: "The file system is mounted read-only.",
    errno.ENOSPC: "Free some space on that file system and try again.",
    errno.EDQUOT: "Free some of the quota and try again.",
    errno.ENAMETOOLONG: "Use a shorter path.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n).",
    errno.ENOTDIR: "A part of the path is a file; directories are needed there.",
    errno.EISDIR: "A directory has that name; remove it or choose another path.",
    errno.ENOENT: "The directory or the local file went away meanwhile.",
}


class LocalStore:
    """A directory as a store. It is made by the first write, not before."""

    def __init__(self, root: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> None:
        self._options = carried(options)
        self._root = os.path.abspath(os.fspath(root))
        self._uri = file_uri(self._root)

    @property
    def uri(self) -> str:
        """The canonical root."""
        return self._uri

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self._root, self._options)

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object."""
        full = self._full(path)
        with self._reading("read", path), open(open_regular(full), "rb") as file:
            self._bound(path, os.fstat(file.fileno()), etag)
            return file.read()

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Exactly the requested bytes."""
        range_end(path, start, length, uri=self._uri)
        full = self._full(path)
        with self._reading("read", path), open(open_regular(full), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            self._bound(path, status, etag)
            # Damaged offsets may ask for more than memory holds: never for more than the file does.
            size = status.st_size
            if start + length > size:
                raise short_read(path, start, length, max(0, size - start), uri=self._uri)
            data = _read_at(file.fileno(), start, length)
        if len(data) != length:
            raise short_read(path, start, length, len(data), uri=self._uri)
        return data

    def head(self, path: str) -> ObjectMeta:
        """Size, time and etag of one object."""
        full = self._full(path)
        with self._reading("look at", path):
            status = os.stat(full)
            if not stat.S_ISREG(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), full)
        return _meta(path, status)

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object below a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        return self._walk(directory, sort_key(start_after or ""))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Listing:
        """The objects directly in a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        above = sort_key(f"{directory}/" if directory else "")
        first = sort_key(start_after or "")
        if first.startswith(above):
            after = first[len(above) :]
        elif first > above:
            return []
        else:
            after = b""
        # Names alone are cheap; what is known of a file costs a call for each, so only later ones pay it.
        names = sorted(name for name in self._names(directory) if name > after)
        paths = [os.fsdecode(above + name) for name in names]
        objects = (self._listed(path, f"{self._root}/{path}") for path in paths)
        return [meta for meta in objects if meta is not None]

    def put(self, path: str, data: bytes) -> None:
        """Write or replace an object, atomically and durably."""
        full = self._full(path)
        with self._writing("write", path):
            durable.replace(full, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object unless it is there, atomically and durably."""
        full = self._full(path)
        with self._writing("create", path):
            return durable.create(full, data)

    def put_file(self, path: str, local_path: str) -> None:
        """Move a finished file into place, or copy it from another file system."""
        full = self._full(path)
        with self._writing("write", path):
            durable.publish(full, local_path)

    def delete(self, path: str) -> None:
        """Remove an object if it is there."""
        full = self._full(path)
        with self._writing("delete", path), contextlib.suppress(*ABSENT):
            os.unlink(full)

    def local_path(self, path: str) -> str | None:
        """The file's own path."""
        return self._full(path) if path else self._root

    def spark_uri(self, path: str) -> str:
        """The file's URI as Hadoop takes it: with nothing percent-encoded."""
        return f"file://{self._full(path) if path else self._root}"

    def spec(self) -> StoreSpec:
        """The address, and where else files may lie."""
        return StoreSpec(self._uri, dict(self._options))

    def _full(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{object_path(path, uri=self._uri)}"

    def _bound(self, path: str, status: os.stat_result, etag: str | None) -> None:
        """Refuse an open file that is not the one that was listed."""
        if etag not in (None, _etag(status)):
            raise replaced(path, uri=self._uri)

    @contextlib.contextmanager
    def _reading(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except ABSENT as error:
            raise NotFoundError(f"There is no {self._uri}/{path}.", uri=self._uri, path=path) from error
        except OSError as error:
            raise self._failed(verb, path, error) from error

    @contextlib.contextmanager
    def _writing(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(verb, path, error) from error

    def _failed(self, verb: str, path: str, error: OSError) -> StorageError:
        advice = _ADVICE.get(error.errno or 0, "Check the path and the health of its file system.")
        place = f"{self._uri}/{path}" if path else self._uri
        return StorageError(
            f"Could not {verb} {place}: {error.strerror or error}. {advice}",
            uri=self._uri,
            path=path,
            final=True,
        )

    def _walk(self, directory: str, first: bytes) -> Iterator[ObjectMeta]:
        for key, path, entry in self._entries(directory):
            if key.endswith(b"/"):
                # Below a directory that sorts first, only the one that holds `first` has later paths.
                if key > first or first.startswith(key):
                    yield from self._walk(path, first)
            elif key > first and (meta := self._listed(path, entry.path)) is not None:
                yield meta

    def _names(self, directory: str) -> Sequence[bytes]:
        try:
            return os.listdir(os.fsencode(f"{self._root}/{directory}" if directory else self._root))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failed("list", directory, error) from error

    def _entries(self, directory: str) -> _Entries:
        """The names in a directory in listing order; a directory sorts as its name and a slash."""
        entries: _Entries = []
        try:
            with os.scandir(f"{self._root}/{directory}" if directory else self._root) as listing:
                for entry in listing:
                    path = f"{directory}/{entry.name}" if directory else entry.name
                    # A linked directory belongs to someone else, and what is listed here may be purged.
                    slash = b"/" if entry.is_dir(follow_symlinks=False) else b""
                    entries.append((sort_key(path) + slash, path, entry))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failed("list", directory, error) from error
        entries.sort(key=lambda item: item[0])
        return entries

    def _listed(self, path: str, full: str) -> ObjectMeta | None:
        """The object of a name in a directory; None if it is not a file or no longer exists."""
        try:
            status = os.stat(full)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("list", path, error) from error
        return _meta(path, status) if stat.S_ISREG(status.st_mode) else None


def _meta(path: str, status: os.stat_result) -> ObjectMeta:
    return ObjectMeta(path, status.st_size, status.st_mtime_ns // 1_000_000, _etag(status))


def _etag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def open_regular(path: str) -> int:
    """Open a regular file for reading; anything else, such as a pipe that would block, counts as absent."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return descriptor


def _read_at(descriptor: int, start: int, length: int) -> bytes:
    """Read a range; the kernel gives at most 2 GiB at a time."""
    chunks: list[bytes] = []
    while length > 0 and (chunk := os.pread(descriptor, length, start)):
        chunks.append(chunk)
        start += len(chunk)
        length -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
