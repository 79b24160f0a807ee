"""Counting rows: from the log where it knows, else by what reads or searches the splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.log.snapshot import Snapshot
from indextables.ops.read.record import Record

if TYPE_CHECKING:
    from indextables.index.query.tree import Query


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
    from indextables.ops.read.arguments import row_filter
    from indextables.ops.read.scan import count_rows
    from indextables.ops.read.search import count_hits
    from indextables.ops.table_settings import query_of

    node = row_filter(snapshot, where)
    if query is None:
        return count_rows(snapshot, node, record), record
    return count_hits(snapshot, node, query_of(snapshot, query, operator=operator), record), record
