"""The columnar engine: the checkpoint as Arrow columns, a mask for what the tail touched, the tail beside it.

Only the columns a question needs are read, and pruning looks at columns, never
at actions. What was read stays with the log handle: a refresh finds the places
of the new commits' keys in the base and copies none of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indextables.log.add_columns import Leaf, TableForm
from indextables.log.base_files import BaseFiles, Rows, build
from indextables.log.files_table import file_uris, files_schema
from indextables.log.recent_files import RecentFiles
from indextables.log.replay import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.model.actions import AddAction
from indextables.predicate.prune import PruneMetrics, columns_needed, prune_table

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the engine keeps in a handle's memo: the columns of one checkpoint and of the adds after it."""

    identity: tuple[object, ...] | None
    base: BaseFiles
    recent: RecentFiles


@dataclass(frozen=True, slots=True)
class _Question:
    """A request with what follows from it."""

    request: ReplayRequest
    form: TableForm
    target: pa.Schema
    wanted: tuple[Leaf, ...]
    """The leaves of the answer."""
    pruning: tuple[Leaf, ...]
    """The leaves the predicate looks at."""


class ColumnarEngine:
    """Finds live files with Arrow, on this machine."""

    name = "columnar"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request."""
        began = time.perf_counter()
        question = _question(request)
        kept = self._kept(request)
        base = kept.base
        checkpoint = request.segment.checkpoint
        if checkpoint is not None:
            leaves = question.pruning if request.where is not None else question.wanted
            base.load(request.store, checkpoint, leaves, question.form)
        loaded = time.perf_counter()
        adds = sorted(request.tail.adds.values(), key=lambda add: add.path.encode())
        live, gone = _live(base, request)
        places, _ = base.places([add.path for add in adds])
        recent: Mask = np.ones(len(adds), dtype=np.bool_)
        metrics = PruneMetrics(int(live.sum()) + len(adds), 0, 0, int(live.sum()) + len(adds))
        if request.where is not None:
            live, recent, metrics = _prune(question, kept, live, gone, adds)
        if checkpoint is not None and request.where is not None:
            base.load(request.store, checkpoint, question.wanted, question.form)
        stay = [add for add, keep in zip(adds, recent, strict=True) if keep]
        tail = kept.recent.rows(stay, question.wanted)
        files = _finish(question, list(_answer(question.wanted, base, live, tail, places[recent])))
        base.shed()
        counts = ReplayMetrics(
            self.name, len(base), len(request.tail.adds), len(request.tail.removed),
            bytes_read=base.bytes_read, rows_collected=len(files),
            seconds={"read": loaded - began, "answer": time.perf_counter() - loaded},
        )  # fmt: skip
        return LiveFiles(files, metrics, counts)

    def _kept(self, request: ReplayRequest) -> _Kept:
        checkpoint = request.segment.checkpoint
        identity = None if checkpoint is None else checkpoint.identity
        found = request.memo.get(self.name)
        if isinstance(found, _Kept) and found.identity == identity:
            return found
        fresh = _Kept(identity, BaseFiles(), RecentFiles())
        request.memo[self.name] = fresh
        return fresh


def _question(request: ReplayRequest) -> _Question:
    form = TableForm(request.schema, request.partition_columns, request.store)
    columns = request.columns
    target = files_schema(request.schema, request.partition_columns, columns)
    everything = form.leaves()
    wanted = tuple(leaf for leaf in everything if leaf.column in target.names)
    needs = columns_needed(request.where, request.partition_columns)
    pruning = tuple(
        leaf for leaf in everything
        if leaf.column in {"path", "num_records"}
        or (leaf.column == "partition_values" and leaf.child in needs.partitions)
        or (leaf.column in {"min", "max", "null_count"} and leaf.child in needs.statistics)
    )  # fmt: skip
    return _Question(request, form, target, wanted, pruning)


def _live(base: BaseFiles, request: ReplayRequest) -> tuple[Mask, Rows]:
    """Which rows of the base still count, and which do not."""
    touched = [str(key) for key in request.tail.removed] + [str(key) for key in request.tail.adds]
    rows, present = base.places(touched)
    gone = np.sort(rows[present])
    live: Mask = np.ones(len(base), dtype=np.bool_)
    live[gone] = False
    return live, gone


def _prune(
    question: _Question, kept: _Kept, live: Mask, gone: Rows, adds: Sequence[AddAction]
) -> tuple[Mask, Mask, PruneMetrics]:
    """The live rows and the tail's rows that the predicate cannot exclude, and the counts."""
    base, request, leaves = kept.base, question.request, question.pruning
    tail = pa.Table.from_batches([build(leaves, kept.recent.rows(adds, leaves), len(adds))])
    found = prune_table(
        request.where, tail, request.schema, request.partition_columns, explain=request.explain
    )
    recent = found.mask.to_numpy(zero_copy_only=False)
    metrics = found.metrics
    if not len(base):
        return live, recent, metrics
    batches = [
        build(leaves, [base.piece(leaf, at) for leaf in leaves], int(base.starts[at + 1] - base.starts[at]))
        for at in range(base.num_pieces)
    ]
    table = pa.Table.from_batches(batches)
    if request.explain:
        table = table.filter(pa.array(live))
        found = prune_table(request.where, table, request.schema, request.partition_columns, explain=True)
        kept_rows = np.flatnonzero(live)[found.mask.to_numpy(zero_copy_only=False)]
        mask = np.zeros(len(base), dtype=np.bool_)
        mask[kept_rows] = True
        return mask, recent, found.metrics.plus(metrics)
    whole = prune_table(request.where, table, request.schema, request.partition_columns)
    dead = prune_table(
        request.where, table.take(pa.array(gone)), request.schema, request.partition_columns
    ).metrics
    # Rows that no longer count were pruned along: taking them out before would copy the columns.
    metrics = PruneMetrics(
        whole.metrics.considered - dead.considered + metrics.considered,
        whole.metrics.pruned_by_partition - dead.pruned_by_partition + metrics.pruned_by_partition,
        whole.metrics.skipped_by_statistics - dead.skipped_by_statistics + metrics.skipped_by_statistics,
        whole.metrics.kept - dead.kept + metrics.kept,
    )
    return live & whole.mask.to_numpy(zero_copy_only=False), recent, metrics


def _answer(
    leaves: Sequence[Leaf], base: BaseFiles, live: Mask, tail: Sequence[pa.Array], places: Rows
) -> Iterator[pa.RecordBatch]:
    """The rows that stay, in path order, piece by piece; a piece nothing happened to is not copied."""
    for at in range(base.num_pieces):
        begin, end = int(base.starts[at]), int(base.starts[at + 1])
        mask = live[begin:end]
        # The last piece also takes what comes after every path of the base.
        low = np.searchsorted(places, begin if at else -1, side="left")
        high = np.searchsorted(places, end if at + 1 < base.num_pieces else end + 1, side="left")
        rows = int(mask.sum()) + int(high - low)
        if not rows:
            continue
        pieces = [base.piece(leaf, at) for leaf in leaves]
        if low == high and rows == end - begin:
            yield build(leaves, pieces, rows)
            continue
        kept = np.flatnonzero(mask)
        if low == high:
            order = pa.array(kept)
            yield build(leaves, [piece.take(order) for piece in pieces], rows)
            continue
        slots = np.searchsorted(kept, places[low:high] - begin, side="left")
        merged = pa.array(np.insert(kept, slots, (end - begin) + np.arange(high - low)))
        columns = [
            pa.concat_arrays([piece, new[low:high]]).take(merged)
            for piece, new in zip(pieces, tail, strict=True)
        ]
        yield build(leaves, columns, rows)
    if not base.num_pieces and len(places):
        yield build(leaves, tail, len(places))


def _finish(question: _Question, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """The answer in the columns and types of the files() form."""
    target = question.target
    if not batches:
        return target.empty_table()
    table = pa.Table.from_batches(batches)
    columns: list[Any] = []
    for field in target:
        if field.name == "uri":
            columns.append(file_uris(question.request.store, table.column("path")))
        elif field.name in table.column_names:
            columns.append(table.column(field.name))
        else:
            # A struct without fields, as the partition values of a table without partitions.
            columns.append(pa.array([{}] * len(table), field.type))
    return pa.Table.from_arrays(columns, schema=target)
