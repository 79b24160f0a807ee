"""The difference of two collections of rows: those of one side that the other does not have, and back.

Rows are compared whole and to the bit, as a multiset: of two equal rows on one side and one on the
other, one remains. Large collections go through buckets on local disk, chosen by what rows hold, so that
only one bucket of both sides is in memory at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from indextables.lazy import pc
from indextables.storage.scratch import discard, scratch

BUCKET_BYTES = 16 << 20
"""As many bytes of files go into one bucket; in memory rows take a multiple of it."""
MOST_BUCKETS = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ENDS = 8
_SIDES = ("left", "came")


class RowDifference:
    """Two collections of rows with the same columns; equal keys, or else equal rows, share a bucket."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str], size: int) -> None:
        self._schema = pa.schema([field.with_nullable(True) for field in schema])
        self._keys = tuple(keys)
        self._buckets = min(max(1, size // BUCKET_BYTES), MOST_BUCKETS)
        self._directory: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            discard(str(self._directory))

    def of(self, left: Iterable[pa.Table], came: Iterable[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
        """What only one side has, bucket by bucket."""
        if self._buckets == 1:
            yield difference(self._table(left), self._table(came))
            return
        self._directory = Path(scratch("changes"))
        for side, tables in zip(_SIDES, (left, came), strict=True):
            self._spread(side, tables)
        for bucket in range(self._buckets):
            yield difference(*(self._load(side, bucket) for side in _SIDES))

    def same_key(self, left: pa.Table, came: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """For each row, whether the other side has its key; a key with a null equals none."""
        both = pa.concat_tables([left, came]).select(list(self._keys))
        codes = row_codes(both)
        for column in both.columns:
            codes = np.where(np.asarray(column.is_valid()), codes, -1)
        ends = codes[: len(left)], codes[len(left) :]
        return tuple(  # type: ignore[return-value]
            np.isin(mine, other[other >= 0]) for mine, other in (ends, ends[::-1])
        )

    def _table(self, tables: Iterable[pa.Table]) -> pa.Table:
        parts = [pa.Table.from_arrays(table.columns, schema=self._schema) for table in tables]
        return pa.concat_tables(parts) if parts else self._schema.empty_table()

    def _spread(self, side: str, tables: Iterable[pa.Table]) -> None:
        """Write the rows of a side into its buckets."""
        with contextlib.ExitStack() as files:
            writers = [
                files.enter_context(pa.ipc.new_stream(self._file(side, bucket), self._schema))
                for bucket in range(self._buckets)
            ]
            for table in tables:
                whole = self._table([table])
                numbers = _places(whole.select(list(self._keys)) if self._keys else whole) % np.uint64(
                    self._buckets
                )
                for bucket in np.unique(numbers).tolist():
                    writers[bucket].write_table(whole.filter(pa.array(numbers == bucket)))

    def _load(self, side: str, bucket: int) -> pa.Table:
        with pa.memory_map(self._file(side, bucket)) as file:
            rows: pa.Table = pa.ipc.open_stream(file).read_all()
        return rows

    def _file(self, side: str, bucket: int) -> str:
        assert self._directory is not None
        return str(self._directory / f"{side}-{bucket}.arrows")


def difference(left: pa.Table, came: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that only one of two tables has, as multisets."""
    if not len(left) or not len(came):
        return left, came
    codes = row_codes(pa.concat_tables([left, came]))
    sides = codes[: len(left)], codes[len(left) :]
    counts = [np.bincount(side, minlength=int(codes.max()) + 1) for side in sides]
    both = np.minimum(*counts)
    kept = [pa.array(_rank(side) >= both[side]) for side in sides]
    return left.filter(kept[0]), came.filter(kept[1])


def _rank(codes: np.ndarray) -> np.ndarray:
    """For each number, how many equal ones come before it."""
    order = np.argsort(codes, kind="stable")
    ascending = codes[order]
    first = np.searchsorted(ascending, ascending)
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - first
    return rank


def row_codes(rows: pa.Table) -> np.ndarray:
    """A number for each row, the same for equal rows and no others."""
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        codes = _paired(codes, _codes(_whole(column)))
    return codes


def _paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A number for each pair; both numbers are below the count of rows, so that a pair fits 64 bits."""
    if not len(first):
        return first
    pairs = pa.array(first * (int(second.max()) + 1) + second)
    numbers: np.ndarray = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        # Several chunks may have more bytes than 32-bit offsets reach.
        column = column.cast(pa.large_binary())
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _codes(values: pa.Array) -> np.ndarray:
    """A number for each value, the same for equal values and no others; 0 is null."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        return _codes(values.storage)
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.int64)
    if pa.types.is_dictionary(kind):
        return _codes(values.dictionary_decode())
    if pa.types.is_struct(kind):
        inner = np.zeros(len(values), np.int64)
        for part in values.flatten():
            inner = _paired(inner, _codes(part))
        return np.where(np.asarray(values.is_valid()), inner + 1, 0)
    if pa.types.is_map(kind):
        values = values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    if pa.types.is_nested(kind):
        return _codes(_sequences(values))
    if pa.types.is_floating(kind):
        # As numbers the two zeros are equal, and NaN is not even equal to itself.
        values = values.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    indices = values.dictionary_encode().indices
    codes: np.ndarray = pc.fill_null(pc.add(indices.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False)
    return codes


def _sequences(values: pa.Array) -> pa.Array:
    """Lists as the bytes of their elements' numbers."""
    elements = _codes(values.flatten()).astype(np.int64)
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths * 8)]).astype(np.int64)
    bytes_of = pa.Array.from_buffers(
        pa.large_binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(elements)]
    )
    return pc.if_else(values.is_valid(), bytes_of, pa.scalar(None, pa.large_binary()))


def _places(rows: pa.Table) -> np.ndarray:
    """A number for each row, the same for equal rows; only whole numbers and texts count."""
    places = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        for part in _parts(_whole(column)):
            places = (places ^ part) * _MIX
            places ^= places >> np.uint64(29)
    return places


def _parts(values: pa.Array) -> Iterator[np.ndarray]:
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004
    if pa.types.is_integer(values.type):
        yield (
            pc.fill_null(values.cast(pa.int64(), safe=False), 0)
            .to_numpy(zero_copy_only=False)
            .astype(np.uint64)
        )
    elif pa.types.is_large_binary(kind):
        values = pc.fill_null(values, b"")
        _, ends, data = values.buffers()
        bounds = np.frombuffer(ends, np.int64)[values.offset : values.offset + len(values) + 1]
        lengths = np.diff(bounds)
        yield lengths.astype(np.uint64)
        letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        for near in range(_ENDS):
            inside = np.minimum(near, np.maximum(lengths - 1, 0))
            for at in (bounds[:-1] + inside, bounds[1:] - 1 - inside):
                text = letters[np.clip(at, 0, len(letters) - 1)]
                yield np.where(lengths > 0, text, 0).astype(np.uint64)
