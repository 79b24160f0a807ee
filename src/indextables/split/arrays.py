"""Arrow arrays from Python numbers, without pyarrow's look for pandas that costs a third of a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack

import pyarrow as pa

_CODES = {pa.int32(): "i", pa.uint32(): "I", pa.int64(): "q", pa.float32(): "f"}


def numbers(values: Sequence[float], kind: pa.DataType) -> pa.Array:
    """Numbers of one of the types above."""
    held = pack(f"{len(values)}{_CODES[kind]}", *values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(held)])


def integers(values: Sequence[int]) -> pa.Int64Array:
    """Row numbers."""
    return numbers(values, pa.int64())


def booleans(values: Iterable[int]) -> pa.BooleanArray:
    """Truths."""
    held = bytes(values)
    return pa.Array.from_buffers(pa.uint8(), len(held), [None, pa.py_buffer(held)]).cast(pa.bool_())
