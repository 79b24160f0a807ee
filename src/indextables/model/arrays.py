"""Arrow arrays from Python numbers and texts, without modules that take long to load.

`pa.array` of a list checks for pandas types and imports pandas for that, if it is
installed, which costs a third of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.lazy import pc

_KINDS = {
    pa.int32(): np.int32,
    pa.uint32(): np.uint32,
    pa.int64(): np.int64,
    pa.uint64(): np.uint64,
    pa.float32(): np.float32,
}
_STORED = {
    pa.int8().id: np.int8,
    pa.int16().id: np.int16,
    pa.int64().id: np.int64,
    pa.timestamp("us").id: np.int64,
    pa.int32().id: np.int32,
    pa.date32().id: np.int32,
    pa.float32().id: np.float32,
    pa.float64().id: np.float64,
}
_FLOATS = (np.float32, np.float64)


def numbers(values: Sequence[float] | np.ndarray, kind: pa.DataType) -> pa.Array:
    """An array of numbers of one of the types above."""
    held = np.ascontiguousarray(values, _KINDS[kind])
    return pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(held)])


def integers(values: Sequence[int] | np.ndarray) -> pa.Int64Array:
    """An array of row numbers."""
    return numbers(values, pa.int64())


def as_numpy(array: pa.Array) -> np.ndarray:
    """A numpy view of an Arrow array of such numbers, without a copy; `to_numpy` would import pandas."""
    held = np.frombuffer(array.buffers()[1] or b"", _KINDS[array.type])
    return held[array.offset : array.offset + len(array)]


def booleans(values: Iterable[int]) -> pa.BooleanArray:
    """An array of booleans."""
    held = bytes(values)
    return pa.Array.from_buffers(pa.uint8(), len(held), [None, pa.py_buffer(held)]).cast(pa.bool_())


def from_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of values, None included, like `pa.array` gives; faster for numbers and texts."""
    kinds = set(map(type, values))
    with_nulls = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return pa.nulls(len(values), kind)
    stored = _STORED.get(kind.id)
    if stored is not None and kinds <= {float if stored in _FLOATS else int}:
        held = np.fromiter([value or 0 for value in values] if with_nulls else values, stored, len(values))
        return pa.Array.from_buffers(kind, len(held), [_validity(values, with_nulls), pa.py_buffer(held)])
    if pa.types.is_decimal(kind) and kinds <= {Decimal}:
        digits = [None if value is None else format(value, "f") for value in values]
        return from_values(digits, pa.string()).cast(kind)
    if kind == pa.string() and kinds <= {str}:
        texts = [value or "" for value in values] if with_nulls else values
        joined = "".join(texts)
        data = joined.encode()
        if len(data) < 1 << 31:
            # A text of ASCII is as long in bytes as in letters, and need not be encoded by itself.
            sizes = map(len, texts if len(data) == len(joined) else map(str.encode, texts))
            ends = np.zeros(len(texts) + 1, np.int32)
            np.cumsum(np.fromiter(sizes, np.int32, len(texts)), out=ends[1:])
            buffers = [_validity(values, with_nulls), pa.py_buffer(ends), pa.py_buffer(data)]
            return pa.Array.from_buffers(kind, len(texts), buffers)
    return pa.array(values, kind)


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """One value as `pa.scalar` gives it; times are numbers since 1970, in the unit of their type.

    >>> import pyarrow as pa
    >>> scalar(7, pa.int64()), scalar(None, pa.string()), scalar(True, pa.bool_())
    (<pyarrow.Int64Scalar: 7>, <pyarrow.StringScalar: None>, <pyarrow.BooleanScalar: True>)
    """
    if type(value) is bool and pa.types.is_boolean(kind):
        return _only(pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes([value]))]))
    return _only(from_values([value], kind))


def _only(values: pa.Array) -> pa.Scalar:
    first: pa.Scalar = values[0]
    return first


TRUE, FALSE, NEITHER = (scalar(truth, pa.bool_()) for truth in (True, False, None))
"""The three truths, for functions of Arrow: from a Python value they would make a scalar with pandas."""


def truths(values: pa.Array) -> np.ndarray:
    """An Arrow array of booleans as a numpy array; null counts as false.

    >>> import pyarrow as pa
    >>> truths(pa.array([True, None, False])).tolist()
    [True, False, False]
    """
    bytes_ = values.cast(pa.uint8())
    held = np.frombuffer(bytes_.buffers()[1] or b"", np.uint8)[bytes_.offset : bytes_.offset + len(values)]
    if not values.null_count:
        return held.astype(np.bool_)
    valid = values.is_valid().cast(pa.uint8())
    return (held & np.frombuffer(valid.buffers()[1], np.uint8)[: len(values)]).astype(np.bool_)


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array; a single chunk is not copied.

    >>> import pyarrow as pa
    >>> whole(pa.chunked_array([["a"], ["b"]])).to_pylist(), len(whole(pa.chunked_array([], pa.string())))
    (['a', 'b'], 0)
    """
    if not isinstance(column, pa.ChunkedArray):
        return column
    if not column.num_chunks:
        return pa.nulls(0, column.type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _validity(values: Sequence[Any], with_nulls: bool) -> pa.Buffer | None:
    if not with_nulls:
        return None
    present = np.frombuffer(bytes([value is not None for value in values]), np.bool_)
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def replaced(column: pa.ChunkedArray, where: pa.BooleanArray, new: pa.Array) -> pa.Array:
    """The column with the values of `new`, in order, where `where` is true.

    >>> import pyarrow as pa
    >>> column, chosen = pa.chunked_array([["a", "b", "c"]]), pa.array([True, False, True])
    >>> replaced(column, chosen, pa.array(["x", "y"])).to_pylist()
    ['x', 'b', 'y']
    """
    old = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_primitive(old.type):
        return pc.replace_with_mask(old, where, new)
    # Not for every type there is a function: the new values are put behind the old ones and taken from there.
    positions = np.arange(len(old))
    replaced_rows = truths(where)
    positions[replaced_rows] = len(old) + np.arange(len(new))
    return pa.concat_arrays([old, new]).take(integers(positions))
