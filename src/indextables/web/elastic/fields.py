"""The columns of a table as Elasticsearch's field types, for `_field_caps` and `_mapping`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from indextables.web.elastic.translate import Columns

_SIMPLE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_int16, "short"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_integer, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_floating, "double"),
    (pa.types.is_decimal, "double"),
    (pa.types.is_timestamp, "date"),
    (pa.types.is_date, "date"),
    (pa.types.is_binary, "binary"),
)


def field_type(name: str, columns: Columns) -> str:
    """The type of a column, by how it is searched first."""
    index = columns.indexed.get(name)
    if index in ("text", "ip"):
        return str(index)
    kind = columns.schema.field(name).type
    if pa.types.is_string(kind) and index != "json":
        return "keyword"
    return next((found for is_kind, found in _SIMPLE if is_kind(kind)), "object")


def field_caps(index: str, columns: Columns, patterns: list[str]) -> dict[str, Any]:
    """The answer to `_field_caps`."""
    fields = {}
    for name in columns.schema.names:
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        kind = field_type(name, columns)
        fields[name] = {
            kind: {
                "type": kind,
                "metadata_field": False,
                "searchable": kind != "binary",
                "aggregatable": kind not in ("text", "object", "binary"),
            }
        }
    return {"indices": [index], "fields": fields}


def mapping(index: str, columns: Columns) -> dict[str, Any]:
    """The answer to `_mapping`."""
    properties = {name: {"type": field_type(name, columns)} for name in columns.schema.names}
    return {index: {"mappings": {"properties": properties}}}
