"""Aggregates, facets and histograms of a version, from the log and the index if possible, else from rows.

Each file is answered by the cheapest source that can. The log answers for a file by its
partition values and statistics; the index counts the values of a whole-value column by
its dictionary, and the hits of a query in a file that is one group. From the other files
the needed columns are read and aggregated batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.errors import OptionError
from indextables.index.query.tree import Query
from indextables.index.settings import STRING
from indextables.lazy import pc
from indextables.log.snapshot import FilePlan, Snapshot
from indextables.ops.counting.aggregation import (
    Aggregate,
    AggregateTexts,
    Aggregation,
    aggregation_of,
    column_of,
    key_of,
)
from indextables.ops.counting.batches import partial_of
from indextables.ops.counting.buckets import bucket_of
from indextables.ops.counting.duck_groups import partial_by_duckdb
from indextables.ops.counting.from_log import LogCounts
from indextables.ops.counting.partial import (
    Layout,
    Merging,
    PartialState,
    distinct_aggregations,
    finished,
)
from indextables.ops.read.arguments import row_filter
from indextables.ops.read.in_order import in_order
from indextables.ops.read.matching import FILE_COLUMNS, may_survive
from indextables.ops.read.record import Record
from indextables.ops.read.scan import rows_of
from indextables.ops.read.search import matching_rows, notes_when_empty
from indextables.ops.read.splits import splits_at, with_words
from indextables.ops.table_settings import query_of, require_parquet, settings_of
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.search.run import count_split, search_split
from indextables.split.search.selection import Selection
from indextables.split.search.value_counts import value_counts
from indextables.storage.store import scans_at_once

ROWS = (PartialState("rows"),)
_WITHOUT_BOUNDS = FILE_COLUMNS - {"min", "max", "null_count"}
PartialTables = list[pa.Table]
"""The partial tables of some rows, one per part of an aggregation."""


def aggregate(
    snapshot: Snapshot,
    group_by: str | Sequence[str] | None,
    aggregates: AggregateTexts,
    *,
    query: str | None = None,
    where: Any = None,
) -> tuple[pa.Table, Record]:
    """One row per group, in the order of the keys; without keys one row in all."""
    return answer(snapshot, aggregation_of(snapshot.schema, group_by, aggregates), query, where)


def facets(
    snapshot: Snapshot, column: str, *, query: str | None = None, where: Any = None, top: int | None = 10
) -> tuple[pa.Table, Record]:
    """The most frequent values of a column with their numbers of rows; equal ones in the order of values."""
    if top is not None and top < 1:
        raise OptionError(f"top is {top}; give a number of values, or None for all of them")
    aggregation = Aggregation(
        (key_of(snapshot.schema, column, shown="value"),), (Aggregate("count", "count"),)
    )
    counts, record = answer(snapshot, aggregation, query, where)
    # The values are in order and the sort is stable.
    best = np.argsort(-counts.column("count").to_numpy(), kind="stable")[:top]
    return counts.take(pa.array(best)), record


def histogram(
    snapshot: Snapshot,
    column: str,
    interval: Any,
    *,
    query: str | None = None,
    where: Any = None,
    offset: Any = None,
    time_zone: str | None = None,
) -> tuple[pa.Table, Record]:
    """How many rows lie in each bucket of a column of numbers, dates or timestamps."""
    zone = time_zone or snapshot.time_zone
    bucket = bucket_of(column_of(snapshot.schema, column).type, interval, offset=offset, zone=zone)
    key = key_of(snapshot.schema, column, bucket, shown="bucket")
    return answer(snapshot, Aggregation((key,), (Aggregate("count", "count"),)), query, where)


def answer(
    snapshot: Snapshot, aggregation: Aggregation, query: str | Query | None, where: Any
) -> tuple[pa.Table, Record]:
    """Answer an aggregation whose keys and aggregates are resolved already."""
    require_parquet(snapshot)
    node = row_filter(snapshot, where)
    parsed = None if query is None else query_of(snapshot, query)
    record = Record(snapshot)
    record.noted(() if parsed is None else parsed.notes)
    distinct = distinct_aggregations(aggregation)
    parts = [(one, Layout.of(one)) for one in (aggregation, *(other for _, other in distinct))]
    counter = _Counter(snapshot, node, parsed, record, parts)
    totals = _merged(counter.partials(), parts)
    if parsed is not None and not totals[0].num_rows:
        record.noted(notes_when_empty(snapshot, parsed, node, counter.searched))
    distinct_totals = {at: total for (at, _), total in zip(distinct, totals[1:], strict=True)}
    return finished(totals[0], *parts[0], distinct_totals), record


def from_log_alone(snapshot: Snapshot, aggregation: Aggregation, node: Node | None) -> pa.Table | None:
    """Answer an aggregation without distinct counts if no file has to be opened for it; else None."""
    part = (aggregation, Layout.of(aggregation))
    if node is None and not aggregation.keys and part[1].states == ROWS and snapshot.num_records is not None:
        total = pa.Table.from_arrays([pa.array([snapshot.num_records], pa.int64())], schema=part[1].schema)
        return finished(total, *part, {})
    partials = _Counter(snapshot, node, None, Record(snapshot), [part]).by_log_alone()
    return None if partials is None else finished(_merged([partials], [part])[0], *part, {})


def partial_of_hits(
    reading: Reading, ref: SplitRef, selection: Selection, aggregation: Aggregation, layout: Layout
) -> pa.Table:
    """What the hits in one split contribute to an aggregation; on executors, where there is no log."""
    merging = Merging(layout)
    for rows in search_split(reading, ref, selection):
        merging.add(partial_of(rows, aggregation, layout))
    return merging.total()


def _merged(partials: Iterable[PartialTables], parts: Sequence[tuple[Aggregation, Layout]]) -> PartialTables:
    """Merge partial tables, one result per part of the aggregation."""
    merging = [Merging(layout) for _, layout in parts]
    for tables in partials:
        for one, table in zip(merging, tables, strict=True):
            one.add(table)
    return [one.total() for one in merging]


class _Counter:
    """One aggregation of one version."""

    def __init__(
        self,
        snapshot: Snapshot,
        node: Node | None,
        query: Query | None,
        record: Record,
        parts: Sequence[tuple[Aggregation, Layout]],
    ) -> None:
        self.snapshot = snapshot
        self.node = node
        self.query = query
        self.record = record
        self.parts = parts
        self.searched: Sequence[SplitRef] = ()
        """The splits in which the query was to be searched, before word filters."""
        self.columns = tuple(dict.fromkeys(name for aggregation, _ in parts for name in aggregation.columns))

    def _planned(self) -> tuple[FilePlan, Any]:
        """The files that may hold rows for the filter, and for each whether all its rows match."""
        snapshot, node = self.snapshot, self.node
        needs_bounds = node is not None or not set(self.columns) <= set(snapshot.partition_columns)
        plan = snapshot.plan(node, columns=FILE_COLUMNS if needs_bounds else _WITHOUT_BOUNDS, noted=False)
        if node is None:
            return plan, pa.repeat(pa.scalar(True), plan.files.num_rows)
        doubt = prune_table(may_survive(node), plan.files, snapshot.schema, snapshot.partition_columns)
        return plan, pc.invert(doubt.mask)

    def _note(self, plan: FilePlan) -> None:
        self.snapshot.note_filter(self.node, plan.metrics)
        self.record.planned(plan.metrics, plan.replay, self.node)

    def by_log_alone(self) -> PartialTables | None:
        """The partial tables of all files; None if one of them has to be opened, by another scan."""
        plan, all_match = self._planned()
        if all_match.false_count:
            return None
        counts = LogCounts(plan.files, self.snapshot.partition_columns)
        answered, tables = self._by_log(counts, all_match)
        if answered.false_count:
            return None
        self._note(plan)
        return tables or [layout.schema.empty_table() for _, layout in self.parts]

    def partials(self) -> Iterator[PartialTables]:
        """The partial tables of all files."""
        snapshot = self.snapshot
        plan, all_match = self._planned()
        self._note(plan)
        files = plan.files
        counts = LogCounts(files, snapshot.partition_columns)
        if self.query is None:
            from_log, tables = self._by_log(counts, all_match)
            if tables:
                yield tables
            left = pc.invert(from_log)
            pieces = self._reading(files.filter(left), all_match.filter(left))
        else:
            pieces = self._searching(files, counts, all_match)
        yield from in_order(pieces, scans_at_once(snapshot.store))

    def _by_log(self, counts: LogCounts, all_match: Any) -> tuple[Any, PartialTables]:
        """The files that the log alone answers for every part, and their partial tables."""
        answered = all_match
        for aggregation, layout in self.parts:
            answered = pc.and_(answered, counts.partial(aggregation, layout, all_match)[1])
        if not answered.true_count:
            return answered, []
        self.record.counted(from_log=answered.true_count)
        return answered, [
            counts.partial(aggregation, layout, answered)[0] for aggregation, layout in self.parts
        ]

    def _reading(self, files: pa.Table, all_match: Any) -> list[Callable[[], Iterator[PartialTables]]]:
        refs = splits_at(self.snapshot, files.column("path").to_pylist())
        column = self._dictionary_column()
        if column is None:
            return self._by_rows(refs)
        by_dictionary = [ref for ref, whole in zip(refs, all_match.to_pylist(), strict=True) if whole]
        others = [ref for ref, whole in zip(refs, all_match.to_pylist(), strict=True) if not whole]
        return [partial(self._by_dictionary, ref, column) for ref in by_dictionary] + self._by_rows(others)

    def _by_rows(self, refs: Sequence[SplitRef]) -> list[Callable[[], Iterator[PartialTables]]]:
        """Aggregate rows of splits: by DuckDB those that it can read, the others one by one."""
        if len(self.parts) > 1 or not refs:
            return [partial(self._by_reading, ref) for ref in refs]
        groups, left = partial_by_duckdb(self.snapshot, refs, self.node, *self.parts[0])
        others: list[Callable[[], Iterator[PartialTables]]] = [partial(self._by_reading, ref) for ref in left]
        if groups is None:
            return others
        rows = pc.sum(groups.column("s0"), min_count=0).as_py()
        self.record.read(rows, files=len(refs) - len(left))
        return [partial(iter, [[groups]]), *others]

    def _dictionary_column(self) -> str | None:
        """The column whose index dictionary gives the result: a whole-value field that is the only key."""
        aggregation, layout = self.parts[0]
        if len(self.parts) > 1 or len(aggregation.keys) != 1 or layout.states != ROWS:
            return None
        key = aggregation.keys[0]
        item = settings_of(self.snapshot).get(key.column.name, STRING)
        plain = key.bucket is None and len(key.column.path) == 1 and pa.types.is_string(key.type)
        return key.column.name if plain and item is not None else None

    def _by_dictionary(self, ref: SplitRef, column: str) -> Iterator[PartialTables]:
        """The rows of every value, from the dictionary of the index; from the rows where it cannot tell."""
        counts = value_counts(self.snapshot.reading, ref, column, self.record.searched)
        if counts is None:
            yield from self._by_reading(ref)
            return
        self.record.counted(from_index=1)
        yield [pa.Table.from_arrays(list(counts), schema=self.parts[0][1].schema)]

    def _by_reading(self, ref: SplitRef) -> Iterator[PartialTables]:
        yield from self._aggregated(
            rows_of(self.snapshot, ref, self.node, self.columns, self.record, coded=True)
        )

    def _aggregated(self, rows: Iterator[pa.Table]) -> Iterator[PartialTables]:
        """The partial tables of the rows of one split."""
        each = ([partial_of(table, *part) for part in self.parts] for table in rows)
        yield _merged(each, self.parts)

    def _searching(
        self, files: pa.Table, counts: LogCounts, all_match: Any
    ) -> list[Callable[[], Iterator[PartialTables]]]:
        assert self.query is not None
        refs = splits_at(self.snapshot, files.column("path").to_pylist())
        self.searched = refs
        left = {ref.path for ref in with_words(self.snapshot, self.query, refs, self.record)}
        aggregation, layout = self.parts[0]
        keys, is_constant = counts.constant_keys(aggregation)
        only_rows = len(self.parts) == 1 and layout.states == ROWS
        one_group = pc.and_(is_constant, all_match).to_pylist() if only_rows else [False] * len(refs)
        return [
            partial(self._count_hits, ref, keys, at) if one_group[at] else partial(self._aggregate_hits, ref)
            for at, ref in enumerate(refs)
            if ref.path in left
        ]

    def _count_hits(self, ref: SplitRef, keys: Sequence[Any], at: int) -> Iterator[PartialTables]:
        """The number of hits in a split that is one group: that of the keys at index `at`."""
        assert self.query is not None
        hits = count_split(self.snapshot.reading, ref, Selection(self.query), self.record.searched)
        self.record.counted(from_index=1)
        if hits:
            row = [*(key.slice(at, 1) for key in keys), pa.array([hits], pa.int64())]
            yield [pa.Table.from_arrays(row, schema=self.parts[0][1].schema)]

    def _aggregate_hits(self, ref: SplitRef) -> Iterator[PartialTables]:
        assert self.query is not None
        selection = Selection(self.query, self.node, self.columns, summed=True)
        yield from self._aggregated(matching_rows(self.snapshot, ref, selection, self.record))
