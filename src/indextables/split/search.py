"""Searching one split: count first, then fetch only the rows that are wanted, in row order.

The index decides when it was made with the table's settings. Where it was not,
is damaged or cannot answer exactly, the rows it proposes, or all of them, are
matched against their text. Either way the answer is the same; the metrics say
which way it came about. Nothing here writes to the table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from indextables.errors import StorageError, TableError
from indextables.index.query.tree import NOTHING, Boolean, Boosted, Everything, Node, Query
from indextables.index.settings import IndexSpec
from indextables.options import Options
from indextables.predicate.rows import mask
from indextables.predicate.tree import Node as Predicate
from indextables.predicate.tree import columns_of as predicate_columns
from indextables.split.arrays import integers, numbers
from indextables.split.index_cache import cache_for
from indextables.split.layout import SplitRef
from indextables.split.match import match_rows
from indextables.split.reader import SplitReader, open_split, to_table_schema
from indextables.split.source import Source
from indextables.split.tantivy_index import IndexBuilder, IndexUnusableError, OpenIndex
from indextables.storage.scratch import discard, scratch
from indextables.storage.store import Store

SCORE = "_score"
_VERIFY_AT_ONCE = 32_768

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """How searches of splits came about."""

    splits: int = 0
    hits: int = 0
    by_index: int = 0
    scanned: int = 0
    """Splits whose rows were matched without an index: damaged, missing, or made with other settings."""
    damaged: int = 0
    verified_rows: int = 0
    by_pages: int = 0
    by_row_groups: int = 0
    by_scan: int = 0

    def plus(self, other: SearchMetrics) -> SearchMetrics:
        """Both together."""
        return SearchMetrics(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


Note = Callable[[SearchMetrics], None]
Fetch = Callable[[Sequence[str]], Iterator[tuple[Sequence[int], pa.Table]]]
"""Reads stored columns of rows that are settled already."""


def _ignore(_: SearchMetrics) -> None:
    return None


def count_split(
    store: Store,
    ref: SplitRef,
    query: Query,
    schema: pa.Schema,
    *,
    where: Predicate | None = None,
    options: Options | None = None,
    note: Note = _ignore,
) -> int:
    """How many rows of a split a query finds; without `where` no row is fetched if the index is exact."""
    search = _Search(store, ref, query, schema, options or Options())
    if where is None and search.exact:
        assert search.index is not None
        found = search.index.count(search.bounds.upper)
        note(replace(search.metrics, hits=found))
        return found
    if where is None:
        rows = search.rows()
        note(replace(search.metrics, hits=len(rows)))
        return len(rows)
    total = 0
    for piece in search.tables((), where, None):
        total += piece.num_rows
    note(search.metrics)
    return total


def hits_split(
    store: Store,
    ref: SplitRef,
    query: Query,
    schema: pa.Schema,
    *,
    options: Options | None = None,
    note: Note = _ignore,
) -> pa.Int64Array:
    """The numbers of the rows a query finds in a split, in order."""
    search = _Search(store, ref, query, schema, options or Options())
    rows = search.rows()
    note(replace(search.metrics, hits=len(rows)))
    return integers(rows)


def search_split(
    store: Store,
    ref: SplitRef,
    query: Query,
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    where: Predicate | None = None,
    limit: int | None = None,
    score: bool = False,
    options: Options | None = None,
    note: Note = _ignore,
) -> Iterator[pa.Table]:
    """The rows a query finds, in row order; with `score` the best `limit` ones, best first, with `_score`."""
    search = _Search(store, ref, query, schema, options or Options())
    if score:
        yield search.best(columns, where, limit)
    else:
        yield from search.tables(columns, where, limit)
    note(search.metrics)


class _Search:
    def __init__(
        self, store: Store, ref: SplitRef, query: Query, schema: pa.Schema, options: Options
    ) -> None:
        self.schema = schema
        self.options = options
        self.ref = ref
        self.metrics = SearchMetrics(splits=1)
        source = Source.of(store, ref.path)
        self.cache = cache_for(options.search.cache_dir, options.search.cache_max_bytes)
        self.index: OpenIndex | None = None
        self._open: Callable[[], SplitReader] = lambda: open_split(store, ref)
        self._reader: SplitReader | None = None
        try:
            self.index = self.cache.index(source, ref)
        except IndexUnusableError as damaged:
            _warn_once(str(damaged))
            self.metrics = replace(self.metrics, damaged=1)
        else:
            self._open = lambda: self._open_by_entry(store, source)
        self.query = self._on_this_split(query)
        answered = self.index is not None and _answers(self.index.spec, self.query)
        if self.index is not None and not answered:
            self.index = self.index.without(_other_settings(self.index.spec, self.query))
            named = set(self.query.columns)
            if named and not named & set(self.index.spec.columns):
                self.index = None
        if self.index is not None:
            self.bounds = self.index.bounds(self.query)
        self.metrics = replace(self.metrics, by_index=int(answered), scanned=int(not answered))
        self.exact = self.index is not None and self.bounds.exact
        self.most = options.search.max_hits

    def _open_by_entry(self, store: Store, source: Source) -> SplitReader:
        """The split by what the cache holds of it; by its own footer when the cache lost it meanwhile."""
        try:
            return open_split(store, self.ref, self.cache.entry(source, self.ref))
        except (IndexUnusableError, OSError) as failed:
            if isinstance(failed, StorageError):
                raise
            return open_split(store, self.ref)

    @property
    def reader(self) -> SplitReader:
        if self._reader is None:
            self._reader = self._open()
        return self._reader

    def _on_this_split(self, query: Query) -> Query:
        """The query without the columns that are younger than the split: nothing in them matches."""
        indexed = self.index.spec.columns if self.index is not None else ()
        if set(query.columns) <= set(indexed):
            return query
        present = frozenset(self.reader.columns)
        return replace(query, node=_without(query.node, present))

    def rows(self, limit: int | None = None) -> Sequence[int]:
        """The rows the query finds, in order; no more than `limit`."""
        if self.exact and self.index is not None:
            return self.index.hits(self.bounds.upper, self._bounded(limit))
        found: list[int] = []
        if self.index is None:
            for start, table in self.reader.scan(self.query.columns):
                self._match(range(start, start + table.num_rows), table, found)
        else:
            proposed = self.index.hits(self.bounds.upper, self.reader.rows)
            for at in range(0, len(proposed), _VERIFY_AT_ONCE):
                some = proposed[at : at + _VERIFY_AT_ONCE]
                for fetched, table in self.reader.fetch(some, self.query.columns):
                    self._match(fetched, table, found)
        return found[: self._bounded(limit)]

    def _bounded(self, limit: int | None) -> int:
        rows = self.index.rows if self.index is not None else self.reader.rows
        return rows if limit is None else min(limit, rows)

    def _match(self, rows: Sequence[int], table: pa.Table, found: list[int]) -> None:
        self.metrics = replace(self.metrics, verified_rows=self.metrics.verified_rows + table.num_rows)
        if not table.column_names:
            table = pa.table({"": pa.nulls(len(rows))})
        matched = match_rows(self.query, table)
        found.extend(integers(rows).filter(matched).to_pylist())

    def tables(
        self, columns: Sequence[str], where: Predicate | None, limit: int | None
    ) -> Iterator[pa.Table]:
        """The rows the query and the filter find, with the wanted columns."""
        if self.most is not None and self.exact and self.index is not None and limit is None:
            # Counting takes no memory.
            self._refuse_too_many(self.index.count(self.bounds.upper))
        rows = self._noted(self.rows(limit if where is None else None))
        self._refuse_too_many(len(rows) if limit is None else 0)
        left = limit if limit is not None else len(rows)
        for _, table in self._filtered(partial(self.reader.fetch, rows), columns, where):
            # A table without columns takes the length of a slice for its own.
            piece = table if table.num_rows <= left else table.slice(0, left)
            left -= piece.num_rows
            if piece.num_rows:
                yield piece
            if left <= 0:
                return

    def _noted(self, rows: Sequence[int]) -> Sequence[int]:
        """The rows to fetch, and a note of how."""
        plan = {f"by_{self.reader.plan(rows)}": 1} if rows else {}
        self.metrics = replace(self.metrics, hits=len(rows), **plan)
        return rows

    def _refuse_too_many(self, hits: int) -> None:
        if self.most is not None and hits > self.most:
            raise TableError(
                f"the query {self.query.text!r} finds {hits} rows in {self.ref.path}, more than "
                f"search.maxHits = {self.most}; narrow it, give a limit, or raise the option",
                path=self.ref.path,
                hits=hits,
            )

    def _filtered(
        self, fetch: Fetch, columns: Sequence[str], where: Predicate | None
    ) -> Iterator[tuple[Sequence[int], pa.Table]]:
        """Fetched rows as rows of the table, those that the filter keeps."""
        needed = list(columns)
        if where is not None:
            needed += sorted({column.path[0] for column in predicate_columns(where)} - set(needed))
        for found, raw in fetch([name for name in needed if name in self.reader.columns]):
            table = _shaped(raw, len(found), self.schema, needed, self.ref)
            kept = found
            if where is not None:
                wanted = mask(where, table, self.schema, self.options.search.time_zone)
                table = table.filter(wanted)
                kept = integers(kept).filter(wanted).to_pylist()
            yield kept, table.select(list(columns))

    def best(self, columns: Sequence[str], where: Predicate | None, limit: int | None) -> pa.Table:
        """The best rows by BM25 with their scores, best first."""
        scored = self._scored(limit if where is None else None)
        by_row = {row: value for value, row in scored}
        rows = self._noted(sorted(by_row))
        kept: list[int] = []
        parts: list[pa.Table] = []
        for some, table in self._filtered(partial(self.reader.fetch, rows), columns, where):
            kept += some
            parts.append(table)
        empty = pa.schema([self.schema.field(name) for name in columns]).empty_table()
        found = pa.concat_tables(parts) if parts else empty
        scores = numbers([by_row[row] for row in kept], pa.float32())
        order = sorted(range(len(kept)), key=lambda at: (-by_row[kept[at]], kept[at]))[:limit]
        return found.append_column(SCORE, scores).take(integers(order))

    def _scored(self, limit: int | None) -> list[tuple[float, int]]:
        if self.exact and self.index is not None:
            return self.index.best(self.bounds.upper, self._bounded(limit))
        matching = set(self.rows())
        if not matching:
            return []
        answered = self.index is not None and _answers(self.index.spec, self.query)
        scored = (
            self.index.best(self.bounds.upper, self.index.rows)
            if answered and self.index
            else self._rescored()
        )
        found = [(value, row) for value, row in scored if row in matching]
        return found[:limit]

    def _rescored(self) -> list[tuple[float, int]]:
        """Scores from an index made now, of the columns the query looks into."""
        named = set(self.query.columns)
        spec = IndexSpec(tuple(item for item in self.query.spec.fields if item.column in named))
        if not spec.fields:
            return [(1.0, row) for row in range(self.reader.rows)]
        directory = scratch("score")
        try:
            builder = IndexBuilder(directory, spec, self.schema)
            for _, table in self.reader.scan(spec.columns):
                builder.add(to_table_schema(table, self.schema, spec.columns, {}))
            builder.finish()
            index = OpenIndex(directory, spec, frozenset(builder.unsure), self.reader.rows)
            return index.best(index.bounds(self.query).upper, self.reader.rows)
        finally:
            discard(directory)


def _shaped(raw: pa.Table, rows: int, schema: pa.Schema, columns: Sequence[str], ref: SplitRef) -> pa.Table:
    if not raw.column_names:
        raw = pa.table({"": pa.nulls(rows)})
    return to_table_schema(raw, schema, columns, ref.partition_values)


def _answers(spec: IndexSpec, query: Query) -> bool:
    """Whether every column of the query is indexed here the way the table says."""
    return not _other_settings(spec, query) and set(query.columns) <= set(spec.columns)


def _other_settings(spec: IndexSpec, query: Query) -> frozenset[str]:
    found = set()
    for column in query.columns:
        here, wanted = spec.get(column), query.spec.get(column)
        if (
            here is not None
            and wanted is not None
            and (here.kind, here.tokenizer) != (wanted.kind, wanted.tokenizer)
        ):
            found.add(column)
    return frozenset(found)


def _without(node: Node, present: frozenset[str]) -> Node:
    """The tree with every part that looks into an absent column replaced by nothing."""
    if isinstance(node, Boolean):
        return Boolean(
            tuple(_without(part, present) for part in node.must),
            tuple(_without(part, present) for part in node.should),
            tuple(_without(part, present) for part in node.must_not),
        )
    if isinstance(node, Boosted):
        return Boosted(_without(node.node, present), node.factor)
    if isinstance(node, Everything) or node.column in present:
        return node
    return NOTHING


@lru_cache(maxsize=4096)
def _warn_once(message: str) -> None:
    _log.warning(
        "%s; its rows are scanned instead, which gives the same answer more slowly. "
        "MERGE SPLITS writes the file anew with a sound index",
        message,
    )


__all__: list[Any] = ["SCORE", "SearchMetrics", "count_split", "hits_split", "search_split"]
