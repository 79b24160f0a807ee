"""Adds as columns: a leaf is one column of the files() form, or one child of its structs.

Which leaves there are, what they are called in the log, how their values become
Arrow arrays, and how they are taken from whole actions: slow, and always right.
`add_decoder` takes them from the JSON instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptLogError
from indextables.log.adds.file_table import files_schema
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
from indextables.model.arrays import from_values
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.model.stats import of_add

STRUCTS = ("partition_values", "min", "max", "null_count")
WIRE = {
    "path": "path", "size": "size", "modification_time": "modificationTime", "num_records": "numRecords",
    "data_change": "dataChange", "index_offset": "hotcacheStartOffset", "index_length": "hotcacheLength",
    "tags": "tags", "partition_values": "partitionValues", "min": "minValues", "max": "maxValues",
}  # fmt: skip
_BOUNDS = {
    **dict.fromkeys(("size", "num_records", "index_offset", "index_length"), (0, LARGEST)),
    "modification_time": (FIRST_MS, LAST_MS),
}
IN_STATS = {"num_records": "numRecords", "min": "minValues", "max": "maxValues", "null_count": "nullCount"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """One column to read of every add."""

    column: str
    child: str | None
    type: pa.DataType
    only_if_unbounded: bool = False
    """Skip null counts for adds that have a bound: a bound already proves a value."""


PATH = Leaf("path", None, pa.string())


def leaves_of(
    schema: pa.Schema, partition_columns: Sequence[str], columns: Iterable[str] | None = None
) -> tuple[Leaf, ...]:
    """The leaves of the files() form, or of some of its columns: `path` always, the derived `uri` never."""
    found = []
    for field in files_schema(schema, partition_columns, columns):
        if field.name in STRUCTS:
            found += [
                Leaf(field.name, field.type.field(at).name, field.type.field(at).type)
                for at in range(field.type.num_fields)
            ]
        elif field.name != "uri":
            found.append(Leaf(field.name, None, field.type))
    return tuple(found)


def adds_columns(adds: Sequence[AddAction], leaves: Sequence[Leaf]) -> list[pa.Array]:
    """One array per leaf from whole actions, in the order given."""
    maps: dict[str, list[Mapping[str, Any]]] = {}
    arrays = []
    for leaf in leaves:
        if leaf.child is None:
            arrays.append(to_array(leaf, [_PLAIN[leaf.column](add) for add in adds]))
            continue
        if leaf.column not in maps:
            maps[leaf.column] = [_MAPS[leaf.column](add) for add in adds]
        arrays.append(to_array(leaf, [item.get(leaf.child) for item in maps[leaf.column]]))
    return arrays


def to_array(leaf: Leaf, values: list[Any]) -> pa.Array:
    """The values of a leaf as the log has them, in the leaf's type."""
    if leaf.column == "partition_values":
        return decode_partition_array(from_values(values, pa.string()), leaf.type)
    if leaf.column in {"min", "max"}:
        return decode_stat_array(from_values(values, pa.string()), leaf.type)
    if leaf.column == "tags":
        return pa.array([None if tags is None else list(tags.items()) for tags in values], leaf.type)
    return from_values(values, leaf.type)


def _null_count(add: AddAction) -> Mapping[str, Any]:
    return of_add(add).null_count if add.stats else {}


def _num_records(add: AddAction) -> int | None:
    return add.num_records if add.num_records is not None or not add.stats else of_add(add).num_records


def _min_values(add: AddAction) -> Mapping[str, Any]:
    return add.min_values if add.min_values is not None else of_add(add).min_values


def _max_values(add: AddAction) -> Mapping[str, Any]:
    return add.max_values if add.max_values is not None else of_add(add).max_values


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
    "tags": lambda add: add.tags,
}


def is_plausible(leaf: Leaf, array: pa.Array) -> bool:
    """Whether no count in a column is negative, and every time is one that a calendar has."""
    low, high = _BOUNDS.get(leaf.column, (None, None))
    if low is None or array.null_count == len(array):
        return True
    found = pc.min_max(array.cast(pa.int64()))
    return bool(found["min"].as_py() >= low and found["max"].as_py() <= high)


def one_array(column: Any) -> pa.Array:
    """A column without its chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def check_increasing(paths: pa.Array, previous: str | None) -> bool:
    """Whether paths are in strictly ascending order, and begin after `previous`."""
    if not len(paths):
        return True
    if previous is not None and not previous.encode() < paths[0].as_py().encode():
        return False
    return bool(pc.all(pc.less(paths[:-1], paths[1:]), min_count=0).as_py())


def disordered(name: str) -> CorruptLogError:
    """The error for a checkpoint whose adds are not in the order it promises."""
    return CorruptLogError(f"{name} is damaged: its paths are not in ascending order", file=name)
