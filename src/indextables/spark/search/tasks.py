"""What one task of a search does, on an executor or on the driver: opens the indexes of its splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indextables.index.query.tree import Query
from indextables.index.read.lookup import Term
from indextables.index.read.ranking import Statistics
from indextables.options import Options
from indextables.spark.read.arrow_scan import FILE, ROW
from indextables.split.layout import SplitRef
from indextables.split.metrics import SearchMetrics
from indextables.split.search import count_split, hits_split, search_split, statistics_split
from indextables.storage.store import StoreSpec, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.predicate.tree import Node


@dataclass(frozen=True, slots=True)
class SearchTask:
    """The splits one task searches, and for what; picklable."""

    store: StoreSpec
    refs: tuple[SplitRef, ...]
    query: Query
    schema: pa.Schema
    options: Options
    columns: tuple[str, ...] = ()
    where: Node | None = None
    limit: int | None = None
    score: bool = False
    statistics: Statistics | None = None
    """Statistics of all rows that are ranked together."""
    terms: tuple[Term, ...] = ()
    """Words whose statistics are asked for."""
    by_name: bool = True
    """Whether hits name their file by the last part of its path only."""


def count_hits(
    task: SearchTask, note: Callable[[SearchMetrics], None] = lambda _: None
) -> Iterator[tuple[str, int]]:
    """How many rows of each split match."""
    store, options = open_store(task.store), task.options
    for ref in task.refs:
        yield ref.path, count_split(store, ref, task.query, task.schema, options=options, note=note)


def statistics(task: SearchTask) -> Statistics:
    """What the splits of a task contribute to the ranking statistics."""
    store, options = open_store(task.store), task.options
    total = Statistics(0)
    for ref in task.refs:
        total = total.plus(statistics_split(store, ref, task.query, task.schema, task.terms, options=options))
    return total


def hits(task: SearchTask) -> Iterator[pa.RecordBatch]:
    """File and number of every row that matches."""
    import pyarrow as pa

    store, options = open_store(task.store), task.options
    for ref in task.refs:
        rows = hits_split(store, ref, task.query, task.schema, options=options)
        name = ref.path.rpartition("/")[2] if task.by_name else ref.path
        names = pa.array([name], pa.string()).take(pa.array([0] * len(rows), pa.int8()))
        yield pa.RecordBatch.from_arrays([names, rows], names=[FILE, ROW])


def found_rows(task: SearchTask) -> Iterator[pa.RecordBatch]:
    """The rows that match."""
    store, options = open_store(task.store), task.options
    left = task.limit
    for ref in task.refs:
        if left is not None and left <= 0 and not task.score:
            return
        found = search_split(
            store, ref, task.query, task.schema, list(task.columns), where=task.where,
            limit=task.limit if task.score else left, score=task.score, statistics=task.statistics,
            options=options,
        )  # fmt: skip
        for rows in found:
            if left is not None:
                left -= rows.num_rows
            yield from rows.to_batches()
