"""Reads and counts rows without Spark, over the splits that pruning leaves.

The splits are read in parallel and their rows returned in the order of paths and rows, as a stream
of batches. A filter decides every row exactly. Errors in the filter or the columns are raised
before the first split is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.lazy import later, pc
from indextables.log.snapshot import Snapshot
from indextables.ops.read.arguments import check_limit, column_names, row_filter
from indextables.ops.read.in_order import batches_in_order, in_order, work_units
from indextables.ops.read.record import Record
from indextables.ops.read.splits import live_splits, splits_at, splits_for, with_entries
from indextables.ops.table_settings import require_parquet, settings_of
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import to_table_schema
from indextables.storage.store import scans_at_once

if TYPE_CHECKING:
    from indextables.ops.read import matching, pushdown, sorting
    from indextables.predicate.tree import Node
    from indextables.split.search import filtered, narrowing
    from indextables.split.search.filtered import Filtered
else:
    matching = later("indextables.ops.read.matching")
    pushdown = later("indextables.ops.read.pushdown")
    sorting = later("indextables.ops.read.sorting")
    filtered = later("indextables.split.search.filtered")
    narrowing = later("indextables.split.search.narrowing")


_log = logging.getLogger(__name__)


def files(
    snapshot: Snapshot, where: Any = None, engine: str = "auto", columns: Sequence[str] | None = None
) -> tuple[pa.Table, Record]:
    """The live files that can hold a matching row, one row each; `columns` are those of `files()`.

    Only what these columns and the filter need is read of the log.
    """
    record = Record(snapshot)
    names = None if columns is None else snapshot.files_schema(columns).names
    plan = snapshot.plan(where, columns=names, engine=engine)
    record.planned(plan.metrics, plan.replay)
    if (names is None or "uri" in names) and snapshot.has_vectors:
        _warn_of_deleted(snapshot.store.uri)
    return (plan.files if names is None else plan.files.select(names)), record


@lru_cache(maxsize=256)
def _warn_of_deleted(uri: str) -> None:
    """Say once of a table that its files hold more rows than it has."""
    _log.warning(
        "%s: some files hold rows that are deleted (files() has their number in num_deleted), and another "
        "reader of these files would return them. Give it the Arrow stream of scan(), or run PURGE ROWS, "
        "which writes such files without the deleted rows",
        uri,
    )


def scan(
    snapshot: Snapshot,
    where: Any = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    sort: str | Sequence[str] | None = None,
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows of a version, or those for which a filter is true, in (path, row) order or that of columns."""
    check_limit(limit)
    node = row_filter(snapshot, where)
    names = column_names(snapshot, columns)
    record = Record(snapshot)
    if sort is not None:
        keys = sorting.sort_keys(snapshot, sort)
        refs = splits_for(snapshot, node, record) if limit != 0 else []
        rows, splits_read = sorting.sorted_scan(snapshot, refs, node, names, keys=keys, limit=limit)
        record.not_needed(len(refs) - splits_read)
        record.read(rows.num_rows, files=splits_read)
        return rows.to_reader(), record

    def rows_in(unit: Sequence[SplitRef]) -> Iterator[pa.Table]:
        for ref in unit:
            yield from rows_of(snapshot, ref, node, names, record)

    units = work_units(snapshot, splits_for(snapshot, node, record) if limit != 0 else [])
    pieces = [partial(rows_in, unit) for unit in units]
    return batches_in_order(
        snapshot.reading.columns(names), pieces, scans_at_once(snapshot.store), limit
    ), record


def count_rows(snapshot: Snapshot, node: Node | None, record: Record) -> int:
    """How many rows there are, or match; files whose statistics decide are not opened."""
    require_parquet(snapshot)
    if node is None:
        return sum(row_count(snapshot, ref) for ref in live_splits(snapshot))
    total, doubtful = _counted_by_log(snapshot, node, record)
    refs = with_entries(snapshot, node, doubtful, record)
    counts, left = pushdown.run_in_duckdb(snapshot, refs, node, pushdown.DuckQuery("count(*)"))
    if counts is not None:
        counted: int = pc.sum(counts.column(0)).as_py()
        record.read(counted, files=len(refs) - len(left))
        total += counted
    pieces = [partial(_count_of, snapshot, ref, node, record) for ref in left]
    return total + sum(in_order(pieces, scans_at_once(snapshot.store)))


def _counted_by_log(snapshot: Snapshot, node: Node, record: Record) -> tuple[int, list[SplitRef]]:
    """The rows of the splits that match as a whole, and the splits that have to be opened."""
    few = matching.sort_few(snapshot, node)
    if few is not None:
        record.planned(few.plan.metrics, few.plan.replay)
        rows = sum(row_count(snapshot, SplitRef.of(add)) for add in few.sorted.whole)
        return rows, [SplitRef.of(add) for add in few.sorted.doubtful]
    matches = matching.sort_files(snapshot, node)
    record.planned(matches.plan.metrics, matches.plan.replay, node)
    lengths = matching.live_lengths(matches.whole)
    unknown = splits_at(snapshot, matches.whole.filter(pc.is_null(lengths)).column("path").to_pylist())
    total: int = pc.sum(lengths, min_count=0).as_py() + sum(row_count(snapshot, ref) for ref in unknown)
    return total, splits_at(snapshot, matches.doubtful.column("path").to_pylist())


def row_count(snapshot: Snapshot, ref: SplitRef) -> int:
    """How many rows of a split are not deleted, from the log or its footer."""
    return open_split(snapshot.store, ref).live_rows if ref.live_records is None else ref.live_records


def _count_of(snapshot: Snapshot, ref: SplitRef, node: Node, record: Record) -> Iterator[int]:
    """How many rows of one split a filter keeps; only its own columns are read."""
    matching = _filtered(snapshot, ref, node).count()
    record.read(matching)
    yield matching


def _filtered(snapshot: Snapshot, ref: SplitRef, node: Node) -> Filtered:
    return filtered.Filtered(
        snapshot.reading, ref, node, narrowing.index_for(snapshot.reading, ref, node, settings_of(snapshot))
    )


def rows_of(
    snapshot: Snapshot,
    ref: SplitRef,
    node: Node | None,
    columns: Sequence[str],
    record: Record,
    *,
    coded: bool = False,
) -> Iterator[pa.Table]:
    """The rows of one split, or those for which a filter is true.

    With `coded`, repeated text may stay dictionary-encoded.
    """
    rows = 0
    if node is None:
        reader = open_split(snapshot.store, ref)
        for _, raw in reader.scan([name for name in columns if name in reader.columns], coded=coded):
            table = to_table_schema(raw, snapshot.schema, columns, ref.partition_values, coded=coded)
            rows += table.num_rows
            yield table.select(list(columns))
    else:
        for _, table in _filtered(snapshot, ref, node).tables(None, columns):
            rows += table.num_rows
            yield table
    record.read(rows)
