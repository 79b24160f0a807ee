"""A dialect is one way of writing a transaction log: file names, line format and the identity of a file.

There are two: `NATIVE`, the log of IndexTables (`_transaction_log`), and the read-only
Delta dialect. Listing, segments and replay are written once, against the Protocol
`Dialect`. Reading a checkpoint is not part of it: see `CheckpointReader` in
`log.checkpoint.head`, which each dialect implements.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, Protocol

import msgspec

from indextables.errors import ADVICE_ON_DAMAGE, CorruptLogError
from indextables.log.format.binding import check_version
from indextables.log.format.checksum import sealed, unsealed
from indextables.model.actions import Action, AddAction, CommitInfo, RemoveAction, decode_line, encode_action
from indextables.model.lines import decode_many
from indextables.records import dataclass
from indextables.storage.envelope import unpack
from indextables.storage.store import ObjectMeta, Store

logger = logging.getLogger(__name__)

Kind = Literal["commit", "checkpoint", "part", "floor", "compacted", "crc", "sidecar"]
FileKey = Hashable


def digits(version: int) -> str:
    """A version as written in file names: twenty digits, so that names sort as versions do."""
    return f"{version:020d}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log directory, as described by its name."""

    name: str
    """Relative to the log directory."""
    version: int
    kind: Kind
    size: int = 0
    modified_ms: int = 0
    etag: str | None = None
    format: str | None = None
    """`json` or `parquet`, for checkpoints and their parts."""
    part: int | None = None
    parts: int | None = None
    uuid: str | None = None
    last_version: int | None = None
    """The last version of a compacted file's range; `version` is the first."""

    @property
    def identity(self) -> tuple[str, int, int | str]:
        """A value that differs between two files of the same name.

        The entity tag if the store has one: the precision of times differs between a listing and a head
        request.
        """
        return self.name, self.size, self.modified_ms if self.etag is None else self.etag


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint found in the listing; only reading it tells whether its content is sound."""

    version: int
    format: str
    files: tuple[LogFile, ...]
    """The main file (document, manifest, Parquet file) or the parts of a Delta multi-part checkpoint."""
    checksum: str | None = None
    """SHA-256 of the main file's stored bytes, as the hint says; if None, it is not checked."""
    num_files: int | None = None
    """Number of live files, as the hint says; None if unknown."""
    table_id: str | None = None
    """The table it belonged to when its head was first read; another id later means another file."""
    beside_parts: bool = False
    """Whether the listing shows parts of the same version and format."""
    size_bytes: int = 0
    """The size of its files together, parts included; 0 if unknown."""

    @property
    def identity(self) -> tuple[object, ...]:
        """A value that changes when the checkpoint is replaced; caches use it as their key."""
        return self.version, *(file.identity for file in self.files)


@dataclass(frozen=True, slots=True)
class Hint:
    """The content of `_last_checkpoint`; nothing in it is used before the listing confirms it."""

    version: int
    size: int | None = None
    """Number of actions."""
    size_bytes: int | None = None
    num_files: int | None = None
    created_ms: int | None = None
    checksum: str | None = None
    """SHA-256 of the checkpoint's main file as stored."""
    format: str | None = None
    parts: int | None = None


class LogNames:
    """Names and paths of log files, as far as all dialects agree."""

    log_dir: str
    """The log directory, relative to the table."""

    def path(self, name: str) -> str:
        """A file of the log directory as a path of the table's store."""
        return f"{self.log_dir}/{name}"

    def commit_name(self, version: int) -> str:
        """`<20 digits>.json`, relative to the log directory."""
        return f"{digits(version)}.json"

    def commit_file(self, store: Store, version: int) -> LogFile:
        """The commit file of a version, from a request to the store; NotFoundError if there is none."""
        name = self.commit_name(version)
        meta = store.head(self.path(name))
        return LogFile(name, version, "commit", meta.size, meta.modified_ms, meta.etag)


class Dialect(Protocol):
    """File names, line codec and file identity of one kind of log."""

    @property
    def name(self) -> str:
        """`native` or `delta`."""
        ...

    @property
    def log_dir(self) -> str:
        """The log directory, relative to the table."""
        ...

    @property
    def advice(self) -> str:
        """A sentence that says what to do about a damaged or missing log file."""
        ...

    def path(self, name: str) -> str:
        """See `LogNames`."""
        ...

    def commit_name(self, version: int) -> str:
        """See `LogNames`."""
        ...

    def commit_file(self, store: Store, version: int) -> LogFile:
        """See `LogNames`."""
        ...

    def parse_name(self, name: str, meta: ObjectMeta) -> LogFile | None:
        """Read a name of the log directory; None when it is not a log file."""
        ...

    def decode_commit(self, data: bytes, *, name: str, version: int) -> list[Action]:
        """Read the stored bytes of a commit file; raises CorruptLogError naming file, version and line."""
        ...

    def decode_hint(self, data: bytes) -> Hint | None:
        """Parse `_last_checkpoint`; None when it is not valid."""
        ...

    def checkpoints(self, files: Sequence[LogFile]) -> list[Checkpoint]:
        """The checkpoints a listing shows as complete, best first (newest version first)."""
        ...

    def key(self, action: AddAction | RemoveAction) -> FileKey:
        """The key of an action; two actions with the same key are about the same file."""
        ...


class _HintWire(msgspec.Struct):
    version: int
    size: int | None = None
    sizeInBytes: int | None = None  # noqa: N815 - wire name
    numFiles: int | None = None  # noqa: N815 - wire name
    numOfAddFiles: int | None = None  # noqa: N815 - wire name
    createdTime: int | None = None  # noqa: N815 - wire name
    checksum: str | None = None
    format: str | None = None
    parts: int | None = None


_HINTS = msgspec.json.Decoder(_HintWire)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMMIT = re.compile(r"[0-9]{20}\.json", re.ASCII)
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.(json|parquet)", re.ASCII)
_PART = re.compile(
    r"([0-9]{20})\.checkpoint\.([0-9A-Za-z-]+)\.([0-9]{5,})of([0-9]{5,})\.(json|parquet)", re.ASCII
)
_FLOOR = re.compile(r"[0-9]{20}\.floor", re.ASCII)
_LINE = re.compile(rb"[^\n]+")
_LAST_VERSION = digits((1 << 63) - 1)
"""Versions are 64-bit numbers; a name with a larger one does not belong to the log."""


class NativeDialect(LogNames):
    """The log of IndexTables: 20-digit names, JSON lines, optionally gzip; files are keyed by path."""

    name = "native"
    log_dir = "_transaction_log"
    advice = ADVICE_ON_DAMAGE

    def checkpoint_name(self, version: int, file_format: str = "json") -> str:
        """`<20 digits>.checkpoint.json` or `.parquet`."""
        return f"{digits(version)}.checkpoint.{file_format}"

    def part_name(self, version: int, uuid: str, part: int, parts: int, file_format: str = "json") -> str:
        """`<20 digits>.checkpoint.<uuid>.<i>of<n>.json`, counted from 1."""
        return f"{digits(version)}.checkpoint.{uuid}.{part:05d}of{parts:05d}.{file_format}"

    def floor_name(self, version: int) -> str:
        """`<20 digits>.floor`: versions before this one are no longer part of the history."""
        return f"{digits(version)}.floor"

    def parse_name(self, name: str, meta: ObjectMeta) -> LogFile | None:
        """Read a name of the log directory; None when it is not a log file."""
        size, modified_ms, etag = meta.size, meta.modified_ms, meta.etag
        if name[:20].isdigit() and name[:20] > _LAST_VERSION:
            return None
        if _COMMIT.fullmatch(name):
            return LogFile(name, int(name[:20]), "commit", size, modified_ms, etag)
        match = _CHECKPOINT.fullmatch(name)
        if match:
            return LogFile(name, int(match[1]), "checkpoint", size, modified_ms, etag, format=match[2])
        match = _PART.fullmatch(name)
        if match:
            return LogFile(
                name, int(match[1]), "part", size, modified_ms, etag,
                format=match[5], part=int(match[3]), parts=int(match[4]), uuid=match[2],
            )  # fmt: skip
        if _FLOOR.fullmatch(name):
            return LogFile(name, int(name[:20]), "floor", size, modified_ms, etag)
        return None

    def decode_commit(self, data: bytes, *, name: str, version: int) -> list[Action]:
        """Read the stored bytes of a commit file; raises CorruptLogError naming file, version and line."""
        if not data:
            raise CorruptLogError(
                f"{name} (version {version}) is empty. On a file system without hard links that is what a "
                "writer leaves that was killed while it created the version: nothing of it was acknowledged, "
                f"and deleting the file lets others go on. Anywhere else its content was lost. {self.advice}",
                file=name, version=version,
            )  # fmt: skip
        text = unsealed(unpack(data, name=name), name, version)
        actions = decode_many(text, name=name, version=version)
        if actions or text.removeprefix(_BYTE_ORDER_MARK).strip():
            decoded = decode_lines(text, name=name, version=version) if actions is None else actions
            if not decoded:
                raise CorruptLogError(
                    f"{name} (version {version}) is not a version file: it holds no action of a known kind. "
                    f"It was overwritten with another file. {self.advice}",
                    file=name, version=version,
                )  # fmt: skip
            check_version(decoded, name, version)
            return decoded
        raise CorruptLogError(
            f"{name} (version {version}) holds no action: its content was lost. {self.advice}",
            file=name, version=version,
        )  # fmt: skip

    def decode_info(self, data: bytes, *, name: str) -> CommitInfo | None:
        """The commitInfo of a commit file if it is the last line, else None."""
        last = unsealed(unpack(data, name=name), name, int(name[:20])).rstrip().rpartition(b"\n")[2]
        if not last.startswith(b'{"commitInfo"'):
            return None
        decoded = decode_lines(last, name=name, version=int(name[:20]))
        check_version(decoded, name, int(name[:20]))
        return decoded[0] if decoded and isinstance(decoded[0], CommitInfo) else None

    def encode_commit(self, actions: Iterable[Action]) -> bytes:
        """The JSON lines of a commit, without the envelope."""
        return sealed(b"".join(encode_action(action) + b"\n" for action in actions))

    def decode_hint(self, data: bytes) -> Hint | None:
        """Parse `_last_checkpoint`; None when it is not valid."""
        try:
            wire = _HINTS.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if wire.version < 0:
            return None
        num_files = wire.numFiles if wire.numFiles is not None else wire.numOfAddFiles
        return Hint(
            wire.version, wire.size, wire.sizeInBytes, num_files, wire.createdTime,
            wire.checksum, wire.format, wire.parts,
        )  # fmt: skip

    def checkpoints(self, files: Sequence[LogFile]) -> list[Checkpoint]:
        """One candidate per main file, newest first; Parquet before JSON where both exist."""
        mains = [file for file in files if file.kind == "checkpoint"]
        mains.sort(key=lambda file: (file.version, file.format == "parquet"), reverse=True)
        parts_bytes: dict[tuple[int, str | None], int] = {}
        for file in files:
            if file.kind == "part":
                key = file.version, file.format
                parts_bytes[key] = parts_bytes.get(key, 0) + file.size
        return [
            Checkpoint(
                file.version,
                file.format or "json",
                (file,),
                beside_parts=(file.version, file.format) in parts_bytes,
                size_bytes=file.size + parts_bytes.get((file.version, file.format), 0),
            )
            for file in mains
        ]

    def key(self, action: AddAction | RemoveAction) -> FileKey:
        """The path."""
        return action.path


def decode_lines(text: bytes, *, name: str, version: int, advice: str = NativeDialect.advice) -> list[Action]:
    """Parse JSON lines; blank lines, CRLF and a byte-order mark are accepted, unknown actions skipped."""
    actions: list[Action] = []
    # One at a time: a file of nothing but line ends must not become a list of empty lines.
    for line in _LINE.finditer(text.removeprefix(_BYTE_ORDER_MARK)):
        stripped = line[0].strip()
        if not stripped:
            continue
        try:
            action = decode_line(stripped)
        except CorruptLogError as bad:
            number = line.string.count(b"\n", 0, line.start()) + 1
            raise CorruptLogError(
                f"line {number} of {name} (version {version}) cannot be read: {bad.message}. {advice}",
                file=name, version=version, line=number,
            ) from bad  # fmt: skip
        if action is None:
            logger.debug("%s holds an action of a kind this version does not know: %.80s", name, stripped)
        else:
            actions.append(action)
    return actions


NATIVE = NativeDialect()
