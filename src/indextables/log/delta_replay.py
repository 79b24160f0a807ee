"""Replay of a Delta segment on one machine, column by column.

The tail of commits comes reduced. What is left to do is to read the wanted
parts of the checkpoint, drop the rows the tail touches, prune what is left by
the predicate and type only the rows that stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.delta_checkpoint import DeltaCheckpointReader, add_fields, read_adds
from indextables.log.delta_columns import DeltaColumns
from indextables.log.delta_files import COLUMNS, DEFAULT_COLUMNS, Wanted, files_form, raw_table, vector_ids
from indextables.log.replay import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.model.actions import AddAction
from indextables.predicate.prune import PruneMetrics, columns_needed, prune_table
from indextables.runtime import default_parallelism

_MEMO = "delta"
# Rows typed by one thread at a time; a smaller piece costs more to hand over than it gains.
_PIECE_ROWS = 125_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRequest(ReplayRequest):
    """A request about a Delta table, with what its columns are called where."""

    delta: DeltaColumns


@dataclass(slots=True)
class Stages:
    """Seconds each stage of a replay took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class DeltaColumnarEngine:
    """The local engine: Arrow arrays from the checkpoint to the answer."""

    name = "columnar"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request, in the order of the log."""
        assert isinstance(request, DeltaRequest)
        stages = Stages()
        output, filtering = wanted_columns(request)
        with stages.stage("read"):
            pieces, bytes_read = _base(request, output, filtering)
        total = sum(piece.num_rows for piece in pieces)
        with stages.stage("reconcile"):
            pieces = _without_touched(pieces, request)
            tail = raw_table(list(request.tail.adds.values()))
            pieces = [*_cut(pieces), *([tail] if tail.num_rows else [])]
        with stages.stage("prune"):
            pieces, metrics = _prune(pieces, request, filtering)
        with stages.stage("type"):
            files = _typed(pieces, request, output)
        replayed = ReplayMetrics(
            self.name,
            checkpoint_files=total,
            tail_adds=len(request.tail.adds),
            tail_removes=len(request.tail.removed),
            bytes_read=bytes_read,
            seconds=stages.seconds,
            rows_collected=files.num_rows,
        )
        return LiveFiles(files, metrics, replayed)


class DeltaReferenceEngine:
    """The rule in plain Python: one map from key to add, filled in order."""

    name = "reference"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request, in the order of the log."""
        assert isinstance(request, DeltaRequest)
        checkpoint, live = request.segment.checkpoint, {}
        if checkpoint is not None:
            live = {request.dialect.key(add): add for add in request.reader.adds(request.store, checkpoint)}
        base = len(live)
        for key in request.tail.removed:
            live.pop(key, None)
        live.update(request.tail.adds)
        output, filtering = wanted_columns(request)
        pieces, metrics = _prune([raw_table(list[AddAction](live.values()))], request, filtering)
        files = _typed(pieces, request, output)
        tail = request.tail
        return LiveFiles(files, metrics, ReplayMetrics(self.name, base, len(tail.adds), len(tail.removed)))


def wanted_columns(request: DeltaRequest) -> tuple[Wanted, Wanted | None]:
    """What the answer shows, and what the predicate has to look at (None without one)."""
    shown = DEFAULT_COLUMNS if request.columns is None else tuple(request.columns)
    output = Wanted.of([name for name in COLUMNS if name in shown], request.delta, None)
    if request.where is None:
        return output, None
    needs = columns_needed(request.where, request.partition_columns)
    names = {"partition_values"} if needs.partitions else set()
    if needs.statistics:
        names |= {"num_records", "min", "max", "null_count"}
    return output, Wanted.of(names, request.delta, needs.statistics)


def _base(request: DeltaRequest, output: Wanted, filtering: Wanted | None) -> tuple[list[pa.Table], int]:
    """Add rows of the checkpoint with every column that is wanted, one table per file."""
    checkpoint = request.segment.checkpoint
    if checkpoint is None:
        return [], 0
    assert isinstance(request.reader, DeltaCheckpointReader)
    manifest = request.reader.manifest(request.store, checkpoint)
    memo: dict[str, _Kept] = request.memo.setdefault(_MEMO, {})

    def read(path: str) -> pa.Table:
        kind = add_fields(request.store, path, checkpoint)
        names = {"path"} | output.sources(kind) | (filtering.sources(kind) if filtering else set())
        if request.tail.adds or request.tail.removed:
            names.add("deletionVector")
        kept = memo.get(path)
        if kept is not None and names <= kept.names:
            return kept.table
        table = read_adds(request.store, path, checkpoint, names)
        if "stats_parsed.numRecords" in names and _lacks_counts(table):
            # Some rows carry their statistics as text only.
            table = read_adds(request.store, path, checkpoint, {*names, "stats"})
        memo[path] = _Kept(frozenset(names), table)
        return table

    with ThreadPoolExecutor(min(default_parallelism(), max(1, len(manifest.parquet)))) as pool:
        tables = list(pool.map(read, manifest.parquet))
    if manifest.inline:
        tables.append(raw_table(manifest.inline))
    return tables, sum(table.nbytes for table in tables)


@dataclass(frozen=True, slots=True)
class _Kept:
    names: frozenset[str]
    table: pa.Table


def _lacks_counts(table: pa.Table) -> bool:
    if "stats_parsed" not in table.column_names:
        return False
    counts = pc.struct_field(table.column("stats_parsed"), "numRecords")
    return bool(counts.null_count)


def _without_touched(pieces: Sequence[pa.Table], request: DeltaRequest) -> list[pa.Table]:
    """The rows whose key no commit of the tail is about."""
    touched = cast(frozenset[tuple[str, str | None]], request.tail.touches())
    if not touched:
        return list(pieces)
    paths = pa.array(sorted({path for path, _ in touched}), pa.string())
    return [_anti_join(piece, touched, paths) for piece in pieces]


def _anti_join(piece: pa.Table, touched: frozenset[tuple[str, str | None]], paths: pa.Array) -> pa.Table:
    candidates = pc.indices_nonzero(pc.is_in(piece.column("path"), value_set=paths))
    if not len(candidates):
        return piece
    rows = piece.take(candidates)
    vectors = vector_ids(rows.column("deletionVector")) if "deletionVector" in rows.column_names else None
    ids = vectors.to_pylist() if vectors is not None else [None] * len(candidates)
    keys = zip(rows.column("path").to_pylist(), ids, strict=True)
    gone = pa.array([at for at, key in zip(candidates.to_pylist(), keys, strict=True) if key in touched])
    if not len(gone):
        return piece
    return piece.filter(pc.invert(pc.is_in(pa.array(range(piece.num_rows)), value_set=gone)))


def _cut(pieces: Sequence[pa.Table]) -> list[pa.Table]:
    """Tables of a size that threads can share."""
    return [
        piece.slice(start, _PIECE_ROWS) for piece in pieces for start in range(0, piece.num_rows, _PIECE_ROWS)
    ]


def _prune(
    pieces: Sequence[pa.Table], request: DeltaRequest, filtering: Wanted | None
) -> tuple[list[pa.Table], PruneMetrics]:
    total = sum(piece.num_rows for piece in pieces)
    metrics = PruneMetrics(considered=0, pruned_by_partition=0, skipped_by_statistics=0, kept=0)
    if request.where is None or filtering is None:
        return list(pieces), replace(metrics, considered=total, kept=total)
    where = request.where

    def prune(piece: pa.Table) -> tuple[pa.Table, PruneMetrics]:
        form = files_form(piece, request.delta, filtering, request.store)
        found = prune_table(where, form, request.schema, request.partition_columns, explain=request.explain)
        return piece.filter(found.mask), found.metrics

    kept = []
    with ThreadPoolExecutor(default_parallelism()) as pool:
        for table, seen in pool.map(prune, pieces):
            kept.append(table)
            metrics = metrics.plus(seen)
    return kept, metrics


def _typed(pieces: Sequence[pa.Table], request: DeltaRequest, output: Wanted) -> pa.Table:
    filled = [piece for piece in pieces if piece.num_rows] or [raw_table([])]

    def form(piece: pa.Table) -> pa.Table:
        return files_form(piece, request.delta, output, request.store)

    with ThreadPoolExecutor(default_parallelism()) as pool:
        return pa.concat_tables(pool.map(form, filled))
