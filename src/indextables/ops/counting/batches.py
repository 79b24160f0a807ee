"""What a batch of rows contributes to an aggregate: its partial table.

Where the values of a key are few texts or lie close together, rows are grouped by codes: the index of
their value, or of their bucket, among those there are. Only the resulting groups get their keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import integers
from indextables.model.fields import struct_leaf
from indextables.ops.counting.aggregation import Aggregation, GroupKey
from indextables.ops.counting.buckets import Ticks
from indextables.ops.counting.partial import Layout, PartialState, key_values
from indextables.predicate.tree import Column

MOST_GROUPS = 1 << 16
"""Values further apart than this have no codes, and of more possible groups rows are not counted by numpy."""


def partial_of(rows: pa.Table, aggregation: Aggregation, layout: Layout) -> pa.Table:
    """The partial table of some rows that have the aggregation's columns."""
    read: dict[Column, Any] = {}

    def values(column: Column) -> Any:
        if column not in read:
            whole = rows.column(column.path[0])
            array = whole.chunk(0) if whole.num_chunks == 1 else whole.unify_dictionaries().combine_chunks()
            read[column] = struct_leaf(array, column.path[1:])
        return read[column]

    coded = [_codes(key, values(key.column)) for key in aggregation.keys]
    counted = _counted(coded, layout) if layout.states == (PartialState("rows"),) else None
    if counted is not None:
        return counted
    columns: dict[str, Any] = {}
    texts: dict[int, Any] = {}
    for at, (key, codes) in enumerate(zip(aggregation.keys, coded, strict=True)):
        if codes is not None:
            columns[f"k{at}"], texts[at] = pa.array(codes.codes), codes.values
            continue
        held = _written_out(values(key.column))
        columns[f"k{at}"] = key_values(held if key.bucket is None else key.bucket.of(held))
    for at, state in enumerate(layout.states):
        if state.column is not None:
            columns[f"s{at}"] = state.prepared(_written_out(values(state.column)))
    if not columns:
        columns[""] = pa.nulls(rows.num_rows)
    return layout.grouped(pa.table(columns), again=False, words=texts)


def _written_out(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


@dataclass(frozen=True, slots=True)
class _Codes:
    """A key by row: the index of its value among `values`."""

    codes: np.ndarray
    values: pa.Array


def _counted(keys: Sequence[_Codes | None], layout: Layout) -> pa.Table | None:
    """The number of rows by group, which numpy counts in a nanosecond per row; None without few codes."""
    coded = [key for key in keys if key is not None]
    sizes = [len(key.values) for key in coded]
    if not coded or len(coded) < len(keys) or math.prod(sizes) > MOST_GROUPS:
        return None
    groups = coded[0].codes
    for key in coded[1:]:
        groups = groups * len(key.values) + key.codes
    counts = np.bincount(groups, minlength=math.prod(sizes))
    present = np.flatnonzero(counts)
    indexes = np.unravel_index(present, sizes)
    shown = [key.values.take(integers(index)) for key, index in zip(coded, indexes, strict=True)]
    columns = [*shown, integers(counts[present])]
    arrays = [array.cast(field.type) for array, field in zip(columns, layout.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=layout.schema)


def _codes(key: GroupKey, values: Any) -> _Codes | None:
    """The codes of a key; None when its values are not few or close together."""
    if pa.types.is_dictionary(values.type):
        indexes, distinct = values.indices, values.dictionary
        codes = pc.fill_null(indexes.cast(pa.int64()), len(distinct)).to_numpy()
        return _Codes(codes, _with_null(distinct) if indexes.null_count else distinct)
    present = values.drop_null() if values.null_count else values
    ticks = _ticks(key, present)
    if ticks is None or not len(present):
        return None
    least, most = int(ticks.numbers.min()), int(ticks.numbers.max())
    size = most - least + 1
    if size > MOST_GROUPS:
        return None
    every = ticks.buckets(np.arange(least, most + 1)).dictionary_encode()
    numbers, distinct = ticks.numbers - least, every.dictionary
    if len(distinct) < size:
        # Several ticks are in one bucket.
        numbers = every.indices.cast(pa.int64()).to_numpy()[numbers]
    if not values.null_count:
        return _Codes(numbers, distinct)
    codes = np.full(len(values), len(distinct), np.int64)
    codes[values.is_valid().to_numpy(zero_copy_only=False)] = numbers
    return _Codes(codes, _with_null(distinct))


def _ticks(key: GroupKey, values: Any) -> Ticks | None:
    kind = values.type
    if key.bucket is not None:
        return key.bucket.ticks(values)
    if pa.types.is_date32(kind):
        return Ticks(
            values.cast(pa.int32()).cast(pa.int64()).to_numpy(),
            lambda some: integers(some).cast(pa.int32()).cast(kind),
        )
    if pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind):
        return Ticks(values.cast(pa.int64()).to_numpy(), lambda some: integers(some).cast(kind))
    return None


def _with_null(distinct: pa.Array) -> pa.Array:
    return pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
