"""Add actions as Arrow columns, in the layout that `files()` returns.

A `AddLeaf` is one such column, or one field of a struct column (`min.price`). This module
says which leaves a table has, what they are called in the log, and how whole actions
become one array per leaf. That way is slow and accepts every valid action; `decoder`
reads the same leaves from JSON text and falls back to this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.lazy import pc
from indextables.log.adds.file_table import BY_COLUMN, files_schema, in_form
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
from indextables.model.arrays import from_values
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.model.stats import FileStats, of_add
from indextables.records import dataclass
from indextables.storage.deletion_vectors import number_deleted, unique_id
from indextables.storage.store import Store

WIRE = {
    "path": "path", "size": "size", "modification_time": "modificationTime", "num_records": "numRecords",
    "data_change": "dataChange", "index_offset": "hotcacheStartOffset", "index_length": "hotcacheLength",
    "tags": "tags", "partition_values": "partitionValues", "min": "minValues", "max": "maxValues",
    "dv": "deletionVector",
}  # fmt: skip
_BOUNDS = {
    **dict.fromkeys(("size", "num_records", "index_offset", "index_length", "num_deleted"), (0, LARGEST)),
    "modification_time": (FIRST_MS, LAST_MS),
}
IN_VECTOR = {"dv": unique_id, "num_deleted": number_deleted}
"""Columns that are read from an add's deletion vector."""
IN_STATS = {"num_records": "numRecords", "min": "minValues", "max": "maxValues", "null_count": "nullCount"}


@dataclass(frozen=True, slots=True)
class AddLeaf:
    """One column to read of every add."""

    column: str
    child: str | None
    type: pa.DataType
    only_if_unbounded: bool = False
    """Skip null counts for adds that have a bound: a bound already proves a value."""


PATH = AddLeaf("path", None, pa.string())


def leaves_of(
    schema: pa.Schema, partition_columns: Sequence[str], columns: Iterable[str] | None = None
) -> tuple[AddLeaf, ...]:
    """Leaves of all columns of `files()`, or of the given ones; `path` always, the derived `uri` never."""
    return _leaves_of(schema, tuple(partition_columns), None if columns is None else frozenset(columns))


@lru_cache(maxsize=32)
def _leaves_of(
    schema: pa.Schema, partition_columns: tuple[str, ...], columns: frozenset[str] | None
) -> tuple[AddLeaf, ...]:
    leaves = []
    for field in files_schema(schema, partition_columns, columns):
        if field.name in BY_COLUMN:
            leaves += [
                AddLeaf(field.name, field.type.field(at).name, field.type.field(at).type)
                for at in range(field.type.num_fields)
            ]
        elif field.name != "uri":
            leaves.append(AddLeaf(field.name, None, field.type))
    return tuple(leaves)


def adds_columns(adds: Sequence[AddAction], leaves: Sequence[AddLeaf]) -> list[pa.Array]:
    """One array per leaf, with one row for each action, in the order given."""
    columns = {leaf.column for leaf in leaves}
    statistics: list[FileStats] = []
    if columns & IN_STATS.keys():
        statistics = [of_add(add, null_counts="null_count" in columns) for add in adds]
    arrays = []
    for leaf in leaves:
        values = map(_VALUES[leaf.column], statistics if leaf.column in IN_STATS else adds)
        leaf_values = values if leaf.child is None else (item.get(leaf.child) for item in values)
        arrays.append(to_array(leaf, list(leaf_values)))
    return arrays


def tabulate(
    adds: Sequence[AddAction], schema: pa.Schema, partition_columns: Sequence[str], store: Store
) -> pa.Table:
    """The table that `files()` returns for these actions, in the order given."""
    leaves = leaves_of(schema, partition_columns)
    columns = pa.Table.from_batches([build(leaves, adds_columns(adds, leaves))])
    return in_form(columns, files_schema(schema, partition_columns), store)


def build(leaves: Sequence[AddLeaf], arrays: Sequence[Any]) -> pa.RecordBatch:
    """Assemble a batch in the layout of `files()` from its leaves; fields of one struct must be adjacent."""
    names: list[str] = []
    columns: list[pa.Array] = []
    for column, group in groupby(zip(leaves, arrays, strict=True), key=lambda item: item[0].column):
        members = list(group)
        names.append(column)
        if members[0][0].child is None:
            columns.append(members[0][1])
        else:
            fields = [pa.field(str(leaf.child), leaf.type) for leaf, _ in members]
            columns.append(pa.StructArray.from_arrays([array for _, array in members], fields=fields))
    return pa.RecordBatch.from_arrays(columns, names=names)


def to_array(leaf: AddLeaf, values: list[Any]) -> pa.Array:
    """Convert the values of a leaf, as the log writes them, to an array of the leaf's type."""
    if leaf.column == "partition_values":
        return decode_partition_array(from_values(values, pa.string()), leaf.type)
    if leaf.column in {"min", "max"}:
        return decode_stat_array(from_values(values, pa.string()), leaf.type)
    if leaf.column in IN_VECTOR:
        if values.count(None) == len(values):
            return pa.nulls(len(values), leaf.type)
        values = [None if vector is None else IN_VECTOR[leaf.column](vector) for vector in values]
    if leaf.column == "tags":
        return pa.array([None if tags is None else list(tags.items()) for tags in values], leaf.type)
    return from_values(values, leaf.type)


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "path": attrgetter("path"),
    "size": attrgetter("size"),
    "modification_time": attrgetter("modification_time"),
    "partition_values": attrgetter("partition_values"),
    "data_change": attrgetter("data_change"),
    "index_offset": attrgetter("hotcache_start_offset"),
    "index_length": attrgetter("hotcache_length"),
    "tags": attrgetter("tags"),
    "dv": attrgetter("deletion_vector"),
    "num_deleted": attrgetter("deletion_vector"),
    "num_records": attrgetter("num_records"),
    "min": attrgetter("min_values"),
    "max": attrgetter("max_values"),
    "null_count": attrgetter("null_count"),
}
"""Where the value is stored: a statistic in the add's FileStats, any other column in the add itself."""


def is_plausible(leaf: AddLeaf, array: pa.Array) -> bool:
    """Whether a column is free of impossible values: negative counts and times outside the calendar."""
    low, high = _BOUNDS.get(leaf.column, (None, None))
    if low is None or array.null_count == len(array):
        return True
    bounds = pc.min_max(array.cast(pa.int64()))
    return bool(bounds["min"].as_py() >= low and bounds["max"].as_py() <= high)


def check_increasing(paths: pa.Array, previous: str | None) -> bool:
    """Whether paths are in strictly ascending order, and begin after `previous`."""
    if not len(paths):
        return True
    if previous is not None and not previous.encode() < paths[0].as_py().encode():
        return False
    return bool(pc.all(pc.less(paths[:-1], paths[1:]), min_count=0).as_py())


def disordered(name: str) -> CorruptLogError:
    """The error for a checkpoint whose adds are not sorted by path although it says so."""
    return CorruptLogError(f"{name} is damaged: its paths are not in ascending order", file=name)
