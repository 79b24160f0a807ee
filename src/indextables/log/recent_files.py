"""The adds of the tail as Arrow rows, kept from one version to the next: only new adds are laid out."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from indextables.log.add_columns import Leaf, TableForm, table_leaves
from indextables.model.actions import AddAction

_KEPT_SHAPES = 4


class RecentFiles:
    """Rows of adds that came after a checkpoint, per set of columns that was asked for."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[Leaf, ...], _Shape] = {}
        self._lock = threading.Lock()

    def rows(self, adds: Sequence[AddAction], leaves: tuple[Leaf, ...], form: TableForm) -> list[pa.Array]:
        """One array per leaf, with a row for every add, in the order given."""
        with self._lock:
            shape = self._shapes.pop(leaves, None) or _Shape(leaves)
            self._shapes[leaves] = shape
            while len(self._shapes) > _KEPT_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            return shape.rows(adds, form)


class _Shape:
    """The rows of one set of columns."""

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        self._leaves = leaves
        self._arrays = [pa.array([], leaf.type) for leaf in leaves]
        self._known: dict[str, tuple[AddAction, int]] = {}

    def rows(self, adds: Sequence[AddAction], form: TableForm) -> list[pa.Array]:
        known = self._known
        fresh = [add for add in adds if (found := known.get(add.path)) is None or found[0] is not add]
        if fresh:
            if len(known) + len(fresh) > 2 * len(adds):
                self._arrays = [array[:0] for array in self._arrays]
                known.clear()
                fresh = list(adds)
            begin = len(self._arrays[0]) if self._arrays else 0
            columns = {leaf.column for leaf in self._leaves}
            arrays = table_leaves(form.tabulate(fresh, columns), self._leaves)
            self._arrays = [pa.concat_arrays(pair) for pair in zip(self._arrays, arrays, strict=True)]
            known.update((add.path, (add, begin + at)) for at, add in enumerate(fresh))
        order = pa.array([known[add.path][1] for add in adds], pa.int64())
        return [array.take(order) for array in self._arrays]
