"""Names in a Delta log: those of its own files, and the paths of data files.

Versions are twenty digits. A checkpoint is one Parquet file (`classic`), several numbered
ones (`multipart`), or a file with a UUID in its name, JSON or Parquet, that may point to
sidecars (`uuid`). A compacted file replaces a range of commits. Files with any other name
do not belong to the log.

Paths of data files are percent-encoded in the log, once. They are decoded when they are
read, so that keys compare real names.
"""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import unquote

from indextables.records import dataclass

LOG_DIR = "_delta_log"
# What to do about a damaged or missing log file. Nothing here writes to a Delta log.
ADVICE = "Restore the file from a backup, or read a version that is whole."

LOCAL_SCHEME = re.compile(r"^file:(?://(?:localhost)?)?/+")
HERE = re.compile(r"(^|/)(?:\./)+")
"""The folder `.` in a path."""
_NOT_AN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("commit", re.compile(r"(?P<version>[0-9]{20})\.json")),
    ("classic", re.compile(r"(?P<version>[0-9]{20})\.checkpoint\.parquet")),
    (
        "multipart",
        re.compile(r"(?P<version>[0-9]{20})\.checkpoint\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"),
    ),
    (
        "uuid",
        re.compile(rf"(?P<version>[0-9]{{20}})\.checkpoint\.(?P<uuid>{_UUID})\.(?P<format>json|parquet)"),
    ),
    ("compacted", re.compile(r"(?P<version>[0-9]{20})\.(?P<end>[0-9]{20})\.compacted\.json")),
    ("crc", re.compile(r"(?P<version>[0-9]{20})\.crc")),
)


@dataclass(frozen=True, slots=True)
class DeltaName:
    """What the name of a log file says."""

    kind: str
    version: int
    end: int | None = None
    part: int | None = None
    parts: int | None = None
    uuid: str | None = None
    format: str = "json"


def parse_log_name(name: str) -> DeltaName | None:
    """Parse the name of a file directly in `_delta_log`; None when it does not belong to the log."""
    for kind, pattern in _PATTERNS:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        groups = match.groupdict()
        part, parts, end = (int(groups[key]) if groups.get(key) else None for key in ("part", "parts", "end"))
        version = int(groups["version"])
        if part is not None and parts is not None and not 1 <= part <= parts:
            return None
        if end is not None and end <= version:
            return None
        extension = groups.get("format") or ("parquet" if name.endswith(".parquet") else "json")
        return DeltaName(kind, version, end, part, parts, groups.get("uuid"), extension)
    return None


def key_path(path: str) -> str:
    """A decoded path in comparable form: `file:/x`, `file:///x` and `/x` are one file."""
    return LOCAL_SCHEME.sub("/", path) if path.startswith("file:") else path


def decode_path(path: str) -> str:
    """Undo the percent-encoding of a path, exactly once; a path that was never encoded is unchanged.

    `./f` is the file `f`: the folder `.` is left out.
    """
    if "%" in path and not _NOT_AN_ESCAPE.search(path):
        with suppress(UnicodeDecodeError):
            path = unquote(path, errors="strict")
    return HERE.sub(r"\1", path) if "./" in path else path
