"""Ranks the rows of a whole table with the same scores, however many splits it has.

BM25 needs three numbers over all rows: how many there are, their average length, and for
each word of the query the number of rows that have it. All live splits are asked for
these, including those that a filter excludes, so that a filter never changes a score; the
answers are cached with the version. Then every split returns its best rows, and only the
best of all are fetched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from indextables.errors import TableError
from indextables.index.query.evaluate import scored_terms
from indextables.index.query.tree import Query
from indextables.index.read.lookup import Term
from indextables.index.read.ranking import Statistics
from indextables.log.snapshot import Snapshot
from indextables.model.arrays import integers, numbers
from indextables.model.arrow_internals import take_rows
from indextables.ops.read.in_order import in_order, splits_at_once, work_units
from indextables.ops.read.splits import live_splits, splits_at
from indextables.ops.table_settings import query_of
from indextables.records import dataclass
from indextables.split.layout import SplitRef
from indextables.split.search.metrics import Note
from indextables.split.search.run import (
    SCORE,
    explain_row,
    fetch_rows,
    rank_split,
    statistics_split,
    unless_empty,
)
from indextables.split.search.selection import Selection

ROWS_AT_ONCE = 65_536
"""Rows fetched together; for all others only score, split and row number are in memory."""
_REMEMBERED_WORDS = 100_000

Ask = Callable[[Sequence[Term]], Iterable[Statistics]]
"""Asks all live splits for their statistics of some words."""


@dataclass(slots=True)
class _CachedStatistics:
    """The statistics of one version that were used so far."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: int = 0
    tokens: Mapping[str, int] = field(default_factory=dict)
    frequencies: dict[Term, int] = field(default_factory=dict)


def table_statistics(snapshot: Snapshot, query: Query, ask: Ask | None = None) -> Statistics:
    """What BM25 needs to know of all rows of a version to score a query."""
    terms = scored_terms(query, query.spec)
    if not terms:
        return Statistics(0)
    cached = snapshot.once("ranking", _CachedStatistics)
    missing = [term for term in terms if term not in cached.frequencies]
    if missing:
        total = Statistics(0)
        for part in (ask or partial(_ask_here, snapshot, query))(missing):
            total = total.plus(part)
        with cached.lock:
            if len(cached.frequencies) > _REMEMBERED_WORDS:
                cached.frequencies = {}
            # Splits that are scanned count the tokens of the query's own columns alone.
            columns = {column for column, _ in missing}
            tokens = {column: count for column, count in total.tokens.items() if column in columns}
            cached.rows, cached.tokens = total.rows, {**cached.tokens, **tokens}
            cached.frequencies = {**cached.frequencies, **dict.fromkeys(missing, 0), **total.frequencies}
            return Statistics(cached.rows, cached.tokens, cached.frequencies)
    return Statistics(cached.rows, cached.tokens, cached.frequencies)


def _ask_here(snapshot: Snapshot, query: Query, terms: Sequence[Term]) -> Iterator[Statistics]:
    def statistics_of(some: Sequence[SplitRef]) -> Iterator[Statistics]:
        for ref in some:
            yield statistics_split(snapshot.reading, ref, Selection(query), terms)

    width = splits_at_once(snapshot)
    refs = live_splits(snapshot)
    step = max(1, -(-len(refs) // (4 * width)))
    pieces = [partial(statistics_of, refs[at : at + step]) for at in range(0, len(refs), step)]
    yield from in_order(pieces, width)


def best_rows_of_table(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, note: Note
) -> Iterator[pa.Table]:
    """The best rows with their scores, best first; ties in the order of paths and rows."""
    columns, query = selection.columns, selection.query
    by_table = replace(selection, statistics=table_statistics(snapshot, query))
    # The statistics have been asked of every split, so their indexes are open.
    refs = list(unless_empty(snapshot.store, refs, query, note))

    def ranked(unit: Sequence[SplitRef]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for ref in unit:
            yield rank_split(snapshot.reading, ref, by_table, note)

    units = work_units(snapshot, refs)
    best = list(in_order([partial(ranked, unit) for unit in units], splits_at_once(snapshot)))
    if not best:
        return
    scores = np.concatenate([one for one, _ in best])
    rows = np.concatenate([one.astype(np.uint32) for _, one in best])
    split = np.repeat(np.arange(len(best), dtype=np.int32), [len(one) for one, _ in best])
    del best
    order = np.lexsort((rows, split, -scores))[: selection.limit]
    for start in range(0, len(order), ROWS_AT_ONCE):
        some = order[start : start + ROWS_AT_ONCE]
        worth = numbers(scores[some], pa.float32())
        shown = pa.field(SCORE, pa.float32(), nullable=False)
        if columns:
            yield _fetched(snapshot, refs, split[some], rows[some], columns).append_column(shown, worth)
        else:
            yield pa.table([worth], schema=pa.schema([shown]))


def _fetched(
    snapshot: Snapshot, refs: Sequence[SplitRef], split: np.ndarray, rows: np.ndarray, columns: Sequence[str]
) -> pa.Table:
    """Rows of several splits, in the given order."""
    order = np.lexsort((rows, split))
    ascending = split[order]
    pieces = []
    for number in np.unique(split).tolist():
        mine = rows[order][ascending == number]

        def one(ref: SplitRef = refs[number], mine: np.ndarray = mine) -> Iterator[pa.Table]:
            yield fetch_rows(snapshot.reading, ref, columns, mine.astype(np.int64))

        pieces.append(one)
    in_split_order = pa.concat_tables(list(in_order(pieces, splits_at_once(snapshot))))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return take_rows(in_split_order, integers(back)).combine_chunks()


def explain_score(
    snapshot: Snapshot, text: str, path: str, row: int, *, operator: str | None = None
) -> pa.Table | None:
    """The parts of the score that a query gives a row of a split; None when it does not match."""
    query = query_of(snapshot, text, operator=operator)
    refs = splits_at(snapshot, [path])
    if not refs:
        raise TableError(
            f"version {snapshot.version} has no split {path!r}; `files()` lists those it has", path=path
        )
    selection = Selection(query, statistics=table_statistics(snapshot, query))
    parts = explain_row(snapshot.reading, refs[0], selection, row)
    if parts is None:
        return None
    return pa.Table.from_pylist([asdict(part) for part in parts], schema=EXPLANATION)


EXPLANATION = pa.schema(
    [
        ("part", pa.string()),
        ("column", pa.string()),
        ("words", pa.string()),
        ("score", pa.float64()),
        ("boost", pa.float64()),
        ("idf", pa.float64()),
        ("document_frequency", pa.int64()),
        ("documents", pa.int64()),
        ("occurrences", pa.int64()),
        ("length", pa.int64()),
        ("mean_length", pa.float64()),
    ]
)
"""What an explanation tells of every part of a query that counts in a row."""
