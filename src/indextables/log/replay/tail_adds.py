"""The tail's adds as Arrow rows, kept from version to version so that only new adds are converted."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from indextables.log.adds.columns import AddLeaf
from indextables.log.adds.decoder import decode_adds
from indextables.model.actions import AddAction

_MAX_SHAPES = 4


class TailAdds:
    """Rows of the adds after a checkpoint, for each set of columns that was requested."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[AddLeaf, ...], _Shape] = {}
        self._lock = threading.Lock()

    def rows(self, adds: Sequence[AddAction], leaves: tuple[AddLeaf, ...]) -> list[pa.Array]:
        """One array per leaf, with a row for every add, in the order given."""
        with self._lock:
            shape = self._shapes.pop(leaves, None) or _Shape(leaves)
            self._shapes[leaves] = shape
            while len(self._shapes) > _MAX_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            return shape.rows(adds)


class _Shape:
    """The rows for one set of columns."""

    def __init__(self, leaves: tuple[AddLeaf, ...]) -> None:
        self._leaves = leaves
        self._arrays = [pa.nulls(0, leaf.type) for leaf in leaves]
        self._row_of: dict[str, tuple[AddAction, int]] = {}
        self._rows = 0

    def rows(self, adds: Sequence[AddAction]) -> list[pa.Array]:
        row_of = self._row_of
        fresh = [add for add in adds if (entry := row_of.get(add.path)) is None or entry[0] is not add]
        if len(fresh) == len(adds):
            # No cached row can be used: they belong to another tail, or there are none yet.
            self._arrays, self._rows = decode_adds(adds, self._leaves), len(adds)
            self._row_of = {add.path: (add, at) for at, add in enumerate(adds)}
            return self._arrays
        if fresh:
            pairs = zip(self._arrays, decode_adds(fresh, self._leaves), strict=True)
            self._arrays = [pa.concat_arrays(pair) for pair in pairs]
            row_of.update((add.path, (add, self._rows + at)) for at, add in enumerate(fresh))
            self._rows += len(fresh)
        order = pa.array([row_of[add.path][1] for add in adds], pa.int64())
        return [array.take(order) for array in self._arrays]
