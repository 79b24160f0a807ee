"""The files() form: one Arrow row per live file, with typed partition values and statistics.

Every engine returns it and the pruner reads it. Statistics are structs with one
child per leaf column, named by its dotted path. Unknown is null; a string
minimum or maximum may end with the truncation marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.model import stats as statistics
from indextables.model.fields import decode_partition_array, decode_stat_array, leaf_fields
from indextables.storage.store import Store
from indextables.storage.urls import encode_path

if TYPE_CHECKING:
    from indextables.model.actions import AddAction

COLUMNS = (
    "path", "uri", "size", "modification_time", "num_records", "partition_values", "min", "max", "null_count",
    "data_change", "index_offset", "index_length", "tags",
)  # fmt: skip
_TIME = pa.timestamp("ms", tz="UTC")
_TAGS = pa.map_(pa.string(), pa.string())


def files_schema(
    schema: pa.Schema, partition_columns: Sequence[str], columns: Iterable[str] | None = None
) -> pa.Schema:
    """The Arrow schema of files() for a table, or of some of its columns (`path` always)."""
    bounds = pa.struct([pa.field(item.name, item.type) for item in statistics.statistics_fields(schema)])
    counts = pa.struct([pa.field(item.name, pa.int64()) for item in leaf_fields(schema)])
    partitions = pa.struct([pa.field(name, schema.field(name).type) for name in partition_columns])
    types: Mapping[str, pa.DataType] = {
        "path": pa.string(),
        "uri": pa.string(),
        "size": pa.int64(),
        "modification_time": _TIME,
        "num_records": pa.int64(),
        "partition_values": partitions,
        "min": bounds,
        "max": bounds,
        "null_count": counts,
        "data_change": pa.bool_(),
        "index_offset": pa.int64(),
        "index_length": pa.int64(),
        "tags": _TAGS,
    }
    wanted = set(COLUMNS) if columns is None else {"path", *columns}
    return pa.schema([pa.field(name, types[name]) for name in COLUMNS if name in wanted])


def file_uris(store: Store, paths: pa.Array) -> pa.Array:
    """Absolute URIs: the table's URI and the path, or the path itself where it already is a URI."""
    absolute = pc.match_substring_regex(paths, "^[A-Za-z][A-Za-z0-9+.-]*:/")
    below = _encoded(paths) if store.uri.startswith("file:") else paths
    joined = pc.binary_join_element_wise(pa.scalar(store.uri), below, "/")
    return pc.if_else(absolute, paths, joined)


def _encoded(paths: Any) -> Any:
    """Paths as they stand in a `file:` URI; only those with special characters are built anew."""
    if isinstance(paths, pa.ChunkedArray):
        return pa.chunked_array([_encoded(chunk) for chunk in paths.chunks], pa.string())
    special = pc.match_substring_regex(paths, r"[^A-Za-z0-9_.~/!$&'()*+,;=:@-]")
    if not pc.any(special).as_py():
        return paths
    written = [encode_path(path) for path in paths.filter(special).to_pylist()]
    return pc.replace_with_mask(paths, special, pa.array(written, pa.string()))


def tabulate(
    adds: Sequence[AddAction],
    schema: pa.Schema,
    partition_columns: Sequence[str],
    store: Store,
    columns: Iterable[str] | None = None,
) -> pa.Table:
    """Lay adds out in the files() form, in the order given."""
    target = files_schema(schema, partition_columns, columns)
    paths = pa.array([add.path for add in adds], pa.string())
    arrays = [_column(field, adds, paths, store) for field in target]
    return pa.Table.from_arrays(arrays, schema=target)


def _column(field: pa.Field, adds: Sequence[AddAction], paths: pa.Array, store: Store) -> pa.Array:
    plain = _PLAIN.get(field.name)
    if plain is not None:
        return pa.array([plain(add) for add in adds], field.type)
    if field.name == "path":
        return paths
    if field.name == "uri":
        return file_uris(store, paths)
    if field.name == "tags":
        tags = [None if add.tags is None else list(add.tags.items()) for add in adds]
        return pa.array(tags, field.type)
    if field.name == "partition_values":
        values = [add.partition_values for add in adds]
        return _struct(field.type, values, decode_partition_array)
    known = [statistics.of_add(add) for add in adds]
    if field.name == "null_count":
        return _struct(field.type, [item.null_count for item in known], _counts)
    bounds = [item.min_values if field.name == "min" else item.max_values for item in known]
    return _struct(field.type, bounds, decode_stat_array)


def _struct(
    kind: pa.StructType,
    maps: Sequence[Mapping[str, Any] | None],
    decode: Callable[[pa.Array, pa.DataType], pa.Array],
) -> pa.Array:
    """A struct array from one string map per row, each child decoded as a whole column."""
    fields = [kind.field(at) for at in range(kind.num_fields)]
    children = []
    for field in fields:
        values = [None if item is None else item.get(field.name) for item in maps]
        if all(value is None for value in values):
            children.append(pa.nulls(len(maps), field.type))
        elif pa.types.is_int64(field.type) and decode is _counts:
            children.append(pa.array(values, pa.int64()))
        else:
            children.append(decode(pa.array(values, pa.string()), field.type))
    if not fields:
        return pa.array([{}] * len(maps), kind)
    return pa.StructArray.from_arrays(children, fields=fields)


def _counts(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values.cast(kind)


_PLAIN: Mapping[str, Callable[[AddAction], Any]] = {
    "size": lambda add: add.size,
    "modification_time": lambda add: add.modification_time,
    "data_change": lambda add: add.data_change,
    "index_offset": lambda add: add.hotcache_start_offset,
    "index_length": lambda add: add.hotcache_length,
    "num_records": lambda add: statistics.of_add(add).num_records,
}
