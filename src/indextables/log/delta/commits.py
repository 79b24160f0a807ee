"""Decodes commits of a Delta log with no more work than a replay needs.

A long tail of commits holds tens of thousands of adds, and for most of them a query needs
only the path. So each line is decoded into a typed structure, and the fields of the
action are filled in when one of them is first read. A file that does not fit the types
exactly is read by the general decoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec.structs import astuple

from indextables.errors import CorruptLogError
from indextables.log.delta.paths import ADVICE, decode_path, key_path
from indextables.log.format.dialect import decode_lines
from indextables.model.actions import LARGEST, Action, AddAction, RemoveAction, action_from_wire
from indextables.model.lines import LazyAction, lazy_action
from indextables.storage.deletion_vectors import unique_id

_NO_EXTRA: Mapping[str, Any] = MappingProxyType({})
_LONG = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_INT = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_REST = ("protocol", "metaData", "txn", "commitInfo")
_NO_REST = [None] * len(_REST)
# Engines whose maximum is NaN if the column holds NaN. Others, such as delta-rs, ignore NaN.
_COUNT_NAN = ("Apache-Spark/", "Databricks-Runtime/")


# What is decoded from a line holds no cycles, so the garbage collector need not look through it.
class _Vector(msgspec.Struct, gc=False):
    storageType: str  # noqa: N815 - wire name
    pathOrInlineDv: str  # noqa: N815 - wire name
    sizeInBytes: _INT  # noqa: N815 - wire name
    cardinality: _LONG
    offset: _INT | None = None

    def wire(self) -> dict[str, Any]:
        """The descriptor as the log has it."""
        body = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in body.items() if value is not None}


class _Add(msgspec.Struct, gc=False):
    path: str
    partitionValues: dict[str, str | None] = {}  # noqa: N815 - wire name
    size: _LONG = 0
    modificationTime: _LONG = 0  # noqa: N815 - wire name
    dataChange: bool = True  # noqa: N815 - wire name
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletionVector: _Vector | None = None  # noqa: N815 - wire name


class _Remove(msgspec.Struct, gc=False):
    path: str
    dataChange: bool = True  # noqa: N815 - wire name
    deletionVector: _Vector | None = None  # noqa: N815 - wire name


class _Line(msgspec.Struct, gc=False):
    add: _Add | None = None
    remove: _Remove | None = None
    protocol: Any = None
    metaData: Any = None  # noqa: N815 - wire name
    txn: Any = None
    commitInfo: dict[str, Any] | None = None  # noqa: N815 - wire name


_LINES = msgspec.json.Decoder(_Line)


class DeltaAdd(LazyAction, AddAction):
    """An add whose fields are filled in from its decoded line when one of them is first read."""

    __slots__ = ("source",)
    source: _Add
    counts_nan: ClassVar[bool] = False
    # Fields that only the native log has.
    min_values = max_values = num_records = None
    footer_start_offset = footer_end_offset = hotcache_start_offset = hotcache_length = None
    has_footer_offsets = False
    footer_crc = None
    time_range_start = time_range_end = split_tags = delete_opstamp = num_merge_ops = None
    doc_mapping_json = uncompressed_size_bytes = None

    def read_fields(self) -> Mapping[str, Any]:
        """The fields, from the decoded line."""
        wire = self.source
        return {
            "partition_values": wire.partitionValues,
            "size": wire.size,
            "modification_time": wire.modificationTime,
            "data_change": wire.dataChange,
            "stats": wire.stats,
            "tags": wire.tags,
            "deletion_vector": _vector(wire),
            "extra": _NO_EXTRA,
        }


class _CountingNan(DeltaAdd):
    """An add by a writer whose maxima take NaN into account."""

    __slots__ = ()
    counts_nan = True


class DeltaRemove(LazyAction, RemoveAction):
    """A remove whose fields are filled in from its decoded line when one of them is first read."""

    __slots__ = ("source",)
    source: _Remove
    deletion_timestamp = extended_file_metadata = partition_values = size = tags = None

    def read_fields(self) -> Mapping[str, Any]:
        """The fields, from the decoded line."""
        wire = self.source
        return {"data_change": wire.dataChange, "deletion_vector": _vector(wire), "extra": _NO_EXTRA}


def _vector(wire: _Add | _Remove) -> Mapping[str, Any] | None:
    return None if wire.deletionVector is None else wire.deletionVector.wire()


def key_of(action: AddAction | RemoveAction) -> tuple[str, str | None]:
    """The key of an action: its path in comparable form, and the id of its deletion vector."""
    # Asked once for every line of the log: a union of the types would be made anew each time.
    if isinstance(action, (DeltaAdd, DeltaRemove)) and action.source.deletionVector is None:
        path = action.path
        return (key_path(path) if path.startswith("file:") else path), None
    return key_path(action.path), unique_id(action.deletion_vector)


def decode_commit(data: bytes, *, name: str, version: int, engine: str | None = None) -> list[Action]:
    """The actions of a commit file, paths decoded; an empty file is an error.

    `engine` names the writer when `data` is only part of a commit and does not include its commitInfo.
    """
    if not data.strip():
        raise CorruptLogError(
            f"{name} (version {version}) is empty, and a commit has at least one action. {ADVICE}",
            file=name,
            version=version,
        )
    try:
        return _quickly(data, engine)
    except (msgspec.MsgspecError, UnicodeDecodeError, CorruptLogError):
        # The general decoder tells unusual lines from wrong ones and reports the number of a wrong line.
        text = b"\n".join(_readable(line) for line in data.split(b"\n"))
        actions = decode_lines(text, name=name, version=version, advice=ADVICE)
        return [_decoded(action, name, version) for action in actions]


def counts_nan(add: AddAction) -> bool:
    """Whether the writer of an add is known to take NaN into account in its maxima, as Spark does."""
    return isinstance(add, DeltaAdd) and add.counts_nan


def _quickly(data: bytes, engine: str | None) -> list[Action]:
    actions: list[Action] = []
    lines = _LINES.decode_lines(data)
    engine = next((line.commitInfo.get("engineInfo") for line in lines if line.commitInfo), engine)
    kind = _CountingNan if str(engine).startswith(_COUNT_NAN) else DeltaAdd
    for add, remove, *rest in map(astuple, lines):
        # One line per action is the rule, but a line may hold several. A file is removed before it is added.
        if remove is not None:
            actions.append(lazy_action(DeltaRemove, decode_path(remove.path), remove))
        if add is not None:
            actions.append(lazy_action(kind, decode_path(add.path), add))
        if rest == _NO_REST:
            continue
        for key, body in zip(_REST, rest, strict=True):
            action = None if body is None else action_from_wire(key, body)
            if action is not None:
                actions.append(action)
    return actions


def _readable(line: bytes) -> bytes:
    """The actions of a line, one each, without statistics that are not valid text (half a surrogate pair)."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(document, dict):
        return line
    bodies = {key: document[key] for key in ("remove", "add", *_REST) if document.get(key) is not None}
    add = bodies.get("add")
    if isinstance(add, dict):
        stats = add.get("stats")
        if not (stats is None or isinstance(stats, dict) or (isinstance(stats, str) and _is_text(stats))):
            return b"\n".join(_written({**bodies, "add": {**add, "stats": None}}))
    return line if len(bodies) <= 1 else b"\n".join(_written(bodies))


def _written(bodies: Mapping[str, Any]) -> Iterator[bytes]:
    return (json.dumps({key: body}).encode() for key, body in bodies.items())


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _decoded(action: Action, name: str, version: int) -> Action:
    if not isinstance(action, AddAction | RemoveAction):
        return action
    vector = action.deletion_vector
    if vector is not None:
        try:
            msgspec.convert(vector, _Vector)
        except msgspec.ValidationError as bad:
            raise CorruptLogError(
                f"{name} (version {version}) has a deletion vector that cannot be read: {bad}. {ADVICE}",
                file=name, version=version,
            ) from bad  # fmt: skip
    path = decode_path(action.path)
    return action if path == action.path else replace(action, path=path)
