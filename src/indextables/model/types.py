"""Spark's data types and the Arrow types that represent them.

A table's schema is Spark's. Each Spark type has exactly one Arrow type here, and every
Arrow type that Spark can hold is mapped to one of those. Types that a table cannot store
(intervals, user-defined types, times, unions, ...) are refused by name. What Spark says
about a field beyond its type (comment, char/varchar length, collation, anything else in
its metadata) is kept as Arrow field metadata: text values unchanged, others as JSON under
`json:<key>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import SchemaError

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MAX_PRECISION = 38
_IS_VARIANT = {b"variant": b"true"}
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata=_IS_VARIANT),
    ]
)
"""The Arrow type of a Spark variant: a struct, recognised by the metadata of its second field."""

CHAR_VARCHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS_KEY = "__COLLATIONS"
_JSON = b"json:"
_FOREIGN_METADATA = (b"PARQUET:", b"ARROW:")

_ATOMS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_NAMES: Mapping[pa.DataType, str] = {arrow: name for name, arrow in _ATOMS.items()}
_SQL_NAMES: Mapping[str, str] = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
}
_FROM_SQL: Mapping[str, pa.DataType] = {
    **_ATOMS,
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "dec": pa.decimal128(10, 0),
    "decimal": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
    "timestamp_ltz": TIMESTAMP,
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)\Z")
_SIZED_STRING = re.compile(r"(?:char|varchar|character)\(\s*\d+\s*\)\Z")
_COLLATED = re.compile(r"string collate (\S+)\Z")


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the Arrow type of DECIMAL(precision, scale); SchemaError outside what Spark allows."""
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise SchemaError(
            f"decimal({precision},{scale}) is not a Spark type: precision is 1 to {MAX_PRECISION}, "
            "scale 0 to precision"
        )
    return pa.decimal128(precision, scale)


def is_variant(kind: pa.DataType) -> bool:
    """Whether a struct is a variant. Arrow's comparison of types ignores the field metadata that tells."""
    return bool(kind == VARIANT and kind.field(1).metadata == _IS_VARIANT)


def holds_variants(kind: pa.DataType) -> bool:
    """Whether a type is a variant, or has one inside."""
    return is_variant(kind) or any(holds_variants(kind.field(at).type) for at in range(kind.num_fields))


def type_from_json(kind: Any, where: str) -> pa.DataType:
    """Return the Arrow type of one type of a Spark schema document; `where` names the column in errors."""
    if isinstance(kind, str):
        return _atom(kind, where)
    if not isinstance(kind, dict) or not isinstance(kind.get("type"), str):
        raise SchemaError(f"column {where}: {kind!r} is not a Spark type")
    try:
        if kind["type"] == "struct":
            return pa.struct(fields_from_json(kind["fields"], where + "."))
        if kind["type"] == "array":
            item = type_from_json(kind["elementType"], where + ".element")
            return pa.list_(pa.field("element", item, nullable=bool(kind["containsNull"])))
        if kind["type"] == "map":
            key = type_from_json(kind["keyType"], where + ".key")
            value = type_from_json(kind["valueType"], where + ".value")
            return pa.map_(key, pa.field("value", value, nullable=bool(kind["valueContainsNull"])))
    except KeyError as absent:
        raise SchemaError(f"column {where}: the {kind['type']} type lacks {absent}") from absent
    name = "a user-defined type" if kind["type"] == "udt" else f"the type {kind['type']!r}"
    raise SchemaError(f"column {where} has {name}, which a table cannot store", column=where)


def fields_from_json(fields: Any, prefix: str = "") -> list[pa.Field]:
    """Return the Arrow fields of a list of fields of a Spark schema document."""
    if not isinstance(fields, list) or (prefix and not fields):
        raise SchemaError(f"column {prefix.rstrip('.') or '(root)'}: a struct needs a list of fields")
    built = []
    for item in fields:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str) or "type" not in item:
            raise SchemaError(f"{item!r} is not a field of a Spark schema (name, type, nullable, metadata)")
        where = prefix + item["name"]
        metadata = dict(item.get("metadata") or {})
        kind = item["type"]
        if isinstance(kind, str) and _SIZED_STRING.match(kind.lower()):
            metadata.setdefault(CHAR_VARCHAR_KEY, kind.lower())
        elif isinstance(kind, str) and (collated := _COLLATED.match(kind.lower())):
            metadata.setdefault(COLLATIONS_KEY, {item["name"]: collated.group(1).upper()})
        nullable = bool(item.get("nullable", True))
        arrow = type_from_json(kind, where)
        built.append(pa.field(item["name"], arrow, nullable, _pack_metadata(metadata) or None))
    refuse_twins([field.name for field in built], prefix)
    return built


def _atom(name: str, where: str) -> pa.DataType:
    lowered = name.strip().lower()
    if lowered in _ATOMS:
        return _ATOMS[lowered]
    if lowered == "variant":
        return VARIANT
    if match := _DECIMAL.match(lowered):
        return decimal_type(int(match.group(1)), int(match.group(2) or 0))
    if lowered == "decimal":
        return pa.decimal128(10, 0)
    if _SIZED_STRING.match(lowered) or _COLLATED.match(lowered):
        return pa.string()
    raise SchemaError(f"column {where} has the type {name!r}, which a table cannot store", column=where)


def type_from_sql(name: str) -> pa.DataType | None:
    """Return the Arrow type of a SQL type name such as `bigint` or `decimal(10,2)`, if there is one."""
    lowered = name.strip().lower()
    kind = _FROM_SQL.get(lowered)
    if kind is None and (match := _DECIMAL.match(lowered)):
        precision, scale = int(match.group(1)), int(match.group(2) or 0)
        kind = decimal_type(precision, scale) if 0 <= scale <= precision <= MAX_PRECISION else None
    if kind is None and (_SIZED_STRING.match(lowered) or _COLLATED.match(lowered)):
        kind = pa.string()
    return kind


def type_to_sql(kind: pa.DataType) -> str:
    """Return the SQL name of an Arrow type of a table, for messages and `explain`."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if is_variant(kind):
        return "variant"
    name = _NAMES.get(kind)
    return _SQL_NAMES.get(name, name) if name else str(kind)


def type_to_json(kind: pa.DataType, where: str) -> Any:
    """Return the Spark schema document of an Arrow type of a table."""
    if kind in _NAMES:
        return _NAMES[kind]
    if is_variant(kind):
        return "variant"
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        item = kind.value_field
        return {
            "type": "array",
            "elementType": type_to_json(item.type, where + ".element"),
            "containsNull": item.nullable,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": type_to_json(kind.key_type, where + ".key"),
            "valueType": type_to_json(kind.item_type, where + ".value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [field_to_json(item, where + ".") for item in kind]}
    raise SchemaError(f"column {where!r} has the Arrow type {kind}, which a table cannot store", column=where)


def field_to_json(field: pa.Field, prefix: str = "") -> dict[str, Any]:
    """Return one field of a Spark schema document."""
    return {
        "name": field.name,
        "type": type_to_json(field.type, prefix + field.name),
        "nullable": field.nullable,
        "metadata": _unpack_metadata(field.metadata, prefix + field.name),
    }


def spark_type(kind: pa.DataType, where: str) -> pa.DataType:
    """Return the Arrow type of the Spark type that holds values of `kind` in any encoding."""
    is_ = pa.types
    if kind in _NAMES or is_variant(kind):
        return kind
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return spark_type(kind.value_type, where)
    if is_.is_unsigned_integer(kind):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
        return wider[kind.bit_width]
    if is_.is_float16(kind):
        return pa.float32()
    if is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_large_binary(kind) or is_.is_binary_view(kind) or is_.is_fixed_size_binary(kind):
        return pa.binary()
    if is_.is_date64(kind):
        return pa.date32()
    if is_.is_timestamp(kind):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    if is_.is_decimal(kind):
        try:
            return decimal_type(kind.precision, kind.scale)
        except SchemaError as bad:
            raise SchemaError(f"column {where}: {bad}", column=where) from bad
    if is_.is_struct(kind) and kind.num_fields:
        refuse_twins([item.name for item in kind], where + ".")
        return pa.struct([spark_field(item, where + ".") for item in kind])
    if is_.is_map(kind):
        value = spark_type(kind.item_type, where + ".value")
        key = spark_type(kind.key_type, where + ".key")
        return pa.map_(key, pa.field("value", value, nullable=kind.item_field.nullable))
    if _is_list(kind):
        item = spark_type(kind.value_type, where + ".element")
        return pa.list_(pa.field("element", item, nullable=kind.value_field.nullable))
    if is_.is_null(kind):
        raise SchemaError(
            f"column {where!r} holds only nulls, so its type is not known; cast it to a type, or create the "
            "table with a schema",
            column=where,
        )
    raise SchemaError(
        f"column {where!r} has the Arrow type {kind}, which Spark cannot store; cast it to a type it can",
        column=where,
    )


def _is_list(kind: pa.DataType) -> bool:
    is_ = pa.types
    tests = (is_.is_list, is_.is_large_list, is_.is_fixed_size_list, is_.is_list_view, is_.is_large_list_view)
    return any(test(kind) for test in tests)


def spark_field(field: pa.Field, prefix: str = "") -> pa.Field:
    """Return the field with the Arrow type of its Spark type and only metadata that a schema can carry."""
    where = prefix + field.name
    metadata = _pack_metadata(_unpack_metadata(field.metadata, where))
    return pa.field(field.name, spark_type(field.type, where), field.nullable, metadata or None)


def refuse_twins(names: list[str], prefix: str = "") -> None:
    """Refuse names that are equal or differ only in case: Spark could not tell the columns apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other is not None:
            twins = (
                f"two columns are named {prefix + name!r}"
                if other == name
                else f"columns {prefix + other!r} and {prefix + name!r} differ in case only"
            )
            raise SchemaError(f"{twins}; rename one", column=name)
        seen[name.lower()] = name


def _pack_metadata(metadata: Mapping[str, Any]) -> dict[bytes, bytes]:
    packed = {}
    for key, value in metadata.items():
        raw = key.encode()
        if isinstance(value, str) and not raw.startswith(_JSON):
            packed[raw] = value.encode()
        else:
            packed[_JSON + raw] = msgspec.json.encode(value)
    return packed


def _unpack_metadata(metadata: Mapping[bytes, bytes] | None, where: str) -> dict[str, Any]:
    decoded: dict[str, Any] = {}
    for key, value in (metadata or {}).items():
        if key.startswith(_FOREIGN_METADATA):
            continue
        try:
            if key.startswith(_JSON):
                decoded[key.removeprefix(_JSON).decode()] = msgspec.json.decode(value)
            else:
                decoded[key.decode()] = value.decode()
        except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as bad:
            raise SchemaError(f"column {where}: metadata {key!r} is not text: {bad}", column=where) from bad
    return decoded


def field_metadata(field: pa.Field) -> dict[str, Any]:
    """Return what the Spark schema says about the field beyond its type (comment, char length, ...)."""
    return _unpack_metadata(field.metadata, field.name)
