"""Addresses of tables: every spelling a user may give, and the one canonical form of each.

A bare path is taken literally, character by character. A `file:` URI is percent-decoded,
as RFC 8089 has it. In an object store's URI everything after the bucket is the key itself,
never decoded, which is what Hadoop and the vendors' own tools do too.
"""

from __future__ import annotations

import os
import re
from typing import Literal
from urllib.parse import quote, unquote

from indextables.errors import StorageError
from indextables.records import dataclass
from indextables.storage.secrets import hide_signature

Kind = Literal["file", "memory", "s3", "azure", "gs"]

_SCHEMES: dict[str, Kind] = {
    "file": "file",
    "memory": "memory",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "abfs": "azure",
    "abfss": "azure",
    "wasb": "azure",
    "wasbs": "azure",
    "az": "azure",
    "azure": "azure",
    "gs": "gs",
    "gcs": "gs",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_FORMS = (
    "a path, file:///path, s3://bucket/path, abfss://container@account.dfs.core.windows.net/path, "
    "az://container/path, gs://bucket/path or memory://name"
)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a store's root lies.

    `bucket` is the bucket, container or memory space, empty for local files. `path` is the
    absolute local path, or the key prefix without slashes at its ends. `host` is the account
    host of an Azure address that names one, such as `acct.dfs.core.windows.net`.
    """

    kind: Kind
    bucket: str
    path: str
    host: str | None = None

    @property
    def account(self) -> str | None:
        """The Azure storage account, where the address names it."""
        return self.host.split(".", 1)[0] if self.host else None

    @property
    def uri(self) -> str:
        """The canonical URI, without a trailing slash."""
        if self.kind == "file":
            return file_uri(self.path)
        if self.kind == "azure":
            root = f"abfss://{self.bucket}@{self.host}" if self.host else f"az://{self.bucket}"
        else:
            root = f"{self.kind}://{self.bucket}"
        return f"{root}/{self.path}" if self.path else root

    def parent(self) -> tuple[Location, str]:
        """Split into the directory that holds this place and the last name of the path."""
        head, _, name = self.path.rpartition("/")
        if self.kind == "file":
            head = head or "/"
        return Location(self.kind, self.bucket, head, self.host), name


def file_uri(path: str) -> str:
    """The `file:` URI of an absolute local path, percent-encoded."""
    encoded = encode_path(path.rstrip("/"))
    return f"file://{encoded or '/'}"


def encode_path(path: str) -> str:
    """A local path as it stands in a `file:` URI."""
    return quote(os.fsencode(path), safe="/!$&'()*+,;=:@~")


def has_scheme(text: str) -> bool:
    """True when `text` is a URI of its own rather than a path.

    A name such as `12:30` or `run:1` is a path; `s3:...` and `anything:/...` are not.
    """
    match = _SCHEME.match(text)
    return match is not None and (match[1].lower() in _SCHEMES or match[2].startswith("/"))


def parse_url(text: str | os.PathLike[str]) -> Location:
    """Understand any address of a table, or raise an error that names the accepted forms."""
    if isinstance(text, os.PathLike):
        return _local(os.fspath(text), text=os.fspath(text))
    if not text or not text.strip():
        raise StorageError(f"The address of the table is empty. Give {_FORMS}.", uri=text)
    if not has_scheme(text):
        return _local(text, text=text)
    match = _SCHEME.match(text)
    assert match is not None
    scheme, rest = match[1].lower(), match[2]
    kind = _SCHEMES.get(scheme)
    if kind not in {"file", "memory"} and hide_signature(text) != text:
        # It would stand in every message, and in the log.
        shown = hide_signature(text)
        raise StorageError(
            f"The address {shown} carries credentials. Leave them out and give them as options, or leave "
            f"them to the environment. Give {_FORMS}.",
            uri=shown,
        )
    if kind is None:
        raise StorageError(
            f"{text!r}: tables cannot be kept under {scheme}:. Give {_FORMS}. "
            f"If this is a local path with a colon in it, write ./{text}",
            uri=text,
        )
    if kind == "file":
        return _local(_file_path(rest, text=text), text=text)
    if kind == "memory":
        name, _, path = rest.lstrip("/").partition("/")
        return Location("memory", name, _key(path, text=text))
    return _bucket(kind, scheme, rest, text=text)


def _local(path: str, *, text: str) -> Location:
    if not path or "\0" in path:
        raise StorageError(f"{text!r} is not a path. Give {_FORMS}.", uri=text)
    return Location("file", "", os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps '..'


def _file_path(rest: str, *, text: str) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in {"", "localhost"}:
            raise StorageError(
                f"{text!r} names the host {host!r}, and only local files can be opened this way. "
                f"For a local path write three slashes: file:///{host}/...",
                uri=text,
            )
        rest = slash + path
    return unquote(rest, errors="surrogateescape")


def _bucket(kind: Kind, scheme: str, rest: str, *, text: str) -> Location:
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", "")
    bucket, at, host = authority.partition("@")
    if not bucket or (at and not host) or (at and kind != "azure"):
        form = (
            f"{scheme}://container@account.dfs.core.windows.net"
            if scheme[0] in "aw"
            else f"{scheme}://bucket"
        )
        if at and ":" in bucket:
            # What stands before the @ is a key and its secret: it must not be repeated in a message.
            raise StorageError(
                f"An address {scheme}://...@{host} carries credentials. Write it as {form}/path and give "
                "them as options, or leave them to the environment."
            )
        raise StorageError(f"{text!r} is not complete. Write it as {form}/path.", uri=text)
    key = _key(path, text=text)
    if kind == "azure" and host:
        host = host.lower().replace(".blob.", ".dfs.", 1)
        if "." not in host:
            host = f"{host}.dfs.core.windows.net"
        return Location("azure", bucket, key, host)
    return Location(kind, bucket, key)


def _key(path: str, *, text: str) -> str:
    parts = [part for part in path.split("/") if part]
    if any(part in {".", ".."} for part in parts):
        raise StorageError(
            f"{text!r}: an object store has no '.' or '..' directories. Write the path out in full.", uri=text
        )
    return "/".join(parts)
