"""Values of Spark's VARIANT type: a document in two pieces of bytes, its values and the names in it.

The layout is that of Parquet's variant encoding. A shredded variant has other columns and does not come here.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.records import dataclass

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
_DATE_EPOCH = dt.date(1970, 1, 1)


def variant_value(value: bytes, metadata: bytes) -> Any:
    """The document as Python values: dicts, lists, texts, numbers, booleans, times and None.

    >>> variant_value(bytes([2, 1, 0, 0, 3, 9]) + b"hi", bytes([1, 1, 0, 1]) + b"a")
    {'a': 'hi'}
    """
    try:
        return _Document(value, _names(metadata)).at(0)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, OverflowError, ValueError) as damage:
        raise TableError(f"a value of type VARIANT cannot be read: {damage!r}") from damage


def texts_in_variants(column: pa.StructArray) -> pa.ListArray:
    """The texts in each variant, and a null for each null in it; null where the variant itself is."""
    return pa.array([_texts(pair) for pair in column.to_pylist()], pa.list_(pa.string()))


def _texts(pair: Mapping[str, bytes] | None) -> list[str | None] | None:
    if pair is None:
        return None
    texts: list[str | None] = []
    pending = [variant_value(pair["value"], pair["metadata"])]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif item is None or isinstance(item, str):
            texts.append(item)
    return texts


def _names(metadata: bytes) -> list[str]:
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    first = 1 + width * (count + 2)
    ends = [
        first + int.from_bytes(metadata[at : at + width], "little")
        for at in range(1 + width, 1 + width * (count + 2), width)
    ]
    return [metadata[begin:end].decode() for begin, end in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class _Document:
    data: bytes
    names: list[str]

    def at(self, start: int) -> Any:
        head = self.data[start]
        kind, rest = head & 3, head >> 2
        if kind == 1:
            return self.data[start + 1 : start + 1 + rest].decode()
        if kind == 2:  # noqa: PLR2004 - an object
            return self._object(start, rest)
        if kind == 3:  # noqa: PLR2004 - an array
            return self._array(start, rest)
        return _PRIMITIVES[rest](self.data, start + 1)

    def _number(self, start: int, width: int) -> int:
        return int.from_bytes(self.data[start : start + width], "little")

    def _object(self, start: int, rest: int) -> dict[str, Any]:
        offset_width, id_width = (rest & 3) + 1, (rest >> 2 & 3) + 1
        count_width = 4 if rest >> 4 & 1 else 1
        count = self._number(start + 1, count_width)
        ids = start + 1 + count_width
        offsets = ids + count * id_width
        values = offsets + (count + 1) * offset_width
        return {
            self.names[self._number(ids + number * id_width, id_width)]: self.at(
                values + self._number(offsets + number * offset_width, offset_width)
            )
            for number in range(count)
        }

    def _array(self, start: int, rest: int) -> list[Any]:
        offset_width = (rest & 3) + 1
        count_width = 4 if rest >> 2 & 1 else 1
        count = self._number(start + 1, count_width)
        offsets = start + 1 + count_width
        values = offsets + (count + 1) * offset_width
        return [
            self.at(values + self._number(offsets + number * offset_width, offset_width))
            for number in range(count)
        ]


def _unpacked(form: str) -> Callable[[bytes, int], Any]:
    return lambda data, start: struct.unpack_from(form, data, start)[0]


def _decimal(width: int) -> Callable[[bytes, int], Decimal]:
    def read(data: bytes, start: int) -> Decimal:
        unscaled = int.from_bytes(data[start + 1 : start + 1 + width], "little", signed=True)
        return Decimal(unscaled).scaleb(-data[start])

    return read


def _sized(data: bytes, start: int) -> bytes:
    size = int.from_bytes(data[start : start + 4], "little")
    return data[start + 4 : start + 4 + size]


def _time(zone: dt.tzinfo | None, divisor: int) -> Callable[[bytes, int], dt.datetime]:
    def read(data: bytes, start: int) -> dt.datetime:
        (number,) = struct.unpack_from("<q", data, start)
        return _EPOCH.replace(tzinfo=zone) + dt.timedelta(microseconds=number // divisor)

    return read


_PRIMITIVES: Mapping[int, Callable[[bytes, int], Any]] = {
    0: lambda _data, _start: None,
    1: lambda _data, _start: True,
    2: lambda _data, _start: False,
    3: _unpacked("<b"),
    4: _unpacked("<h"),
    5: _unpacked("<i"),
    6: _unpacked("<q"),
    7: _unpacked("<d"),
    8: _decimal(4),
    9: _decimal(8),
    10: _decimal(16),
    11: lambda data, start: _DATE_EPOCH + dt.timedelta(days=struct.unpack_from("<i", data, start)[0]),
    12: _time(dt.UTC, 1),
    13: _time(None, 1),
    14: _unpacked("<f"),
    15: _sized,
    16: lambda data, start: _sized(data, start).decode(),
    17: lambda data, start: (
        _EPOCH + dt.timedelta(microseconds=struct.unpack_from("<q", data, start)[0])
    ).time(),
    18: _time(dt.UTC, 1000),
    19: _time(None, 1000),
    20: lambda data, start: uuid.UUID(bytes=data[start : start + 16]),
}
"""How each type of value is read, by its number; the two of nanoseconds are cut to microseconds."""
