"""The adds of the tail as Arrow rows, kept from one version to the next: only new adds are laid out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from indextables.log.lines.add_glimpse import glimpse
from indextables.log.replay.add_columns import Leaf
from indextables.model.actions import AddAction
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.model.stats import of_add

_KEPT_SHAPES = 4


class RecentFiles:
    """Rows of adds that came after a checkpoint, per set of columns that was asked for."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[Leaf, ...], _Shape] = {}
        self._lock = threading.Lock()

    def rows(self, adds: Sequence[AddAction], leaves: tuple[Leaf, ...]) -> list[pa.Array]:
        """One array per leaf, with a row for every add, in the order given."""
        with self._lock:
            shape = self._shapes.pop(leaves, None) or _Shape(leaves)
            self._shapes[leaves] = shape
            while len(self._shapes) > _KEPT_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            return shape.rows(adds)


class _Shape:
    """The rows of one set of columns."""

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        self._leaves = leaves
        self._arrays = [pa.nulls(0, leaf.type) for leaf in leaves]
        self._known: dict[str, tuple[AddAction, int]] = {}
        self._rows = 0

    def rows(self, adds: Sequence[AddAction]) -> list[pa.Array]:
        known = self._known
        fresh = [add for add in adds if (found := known.get(add.path)) is None or found[0] is not add]
        if len(fresh) == len(adds):
            # Nothing of what is known is wanted: it is of another tail, or there is none yet.
            self._arrays, self._rows = lay_out(adds, self._leaves), len(adds)
            self._known = {add.path: (add, at) for at, add in enumerate(adds)}
            return self._arrays
        if fresh:
            pairs = zip(self._arrays, lay_out(fresh, self._leaves), strict=True)
            self._arrays = [pa.concat_arrays(pair) for pair in pairs]
            known.update((add.path, (add, self._rows + at)) for at, add in enumerate(fresh))
            self._rows += len(fresh)
        order = pa.array([known[add.path][1] for add in adds], pa.int64())
        return [array.take(order) for array in self._arrays]


def lay_out(adds: Sequence[AddAction], leaves: tuple[Leaf, ...]) -> list[pa.Array]:
    """Adds in the files() form, one array per leaf, in the order given."""
    columns = glimpse(adds, leaves)
    if columns is None:
        columns = _columns(adds, leaves)
    return [_typed(leaf, values) for leaf, values in zip(leaves, columns, strict=True)]


def _typed(leaf: Leaf, values: list[Any]) -> pa.Array:
    if leaf.column == "partition_values":
        return decode_partition_array(pa.array(values, pa.string()), leaf.type)
    if leaf.column in {"min", "max"}:
        return decode_stat_array(pa.array(values, pa.string()), leaf.type)
    return pa.array(values, leaf.type)


def _columns(adds: Sequence[AddAction], leaves: Sequence[Leaf]) -> list[list[Any]]:
    maps: dict[str, list[Mapping[str, Any]]] = {}
    columns = []
    for leaf in leaves:
        if leaf.child is None:
            columns.append([_PLAIN[leaf.column](add) for add in adds])
            continue
        if leaf.column not in maps:
            maps[leaf.column] = [_MAPS[leaf.column](add) for add in adds]
        columns.append([item.get(leaf.child) for item in maps[leaf.column]])
    return columns


class _Counts(msgspec.Struct):
    nullCount: dict[str, int] = {}  # noqa: N815 - wire name


_COUNTS = msgspec.json.Decoder(_Counts)


def _null_count(add: AddAction) -> Mapping[str, Any]:
    if not add.stats:
        return {}
    try:
        return _COUNTS.decode(add.stats).nullCount
    except (msgspec.DecodeError, RecursionError):
        return of_add(add).null_count


def _num_records(add: AddAction) -> int | None:
    return add.num_records if add.num_records is not None or not add.stats else of_add(add).num_records


def _min_values(add: AddAction) -> Mapping[str, Any]:
    return add.min_values if add.min_values is not None else of_add(add).min_values


def _max_values(add: AddAction) -> Mapping[str, Any]:
    return add.max_values if add.max_values is not None else of_add(add).max_values


def _tags(add: AddAction) -> list[tuple[str, str | None]] | None:
    return None if add.tags is None else list(add.tags.items())


_MAPS: Mapping[str, Callable[[AddAction], Mapping[str, Any]]] = {
    "partition_values": lambda add: add.partition_values,
    "min": _min_values,
    "max": _max_values,
    "null_count": _null_count,
}
_PLAIN: Mapping[str, Callable[[AddAction], Any]] = {
    "path": lambda add: add.path,
    "size": lambda add: add.size,
    "modification_time": lambda add: add.modification_time,
    "num_records": _num_records,
    "data_change": lambda add: add.data_change,
    "index_offset": lambda add: add.hotcache_start_offset,
    "index_length": lambda add: add.hotcache_length,
    "tags": _tags,
}
