"""The table that `files()` returns: one Arrow row per live file, with typed partition values and statistics.

Every replay engine returns this table and the pruner reads it. Statistics are structs
with one field per leaf column, named by its dotted path. Null means unknown; a string
minimum or maximum may end with the truncation marker. Counts and statistics are those of all
rows of a file; `num_deleted` of them are hidden by its deletion vector, whose unique id is `dv`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.model.fields import leaf_fields
from indextables.model.stats import statistics_fields
from indextables.storage.store import Store
from indextables.storage.urls import encode_path

COLUMNS = (
    "path", "uri", "size", "modification_time", "num_records", "partition_values", "min", "max", "null_count",
    "data_change", "index_offset", "index_length", "tags", "dv", "num_deleted",
)  # fmt: skip
BY_COLUMN = frozenset({"partition_values", "min", "max", "null_count"})
"""The structs among them whose fields go by the columns of the table."""
_TIME = pa.timestamp("ms", tz="UTC")
_TAGS = pa.map_(pa.string(), pa.string())


def files_schema(
    schema: pa.Schema, partition_columns: Sequence[str], columns: Iterable[str] | None = None
) -> pa.Schema:
    """The Arrow schema of files() for a table, or of some of its columns (`path` always)."""
    names = frozenset(COLUMNS if columns is None else {"path", *columns})
    return _files_schema(schema, tuple(partition_columns), names)


@lru_cache(maxsize=32)
def _files_schema(schema: pa.Schema, partition_columns: tuple[str, ...], names: frozenset[str]) -> pa.Schema:
    bounds = pa.struct([pa.field(item.name, item.type) for item in statistics_fields(schema)])
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
        "dv": pa.string(),
        "num_deleted": pa.int64(),
    }
    return pa.schema([pa.field(name, types[name]) for name in COLUMNS if name in names])


def file_uris(store: Store, paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Absolute URIs: the table's URI and the path, or the path itself where it already is a URI."""
    absolute = pc.match_substring_regex(paths, "^[A-Za-z][A-Za-z0-9+.-]*:/")
    below = _encoded(paths) if store.uri.startswith("file:") else paths
    joined = pc.binary_join_element_wise(pa.scalar(store.uri), below, "/")
    return pc.if_else(absolute, paths, joined)


def _encoded(paths: Any) -> Any:
    """Percent-encode paths for `file:` URIs; only paths with special characters are rebuilt."""
    if isinstance(paths, pa.ChunkedArray):
        return pa.chunked_array([_encoded(chunk) for chunk in paths.chunks], pa.string())
    special = pc.match_substring_regex(paths, r"[^A-Za-z0-9_.~/!$&'()*+,;=:@-]")
    if not pc.any(special).as_py():
        return paths
    written = [encode_path(path) for path in paths.filter(special).to_pylist()]
    return pc.replace_with_mask(paths, special, pa.array(written, pa.string()))


def in_form(columns: pa.Table, target: pa.Schema, store: Store) -> pa.Table:
    """The columns that were read, arranged in the schema `target`, with the derived `uri` if that has it."""
    arrays: list[Any] = []
    for field in target:
        if field.name == "uri":
            arrays.append(file_uris(store, columns.column("path")))
        elif field.name in columns.column_names:
            arrays.append(columns.column(field.name))
        else:
            # A struct without fields: the partition values of a table without partitions.
            arrays.append(pa.array([{}] * len(columns), field.type))
    return pa.Table.from_arrays(arrays, schema=target)
