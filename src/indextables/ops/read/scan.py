"""Reads rows without Spark: scan, count and search over the splits that pruning leaves.

Files are pruned first; the rest is read in parallel and returned in the order of paths
and rows, as a stream of batches. A filter decides every row exactly. Errors in the query,
filter or columns are raised before the first split is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from indextables.errors import OptionError, SchemaError
from indextables.index.query.tree import Query
from indextables.log.replay.rule import ReplayMetrics
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.model.names import require_name
from indextables.ops.read.hints import spelling_notes
from indextables.ops.read.in_order import in_order, small_together, width_of
from indextables.ops.read.record import Record
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import query_of, require_parquet, settings_of
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.runtime import default_parallelism
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import to_table_schema
from indextables.split.search.metrics import SearchMetrics
from indextables.split.search.run import SCORE, count_known, count_split, search_split, unless_empty
from indextables.split.search.selection import Selection

if TYPE_CHECKING:
    from indextables.predicate.tree import Node
    from indextables.split.search.filtered import Filtered

S = TypeVar("S", AddAction, SplitRef)

_EVERY_FILE = ReplayMetrics("reference", why="every file is read, with its whole entry")


def files(snapshot: Snapshot, where: Any = None, engine: str = "auto") -> tuple[pa.Table, Record]:
    """The live files that can hold a matching row, one row each."""
    record = Record(snapshot)
    plan = snapshot.plan(where, engine=engine)
    record.planned(plan.metrics, plan.replay)
    return plan.files, record


def scan(
    snapshot: Snapshot,
    where: Any = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    sort: str | Sequence[str] | None = None,
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows of a version, or those for which a filter is true, in (path, row) order or that of columns."""
    check_limit(limit)
    node = row_filter(snapshot, where)
    wanted = known_columns(snapshot, columns)
    record = Record(snapshot)
    if sort is not None:
        from indextables.ops.read.sorting import sort_keys, sorted_scan

        keys = sort_keys(snapshot, sort)
        refs = _refs(snapshot, node, record) if limit != 0 else []
        found, asked = sorted_scan(snapshot, refs, node, wanted, keys=keys, limit=limit)
        record.passed_over(len(refs) - asked)
        record.read(found.num_rows, files=asked)
        return found.to_reader(), record

    def rows_in(unit: Sequence[AddAction]) -> Iterator[pa.Table]:
        for add in unit:
            yield from rows_of(snapshot, add, node, wanted, record)

    units = small_together(snapshot, _planned(snapshot, node, record) if limit != 0 else [])
    pieces = [partial(rows_in, unit) for unit in units]
    return reader_of(snapshot.reading.columns(wanted), pieces, limit), record


def count_rows(snapshot: Snapshot, node: Node | None, record: Record) -> int:
    """How many rows there are, or match; files whose statistics decide are not opened."""
    require_parquet(snapshot)
    if node is None:
        return sum(_row_count(snapshot, add) for add in snapshot.adds())
    import pyarrow.compute as pc

    from indextables.ops.read.matching import sort_files
    from indextables.ops.read.together import Asked, ask

    found = sort_files(snapshot, node)
    record.planned(found.plan.metrics, found.plan.replay)
    rows = found.whole.column("num_records")
    unknown = snapshot.adds(found.whole.filter(pc.is_null(rows)).column("path").to_pylist())
    total: int = pc.sum(rows, min_count=0).as_py() + sum(_row_count(snapshot, add) for add in unknown)
    doubtful = snapshot.adds(found.doubtful.column("path").to_pylist())
    to_read = _with_trigrams(snapshot, node, doubtful, record)
    asked, left = ask(snapshot, to_read, node, Asked("count(*)"))
    if asked is not None:
        kept: int = pc.sum(asked.column(0)).as_py()
        record.read(kept, files=len(to_read) - len(left))
        total += kept
    pieces = [partial(_count_of, snapshot, add, node, record) for add in left]
    for counted in in_order(pieces, default_parallelism()):
        total += counted
    return total


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
) -> tuple[pa.RecordBatchReader, Record]:
    """The rows a full-text query finds, in (path, row) order; with `score` the best ones, best first."""
    check_limit(limit)
    if score and sort is not None:
        raise OptionError("rows come best first, or in the order of columns; give score or sort, not both")
    parsed = query if isinstance(query, Query) else query_of(snapshot, query, operator=operator)
    node = row_filter(snapshot, where)
    wanted = known_columns(snapshot, columns)
    schema = snapshot.reading.columns(wanted)
    if score:
        if SCORE in wanted:
            raise SchemaError(f"the table has a column {SCORE!r} of its own; leave it out of columns")
        schema = schema.append(pa.field(SCORE, pa.float32(), nullable=False))
    record = Record(snapshot)
    record.noted(parsed.notes)
    if sort is not None:
        from indextables.ops.read.sorting import sort_keys, sorted_rows

        keys = sort_keys(snapshot, sort)
    if total:
        # Counted separately: a limit stops the search long before it has seen every hit.
        record.counted(total=count_found(snapshot, node, parsed, Record(snapshot)))
    planned = _refs(snapshot, node, record)
    refs = _to_search(snapshot, parsed, planned, record) if limit != 0 else []
    selection = Selection(parsed, node, wanted, limit)

    def when_empty() -> None:
        record.noted(spelling_notes(snapshot, parsed, planned))

    if sort is not None:
        found, asked = sorted_rows(snapshot, refs, replace(selection, keys=keys), record.searched)
        record.passed_over(len(refs) - asked)
        record.read(found.num_rows, files=asked)
        if not found.num_rows:
            when_empty()
        return found.to_reader(), record
    if score:
        best = partial(_best, snapshot, refs, replace(selection, score=True), record)
        return reader_of(schema, [best], limit, when_empty), record
    pieces = _found(snapshot, refs, selection, record)
    return reader_of(schema, pieces, limit, when_empty), record


def check_limit(limit: int | None) -> None:
    """Refuse a number of rows below zero."""
    if limit is not None and limit < 0:
        raise OptionError(f"limit is {limit}; give a number of rows, or leave it out")


def row_filter(snapshot: Snapshot, where: Any) -> Node | None:
    """A filter that can decide every row; PredicateError names what it cannot."""
    if where is None:
        return None
    from indextables.predicate.evaluate.rows import require_exact

    node = snapshot.filter_of(where)
    if node is not None:
        require_exact(node)
    return node


def known_columns(snapshot: Snapshot, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The wanted columns as the schema spells them."""
    if columns is None:
        return tuple(snapshot.schema.names)
    if isinstance(columns, str):
        raise SchemaError(f"columns is the text {columns!r}; give a list of names")
    found = []
    for name in columns:
        spelled = require_name(snapshot.schema.names, name)
        if spelled in found:
            raise SchemaError(f"column {spelled!r} is asked for twice", column=spelled)
        found.append(spelled)
    return tuple(found)


def _planned(snapshot: Snapshot, node: Node | None, record: Record) -> list[AddAction]:
    require_parquet(snapshot)
    if node is None:
        adds = snapshot.adds()
        record.planned(PruneMetrics(considered=len(adds), kept=len(adds)), _EVERY_FILE)
        return adds
    plan = snapshot.plan(node, columns={"path"})
    record.planned(plan.metrics, plan.replay)
    adds = snapshot.adds(plan.files.column("path").to_pylist())
    return _with_trigrams(snapshot, node, adds, record)


def _refs(snapshot: Snapshot, node: Node | None, record: Record) -> Sequence[SplitRef]:
    """Where the splits lie that pruning leaves; those of all live files are kept with the version."""
    if node is not None:
        return [SplitRef.of(add) for add in _planned(snapshot, node, record)]
    require_parquet(snapshot)
    every = snapshot.once("split refs", lambda: tuple(SplitRef.of(add) for add in snapshot.adds()))
    record.planned(PruneMetrics(considered=len(every), kept=len(every)), _EVERY_FILE)
    return every


def _with_trigrams(snapshot: Snapshot, node: Node, adds: list[AddAction], record: Record) -> list[AddAction]:
    """The splits that word filters leave for the trigrams that a filter needs."""
    from indextables.split.search.substring import fields_of, needed_trigrams

    spec = settings_of(snapshot)
    needed = needed_trigrams(node, fields_of(spec))
    return adds if needed is None else _to_search(snapshot, Query(str(node), needed, spec), adds, record)


def _to_search(snapshot: Snapshot, query: Query, splits: Sequence[S], record: Record) -> list[S]:
    """The splits that word filters do not rule out for a query."""
    found = splits_to_search(snapshot, query, splits)
    if len(found) < len(splits):
        record.searched(SearchMetrics(ruled_out=len(splits) - len(found)))
    return found


def _row_count(snapshot: Snapshot, add: AddAction) -> int:
    from indextables.model.stats import of_add

    known = of_add(add, null_counts=False).num_records
    return open_split(snapshot.store, SplitRef.of(add)).rows if known is None else known


def _count_of(snapshot: Snapshot, add: AddAction, node: Node, record: Record) -> Iterator[int]:
    """How many rows of one split a filter keeps; only its own columns are read."""
    found = _filtered(snapshot, add, node).count()
    record.read(found)
    yield found


def _filtered(snapshot: Snapshot, add: AddAction, node: Node) -> Filtered:
    from indextables.split.search.filtered import Filtered
    from indextables.split.search.substring import index_for

    reading, ref = snapshot.reading, SplitRef.of(add)
    return Filtered(reading, ref, node, index_for(reading, ref, node, settings_of(snapshot)))


def rows_of(
    snapshot: Snapshot,
    add: AddAction,
    node: Node | None,
    columns: Sequence[str],
    record: Record,
    *,
    coded: bool = False,
) -> Iterator[pa.Table]:
    """The rows of one split, or those for which a filter is true.

    With `coded`, repeated text may stay dictionary-encoded.
    """
    rows = 0
    if node is None:
        reader = open_split(snapshot.store, SplitRef.of(add))
        for _, raw in reader.scan([name for name in columns if name in reader.columns], coded=coded):
            table = to_table_schema(raw, snapshot.schema, columns, add.partition_values, coded=coded)
            rows += table.num_rows
            yield table.select(list(columns))
    else:
        for _, table in _filtered(snapshot, add, node).tables(None, columns):
            rows += table.num_rows
            yield table
    record.read(rows)


def _found(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record
) -> Iterator[Callable[[], Iterator[pa.Table]]]:
    """Units of work that find the rows of some splits, in order."""

    def without_hits(search: SearchMetrics) -> None:
        record.searched(search)
        record.read(0)

    def found_in(unit: Sequence[SplitRef]) -> Iterator[pa.Table]:
        for ref in unit:
            yield from rows_found(snapshot, ref, selection, record)

    left = unless_empty(snapshot.store, refs, selection.query, without_hits)
    return (partial(found_in, unit) for unit in small_together(snapshot, left))


def rows_found(snapshot: Snapshot, ref: SplitRef, selection: Selection, record: Record) -> Iterator[pa.Table]:
    """The rows of one split that match a query and a filter."""
    rows = 0
    for table in search_split(snapshot.reading, ref, selection, record.searched):
        rows += table.num_rows
        yield table
    record.read(rows)


def count_found(snapshot: Snapshot, node: Node | None, parsed: Query, record: Record) -> int:
    """How many rows match a query and a filter."""
    record.noted(parsed.notes)
    planned = _refs(snapshot, node, record)
    refs = _to_search(snapshot, parsed, planned, record)
    total = 0
    if node is None:
        asked = len(refs)
        total, refs = count_known(snapshot.store, refs, parsed, record.searched)
        record.read(total, files=asked - len(refs))
    if refs:
        total += _count_others(snapshot, refs, Selection(parsed, node), record)
    if not total:
        record.noted(spelling_notes(snapshot, parsed, planned))
    return total


def _count_others(snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record) -> int:
    """Count in splits that have to be opened, or whose rows a filter decides; several at once."""

    def counted(some: Sequence[SplitRef]) -> Iterator[int]:
        for ref in some:
            found = count_split(snapshot.reading, ref, selection, record.searched)
            record.read(found)
            yield found

    width = width_of(snapshot)
    step = max(1, -(-len(refs) // (4 * width)))
    pieces = [partial(counted, refs[at : at + step]) for at in range(0, len(refs), step)]
    return sum(in_order(pieces, width))


def reader_of(
    schema: pa.Schema,
    pieces: Iterable[Callable[[], Iterator[pa.Table]]],
    limit: int | None = None,
    when_empty: Callable[[], None] = lambda: None,
) -> pa.RecordBatchReader:
    """The rows of all units of work in order, as a stream; at most `limit` of them."""

    def batches() -> Iterator[pa.RecordBatch]:
        left, some = limit, False
        tables = in_order(pieces, default_parallelism())
        try:
            for table in tables:
                for found in table.to_batches():
                    # A batch without columns takes the length of a slice for its own.
                    batch = found if left is None or found.num_rows <= left else found.slice(0, left)
                    left = None if left is None else left - batch.num_rows
                    if batch.num_rows:
                        some = True
                        yield batch
                    if left == 0:
                        return
            if not some:
                when_empty()
        finally:
            tables.close()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _best(
    snapshot: Snapshot, refs: Sequence[SplitRef], selection: Selection, record: Record
) -> Iterator[pa.Table]:
    """The best rows of all splits, best first."""
    from indextables.ops.read.ranking import best_rows_of_table

    rows = 0
    for table in best_rows_of_table(snapshot, refs, selection, record.searched):
        rows += table.num_rows
        yield table
    record.read(rows, files=len(refs))
