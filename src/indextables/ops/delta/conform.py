"""Converts a column of a data file to the table's column: finds fields, adds nulls, widens types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.lazy import pc
from indextables.log.delta.columns import FIELD_ID, physical_name

_FILE_ID = b"PARQUET:field_id"


def find(parent: Any, field: Mapping[str, Any], mode: str) -> pa.Field | None:
    """The field of a file that holds a column of the table: by id in id mode, else by name."""
    number = (field.get("metadata") or {}).get(FIELD_ID)
    if mode == "id" and number is not None:
        field_id = str(number).encode()
        return next((item for item in parent if (item.metadata or {}).get(_FILE_ID) == field_id), None)
    name = physical_name(field, mode)
    exact: pa.Field | None = next((item for item in parent if item.name == name), None)
    if exact is not None:
        return exact
    # Spark may write a column name in the case of the query; columns never differ only by case.
    same_letters = [item for item in parent if item.name.lower() == name.lower()]
    return same_letters[0] if len(same_letters) == 1 else None


def conform(array: pa.Array, document: Any, target: pa.DataType, mode: str) -> pa.Array:
    """Bring an array of a file to the table's type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if document == "variant":
        return _variant(array, target)
    if pa.types.is_struct(target):
        return _struct(array, document, target, mode)
    if pa.types.is_list(target):
        values = conform(array.flatten(), document["elementType"], target.value_type, mode)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=_mask(array))
    if pa.types.is_map(target):
        return _map(array, document, target, mode)
    return widened(array, target)


def widened(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Values in a type that holds all of them."""
    if array.type == target:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(target) and pa.types.is_integer(array.type):
        # Arrow requires room for every value of the integer type; the log guarantees that these fit.
        return array.cast(pa.decimal256(76, target.scale)).cast(target)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        # The table counts microseconds, as Spark does.
        array = pc.floor_temporal(array, unit="microsecond")
    return array.cast(target)


def _struct(array: pa.Array, document: Any, target: pa.DataType, mode: str) -> pa.Array:
    children = []
    for at, field in enumerate(document["fields"]):
        kind = target.field(at).type
        stored = find(array.type, field, mode)
        children.append(
            pa.nulls(len(array), kind)
            if stored is None
            else conform(pc.struct_field(array, stored.name), field["type"], kind, mode)
        )
    if not children:
        return pa.StructArray.from_buffers(target, len(array), [_validity(array)], array.null_count)
    return pa.StructArray.from_arrays(children, fields=_fields(target), mask=_mask(array))


def _map(array: pa.Array, document: Any, target: pa.DataType, mode: str) -> pa.Array:
    plain = pa.concat_arrays([array])
    begin, end = plain.offsets[0].as_py(), plain.offsets[len(plain)].as_py()
    keys = conform(plain.keys[begin:end], document["keyType"], target.key_type, mode)
    items = conform(plain.items[begin:end], document["valueType"], target.item_type, mode)
    offsets = pc.subtract(plain.offsets, pa.scalar(begin, pa.int32()))
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(plain))


def _variant(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A variant as the two binary fields that store it; a shredded one has parts in other columns."""
    if pa.types.is_struct(array.type) and {item.name for item in array.type} == {"metadata", "value"}:
        children = [pc.struct_field(array, name).cast(pa.binary()) for name in ("metadata", "value")]
        return pa.StructArray.from_arrays(children, fields=_fields(target), mask=_mask(array))
    raise TableError(
        "a shredded variant column can only be read by Spark's own reader; leave it out of the columns, "
        "or read the table with to_df in a classic session"
    )


def _fields(target: pa.DataType) -> list[pa.Field]:
    return [target.field(at) for at in range(target.num_fields)]


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths.cast(pa.int64()))]).cast(
        pa.int32()
    )


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _validity(array: pa.Array) -> pa.Buffer | None:
    return None if not array.null_count else array.is_valid().buffers()[1]
