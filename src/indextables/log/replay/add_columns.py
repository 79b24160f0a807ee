"""Adds as columns: a leaf is one column of the files() form, or one child of its structs.

Which leaves there are, what they are called in the log, and how they are read
action by action: slow, and always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CorruptLogError
from indextables.log.checkpoint.add_lines import lines_adds
from indextables.log.replay.file_table import files_schema, tabulate
from indextables.model.actions import FIRST_MS, LARGEST, LAST_MS, AddAction
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
    spare: bool = False
    """Of null counts: wanted only where the column has neither a minimum nor a maximum in the add."""


PATH = Leaf("path", None, pa.string())


@dataclass(frozen=True, slots=True)
class TableForm:
    """What it takes to lay adds out in the files() form."""

    schema: pa.Schema
    partition_columns: Sequence[str]
    store: Store

    def tabulate(self, adds: Sequence[AddAction], columns: Iterable[str] | None = None) -> pa.Table:
        """The adds, in the order given."""
        return tabulate(adds, self.schema, self.partition_columns, self.store, columns)

    def leaves(self, columns: Iterable[str] | None = None) -> tuple[Leaf, ...]:
        """The leaves of the form, or of some of its columns."""
        return leaves_of(self.schema, self.partition_columns, columns)


class Unusual(Exception):  # noqa: N818 - not an error, a reason to read the slow way
    """The lines hold something that only reading them as actions gets right."""


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


def read_leaves_as_actions(
    batches: Iterable[pa.BinaryArray],
    leaves: Sequence[Leaf],
    table: TableForm,
    name: str,
) -> Iterator[list[pa.Array]]:
    """The same arrays by way of whole actions."""
    columns = {leaf.column for leaf in leaves}
    for lines in batches:
        adds = list(lines_adds(lines, name))
        yield table_leaves(table.tabulate(adds, columns), leaves)


def table_leaves(table: pa.Table, leaves: Sequence[Leaf]) -> list[pa.Array]:
    """The leaves of a table in the files() form."""
    flat = table.combine_chunks()
    arrays = []
    for leaf in leaves:
        column = flat.column(leaf.column)
        if leaf.child is not None:
            column = pc.struct_field(column, column.type.get_field_index(leaf.child))
        arrays.append(one_array(column))
    return arrays


def plausible(leaf: Leaf, array: pa.Array) -> pa.Array:
    """The column; `Unusual` when a count in it is negative, or a time is none that a calendar has."""
    low, high = _BOUNDS.get(leaf.column, (None, None))
    if low is not None and array.null_count < len(array):
        found = pc.min_max(array.cast(pa.int64()))
        if found["min"].as_py() < low or found["max"].as_py() > high:
            raise Unusual(f"{leaf.column} out of bounds")
    return array


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
