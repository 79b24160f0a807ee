"""What the footer of a split says about it: enough to write the add action that a lost log held.

Parquet's minima and maxima are bounds in our sense for types whose order is the
same; those of floating point columns leave out NaN and are not taken over.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import SplitError, StorageError
from indextables.index.settings import IndexSpec
from indextables.lazy import pq
from indextables.model.actions import AddAction
from indextables.model.fields import normalise_schema
from indextables.model.values import encode_stat
from indextables.ops.existence import as_store
from indextables.split.layout import MAGIC, Footer, SplitRef, read_footer, split_tags
from indextables.split.source import SplitFile
from indextables.storage.store import Store, StoreSpec


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A split as its footer describes it."""

    add: AddAction
    schema: pa.Schema
    table_id: str
    index_fields: tuple[Mapping[str, Any], ...]
    replaces: tuple[str, ...]
    is_companion: bool
    """Whether it holds an index of rows that lie elsewhere, and no rows."""


def rebuild_add(store: Store | StoreSpec, path: str) -> Rebuilt | str:
    """The add action of a split, from its footer alone; a text that says why not when it cannot be read."""
    root = as_store(store)
    try:
        meta = root.head(path)
        footer = read_footer(SplitFile(root, path), SplitRef(path, meta.size))
    except (SplitError, StorageError) as error:
        return error.message
    parquet = parquet_metadata(footer)
    schema = normalise_schema(parquet.schema.to_arrow_schema())
    manifest = footer.manifest
    spec = IndexSpec.from_wire(manifest.fields)
    low, high, nulls = _statistics(parquet, schema, frozenset(manifest.partition_values))
    add = AddAction(
        path=path,
        partition_values=dict(manifest.partition_values),
        size=meta.size,
        modification_time=meta.modified_ms,
        data_change=True,
        stats=msgspec.json.encode({"numRecords": manifest.rows, "nullCount": nulls}).decode(),
        tags=split_tags(spec, manifest),
        min_values=low,
        max_values=high,
        num_records=manifest.rows,
        footer_start_offset=footer.start,
        footer_end_offset=footer.end,
        hotcache_start_offset=manifest.offset,
        hotcache_length=manifest.length,
        has_footer_offsets=True,
        footer_crc=footer.crc,
    )
    is_companion = parquet.num_rows == 0 < manifest.rows
    return Rebuilt(add, schema, manifest.table_id, manifest.fields, manifest.replaces, is_companion)


def parquet_metadata(footer: Footer) -> pq.FileMetaData:
    """Parquet's own view of a footer that has been read already."""
    tail = footer.body + struct.pack("<I", len(footer.body)) + MAGIC
    return pq.read_metadata(pa.BufferReader(MAGIC + tail))


def _statistics(
    parquet: pq.FileMetaData, schema: pa.Schema, partition_columns: frozenset[str]
) -> tuple[dict[str, str], dict[str, str], dict[str, int]]:
    """Minima, maxima and null counts by column, over all row groups; a column with a gap has none."""
    low: dict[str, str] = {}
    high: dict[str, str] = {}
    nulls: dict[str, int] = {}
    positions = {parquet.schema.column(at).path: at for at in range(parquet.num_columns)}
    for item in schema:
        at = positions.get(item.name)
        if at is None or item.name in partition_columns:
            continue
        statistics = [
            parquet.row_group(group).column(at).statistics for group in range(parquet.num_row_groups)
        ]
        if all(stats is not None and stats.has_null_count for stats in statistics):
            nulls[item.name] = sum(stats.null_count for stats in statistics)
        if _is_bounded(item.type):
            _bounds(item, statistics, low, high)
    return low, high, nulls


def _is_bounded(kind: pa.DataType) -> bool:
    unordered = pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind)
    return not (unordered or pa.types.is_null(kind))


def _bounds(item: pa.Field, statistics: list[Any], low: dict[str, str], high: dict[str, str]) -> None:
    bounded = [
        stats for stats in statistics if stats is not None and (stats.has_min_max or stats.num_values == 0)
    ]
    valued = [stats for stats in bounded if stats.has_min_max]
    if len(bounded) != len(statistics) or not valued:
        return
    least = encode_stat(min(stats.min for stats in valued), item.type)
    greatest = encode_stat(max(stats.max for stats in valued), item.type)
    if least is not None and greatest is not None:
        low[item.name], high[item.name] = least, greatest
