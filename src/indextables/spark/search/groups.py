"""Aggregates under a search, in Spark: groups from where the splits are opened, and no rows.

A session of one process counts hits while it plans, as for any search. If they are few, or counting them
was all, the driver groups them, too: its groups are complete. Otherwise executors do, and Spark adds up
what they return when the plan runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructType

from indextables.errors import PredicateError
from indextables.index.query.tree import all_of
from indextables.ops.counting.aggregation import Aggregate, Aggregation, GroupKey, column_of, key_of
from indextables.ops.counting.buckets import bucket_of
from indextables.ops.counting.partial import Layout, Merging
from indextables.ops.counting.run import ROWS, answer, partial_of_hits
from indextables.ops.read.arguments import row_filter
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.table_settings import query_of_statement
from indextables.spark.read.planner import conjunction
from indextables.spark.search import on_driver
from indextables.spark.search.dataframe import left_by_the_log, shared_tasks, shown_search
from indextables.spark.search.tasks import SearchTask
from indextables.spark.workers import frame_of_tasks, spark_schema
from indextables.split.search.run import count_split
from indextables.split.search.selection import Selection

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.sql.select.rewritten import ResolvedSearch

MOST_HITS = 3_000_000
"""Up to this many hits the driver groups while it plans, which takes about a second."""
_WHOLE_MINUTES = 94_694_400_000_000
"""1973 in microseconds: until 1972 some clocks differed from UTC by parts of a minute."""


@dataclass(frozen=True, slots=True)
class GroupedFrame:
    """A column for each key, then one for each aggregate."""

    frame: Any
    shown: str
    merged: bool
    """Whether every group is there once."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """The splits that one task searches, and how it groups the hits; picklable."""

    search: SearchTask
    aggregation: Aggregation

    def run(self) -> Iterator[pa.RecordBatch]:
        """The groups of these splits."""
        layout = Layout.of(self.aggregation)
        merging = Merging(layout)
        for ref in self.search.refs:
            merging.add(self._of_split(ref, layout))
        yield from _columns_of(merging.total(), layout).to_batches()

    def _of_split(self, ref: Any, layout: Layout) -> pa.Table:
        search = self.search
        if layout.states == ROWS and not layout.keys:
            hits = count_split(search.reading, ref, search.selection)
            return pa.Table.from_arrays([pa.array([hits], pa.int64())], schema=layout.schema)
        return partial_of_hits(search.reading, ref, search.selection, self.aggregation, layout)


def grouped_frame(
    spark: Any, snapshot: Snapshot, searches: Sequence[ResolvedSearch], question: Mapping[str, Any]
) -> GroupedFrame | None:
    """The groups of the rows that all searches find; None if a condition has to be left to Spark."""
    try:
        where = row_filter(snapshot, conjunction(question["conditions"], snapshot))
    except PredicateError:
        return None
    aggregation = _aggregation(snapshot, question)
    query = all_of([query_of_statement(snapshot, one.query, one.column, with_text=True) for one in searches])
    planned = left_by_the_log(snapshot, where)
    refs = tuple(splits_to_search(snapshot, query, planned))
    task = SearchTask(snapshot.reading, refs, Selection(query, where, aggregation.columns, summed=True))
    counts = on_driver.counted(spark, task)
    shown = "aggregates of " + shown_search(snapshot, query, where, (len(planned), len(refs)), counts)
    schema = _schema(snapshot, aggregation)
    is_count = where is None and not aggregation.keys and Layout.of(aggregation).states == ROWS
    if not refs or (counts is not None and (is_count or sum(counts.values()) <= MOST_HITS)):
        if is_count:
            total = sum((counts or {}).values())
            groups = pa.table([pa.array([total], pa.int64())] * len(schema), names=schema.names)
        else:
            groups = answer(snapshot, aggregation, query, where)[0].rename_columns(schema.names)
        frame = on_driver.frame_of_groups(spark, groups, schema)
        if frame is not None:
            return GroupedFrame(frame, shown, merged=True)
    tasks = [GroupTask(one, aggregation) for one in shared_tasks(spark, task)]
    return GroupedFrame(frame_of_tasks(spark, GroupTask.run, tasks, schema), shown, merged=False)


def _aggregation(snapshot: Snapshot, question: Mapping[str, Any]) -> Aggregation:
    aggregates = tuple(
        Aggregate(f"a{at}", str(item["function"]), _column(snapshot, item.get("column")))
        for at, item in enumerate(question["aggregates"])
    )
    keys = tuple(_key(snapshot, at, item) for at, item in enumerate(question["keys"]))
    return Aggregation(keys, aggregates)


def _column(snapshot: Snapshot, name: str | None) -> Any:
    return None if name is None else column_of(snapshot.schema, name)


def _key(snapshot: Snapshot, at: int, item: Mapping[str, Any]) -> GroupKey:
    name, bucket = str(item["column"]), None
    if "step" in item:
        bucket = bucket_of(column_of(snapshot.schema, name).type, _step(snapshot, name), zone="UTC")
    return key_of(snapshot.schema, name, bucket, shown=f"k{at}")


def _step(snapshot: Snapshot, name: str) -> str:
    """How long times may be taken for one: in such a step they share hour and day in every zone."""
    least = snapshot.plan(None, columns={"min"}).files.column("min")
    bounds = pc.struct_field(least, name) if name in [field.name for field in least.type] else None
    if bounds is None or bounds.null_count or not len(bounds):
        return "1s"
    return "1m" if pc.min(bounds.cast(pa.int64())).as_py() >= _WHOLE_MINUTES else "1s"


def _schema(snapshot: Snapshot, aggregation: Aggregation) -> Any:
    table = spark_schema(snapshot.metadata.schema_string)
    schema = StructType()
    for at, key in enumerate(aggregation.keys):
        schema = schema.add(f"k{at}", table[key.column.name].dataType)
    for item in aggregation.aggregates:
        kind = (
            LongType()
            if item.function == "count" or item.column is None
            else table[item.column.name].dataType
        )
        schema = schema.add(item.name, kind)
    return schema


def _columns_of(total: pa.Table, layout: Layout) -> pa.Table:
    """Keys and aggregates; each has one state, since those of floating point are left to Spark."""
    names = [f"k{at}" for at in range(len(layout.keys))]
    columns = [total.column(name) for name in names] + [total.column(f"s{at}") for (at,) in layout.where]
    return pa.Table.from_arrays(columns, names=[*names, *(f"a{at}" for at in range(len(layout.where)))])
