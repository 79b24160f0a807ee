"""Arrow arrays from numbers, without pyarrow's look for pandas that costs a third of a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
