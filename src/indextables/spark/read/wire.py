"""What the planner tells Spark: the files to read, by partition, in one block of bytes.

`LogFileIndex.java` reads the block back. Everything is little endian and laid
out column by column, so a hundred thousand files are a handful of buffer
copies here and plain loops there. Texts travel as 4-byte lengths followed by
UTF-8, partition values as the internal value of their type.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow as pa

OK = b"\x00"
FAILED = b"\x01"


@dataclass(frozen=True, slots=True)
class Answer:
    """The files one query has to read, and how many there were to choose from."""

    considered: int
    paths: pa.Array | pa.ChunkedArray
    """Full Hadoop paths, not percent-encoded."""
    sizes: pa.Array | pa.ChunkedArray
    modified_ms: pa.Array | pa.ChunkedArray
    partitions: tuple[pa.Array, ...]
    """One typed array per partition column, one value per file."""
    shown: str = ""
    """What EXPLAIN says about the choice besides the counts."""
    deleted: Mapping[int, np.ndarray] = field(default_factory=dict)
    """The numbers of the deleted rows (ascending) of those files that have any, by the index of the file."""
    chosen: Mapping[int, np.ndarray] = field(default_factory=dict)
    """The numbers of the only rows (ascending) to be read of some files, by the index of the file."""


def encode_files(files: Mapping[str, np.ndarray | None]) -> str:
    """Encode which files are read, and of some which rows; `LogFileIndex.java` hands it back unread."""
    texts = {
        path: None if rows is None else base64.b64encode(rows.astype("<i8").tobytes()).decode()
        for path, rows in files.items()
    }
    return json.dumps(texts)


def decode_files(text: str) -> dict[str, np.ndarray | None]:
    """The files and rows that were encoded."""
    return {
        path: None if rows is None else np.frombuffer(base64.b64decode(rows), "<i8")
        for path, rows in json.loads(text).items()
    }


def encode_size(size_bytes: int) -> bytearray:
    """Encode the number of bytes of all rows."""
    return bytearray(OK + struct.pack("<q", size_bytes))


def encode_counts(counts: pa.Table | None) -> bytearray:
    """Encode rows of keys and aggregates; None says that the log does not know them."""
    if counts is None:
        return bytearray(OK + struct.pack("<i", -1))
    columns = (_column(_plain(column)) for column in counts.columns)
    return bytearray(OK + struct.pack("<i", counts.num_rows) + b"".join(columns))


def encode_failure(message: str) -> bytearray:
    """Encode the reason why there is no plan."""
    text = message.encode("utf-8", "replace")
    return bytearray(FAILED + struct.pack("<i", len(text)) + text)


def encode_plan(answer: Answer) -> bytearray:
    """Encode the files, grouped into one directory per distinct tuple of partition values."""
    count = len(answer.paths)
    groups = _groups(answer.partitions, count)
    order = pa.array(np.argsort(groups, kind="stable"))
    distinct, first, lengths = np.unique(groups, return_index=True, return_counts=True)
    out = bytearray(OK)
    shown = answer.shown.encode()
    out += struct.pack("<i", len(shown)) + shown
    out += struct.pack("<qqi", answer.considered, count, len(distinct))
    for column in answer.partitions:
        out += _column(_plain(column).take(pa.array(first)))
    out += lengths.astype("<i4").tobytes()
    out += _texts(_plain(answer.paths).take(order))
    out += _longs(_plain(answer.sizes).take(order))
    out += _longs(_plain(answer.modified_ms).take(order))
    out.append(bool(answer.deleted or answer.chosen))
    if answer.deleted or answer.chosen:
        sets = [
            _all_but(answer.chosen[at]) if at in answer.chosen else _row_set(answer.deleted.get(at))
            for at in order.to_pylist()
        ]
        out += _texts(pa.array(sets, pa.binary()))
    return out


def _row_set(rows: np.ndarray | None) -> bytes:
    """Row numbers as a list or as bits, whichever is shorter; `SplitFormat.java` reads them."""
    if rows is None or not len(rows):
        return b""
    size = int(rows[-1]) + 1
    if 4 * len(rows) <= -(-size // 8) or size > 1 << 32:
        return b"\0" + rows.astype("<u4").tobytes()
    bits = np.zeros(size, np.bool_)
    bits[rows] = True
    return b"\1" + np.packbits(bits, bitorder="little").tobytes()


def _all_but(rows: np.ndarray) -> bytes:
    """Every row but these, as `SplitFormat.java` reads it."""
    return b"\2" + rows.astype("<u4").tobytes()


def _groups(partitions: Sequence[pa.Array], count: int) -> Any:
    """A number per file; equal exactly where all partition values are equal."""
    groups = np.zeros(count, dtype=np.int64)
    for column in partitions:
        codes = _plain(column).dictionary_encode(null_encoding="encode")
        width = max(1, len(codes.dictionary))
        combined = groups * width + codes.indices.to_numpy(zero_copy_only=False)
        groups = np.unique(combined, return_inverse=True)[1]
    return groups


def _plain(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _column(values: pa.Array) -> bytes:
    valid: bytes = pc.is_valid(values).cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes()
    kind = values.type
    if pa.types.is_floating(kind):
        return valid + bytes(
            values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False).astype("<f8").tobytes()
        )
    if pa.types.is_decimal(kind):
        return valid + _texts(values.cast(pa.string()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return valid + _texts(values)
    return valid + _longs(_integers(values))


def _integers(values: pa.Array) -> pa.Array:
    """Dates as days, instants as microseconds, truth as 0 and 1."""
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    return values


def _longs(values: pa.Array) -> bytes:
    return bytes(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes())


def _texts(values: pa.Array) -> bytes:
    """All lengths, then all bytes."""
    binary = values.cast(pa.large_binary()).fill_null(b"")
    lengths: bytes = (
        pc.binary_length(binary).cast(pa.int32()).to_numpy(zero_copy_only=False).astype("<i4").tobytes()
    )
    offsets = pa.Array.from_buffers(
        pa.int64(), len(binary) + 1, [None, binary.buffers()[1]], offset=binary.offset
    )
    if len(binary) == 0 or binary.buffers()[2] is None:
        return lengths
    start, stop = offsets[0].as_py(), offsets[len(binary)].as_py()
    return lengths + bytes(binary.buffers()[2][start:stop].to_pybytes())
