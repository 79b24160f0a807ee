"""A cache of recently decoded pages, for searches that need nearby rows, and of the rows picked from them.

Only pages from which single rows were picked are cached, not row groups that were read
whole. The rows themselves are cached as well: rows scattered over the whole file cover more
pages than are worth memory, and take little. All splits share one memory limit; the least
recently used entries go first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from indextables.index.read.cache import BlockCache
from indextables.split.parquet.page_map import RowSpan

Cover = tuple[tuple[int, tuple[RowSpan, ...]], ...]
"""The rows that are read: for each row group, ranges that begin and end at page boundaries."""

MOST_ROWS = 1 << 17
"""Reads that cover more rows than this are not cached: they would displace everything else."""

MOST_PICKED_ROWS = 1 << 14
MOST_PICKED_BYTES = 4 << 20
"""Picked rows are cached up to this many, and this size."""

MEMORY = BlockCache(64 << 20)
"""The cache of this process."""


class PageCache:
    """The cached pages of one open split."""

    def __init__(self) -> None:
        # A key no other open split has: a file that is opened again starts with an empty cache.
        self._identity = os.urandom(16)

    def find(self, cover: Cover, names: Sequence[str]) -> pa.Table | None:
        """The covered rows of some columns; None unless all their pages are in the cache."""
        pieces: list[dict[str, list[pa.Array]]] = []
        for span in _spans(cover):
            piece = MEMORY.get((self._identity, span))
            if piece is None or not piece.keys() >= set(names):
                return None
            pieces.append(piece)
        columns = []
        for name in names:
            chunks = [chunk for piece in pieces for chunk in piece[name]]
            if any(chunk.type != chunks[0].type for chunk in chunks):
                # The same text column may be cached with its dictionary in one entry and without in
                # another.
                return None
            columns.append(pa.chunked_array(chunks))
        return pa.Table.from_arrays(columns, names=list(names))

    def picked(self, rows: np.ndarray, names: Sequence[str], read: Callable[[], pa.Table]) -> pa.Table:
        """Some columns of some rows (ascending), from `read` unless they are in the cache."""
        if len(rows) > MOST_PICKED_ROWS:
            return read()
        key = self._identity, (tuple(names), rows.tobytes())
        table: pa.Table | None = MEMORY.get(key)
        if table is None:
            table = read()
            size = table.nbytes + rows.nbytes
            if size <= MOST_PICKED_BYTES:
                MEMORY.put(key, table, size)
        return table

    def put(self, cover: Cover, table: pa.Table) -> None:
        """Cache decoded rows: exactly those the cover names, in its order."""
        if table.num_rows > MOST_ROWS:
            return
        at = 0
        for span in _spans(cover):
            _, first, end = span
            part = table.slice(at, end - first)
            new = {name: part.column(name).chunks for name in part.column_names}
            # Cached pages of other columns for the same rows are kept in the same entry.
            piece = {**(MEMORY.get((self._identity, span)) or {}), **new}
            size = sum(chunk.nbytes for chunks in piece.values() for chunk in chunks)
            MEMORY.put((self._identity, span), piece, size)
            at += end - first


def _spans(cover: Cover) -> Iterator[tuple[int, int, int]]:
    return ((group, first, end) for group, spans in cover for first, end in spans)
