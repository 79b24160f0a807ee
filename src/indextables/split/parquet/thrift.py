"""The compact Thrift encoding, as far as Parquet metadata uses it.

A structure is a dictionary from field number to `(kind, value)` in the order it was read;
a list is `(kind, values)`; when writing, a structure may also be bytes that were encoded
before. Nothing here knows what the fields mean, so fields that a newer Parquet writer
adds are written back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Struct: TypeAlias = dict[int, tuple[int, Any]]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
_LONG_LIST = 15
_VARINT_BITS = 63
_DEEPEST = 64


class ThriftError(ValueError):
    """Bytes that are not the Thrift structure they should be."""


def decode(data: bytes | memoryview, start: int = 0) -> tuple[Struct, int]:
    """Read one structure; return it and the position after it."""
    reader = _StructReader(data, start)
    try:
        decoded = reader.struct(0)
    except IndexError as short:
        raise ThriftError("the structure ends before it is complete") from short
    return decoded, reader.position


def encode(value: Struct) -> bytes:
    """Write one structure."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


def encode_more(begun: bytes, last: int, numbers: Iterable[tuple[int, int]]) -> bytes:
    """Complete a structure whose fields up to `last` are already encoded, by adding number fields."""
    out = bytearray(begun)
    for number, item in numbers:
        out.append(((number - last) << 4) | I64)
        _write_number(out, item)
        last = number
    out.append(0)
    return bytes(out)


class _StructReader:
    def __init__(self, data: bytes | memoryview, start: int) -> None:
        self.data = data
        self.position = start

    def varint(self) -> int:
        data, position = self.data, self.position
        byte = data[position]
        position += 1
        result = byte & 0x7F
        shift = 7
        while byte & 0x80:
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if shift > _VARINT_BITS + 7:
                raise ThriftError("a number of more than 64 bits")
        self.position = position
        return result

    def number(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            raise ThriftError("a value reaches beyond the end")
        taken = bytes(self.data[self.position : end])
        self.position = end
        return taken

    def struct(self, depth: int) -> Struct:
        if depth > _DEEPEST:
            raise ThriftError("structures nested too deeply")
        fields: Struct = {}
        number = 0
        while True:
            head = self.data[self.position]
            self.position += 1
            if head == 0:
                return fields
            kind = head & 0x0F
            step = head >> 4
            number = number + step if step else self.number()
            fields[number] = (kind, self.value(kind, depth))

    def value(self, kind: int, depth: int) -> Any:
        if kind in (I16, I32, I64):
            return self.number()
        if kind == BINARY:
            return self.take(self.varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self.items(depth)
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self.take(1)
        if kind == DOUBLE:
            return self.take(8)
        raise ThriftError(f"a value of unknown kind {kind}")

    def items(self, depth: int) -> tuple[int, list[Any]]:
        head = self.data[self.position]
        self.position += 1
        kind = head & 0x0F
        length = head >> 4
        if length == _LONG_LIST:
            length = self.varint()
        if length > len(self.data) - self.position:
            raise ThriftError("a list longer than the bytes that are left")
        if kind in (TRUE, FALSE):
            return kind, [byte == TRUE for byte in self.take(length)]
        return kind, [self.value(kind, depth) for _ in range(length)]


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:  # noqa: PLR2004
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _write_number(out: bytearray, value: int) -> None:
    _write_varint(out, (value << 1) ^ (value >> _VARINT_BITS))


def _write_struct(out: bytearray, value: Struct) -> None:
    last = 0
    for number, (declared, item) in value.items():
        kind = (TRUE if item else FALSE) if declared in (TRUE, FALSE) else declared
        step = number - last
        if 0 < step <= _LONG_LIST:
            out.append((step << 4) | kind)
        else:
            out.append(kind)
            _write_number(out, number)
        last = number
        if kind not in (TRUE, FALSE):
            _write_value(out, kind, item)
    out.append(0)


def _write_value(out: bytearray, kind: int, item: Any) -> None:
    if kind in (I16, I32, I64):
        _write_number(out, item)
    elif kind == BINARY:
        _write_varint(out, len(item))
        out += item
    elif kind == STRUCT:
        if isinstance(item, bytes):
            out += item
        else:
            _write_struct(out, item)
    elif kind in (LIST, SET):
        element, items = item
        if len(items) < _LONG_LIST:
            out.append((len(items) << 4) | element)
        else:
            out.append((_LONG_LIST << 4) | element)
            _write_varint(out, len(items))
        if element in (TRUE, FALSE):
            out += bytes(TRUE if one else FALSE for one in items)
        else:
            for one in items:
                _write_value(out, element, one)
    else:
        out += item
