"""What one task of a search does, on an executor or on the driver: opens the indexes of its splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.index.read.lookup import Term
from indextables.index.read.ranking import Statistics
from indextables.model.arrays import integers
from indextables.reading import Reading
from indextables.spark.read.arrow_scan import FILE, ROW
from indextables.split.layout import SplitRef
from indextables.split.search.metrics import SearchMetrics
from indextables.split.search.run import count_split, hits_split, search_split, statistics_split
from indextables.split.search.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class SearchTask:
    """The splits one task searches, and for what; picklable."""

    reading: Reading
    refs: tuple[SplitRef, ...]
    selection: Selection
    terms: tuple[Term, ...] = ()
    """Words whose statistics a task returns."""
    by_name: bool = True
    """Whether hits name their file by the last part of its path only."""


def count_hits(
    task: SearchTask, note: Callable[[SearchMetrics], None] = lambda _: None
) -> Iterator[tuple[str, int]]:
    """How many rows of each split the query finds, whatever the filter keeps of them."""
    every = replace(task.selection, where=None)
    for ref in task.refs:
        yield ref.path, count_split(task.reading, ref, every, note)


def statistics(task: SearchTask) -> Statistics:
    """What the splits of a task contribute to the ranking statistics."""
    total = Statistics(0)
    for ref in task.refs:
        total = total.plus(statistics_split(task.reading, ref, task.selection, task.terms))
    return total


def hits(task: SearchTask) -> Iterator[pa.RecordBatch]:
    """File and number of every row that matches."""
    for ref in task.refs:
        matching = hits_split(task.reading, ref, task.selection)
        for path, rows in _stored(ref, matching) if task.by_name else [(ref.path, matching)]:
            name = path.rpartition("/")[2] if task.by_name else path
            names = pa.array([name], pa.string()).take(pa.array([0] * len(rows), pa.int8()))
            yield pa.RecordBatch.from_arrays([names, rows], names=[FILE, ROW])


def file_names(ref: SplitRef) -> list[str]:
    """The names of the files in which the rows of a split are stored."""
    paths = [ref.path] if ref.elsewhere is None else ref.elsewhere.paths
    return [path.rpartition("/")[2] for path in paths]


def _stored(ref: SplitRef, rows: pa.Int64Array) -> Iterator[tuple[str, pa.Int64Array]]:
    """Where rows of a split are stored: paths of files, and the numbers of the rows in them."""
    if ref.elsewhere is None:
        yield ref.path, rows
        return
    for path, numbers in ref.elsewhere.places(rows.to_numpy(zero_copy_only=False)):
        yield path, integers(numbers)


def matching_rows(task: SearchTask) -> Iterator[pa.RecordBatch]:
    """The rows that match."""
    selection, left = task.selection, task.selection.limit
    for ref in task.refs:
        if left is not None and left <= 0 and not selection.score:
            return
        for rows in search_split(
            task.reading, ref, selection if selection.score else replace(selection, limit=left)
        ):
            if left is not None:
                left -= rows.num_rows
            yield from rows.to_batches()
