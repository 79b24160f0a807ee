"""Arrow arrays from numbers and texts, without pyarrow's look for pandas that costs a third of a second.

`pa.array` of a list asks whether it is one of pandas' types, and loads pandas for that where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

_KINDS = {
    pa.int32(): np.int32,
    pa.uint32(): np.uint32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
}


def numbers(values: Sequence[float] | np.ndarray, kind: pa.DataType) -> pa.Array:
    """Numbers of one of the types above."""
    held = np.ascontiguousarray(values, _KINDS[kind])
    return pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(held)])


def integers(values: Sequence[int] | np.ndarray) -> pa.Int64Array:
    """Row numbers."""
    return numbers(values, pa.int64())


def row_numbers(array: pa.Int64Array) -> np.ndarray:
    """Row numbers back from Arrow, without a copy."""
    held = np.frombuffer(array.buffers()[1] or b"", np.int64)
    return held[array.offset : array.offset + len(array)]


def booleans(values: Iterable[int]) -> pa.BooleanArray:
    """Truths."""
    held = bytes(values)
    return pa.Array.from_buffers(pa.uint8(), len(held), [None, pa.py_buffer(held)]).cast(pa.bool_())


def from_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values with None among them, in a type: what `pa.array` gives, sooner for integers and texts."""
    if kind == pa.int64() and all(type(value) is int for value in values if value is not None):
        held = np.array([0 if value is None else value for value in values], np.int64)
        return pa.Array.from_buffers(kind, len(held), [_validity(values), pa.py_buffer(held)])
    if kind == pa.string() and all(type(value) is str for value in values if value is not None):
        parts = [b"" if value is None else value.encode() for value in values]
        ends = np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)
        if ends[-1] < 1 << 31:
            data = [_validity(values), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(parts))]
            return pa.Array.from_buffers(kind, len(parts), data)
    return pa.array(values, kind)


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
