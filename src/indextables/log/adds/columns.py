"""Adds as columns: a leaf is one column of the files() form, or one field of its structs.

Which leaves there are, what they are called in the log, how their values become
Arrow arrays and those a table, and how they are taken from whole actions: slow,
and always right. `decoder` takes them from the JSON instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptLogError
from indextables.log.adds.file_table import files_schema, in_form
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
from indextables.model.arrays import from_values
from indextables.model.fields import decode_partition_array, decode_stat_array
from indextables.model.stats import FileStats, of_add
from indextables.records import dataclass
from indextables.storage.store import Store

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
    wanted = {leaf.column for leaf in leaves}
    known: list[FileStats] = []
    if wanted & IN_STATS.keys():
        known = [of_add(add, null_counts="null_count" in wanted) for add in adds]
    arrays = []
    for leaf in leaves:
        values = map(_VALUES[leaf.column], known if leaf.column in IN_STATS else adds)
        found = values if leaf.child is None else (item.get(leaf.child) for item in values)
        arrays.append(to_array(leaf, list(found)))
    return arrays


def tabulate(
    adds: Sequence[AddAction], schema: pa.Schema, partition_columns: Sequence[str], store: Store
) -> pa.Table:
    """Whole actions in the files() form, in the order given."""
    leaves = leaves_of(schema, partition_columns)
    columns = pa.Table.from_batches([build(leaves, adds_columns(adds, leaves))])
    return in_form(columns, files_schema(schema, partition_columns), store)


def build(leaves: Sequence[Leaf], arrays: Sequence[Any]) -> pa.RecordBatch:
    """A batch in the files() form from its leaves; children of one struct must stand together."""
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


def to_array(leaf: Leaf, values: list[Any]) -> pa.Array:
    """The values of a leaf as the log has them, in the leaf's type."""
    if leaf.column == "partition_values":
        return decode_partition_array(from_values(values, pa.string()), leaf.type)
    if leaf.column in {"min", "max"}:
        return decode_stat_array(from_values(values, pa.string()), leaf.type)
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
    "num_records": attrgetter("num_records"),
    "min": attrgetter("min_values"),
    "max": attrgetter("max_values"),
    "null_count": attrgetter("null_count"),
}
"""Where a column stands: the statistics in the FileStats of an add, the others in the add itself."""


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
