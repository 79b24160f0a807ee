"""Reads the rows of a Delta table without Spark: scan and count.

Files are pruned by the log, row groups by their footers, rows by the filter. Files are
read concurrently and returned in log order, as a stream of batches in bounded memory.
Counts come from the log as far as possible; deletion vectors are read, to see that the
log counts them right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.lazy import pc
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.replay.rule import Sums
from indextables.log.replay.sums import sums_of
from indextables.ops.delta.data_file import NAMES, DataFile, RowReader, data_files
from indextables.ops.delta.data_file import live_rows as rows_of_file
from indextables.ops.read.arguments import column_names, row_filter
from indextables.ops.read.in_order import batches_in_order, in_order
from indextables.ops.read.matching import may_survive
from indextables.ops.read.record import Record
from indextables.ops.read.scan import files
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.tree import Node, all_of
from indextables.runtime import default_parallelism
from indextables.storage.store import requests_at_once, require_allowed, scans_at_once

COUNTED = ("num_records", "deletion_vector")
"""The columns of files() that tell how many rows are live."""
ReadTask = Callable[[], Iterator[pa.Table]]


def scan(
    snapshot: DeltaSnapshot, where: Any = None, columns: Sequence[str] | None = None, limit: int | None = None
) -> tuple[pa.RecordBatchReader, Record]:
    """The live rows, or those for which a filter is true."""
    require_schema(snapshot)
    node = row_filter(snapshot, where)
    output_columns = column_names(snapshot, columns)
    matching_files, record = files(snapshot, node, columns=NAMES)
    reader = row_reader(snapshot, output_columns, node, matching_files.num_rows)
    pieces = pieces_of(snapshot, reader, matching_files, record)
    return batches_in_order(reader.schema, pieces, scans_at_once(snapshot.store), limit), record


def count(snapshot: DeltaSnapshot, where: Any = None) -> tuple[int, Record]:
    """How many live rows there are, or match; files that the log can decide are not opened."""
    require_schema(snapshot)
    node = row_filter(snapshot, where)
    if node is None:
        # Most logs have all row counts; a file's other fields are read only where one is missing.
        record, sums = Record(snapshot), snapshot.sums(COUNTED)
        assert sums.replay is not None
        record.planned(PruneMetrics(considered=sums.num_files, kept=sums.num_files), sums.replay)
        rows = live_rows(sums)
        if rows is None:
            rows = _rows_of(snapshot, snapshot.plan(columns=NAMES).files, record)
        elif sums.counts["deletion_vector"]:
            snapshot.once("vectors that fit", lambda: _require_vectors(snapshot))
        return rows, record
    matching_files, record = files(snapshot, node, columns=(*NAMES, "dv"))
    doubtful = snapshot.plan(all_of([node, may_survive(node)]), columns=(*NAMES, "dv")).files
    certain = matching_files.filter(pc.invert(pc.is_in(_keys(matching_files), value_set=_keys(doubtful))))
    reader = row_reader(snapshot, (), node, doubtful.num_rows)
    tables = in_order(pieces_of(snapshot, reader, doubtful, record), scans_at_once(snapshot.store))
    return _rows_of(snapshot, certain, record) + sum(table.num_rows for table in tables), record


def require_schema(snapshot: DeltaSnapshot) -> None:
    """Refuse to read rows of a version that has no schema yet."""
    if not snapshot.metadata.schema_string:
        raise TableError(
            f"{snapshot.store.uri} has no schema at version {snapshot.version}, so it has no rows to read",
            uri=snapshot.store.uri,
        )


def live_rows(sums: Sums) -> int | None:
    """The number of live rows according to the log, from sums of COUNTED; None if a file's is unknown."""
    if sums.counts["num_records"] < sums.num_files:
        return None
    return sums.sums["num_records"] - sums.sums["deletion_vector"]


def row_reader(
    snapshot: DeltaSnapshot, output_columns: Sequence[str], node: Node | None, num_files: int
) -> RowReader:
    """How the files of a scan are read."""
    zone = snapshot.time_zone
    # Many files keep all cores busy by themselves.
    return RowReader(snapshot.columns, tuple(output_columns), node, zone, num_files < default_parallelism())


def pieces_of(
    snapshot: DeltaSnapshot, reader: RowReader, files_to_read: pa.Table, record: Record
) -> Iterable[ReadTask]:
    """The files of a scan as units of work, each recorded when it is done."""

    def read(file: DataFile) -> Iterator[pa.Table]:
        rows = 0
        for table in reader.rows(snapshot.store, file):
            rows += table.num_rows
            yield table
        record.read(rows)

    require_allowed(snapshot.store, files_to_read.column("path").to_pylist())
    return (partial(read, file) for file in data_files(files_to_read))


def _rows_of(snapshot: DeltaSnapshot, whole_files: pa.Table, record: Record) -> int:
    """The number of rows of whole files: from the log, or else from their footers."""
    from_log = pc.and_(
        pc.is_valid(whole_files.column("num_records")), pc.is_null(whole_files.column("deletion_vector"))
    )
    logged_rows = live_rows(sums_of(whole_files.filter(from_log), COUNTED))
    assert logged_rows is not None

    def counted(file: DataFile) -> Iterator[int]:
        yield rows_of_file(snapshot.store, file)
        if file.num_records is None:
            record.read(0)

    files = data_files(whole_files.filter(pc.invert(from_log)))
    return logged_rows + sum(
        in_order((partial(counted, file) for file in files), requests_at_once(snapshot.store))
    )


def _require_vectors(snapshot: DeltaSnapshot) -> int:
    """Read every deletion vector and compare it with the log, as a scan does; return how many there are."""
    marked = snapshot.files_with_vectors(None, frozenset(NAMES)).files

    def checked(file: DataFile) -> Iterator[int]:
        yield rows_of_file(snapshot.store, file)

    return sum(
        1
        for _ in in_order(
            (partial(checked, file) for file in data_files(marked)), requests_at_once(snapshot.store)
        )
    )


def _keys(files: pa.Table) -> pa.ChunkedArray:
    """A text per file that is unique to its path and deletion vector."""
    return pc.binary_join_element_wise(files.column("path"), pc.fill_null(files.column("dv"), ""), "\x00")
