"""Fills required fields below null parents.

Arrow does not define what a field holds where its parent is null; usually it is null as
well. Parquet writers refuse a null in a required field, although no reader sees it, so it
is given a value.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from indextables.lazy import pc


def has_required(kind: pa.DataType) -> bool:
    """Whether a type holds a required field inside a struct."""
    if pa.types.is_struct(kind):
        return any(not field.nullable or has_required(field.type) for field in kind)
    if pa.types.is_map(kind):
        return has_required(kind.item_type)
    return bool(pa.types.is_list(kind) and has_required(kind.value_type))


def with_values(table: pa.Table) -> pa.Table:
    """The table with a value in every required field, below null parents too."""
    for at, field in enumerate(table.schema):
        if has_required(field.type):
            chunks = [_filled(chunk) for chunk in table.column(at).chunks]
            table = table.set_column(at, field, pa.chunked_array(chunks, field.type))
    return table


def _filled(array: Any) -> Any:
    kind = array.type
    if not has_required(kind):
        return array
    if array.offset:
        array = array.take(pc.indices_nonzero(pa.repeat(pa.scalar(True), len(array))))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        children = [_filled(array.field(at)) for at in range(kind.num_fields)]
        children = [
            child if field.nullable else _without_nulls(child)
            for child, field in zip(children, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        items = _filled(array.items)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(array.offsets, _filled(array.values), type=kind, mask=mask)


def _without_nulls(array: Any) -> Any:
    if not array.null_count:
        return array
    every = pa.concat_arrays([array, _some_value(array.type)])
    rows = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(array))), 1)
    return every.take(pc.if_else(array.is_null(), len(array), rows))


def _some_value(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        children = [pa.nulls(1, field.type) if field.nullable else _some_value(field.type) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if pa.types.is_nested(kind):
        return pa.array([[]], kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([""], pa.string()).cast(kind)
    wide = kind.bit_width == pa.int64().bit_width or pa.types.is_decimal(kind)
    return pa.array([0], pa.int64() if wide else pa.int32()).cast(kind)
