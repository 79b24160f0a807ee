"""Buckets of S3, Azure and Google Cloud as a store, through obstore, which only this module imports.

Creating is the vendor's conditional put. It is sent once, never repeated behind our back: a
repeated one would meet its own first try and report a conflict that is none. When its answer gets
lost, the call raises: what lies under the name afterwards may have come later.

What the vendors leave open: an S3 look-alike must honour `If-None-Match: *`; one that ignores it
loses commits, which `exclusion` finds out before the first one. Google Cloud takes about one write
per second to one and the same name, which only the hint file can reach, and its requests are
tested against an S3 server that speaks Google's dialect, not against Google. An upload that dies
half way is never visible, but its parts are billed until the bucket's lifecycle rule removes them.
Control characters cannot be in a path, nor, on Azure, a backslash, which it takes for a slash.

obstore's threads do not survive a fork: a child that finds them used by its parent is told so
instead of hanging. Workers are to be spawned, and open their own store from a StoreSpec.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import obstore
from obstore import exceptions as failures
from obstore.store import AzureStore, GCSStore, S3Store

from indextables.cache import TtlCache
from indextables.errors import NotFoundError, StorageError
from indextables.storage.objects import (
    SMALL_OBJECT,
    ObjectMeta,
    StoreSpec,
    directory_path,
    object_path,
    range_end,
    replaced,
    short_read,
    sort_key,
)
from indextables.storage.secrets import hide_secrets
from indextables.storage.stores.remote_settings import settings_for
from indextables.storage.urls import Location, parse_url

Listing: TypeAlias = list[ObjectMeta]

_CLASSES = {"s3": S3Store, "azure": AzureStore, "gs": GCSStore}
_FAILURES = (failures.BaseError, OSError, ValueError, OverflowError)
_REFUSALS = (
    failures.PermissionDeniedError, failures.UnauthenticatedError, failures.NotSupportedError,
    failures.InvalidPathError,
)  # fmt: skip
"""The service heard the request and refused it; of any other failure it may yet carry it out."""
_NO_BUCKET = re.compile(
    r"NoSuchBucket|ContainerNotFound|FilesystemNotFound|bucket does not exist", re.IGNORECASE
)
_PAST_END = re.compile(r"416 |Wanted range starting")
# Where a cloud's machines ask for the credentials of their role: what is tried when nobody gave any.
_ROLE_SERVICE = re.compile(r"169\.254\.|/latest/(?:api/token|meta-data)|computeMetadata|metadata/identity")
_OTHER_REGION = re.compile(
    r"redirect without LOCATION|PermanentRedirect|expecting '([a-z0-9-]+)'|IllegalLocation"
)
_GIVE_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the options aws_access_key_id and "
    "aws_secret_access_key; for a public bucket aws_skip_signature=true",
    "azure": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the options "
    "azure_storage_account_name and azure_storage_account_key",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or the option google_service_account",
}
_LISTED_AT_ONCE = 1000
_PART_BYTES = 16 << 20
_CREATE_TIMEOUT = "300s"

_RECENT_S = 10
_RECENT_OBJECTS = 64

_recent: TtlCache[tuple[Hashable, ...], bytes] = TtlCache(_RECENT_S, _RECENT_OBJECTS)
"""Small objects that were read lately, by bucket and credentials, key and etag.

One verb reads a checkpoint more than once. An etag stands for the bytes, so none of them can be outdated."""
_used_by: int | None = None


class RemoteStore:
    """A prefix of a bucket as a store. Nothing is contacted before the first operation."""

    def __init__(self, place: Location, options: Mapping[str, str]) -> None:
        self._place = place
        self._options = dict(options)
        self._uri = place.uri
        self._settings = settings_for(place, options)
        self._root = f"{place.path}/" if place.path else ""
        self._bucket = place.kind, place.bucket, tuple(sorted(self._settings.config.items()))

    @property
    def uri(self) -> str:
        """The canonical root."""
        return self._uri

    @property
    def server(self) -> tuple[str, ...]:
        """The bucket and the service that holds it: what one answer about put-if-absent holds for."""
        config = self._settings.config
        return (
            self._place.kind, self._place.bucket, self._place.host or "",
            config.get("endpoint", ""), config.get("base_url", ""),
        )  # fmt: skip

    @property
    def requests_at_once(self) -> int:
        """How many requests may be sent at the same time."""
        return self._settings.requests_at_once

    def __repr__(self) -> str:
        return f"RemoteStore({self._uri!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self._place, self._options)

    def get(self, path: str, *, etag: str | None = None) -> bytes:
        """The whole object."""
        key = self._key(path)
        if etag is not None and (recent := _recent.get((*self._bucket, key, etag))) is not None:
            return recent
        with self._errors("read", path):
            answer = obstore.get(self._client(), key, options=_if_match(etag))
            data = bytes(answer.bytes())
        read_etag = _etag(answer.meta)
        if read_etag is not None and len(data) <= SMALL_OBJECT:
            _recent.put((*self._bucket, key, read_etag), data)
        return data

    def prefetch(self, path: str) -> None:
        """Read a small object ahead of the `get` that names its etag; what fails here fails there again."""
        with contextlib.suppress(StorageError):
            self.get(path)

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """Exactly the requested bytes."""
        end = range_end(path, start, length, uri=self._uri)
        key = self._key(path)
        if length == 0:
            meta = self.head(path)
            if etag not in (None, meta.etag):
                raise replaced(path, uri=self._uri)
            if start > meta.size:
                raise short_read(path, start, length, 0, uri=self._uri)
            return b""
        with self._errors("read", path):
            try:
                if etag is None:
                    data = bytes(obstore.get_range(self._client(), key, start=start, length=length))
                else:
                    request: Any = {**_if_match(etag), "range": (start, end)}
                    data = bytes(obstore.get(self._client(), key, options=request).bytes())
            except failures.PreconditionError:
                raise
            except failures.BaseError as error:
                if _PAST_END.search(str(error)):
                    raise short_read(path, start, length, 0, uri=self._uri) from error
                raise
        if len(data) != length:
            raise short_read(path, start, length, len(data), uri=self._uri)
        return data

    def head(self, path: str) -> ObjectMeta:
        """Size, time and etag of one object."""
        key = self._key(path)
        with self._errors("look at", path):
            return self._meta(obstore.head(self._client(), key))

    def list(self, prefix: str = "", start_after: str | None = None) -> Iterator[ObjectMeta]:
        """Every object below a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        return iter(self._sorted(directory, start_after, self._everything(directory, start_after)))

    def list_level(self, prefix: str = "", start_after: str | None = None) -> Listing:
        """The objects directly in a directory, sorted."""
        directory = directory_path(prefix, uri=self._uri)
        if start_after is not None:
            # Only the recursive listing can begin in the middle, which saves more than it wastes.
            objects = self._sorted(directory, start_after, self._everything(directory, start_after))
            cut = len(directory) + 1 if directory else 0
            return [meta for meta in objects if "/" not in meta.path[cut:]]
        with self._errors("list", directory):
            answer = obstore.list_with_delimiter(self._client(), self._prefix(directory))
            return self._sorted(directory, None, [answer["objects"]])

    def put(self, path: str, data: bytes) -> None:
        """Write or replace an object."""
        key = self._key(path)
        with self._errors("write", path):
            obstore.put(self._client(), key, data, chunk_size=_PART_BYTES)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object unless it is there."""
        key = self._key(path)
        with self._errors("create", path):
            try:
                obstore.put(self._client(once=True), key, data, mode="create", use_multipart=False)
            except failures.AlreadyExistsError:
                return False
        return True

    def put_file(self, path: str, local_path: str) -> None:
        """Upload a finished file, in parts when it is large."""
        key = self._key(path)
        with self._errors("write", path):
            obstore.put(self._client(), key, Path(local_path), chunk_size=_PART_BYTES)

    def delete(self, path: str) -> None:
        """Remove an object if it is there."""
        key = self._key(path)
        with contextlib.suppress(NotFoundError), self._errors("delete", path):
            obstore.delete(self._client(), key)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove objects, as many with one request as the service takes."""
        keys = [self._key(path) for path in paths]
        with self._errors("delete", paths[0] if paths else ""):
            obstore.delete(self._client(), keys)

    def local_path(self, path: str) -> str | None:
        """None: a bucket is not a local directory."""
        del path
        return None

    def spark_uri(self, path: str) -> str:
        """The URI with the scheme and account that Hadoop's connectors want."""
        place = self._place
        account = self._settings.config.get("account_name")
        if place.kind == "azure" and place.host is None and account:
            place = Location("azure", place.bucket, place.path, f"{account}.dfs.core.windows.net")
        root = f"s3a://{place.uri.removeprefix('s3://')}" if place.kind == "s3" else place.uri
        return f"{root}/{object_path(path, uri=self._uri)}" if path else root

    def spec(self) -> StoreSpec:
        """The address and the settings."""
        return StoreSpec(self._uri, dict(self._options))

    def _key(self, path: str) -> str:
        if "\\" in path and self._place.kind == "azure":
            raise StorageError(
                f"{path!r} cannot name an object in {self._uri}: Azure takes a backslash for a slash. "
                "Use another character.",
                uri=self._uri,
                path=path,
            )
        return self._root + object_path(path, uri=self._uri)

    def _prefix(self, directory: str) -> str | None:
        return (self._root + directory).rstrip("/") or None

    def _client(self, *, once: bool = False) -> Any:
        """The connection pool; `once` gives the one that sends a request a single time."""
        global _used_by  # noqa: PLW0603 - obstore's threads are one per process as well
        if _used_by is None:
            _used_by = os.getpid()
        elif _used_by != os.getpid():
            raise StorageError(
                f"{self._uri} cannot be used in this process: it was forked from one that had used an object "
                "store already. Start workers with the 'spawn' or 'forkserver' method.",
                uri=self._uri,
            )
        settings = self._settings
        return _connect(
            *self._bucket,
            tuple(sorted(settings.client.items())),
            tuple(sorted(settings.retry.items())),
            once=once,
        )

    def _everything(self, directory: str, start_after: str | None) -> Iterator[Iterable[Any]]:
        offset = self._root + start_after if start_after else None
        with self._errors("list", directory):
            yield from obstore.list(
                self._client(), self._prefix(directory), offset=offset, chunk_size=_LISTED_AT_ONCE
            )

    def _sorted(self, directory: str, start_after: str | None, pages: Iterable[Iterable[Any]]) -> Listing:
        # Not every vendor lists by the bytes of the name (directory buckets, hierarchical namespaces).
        below = f"{directory}/" if directory else ""
        first = sort_key(start_after or "")
        objects = [self._meta(item) for page in pages for item in page]
        objects = [meta for meta in objects if meta.path.startswith(below) and sort_key(meta.path) > first]
        objects.sort(key=lambda meta: sort_key(meta.path))
        return objects

    def _meta(self, item: Mapping[str, Any]) -> ObjectMeta:
        modified_ms = int(item["last_modified"].timestamp() * 1000)
        return ObjectMeta(item["path"][len(self._root) :], item["size"], modified_ms, _etag(item))

    @contextlib.contextmanager
    def _errors(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except _FAILURES as error:
            self._fail(verb, path, error)

    def _fail(self, verb: str, path: str, error: Exception) -> NoReturn:
        text = str(error).split("\n\nDebug source", 1)[0].strip()
        place = f"{self._uri}/{path}" if path else self._uri
        # Signed addresses are credentials: then the cause, which prints them, is left out too.
        shown = hide_secrets(text)
        cause = error if hide_secrets(str(error)) == str(error) else None
        if (
            isinstance(error, FileNotFoundError)
            and not _NO_BUCKET.search(text)
            and verb not in {"write", "create"}
        ):
            raise NotFoundError(f"There is no {place}.", uri=self._uri, path=path) from cause
        if isinstance(error, failures.PreconditionError) and verb == "read":
            raise replaced(path, uri=self._uri) from cause
        if _ROLE_SERVICE.search(text):
            raise StorageError(
                f"Could not {verb} {place}: no credentials were given, and this machine has no role that "
                f"provides any. To give some, {_GIVE_CREDENTIALS[parse_url(self._uri).kind]}.",
                uri=self._uri, path=path,
            ) from cause  # fmt: skip
        final = isinstance(error, _REFUSALS) or _NO_BUCKET.search(text) is not None
        raise StorageError(
            f"Could not {verb} {place}: {_short(shown)} {_advice(error, text)}",
            uri=self._uri,
            path=path,
            **({"final": True} if final else {}),
        ) from cause


@functools.lru_cache(maxsize=32)
def _connect(
    kind: str,
    bucket: str,
    config: tuple[tuple[str, str], ...],
    client: tuple[tuple[str, str | bool], ...],
    retry: tuple[tuple[str, float], ...],
    *,
    once: bool,
) -> Any:
    """One connection pool per bucket and settings: a log may name thousands of files by absolute URI."""
    limits = dict(retry)
    retry_config: dict[str, Any] = {}
    if once:
        retry_config["max_retries"] = 0
    elif "max_retries" in limits:
        retry_config["max_retries"] = int(limits["max_retries"])
    if "retry_timeout_s" in limits:
        retry_config["retry_timeout"] = timedelta(seconds=limits["retry_timeout_s"])
    options = {"timeout": _CREATE_TIMEOUT, **dict(client)} if once else dict(client)
    return _CLASSES[kind](
        bucket, config=dict(config), client_options=options or None, retry_config=retry_config or None
    )


def forget_objects() -> None:
    """Clear the cache of small objects."""
    _recent.invalidate()


def _etag(item: Mapping[str, Any]) -> str | None:
    """The etag of an object; Azure quotes it in one answer and not in the other."""
    return item["e_tag"].strip('"') if item["e_tag"] else None


def _if_match(etag: str | None) -> Any:
    """The condition that an object is still the one that was listed. A weak tag cannot be one."""
    return {"if_match": f'"{etag}"'} if etag is not None and not etag.startswith("W/") else {}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 400 else f"{line[:400]}..."  # noqa: PLR2004 - enough to recognise it


def _advice(error: Exception, text: str) -> str:
    if _NO_BUCKET.search(text):
        return "The bucket does not exist there: check its name, the region and the endpoint."
    region = _OTHER_REGION.search(text)
    if region is not None:
        named = f" ({region[1]})" if region[1] else ""
        return f"The bucket is in another region{named}: set AWS_REGION or the option aws_region to it."
    if isinstance(error, failures.PermissionDeniedError | failures.UnauthenticatedError):
        return "Check the credentials and what the bucket's policy allows them."
    if "error sending request" in text or "dns error" in text:
        return "The service was not reached: check the endpoint, the region and the network."
    if isinstance(error, failures.NotSupportedError) or "501" in text:
        return "This service lacks an operation that tables need; conditional put (If-None-Match) is one."
    return "Check the address and the storage settings; a passing fault can simply be tried again."
