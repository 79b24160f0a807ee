"""Deletion vectors, in Delta's format: which rows of a file are no longer there.

An `add` may carry a descriptor that points to a set of row positions: in a
file below the table (`u`), at an absolute address (`p`), or inside the log
itself (`i`). The set is a 64-bit Roaring bitmap in its portable form behind a
magic number; a file frames each set with a length and a CRC-32. Our own tables
and Delta tables have them alike.

Bitmaps are decoded with Arrow alone: a Roaring bitmap container has the bit
order of an Arrow boolean array and an array container is an Arrow uint16
array, so executors need no further library for it.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from indextables.errors import CorruptLogError, MissingSplitError, NotFoundError
from indextables.lazy import np, pa
from indextables.records import dataclass
from indextables.storage.store import Store, resolve

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_UUID_CHARACTERS = 20

_MAGIC = 1681511377
_FILE_VERSION = 1
_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4
_ARRAY_LIMIT = 4096
_BITMAP_BYTES = 8192
_CONTAINER_ROWS = 1 << 16

RELATIVE, ABSOLUTE, INLINE = "u", "p", "i"
INLINE_BYTES = 1 << 10
"""Vectors of up to this many bytes are written into the log itself."""


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The descriptor of a deletion vector, as an `add` carries it."""

    storage_type: str
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """What makes two descriptors of one file different."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{suffix}"

    def location(self) -> str | None:
        """Where the bitmap is stored: a path below the table, an absolute address, or None when inline."""
        if self.storage_type == INLINE:
            return None
        if self.storage_type == ABSOLUTE:
            return self.path_or_inline
        if self.storage_type != RELATIVE:
            raise CorruptLogError(
                f"deletion vector storage type {self.storage_type!r} is not known (expected u, p or i)",
                storage_type=self.storage_type,
            )
        prefix, encoded = self.path_or_inline[:-_UUID_CHARACTERS], self.path_or_inline[-_UUID_CHARACTERS:]
        name = _file_name(uuid.UUID(bytes=z85_decode(encoded)))
        return f"{prefix}/{name}" if prefix else name

    def wire(self) -> dict[str, Any]:
        """The descriptor as the log writes it; the inverse of `descriptor`."""
        body = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline,
            "offset": self.offset,
            "sizeInBytes": self.size_bytes,
            "cardinality": self.cardinality,
        }
        return {name: value for name, value in body.items() if value is not None}


def _file_name(number: uuid.UUID) -> str:
    return f"deletion_vector_{number}.bin"


FILE_NAME = r"deletion_vector_[0-9a-f-]{36}\.bin"
"""The names of files of vectors, as a regular expression."""


def descriptor(wire: Mapping[str, Any] | None) -> DeletionVector | None:
    """Read a descriptor from the log's `deletionVector` object; None when there is none."""
    if not wire or wire.get("storageType") is None:
        return None
    try:
        offset = wire.get("offset")
        return DeletionVector(
            storage_type=str(wire["storageType"]),
            path_or_inline=str(wire["pathOrInlineDv"]),
            offset=None if offset is None else int(offset),
            size_bytes=int(wire["sizeInBytes"]),
            cardinality=int(wire["cardinality"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLogError(f"deletion vector descriptor {dict(wire)!r} is incomplete: {error}") from error


def unique_id(wire: Mapping[str, Any] | None) -> str | None:
    """The unique id of the log's `deletionVector` object; None when there is none."""
    vector = descriptor(wire)
    return None if vector is None else vector.unique_id


def vector_file(unique_id: str) -> str | None:
    """The path below the table of the file that holds a vector; None if it is elsewhere, or in the log."""
    if not unique_id.startswith(RELATIVE):
        return None
    name, _, offset = unique_id[1:].rpartition("@")
    return DeletionVector(RELATIVE, name if offset.isdigit() else unique_id[1:], None, 0, 0).location()


def number_deleted(wire: Mapping[str, Any] | None) -> int:
    """How many rows the log's `deletionVector` object hides; 0 when there is none."""
    vector = descriptor(wire)
    return 0 if vector is None else vector.cardinality


def write_vectors(store: Store, sets: Sequence[np.ndarray]) -> tuple[list[DeletionVector], str | None]:
    """Write sets of ascending row positions; small ones become part of their descriptor.

    Returns a descriptor for each set, and the path of the one file that holds the larger ones, if there are
    any.
    """
    bitmaps = [encode_bitmap(rows) for rows in sets]
    number, body = uuid.uuid4(), bytearray([_FILE_VERSION])
    vectors: list[DeletionVector] = []
    for rows, data in zip(sets, bitmaps, strict=True):
        if len(data) <= INLINE_BYTES:
            vectors.append(DeletionVector(INLINE, z85_encode(data), None, len(data), len(rows)))
            continue
        vectors.append(DeletionVector(RELATIVE, z85_encode(number.bytes), len(body), len(data), len(rows)))
        body += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    if len(body) == 1:
        return vectors, None
    path = _file_name(number)
    store.put(path, bytes(body))
    return vectors, path


def deleted_rows(store: Store, vector: DeletionVector, path: str, num_rows: int) -> pa.Array:
    """The positions of the deleted rows of a data file, ascending, as uint64.

    A vector that does not fit its descriptor or its file is an error: which rows are live is not known then.
    """
    location = vector.location()
    name = f"{location or 'inline'} of {path}"
    try:
        if location is None:
            data = z85_decode(vector.path_or_inline)[: vector.size_bytes]
        else:
            data = _framed(store, vector, location)
    except NotFoundError as gone:
        raise MissingSplitError(
            f"the deletion vector of {store.uri}/{path} does not exist ({gone}), so its rows cannot be "
            "told from deleted ones. Bring it back, or read a version that does not need it.",
            path=path,
        ) from gone
    rows = decode_bitmap(data, name=name)
    wrong = ""
    if len(rows) != vector.cardinality:
        wrong = f"holds {len(rows)} rows, but the log says {vector.cardinality}"
    elif len(rows) and rows[-1].as_py() >= num_rows:
        wrong = f"names row {rows[-1].as_py()}, counted from 0, but the file has {num_rows} rows"
    if wrong:
        raise CorruptLogError(
            f"the deletion vector {name} {wrong}, so its live rows cannot be told from deleted ones. "
            "Restore the vector or the log from a backup, or read a version that does not need it.",
            path=path, vector=vector.unique_id,
        )  # fmt: skip
    return rows


def z85_decode(text: str) -> bytes:
    """Decode Z85 (ZeroMQ's Base85), the encoding of inline vectors and of the ids in file names."""
    strange = set(text) - set(_Z85)
    if strange or len(text) % 5:
        raise CorruptLogError(f"{text!r} is not Z85 text")
    try:
        return base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise CorruptLogError(f"{text!r} is not Z85 text: {error}") from error


def z85_encode(data: bytes) -> str:
    """Encode as Z85, filled up with zeros to a multiple of four bytes."""
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(_TO_Z85)


def _framed(store: Store, vector: DeletionVector, location: str) -> bytes:
    """The bytes of one vector, cut out of its file after checking length and CRC-32."""
    owner, path = resolve(store, location)
    offset = vector.offset or 0
    frame = owner.get_range(path, offset, vector.size_bytes + 8)
    if len(frame) != vector.size_bytes + 8:
        raise CorruptLogError(
            f"deletion vector file {location} ends inside the vector at {offset}", path=location
        )
    if offset > 0 and owner.get_range(path, 0, 1)[0] != _FILE_VERSION:
        raise CorruptLogError(f"deletion vector file {location} has an unknown format version", path=location)
    (size,) = struct.unpack(">i", frame[:4])
    data, (checksum,) = frame[4:-4], struct.unpack(">I", frame[-4:])
    if size != vector.size_bytes:
        raise CorruptLogError(
            f"deletion vector file {location} has {size} bytes at {offset}, the log says {vector.size_bytes}",
            path=location,
        )
    if zlib.crc32(data) != checksum:
        raise CorruptLogError(
            f"deletion vector file {location} is damaged: CRC-32 differs at {offset}", path=location
        )
    return data


def encode_bitmap(rows: np.ndarray) -> bytes:
    """The inverse of `decode_bitmap`: ascending row positions, without runs."""
    highs, starts = np.unique(rows >> 32, return_index=True)
    out = bytearray(struct.pack("<iq", _MAGIC, len(highs)))
    for high, low in zip(highs.tolist(), np.split(rows, starts[1:]), strict=True):
        out += struct.pack("<I", high) + _encode_bucket(low & 0xFFFFFFFF)
    return bytes(out)


def _encode_bucket(rows: np.ndarray) -> bytes:
    keys, starts = np.unique(rows >> 16, return_index=True)
    containers = [_encode_container(part & 0xFFFF) for part in np.split(rows, starts[1:])]
    sizes = np.diff([*starts, len(rows)])
    header = np.stack([keys, sizes - 1], axis=1).astype("<u2").tobytes()
    first = 8 + len(header) + 4 * len(keys)
    offsets = first + np.cumsum([0, *map(len, containers)])[:-1]
    head = struct.pack("<II", _COOKIE, len(keys)) + header + offsets.astype("<u4").tobytes()
    return head + b"".join(containers)


def _encode_container(rows: np.ndarray) -> bytes:
    if len(rows) <= _ARRAY_LIMIT:
        return bytes(rows.astype("<u2").tobytes())
    bits = np.zeros(_CONTAINER_ROWS, np.bool_)
    bits[rows] = True
    return bytes(np.packbits(bits, bitorder="little").tobytes())


def decode_bitmap(data: bytes, *, name: str) -> pa.Array:
    """Decode a magic number followed by a portable 64-bit Roaring bitmap."""
    try:
        magic, buckets = struct.unpack_from("<iq", data, 0)
        if magic != _MAGIC:
            raise CorruptLogError(
                f"{name} starts with {magic}, not the magic number of a deletion vector", path=name
            )
        position, chunks = 12, []
        for _ in range(buckets):
            (high,) = struct.unpack_from("<I", data, position)
            low, position = _decode_bucket(data, position + 4, high << 32)
            chunks.extend(low)
    except (struct.error, pa.ArrowInvalid) as error:
        raise CorruptLogError(f"{name} is not a complete Roaring bitmap: {error}", path=name) from error
    rows = np.concatenate(chunks) if chunks else np.zeros(0, np.uint64)
    return pa.Array.from_buffers(pa.uint64(), len(rows), [None, pa.py_buffer(rows)])


def _decode_bucket(data: bytes, position: int, start: int) -> tuple[list[np.ndarray], int]:
    """Decode one 32-bit Roaring bitmap; returns its arrays and the offset where it ends."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        size = (cookie >> 16) + 1
        run_flags = int.from_bytes(data[position : position + (size + 7) // 8], "little")
        position += (size + 7) // 8
        has_offsets = size >= _OFFSETS_FROM
    elif cookie == _COOKIE:
        (size,) = struct.unpack_from("<I", data, position)
        run_flags, has_offsets = 0, True
        position += 4
    else:
        raise pa.ArrowInvalid(f"unknown Roaring cookie {cookie}")
    header = struct.unpack_from(f"<{2 * size}H", data, position)
    position += 4 * size + (4 * size if has_offsets else 0)
    arrays = []
    for index in range(size):
        key, cardinality = header[2 * index], header[2 * index + 1] + 1
        if run_flags >> index & 1:
            rows, position = _decode_runs(data, position)
        elif cardinality <= _ARRAY_LIMIT:
            rows = np.frombuffer(_cut(data, position, 2 * cardinality), "<u2")
            position += 2 * cardinality
        else:
            rows = _set_bits(_cut(data, position, _BITMAP_BYTES))
            position += _BITMAP_BYTES
        arrays.append(rows.astype(np.uint64) + np.uint64(start + key * _CONTAINER_ROWS))
    return arrays, position


def _decode_runs(data: bytes, position: int) -> tuple[np.ndarray, int]:
    (count,) = struct.unpack_from("<H", data, position)
    runs = struct.unpack_from(f"<{2 * count}H", data, position + 2)
    bits = 0
    for first, extra in zip(runs[::2], runs[1::2], strict=True):
        bits |= ((1 << (extra + 1)) - 1) << first
    return _set_bits(bits.to_bytes(_BITMAP_BYTES, "little")), position + 2 + 4 * count


def _set_bits(bitmap: bytes) -> np.ndarray:
    return np.flatnonzero(np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little"))


def _cut(data: bytes, position: int, length: int) -> bytes:
    piece = data[position : position + length]
    if len(piece) != length:
        raise pa.ArrowInvalid(f"{len(piece)} of {length} bytes at {position}")
    return piece
