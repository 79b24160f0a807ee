"""Numbers as bytes: varints, byte planes, columns of narrow numbers, and frames with checksums.

Everything the index stores is encoded here. A frame is the unit of reading. Its checksum
is seeded with its offset, so that a frame at the wrong offset is detected like a flipped
bit. Checksums are compared before anything is decompressed or used, which limits the
memory that damaged bytes can request.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, ParamSpec, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.errors import DamagedIndexError, Error
from indextables.storage.checksum import crc32

Bytes: TypeAlias = bytes | bytearray | memoryview
Array: TypeAlias = npt.NDArray[Any]

FRAME_HEAD = 8
_FRAME = struct.Struct("<II")
_COMPRESSED = 1 << 31
_SMALLEST_COMPRESSED = 64
"""Shorter texts are not compressed: they do not get smaller."""
_SAVED = 4
"""Compression must save one byte in this many: decompressing even a short text takes 15 us."""
_LEVEL = 1
_SHIFTS = (7, 14, 21, 28)
_LONGEST_VARINT = 5
_LOOPED = 96
"""Up to this many bytes, a loop decodes varints faster than array operations."""

P = ParamSpec("P")
T = TypeVar("T")


_codecs = threading.local()


def _zstd() -> Any:
    """One compressor per thread: Arrow does not promise that threads may share one."""
    codec = getattr(_codecs, "zstd", None)
    if codec is None:
        codec = _codecs.zstd = pa.Codec("zstd", compression_level=_LEVEL)
    return codec


def damaged(what: str) -> DamagedIndexError:
    """The error for bytes that are not what was written."""
    return DamagedIndexError(f"the search index is damaged: {what}", piece=what)


def decodes(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a decoder: any exception in it means that its bytes are damaged, and is raised as that."""

    def wrap(decode: Callable[P, T]) -> Callable[P, T]:
        def decoded(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return decode(*args, **kwargs)
            except Error:
                raise
            except (
                ValueError,
                LookupError,
                OverflowError,
                struct.error,
                msgspec.MsgspecError,
                pa.ArrowException,
                OSError,
            ) as failed:
                raise damaged(f"{what} cannot be decoded ({type(failed).__name__}: {failed})") from failed

        return decoded

    return wrap


def frame(raw: Bytes, offset: int) -> bytes:
    """Bytes with checksum and length, compressed where that helps, for an offset in the index."""
    body, size = bytes(raw), len(raw)
    if size >= _SMALLEST_COMPRESSED:
        smaller = _zstd().compress(body, asbytes=True)
        if len(smaller) * _SAVED <= size * (_SAVED - 1):
            body, size = smaller, size | _COMPRESSED
    head = size.to_bytes(4, "little")
    crc = crc32(body, crc32(head, offset & 0xFFFFFFFF))
    return crc.to_bytes(4, "little") + head + body


def unframe(data: Bytes, offset: int, what: str) -> bytes:
    """The content of the frame at an offset, after verifying it."""
    if len(data) < FRAME_HEAD:
        raise damaged(f"{what} at {offset} is cut off")
    crc, size = _FRAME.unpack_from(data)
    if crc32(memoryview(data)[4:], offset & 0xFFFFFFFF) != crc:
        raise damaged(f"{what} at {offset} does not match its checksum")
    if size & _COMPRESSED:
        try:
            return bytes(_zstd().decompress(memoryview(data)[FRAME_HEAD:], size & ~_COMPRESSED, asbytes=True))
        except (OSError, pa.ArrowException) as failed:
            raise damaged(f"{what} at {offset} cannot be decompressed ({failed})") from failed
    if size != len(data) - FRAME_HEAD:
        raise damaged(f"{what} at {offset} does not have the length that was written")
    return bytes(memoryview(data)[FRAME_HEAD:])


def starts_of(lengths: Array) -> Array:
    """The start of each of some consecutive items, given their lengths, followed by the end of the last."""
    starts = np.empty(len(lengths) + 1, np.int64)
    starts[0] = 0
    lengths.cumsum(out=starts[1:])
    return starts


def gather(starts: Array, lengths: Array) -> Array:
    """The numbers of many ranges, concatenated."""
    filled = lengths > 0
    begin, size = starts[filled].astype(np.int64), lengths[filled].astype(np.int64)
    if not len(begin):
        return np.zeros(0, np.int64)
    numbers = np.ones(int(size.sum()), np.int64)
    numbers[0] = begin[0]
    numbers[size[:-1].cumsum()] = begin[1:] - (begin[:-1] + size[:-1] - 1)
    return numbers.cumsum(out=numbers)


def varints(values: Array) -> tuple[Array, Array]:
    """Encode numbers below 2**32 as varints; also the offset of each, followed by the end."""
    v = values.astype(np.uint32, copy=False)
    size = np.ones(len(v), np.int64)
    for shift in _SHIFTS:
        more = v >= np.uint32(1 << shift)
        if not more.any():
            break
        size += more
    at = starts_of(size)
    if at[-1] == len(v):
        return v.astype(np.uint8), at
    out = np.empty(int(at[-1]), np.uint8)
    offset, left, rest = at[:-1], size, v
    while len(rest):
        last = left == 1
        out[offset] = np.where(last, rest, (rest & np.uint32(127)) | np.uint32(128)).astype(np.uint8)
        more = ~last
        offset, left, rest = offset[more] + 1, left[more] - 1, rest[more] >> np.uint32(7)
    return out, at


def unvarints(data: Bytes | Array) -> Array:
    """Decode consecutive varints."""
    if len(data) <= _LOOPED and not isinstance(data, np.ndarray):
        few = few_varints(data)
        if max(few, default=0) >> 32:
            raise damaged("a number is too long")
        return np.array(few, np.uint32)
    raw = np.frombuffer(data, np.uint8)
    more = raw >= 128  # noqa: PLR2004 - the flag of a varint
    if not more.any():
        return raw.astype(np.uint32)
    if more[-1]:
        raise damaged("a number is cut off")
    end = (~more).nonzero()[0]
    out = raw.take(end).astype(np.uint32)
    # Starting from the last byte of each number: add those with a second byte, with a third, and so on. The
    # byte "before" the first one is the very last, which has no continuation flag.
    at = more.take(end - 1).nonzero()[0]
    offset = end.take(at) - 1
    for _ in range(1, _LONGEST_VARINT):
        if not len(at):
            break
        out[at] = out.take(at) << np.uint32(7) | (raw.take(offset) & np.uint8(127))
        offset -= 1
        again = more.take(offset).nonzero()[0]
        at, offset = at.take(again), offset.take(again)
    if len(at):
        raise damaged("a number is too long")
    return out


def few_varints(data: Bytes) -> list[int]:
    """Decode a few consecutive varints."""
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 127) << shift
        if byte & 128:
            shift += 7
        else:
            numbers.append(number)
            number = shift = 0
    if shift:
        raise damaged("a number is cut off")
    return numbers


def width_of(values: Array) -> int:
    """The bytes needed for the largest of some numbers: 1, 2, 4 or 8."""
    most = int(values.max()) if len(values) else 0
    return 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4 if most < 1 << 32 else 8


def narrow(values: Array) -> Array:
    """The same numbers in the smallest unsigned type that holds them."""
    return values.astype(f"<u{width_of(values)}", copy=False)


def planes(values: Array) -> bytes:
    """Numbers stored by byte, all low bytes first: high bytes are mostly equal and compress to nothing."""
    small = narrow(values)
    width = small.dtype.itemsize
    if width > 1:
        small = np.ascontiguousarray(small.view(np.uint8).reshape(-1, width).T)
    return bytes((width,)) + small.tobytes()


def unplanes(data: Bytes) -> Array:
    """The numbers that `planes` wrote."""
    width = data[0]
    flat = np.frombuffer(data, np.uint8, offset=1)
    if width == 1:
        return flat
    if width not in (2, 4, 8) or len(flat) % width:
        raise damaged("numbers have an unknown width")
    kind: Any = np.dtype(f"<u{width}").type
    low, *higher = flat.reshape(width, -1)
    numbers = low.astype(kind)
    for number, plane in enumerate(higher, 1):
        numbers |= plane.astype(kind) << kind(8 * number)
    return numbers


def part_of_planes(data: bytes, first: int, count: int) -> bytes:
    """Some consecutive ones of the numbers that `planes` wrote, in the same form."""
    width = data[0]
    if width not in _KINDS:
        raise damaged("numbers have an unknown width")
    step = (len(data) - 1) // width
    if first < 0 or count < 1 or first + count > step:
        raise damaged("there are fewer numbers than were written")
    starts = range(1 + first, 1 + first + width * step, step)
    return data[:1] + b"".join([data[start : start + count] for start in starts])


class Planes:
    """The numbers of several texts written by `planes`, concatenated; decodes only the requested ones."""

    __slots__ = ("_first", "_held", "_raw", "_width")

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._width: list[int]
        self._held: list[int]
        self._raw = np.frombuffer(b"".join(texts), np.uint8)
        ends = list(accumulate(map(len, texts)))
        self._width = [text[0] for text in texts]
        counts, odd = zip(*(divmod(len(text) - 1, text[0]) for text in texts), strict=True)
        if any(odd) or not {1, 2, 4, 8}.issuperset(self._width):
            raise damaged("numbers have an unknown width")
        self._held = [0, *accumulate(counts)]
        # The offset the first number's low byte would have if all numbers before it took one byte each.
        self._first = [
            end - len(text) + 1 - held for end, text, held in zip(ends, texts, self._held, strict=False)
        ]

    def __len__(self) -> int:
        return self._held[-1]

    def take(self, at: Array) -> Array:
        """The numbers at some indexes."""
        numbers: Array
        text = np.searchsorted(self._held[1:], at, "right")
        low = at + np.array(self._first).take(text)
        numbers = self._raw.take(low)
        widths = np.array(self._width)
        steps = np.diff(self._held).take(text)
        for plane in range(1, int(widths.max())):
            inside = (widths > plane).take(text)
            high = self._raw.take(low + steps * (plane * inside)).astype(np.int64) * inside
            numbers = numbers | high << (8 * plane)
        return numbers


_COLUMN = struct.Struct("<BI")
_KINDS = {width: np.dtype(f"<u{width}") for width in (1, 2, 4, 8)}


def write_columns(columns: Sequence[Array | bytes]) -> bytes:
    """Columns of numbers, each as narrow as it can be, and strings of bytes."""
    heads, bodies = [], []
    for column in columns:
        small = narrow(column) if isinstance(column, np.ndarray) else column
        body = small.tobytes() if isinstance(small, np.ndarray) else small
        heads.append(_COLUMN.pack(small.dtype.itemsize if isinstance(small, np.ndarray) else 0, len(body)))
        bodies.append(body)
    return bytes((len(columns),)) + b"".join(heads) + b"".join(bodies)


def column_ranges(raw: bytes) -> list[tuple[int, int, int]]:
    """For every column that `write_columns` wrote: width, offset and end."""
    numbers = struct.unpack_from("<" + "BI" * raw[0], raw, 1)
    ends = [*accumulate(numbers[1::2], initial=1 + raw[0] * _COLUMN.size)]
    if ends[-1] > len(raw):
        raise damaged("a column is cut off")
    return [*zip(numbers[0::2], ends, ends[1:], strict=False)]


def read_column(raw: bytes, width: int, begin: int, end: int) -> Any:
    """One column: numbers, or bytes if the width is 0."""
    return np.frombuffer(raw, _KINDS[width], (end - begin) // width, begin) if width else raw[begin:end]


def read_columns(raw: bytes) -> list[Any]:
    """The columns that `write_columns` wrote."""
    return [read_column(raw, *column) for column in column_ranges(raw)]
