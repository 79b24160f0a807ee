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
import numpy.typing as npt
import pyarrow as pa

from indextables.log.adds.columns import Leaf, build, leaves_of
from indextables.log.adds.file_table import files_schema, in_form
from indextables.log.replay.checkpoint_adds import CheckpointAdds, Columns, Rows
from indextables.log.replay.rule import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.log.replay.tail_adds import TailAdds
from indextables.model.actions import AddAction
from indextables.model.arrays import booleans
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.rule import Pruned, asks_for_nulls, columns_needed, prune_table
from indextables.records import dataclass

_FEW = 8
"""If fewer than 1/8 of the rows survive pruning, missing columns are fetched for those rows only."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the engine keeps for the next query: the columns of one checkpoint and of the tail's adds."""

    identity: tuple[object, ...] | None
    checkpoint: CheckpointAdds
    tail: TailAdds


@dataclass(frozen=True, slots=True)
class _Question:
    """A request, with the columns derived from it."""

    request: ReplayRequest
    target: pa.Schema
    wanted: tuple[Leaf, ...]
    """The leaves of the result."""
    pruning: tuple[Leaf, ...]
    """The leaves the predicate needs."""

    @property
    def first(self) -> tuple[Leaf, ...]:
        """What is read for all files. With a predicate, statistics for the result are read after pruning."""
        if self.request.where is None:
            return self.wanted
        return (
            *self.pruning,
            *(leaf for leaf in self.wanted if leaf.child is None and leaf.column != "tags"),
        )


@dataclass(frozen=True, slots=True)
class _Tail:
    """Rows of the tail that belong to the result, sorted by path, and their places in the checkpoint."""

    arrays: Sequence[pa.Array]
    places: Rows


class ColumnarEngine:
    """Finds live files with Arrow, on this machine."""

    name = "columnar"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request."""
        began = time.perf_counter()
        question = _question(request)
        kept = self._kept(request)
        checkpointed, checkpoint = kept.checkpoint, request.checkpoint
        columns = checkpointed.load(request.checkpoint_store, checkpoint, question.first)
        loaded = time.perf_counter()
        adds = sorted(request.tail.adds.values(), key=attrgetter("path"))
        live = _live(checkpointed, request)
        new: Mask = np.ones(len(adds), dtype=np.bool_)
        metrics = PruneMetrics(int(live.sum()) + len(adds), 0, 0, int(live.sum()) + len(adds))
        if request.where is not None:
            live, new, metrics = _prune(question, kept, columns, live, adds)
        stay = [add for add, keep in zip(adds, new, strict=True) if keep]
        places, _ = checkpointed.places([add.path for add in stay])
        tail = _Tail(kept.tail.rows(stay, question.wanted), places)
        if request.where is not None and checkpoint is not None:
            batches = _chosen(question, checkpointed, columns, np.flatnonzero(live), tail)
        else:
            batches = list(_merged(question.wanted, checkpointed, columns, live, tail))
        files = question.target.empty_table()
        if batches:
            files = in_form(pa.Table.from_batches(batches), question.target, request.store)
        counts = ReplayMetrics(
            self.name, len(checkpointed), len(request.tail.adds), len(request.tail.removed),
            bytes_read=checkpointed.bytes_read, rows_collected=len(files),
            seconds={"read": loaded - began, "answer": time.perf_counter() - loaded},
        )  # fmt: skip
        return LiveFiles(files, metrics, counts)

    def _kept(self, request: ReplayRequest) -> _Kept:
        checkpoint = request.checkpoint
        identity = None if checkpoint is None else checkpoint.identity
        found = request.memo.get(self.name)
        if isinstance(found, _Kept) and found.identity == identity:
            return found
        fresh = _Kept(identity, CheckpointAdds(), TailAdds())
        request.memo[self.name] = fresh
        return fresh


def _question(request: ReplayRequest) -> _Question:
    columns = request.columns
    target = files_schema(request.schema, request.partition_columns, columns)
    everything = leaves_of(request.schema, request.partition_columns)
    wanted = tuple(leaf for leaf in everything if leaf.column in target.names)
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
    return _Question(request, target, wanted, pruning)


def _live(checkpointed: CheckpointAdds, request: ReplayRequest) -> Mask:
    """Which rows of the checkpoint are still live: those that the tail has neither replaced nor removed."""
    touched = [str(key) for key in request.tail.removed] + [str(key) for key in request.tail.adds]
    rows, present = checkpointed.places(touched)
    live: Mask = np.ones(len(checkpointed), dtype=np.bool_)
    live[rows[present]] = False
    return live


def _prune(
    question: _Question, kept: _Kept, columns: Columns, live: Mask, adds: Sequence[AddAction]
) -> tuple[Mask, Mask, PruneMetrics]:
    """The live rows of checkpoint and tail that the predicate cannot exclude, and the prune counts."""
    request, leaves = question.request, question.pruning

    def prune(table: pa.Table, among: pa.BooleanArray | None = None) -> Pruned:
        return prune_table(
            request.where, table, request.schema, request.partition_columns,
            among=among, explain=request.explain,
        )  # fmt: skip

    found = prune(pa.Table.from_batches([build(leaves, kept.tail.rows(adds, leaves))]))
    new, metrics = found.mask.to_numpy(zero_copy_only=False), found.metrics
    if not len(kept.checkpoint):
        return live, new, metrics
    table = pa.Table.from_batches(
        [build(leaves, [kept.checkpoint.whole(leaf, columns[leaf]) for leaf in leaves])]
    )
    whole = prune(table, booleans(live))
    return whole.mask.to_numpy(zero_copy_only=False), new, whole.metrics.plus(metrics)


def _chosen(
    question: _Question, checkpointed: CheckpointAdds, columns: Columns, rows: Rows, tail: _Tail
) -> list[pa.RecordBatch]:
    """The rows that remain after pruning, sorted by path; columns not read before are read for these rows."""
    checkpoint = question.request.checkpoint
    assert checkpoint is not None
    store = question.request.checkpoint_store
    missing = tuple(leaf for leaf in question.wanted if leaf not in columns)
    if missing and len(rows) * _FEW > len(checkpointed):
        columns = {**columns, **checkpointed.load(store, checkpoint, missing)}
        missing = ()
    fetched = checkpointed.fetch(store, checkpoint, missing, rows) if missing and len(rows) else {}
    slots = np.searchsorted(rows, tail.places, side="left")
    order = pa.array(np.insert(np.arange(len(rows)), slots, len(rows) + np.arange(len(tail.places))))
    arrays = []
    for leaf, new in zip(question.wanted, tail.arrays, strict=True):
        old = fetched[leaf] if leaf in fetched else checkpointed.gather(columns.get(leaf, []), rows, leaf)
        arrays.append(pa.concat_arrays([old, new]).take(order) if len(new) else old)
    return [build(question.wanted, arrays)] if len(order) else []


def _merged(
    leaves: Sequence[Leaf],
    checkpointed: CheckpointAdds,
    columns: Columns,
    live: Mask,
    tail: _Tail,
) -> Iterator[pa.RecordBatch]:
    """All live rows, sorted by path, piece by piece; a piece the tail did not change is not copied."""
    places = tail.places
    for at in range(checkpointed.num_pieces):
        begin, end = int(checkpointed.starts[at]), int(checkpointed.starts[at + 1])
        mask = live[begin:end]
        # The last piece also takes the tail's paths that sort after every path of the checkpoint.
        low = np.searchsorted(places, begin if at else -1, side="left")
        high = np.searchsorted(places, end if at + 1 < checkpointed.num_pieces else end + 1, side="left")
        pieces = [columns[leaf][at] for leaf in leaves]
        if low == high and mask.all():
            yield build(leaves, pieces)
            continue
        kept = np.flatnonzero(mask)
        slots = np.searchsorted(kept, places[low:high] - begin, side="left")
        order = pa.array(np.insert(kept, slots, (end - begin) + np.arange(high - low)))
        yield build(
            leaves,
            [
                (pa.concat_arrays([piece, new[low:high]]) if low < high else piece).take(order)
                for piece, new in zip(pieces, tail.arrays, strict=True)
            ],
        )
    if not checkpointed.num_pieces and len(places):
        yield build(leaves, tail.arrays)
