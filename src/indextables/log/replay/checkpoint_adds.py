"""The adds of one checkpoint as Arrow columns, kept from one question to the next.

A base never changes: later commits only make rows of it count no longer. Its
rows are in path order, so a path is found by bisection, and what a refresh adds
are the places of a few new keys. Columns are read when first asked for and kept
in pieces, as they came.
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
from indextables.log.adds.columns import PATH, Leaf, check_increasing, disordered
from indextables.log.adds.lines import CAN_SEARCH, PathSequence, search_paths
from indextables.log.checkpoint.reader import OpenCheckpoint, open_checkpoint
from indextables.log.format.dialect import Checkpoint
from indextables.storage.store import Store

Columns = Mapping[Leaf, list[pa.Array]]
Rows = npt.NDArray[np.int64]
_PIECE_ROWS = 1 << 16
_BISECTED = 100
"""So many paths are looked for one by one, and more where Arrow cannot search while they are fewer than one
for so many rows: comparing by the piece then costs a look at every row."""
POOL = pa.system_memory_pool()
"""Where columns are put together: Arrow's own pool gives memory back to the system at once, so that every
chunk of lines would pay for fresh pages."""
KEPT_BYTES = 256 << 20
"""Columns beyond this are read again rather than kept."""


class CheckpointAdds:
    """The columns of one checkpoint that were asked for so far."""

    def __init__(self) -> None:
        self.starts: Rows = np.zeros(1, dtype=np.int64)
        """Row at which each piece begins, and the number of rows."""
        self.bytes_read = 0
        self._pieces: dict[Leaf, list[pa.Array]] = {}
        self._wholes: dict[Leaf, pa.Array] = {}
        self._firsts: list[bytes] = []
        self._paths: list[PathSequence] = []
        self._known: dict[str, int] = {}
        self._found: tuple[Rows, npt.NDArray[np.bool_]] = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def num_pieces(self) -> int:
        """How many pieces every column has."""
        return len(self.starts) - 1

    def load(self, store: Store, checkpoint: Checkpoint | None, leaves: Iterable[Leaf]) -> Columns:
        """The pieces of columns, path included; those that are not there yet are read."""
        wanted = dict.fromkeys((PATH, *leaves))
        if checkpoint is None:
            return {leaf: [] for leaf in wanted}
        with self._lock:
            missing = [leaf for leaf in wanted if leaf not in self._pieces]
            if missing:
                self._load(open_checkpoint(store, checkpoint), tuple(missing))
            found = {leaf: self._pieces[leaf] for leaf in wanted}
            self._shed()
        return found

    def fetch(
        self, store: Store, checkpoint: Checkpoint, leaves: tuple[Leaf, ...], rows: Rows
    ) -> dict[Leaf, pa.Array]:
        """Columns of some rows only, in ascending order, read from the checkpoint and not kept."""
        pieces = list(open_checkpoint(store, checkpoint).leaves(leaves, rows))
        if not pieces:
            return {leaf: pa.nulls(0, leaf.type) for leaf in leaves}
        return {
            leaf: pa.concat_arrays(arrays)
            for leaf, arrays in zip(leaves, zip(*pieces, strict=True), strict=True)
        }

    def whole(self, leaf: Leaf, pieces: Sequence[pa.Array]) -> pa.Array:
        """A loaded column as one array, which from then on is what its pieces are slices of."""
        with self._lock:
            if leaf in self._wholes:
                return self._wholes[leaf]
            array = pa.concat_arrays(pieces, memory_pool=POOL)
            if leaf in self._pieces:
                self._wholes[leaf] = array
                # In place: who was given the pieces must not keep the old ones.
                self._pieces[leaf][:] = [array[begin:end] for begin, end in pairwise(self.starts.tolist())]
            return array

    def gather(self, pieces: Sequence[pa.Array], rows: Rows, leaf: Leaf) -> pa.Array:
        """Some rows of a column, in ascending order."""
        cuts = np.searchsorted(rows, self.starts)
        found = [
            pieces[at].take(pa.array(rows[low:high] - self.starts[at]))
            for at, (low, high) in enumerate(pairwise(cuts.tolist()))
            if low < high
        ]
        return pa.concat_arrays(found) if found else pa.nulls(0, leaf.type)

    def _load(self, opened: OpenCheckpoint, leaves: tuple[Leaf, ...]) -> None:
        # Row groups are pieces already, and whole arrays of their own.
        rows = 0 if opened.format == "parquet" else _PIECE_ROWS
        columns = {leaf: _Pieces(rows) for leaf in leaves}
        for arrays in opened.leaves(leaves):
            for column, array in zip(columns.values(), arrays, strict=True):
                column.append(array)
        found = {leaf: column.all() for leaf, column in columns.items()}
        if PATH in found:
            self._set_paths(found.pop(PATH), opened.name)
        self.bytes_read += opened.size_bytes + sum(part.size_in_bytes for part in opened.parts or ())
        for leaf, pieces in found.items():
            if sum(map(len, pieces)) != len(self):
                raise CorruptLogError(
                    f"{opened.name} is damaged: not every add has a {leaf.column}", file=opened.name
                )
            self._pieces[leaf] = pieces
        # What was inflated and cut up on the way is not needed by anybody else.
        POOL.release_unused()

    def _set_paths(self, pieces: list[pa.Array], name: str) -> None:
        if not _is_increasing(pieces):
            raise disordered(name)
        self._pieces[PATH] = pieces
        self.starts = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
        self._paths = [PathSequence(piece) for piece in pieces]
        self._firsts = [paths[0] for paths in self._paths]

    def _shed(self) -> None:
        """Forget the largest columns when they are more than is worth keeping."""
        sizes = {leaf: sum(piece.nbytes for piece in pieces) for leaf, pieces in self._pieces.items()}
        total = sum(sizes.values())
        for leaf in sorted(sizes, key=lambda item: sizes[item], reverse=True):
            if total <= KEPT_BYTES or leaf == PATH:
                continue
            total -= sizes[leaf]
            del self._pieces[leaf]
            self._wholes.pop(leaf, None)

    def places(self, paths: Sequence[str]) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Where each path stands or would be put in, and whether it is there."""
        known = self._known
        with self._lock:
            unknown = [path for path in paths if path not in known]
            if unknown:
                few = _BISECTED if CAN_SEARCH else max(_BISECTED, len(self) // _BISECTED)
                find = self._find_many if len(unknown) > few else self._find_each
                rows, present = find([path.encode() for path in unknown])
                known.update(
                    zip(unknown, range(len(self._found[0]), len(self._found[0]) + len(unknown)), strict=True)
                )
                self._found = np.append(self._found[0], rows), np.append(self._found[1], present)
            found = np.fromiter(map(known.__getitem__, paths), np.int64, len(paths))
            return self._found[0][found], self._found[1][found]

    def _find_many(self, unknown: list[bytes]) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """Find many paths piece by piece, comparing all of them with a piece's paths at once."""
        wanted = np.array(unknown)
        rows, present = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
        if not self._firsts:
            return rows, present
        homes = np.maximum(np.searchsorted(np.array(self._firsts), wanted, side="right") - 1, 0)
        by_home = np.argsort(homes, kind="stable")
        cuts = np.searchsorted(homes[by_home], np.arange(len(self._firsts) + 1))
        for at, (low, high) in enumerate(pairwise(cuts.tolist())):
            if low == high:
                continue
            chosen = by_home[low:high]
            places, there = search_paths(self._pieces[PATH][at], wanted[chosen].tolist())
            present[chosen] = there
            rows[chosen] = self.starts[at] + places
        return rows, present

    def _find_each(self, unknown: list[bytes]) -> tuple[Rows, npt.NDArray[np.bool_]]:
        found = [self._find(path) for path in unknown]
        return np.array([at for at, _ in found], np.int64), np.array([there for _, there in found], np.bool_)

    def _find(self, path: bytes) -> tuple[int, bool]:
        at = max(bisect_left(self._firsts, path) - 1, 0)
        if at + 1 < len(self._firsts) and self._firsts[at + 1] == path:
            at += 1
        if at >= len(self._paths):
            return 0, False
        paths = self._paths[at]
        place = bisect_left(paths, path)
        return int(self.starts[at]) + place, place < len(paths) and paths[place] == path


class _Pieces:
    """A column put together from arrays of any size, in pieces of `rows`; 0 leaves them as they come.

    An array from a parser holds on to everything that came with it; joining lets go of that.
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
