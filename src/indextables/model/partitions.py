"""Partition values as directories: `col=value/`, escaped so that distinct values never share one.

The log's partitionValues decide; the directory is for people and for readers that expect
Hive's layout. The escaping is Hive's, extended to spaces and to all characters with a
meaning for shells, URLs or globs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.model.names import require_name

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
EMPTY_DIRECTORY = "__EMPTY__"
_RESERVED = frozenset({NULL_DIRECTORY, EMPTY_DIRECTORY})
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{}[]^<>|, ~&$!;`@+()")
_MAX_BYTES = 200  # file systems allow 255 for one component, the column's name included
_SHORTENED = "%00"
_DIGEST = re.compile("[0-9a-f]{32}")


def check_partition_columns(schema: pa.Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns as the schema spells them; SchemaError for one that cannot partition a table."""
    spelled: list[str] = []
    for name in columns:
        field = schema.field(require_name(schema.names, name))
        if pa.types.is_nested(field.type):
            raise SchemaError(f"column {name!r} of type {field.type} cannot partition a table", column=name)
        if field.name in spelled:
            raise SchemaError(f"partition column {name!r} is named twice", column=name)
        spelled.append(field.name)
    if spelled and len(spelled) == len(schema):
        raise SchemaError("a table needs at least one column that does not partition it")
    return tuple(spelled)


def partition_directory(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """Return the directory of a partition, e.g. `year=2024/city=New%20York`; '' without partition columns."""
    return "/".join(f"{_escape(name)}={_value_directory(values.get(name))}" for name in columns)


def _value_directory(value: str | None) -> str:
    if value is None:
        return NULL_DIRECTORY
    if value == "":
        return EMPTY_DIRECTORY
    if value in _RESERVED:
        return f"%5F{value[1:]}"
    escaped = _escape(value)
    if len(escaped.encode()) <= _MAX_BYTES:
        return escaped
    digest = hashlib.sha256(value.encode()).hexdigest()[:32]
    return f"{_escape(value[:16])}{_SHORTENED}{digest}"


def _escape(text: str) -> str:
    """Escape characters that are unsafe in a path component; `.` and `..` are escaped too."""
    if text and not text.strip("."):
        return "%2E" * len(text)
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED or char < " " else char for char in text)


def parse_directory(path: str) -> dict[str, str | None]:
    """Read the partition values out of a path.

    Components without `=` are ignored, and so are values too long for a path, of which the path has only a
    digest.
    """
    values: dict[str, str | None] = {}
    for component in path.split("/"):
        name, separator, value = component.partition("=")
        if not separator or _is_digest(value):
            continue
        special = {NULL_DIRECTORY: None, EMPTY_DIRECTORY: ""}
        values[unquote(name)] = special[value] if value in special else unquote(value)
    return values


def _is_digest(value: str) -> bool:
    head, separator, digest = value.rpartition(_SHORTENED)
    return bool(separator) and len(unquote(head)) == 16 and _DIGEST.fullmatch(digest) is not None  # noqa: PLR2004
