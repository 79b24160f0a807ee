"""Full-text search on the executors: each task opens the indexes of its splits where it runs.

`search_frame` returns the rows a query finds. `hidden_frame` is what a table
becomes in a statement with `indexquery`: its rows, restricted to the matching
ones where the search has to hold, and with a boolean column where it may or
may not. Both count first, so that splits without a match are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import FloatType, LongType, StringType, StructField, StructType

from indextables.index.query.tree import Query, all_of
from indextables.index.read.lookup import Term
from indextables.index.read.ranking import Statistics
from indextables.model.names import quoted_name
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.read.arguments import check_limit, column_names, row_filter
from indextables.ops.read.ranking import table_statistics
from indextables.ops.read.splits import live_splits, splits_at
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import query_of_statement, settings_of
from indextables.spark.options import CallSettings
from indextables.spark.read.arrow_scan import FILE, ROW, arrow_frame
from indextables.spark.read.frame import reading_way, restricted_frame
from indextables.spark.search import on_driver
from indextables.spark.search.comparing import highlighting
from indextables.spark.search.tasks import SearchTask, file_names, hits, matching_rows, statistics
from indextables.spark.workers import SparkWorkers, default_width, frame_of_tasks, shared_out, spark_schema
from indextables.split.layout import SplitRef
from indextables.split.search.run import SCORE
from indextables.split.search.selection import Selection

if TYPE_CHECKING:
    from indextables.log.delta.snapshot import DeltaSnapshot
    from indextables.log.snapshot import Snapshot
    from indextables.predicate.tree import Node
    from indextables.sql.select.rewritten import Highlight, ResolvedSearch


_FILE_COLUMN = "__indextables_metadata"


def search_frame(
    spark: Any, snapshot: Snapshot, query: str, *, where: Any = None, columns: Sequence[str] | None = None,
    limit: int | None = None, score: bool = False, operator: str | None = None,
) -> Any:  # fmt: skip
    """A DataFrame of the rows a query finds, computed where the splits are opened."""
    from pyspark.sql import functions

    check_limit(limit)
    parsed_query, node = query_of_statement(snapshot, query, operator=operator), row_filter(snapshot, where)
    names = column_names(snapshot, columns)
    frame = _matching_rows(spark, snapshot, parsed_query, names, where=node, limit=limit, score=score).frame
    if score:
        frame = frame.orderBy(functions.col(SCORE).desc())
    return frame if limit is None else frame.limit(limit)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, as matching rows or as a column that marks them, and how splits were chosen."""

    frame: Any
    shown: str = ""


def _matching_rows(
    spark: Any, snapshot: Snapshot, query: Query, columns: Sequence[str], *,
    where: Node | None = None, pruned_by: Node | None = None, limit: int | None = None, score: bool = False,
) -> SearchResult:  # fmt: skip
    """The rows a query finds and for which `where` is true.

    `pruned_by` is used only to skip splits: the caller applies it to the rows as well.
    """
    pruning = where if pruned_by is None else pruned_by
    planned = left_by_the_log(snapshot, pruning)
    refs = tuple(splits_to_search(snapshot, query, planned))
    selection = Selection(query, where, tuple(columns), limit, score)
    whole = SearchTask(snapshot.reading, refs, selection)
    table = spark_schema(snapshot.metadata.schema_string)
    schema = type(table)([table[name] for name in columns])
    if score:
        ranking = _statistics(spark, snapshot, whole)
        whole = replace(whole, selection=replace(selection, statistics=ranking))
        schema = schema.add(SCORE, FloatType(), False)
    counted = on_driver.counted(spark, whole)
    shown = shown_search(snapshot, query, pruning, (len(planned), len(refs)), counted)
    if counted is not None:
        whole = on_driver.among(whole, counted)
        if on_driver.is_little(whole, counted):
            local = on_driver.local_frame(spark, matching_rows, whole, schema)
            if local is not None:
                return SearchResult(local, shown)
    return SearchResult(frame_of_tasks(spark, matching_rows, shared_tasks(spark, whole), schema), shown)


def left_by_the_log(snapshot: Snapshot, where: Node | None) -> Sequence[SplitRef]:
    """The splits in which a filter may be true, according to the log."""
    if where is None:
        return live_splits(snapshot)
    return splits_at(snapshot, snapshot.plan(where, columns={"path"}).files.column("path").to_pylist())


def shown_search(
    snapshot: Snapshot,
    query: Query,
    where: Node | None,
    left: tuple[int, int],
    counted: Mapping[str, int] | None,
) -> str:
    """What EXPLAIN shows for a search; `left` is how many splits the log and then the word filters leave."""
    total, (after_log, searched), source = snapshot.num_files, left, ""
    if isinstance(snapshot, ForeignRows):
        # Several files of the source are one split.
        total, source = len(live_splits(snapshot)), f", {snapshot.splits(where).coverage.shown()}"
    hits = "hits are counted when it runs" if counted is None else f"{sum(counted.values())} hits"
    return (
        f"indexquery '{query.text}' in {snapshot.store.uri} version {snapshot.version}: {total} splits, "
        f"{total - after_log} pruned by the log, {after_log - searched} by word filters, "
        f"{searched} searched by {', '.join(query.fields_named()) or 'values'}, {hits}{source}"
    )


def _statistics(spark: Any, snapshot: Snapshot, task: SearchTask) -> Statistics:
    """The ranking statistics of all rows of a version, from every live split."""
    every = replace(task, refs=live_splits(snapshot))
    if on_driver.is_near(spark, every):
        return table_statistics(snapshot, task.selection.query)

    def ask(terms: Sequence[Term]) -> Iterable[Statistics]:
        task_of_terms = replace(every, terms=tuple(terms))
        return SparkWorkers(spark).map(statistics, shared_tasks(spark, task_of_terms))

    return table_statistics(snapshot, task.selection.query, ask)


def no_index(snapshot: DeltaSnapshot) -> str:
    """The message for a search in a Delta table, which has no index."""
    return (
        f"indexquery needs an index, and {snapshot.store.uri} is a Delta table, which has none. "
        "Use LIKE here, DeltaTable.search in Python, or `indextables search`."
    )


def hidden_frame(
    spark: Any,
    version: tuple[CallSettings, Snapshot],
    searches: Sequence[ResolvedSearch],
    mentioned: frozenset[str] | None,
    where: Node | None,
) -> Any:
    """One version of a table with the searches of a statement in it, where no plan can hold them.

    `where` is a filter that Spark applies to the rows as well.
    """
    settings, snapshot = version
    names = snapshot.schema.names
    if all(search.required for search in searches):
        # The searches decide which rows there are: these are fetched through the index, and nothing is
        # joined.
        columns = [name for name in names if mentioned is None or name.lower() in mentioned]
        best, score = (searches[0].best, searches[0].score) if len(searches) == 1 else (None, False)
        return required_frame(spark, snapshot, searches, columns, where=where, score=score, best=best).frame
    refs = left_by_the_log(snapshot, where)
    if reading_way(spark, snapshot) != "arrow":
        from pyspark.sql import functions as f

        file = f.col("_metadata").alias(_FILE_COLUMN)
        only = None if where is None else frozenset(ref.path for ref in refs)
        rows = restricted_frame(spark, snapshot, settings, only).select("*", file)
        numbered = numbered_frame(spark, snapshot, searches, rows, file=_FILE_COLUMN, where=where)
        if numbered is not None:
            return numbered.frame.drop(_FILE_COLUMN)
    hits = [_Hits.of(spark, snapshot, search, where, refs, by_name=False) for search in searches]
    rows = arrow_frame(spark, snapshot, settings.table, numbered=True, refs=refs)
    return _joined(rows, names, hits)


def with_highlights(frame: Any, snapshot: Snapshot, highlights: Sequence[Highlight]) -> Any:
    """A frame with a column of marked texts for every call of `highlight`."""
    for highlight in highlights:
        mark = highlighting(snapshot, highlight.column, highlight.query)
        frame = frame.withColumn(highlight.hidden, mark(quoted_name(highlight.column)))
    return frame


def required_frame(
    spark: Any, snapshot: Snapshot, searches: Sequence[ResolvedSearch], columns: Sequence[str], *,
    where: Node | None = None, score: bool = False, best: int | None = None,
) -> SearchResult:  # fmt: skip
    """The rows that all searches find; the hidden column of each search is true for all of them.

    `where` is a filter that the caller applies to the rows as well.
    """
    from pyspark.sql import functions as f

    queries = [query_of_statement(snapshot, one.query, one.column, with_text=True) for one in searches]
    names = list(columns) or snapshot.schema.names[:1]
    matching = _matching_rows(
        spark, snapshot, all_of(queries), names, pruned_by=where, limit=best, score=score
    )  # fmt: skip
    hidden = [f.lit(True).alias(one.hidden) for one in searches if one.hidden]
    return replace(matching, frame=matching.frame.select("*", *hidden)) if hidden else matching


def numbered_frame(
    spark: Any,
    snapshot: Snapshot,
    searches: Sequence[ResolvedSearch],
    rows: Any,
    *,
    file: str,
    where: Node | None,
) -> SearchResult | None:
    """Rows of Spark's reader with a column, or a restriction, for each search.

    The column `file` identifies a row by the file's name, as Spark knows it, and the row number. If several
    files of the table have the same name, this is ambiguous and the result is None.
    """
    from pyspark.sql import functions as f

    refs = left_by_the_log(snapshot, where)
    stored_names = [name for ref in refs for name in file_names(ref)]
    if len(set(stored_names)) != len(stored_names):
        return None
    hits = [_Hits.of(spark, snapshot, search, where, refs, by_name=True) for search in searches]
    names = rows.columns
    metadata = f.col(quoted_name(file))
    numbered = rows.select("*", metadata["file_name"].alias(FILE), metadata["row_index"].alias(ROW))
    return SearchResult(_joined(numbered, names, hits), "\n".join(one.shown for one in hits))


def _joined(frame: Any, names: Sequence[str], hits: Sequence[_Hits]) -> Any:
    """Rows with their numbers, joined with the numbers of the matching ones."""
    from pyspark.sql import functions as f

    hidden = []
    for item in hits:
        if item.search.required:
            frame = frame.join(item.frame, [FILE, ROW], "left_semi")
            if item.search.hidden:
                hidden.append(f.lit(True).alias(item.search.hidden))
            continue
        name = item.search.hidden
        frame = frame.join(item.frame.withColumn(name, f.lit(True)), [FILE, ROW], "left")
        unknown = reduce(and_, [f.col(quoted_name(column)).isNull() for column in item.columns])
        matched = f.coalesce(f.col(name), f.lit(False))
        hidden.append(f.when(unknown, f.lit(None).cast("boolean")).otherwise(matched).alias(name))
    return frame.select(*(f.col(quoted_name(name)) for name in names), *hidden)


@dataclass(frozen=True, slots=True)
class _Hits:
    """The row numbers that a search finds, by file."""

    search: ResolvedSearch
    columns: tuple[str, ...]
    """The search is null for rows in which all of these columns are null."""
    frame: Any
    shown: str

    @classmethod
    def of(
        cls,
        spark: Any,
        snapshot: Snapshot,
        search: ResolvedSearch,
        where: Node | None,
        planned: Sequence[SplitRef],
        *,
        by_name: bool,
    ) -> _Hits:
        query = query_of_statement(snapshot, search.query, search.column)
        columns = (search.column,) if search.column is not None else settings_of(snapshot).columns
        refs = tuple(splits_to_search(snapshot, query, planned))
        task = SearchTask(snapshot.reading, refs, Selection(query), by_name=by_name)
        schema = StructType([StructField(FILE, StringType(), False), StructField(ROW, LongType(), False)])
        counts = on_driver.counted(spark, task)
        shown = shown_search(snapshot, query, where, (len(planned), len(refs)), counts)
        if counts is not None:
            task = on_driver.among(task, counts)
            if on_driver.is_little(task, counts):
                return cls(search, columns, on_driver.local_frame(spark, hits, task, schema), shown)
        return cls(search, columns, frame_of_tasks(spark, hits, shared_tasks(spark, task), schema), shown)


def shared_tasks(spark: Any, whole: SearchTask) -> list[SearchTask]:
    """A search, divided among executors."""
    # Searching an index takes milliseconds and starting a task tens of them: one task per core.
    groups = shared_out(whole.refs, default_width(spark), lambda ref: ref.index_length or 0)
    return [replace(whole, refs=group) for group in groups]
