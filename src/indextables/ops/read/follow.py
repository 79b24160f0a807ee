"""Follows a table: returns the rows that commits append after a version, as they come.

Only appends are followed. A commit that also removes rows, such as an overwrite or a
delete, is skipped and counted, because its rows are not new; a merge changes no row. A
log that was repaired or created again at the same place starts its versions at 0, so
following the old one raises an error.

A follower moves on as its rows are taken: version by version, and within a version row by
row. After an error the next `poll` goes on with the row after the last one taken, so no row
is lost and none is returned twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, RemoveAction
from indextables.ops.read.arguments import column_names, row_filter
from indextables.ops.read.in_order import in_order
from indextables.ops.read.record import Record
from indextables.ops.read.scan import rows_of
from indextables.ops.read.search import matching_rows
from indextables.ops.table_settings import query_of
from indextables.split.layout import SplitRef
from indextables.split.search.selection import Selection
from indextables.storage.store import scans_at_once


class Follower:
    """Reads what is appended, with a query and a filter; each `poll` goes on where the last ended."""

    def __init__(
        self,
        log: TransactionLog,
        query: str | None = None,
        where: Any = None,
        columns: Sequence[str] | None = None,
        *,
        after: int | None = None,
    ) -> None:
        snapshot = log.snapshot(max_staleness_s=0)
        self._log = log
        self._query = query
        self._where = where
        self._columns = columns
        self.table_id = snapshot.table_id
        self.version = snapshot.version if after is None else after
        """The newest version whose rows were all returned, or that has none to return."""
        self.skipped_commits = 0
        """Commits that changed rows instead of only adding them."""
        self._rows_returned = 0
        """How many rows of the next version were returned before an error, or before the caller stopped."""
        self._begun_at = snapshot
        """What the rows of that version were read by: its filter and its index settings."""
        self._check(snapshot)

    def poll(self) -> Iterator[pa.Table]:
        """The matching rows of the commits since the last call.

        A table counts as returned once the next one is requested. If the caller fails or stops before that,
        the next call returns the table again.
        """
        snapshot = self._log.snapshot(max_staleness_s=0)
        if snapshot.table_id != self.table_id:
            raise TableError(
                f"{self._log.uri} was created again or repaired in the meantime; start following it again",
                uri=self._log.uri,
            )
        for version in range(self.version + 1, snapshot.version + 1):
            changes = [
                action
                for action in self._log.read_version(version)
                if isinstance(action, (AddAction, RemoveAction)) and action.data_change
            ]
            removing = any(isinstance(action, RemoveAction) for action in changes)
            if not removing:
                if not self._rows_returned:
                    self._begun_at = snapshot
                names = self._begun_at.names
                yield from self._remaining_rows(
                    [replace(action, names=names) for action in changes if isinstance(action, AddAction)]
                )
            self.skipped_commits += removing
            self.version, self._rows_returned = version, 0

    def _remaining_rows(self, adds: Sequence[AddAction]) -> Iterator[pa.Table]:
        """The rows of one version after those that were returned before."""
        # Splits do not change and are read in the order of the commit, so a count of rows is a place.
        again = self._rows_returned
        for table in in_order(self._pieces(self._begun_at, adds), scans_at_once(self._begun_at.store)):
            rows = table.slice(again)
            again -= min(again, table.num_rows)
            if rows.num_rows:
                yield rows
                self._rows_returned += rows.num_rows

    def _check(self, snapshot: Snapshot) -> None:
        """Check the query and the filter before waiting for anything."""
        row_filter(snapshot, self._where)
        column_names(snapshot, self._columns)
        if self._query is not None:
            query_of(snapshot, self._query)

    def _pieces(self, snapshot: Snapshot, adds: Sequence[AddAction]) -> Iterator[Any]:
        node = row_filter(snapshot, self._where)
        columns = column_names(snapshot, self._columns)
        record = Record(snapshot)
        query = None if self._query is None else query_of(snapshot, self._query)
        for ref in map(SplitRef.of, adds):
            if query is None:
                yield partial(rows_of, snapshot, ref, node, columns, record)
            else:
                selection = Selection(query, node, columns)
                yield partial(matching_rows, snapshot, ref, selection, record)
