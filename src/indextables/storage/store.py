"""A store: the place where a table's files lie, whatever kind of storage it is.

Three guarantees carry the transaction log, and every implementation gives them:

* Atomic visibility. An object is there whole or not at all; no reader sees half of one.
* Mutual exclusion. Of any number of `put_if_absent` calls for one path, from any number of
  processes, exactly one creates the object, and nobody replaces it through that call.
* Consistent listing. Once a write has returned, every later listing and read shows it, and a
  listing that could not be completed raises: it is never a shorter one.

A write that has returned is durable. A write that raised may or may not have happened, and may
even happen later. An error that carries `final=True` came from the store itself: what is not there
when it is raised will not come. The contract tests run over every implementation.

`put_if_absent` therefore has three answers: created (True), exists (False), and no answer (it
raises). A store sends the request once and never guesses an answer that got lost: whoever finds the
object there afterwards may be looking at one that came later. `put_if_absent.py` has what callers
do about a lost answer.

A path may be freed and used again. Whoever has listed an object reads it with the `etag` of the
listing, and gets that object or NotFoundError, never another one that has its name by now. A store
may keep small objects for some seconds, and then gives the one that was listed.
"""

# ruff: noqa: PTH114
# because a path given by the user is used character by character
from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from indextables.errors import StorageError, TableError
from indextables.lazy import later
from indextables.options import ALLOWED_ROOTS, PREFIX
from indextables.runtime import default_parallelism
from indextables.storage.objects import REQUESTS_AT_ONCE, ObjectMeta, StoreSpec
from indextables.storage.stores.local import LocalStore
from indextables.storage.stores.memory import MemoryStore
from indextables.storage.urls import Location, file_uri, has_scheme, parse_url

if TYPE_CHECKING:
    from indextables.storage.stores import remote
else:
    remote = later("indextables.storage.stores.remote")

__all__ = [
    "BulkDeleting",
    "ObjectMeta",
    "Prefetching",
    "Store",
    "StoreSpec",
    "is_allowed",
    "is_local",
    "open_store",
    "requests_at_once",
    "require_allowed",
    "resolve",
    "scans_at_once",
    "store_time_ms",
]

logger = logging.getLogger(__name__)

Listing: TypeAlias = list[ObjectMeta]
_SHOWN = 5


@runtime_checkable
class Store(Protocol):
    """Objects below one root. Paths are relative to it, '/'-separated and not escaped."""

    @property
    def uri(self) -> str:
        """The canonical root, without a trailing slash: file:///a/b, s3://bucket/x, memory://name."""

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object; NotFoundError when there is none, or when `etag` is given and it has another."""

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Exactly `length` bytes from `start`, as `get` does; StorageError when it ends before that."""

    def head(self, path: str) -> ObjectMeta:
        """Size, time and etag of one object; NotFoundError when there is none."""

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object below the directory `prefix`, at any depth, sorted by the bytes of its path.

        `start_after` is a path of the same form as the ones returned; only later ones are given.
        A directory that does not exist is empty.
        """

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Listing:
        """As `list`, but only the objects directly in that directory."""

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing one that is there in one step."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object: True if this call did it, False if one was there, StorageError if unknown."""

    def put_file(self, path: str, local_path: str) -> None:
        """Publish a finished local file as `path`, replacing one that is there.

        The local file may be moved rather than copied: do not use it afterwards.
        """

    def delete(self, path: str) -> None:
        """Remove an object; one that is not there is fine."""

    def local_path(self, path: str) -> str | None:
        """Where the object lies in the local file system, or None if it does not."""

    def spark_uri(self, path: str) -> str:
        """The address a Hadoop reader takes: s3a: for s3:, and no percent-encoding."""

    def spec(self) -> StoreSpec:
        """What another process needs to open this store: `open_store(spec)`."""


@runtime_checkable
class Prefetching(Protocol):
    """A store whose requests take long, and which can therefore be asked for an object ahead of need."""

    def prefetch(self, path: str) -> None:
        """Read a small object that will be wanted by its etag; nothing is raised."""


@runtime_checkable
class BulkDeleting(Protocol):
    """A store that removes many objects with one request."""

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove objects; if it raises, any number of them may be gone."""


@runtime_checkable
class Waiting(Protocol):
    """A store whose requests wait for a network, so that many are sent at the same time."""

    @property
    def requests_at_once(self) -> int:
        """How many."""


def is_local(store: Store) -> bool:
    """Whether objects lie in the local file system, where reading them is work and not waiting."""
    return store.local_path("") is not None


def requests_at_once(store: Store) -> int:
    """How many small reads of a store go on at the same time."""
    if is_local(store):
        return default_parallelism()
    return store.requests_at_once if isinstance(store, Waiting) else REQUESTS_AT_ONCE


def scans_at_once(store: Store) -> int:
    """How many files are read row by row at once; half as many on object stores, since rows take memory."""
    return default_parallelism() if is_local(store) else max(1, requests_at_once(store) // 2)


def open_store(uri: str | os.PathLike[str] | StoreSpec, options: Mapping[str, str] | None = None) -> Store:
    """Open the store whose root is `uri`; nothing is created or contacted by this."""
    if isinstance(uri, StoreSpec):
        return _open(parse_url(uri.uri), {**uri.options, **(options or {})})
    return _open(parse_url(uri), dict(options or {}))


def resolve(root: Store, path: str, *, anywhere: bool = False) -> tuple[Store, str]:
    """Find the store and the path in it for a file that a log names.

    Most are relative to the table and stay so. An absolute URI, or an absolute path of the
    same storage, opens the directory that holds the file with the table's own options. A file must
    lie below the table or a root that the options allow, once symbolic links are followed, unless it
    is not to be read (`anywhere`): who wrote the table would otherwise choose what the reader's
    credentials open.
    """
    if not anywhere:
        require_allowed(root, [path])
    place = _absolute(root, path)
    if place is None:
        return root, path
    if _is_below(place, root.uri):
        return root, _inside(root, place)
    directory, name = place.parent()
    if not name:
        raise StorageError(
            f"{path!r} names a whole store, not a file in it. The log entry is wrong.", uri=path
        )
    return _open(directory, dict(root.spec().options)), name


def is_allowed(root: Store, path: str) -> bool:
    """Whether a file that a log names may be read: it lies below the table or a root that is allowed."""
    return not _refused(root, [path])


def require_allowed(root: Store, paths: Iterable[str]) -> None:
    """Raise TableError, with their directories, if paths lie outside the table and the allowed roots."""
    refused = _refused(root, paths)
    if not refused:
        return
    directories = sorted({place.parent()[0].uri for place in refused.values()})
    # Nested directories say nothing that the highest of them does not.
    roots = [uri for uri in directories if not any(uri.startswith(f"{above}/") for above in directories)]
    more = f" and {len(roots) - _SHOWN} more" if len(roots) > _SHOWN else ""
    link = next((path for path in refused if _home_of(root, path) is not None), None)
    through = "" if link is None else f" (through a symbolic link on the way to {link})"
    raise TableError(
        f"{root.uri}: the log names {len(refused)} files outside the table{through}, below "
        f"{', '.join(roots[:_SHOWN])}{more}. They would be read with your credentials, so only places you "
        f"name are followed: if you trust this table, set {PREFIX}{ALLOWED_ROOTS} to a list of them, such "
        f"as {','.join(roots[:_SHOWN])}. For a shallow clone of a Delta table, {PREFIX}read.allowCloneSource "
        "follows it to the source that its log names.",
        uri=root.uri, roots=roots,
    )  # fmt: skip


def _refused(root: Store, paths: Iterable[str]) -> dict[str, Location]:
    """The files that may not be read, and where each really lies."""
    local = root.uri.startswith("file:")
    directories: dict[str, bool] = {}
    refused: dict[str, Location] = {}
    allowed: tuple[str, ...] | None = None
    for path in paths:
        if not local and not has_scheme(path) and not path.startswith("/"):
            continue
        inside = _home_of(root, path)
        place = _absolute(root, path) if inside is None else _led_outside(root, inside, directories)
        if place is None:
            continue
        if allowed is None:
            allowed = tuple(_real(parse_url(uri)).uri for uri in allowed_roots(root.spec().options))
        if not any(_is_below(_real(place), allowed_root) for allowed_root in allowed):
            refused[path] = place
    return refused


def _home_of(root: Store, path: str) -> str | None:
    """The path relative to the table of a file that is named as one of its own; None for any other."""
    place = _absolute(root, path)
    if place is None:
        return path
    return _inside(root, place) if _is_below(place, root.uri) else None


def _inside(root: Store, place: Location) -> str:
    return place.path[len(parse_url(root.uri).path) :].lstrip("/")


def _led_outside(root: Store, path: str, directories: dict[str, bool]) -> Location | None:
    """Where a file really lies to which symbolic links lead out of the table; None if none do.

    Only names below the root are looked at, each directory once (`directories` says which have a link on the
    way), and links are followed only where there is one. The root itself may be a link.
    """
    if not root.uri.startswith("file:"):
        return None
    home = parse_url(root.uri).path.rstrip("/")
    directory = path.rpartition("/")[0]
    if directory not in directories:
        parts = directory.split("/") if directory else []
        directories[directory] = any(
            os.path.islink("/".join([home, *parts[: count + 1]])) for count in range(len(parts))
        )
    if not directories[directory] and not os.path.islink(f"{home}/{path}"):
        return None
    place = Location("file", "", os.path.realpath(f"{home}/{path}"))
    return None if _is_below(place, file_uri(os.path.realpath(home))) else place


def _real(place: Location) -> Location:
    """A place with symbolic links followed, where it is on this machine."""
    return Location("file", "", os.path.realpath(place.path)) if place.kind == "file" else place


def allowed_roots(options: Mapping[str, str]) -> tuple[str, ...]:
    """The canonical addresses that the options allow."""
    listed = options.get(ALLOWED_ROOTS) or ""
    return tuple(parse_url(text.strip()).uri for text in listed.split(",") if text.strip())


def store_time_ms(store: Store, directory: str) -> int | None:
    """The time of the store now, in ms since the epoch; None if it cannot be had, which is logged.

    An empty object is written, which needs no room on a full disk, and the time that the store gave it is
    read back. An age is the difference of two times of one store: the clock of this process may be days
    ahead of the one that dates objects. The object has the name of a temporary file, so that PURGE removes
    one that was left behind.
    """
    path = f"{directory}/.{uuid.uuid4().hex}.tmp"
    try:
        store.put(path, b"")
        now_ms = store.head(path).modified_ms
        store.delete(path)
    except StorageError as failed:
        logger.warning(
            "%s: the store does not tell its time, so nothing counts as old: %s", store.uri, failed
        )
        return None
    return now_ms


def _absolute(root: Store, path: str) -> Location | None:
    """Where an absolute address or path leads; None for one that is relative to the table."""
    if has_scheme(path):
        return parse_url(path)
    if not path.startswith("/"):
        return None
    home = parse_url(root.uri)
    if home.kind == "file":
        # Also takes out what leads upwards.
        return parse_url(file_uri(path))
    return Location(home.kind, home.bucket, path.strip("/"), home.host)


def _is_below(place: Location, root: str) -> bool:
    return place.uri.startswith(f"{root.rstrip('/')}/")


def _open(place: Location, options: Mapping[str, str]) -> Store:
    if place.kind == "file":
        return LocalStore(place.path, options)
    if place.kind == "memory":
        return MemoryStore(place.uri, options=options)
    # Local tables must not pay for loading the object store library.
    return remote.RemoteStore(place, options)
