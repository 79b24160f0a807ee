"""Full-text search on the executors: each task opens the indexes of its splits where it runs.

`search_frame` returns the rows a query finds. `hidden_frame` is what a table
becomes in a statement with `indexquery`: its rows, restricted to the matching
ones where the search has to hold, and with a boolean column where it may or
may not. Both count first, so that splits without a match are not read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from indextables.index.query.tree import Query
from indextables.index.read.lookup import Term
from indextables.index.read.ranking import Statistics
from indextables.ops.read.ranking import table_statistics
from indextables.ops.read.scan import check_limit, known_columns, row_filter
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import query_of, settings_of
from indextables.predicate.names import quoted_name
from indextables.spark.options import CallSettings
from indextables.spark.read.arrow_scan import FILE, ROW, arrow_frame
from indextables.spark.read.frame import reading_way, restricted_frame
from indextables.spark.search import on_driver
from indextables.spark.search.tasks import SearchTask, counts, found_rows, hits, statistics
from indextables.spark.workers import SparkWorkers, default_width, frame_of_tasks, shared_out, spark_schema
from indextables.split.layout import SplitRef
from indextables.split.search import SCORE

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.predicate.tree import Node
    from indextables.sql.rewrite import Search

_log = logging.getLogger(__name__)

_BROADCAST_MOST = 1_000_000
"""Up to this many matching rows are sent to every executor; above it both sides are shuffled."""


def search_frame(
    spark: Any, snapshot: Snapshot, query: str, *, where: Any = None, columns: Sequence[str] | None = None,
    limit: int | None = None, score: bool = False, operator: str | None = None,
) -> Any:  # fmt: skip
    """A DataFrame of the rows a query finds, computed where the splits are opened."""
    from pyspark.sql import functions

    check_limit(limit)
    asked, node = parsed(snapshot, query, operator=operator), row_filter(snapshot, where)
    wanted = known_columns(snapshot, columns)
    frame = _found_rows(spark, snapshot, asked, wanted, where=node, limit=limit, score=score)
    if score:
        frame = frame.orderBy(functions.col(SCORE).desc())
    return frame if limit is None else frame.limit(limit)


def _found_rows(
    spark: Any, snapshot: Snapshot, query: Query, columns: Sequence[str], *,
    where: Node | None = None, limit: int | None = None, score: bool = False,
) -> Any:  # fmt: skip
    from pyspark.sql.types import FloatType

    paths = None if where is None else snapshot.plan(where, columns={"path"}).files.column("path").to_pylist()
    refs = tuple(SplitRef.of(add) for add in splits_to_search(snapshot, query, snapshot.adds(paths)))
    whole = SearchTask(
        snapshot.store.spec(),
        refs,
        query,
        snapshot.schema,
        snapshot.settings,
        tuple(columns),
        where,
        limit,
        score,
    )
    table = spark_schema(snapshot.metadata.schema_string)
    schema = type(table)([table[name] for name in columns])
    if score:
        whole = replace(whole, statistics=_statistics(spark, snapshot, whole))
        schema = schema.add(SCORE, FloatType(), False)
    counted = on_driver.counted(spark, whole)
    if counted is not None:
        whole = on_driver.among(whole, counted)
        if on_driver.is_little(whole, counted):
            local = on_driver.local_frame(spark, found_rows, whole, schema)
            if local is not None:
                return local
    return frame_of_tasks(spark, found_rows, _grouped(spark, whole), schema)


def _statistics(spark: Any, snapshot: Snapshot, task: SearchTask) -> Statistics:
    """What scores need to know of all rows of a version, asked of every live split where it is near."""
    every = replace(task, refs=tuple(SplitRef.of(add) for add in snapshot.adds()))
    if on_driver.is_near(spark, every):
        return table_statistics(snapshot, task.query)

    def ask(terms: Sequence[Term]) -> Iterable[Statistics]:
        wanted = replace(every, terms=tuple(terms))
        return SparkWorkers(spark).map(statistics, _grouped(spark, wanted))

    return table_statistics(snapshot, task.query, ask)


def parsed(
    snapshot: Snapshot,
    query: str,
    column: str | None = None,
    operator: str | None = None,
    *,
    with_text: bool = False,
) -> Query:
    """A query checked against the table's settings; what its author should know is a warning."""
    columns = None if column is None else (column,)
    found = query_of(snapshot, query, columns, operator, with_text=with_text)
    for note in found.notes:
        _log.warning("indexquery %r: %s", query, note)
    return found


def hidden_frame(
    spark: Any,
    asked: tuple[CallSettings, Snapshot],
    searches: Sequence[Search],
    mentioned: frozenset[str] | None,
) -> Any:
    """One version of a table, with the searches of a statement in it."""
    settings, snapshot = asked
    if len(searches) == 1 and searches[0].required:
        # The one search decides which rows there are: fetched through the index, nothing is joined.
        names = snapshot.schema.names
        columns = [name for name in names if mentioned is None or name.lower() in mentioned] or names[:1]
        one = searches[0]
        query = parsed(snapshot, one.query, one.column, with_text=True)
        return _found_rows(spark, snapshot, query, columns, limit=one.best, score=one.score)
    found = [_Found.of(spark, snapshot, search) for search in searches]
    names = {ref.path.rpartition("/")[2] for ref in found[0].base.refs}
    native = reading_way(spark, snapshot) != "arrow" and len(names) == len(found[0].base.refs)
    return _joined(spark, snapshot, settings, [item.named(by_name=native) for item in found], native=native)


def _joined(
    spark: Any, snapshot: Snapshot, settings: CallSettings, found: Sequence[_Found], *, native: bool
) -> Any:
    """All rows with their numbers, joined with the numbers of the matching ones.

    Spark's reader tells a file's name but encodes its path; where two files share a name it is not used.
    """
    from pyspark.sql import functions as f

    only = _live_paths([item for item in found if item.search.required])
    if native:
        name, row = f.col("_metadata.file_name").alias(FILE), f.col("_metadata.row_index").alias(ROW)
        frame = restricted_frame(spark, snapshot, settings, only).select("*", name, row)
    else:
        frame = arrow_frame(spark, snapshot, settings.table, numbered=True, only=only)
    columns = [f.col(quoted_name(name)) for name in snapshot.schema.names]
    hidden = []
    for item in found:
        hits = item.hits_frame(spark)
        if item.search.required:
            frame = frame.join(hits, [FILE, ROW], "left_semi")
            continue
        name = item.search.hidden
        frame = frame.join(hits.withColumn(name, f.lit(True)), [FILE, ROW], "left")
        texts = [f.col(quoted_name(column)).isNull() for column in item.columns]
        unknown = texts[0]
        for text in texts[1:]:
            unknown = unknown & text
        matched = f.coalesce(f.col(name), f.lit(False))
        hidden.append(f.when(unknown, f.lit(None).cast("boolean")).otherwise(matched).alias(name))
    return frame.select(*columns, *hidden)


def _live_paths(required: Sequence[_Found]) -> frozenset[str] | None:
    """The splits in which every required search matches something."""
    if not required:
        return None
    sets = [frozenset(path for path, count in item.counts.items() if count) for item in required]
    return frozenset.intersection(*sets)


@dataclass(frozen=True, slots=True)
class _Found:
    """A search, counted in every split."""

    search: Search
    query: Query
    columns: tuple[str, ...]
    base: SearchTask
    counts: Mapping[str, int]
    near: bool
    """Whether they were counted by the driver."""

    @classmethod
    def of(cls, spark: Any, snapshot: Snapshot, search: Search) -> _Found:
        query = parsed(snapshot, search.query, search.column)
        columns = (search.column,) if search.column is not None else settings_of(snapshot).columns
        adds = snapshot.adds()
        refs = tuple(SplitRef.of(add) for add in adds)
        base = SearchTask(snapshot.store.spec(), refs, query, snapshot.schema, snapshot.settings)
        possible = {add.path for add in splits_to_search(snapshot, query, adds)}
        asked = replace(base, refs=tuple(ref for ref in refs if ref.path in possible))
        near = on_driver.counted(spark, asked)
        counts = {ref.path: 0 for ref in refs} | (near or _counted(spark, asked))
        return cls(search, query, columns, base, counts, near is not None)

    def named(self, *, by_name: bool) -> _Found:
        return replace(self, base=replace(self.base, by_name=by_name))

    def hits_frame(self, spark: Any) -> Any:
        """File and number of every matching row."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import LongType, StringType, StructField, StructType

        schema = StructType([StructField(FILE, StringType(), False), StructField(ROW, LongType(), False)])
        task = on_driver.among(self.base, self.counts)
        if self.near and on_driver.is_little(task, self.counts):
            return f.broadcast(on_driver.local_frame(spark, hits, task, schema))
        frame = frame_of_tasks(spark, hits, _grouped(spark, task), schema)
        return f.broadcast(frame) if sum(self.counts.values()) <= _BROADCAST_MOST else frame


def _counted(spark: Any, task: SearchTask) -> dict[str, int]:
    """Matching rows of each split, counted on the executors."""
    found: dict[str, int] = {}
    for some in SparkWorkers(spark).map(counts, _grouped(spark, task)):
        found.update(some)
    return found


def _grouped(spark: Any, whole: SearchTask) -> list[SearchTask]:
    # Looking into an index takes milliseconds and starting a task tens of them: one task per core.
    groups = shared_out(whole.refs, default_width(spark), lambda ref: ref.index_length or 0)
    return [replace(whole, refs=group) for group in groups]
