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
import pyarrow.compute as pc

from indextables.errors import OptionError
from indextables.index.query.tree import Query
from indextables.index.settings import STRING
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.ops.counting.batches import partial_of
from indextables.ops.counting.buckets import bucket_of
from indextables.ops.counting.known import LogCounts
from indextables.ops.counting.partial import (
    Layout,
    Merging,
    State,
    distinct_questions,
    finished,
)
from indextables.ops.counting.question import Aggregate, Question, Wanted, column_of, key_of, question_of
from indextables.ops.read.hints import spelling_notes
from indextables.ops.read.in_order import in_order
from indextables.ops.read.matching import FILE_COLUMNS, may_survive
from indextables.ops.read.record import Record
from indextables.ops.read.scan import row_filter, rows_found, rows_of
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import query_of, require_parquet, settings_of
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import Node
from indextables.runtime import default_parallelism
from indextables.split.layout import SplitRef
from indextables.split.search.metrics import SearchMetrics
from indextables.split.search.run import count_split
from indextables.split.search.selection import Selection
from indextables.split.search.value_counts import value_counts

ROWS = (State("rows"),)
Parts = list[pa.Table]
"""The partial tables of some rows, one per part of a question."""


def aggregate(
    snapshot: Snapshot,
    group_by: str | Sequence[str] | None,
    aggregates: Wanted,
    *,
    query: str | None = None,
    where: Any = None,
) -> tuple[pa.Table, Record]:
    """One row per group, in the order of the keys; without keys one row in all."""
    return answer(snapshot, question_of(snapshot.schema, group_by, aggregates), query, where)


def facets(
    snapshot: Snapshot, column: str, *, query: str | None = None, where: Any = None, top: int | None = 10
) -> tuple[pa.Table, Record]:
    """The most frequent values of a column with their numbers of rows; equal ones in the order of values."""
    if top is not None and top < 1:
        raise OptionError(f"top is {top}; give a number of values, or None for all of them")
    question = Question((key_of(snapshot.schema, column, shown="value"),), (Aggregate("count", "count"),))
    found, record = answer(snapshot, question, query, where)
    # The values are in order and the sort is stable.
    best = np.argsort(-found.column("count").to_numpy(), kind="stable")[:top]
    return found.take(pa.array(best)), record


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
    return answer(snapshot, Question((key,), (Aggregate("count", "count"),)), query, where)


def answer(
    snapshot: Snapshot, question: Question, query: str | Query | None, where: Any
) -> tuple[pa.Table, Record]:
    """Answer a question whose keys and aggregates are resolved already."""
    require_parquet(snapshot)
    node = row_filter(snapshot, where)
    parsed = None if query is None else query_of(snapshot, query)
    record = Record(snapshot)
    record.noted(() if parsed is None else parsed.notes)
    distinct = distinct_questions(question)
    parts = [(one, Layout.of(one)) for one in (question, *(other for _, other in distinct))]
    counter = _Counter(snapshot, node, parsed, record, parts)
    totals = _together(counter.partials(), parts)
    if parsed is not None and not totals[0].num_rows:
        record.noted(spelling_notes(snapshot, parsed, map(SplitRef.of, counter.searched)))
    found = {at: total for (at, _), total in zip(distinct, totals[1:], strict=True)}
    return finished(totals[0], *parts[0], found), record


def _together(some: Iterable[Parts], parts: Sequence[tuple[Question, Layout]]) -> Parts:
    """Merge the partial tables of all files, one result per part of the question."""
    merging = [Merging(layout) for _, layout in parts]
    for tables in some:
        for one, table in zip(merging, tables, strict=True):
            one.add(table)
    return [one.total() for one in merging]


class _Counter:
    """One question on one version."""

    def __init__(
        self,
        snapshot: Snapshot,
        node: Node | None,
        query: Query | None,
        record: Record,
        parts: Sequence[tuple[Question, Layout]],
    ) -> None:
        self.snapshot = snapshot
        self.node = node
        self.query = query
        self.record = record
        self.parts = parts
        self.searched: Sequence[AddAction] = ()
        self.columns = tuple(dict.fromkeys(name for question, _ in parts for name in question.columns))

    def partials(self) -> Iterator[Parts]:
        """The partial tables of all files."""
        snapshot, node = self.snapshot, self.node
        plan = snapshot.plan(node, columns=FILE_COLUMNS)
        self.record.planned(plan.metrics, plan.replay)
        files = plan.files
        every: Any = pa.repeat(pa.scalar(True), files.num_rows)
        if node is not None:
            doubt = prune_table(may_survive(node), files, snapshot.schema, snapshot.partition_columns)
            every = pc.invert(doubt.mask)
        counts = LogCounts(files, snapshot.partition_columns)
        if self.query is None:
            known, tables = self._by_log(counts, every)
            if tables:
                yield tables
            files, every = files.filter(pc.invert(known)), every.filter(pc.invert(known))
            yield from in_order(self._reading(files, every), default_parallelism())
        else:
            yield from in_order(self._searching(files, counts, every), default_parallelism())

    def _by_log(self, counts: LogCounts, every: Any) -> tuple[Any, Parts]:
        """The files that the log alone answers for every part of the question, and their partial tables."""
        known = every
        for question, layout in self.parts:
            known = pc.and_(known, counts.partial(question, layout, every)[1])
        if not known.true_count:
            return known, []
        self.record.counted(from_log=known.true_count)
        return known, [counts.partial(question, layout, known)[0] for question, layout in self.parts]

    def _reading(self, files: pa.Table, every: Any) -> list[Callable[[], Iterator[Parts]]]:
        asked = self._dictionary_column()
        adds = self.snapshot.adds(files.column("path").to_pylist()) if files.num_rows else []
        by_index = [add for add, whole in zip(adds, every.to_pylist(), strict=True) if whole and asked]
        others = [add for add, whole in zip(adds, every.to_pylist(), strict=True) if not (whole and asked)]
        return [partial(self._read, add, asked) for add in by_index] + self._by_rows(others)

    def _by_rows(self, adds: list[AddAction]) -> list[Callable[[], Iterator[Parts]]]:
        """Aggregate rows of files: those that DuckDB can be asked about at once, the others one by one."""
        if len(self.parts) == 1 and adds:
            from indextables.ops.counting.by_duckdb import partial_by_duckdb

            found, left = partial_by_duckdb(self.snapshot, adds, self.node, *self.parts[0])
            if found is not None:
                rows = pc.sum(found.column("s0"), min_count=0).as_py()
                self.record.read(rows, files=len(adds) - len(left))
                return [partial(iter, [[found]]), *(partial(self._read, add, None) for add in left)]
        return [partial(self._read, add, None) for add in adds]

    def _dictionary_column(self) -> str | None:
        """The column whose index dictionary gives the result: a whole-value field that is the only key."""
        question, layout = self.parts[0]
        if len(self.parts) > 1 or len(question.keys) != 1 or layout.states != ROWS:
            return None
        key = question.keys[0]
        item = settings_of(self.snapshot).get(key.column.name)
        plain = key.bucket is None and len(key.column.path) == 1 and pa.types.is_string(key.type)
        return key.column.name if plain and item is not None and item.kind == STRING else None

    def _read(self, add: AddAction, asked: str | None) -> Iterator[Parts]:
        if asked is not None:
            note = self.record.searched
            known = value_counts(self.snapshot.reading, SplitRef.of(add), asked, note)
            if known is not None:
                self.record.counted(from_index=1)
                yield [pa.Table.from_arrays(list(known), schema=self.parts[0][1].schema)]
                return
        rows = rows_of(self.snapshot, add, self.node, self.columns, self.record, coded=True)
        yield from self._aggregated(rows)

    def _aggregated(self, rows: Iterator[pa.Table]) -> Iterator[Parts]:
        """The partial tables of the rows of one file."""
        each = ([partial_of(table, *part) for part in self.parts] for table in rows)
        yield _together(each, self.parts)

    def _searching(
        self, files: pa.Table, counts: LogCounts, every: Any
    ) -> list[Callable[[], Iterator[Parts]]]:
        assert self.query is not None
        adds = self.snapshot.adds(files.column("path").to_pylist()) if files.num_rows else []
        self.searched = adds
        left = {add.path for add in splits_to_search(self.snapshot, self.query, adds)}
        self.record.searched(SearchMetrics(ruled_out=len(adds) - len(left)))
        question, layout = self.parts[0]
        keys, known = counts.constant_keys(question)
        only_rows = len(self.parts) == 1 and layout.states == ROWS
        one_group = pc.and_(known, every).to_pylist() if only_rows else [False] * len(adds)
        return [
            partial(self._hits, add, keys, at) if one_group[at] else partial(self._found, add)
            for at, add in enumerate(adds)
            if add.path in left
        ]

    def _hits(self, add: AddAction, keys: Sequence[Any], at: int) -> Iterator[Parts]:
        """The number of hits in a file that is one group."""
        assert self.query is not None
        selection = Selection(self.query)
        found = count_split(self.snapshot.reading, SplitRef.of(add), selection, self.record.searched)
        self.record.counted(from_index=1)
        if found:
            row = [*(key.slice(at, 1) for key in keys), pa.array([found], pa.int64())]
            yield [pa.Table.from_arrays(row, schema=self.parts[0][1].schema)]

    def _found(self, add: AddAction) -> Iterator[Parts]:
        assert self.query is not None
        selection = Selection(self.query, self.node, self.columns, summed=True)
        rows = rows_found(self.snapshot, SplitRef.of(add), selection, self.record)
        yield from self._aggregated(rows)
