"""The columnar engine: the checkpoint as Arrow columns, with the tail's changes applied by a row mask.

Only the columns a query needs are read, and pruning works on columns, never on actions.
What was read stays with the log handle: a refresh looks up the keys of the new commits in
the checkpoint and copies nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pyarrow as pa

from indextables.log.adds.columns import AddLeaf, build, leaves_of
from indextables.log.adds.file_table import files_schema, in_form
from indextables.log.replay.checkpoint_adds import CheckpointAdds, Columns, Mask, Rows
from indextables.log.replay.rule import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.log.replay.tail_adds import TailAdds
from indextables.model.actions import AddAction
from indextables.model.arrays import booleans, integers, truths
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.rule import Pruned, asks_for_nulls, columns_needed, prune_table
from indextables.records import dataclass

_FEW = 8
"""If fewer than 1/8 of the rows survive pruning, missing columns are fetched for those rows only."""


@dataclass(frozen=True, slots=True)
class _ColumnCache:
    """What the engine keeps for the next query: the columns of one checkpoint and of the tail's adds."""

    identity: tuple[object, ...] | None
    checkpoint: CheckpointAdds
    tail: TailAdds


@dataclass(frozen=True, slots=True)
class _ColumnPlan:
    """A request, with the columns derived from it."""

    request: ReplayRequest
    target: pa.Schema
    result: tuple[AddLeaf, ...]
    """The leaves of the result."""
    pruning: tuple[AddLeaf, ...]
    """The leaves the predicate needs."""

    @property
    def first(self) -> tuple[AddLeaf, ...]:
        """What is read for all files. With a predicate, statistics for the result are read after pruning."""
        if self.request.where is None:
            return self.result
        return (
            *self.pruning,
            *(leaf for leaf in self.result if leaf.child is None and leaf.column != "tags"),
        )


@dataclass(frozen=True, slots=True)
class _TailRows:
    """Rows of the tail that belong to the result, sorted by path."""

    arrays: Sequence[pa.Array]
    insert_at: Rows
    """For each, the row of the checkpoint before which it belongs."""


class ColumnarEngine:
    """Finds live files with Arrow, on this machine."""

    name = "columnar"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request."""
        began = time.perf_counter()
        question = _plan_columns(request)
        cached = self._cache(request)
        checkpointed, checkpoint = cached.checkpoint, request.checkpoint
        columns = checkpointed.load(request.checkpoint_store, checkpoint, question.first)
        loaded = time.perf_counter()
        adds = sorted(request.tail.adds.values(), key=attrgetter("path"))
        live = checkpointed.live(request.tail)
        new: Mask = np.ones(len(adds), dtype=np.bool_)
        metrics = PruneMetrics(int(live.sum()) + len(adds), 0, 0, int(live.sum()) + len(adds))
        if request.where is not None:
            live, new, metrics = _prune(question, cached, columns, live, adds)
        stay = [add for add, keep in zip(adds, new, strict=True) if keep]
        rows, _ = checkpointed.rows_of([add.path for add in stay])
        tail = _TailRows(cached.tail.rows(stay, question.result), rows)
        if request.where is not None and checkpoint is not None:
            batches = _chosen(question, checkpointed, columns, np.flatnonzero(live), tail)
        else:
            batches = list(_merged(question.result, checkpointed, columns, live, tail))
        if batches:
            files = in_form(pa.Table.from_batches(batches), question.target, request.store)
        else:
            files = question.target.empty_table()
        counts = ReplayMetrics(
            self.name, len(checkpointed), len(request.tail.adds), len(request.tail.removed),
            bytes_read=checkpointed.bytes_read, rows_collected=len(files),
            seconds={"read": loaded - began, "answer": time.perf_counter() - loaded},
        )  # fmt: skip
        return LiveFiles(files, metrics, counts)

    def _cache(self, request: ReplayRequest) -> _ColumnCache:
        checkpoint = request.checkpoint
        identity = None if checkpoint is None else checkpoint.identity
        cached = request.memo.get(self.name)
        if isinstance(cached, _ColumnCache) and cached.identity == identity:
            return cached
        fresh = _ColumnCache(identity, CheckpointAdds(), TailAdds())
        request.memo[self.name] = fresh
        return fresh


def _plan_columns(request: ReplayRequest) -> _ColumnPlan:
    columns = request.columns
    target = files_schema(request.schema, request.partition_columns, columns)
    everything = leaves_of(request.schema, request.partition_columns)
    result = tuple(leaf for leaf in everything if leaf.column in target.names)
    needs = columns_needed(request.where, request.partition_columns)
    bounded = {leaf.child for leaf in everything if leaf.column == "min"}
    if request.where is not None and asks_for_nulls(request.where):
        bounded = set()
    pruning = tuple(
        replace(leaf, only_if_unbounded=leaf.column == "null_count" and leaf.child in bounded)
        for leaf in everything
        if leaf.column == "num_records"
        or (leaf.column == "partition_values" and leaf.child in needs.partitions)
        or (leaf.column in {"min", "max", "null_count"} and leaf.child in needs.statistics)
    )  # fmt: skip
    return _ColumnPlan(request, target, result, pruning)


def _prune(
    question: _ColumnPlan, cached: _ColumnCache, columns: Columns, live: Mask, adds: Sequence[AddAction]
) -> tuple[Mask, Mask, PruneMetrics]:
    """The live rows of checkpoint and tail that the predicate cannot exclude, and the prune counts."""
    request, leaves = question.request, question.pruning

    def prune(table: pa.Table, among: pa.BooleanArray | None = None) -> Pruned:
        return prune_table(
            request.where, table, request.schema, request.partition_columns,
            among=among, explain=request.explain,
        )  # fmt: skip

    pruned_tail = prune(pa.Table.from_batches([build(leaves, cached.tail.rows(adds, leaves))]))
    new, metrics = truths(pruned_tail.mask), pruned_tail.metrics
    if not len(cached.checkpoint):
        return live, new, metrics
    table = pa.Table.from_batches(
        [build(leaves, [cached.checkpoint.whole(leaf, columns[leaf]) for leaf in leaves])]
    )
    whole = prune(table, booleans(live))
    return truths(whole.mask), new, whole.metrics.plus(metrics)


def _chosen(
    question: _ColumnPlan, checkpointed: CheckpointAdds, columns: Columns, rows: Rows, tail: _TailRows
) -> list[pa.RecordBatch]:
    """The rows that remain after pruning, sorted by path; columns not read before are read for these rows."""
    checkpoint = question.request.checkpoint
    assert checkpoint is not None
    store = question.request.checkpoint_store
    missing = tuple(leaf for leaf in question.result if leaf not in columns)
    if missing and len(rows) * _FEW > len(checkpointed):
        columns = {**columns, **checkpointed.load(store, checkpoint, missing)}
        missing = ()
    fetched = checkpointed.fetch(store, checkpoint, missing, rows) if missing and len(rows) else {}
    slots = np.searchsorted(rows, tail.insert_at, side="left")
    order = integers(np.insert(np.arange(len(rows)), slots, len(rows) + np.arange(len(tail.insert_at))))
    arrays = []
    for leaf, new in zip(question.result, tail.arrays, strict=True):
        old = fetched[leaf] if leaf in fetched else checkpointed.gather(columns.get(leaf, []), rows, leaf)
        arrays.append(pa.concat_arrays([old, new]).take(order) if len(new) else old)
    return [build(question.result, arrays)] if len(order) else []


def _merged(
    leaves: Sequence[AddLeaf],
    checkpointed: CheckpointAdds,
    columns: Columns,
    live: Mask,
    tail: _TailRows,
) -> Iterator[pa.RecordBatch]:
    """All live rows, sorted by path, piece by piece; a piece the tail did not change is not copied."""
    insert_at = tail.insert_at
    for at in range(checkpointed.num_pieces):
        begin, end = int(checkpointed.starts[at]), int(checkpointed.starts[at + 1])
        mask = live[begin:end]
        # The last piece also takes the tail's paths that sort after every path of the checkpoint.
        low = np.searchsorted(insert_at, begin if at else -1, side="left")
        high = np.searchsorted(insert_at, end if at + 1 < checkpointed.num_pieces else end + 1, side="left")
        pieces = [columns[leaf][at] for leaf in leaves]
        if low == high and mask.all():
            yield build(leaves, pieces)
            continue
        live_rows = np.flatnonzero(mask)
        slots = np.searchsorted(live_rows, insert_at[low:high] - begin, side="left")
        order = integers(np.insert(live_rows, slots, (end - begin) + np.arange(high - low)))
        yield build(
            leaves,
            [
                (pa.concat_arrays([piece, new[low:high]]) if low < high else piece).take(order)
                for piece, new in zip(pieces, tail.arrays, strict=True)
            ],
        )
    if not checkpointed.num_pieces and len(insert_at):
        yield build(leaves, tail.arrays)
