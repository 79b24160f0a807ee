"""Arrow arrays from Python numbers, without pyarrow's look for pandas that costs a third of a second."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pyarrow as pa

_CODES = {pa.int32(): "i", pa.uint32(): "I", pa.int64(): "q", pa.float32(): "f"}


def numbers(values: Iterable[float], kind: pa.DataType) -> pa.Array:
    """Numbers of one of the types above."""
    held = array(_CODES[kind], values)
    return pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(held)])


def integers(values: Iterable[int]) -> pa.Int64Array:
    """Row numbers."""
    return numbers(values, pa.int64())


def booleans(values: Iterable[bool]) -> pa.BooleanArray:
    """Truths."""
    held = bytes(values)
    return pa.Array.from_buffers(pa.uint8(), len(held), [None, pa.py_buffer(held)]).cast(pa.bool_())
