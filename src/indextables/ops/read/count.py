"""Counting rows: from the log where it knows, else by what reads or searches the splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.lazy import later
from indextables.log.snapshot import Snapshot
from indextables.ops.read.record import Record

if TYPE_CHECKING:
    from indextables.index.query.tree import Query
    from indextables.ops import table_settings
    from indextables.ops.read import arguments, scan, search
else:
    arguments = later("indextables.ops.read.arguments")
    scan = later("indextables.ops.read.scan")
    search = later("indextables.ops.read.search")
    table_settings = later("indextables.ops.table_settings")


def count(
    snapshot: Snapshot,
    where: Any = None,
    query: str | Query | None = None,
    operator: str | None = None,
) -> tuple[int, Record]:
    """How many rows there are, match a filter, or are found by a query."""
    record = Record(snapshot)
    if where is None and query is None and snapshot.num_records is not None:
        # Loads nothing that reads splits: most of the time of a short program.
        return snapshot.num_records, record
    node = arguments.row_filter(snapshot, where)
    if query is None:
        return scan.count_rows(snapshot, node, record), record
    return search.count_hits(
        snapshot, node, table_settings.query_of(snapshot, query, operator=operator), record
    ), record
