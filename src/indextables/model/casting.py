"""Casts incoming data to the table's types before anything is written.

A column may come in any encoding of its type (large, view, dictionary, run-end, another
time unit) and in another number type as long as every value survives. Anything that would
change a value is an error that names the column.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.errors import SchemaError
from indextables.lazy import pc
from indextables.model.names import find_name
from indextables.model.types import spark_type, type_to_sql


def cast_column(column: Any, field: pa.Field, *, timestamps: str = "error") -> Any:
    """Return an array (or chunked array) as the Arrow type of a table's field, nulls checked."""
    if isinstance(column, pa.ChunkedArray):
        chunks = [_cast(chunk, field, field.name, timestamps) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=field.type)
    return _cast(column, field, field.name, timestamps)


def _cast(array: pa.Array, field: pa.Field, where: str, timestamps: str) -> pa.Array:
    if not field.nullable and array.null_count:
        raise SchemaError(
            f"column {where!r} is NOT NULL, and the data has {array.null_count} nulls", column=where
        )
    source, target = array.type, field.type
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if pa.types.is_dictionary(source):
        return _cast(array.dictionary_decode(), field, where, timestamps)
    if pa.types.is_run_end_encoded(source):
        return _cast(_pc().run_end_decode(array), field, where, timestamps)
    if pa.types.is_nested(target):
        return _cast_nested(array, target, where, timestamps)
    if source == target:
        return array
    _check_kinds(source, target, where)
    if pa.types.is_timestamp(source) and source.unit == "ns" and timestamps == "truncate":
        array = _pc().floor_temporal(array, unit="microsecond")
    try:
        if pa.types.is_integer(source) and pa.types.is_decimal(target):
            # Arrow requires room for every integer of the type; the second cast checks only the values
            # present.
            array = array.cast(pa.decimal256(20 + target.scale, target.scale))
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        advice = (
            "; the option timestamps=truncate cuts them to microseconds" if "lose data" in str(bad) else ""
        )
        raise SchemaError(
            f"column {where!r}: a value of type {source} does not fit {type_to_sql(target)}: {bad}{advice}",
            column=where,
        ) from bad


def _check_kinds(source: pa.DataType, target: pa.DataType, where: str) -> None:
    """Accept another encoding of the same type, and number types whose values are checked one by one."""
    held = spark_type(source, where)
    if held == target:
        return
    is_ = pa.types
    whole = is_.is_integer(held) or (is_.is_decimal(held) and is_.is_integer(source))
    if whole and (is_.is_integer(target) or is_.is_floating(target) or is_.is_decimal(target)):
        return
    if is_.is_decimal(held) and is_.is_decimal(target):
        return
    if is_.is_float32(held) and is_.is_float64(target):
        return
    raise SchemaError(
        f"column {where!r} is {type_to_sql(target)} in the table and {source} in the data; cast it first",
        column=where,
    )


def _cast_nested(array: pa.Array, target: pa.DataType, where: str, timestamps: str) -> pa.Array:
    source = array.type
    if source == target and not _has_required(target):
        return array
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _cast_struct(array, target, where, timestamps)
    if pa.types.is_map(target) and pa.types.is_map(source):
        begin, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys = _cast(array.keys[begin:end], target.key_field, where + ".key", timestamps)
        items = _cast(array.items[begin:end], target.item_field, where + ".value", timestamps)
        offsets = _pc().subtract(array.offsets, pa.scalar(begin, pa.int32()))
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(array))
    if pa.types.is_list(target) and pa.types.is_list(spark_type(source, where)):
        array = _plain_list(array)
        values = _cast(array.values, target.value_field, where + ".element", timestamps)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=_mask(array))
    raise SchemaError(f"column {where!r} is {target} in the table and {source} in the data", column=where)


def _cast_struct(array: pa.Array, target: pa.DataType, where: str, timestamps: str) -> pa.Array:
    children = dict(zip(array.type.names, array.flatten(), strict=True))
    unknown = [name for name in children if find_name(target.names, name) is None]
    if unknown:
        raise SchemaError(f"the table's column {where!r} has no field {unknown[0]!r}", column=where)
    present = array.is_valid() if array.null_count else None
    columns = []
    for field in target:
        inner = f"{where}.{field.name}"
        name = find_name(array.type.names, field.name)
        child = pa.nulls(len(array), field.type) if name is None else children[name]
        if not field.nullable and child.null_count and present is not None:
            # A null below a null parent does not count as a null of the field.
            _cast(child.filter(present), field, inner, timestamps)
            field = field.with_nullable(True)  # noqa: PLW2901 - checked on the line above
        columns.append(_cast(child, field, inner, timestamps))
    return pa.StructArray.from_arrays(columns, fields=list(target), mask=_mask(array))


def _has_required(kind: pa.DataType) -> bool:
    fields = [kind.field(position) for position in range(kind.num_fields)]
    if pa.types.is_map(kind):
        fields = [kind.key_field.with_nullable(True), kind.item_field]
    return any(
        not field.nullable or (pa.types.is_nested(field.type) and _has_required(field.type))
        for field in fields
    )


def _plain_list(array: pa.Array) -> pa.Array:
    """Return a list in any encoding as a plain list that starts at its first value, without unused values.

    Arrow's own cast from list views omits the last offset, and with it the last list.
    """
    pc = _pc()
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends]).cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, array.flatten(), mask=_mask(array))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _pc() -> Any:
    """Arrow's compute functions, imported late: programs that only look at a schema do not need them."""
    return pc
