"""A dialect is one way of writing a transaction log: file names, line codec and what identifies a file.

Two exist: `NATIVE`, the log of IndexTables (`_transaction_log`), and the
read-only Delta dialect. Listing, segments and replay are written once against
the Protocol. Reading a checkpoint is not part of it: see `CheckpointReader` in
`replay`, which the two dialects implement differently.
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
Key = Hashable


def digits(version: int) -> str:
    """A version as it stands in names: twenty digits, so that names sort as versions do."""
    return f"{version:020d}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log directory, as its name describes it."""

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
    """The upper end of a compacted file; `version` is its lower end."""

    @property
    def identity(self) -> tuple[str, int, int | str]:
        """What changes when the file is another file of the same name.

        The entity tag where the store has one: times differ in precision between a listing and a head.
        """
        return self.name, self.size, self.modified_ms if self.etag is None else self.etag


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as the listing shows it: whether its content is sound is known once it is read."""

    version: int
    format: str
    files: tuple[LogFile, ...]
    """The main file (document, manifest, Parquet file) or the parts of a Delta multi-part checkpoint."""
    checksum: str | None = None
    """SHA-256 of the main file's stored bytes, from the hint; None is not checked."""
    num_files: int | None = None
    """Live files, from the hint; None is unknown."""
    table_id: str | None = None
    """The table it was found to belong to when its head was read; it is the same file only while it does."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What changes when the checkpoint is another one; base tables are kept under it."""
        return self.version, *(file.identity for file in self.files)


@dataclass(frozen=True, slots=True)
class Hint:
    """What `_last_checkpoint` says; nothing in it is believed before the listing confirms it."""

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
    """Where the files of a log lie: what every dialect says in the same way."""

    log_dir: str
    """The log directory, relative to the table."""

    def path(self, name: str) -> str:
        """A file of the log directory as a path of the table's store."""
        return f"{self.log_dir}/{name}"

    def commit_name(self, version: int) -> str:
        """`<20 digits>.json`, relative to the log directory."""
        return f"{digits(version)}.json"

    def commit_file(self, store: Store, version: int) -> LogFile:
        """The commit file of a version, asked of the store; NotFoundError where there is none."""
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
        """What to do about a log file that is damaged or gone, as a sentence."""
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
        """Read `_last_checkpoint`; None when it makes no sense."""
        ...

    def checkpoints(self, files: Sequence[LogFile]) -> list[Checkpoint]:
        """The checkpoints a listing shows as complete, best first (newest version first)."""
        ...

    def key(self, action: AddAction | RemoveAction) -> Key:
        """What makes two actions be about the same file."""
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
"""Versions are 64-bit numbers; a larger one in a name is a stranger's."""


class NativeDialect(LogNames):
    """The log of IndexTables: 20 digits, JSON lines in an optional gzip envelope, files known by path."""

    name = "native"
    log_dir = "_transaction_log"
    advice = ADVICE_ON_DAMAGE

    def checkpoint_name(self, version: int, form: str = "json") -> str:
        """`<20 digits>.checkpoint.json` or `.parquet`."""
        return f"{digits(version)}.checkpoint.{form}"

    def part_name(self, version: int, uuid: str, part: int, parts: int, form: str = "json") -> str:
        """`<20 digits>.checkpoint.<uuid>.<i>of<n>.json`, counted from 1."""
        return f"{digits(version)}.checkpoint.{uuid}.{part:05d}of{parts:05d}.{form}"

    def floor_name(self, version: int) -> str:
        """`<20 digits>.floor`: the versions before this one are history no longer."""
        return f"{digits(version)}.floor"

    def parse_name(self, name: str, meta: ObjectMeta) -> LogFile | None:
        """Read a name of the log directory; None when it is not a log file."""
        size, modified_ms, etag = meta.size, meta.modified_ms, meta.etag
        if name[:20].isdigit() and name[:20] > _LAST_VERSION:
            return None
        if _COMMIT.fullmatch(name):
            return LogFile(name, int(name[:20]), "commit", size, modified_ms, etag)
        found = _CHECKPOINT.fullmatch(name)
        if found:
            return LogFile(name, int(found[1]), "checkpoint", size, modified_ms, etag, format=found[2])
        found = _PART.fullmatch(name)
        if found:
            return LogFile(
                name, int(found[1]), "part", size, modified_ms, etag,
                format=found[5], part=int(found[3]), parts=int(found[4]), uuid=found[2],
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
            found = decode_lines(text, name=name, version=version) if actions is None else actions
            check_version(found, name, version)
            return found
        raise CorruptLogError(
            f"{name} (version {version}) holds no action: its content was lost. {self.advice}",
            file=name, version=version,
        )  # fmt: skip

    def decode_info(self, data: bytes, *, name: str) -> CommitInfo | None:
        """The commitInfo of a commit file, which is its last line; None when it is not."""
        last = unsealed(unpack(data, name=name), name, int(name[:20])).rstrip().rpartition(b"\n")[2]
        if not last.startswith(b'{"commitInfo"'):
            return None
        found = decode_lines(last, name=name, version=int(name[:20]))
        check_version(found, name, int(name[:20]))
        return found[0] if found and isinstance(found[0], CommitInfo) else None

    def encode_commit(self, actions: Iterable[Action]) -> bytes:
        """The JSON lines of a commit, before the envelope."""
        return sealed(b"".join(encode_action(action) + b"\n" for action in actions))

    def decode_hint(self, data: bytes) -> Hint | None:
        """Read `_last_checkpoint`; None when it makes no sense."""
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
        return [Checkpoint(file.version, file.format or "json", (file,)) for file in mains]

    def key(self, action: AddAction | RemoveAction) -> Key:
        """The path."""
        return action.path


def decode_lines(text: bytes, *, name: str, version: int, advice: str = NativeDialect.advice) -> list[Action]:
    """Read JSON lines; blank lines, CRLF and a byte-order mark are fine, unknown kinds are left out."""
    actions: list[Action] = []
    # Found one by one: a file of nothing but line ends must not become a list of them.
    for found in _LINE.finditer(text.removeprefix(_BYTE_ORDER_MARK)):
        stripped = found[0].strip()
        if not stripped:
            continue
        try:
            action = decode_line(stripped)
        except CorruptLogError as bad:
            number = found.string.count(b"\n", 0, found.start()) + 1
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
