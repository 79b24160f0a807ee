"""The adds of a JSON checkpoint as text: one JSON object per line, between `"add":[` and `]`.

A checkpoint is one JSON document, laid out so that it can be cut at line ends. A chunk is
some consecutive lines, each ending with its comma and newline. Chunks are written,
compressed, inflated and decoded one at a time, and the text of an add is copied from one
checkpoint to the next unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.lazy import pc
from indextables.model.actions import AddAction, action_from_wire, action_to_wire
from indextables.model.lines import source_of
from indextables.model.truncation import Bounds

CHUNK_LINES = 4096
_CHUNK_BYTES = 4 << 20
LINE_END = b",\n"
_COMMA, _NEWLINE = 44, 10
_BLOCK = 1 << 18
_ENCODER = msgspec.json.Encoder()


class _WithPath(msgspec.Struct, gc=False):
    path: str


PATH_DECODER = msgspec.json.Decoder(_WithPath)
_MANY_PATHS = msgspec.json.Decoder(list[_WithPath])
_MANY_BOUNDS = msgspec.json.Decoder(list[Bounds])

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]


class PathSequence(Sequence[bytes]):
    """The paths of an array as bytes, for bisection without building them all."""

    __slots__ = ("_offsets", "_text")

    def __init__(self, paths: pa.StringArray) -> None:
        _, offsets, text = paths.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)[paths.offset : paths.offset + len(paths) + 1]
        self._offsets = memoryview(ends.data)
        self._text = memoryview(text) if text is not None else memoryview(b"")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        return bytes(self._text[self._offsets[at] : self._offsets[at + 1]])


def encode_add(add: AddAction) -> bytes:
    """The line of an add, without the comma and newline that end it."""
    return _ENCODER.encode(action_to_wire(add)[1])


def add_line(add: AddAction) -> bytes:
    """The line of an add as its commit has it if its fields were never read, else encoded again."""
    source = source_of(add)
    return encode_add(add) if source is None else bytes(source[0])


def decode_add(line: bytes, name: str) -> AddAction:
    """The add of a line without its end; CorruptLogError names the file that holds the line."""
    try:
        add = action_from_wire("add", msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CorruptLogError) as bad:
        raise _unreadable(name, bad) from bad
    assert isinstance(add, AddAction)
    return add


def decode_path(line: bytes, name: str) -> str:
    """The path of an add; nothing else is decoded."""
    try:
        return PATH_DECODER.decode(line).path
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise _unreadable(name, bad) from bad


def join_lines(lines: Sequence[bytes]) -> bytes:
    """Lines without ends as one chunk."""
    return LINE_END.join([*lines, b""])


def find_bytes(text: Bytes, *byte_values: int) -> Positions:
    """The offsets at which any of some bytes occurs in a text.

    Works block by block, so that the masks of a block stay in the processor's cache.
    """
    offsets = []
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK]
        mask = block == byte_values[0]
        for other in byte_values[1:]:
            mask |= block == other
        offsets.append(np.flatnonzero(mask) + at)
    return np.concatenate(offsets) if offsets else np.zeros(0, dtype=np.int64)


def line_array(chunk: bytes, name: str) -> pa.BinaryArray:
    """The lines of a chunk, with their ends, as an array of slices of its text."""
    view = np.frombuffer(chunk, dtype=np.uint8)
    ends = find_bytes(view, _NEWLINE)
    complete = len(ends) > 0 and ends[-1] == len(view) - 1 and ends[0] > 0
    if not complete or not (view[ends - 1] == _COMMA).all():
        raise CorruptLogError(f"{name}: the adds are not one per line. The checkpoint is damaged.", file=name)
    offsets = np.zeros(len(ends) + 1, dtype=np.int32)
    offsets[1:] = ends + 1
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(chunk)]
    )


def line_chunk(lines: pa.BinaryArray) -> bytes:
    """The text of an array of lines, the inverse of `line_array`."""
    text, offsets = text_and_offsets(lines)
    return text[offsets[0] : offsets[-1]].tobytes()


def lines_adds(lines: pa.BinaryArray, name: str) -> Iterator[AddAction]:
    """The adds of lines as whole actions."""
    for line in lines.to_pylist():
        yield decode_add(line[: -len(LINE_END)], name)


def line_paths(lines: pa.BinaryArray, name: str) -> pa.StringArray:
    """The paths of lines."""
    try:
        adds = _MANY_PATHS.decode(b"[" + line_chunk(lines)[: -len(LINE_END)] + b"]")
        paths = [item.path for item in adds]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        paths = []
    if len(paths) != len(lines):
        # One at a time, so that the error is about the first line that cannot be read.
        paths = [decode_path(line[: -len(LINE_END)], name) for line in lines.to_pylist()]
    return pa.array(paths, pa.string())


def line_bounds(lines: pa.BinaryArray) -> list[Bounds] | None:
    """The statistics of lines; None if one of them has to be read as a whole action."""
    try:
        bounds = _MANY_BOUNDS.decode(b"[" + line_chunk(lines)[: -len(LINE_END)] + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return bounds if len(bounds) == len(lines) else None


def text_and_offsets(lines: pa.BinaryArray) -> tuple[Bytes, Positions]:
    """The text that the lines are slices of, and the offset of every line and of the end of the last."""
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return np.frombuffer(text, dtype=np.uint8), ends.astype(np.int64)


def can_search() -> bool:
    """Whether this Arrow has a kernel that looks values up in sorted ones."""
    return hasattr(pc, "search_sorted")


def search_paths(paths: pa.StringArray, sought: Sequence[bytes]) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """For each sought path, its insertion index in the sorted `paths`, and whether they hold it."""
    if can_search():
        needles, others = pa.array(sought, pa.binary()), paths.view(pa.binary())
        positions = pc.search_sorted(others, needles, side="left").to_numpy().astype(np.int64)
        beside = others.take(pa.array(np.minimum(positions, len(others) - 1)))
        return positions, pc.equal(beside, needles).to_numpy(zero_copy_only=False)
    padded, needle = _padded(paths), np.array(sought)
    positions = np.searchsorted(padded, needle)
    return positions, padded[np.minimum(positions, len(padded) - 1)] == needle


def _padded(paths: pa.StringArray) -> npt.NDArray[np.bytes_]:
    """The paths as byte strings of one width, which numpy compares as bytes."""
    lengths = pc.binary_length(paths).to_numpy()
    _, offsets, text = paths.buffers()
    begins = np.frombuffer(offsets, dtype=np.int32)[paths.offset : paths.offset + len(paths)]
    width = max(int(lengths.max()), 1)
    columns = np.arange(width)
    inside = columns < lengths[:, None]
    grid = np.zeros((len(paths), width), dtype=np.uint8)
    grid[inside] = np.frombuffer(text, dtype=np.uint8)[begins[0] : begins[0] + int(lengths.sum())]
    return grid.view(f"S{width}").ravel()


def cut_text(text: bytes) -> Iterator[bytes]:
    """Cut a long text of lines into chunks at line ends."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", min(begin + _CHUNK_BYTES, len(text) - 1)) + 1 or len(text)
        yield text[begin:end]
        begin = end


def chunk_raws(raws: Iterable[Any]) -> Iterator[bytes]:
    """Chunks of lines made from adds (`msgspec.Raw`) that were laid out in another way."""
    lines: list[bytes] = []
    for raw in raws:
        text = bytes(raw)
        lines.append(msgspec.json.format(text, indent=-1) if b"\n" in text or b"\r" in text else text)
        if len(lines) == CHUNK_LINES:
            yield join_lines(lines)
            lines = []
    if lines:
        yield join_lines(lines)


def _unreadable(name: str, bad: Exception) -> CorruptLogError:
    return CorruptLogError(
        f"{name} holds an add that cannot be read: {bad}. The checkpoint is damaged.", file=name
    )
