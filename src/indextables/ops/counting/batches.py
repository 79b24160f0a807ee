"""What a batch of rows contributes to an aggregate: its partial table.

Where the keys are few texts or lie close together, every row gets the number of its group, and groups are
counted by numpy, which takes about a nanosecond per row. Other keys are grouped by Arrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.model.arrays import integers
from indextables.model.fields import struct_leaf
from indextables.ops.counting.buckets import Ticks
from indextables.ops.counting.partial import Layout, State, key_values
from indextables.ops.counting.question import Key, Question
from indextables.predicate.tree import Column

MOST_GROUPS = 1 << 16
"""Up to this many possible groups, rows are counted by the number of their group."""
_EXACT = 1 << 53
"""Whole numbers below this are exact as doubles, in which numpy adds them up."""


def partial_of(rows: pa.Table, question: Question, layout: Layout) -> pa.Table:
    """The partial table of some rows that have the question's columns."""
    read: dict[Column, Any] = {}

    def values(column: Column) -> Any:
        if column not in read:
            whole = rows.column(column.path[0])
            array = whole.chunk(0) if whole.num_chunks == 1 else whole.unify_dictionaries().combine_chunks()
            read[column] = struct_leaf(array, column.path[1:])
        return read[column]

    keys = [values(key.column) for key in question.keys]
    states = [None if state.column is None else values(state.column) for state in layout.states]
    found = _numbered(keys, states, question, layout) if keys and rows.num_rows else None
    return found if found is not None else _grouped(rows.num_rows, keys, states, question, layout)


def _grouped(rows: int, keys: list[Any], states: list[Any], question: Question, layout: Layout) -> pa.Table:
    """The partial table, by Arrow."""
    columns: dict[str, Any] = {}
    words: dict[int, Any] = {}
    for at, (key, values) in enumerate(zip(question.keys, keys, strict=True)):
        held = values
        if pa.types.is_dictionary(held.type):
            # Grouped by the numbers of the texts; only the resulting groups get their texts.
            words[at], held = held.dictionary, held.indices
        columns[f"k{at}"] = key_values(held if key.bucket is None else key.bucket.of(held))
    for at, (state, values) in enumerate(zip(layout.states, states, strict=True)):
        if state.column is not None:
            columns[f"s{at}"] = state.prepared(_written_out(values))
    if not columns:
        columns[""] = pa.nulls(rows)
    return layout.grouped(pa.table(columns), again=False, words=words)


def _written_out(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


@dataclass(frozen=True, slots=True)
class _Codes:
    """A key by row: the index of its value among `values`."""

    codes: np.ndarray
    values: pa.Array


def _numbered(keys: list[Any], states: list[Any], question: Question, layout: Layout) -> pa.Table | None:
    """The partial table, by the number of every row's group; None when keys or states do not allow it."""
    if not all(map(_can_add, layout.states)):
        return None
    coded = []
    for key, values in zip(question.keys, keys, strict=True):
        found = _codes(key, values)
        if found is None:
            return None
        coded.append(found)
    sizes = [len(one.values) for one in coded]
    if math.prod(sizes) > MOST_GROUPS:
        return None
    groups = coded[0].codes
    for one in coded[1:]:
        groups = groups * len(one.values) + one.codes
    rows = np.bincount(groups, minlength=math.prod(sizes))
    present = np.flatnonzero(rows)
    adding = _Adding(groups, rows, present)
    added = []
    for state, values in zip(layout.states, states, strict=True):
        made = adding.state(state, values)
        if made is None:
            return None
        added.append(made)
    places = np.unravel_index(present, sizes)
    shown = [one.values.take(integers(place)) for one, place in zip(coded, places, strict=True)]
    arrays = [array.cast(field.type) for array, field in zip([*shown, *added], layout.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=layout.schema)


def _codes(key: Key, values: Any) -> _Codes | None:
    """The codes of a key; None when its values are not few or close together."""
    if pa.types.is_dictionary(values.type):
        held, distinct = values.indices, values.dictionary
        if len(distinct) > MOST_GROUPS:
            return None
        codes = pc.fill_null(held.cast(pa.int64()), len(distinct)).to_numpy()
        return _Codes(codes, _with_null(distinct) if held.null_count else distinct)
    known = values.drop_null() if values.null_count else values
    ticks = _ticks(key, known)
    if ticks is None or not len(known):
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
    codes[_valid(values)] = numbers
    return _Codes(codes, _with_null(distinct))


def _ticks(key: Key, values: Any) -> Ticks | None:
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


def _valid(values: Any) -> np.ndarray:
    found: np.ndarray = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _can_add(state: State) -> bool:
    """Whether numpy computes a state; it neither orders floats as Spark does nor adds decimals."""
    if state.kind in ("rows", "count"):
        return True
    assert state.column is not None
    kind = state.column.type
    if state.kind == "sum":
        return bool(pa.types.is_signed_integer(kind) or pa.types.is_floating(kind))
    ordered = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    return bool(ordered and state.kind in ("min", "max"))


class _Adding:
    """States of groups, from the number of every row's group."""

    def __init__(self, groups: np.ndarray, rows: np.ndarray, present: np.ndarray) -> None:
        self._groups = groups
        self._rows = rows
        self._present = present

    def state(self, state: State, values: Any) -> pa.Array | None:
        """A state of every group that has rows; None when doubles would not be exact."""
        if state.column is None:
            return integers(self._rows[self._present])
        groups, counts = self._groups, self._rows
        if values.null_count:
            groups = groups[_valid(values)]
            counts = np.bincount(groups, minlength=len(self._rows))
        if state.kind == "count":
            return integers(counts[self._present])
        known = values.drop_null() if values.null_count else values
        found = self._sum(groups, known) if state.kind == "sum" else self._bound(state.kind, groups, known)
        if found is None:
            return None
        # A group without a value has no sum and no bounds.
        without = pa.array(counts[self._present] == 0)
        return pc.if_else(without, pa.nulls(1, found.type)[0], found)

    def _sum(self, groups: np.ndarray, known: Any) -> pa.Array | None:
        size = len(self._rows)
        if pa.types.is_floating(known.type):
            added = np.bincount(groups, known.cast(pa.float64()).to_numpy(), size)
            return pa.array(added[self._present])
        whole = known.cast(pa.int64()).to_numpy()
        if len(whole) and max(-int(whole.min()), int(whole.max())) * len(whole) >= _EXACT:
            return None
        return integers(np.bincount(groups, whole, size)[self._present])

    def _bound(self, kind: str, groups: np.ndarray, known: Any) -> pa.Array:
        narrow = pa.types.is_date32(known.type)
        whole = (known.cast(pa.int32()) if narrow else known).cast(pa.int64()).to_numpy()
        least, most = (int(whole.min()), int(whole.max())) if len(whole) else (0, 0)
        found = np.full(len(self._rows), most if kind == "min" else least)
        (np.minimum if kind == "min" else np.maximum).at(found, groups, whole)
        held = integers(found[self._present])
        return (held.cast(pa.int32()) if narrow else held).cast(known.type)
