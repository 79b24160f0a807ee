"""A cache of open splits: the index and the rows of each, kept for the next search.

The log's add has the offsets of a split's parts, so a search begins with one read: the
root of the index and, if rows will be needed, the row map behind it. What the add says is
checked against the bytes. If they disagree, the footer of the file decides; a damaged
part is reported and never used.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from indextables.errors import DamagedIndexError, SplitError, StorageError
from indextables.index.codec.numbers import Bytes
from indextables.index.read.cache import DiskRanges, RangeReader
from indextables.index.read.lookup import SMALL_INDEX, Index
from indextables.model.column_names import ColumnNames
from indextables.options import SearchOptions
from indextables.reading import Reading
from indextables.records import dataclass
from indextables.runtime import in_threads
from indextables.split.layout import SplitRef, read_footer
from indextables.split.read import hidden_rows as vectors
from indextables.split.read import page_cache
from indextables.split.read.hidden_rows import hidden_rows
from indextables.split.read.rows import SplitReader, open_reader
from indextables.split.source import Range, SplitFile
from indextables.storage.checksum import crc32
from indextables.storage.objects import SMALL_OBJECT
from indextables.storage.store import Store, is_local, requests_at_once

if TYPE_CHECKING:
    import numpy as np

SMALL_ROW_MAP = 16 << 10
WINDOW_BYTES = 16 << 20
"""About as many bytes of small splits are read ahead at a time."""
MAX_SPLITS = 8192
MAX_BYTES = 64 << 20
"""Limit for the roots and small indexes in this cache; blocks and lists have a cache of their own."""

_log = logging.getLogger(__name__)

SplitKey = tuple[str, str, int | None, int | None, int | None, ColumnNames | None]


@dataclass(slots=True)
class _OpenSplit:
    """The opened parts of one split."""

    source: SplitFile
    reader: SplitReader | None = None
    live: SplitReader | None = None
    """The same without the rows that the deletion vector asked for last hides."""
    row_map: tuple[SplitRef, memoryview] | None = None
    """The row map's bytes, read with the index; they are parsed when the first row is read."""
    index: Index | None = None
    damage: DamagedIndexError | None = None
    bytes: int = 0


class _OpenSplits:
    """The most recently used splits, bounded by their number and their memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[SplitKey, _OpenSplit] = OrderedDict()
        self._held = 0

    def entry(self, source: SplitFile, ref: SplitRef) -> _OpenSplit:
        """The entry of a split; a new, empty one if there is none."""
        key = _key(source, ref)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _OpenSplit(source)
                self._trim()
            else:
                self._entries.move_to_end(key)
            return entry

    def peek(self, key: SplitKey) -> _OpenSplit | None:
        """The entry of a split, if there is one."""
        return self._entries.get(key)

    def hold(self, entry: _OpenSplit, ref: SplitRef, size: int) -> None:
        """Record how many bytes an entry uses."""
        key = _key(entry.source, ref)
        with self._lock:
            if self._entries.get(key) is entry:
                self._held += size - entry.bytes
                entry.bytes = size
                self._trim()

    def clear(self) -> None:
        """Forget every split."""
        with self._lock:
            self._entries.clear()
            self._held = 0

    def _trim(self) -> None:
        while len(self._entries) > MAX_SPLITS or (self._held > MAX_BYTES and len(self._entries) > 1):
            _, gone = self._entries.popitem(last=False)
            self._held -= gone.bytes


_splits = _OpenSplits()


class RowsElsewhere(Protocol):
    """Rows of files that are not splits, read and searched as if they were one."""

    def reader(self) -> SplitReader:
        """The rows."""
        ...

    def index(self, reading: Reading) -> Index | None:
        """An index of them, None when there is none, DamagedIndexError when it cannot be used."""
        ...

    def open_index(self) -> Index | None:
        """The index if it is already open; nothing is read."""
        ...

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the files."""
        ...

    def places(self, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Where ascending rows are stored: the path of a file, and the numbers of its rows."""
        ...


def open_split(store: Store, ref: SplitRef) -> SplitReader:
    """The rows of a split, without those that its deletion vector hides."""
    if ref.elsewhere is not None:
        foreign: RowsElsewhere = ref.elsewhere
        return foreign.reader()
    entry = _opened_rows(store, ref)
    assert entry.reader is not None
    hidden = hidden_rows(store, ref, entry.reader.rows)
    if hidden is None:
        return entry.reader
    live = entry.live
    if live is None or live.hidden is not hidden:
        live = entry.live = entry.reader.hiding(hidden)
    return live


def _opened_rows(store: Store, ref: SplitRef) -> _OpenSplit:
    entry = _splits.entry(SplitFile.of(store, ref.path), ref)
    if entry.reader is None:
        if entry.row_map is None:
            _read_small(entry, ref)
        placed, row_map = entry.row_map or (ref, None)
        entry.reader = open_reader(entry.source, placed, row_map)
        entry.row_map = None
    return entry


def at_hand(store: Store, refs: Sequence[SplitRef]) -> Iterator[SplitRef]:
    """The same splits in order; small ones of an object store are read ahead, many at a time."""
    if is_local(store):
        yield from refs
        return
    left = deque(refs)
    while left:
        window: list[SplitRef] = []
        size = 0
        while left and size < WINDOW_BYTES:
            window.append(left.popleft())
            size += window[-1].size or SMALL_OBJECT
        own = [ref for ref in window if ref.elsewhere is None]
        entries = [_splits.entry(SplitFile.of(store, ref.path), ref) for ref in own]
        work = zip(entries, own, strict=True)
        for _ in in_threads(lambda pair: _try_small(*pair), work, requests_at_once(store)):
            pass
        yield from window


def _try_small(entry: _OpenSplit, ref: SplitRef) -> None:
    # Whoever uses the split meets the same failure, and says what it means there.
    with contextlib.suppress(SplitError, StorageError):
        _read_small(entry, ref)


def _read_small(entry: _OpenSplit, ref: SplitRef) -> None:
    """Read a small split of an object store in one request; a larger one is read by ranges."""
    if ref.size is None or ref.size > SMALL_OBJECT or entry.source.local is not None:
        return
    if entry.source.content is None:
        entry.source = entry.source.read_whole(ref.size)
        _splits.hold(entry, ref, ref.size)


def open_index(reading: Reading, ref: SplitRef, *, with_rows: bool) -> Index | None:
    """The index of a split; None when it has none, DamagedIndexError when it cannot be used.

    With `with_rows` the same read also prepares `open_split`.
    """
    if ref.elsewhere is not None:
        foreign: RowsElsewhere = ref.elsewhere
        return foreign.index(reading)
    entry = _splits.entry(SplitFile.of(reading.store, ref.path), ref)
    if entry.index is not None:
        return entry.index
    if entry.damage is not None:
        raise entry.damage
    try:
        entry.index = _opened(ref, entry, reading.search, with_rows=with_rows)
    except DamagedIndexError as damage:
        entry.damage = damage
        raise
    if entry.index is not None:
        if ref.names is not None:
            entry.index = entry.index.seen_through(None, ref.names.columns)
        _splits.hold(entry, ref, _held(entry, ref))
    return entry.index


def stored_map(reading: Reading, ref: SplitRef) -> memoryview:
    """The bytes between the index and the footer, as they were read with the index or else by themselves."""
    entry = _splits.entry(SplitFile.of(reading.store, ref.path), ref)
    if entry.row_map is not None:
        return entry.row_map[1]
    placed = ref
    if ref.row_map is None or ref.index_offset is None or ref.index_length is None:
        placed = ref.placed(read_footer(entry.source, ref).manifest)
    assert placed.row_map is not None
    assert placed.index_offset is not None
    assert placed.index_length is not None
    end = placed.index_offset + placed.index_length
    return entry.source.read_one(end - placed.row_map.length, placed.row_map.length)


def _held(entry: _OpenSplit, ref: SplitRef) -> int:
    """About how many bytes an open split uses outside the block cache."""
    if entry.source.content is not None:
        return len(entry.source.content)
    if ref.index_length is not None and ref.index_length <= SMALL_INDEX:
        return ref.index_length
    return ref.root.length if ref.root is not None else SMALL_INDEX


def cached_index(store: Store, ref: SplitRef) -> Index | None:
    """The index of a split if it is already open; nothing is read."""
    if ref.elsewhere is not None:
        foreign: RowsElsewhere = ref.elsewhere
        return foreign.open_index()
    entry = _splits.peek(_key(SplitFile.of(store, ref.path), ref))
    return None if entry is None else entry.index


def forget_splits() -> None:
    """Clear the cache of splits and of their decoded pages."""
    _splits.clear()
    page_cache.MEMORY.clear()
    vectors.MEMORY.clear()


def _opened(ref: SplitRef, entry: _OpenSplit, options: SearchOptions, *, with_rows: bool) -> Index | None:
    source = entry.source
    if ref.row_map is None or ref.index_offset is None or ref.index_length is None:
        ref = ref.placed(read_footer(source, ref).manifest)
    elif ref.root is not None:
        try:
            return _at_place(ref, entry, options, with_rows=with_rows)
        except DamagedIndexError:
            # The log may be wrong about the file; the file's own footer decides.
            placed = ref.placed(read_footer(source, ref).manifest)
            if placed == ref:
                raise
            ref = placed
    return _at_place(ref, entry, options, with_rows=with_rows)


def _at_place(ref: SplitRef, entry: _OpenSplit, options: SearchOptions, *, with_rows: bool) -> Index | None:
    source = entry.source
    assert ref.index_offset is not None
    assert ref.index_length is not None
    assert ref.row_map is not None
    if ref.root is None:
        return None
    length = ref.index_length - ref.row_map.length
    start = 0 if length <= SMALL_INDEX else length - ref.root.length
    # The row map lies behind the root. A small one costs less than another request to an object store.
    has_row_map = with_rows or (source.local is None and ref.row_map.length <= SMALL_ROW_MAP)
    end = ref.index_length if has_row_map and entry.reader is None else length
    if start < 0:
        raise damaged(source.name, "the log records it as shorter than its root")
    first = source.read_one(ref.index_offset + start, end - start)
    root = first[length - start - ref.root.length : length - start]
    if crc32(root) != ref.root.crc32:
        raise damaged(source.name, "its root is not what was written")
    if end > length:
        entry.row_map = ref, first[length - start :]
    ranges: RangeReader = SplitRanges(source, ref.index_offset)
    if options.cache_dir is not None:
        ranges = DiskRanges(ranges, options.cache_dir, _identity(source, ref), options.cache_max_bytes)
    return Index.open(
        _PartlyRead(ranges, start, first[: length - start]), length, ref.root.length, name=source.name
    )


def damaged(name: str, why: str) -> DamagedIndexError:
    """The error for an index that cannot be used; the rows are not affected."""
    return DamagedIndexError(f"the index inside {name} is damaged: {why}", path=name)


@dataclass(frozen=True, slots=True)
class SplitRanges:
    """Reads the index inside a split; offsets are relative to the start of the index."""

    source: SplitFile
    start: int

    def many(self, ranges: Sequence[Range]) -> list[memoryview]:
        """The bytes of every range, in one round trip."""
        in_file = [(self.start + offset, length) for offset, length in ranges]
        bodies = self.source.read(in_file)
        return [bodies[place] for place in in_file]


@dataclass(frozen=True, slots=True)
class _PartlyRead:
    """Ranges of which one contiguous part has been read already."""

    inner: RangeReader
    start: int
    held: memoryview

    def many(self, ranges: Sequence[Range]) -> list[Bytes]:
        """The bytes of every range; only what is not in memory is read."""
        end = self.start + len(self.held)
        inside = [self.start <= at and at + length <= end for at, length in ranges]
        missing = [place for place, is_held in zip(ranges, inside, strict=True) if not is_held]
        others = iter(self.inner.many(missing) if missing else ())
        return [
            self.held[at - self.start : at - self.start + length] if is_held else next(others)
            for (at, length), is_held in zip(ranges, inside, strict=True)
        ]


def _key(source: SplitFile, ref: SplitRef) -> SplitKey:
    # Split names carry a UUID and splits never change, so the address is enough; its columns may be renamed.
    return (source.store.uri, source.path, ref.size, ref.index_offset, ref.index_length, ref.names)


def _identity(source: SplitFile, ref: SplitRef) -> bytes:
    key = _key(source, ref)[:-1]
    return hashlib.sha256(repr((key, ref.root)).encode("utf-8", "surrogateescape")).digest()


@lru_cache(maxsize=4096)
def warn_once(message: str) -> None:
    """Log that the index of a split cannot be used (damaged, or of another format), once for each message."""
    _log.warning(
        "%s; its rows are scanned instead, which gives the same answer more slowly. "
        "MERGE SPLITS rewrites the split with a current index",
        message,
    )
