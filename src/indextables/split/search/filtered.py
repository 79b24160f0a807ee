"""The rows of a split that a filter keeps, by reading as little as possible.

Row groups that their statistics rule out are skipped. In the others, the filter's
columns are read for the candidate rows only, and the remaining columns for the rows that
the filter keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedIndexError
from indextables.index.read.lookup import Index
from indextables.lazy import later, pc
from indextables.model.arrays import as_numpy, integers
from indextables.model.arrow_internals import filter_rows, filter_values
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split, warn_once
from indextables.split.read.hidden_rows import hidden_among, live_mask
from indextables.split.read.rows import WORTH_STATISTICS, RowsByGroup, to_table_schema

if TYPE_CHECKING:
    from indextables.predicate import tree
    from indextables.predicate.evaluate import rows
    from indextables.predicate.tree import Node
    from indextables.split.search import narrowing
else:
    rows = later("indextables.predicate.evaluate.rows")
    tree = later("indextables.predicate.tree")
    narrowing = later("indextables.split.search.narrowing")

FETCHED_AT_ONCE = 32_768
"""Number of rows whose other columns are fetched together."""
_NONE = np.zeros(0, np.int64)


class Filtered:
    """A filter over the live rows of one split; without one, all are kept. `index` may rule rows out.

    Rows that are given where there is no filter are live ones: a search leaves deleted rows out before.
    """

    def __init__(
        self, reading: Reading, ref: SplitRef, where: Node | None, index: Index | None = None
    ) -> None:
        self._reader = open_split(reading.store, ref)
        self._ref = ref
        self._schema = reading.schema
        self._where = where
        self._zone = reading.zone
        self._index = index

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the filter needs."""
        if self._where is None:
            return ()
        return tuple(sorted({column.path[0] for column in tree.columns_of(self._where)}))

    @cached_property
    def _present(self) -> list[str]:
        """The columns the filter needs and the file has."""
        return [name for name in self.columns if name in self._reader.columns]

    def candidates(self, rows: np.ndarray | None = None) -> RowsByGroup:
        """The given rows, or all, minus those that the index or statistics rule out.

        Deleted rows may be among them; they leave when the filter is applied.
        """
        reader = self._reader
        parts: RowsByGroup = dict.fromkeys(reader.groups) if rows is None else reader.by_group(rows)
        if self._where is None:
            return parts
        narrowed = self._by_index()
        if narrowed is not None and rows is not None:
            parts = reader.by_group(np.intersect1d(rows, narrowed, assume_unique=True))
        elif narrowed is not None:
            parts = reader.by_group(narrowed)
            if reader.plan(parts, self._present) != "pages" and not reader.is_sparse(parts, self._present):
                # If all values are decoded anyway, checking them all is faster than picking some.
                parts = dict.fromkeys(parts)
        if len(parts) > 1 and reader.weight(parts, self._present) >= WORTH_STATISTICS:
            left = reader.groups_left(self._where, self._ref.partition_values)
            parts = {group: some for group, some in parts.items() if left[group]}
        return parts

    def _by_index(self) -> np.ndarray | None:
        if self._where is None or self._index is None:
            return None
        try:
            return narrowing.rows_left(self._index, self._where)
        except DamagedIndexError as damage:
            warn_once(f"{self._ref.path}: {damage}")
            return None

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """The rows, of the given ascending ones, that the filter keeps."""
        return rows if self._where is None else self.matching(self.candidates(rows))

    def every(self) -> np.ndarray:
        """All rows that the filter keeps, ascending."""
        return self._reader.live() if self._where is None else self.matching(self.candidates())

    def matching(self, parts: RowsByGroup) -> np.ndarray:
        """The candidates that the filter keeps, ascending."""
        numbers = [some for some, _ in self._decided(parts)]
        return np.concatenate(numbers) if numbers else np.zeros(0, np.int64)

    def count(self) -> int:
        """How many rows the filter keeps, counted in the threads that read them."""
        if self._where is None:
            return self._reader.live_rows

        def count(piece: RowsByGroup, raw: pa.Table) -> int:
            matches = self._kept(self._as_rows(raw, self.columns))
            deleted = self._deleted(piece)
            return int(
                matches.true_count - (matches.take(integers(deleted)).true_count if len(deleted) else 0)
            )

        return sum(self._reader.worked(self.candidates(), self._present, count))

    def tables(
        self, rows: np.ndarray | None, columns: Sequence[str], limit: int | None = None
    ) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """The kept rows, of the given ones or all, with row numbers and columns; at most `limit`."""
        if self._where is None:
            every = self._reader.live() if rows is None else rows
            pieces = self._fetched(every if limit is None else every[:limit], columns)
        else:
            pieces = self._completed(self._decided(self.candidates(rows)), columns, limit)
        left = limit
        for numbers, table in pieces:
            # A table without columns has no length of its own, only that of its slice.
            piece = table if left is None or table.num_rows <= left else table.slice(0, left)
            if piece.num_rows:
                yield numbers[: piece.num_rows], piece
            left = None if left is None else left - piece.num_rows
            if left == 0:
                return

    def _decided(self, parts: RowsByGroup) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """The kept rows with the filter's columns; the filter runs in the threads that read the rows."""

        def decide(piece: RowsByGroup, raw: pa.Table) -> tuple[np.ndarray, pa.Table]:
            table = self._as_rows(raw, self.columns)
            matches = self._matches(piece, table)
            numbers = self._reader.numbers(piece)
            if matches.true_count == len(numbers):
                return numbers, table
            return as_numpy(filter_values(integers(numbers), matches)), filter_rows(table, matches)

        return (piece for piece in self._reader.worked(parts, self._present, decide) if len(piece[0]))

    def _matches(self, piece: RowsByGroup, table: pa.Table) -> pa.BooleanArray:
        """Which of some rows the filter keeps and are not deleted."""
        matches, deleted = self._kept(table), self._deleted(piece)
        return pc.and_(matches, pa.array(live_mask(len(matches), deleted))) if len(deleted) else matches

    def _kept(self, table: pa.Table) -> pa.BooleanArray:
        """Which of some rows the filter keeps, deleted ones included."""
        return rows.mask(self._where, table, self._schema, self._zone)

    def _deleted(self, piece: RowsByGroup) -> np.ndarray:
        """At which places of some rows there are deleted ones."""
        hidden = self._reader.hidden
        return _NONE if hidden is None else hidden_among(self._reader.numbers(piece), hidden)

    def _completed(
        self, decided: Iterator[tuple[np.ndarray, pa.Table]], columns: Sequence[str], limit: int | None
    ) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """The same rows with the columns to return; small batches are first collected into larger ones."""
        missing = [name for name in columns if name not in self.columns]
        enough = FETCHED_AT_ONCE if limit is None else min(limit, FETCHED_AT_ONCE)
        waiting: list[tuple[np.ndarray, pa.Table]] = []
        for numbers, table in decided:
            waiting.append((numbers, table))
            if not missing or sum(len(some) for some, _ in waiting) >= enough:
                yield from self._with_others(waiting, columns, missing)
                waiting = []
        if waiting:
            yield from self._with_others(waiting, columns, missing)

    def _with_others(
        self, waiting: Sequence[tuple[np.ndarray, pa.Table]], columns: Sequence[str], missing: Sequence[str]
    ) -> Iterator[tuple[np.ndarray, pa.Table]]:
        rows = np.concatenate([numbers for numbers, _ in waiting])
        table = pa.concat_tables([some for _, some in waiting])
        if not missing:
            yield rows, table.select(list(columns))
            return
        at = 0
        for numbers, others in self._fetched(rows, missing):
            part = table.slice(at, len(numbers))
            at += len(numbers)
            both = [others.column(name) if name in missing else part.column(name) for name in columns]
            schema = pa.schema([self._schema.field(name) for name in columns])
            yield numbers, pa.Table.from_arrays(both, schema=schema)

    def _fetched(self, rows: np.ndarray, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """Fetch some rows and convert them to rows of the table."""
        present = [name for name in columns if name in self._reader.columns]
        for numbers, raw in self._reader.fetch(rows, present):
            yield numbers, self._as_rows(raw, columns)

    def _as_rows(self, raw: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Stored rows as rows of the table: its types, its partition values, nulls for later columns."""
        held = raw if raw.column_names else pa.table({"": pa.nulls(raw.num_rows)})
        table = to_table_schema(held, self._schema, columns, self._ref.partition_values)
        return table.select(list(columns))
