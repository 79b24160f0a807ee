"""The source map of a companion split: which files of the source its index covers, and where their rows are.

The rows of the files follow each other in the index, in the order of the map. The map stands where other
splits have their row map, behind the index, so one read gets both. The log's add has the keys of the files
too, so that two logs tell which files are covered and no split is opened for that.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from indextables.companion.source import KEY_BYTES
from indextables.errors import DamagedIndexError, SplitError
from indextables.model.actions import AddAction
from indextables.reading import Reading
from indextables.records import dataclass
from indextables.split.layout import SplitRef
from indextables.split.open_splits import stored_map
from indextables.split.read.row_map import RowMap, RowMapError
from indextables.split.source import SplitFile
from indextables.storage.checksum import crc32

KEYS_TAG, TYPES_TAG = "companionKeys", "companionTypes"
_FORMAT = 1


class CoveredFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that an index covers."""

    key: bytes
    path: str
    size: int
    group_rows: tuple[int, ...]
    """The rows of each of its row groups."""
    tokens: dict[str, int] = {}
    """The tokens of all its rows, by column of the index; ranking needs them."""
    pages: bytes | tuple[int, int, int] | None = None
    """Its page map, or where in the split that lies: offset, length and checksum; None if it has none."""

    @property
    def rows(self) -> int:
        """How many rows it has, deleted ones included."""
        return sum(self.group_rows)


class _Wire(msgspec.Struct, frozen=True, array_like=True):
    format: int
    files: tuple[CoveredFile, ...]


_MAPS = msgspec.msgpack.Decoder(_Wire)
_TYPES = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True)
class SourceMap:
    """The files that one companion split covers, in the order of their rows in its index."""

    files: tuple[CoveredFile, ...]

    @property
    def rows(self) -> int:
        """How many rows they have together."""
        return sum(item.rows for item in self.files)

    @property
    def first_rows(self) -> list[int]:
        """Where the rows of each file begin in the index."""
        return list(accumulate((item.rows for item in self.files), initial=0))[:-1]

    def to_bytes(self) -> bytes:
        """The form that is stored."""
        return msgspec.msgpack.encode(_Wire(_FORMAT, self.files))

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, crc: int, name: str) -> SourceMap:
        """Read what `to_bytes` wrote; DamagedIndexError when that is not what is there."""
        if crc32(data) != crc:
            raise DamagedIndexError(
                f"the source map inside {name} is damaged: its checksum differs", path=name
            )
        try:
            wire = _MAPS.decode(data)
        except msgspec.MsgspecError as bad:
            raise DamagedIndexError(
                f"the source map inside {name} cannot be read ({bad})", path=name
            ) from bad
        if wire.format != _FORMAT:
            raise DamagedIndexError(f"the source map inside {name} has format {wire.format}", path=name)
        return cls(wire.files)


def read_source_map(reading: Reading, ref: SplitRef) -> SourceMap:
    """The source map of a companion split."""
    crc = 0 if ref.row_map is None else ref.row_map.crc32
    return SourceMap.from_bytes(stored_map(reading, ref), crc, f"{reading.store.uri}/{ref.path}")


def stored_page_map(reading: Reading, ref: SplitRef, file: CoveredFile) -> memoryview | None:
    """The stored page map of a covered file; None if it has none, or if that is damaged."""
    if file.pages is None:
        return None
    if isinstance(file.pages, bytes):
        return memoryview(file.pages)
    offset, length, crc = file.pages
    try:
        body = SplitFile.of(reading.store, ref.path).read_one(offset, length)
    except SplitError:
        # The rows are in the file, whose row groups can be read without it.
        return None
    return body if crc32(body) == crc else None


def read_page_map(reading: Reading, ref: SplitRef, file: CoveredFile) -> RowMap | None:
    """Where the pages of a covered file lie; None if that is not known."""
    body = stored_page_map(reading, ref, file)
    try:
        return None if body is None else RowMap.from_bytes(body, crc32(body))
    except RowMapError:
        return None


def coverage_tags(source_map: SourceMap, types: Mapping[str, str]) -> dict[str, str | None]:
    """The tags of an add that tell which files its split covers, and by which columns."""
    keys = b"".join(item.key for item in source_map.files)
    return {
        KEYS_TAG: base64.b64encode(keys).decode(),
        TYPES_TAG: msgspec.json.encode(dict(types), order="sorted").decode(),
    }


def covered_keys(add: AddAction) -> Sequence[bytes]:
    """The keys of the files that a companion split covers, in their order; none if its tags are not ours."""
    try:
        keys = base64.b64decode((add.tags or {}).get(KEYS_TAG) or "", validate=True)
    except binascii.Error:
        return ()
    return [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]


def indexed_types(add: AddAction) -> Mapping[str, str]:
    """What the columns of an index were when it was built; see `Indexed.types`."""
    try:
        return _TYPES.decode((add.tags or {}).get(TYPES_TAG) or "{}")
    except msgspec.MsgspecError:
        return {}
