"""Searches one split: counts first, then fetches only the rows to return, in row order.

The index decides if it was made with the table's settings. If it was not, is damaged or
cannot answer exactly, the rows it proposes, or all rows, are matched by their text.
Either way the result is the same; the metrics say which way was taken. Rows that a
deletion vector hides are found by neither: `_SplitSearch.rows` leaves them out. Nothing
here writes to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from indextables.errors import DamagedIndexError, TableError
from indextables.index.query.evaluate import IndexSearch, lacks_words, scored_terms
from indextables.index.query.tree import Query, restrict_to_columns
from indextables.index.read.lookup import BytesRanges, Index, Term
from indextables.index.read.ranking import Statistics, statistics_of_terms
from indextables.index.settings import IndexSpec
from indextables.lazy import later
from indextables.model.arrays import as_numpy, integers, numbers
from indextables.model.arrow_internals import take_rows
from indextables.reading import Reading
from indextables.split.layout import SplitRef
from indextables.split.open_splits import cached_index, open_index, open_split, warn_once
from indextables.split.read.hidden_rows import hidden_rows, is_hidden, without
from indextables.split.read.rows import SplitReader, to_table_schema
from indextables.split.search.filtered import Filtered
from indextables.split.search.metrics import Note, SearchMetrics
from indextables.split.search.selection import Keys, Selection
from indextables.storage.store import Store

if TYPE_CHECKING:
    from indextables.index.build import builder
    from indextables.index.query import explain
    from indextables.index.query.explain import ScorePart
    from indextables.predicate.evaluate import ordering
    from indextables.predicate.tree import Node as Predicate
    from indextables.split.search import live_statistics, match
else:
    builder = later("indextables.index.build.builder")
    explain = later("indextables.index.query.explain")
    ordering = later("indextables.predicate.evaluate.ordering")
    live_statistics = later("indextables.split.search.live_statistics")
    match = later("indextables.split.search.match")

T = TypeVar("T")

SCORE = "_score"
_VERIFY_AT_ONCE = 32_768
_TRIED_FIRST = 32
"""This many times the limit are tested against a filter before all hits are."""
_FEW_LEFT = 4
"""If statistics leave at most one hit in this many, the filter is applied first and few hits are scored."""


def _ignore(_: SearchMetrics) -> None:
    return None


def count_split(reading: Reading, ref: SplitRef, selection: Selection, note: Note = _ignore) -> int:
    """How many rows of a split match; without a filter, an exact index needs no row to be read."""
    search = _SplitSearch(reading, ref, selection, with_rows=selection.where is not None)
    if search.exact and selection.where is None:
        hits = search.count()
        note(replace(search.metrics, hits=hits))
        return hits
    rows = search.matching()
    note(search.metrics)
    return len(rows)


def hits_split(reading: Reading, ref: SplitRef, selection: Selection, note: Note = _ignore) -> pa.Int64Array:
    """The numbers of the rows of a split that match, ascending."""
    search = _SplitSearch(reading, ref, selection, with_rows=selection.where is not None)
    rows = search.matching()
    note(search.metrics)
    return integers(rows)


def count_in_open_indexes(
    store: Store, refs: Sequence[SplitRef], query: Query, note: Note = _ignore
) -> tuple[int, list[SplitRef]]:
    """Count in the splits whose index is already open and exact; the other splits are returned.

    This makes a repeated count over many small splits fast: nothing is set up per split.
    """
    total = searched = 0
    left: list[SplitRef] = []
    for ref in refs:
        # Where rows are deleted, the index counts too many.
        index = None if ref.vector is not None else cached_index(store, ref)
        search = None if index is None or not _answers(index.spec, query) else IndexSearch(index, query)
        if search is None or not search.exact:
            left.append(ref)
            continue
        try:
            total += search.count()
        except DamagedIndexError:
            left.append(ref)
        else:
            searched += 1
    note(SearchMetrics(splits=searched, by_index=searched, hits=total))
    return total, left


def unless_empty(
    store: Store, refs: Iterable[SplitRef], query: Query, note: Note = _ignore
) -> Iterator[SplitRef]:
    """The splits without those whose index is already open and lacks a word that the query needs.

    This makes a repeated search for rare words over many small splits fast.
    """
    for ref in refs:
        index = cached_index(store, ref)
        if index is not None and _answers(index.spec, query) and _lacks(index, query):
            note(SearchMetrics(splits=1, by_index=1))
        else:
            yield ref


def _lacks(index: Index, query: Query) -> bool:
    try:
        return lacks_words(index, query.node, query.compared)
    except DamagedIndexError:
        return False


def search_split(
    reading: Reading, ref: SplitRef, selection: Selection, note: Note = _ignore
) -> Iterator[pa.Table]:
    """The rows of a split that match, in row order; with `score` the best ones with `_score`, best first."""
    search = _SplitSearch(reading, ref, selection, with_rows=True)
    if selection.score:
        yield search.best()
    else:
        yield from search.tables()
    note(search.metrics)


def rank_split(
    reading: Reading, ref: SplitRef, selection: Selection, note: Note = _ignore
) -> tuple[np.ndarray, np.ndarray]:
    """The best rows of a split: scores and row numbers, best first."""
    search = _SplitSearch(reading, ref, selection, with_rows=True)
    scores, rows = search.best_rows()
    note(replace(search.metrics, hits=len(rows)))
    return scores, rows


def sorted_split(reading: Reading, ref: SplitRef, selection: Selection, note: Note = _ignore) -> pa.Table:
    """The first rows of a split in the order of the keys; other columns are read only for these rows."""
    search = _SplitSearch(reading, ref, selection, with_rows=True)
    search.require_few()
    rows = search.matching()
    note(search.metrics)
    return sorted_of(reading, ref, rows, selection.columns, keys=selection.keys, limit=selection.limit)


def sorted_of(
    reading: Reading,
    ref: SplitRef,
    rows: np.ndarray,
    columns: Sequence[str],
    *,
    keys: Keys,
    limit: int | None,
) -> pa.Table:
    """Of some ascending rows of a split, the first ones in the order of the keys."""
    if not len(rows):
        return reading.columns(columns).empty_table()
    by = fetch_rows(reading, ref, [name for name, _ in keys], rows)
    chosen = as_numpy(ordering.spark_order(by, keys))[:limit]
    ascending = np.sort(chosen)
    table = fetch_rows(reading, ref, columns, rows[ascending])
    return table.take(integers(np.searchsorted(ascending, chosen)))


def statistics_split(
    reading: Reading, ref: SplitRef, selection: Selection, terms: Sequence[Term]
) -> Statistics:
    """What a split contributes to the statistics of words; an exact index answers without reading rows."""
    return _SplitSearch(reading, ref, selection, with_rows=False).statistics_of(terms)


def explain_row(reading: Reading, ref: SplitRef, selection: Selection, row: int) -> list[ScorePart] | None:
    """The parts of a row's score; None when the row does not match the query."""
    return _SplitSearch(reading, ref, selection, with_rows=True).explained(row)


def fetch_rows(reading: Reading, ref: SplitRef, columns: Sequence[str], rows: np.ndarray) -> pa.Table:
    """Some ascending rows of a split, in the columns and types of the table."""
    return pa.concat_tables([table for _, table in Filtered(reading, ref, None).tables(rows, columns)])


class _SplitSearch:
    def __init__(self, reading: Reading, ref: SplitRef, selection: Selection, *, with_rows: bool) -> None:
        self.reading = reading
        self.ref = ref
        self.selection = selection
        self.metrics = SearchMetrics(splits=1)
        self._reader: SplitReader | None = None
        self._search: IndexSearch | None = None
        self._index: Index | None = None
        self._all_rows: np.ndarray | None = None
        """All rows the query finds, once they are known."""
        try:
            self._index = open_index(reading, ref, with_rows=with_rows)
        except DamagedIndexError as damaged:
            self._damaged(damaged)
        self._prepare(self._index, selection.query)

    def _prepare(self, index: Index | None, query: Query) -> None:
        """Prepare the query for this split: its index has the table's settings, has others, or is missing."""
        self.query = self._on_this_split(query, index)
        answered = index is not None and _answers(index.spec, self.query)
        self.answered = answered
        self._search = None
        if index is not None:
            unknown = frozenset() if answered else _other_settings(index.spec, self.query)
            columns = set(self.query.columns)
            if answered or not columns or columns & (set(index.spec.columns) - unknown):
                self._search = IndexSearch(index, self.query, values=self._values, unknown=unknown)
        self.exact = self._search is not None and self._search.exact
        by_index = answered and not (self.query.columns and set(self.query.columns) <= self._compared)
        self.metrics = replace(self.metrics, by_index=int(by_index), scanned=int(not by_index))

    @property
    def _compared(self) -> frozenset[str]:
        return frozenset(self.query.compared.columns)

    def _damaged(self, damage: DamagedIndexError) -> None:
        warn_once(f"{self.ref.path}: {damage}")
        self.metrics = replace(self.metrics, damaged=1)

    @property
    def reader(self) -> SplitReader:
        if self._reader is None:
            self._reader = open_split(self.reading.store, self.ref)
        return self._reader

    def _on_this_split(self, query: Query, index: Index | None) -> Query:
        """The query without columns added after the split was written: nothing in them matches."""
        if index is not None and set(query.columns) <= set(index.spec.columns):
            return query
        present = frozenset(self.reader.columns)
        return replace(query, node=restrict_to_columns(query.node, present))

    def _values(self, column: str) -> pa.Array:
        """A whole column, for ranges over typed values."""
        parts = [
            to_table_schema(part, self.reading.schema, [column], {})[column]
            for _, _, part in self.reader.scan_stored([column])
        ]
        return pa.concat_arrays([chunk for part in parts for chunk in part.chunks])

    def count(self) -> int:
        """How many rows the query finds; only called when the index is exact."""
        if self._search is None or self.ref.vector is not None:
            return len(self.rows())
        return self._by_index(self._search.count, self._length)

    def _length(self) -> int:
        return len(self.rows())

    def rows(self, limit: int | None = None) -> np.ndarray:
        """The rows the query finds, ascending; at most `limit`."""
        if self._all_rows is not None:
            return self._all_rows[:limit]
        if self._search is not None:
            rows = self._by_index(partial(self._indexed, self._search, limit), partial(self._scanned, limit))
        else:
            rows = self._scanned(limit)
        if limit is None:
            self._all_rows = rows
        return rows

    def _indexed(self, search: IndexSearch, limit: int | None) -> np.ndarray:
        hidden = self._hidden(search.index.rows)
        if self.exact:
            # No more than the hidden ones are missing from as many rows.
            enough = limit if limit is None or hidden is None else limit + len(hidden)
            return without(search.rows(enough), hidden)[:limit]
        certain = without(search.certain(), hidden)
        doubtful = without(np.setdiff1d(search.candidates(), certain, assume_unique=True), hidden)
        matching = [certain]
        for at in range(0, len(doubtful), _VERIFY_AT_ONCE):
            some = doubtful[at : at + _VERIFY_AT_ONCE]
            for rows, table in self.reader.fetch(some, self.query.columns):
                # The index has been asked about them already.
                matching.append(self._matching(rows, table, match.match_rows))
        return np.sort(np.concatenate(matching))[:limit]

    def _scanned(self, limit: int | None) -> np.ndarray:
        matching = [np.zeros(0, np.int64)]
        for rows, table in self.reader.scan(self.query.columns):
            matching.append(self._matching(rows, table, match.match_batch))
        return np.concatenate(matching)[:limit]

    def _hidden(self, rows: int) -> np.ndarray | None:
        """The deleted rows of the split, which has `rows` rows."""
        return hidden_rows(self.reading.store, self.ref, rows)

    def _by_index(self, ask: Callable[[], T], scan: Callable[[], T]) -> T:
        """Ask the index; if part of it turns out to be damaged, scan the rows instead."""
        try:
            return ask()
        except DamagedIndexError as damage:
            self._damaged(damage)
            self._index = None
            self._prepare(None, self.query)
            return scan()

    def _matching(
        self, rows: np.ndarray, table: pa.Table, match: Callable[[Query, pa.Table], pa.BooleanArray]
    ) -> np.ndarray:
        self.metrics = replace(self.metrics, verified_rows=self.metrics.verified_rows + len(rows))
        if not table.column_names:
            table = pa.table({"": pa.nulls(len(rows))})
        else:
            table = to_table_schema(table, self.reading.schema, table.column_names, {})
        return as_numpy(integers(rows).filter(match(self.query, table)))

    def tables(self) -> Iterator[pa.Table]:
        """The rows that match the query and the filter, with the columns of the selection."""
        where, limit = self.selection.where, self.selection.limit
        self.require_few()
        rows = self._note_plan(self.rows(limit if where is None else None))
        if not len(rows):
            return
        for _, table in self._filtered(where).tables(rows, self.selection.columns, limit):
            yield table

    def matching(self) -> np.ndarray:
        """The rows that match the query and the filter."""
        rows = self.rows()
        if self.selection.where is None or not len(rows):
            self.metrics = replace(self.metrics, hits=len(rows))
            return rows
        return self._filtered(self.selection.where).rows(self._note_plan(rows))

    def _filtered(self, where: Predicate | None) -> Filtered:
        return Filtered(self.reading, self.ref, where, self._index)

    def _note_plan(self, rows: np.ndarray) -> np.ndarray:
        """The rows to fetch; records in the metrics how they are fetched."""
        plan = {f"by_{self._way_to(rows)}": 1} if len(rows) else {}
        self.metrics = replace(self.metrics, hits=len(rows), **plan)
        return rows

    def _way_to(self, rows: np.ndarray) -> str:
        """How rows are fetched, by the columns that are read first."""
        where = self.selection.where
        names = self.selection.columns if where is None else self._filtered(where).columns
        present = [name for name in names if name in self.reader.columns]
        return self.reader.plan(self.reader.by_group(rows), present)

    def require_few(self) -> None:
        """Refuse to return the rows of a query without a limit that finds more than `search.maxHits`."""
        most = self.reading.search.max_hits
        if most is None or self.selection.limit is not None or self.selection.summed:
            return
        # An exact index counts without memory for the rows.
        hits = self.count() if self.exact else len(self.rows())
        if hits > most:
            raise TableError(
                f"the query {self.query.text!r} finds {hits} rows in {self.ref.path}, more than "
                f"search.maxHits = {most}; narrow it, give a limit, or raise the option",
                path=self.ref.path,
                hits=hits,
            )

    def best(self) -> pa.Table:
        """The best rows by BM25, with their scores, best first."""
        columns = self.selection.columns
        scores, rows = self.best_rows()
        order = np.argsort(rows)
        parts = [table for _, table in self._filtered(None).tables(self._note_plan(rows[order]), columns)]
        fetched = pa.concat_tables(parts) if parts else self.reading.columns(columns).empty_table()
        # They were fetched in row order; put them back in the order of their scores.
        best = np.empty(len(order), np.int64)
        best[order] = np.arange(len(order))
        return take_rows(fetched, integers(best)).append_column(SCORE, numbers(scores, pa.float32()))

    def best_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and row numbers of the best rows that the filter keeps, best first."""
        where, limit = self.selection.where, self.selection.limit
        self.require_few()
        if where is None:
            return self._best_hits(limit)
        hits = self.rows()
        if not len(hits):
            return np.zeros(0, np.float32), hits
        filtered = self._filtered(where)
        candidates = filtered.candidates(hits)
        if limit is not None and self.reader.count_of(candidates) * _FEW_LEFT > len(hits):
            # If the filter keeps enough of the best hits, those are also the best of all hits it keeps.
            scores, rows = self._best_hits(limit * _TRIED_FIRST)
            left = np.isin(rows, filtered.rows(np.sort(rows)))
            if left.sum() >= limit or len(rows) < limit * _TRIED_FIRST:
                return scores[left][:limit], rows[left][:limit]
        return self._scored_rows(filtered.matching(candidates), limit)

    def _best_hits(self, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        if self.exact and self._search is not None:
            best = partial(self._best_indexed, self._search, limit)
            return self._by_index(best, partial(self._rescored, limit))
        return self._rescored(limit)

    def _best_indexed(self, search: IndexSearch, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        hidden = self._hidden(search.index.rows)
        if limit is None or hidden is None:
            scores, rows = search.best(search.index.rows if limit is None else limit, self._statistics)
            live = slice(None) if hidden is None else ~is_hidden(rows, hidden)
            return scores[live], rows[live]
        # If enough of the best hits are live, those are also the best of all that are live.
        tried = min(limit + len(hidden), limit * _TRIED_FIRST)
        scores, rows = search.best(tried, self._statistics)
        live = ~is_hidden(rows, hidden)
        if live.sum() >= limit or len(rows) < tried:
            return scores[live][:limit], rows[live][:limit]
        return self._rescored(limit)

    @cached_property
    def _statistics(self) -> Statistics | None:
        """What rows are ranked by: the statistics of the selection, else those of the live rows here.

        None stands for those of the whole index.
        """
        if self.selection.statistics is not None or self.ref.vector is None:
            return self.selection.statistics
        return self.statistics_of(scored_terms(self.query, self.query.spec))

    def _rescored(self, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The best rows where rows were matched by their text."""
        return self._scored_rows(self.rows(), limit)

    def _scored_rows(self, rows: np.ndarray, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The best of some rows that match; without a usable index, their scores come from one built now."""
        if self.answered and self._search is not None and len(rows):
            search = self._search
            scores = self._by_index(
                lambda: search.scores(rows, self._statistics), lambda: self._fresh_scores(rows)
            )
        else:
            scores = self._fresh_scores(rows)
        order = np.argsort(-scores, kind="stable")[:limit]
        return scores[order], rows[order]

    def _fresh_scores(self, rows: np.ndarray) -> np.ndarray:
        index = self._fresh_index() if len(rows) else None
        if index is None:
            return np.full(len(rows), not self.query.compared.fields, np.float32)
        return IndexSearch(index, self.query, values=self._values).scores(rows, self._statistics)

    def statistics_of(self, terms: Sequence[Term]) -> Statistics:
        """What the rows of this split contribute to the statistics of words."""
        if self.answered and self._search is not None:
            index = self._search.index
            return self._by_index(
                lambda: self._statistics_by(index, terms), lambda: self._fresh_statistics(terms)
            )
        return self._fresh_statistics(terms)

    def _fresh_statistics(self, terms: Sequence[Term]) -> Statistics:
        index = self._fresh_index()
        return Statistics(self.reader.live_rows) if index is None else self._statistics_by(index, terms)

    def _statistics_by(self, index: Index, terms: Sequence[Term]) -> Statistics:
        hidden = self._hidden(index.rows)
        if hidden is None:
            return statistics_of_terms(index, terms)
        return live_statistics.live_statistics(index, terms, hidden, self._column_of)

    def _column_of(self, column: str, rows: np.ndarray) -> pa.Array:
        """A column of some ascending rows."""
        stored = self.reader.read_rows(rows, [column])
        values = to_table_schema(stored, self.reading.schema, [column], {}).column(column)
        return pa.concat_arrays(values.chunks)

    def explained(self, row: int) -> list[ScorePart] | None:
        """The parts of a row's score."""
        if row not in self.rows():
            return None
        search = self._search if self.answered else None
        index = self._fresh_index() if search is None else search.index
        if index is None:
            return []
        search = IndexSearch(index, self.query, values=self._values)
        return explain.explain_score(search, row, self._statistics)

    def _fresh_index(self) -> Index | None:
        """An index of the query's columns, built now; None when the split has none of them.

        As in the stored index, the number of a row is its place in the file: deleted rows are part of it.
        """
        named = set(self.query.columns) - self._compared
        spec = IndexSpec(tuple(item for item in self.query.spec.searchable().fields if item.column in named))
        if not spec.fields:
            return None
        rebuilt = builder.IndexBuilder(spec, self.reading.schema)
        for _, _, table in self.reader.scan_stored(spec.columns):
            rebuilt.add(to_table_schema(table, self.reading.schema, spec.columns, {}))
        built = rebuilt.finish()
        return Index.open(BytesRanges(built.to_bytes()), built.length, built.root_length)


def _answers(spec: IndexSpec, query: Query) -> bool:
    """Whether every column of the query is indexed here the way the table says."""
    searched = set(query.columns) - set(query.compared.columns)
    return not _other_settings(spec, query) and searched <= set(spec.columns)


def _other_settings(spec: IndexSpec, query: Query) -> frozenset[str]:
    others = set()
    for column in query.columns:
        here, required = spec.get(column), query.spec.get(column)
        if (
            here is not None
            and required is not None
            and (here.kind, here.tokenizer) != (required.kind, required.tokenizer)
        ):
            others.add(column)
    return frozenset(others)
