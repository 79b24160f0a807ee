"""The actions of the transaction log and their JSON form.

A log file is a sequence of JSON objects with one key each: the kind of action, with the
action's fields as its value. The Python attributes are the JSON names in snake case, so
the mapping is derived once, here, from the dataclasses. Fields this version does not know
are kept in `extra` and written back unchanged, so that rewriting an action never drops
what a newer writer added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from indextables.errors import CommitError, CorruptLogError
from indextables.model.column_names import ColumnNames
from indextables.records import dataclass

LARGEST = (1 << 63) - 1
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, the range of Python's `datetime`, in milliseconds."""


def _whole(value: Any) -> int:
    """Read a count that may arrive as an int, a float or a string."""
    if isinstance(value, bool):
        raise TypeError("a boolean is not a number")
    number = value
    if isinstance(value, str):
        number = int(value) if _plain(value) else float(value)
    if isinstance(number, float) and not number.is_integer():
        raise ValueError(f"{value!r} is not a whole number")
    if not -LARGEST <= number <= LARGEST:
        raise ValueError(f"{value!r} is more than 64 bits can hold")
    return int(number)


def _count(value: Any) -> int:
    """Read a number of rows or bytes."""
    number = _whole(value)
    if number < 0:
        raise ValueError(f"{value!r} is negative")
    return number


def _moment(value: Any) -> int:
    """Read a time in milliseconds that lies within the calendar's range."""
    number = _whole(value)
    if not FIRST_MS <= number <= LAST_MS:
        raise ValueError(f"{value!r} is not a time between the years 1 and 9999")
    return number


def _plain(text: str) -> bool:
    return text.lstrip("+-").isdigit()


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise TypeError(f"{value!r} is not a boolean")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _document(value: Any) -> str:
    """Statistics in the log are JSON text or an object; in memory they are always text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _map(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not an object")
    return dict(value)


def _strings(value: Any) -> dict[str, str | None]:
    return {key: None if item is None else _scalar_text(item) for key, item in _map(value).items()}


def _scalar_text(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, bool):
        return "true" if item else "false"
    return msgspec.json.encode(item).decode()


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{value!r} is not a list")
    return tuple(_text(item) for item in value)


def _wire(read: Callable[[Any], Any], default: Any = dataclasses.MISSING) -> Any:
    """Declare a field with the function that reads its JSON value; `default` makes it optional."""
    metadata = {"read": read}
    if default is dataclasses.MISSING:
        return field(metadata=metadata)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _native_format() -> dict[str, Any]:
    return {"provider": "indextables", "options": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolAction:
    """Which reader and writer versions and features the table needs."""

    min_reader_version: int = _wire(_count)
    min_writer_version: int = _wire(_count)
    reader_features: tuple[str, ...] | None = _wire(_names, None)
    writer_features: tuple[str, ...] | None = _wire(_names, None)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAction:
    """The schema, partitioning and properties of the table."""

    id: str = _wire(_text)
    """The id of this log; a repair gives the log a new one."""
    name: str | None = _wire(_text, None)
    description: str | None = _wire(_text, None)
    format: Mapping[str, Any] = _wire(_map, _native_format)
    schema_string: str = _wire(_document, "")
    partition_columns: tuple[str, ...] = _wire(_names, ())
    configuration: Mapping[str, str | None] = _wire(_strings, dict)
    created_time: int | None = _wire(_moment, None)
    split_table_id: str | None = _wire(_text, None)
    """The table id in the footers of the splits, if a repair gave the log another id."""
    column_mapping: Mapping[str, Any] | None = _wire(_map, None)
    """Under which names columns are stored, once one was renamed or dropped; see `model.column_mapping`."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAction:
    """A split that is part of the table, with what is known of its rows."""

    path: str = _wire(_text)
    partition_values: Mapping[str, str | None] = _wire(_strings, dict)
    size: int = _wire(_count, 0)
    modification_time: int = _wire(_moment, 0)
    data_change: bool = _wire(_flag, True)
    stats: str | None = _wire(_document, None)
    tags: Mapping[str, str | None] | None = _wire(_strings, None)
    min_values: Mapping[str, str | None] | None = _wire(_strings, None)
    max_values: Mapping[str, str | None] | None = _wire(_strings, None)
    num_records: int | None = _wire(_count, None)
    footer_start_offset: int | None = _wire(_count, None)
    footer_end_offset: int | None = _wire(_count, None)
    hotcache_start_offset: int | None = _wire(_count, None)
    hotcache_length: int | None = _wire(_count, None)
    has_footer_offsets: bool = _wire(_flag, False)
    footer_crc: str | None = _wire(_text, None)
    """The checksum of the split's footer, which covers everything else: it identifies the content of a split.
    """
    time_range_start: str | None = _wire(_scalar_text, None)
    time_range_end: str | None = _wire(_scalar_text, None)
    split_tags: tuple[str, ...] | None = _wire(_names, None)
    delete_opstamp: int | None = _wire(_whole, None)
    num_merge_ops: int | None = _wire(_count, None)
    doc_mapping_json: str | None = _wire(_document, None)
    uncompressed_size_bytes: int | None = _wire(_count, None)
    deletion_vector: Mapping[str, Any] | None = _wire(_map, None)
    """The descriptor of the rows that are no longer there, as `storage.deletion_vectors` reads it. Counts and
    statistics of an add are those of all rows of its file."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    names: ColumnNames | None = field(default=None, compare=False)
    """Not in the log: the columns in whose place the stored names stand that this action has."""

    @property
    def values(self) -> Mapping[str, str | None]:
        """The partition values by the table's names."""
        values = self.partition_values or {}
        return values if self.names is None else self.names.of_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAction:
    """A tombstone: the split is no longer part of the table."""

    path: str = _wire(_text)
    deletion_timestamp: int | None = _wire(_moment, None)
    data_change: bool = _wire(_flag, True)
    extended_file_metadata: bool | None = _wire(_flag, None)
    partition_values: Mapping[str, str | None] | None = _wire(_strings, None)
    size: int | None = _wire(_count, None)
    tags: Mapping[str, str | None] | None = _wire(_strings, None)
    deletion_vector: Mapping[str, Any] | None = _wire(_map, None)
    """The deletion vector that the split had."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipAction:
    """A split that an operation could not handle and should leave alone for a while."""

    path: str = _wire(_text)
    skip_timestamp: int = _wire(_moment)
    reason: str = _wire(_text)
    operation: str = _wire(_text)
    partition_values: Mapping[str, str | None] | None = _wire(_strings, None)
    size: int | None = _wire(_count, None)
    retry_after: int | None = _wire(_moment, None)
    skip_count: int = _wire(_count, 1)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnAction:
    """The last batch an application wrote, so that every batch is written exactly once."""

    app_id: str = _wire(_text)
    version: int = _wire(_whole)
    last_updated: int | None = _wire(_moment, None)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """When and by which operation a version was written, with its parameters and metrics."""

    timestamp: int | None = _wire(_moment, None)
    operation: str | None = _wire(_text, None)
    operation_parameters: Mapping[str, Any] = _wire(_map, dict)
    operation_metrics: Mapping[str, Any] = _wire(_map, dict)
    user_metadata: str | None = _wire(_text, None)
    engine_info: str | None = _wire(_text, None)
    commit_id: str | None = _wire(_text, None)
    previous_commit_id: str | None = _wire(_text, None)
    """The id of the commit before this one: with it a writer in doubt finds out whether its own commit
    counts."""
    retired: bool = _wire(_flag, False)
    """Whether the rest of this commit was erased because its version is no longer part of the history."""
    table_id: str | None = _wire(_text, None)
    version: int | None = _wire(_whole, None)
    extra: Mapping[str, Any] = field(default_factory=dict)


Action = ProtocolAction | MetadataAction | AddAction | RemoveAction | SkipAction | TxnAction | CommitInfo
A = TypeVar("A", bound=Action)

KINDS: Mapping[str, type[Action]] = MappingProxyType(
    {
        "protocol": ProtocolAction,
        "metaData": MetadataAction,
        "add": AddAction,
        "remove": RemoveAction,
        "mergeskip": SkipAction,
        "txn": TxnAction,
        "commitInfo": CommitInfo,
    }
)
WIRE_KEYS: Mapping[type[Action], str] = MappingProxyType({kind: key for key, kind in KINDS.items()})

# Written even when they equal their default, since readers of the format expect them.
_ALWAYS = {
    "id", "format", "schemaString", "partitionColumns", "configuration",
    "path", "partitionValues", "size", "modificationTime", "dataChange", "skipCount",
}  # fmt: skip


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


_PLAIN: Mapping[Callable[[Any], Any], type] = {
    _whole: int, _count: int, _moment: int, _flag: bool, _text: str, _document: str, _map: dict,
    _strings: dict, _names: tuple, _scalar_text: str,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _WireField:
    attribute: str
    wire: str
    read: Callable[[Any], Any]
    default: Any
    always: bool
    plain: type
    """The usual type of its values; a value of another type is passed to the reader before it is written."""


def _wire_fields(kind: type[Action]) -> tuple[_WireField, ...]:
    fields = []
    for item in dataclasses.fields(kind):
        if "read" not in item.metadata:
            continue
        wire = _camel(item.name)
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        always = default is dataclasses.MISSING or (wire in _ALWAYS and default is not None)
        read = item.metadata["read"]
        fields.append(_WireField(item.name, wire, read, default, always, _PLAIN[read]))
    return tuple(fields)


_FIELDS: Mapping[type[Action], tuple[_WireField, ...]] = {kind: _wire_fields(kind) for kind in KINDS.values()}
_BY_WIRE = {kind: {item.wire: item for item in items} for kind, items in _FIELDS.items()}


def action_from_wire(key: str, body: Any) -> Action | None:
    """Build the action of one log object; None for a kind this version does not know."""
    kind = KINDS.get(key)
    if kind is None:
        return None
    if not isinstance(body, dict):
        if kind is CommitInfo:
            return CommitInfo()
        raise CorruptLogError(f"a {key!r} action holds {type(body).__name__}, not an object", action=key)
    action_class = _BY_WIRE[kind]
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in body.items():
        item = action_class.get(name)
        if item is None:
            extra[name] = value
        elif value is not None:
            try:
                values[item.attribute] = item.read(value)
            except (TypeError, ValueError, OverflowError) as bad:
                if kind is CommitInfo:
                    # Not needed for replay: a malformed value by another writer must not make the table
                    # unreadable.
                    continue
                raise CorruptLogError(f"field {name!r} of a {key!r} action: {bad}", action=key) from bad
    missing = [
        f.wire for f in _FIELDS[kind] if f.default is dataclasses.MISSING and f.attribute not in values
    ]
    if missing:
        raise CorruptLogError(f"a {key!r} action lacks {', '.join(missing)}", action=key)
    if extra:
        values["extra"] = extra
    return kind(**values)


_WRITTEN_AS_NULL = {(MetadataAction, "name"), (MetadataAction, "description")}


def action_to_wire(action: Action) -> tuple[str, dict[str, Any]]:
    """Return the JSON key and fields of an action; optional fields without a value are left out.

    A table's name and description are null then, as the specification writes them.

    Raises CommitError for an action that could not be read back: once written, it would make the whole table
    unreadable.
    """
    kind = getattr(action, "plain_kind", type(action))
    extra = action.extra
    body: dict[str, Any] = {}
    for item in _FIELDS[kind]:
        value: Any = getattr(action, item.attribute)
        if value is None:
            if item.default is dataclasses.MISSING:
                raise _unwritable(kind, item.wire, "it is None")
            if (kind, item.attribute) in _WRITTEN_AS_NULL:
                body[item.wire] = None
            continue
        if not item.always and value == item.default:
            continue
        if type(value) is not item.plain or (type(value) is int and not 0 <= value <= LAST_MS):
            try:
                item.read(value)
            except (TypeError, ValueError) as bad:
                raise _unwritable(kind, item.wire, str(bad)) from bad
        body[item.wire] = _plain_json(value)
    if extra:
        if not _BY_WIRE[kind].keys().isdisjoint(extra):
            raise _unwritable(kind, "extra", "it holds fields the action has itself")
        body.update(extra)
    return WIRE_KEYS[kind], body


def _unwritable(kind: type[Action], wire: str, reason: str) -> CommitError:
    return CommitError(
        f"an action of kind {WIRE_KEYS[kind]!r} cannot be written, its field {wire!r} could not be "
        f"read back: {reason}. Nothing was written.",
        action=WIRE_KEYS[kind], field=wire,
    )  # fmt: skip


# Checked first, by exact type: most fields have one of these, and a check against an abstract class is
# slow.
_SCALARS = frozenset({str, int, bool, float, type(None)})


def _plain_json(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {key: _plain_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value


_ENCODER = msgspec.json.Encoder()


def encode_action(action: Action) -> bytes:
    """Return the action as one line of a log file, without its newline."""
    key, body = action_to_wire(action)
    try:
        return _ENCODER.encode({key: body})
    except (TypeError, UnicodeEncodeError) as bad:
        raise CommitError(
            f"an action of kind {key!r} cannot be written: {bad}. Nothing was written.", action=key
        ) from bad


def decode_line(line: bytes | str) -> Action | None:
    """Read one line of a log file; None when its kind is not known. Raises CorruptLogError on bad JSON."""
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise CorruptLogError(f"not a JSON object: {bad}") from bad
    if not isinstance(document, dict):
        raise CorruptLogError(f"holds {type(document).__name__}, not an object with one action")
    kinds = [key for key, body in document.items() if key in KINDS and body is not None]
    if len(kinds) > 1:
        raise CorruptLogError(f"holds {len(kinds)} actions ({', '.join(kinds)}) where one belongs")
    if kinds:
        return action_from_wire(kinds[0], document[kinds[0]])
    if not document or any(key in KINDS for key in document):
        raise CorruptLogError("holds no action")
    return None
