"""The adds of one checkpoint as Arrow columns, cached for the queries that follow.

A checkpoint never changes; later commits only make some of its rows obsolete. Rows are
sorted by path, so a path is found by bisection, and a refresh has to look up only the few
keys that are new. Columns are read when they are first needed. Each column is kept as a
list of arrays ("pieces") of equal boundaries, usually of 65,536 rows.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.log.adds.columns import PATH, AddLeaf, check_increasing, disordered
from indextables.log.adds.lines import PathSequence, can_search, search_paths
from indextables.log.checkpoint.reader import OpenCheckpoint, open_checkpoint
from indextables.log.format.dialect import Checkpoint
from indextables.log.replay.rule import Tail
from indextables.storage.store import Store

Columns = Mapping[AddLeaf, list[pa.Array]]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_PIECE_ROWS = 1 << 16
_BISECTED = 100
"""Up to this many paths are bisected one by one; more are looked up together, one comparison per piece.

If Arrow has no search function, comparing costs a pass over every row, so bisection is used until the paths
are more than one in 100 of the rows.
"""
POOL = pa.system_memory_pool()
"""The memory pool for joined columns. Arrow's default pool returns freed memory to the system at once, so
that each chunk of lines would have to get new pages."""
CACHED_BYTES = 256 << 20
"""Upper limit for kept columns; beyond it the largest are dropped and read again when needed."""


class CheckpointAdds:
    """The columns of one checkpoint that were needed so far."""

    def __init__(self) -> None:
        self.starts: Rows = np.zeros(1, dtype=np.int64)
        """The first row of each piece, followed by the total number of rows."""
        self.bytes_read = 0
        self._pieces: dict[AddLeaf, list[pa.Array]] = {}
        self._wholes: dict[AddLeaf, pa.Array] = {}
        self._firsts: list[bytes] = []
        self._paths: list[PathSequence] = []
        self._lookup_of: dict[str, int] = {}
        """For each path that was looked up, where its answer is in the two arrays below."""
        self._rows: Rows = np.zeros(0, np.int64)
        self._present: Mask = np.zeros(0, np.bool_)
        self._obsolete: tuple[Tail, Mask] | None = None
        """The newest tail that `live` was asked about, and its answer."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def num_pieces(self) -> int:
        """The number of pieces, the same for every column."""
        return len(self.starts) - 1

    def load(self, store: Store, checkpoint: Checkpoint | None, leaves: Iterable[AddLeaf]) -> Columns:
        """The pieces of the given columns and of `path`; columns that are not kept are read."""
        needed = dict.fromkeys((PATH, *leaves))
        if checkpoint is None:
            return {leaf: [] for leaf in needed}
        with self._lock:
            missing = [leaf for leaf in needed if leaf not in self._pieces]
            if missing:
                self._load(open_checkpoint(store, checkpoint), tuple(missing))
            loaded = {leaf: self._pieces[leaf] for leaf in needed}
            self._shed()
        return loaded

    def fetch(
        self, store: Store, checkpoint: Checkpoint, leaves: tuple[AddLeaf, ...], rows: Rows
    ) -> dict[AddLeaf, pa.Array]:
        """The given columns for some rows only (ascending), read from the checkpoint and not kept."""
        pieces = list(open_checkpoint(store, checkpoint).leaves(leaves, rows))
        if not pieces:
            return {leaf: pa.nulls(0, leaf.type) for leaf in leaves}
        return {
            leaf: pa.concat_arrays(arrays)
            for leaf, arrays in zip(leaves, zip(*pieces, strict=True), strict=True)
        }

    def whole(self, leaf: AddLeaf, pieces: Sequence[pa.Array]) -> pa.Array:
        """A loaded column as one array; from then on its pieces are slices of that array."""
        with self._lock:
            if leaf in self._wholes:
                return self._wholes[leaf]
            array = pa.concat_arrays(pieces, memory_pool=POOL)
            if leaf in self._pieces:
                self._wholes[leaf] = array
                # In place, so that callers who hold the list of pieces do not keep the old arrays alive.
                self._pieces[leaf][:] = [array[begin:end] for begin, end in pairwise(self.starts.tolist())]
            return array

    def gather(self, pieces: Sequence[pa.Array], rows: Rows, leaf: AddLeaf) -> pa.Array:
        """Some rows of a column, in ascending order."""
        cuts = np.searchsorted(rows, self.starts)
        gathered = [
            pieces[at].take(pa.array(rows[low:high] - self.starts[at]))
            for at, (low, high) in enumerate(pairwise(cuts.tolist()))
            if low < high
        ]
        return pa.concat_arrays(gathered) if gathered else pa.nulls(0, leaf.type)

    def _load(self, opened: OpenCheckpoint, leaves: tuple[AddLeaf, ...]) -> None:
        # Row groups already are pieces, each an array of its own.
        rows = 0 if opened.format == "parquet" else _PIECE_ROWS
        columns = {leaf: _Pieces(rows) for leaf in leaves}
        for arrays in opened.leaves(leaves):
            for column, array in zip(columns.values(), arrays, strict=True):
                column.append(array)
        loaded = {leaf: column.all() for leaf, column in columns.items()}
        if PATH in loaded:
            self._set_paths(loaded.pop(PATH), opened.name)
        self.bytes_read += opened.size_bytes + sum(part.size_in_bytes for part in opened.parts or ())
        for leaf, pieces in loaded.items():
            if sum(map(len, pieces)) != len(self):
                raise CorruptLogError(
                    f"{opened.name} is damaged: not every add has a {leaf.column}", file=opened.name
                )
            self._pieces[leaf] = pieces
        # Free the memory used for inflating and cutting; nothing else refers to it.
        POOL.release_unused()

    def _set_paths(self, pieces: list[pa.Array], name: str) -> None:
        if not _is_increasing(pieces):
            raise disordered(name)
        self._pieces[PATH] = pieces
        self.starts = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        self._paths = [PathSequence(piece) for piece in pieces]
        self._firsts = [paths[0] for paths in self._paths]

    def _shed(self) -> None:
        """Drop the largest columns while the total exceeds the limit."""
        sizes = {leaf: sum(piece.nbytes for piece in pieces) for leaf, pieces in self._pieces.items()}
        total = sum(sizes.values())
        for leaf in sorted(sizes, key=lambda item: sizes[item], reverse=True):
            if total <= CACHED_BYTES or leaf == PATH:
                continue
            total -= sizes[leaf]
            del self._pieces[leaf]
            self._wholes.pop(leaf, None)

    def live(self, tail: Tail) -> Mask:
        """Which rows are still live: those that the tail has neither replaced nor removed.

        A row that a commit made obsolete stays so: of a later tail only the keys that are new are looked up.
        """
        with self._lock:
            before, answer = self._obsolete or (None, None)
            if before is tail and answer is not None:
                return answer
            if before is None or answer is None or tail.version < before.version:
                mask = np.ones(len(self), dtype=np.bool_)
                touched = [*tail.removed, *tail.adds]
            else:
                mask = answer.copy()
                touched = [*(tail.removed - before.removed), *(tail.adds.keys() - before.adds.keys())]
            rows, present = self._find_all([str(key).encode() for key in touched])
            mask[rows[present]] = False
            mask.flags.writeable = False
            if before is None or tail.version >= before.version:
                self._obsolete = tail, mask
            return mask

    def rows_of(self, paths: Sequence[str]) -> tuple[Rows, Mask]:
        """For each path, its row or insertion index in the checkpoint, and whether the checkpoint has it.

        Answers are kept: after a refresh only the paths of the new commits are looked up.
        """
        lookup_of = self._lookup_of
        with self._lock:
            fresh = [path for path in paths if path not in lookup_of]
            if fresh:
                rows, present = self._find_all([path.encode() for path in fresh])
                done = len(self._rows)
                lookup_of.update(zip(fresh, range(done, done + len(fresh)), strict=True))
                self._rows, self._present = np.append(self._rows, rows), np.append(self._present, present)
            at = np.fromiter(map(lookup_of.__getitem__, paths), np.int64, len(paths))
            return self._rows[at], self._present[at]

    def _find_all(self, paths: list[bytes]) -> tuple[Rows, Mask]:
        if not paths:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        few = _BISECTED if can_search() else max(_BISECTED, len(self) // _BISECTED)
        return self._find_many(paths) if len(paths) > few else self._find_each(paths)

    def _find_many(self, paths: list[bytes]) -> tuple[Rows, Mask]:
        """Look up many paths together: for each piece, one comparison of the paths that fall into it."""
        sought = np.array(paths)
        rows, present = np.zeros(len(sought), np.int64), np.zeros(len(sought), np.bool_)
        if not self._firsts:
            return rows, present
        homes = np.maximum(np.searchsorted(np.array(self._firsts), sought, side="right") - 1, 0)
        by_home = np.argsort(homes, kind="stable")
        cuts = np.searchsorted(homes[by_home], np.arange(len(self._firsts) + 1))
        for at, (low, high) in enumerate(pairwise(cuts.tolist())):
            if low == high:
                continue
            chosen = by_home[low:high]
            positions, there = search_paths(self._pieces[PATH][at], sought[chosen].tolist())
            present[chosen] = there
            rows[chosen] = self.starts[at] + positions
        return rows, present

    def _find_each(self, paths: list[bytes]) -> tuple[Rows, Mask]:
        rows, present = zip(*map(self._find, paths), strict=True)
        return np.array(rows, np.int64), np.array(present, np.bool_)

    def _find(self, path: bytes) -> tuple[int, bool]:
        at = max(bisect_left(self._firsts, path) - 1, 0)
        if at + 1 < len(self._firsts) and self._firsts[at + 1] == path:
            at += 1
        if at >= len(self._paths):
            return 0, False
        paths = self._paths[at]
        position = bisect_left(paths, path)
        return int(self.starts[at]) + position, position < len(paths) and paths[position] == path


class _Pieces:
    """Collects arrays of any size into pieces of `rows` rows; with 0 they are kept as they come.

    An array from a parser keeps the parser's whole buffer alive; joining copies the values and frees it.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._done: list[pa.Array] = []
        self._held: list[pa.Array] = []
        self._count = 0

    def append(self, array: pa.Array) -> None:
        if not self._rows:
            self._done += [array] if len(array) else []
            return
        self._held.append(array)
        self._count += len(array)
        if self._count >= self._rows:
            self._cut()

    def _cut(self) -> None:
        whole = pa.concat_arrays(self._held, memory_pool=POOL)
        full = len(whole) - len(whole) % self._rows
        self._done += [whole[at : at + self._rows] for at in range(0, full, self._rows)]
        self._held, self._count = [whole[full:]], len(whole) - full

    def all(self) -> list[pa.Array]:
        """Every piece; the last may be shorter."""
        if self._count:
            self._done.append(pa.concat_arrays(self._held, memory_pool=POOL))
        return self._done


def _is_increasing(pieces: Sequence[pa.Array]) -> bool:
    previous: str | None = None
    for piece in pieces:
        if not check_increasing(piece, previous):
            return False
        previous = piece[-1].as_py()
    return True
