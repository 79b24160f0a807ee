"""The layout of a line: the text between its values, which is the same in every line of its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.checkpoint.add_lines import LINE_END, Bytes, Positions

Mask = npt.NDArray[np.bool_]

POOL = pa.system_memory_pool()
"""Where columns are put together: Arrow's own pool gives memory back to the system at once, so that every
chunk of lines would pay for fresh pages."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+|\s+')


@dataclass(frozen=True, slots=True)
class Run:
    """Text between two values; its first quote, after `lead` bytes, is the quote `first` of the line."""

    first: int
    lead: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Value:
    """A value that stands between run number `run` and the next; `is_text` if it is in quotes."""

    run: int
    is_text: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """The text around the values of a line, its end apart, and which value stands where."""

    line: bytes
    """The line it was taken from."""
    quotes: int
    runs: tuple[Run, ...]
    end: bytes
    values: Mapping[tuple[str, ...], Value]
    maps: frozenset[str]
    closing: Positions
    """Which quotes end a text, so that no backslash may stand before them."""
    escaped: Positions
    """Which quotes belong to a text, so that one backslash has to."""


def take_apart(line: bytes) -> Layout | None:
    """The layout of a line; None if it is no JSON object, or has arrays or fields twice."""
    try:
        msgspec.json.decode(line.removesuffix(LINE_END))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    runs: list[Run] = []
    values: dict[tuple[str, ...], Value] = {}
    maps: list[tuple[str, ...]] = []
    place: list[str] = []
    closing: list[int] = []
    escaped: list[int] = []
    begin = quotes = depth = 0
    is_key = True
    for found in _TOKEN.finditer(line, 0, len(line) - len(LINE_END)):
        token = found[0]
        if token == b"{":
            maps.append(tuple(place[:depth]))
            depth += 1
        elif token == b"}":
            depth -= 1
        elif token == b"[":
            return None
        elif is_key and token[:1] == b'"':
            place[depth - 1 :] = [msgspec.json.decode(token)]
        elif token not in {b":", b","} and not token.isspace():
            is_text = token[:1] == b'"'
            text = line[begin : found.start() + is_text]
            if tuple(place[:depth]) in values or b'"' not in text or b"\\\\" in token:
                return None
            values[tuple(place[:depth])] = Value(len(runs), is_text)
            runs.append(Run(quotes, text.index(b'"'), text))
            quotes += text.count(b'"')
            if is_text:
                inside = token.count(b'"') - 2
                escaped += range(quotes, quotes + inside)
                quotes += inside
                closing.append(quotes)
            begin = found.end() - is_text
        if not token.isspace():
            is_key = token in {b"{", b","}
    end = line[begin:]
    if not runs or len({*maps, *values}) != len(maps) + len(values):
        return None
    top = frozenset(item[0] for item in maps if len(item) == 1)
    return Layout(
        line, quotes + end.count(b'"'), tuple(runs), end, values, top,
        np.array(closing, dtype=np.int64), np.array(escaped, dtype=np.int64),
    )  # fmt: skip


def reads(text: Bytes, begins: Positions, expected: bytes) -> Mask:
    """Whether a text stands at each of some ascending places; nothing stands beyond the end of the whole."""
    room = len(text) - len(expected) + 1
    if begins[0] < 0 or begins[-1] >= room:
        inside = (begins >= 0) & (begins < room)
        found: Mask = np.zeros(len(begins), dtype=np.bool_)
        if inside.any():
            found[inside] = reads(text, begins[inside], expected)
        return found
    windows = np.ndarray(room, dtype=f"S{len(expected)}", buffer=text, strides=(1,))
    same: Mask = windows[begins] == expected
    return same


def slices(text: Bytes, begins: Positions, ends: Positions) -> pa.StringArray:
    """Parts of a text, in ascending order; what lies between them is not copied."""
    offsets = np.empty(2 * len(begins), dtype=np.int32)
    offsets[::2], offsets[1::2] = begins, ends
    every = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text.data))
    return pc.take(every, pa.array(np.arange(0, len(offsets), 2)), memory_pool=POOL)
