"""Searches a version without Spark: the rows a query finds, or their number.

The splits that pruning and word filters leave are searched in parallel; rows come in the order of
paths and rows, best first, or in the order of columns. Errors in the query, the filter or
the columns are raised before the first split is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import OptionError, SchemaError
from indextables.index.query.tree import Query
from indextables.lazy import later
from indextables.log.snapshot import Snapshot
from indextables.ops.read.arguments import check_limit, column_names, row_filter
from indextables.ops.read.hints import missing_notes, spelling_notes
from indextables.ops.read.in_order import batches_in_order, in_order, splits_at_once, work_units
from indextables.ops.read.record import Record
from indextables.ops.read.splits import splits_for, with_words
from indextables.ops.table_settings import query_of
from indextables.split.layout import SplitRef
from indextables.split.search.metrics import SearchMetrics
from indextables.split.search.run import SCORE, count_in_open_indexes, count_split, search_split, unless_empty
from indextables.split.search.selection import Selection

if TYPE_CHECKING:
    from indextables.ops.read import highlighting, ranking, sorting
    from indextables.ops.read.highlighting import Highlights
    from indextables.predicate.tree import Node
else:
    highlighting = later("indextables.ops.read.highlighting")
    ranking = later("indextables.ops.read.ranking")
    sorting = later("indextables.ops.read.sorting")


def search(
    snapshot: Snapshot,
    query: str | Query,
    where: Any = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    score: bool = False,
    operator: str | None = None,
    sort: str | Sequence[str] | None = None,
    total: bool = False,
    highlights: Highlights | None = None,
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows a full-text query finds, in (path, row) order; with `score` the best ones, best first."""
    check_limit(limit)
    if score and sort is not None:
        raise OptionError("rows come best first, or in the order of columns; give score or sort, not both")
    parsed = query if isinstance(query, Query) else query_of(snapshot, query, operator=operator)
    node = row_filter(snapshot, where)
    names = column_names(snapshot, columns)
    if score and SCORE in names:
        raise SchemaError(f"the table has a column {SCORE!r} of its own; leave it out of columns")
    marker = None
    if highlights is not None:
        marker = highlighting.RowMarker(parsed, names, snapshot.schema, highlights)
        names = marker.columns_read
    selection = Selection(parsed, node, names, limit, score)
    if sort is not None:
        selection = replace(selection, keys=sorting.sort_keys(snapshot, sort))
    record = Record(snapshot)
    record.noted(parsed.notes)
    if total:
        # Counted separately: a limit stops the search long before it has seen every hit.
        record.counted(total=count_hits(snapshot, node, parsed, Record(snapshot)))
    reader = _reader(snapshot, selection, record)
    return reader if marker is None else marker.marked(reader), record


def _reader(snapshot: Snapshot, selection: Selection, record: Record) -> pa.RecordBatchReader:
    """The rows of a selection from all splits."""
    planned = splits_for(snapshot, selection.where, record)
    refs = with_words(snapshot, selection.query, planned, record) if selection.limit != 0 else []
    schema = snapshot.reading.columns(selection.columns)

    def when_empty() -> None:
        record.noted(notes_when_empty(snapshot, selection.query, selection.where, planned))

    if selection.keys:
        rows, searched = sorting.sorted_rows(snapshot, refs, selection, record.searched)
        record.not_needed(len(refs) - searched)
        record.read(rows.num_rows, files=searched)
        if not rows.num_rows:
            when_empty()
        return rows.to_reader()
    if selection.score:
        schema = schema.append(pa.field(SCORE, pa.float32(), nullable=False))
        best = partial(_best, snapshot, refs, selection, record)
        return batches_in_order(schema, [best], 1, selection.limit, when_empty)
    pieces = _pieces(snapshot, refs, selection, record)
    return batches_in_order(schema, pieces, splits_at_once(snapshot), selection.limit, when_empty)


def _pieces(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record
) -> Iterator[Callable[[], Iterator[pa.Table]]]:
    """Units of work that find the rows of some splits, in order."""

    def without_hits(search: SearchMetrics) -> None:
        record.searched(search)
        record.read(0)

    def rows_in(unit: Sequence[SplitRef]) -> Iterator[pa.Table]:
        for ref in unit:
            yield from matching_rows(snapshot, ref, selection, record)

    left = unless_empty(snapshot.store, refs, selection.query, without_hits)
    return (partial(rows_in, unit) for unit in work_units(snapshot, left))


def matching_rows(
    snapshot: Snapshot, ref: SplitRef, selection: Selection, record: Record
) -> Iterator[pa.Table]:
    """The rows of one split that match a query and a filter."""
    rows = 0
    for table in search_split(snapshot.reading, ref, selection, record.searched):
        rows += table.num_rows
        yield table
    record.read(rows)


def _best(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record
) -> Iterator[pa.Table]:
    """The best rows of all splits, best first."""
    rows = 0
    for table in ranking.best_rows_of_table(snapshot, refs, selection, record.searched):
        rows += table.num_rows
        yield table
    record.read(rows, files=len(refs))


def count_hits(snapshot: Snapshot, node: Node | None, query: Query, record: Record) -> int:
    """How many rows match a query and a filter."""
    record.noted(query.notes)
    planned = splits_for(snapshot, node, record)
    refs: Sequence[SplitRef] = with_words(snapshot, query, planned, record)
    total = 0
    if node is None:
        searched = len(refs)
        total, refs = count_in_open_indexes(snapshot.store, refs, query, record.searched)
        record.read(total, files=searched - len(refs))
    if refs:
        total += _count_others(snapshot, refs, Selection(query, node), record)
    if not total:
        record.noted(notes_when_empty(snapshot, query, node, planned))
    return total


def notes_when_empty(
    snapshot: Snapshot, query: Query, where: Node | None, planned: Iterable[SplitRef]
) -> list[str]:
    """What to tell the author of a query that finds nothing in the planned splits."""

    def finds(piece: Query) -> bool:
        selection = Selection(piece, where, tuple(snapshot.schema.names[:1]), limit=1)
        return any(batch.num_rows for batch in _reader(snapshot, selection, Record(snapshot)))

    return [*missing_notes(query, finds), *spelling_notes(snapshot, query, planned)]


def _count_others(snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record) -> int:
    """Count in splits that have to be opened, or whose rows a filter decides; several at once."""

    def count_in(some: Sequence[SplitRef]) -> Iterator[int]:
        for ref in some:
            hits = count_split(snapshot.reading, ref, selection, record.searched)
            record.read(hits)
            yield hits

    width = splits_at_once(snapshot)
    step = max(1, -(-len(refs) // (4 * width)))
    pieces = [partial(count_in, refs[at : at + step]) for at in range(0, len(refs), step)]
    return sum(in_order(pieces, width))
