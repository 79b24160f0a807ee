"""The values that stores use: object paths, object metadata, and the description of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from indextables.errors import NotFoundError, StorageError
from indextables.options import ALLOWED_ROOTS
from indextables.records import dataclass

REQUESTS_AT_ONCE = 32
"""Requests that are sent to an object store at the same time: waiting for one costs nothing but time."""
SMALL_OBJECT = 256 << 10
"""Up to this size an object of a store far away is read whole and ahead of need: the request costs more."""


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One object as a listing or a head request shows it.

    `path` is relative to the root of the store. `etag` is the identity of the
    object: another one of the same name has another, unless a bucket holds the
    very same bytes again. It is None where the store has no such thing.
    """

    path: str
    size: int
    modified_ms: int
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Everything needed to open the same store in another process.

    It holds configuration only, never a connection, so it can be pickled to an
    executor. The options may hold credentials, which is why they are kept out
    of the printed form.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def carried(options: Mapping[str, str] | None) -> dict[str, str]:
    """What a store without settings of its own passes on to the stores it leads to."""
    return {key: value for key, value in (options or {}).items() if key == ALLOWED_ROOTS}


def sort_key(path: str) -> bytes:
    """The order of every listing: the bytes of the UTF-8 form."""
    return path.encode("utf-8", "surrogateescape")


def object_path(path: str, *, uri: str) -> str:
    """Return `path` if it can name an object below the root, else raise."""
    if not path or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise StorageError(
            f"{path!r} cannot name an object in {uri}. Give a path relative to that root, with no leading "
            "or trailing slash and no empty, '.' or '..' part.",
            uri=uri,
            path=path,
        )
    return path


def directory_path(prefix: str, *, uri: str) -> str:
    """Return `prefix` without its trailing slash; the empty prefix is the root itself."""
    trimmed = prefix.rstrip("/")
    return object_path(trimmed, uri=uri) if trimmed else ""


def range_end(path: str, start: int, length: int, *, uri: str) -> int:
    """Return the end of a byte range, refusing one that no object can have."""
    if start < 0 or length < 0:
        raise StorageError(
            f"Cannot read {length} bytes at offset {start} of {uri}/{path}: "
            "neither number may be negative. The offsets recorded for this file are wrong.",
            uri=uri,
            path=path,
        )
    return start + length


def replaced(path: str, *, uri: str) -> NotFoundError:
    """The error for an object that is no longer the one that was listed under its name."""
    return NotFoundError(f"{uri}/{path} is gone: another object has its name now.", uri=uri, path=path)


def short_read(path: str, start: int, length: int, got: int, *, uri: str) -> StorageError:
    """The error for an object that ends before the requested range does."""
    return StorageError(
        f"{uri}/{path} ends early: bytes {start} to {start + length} were asked for and only {got} "
        "of them are there. The file was cut short, or another file than the recorded one is in its place.",
        uri=uri,
        path=path,
    )
