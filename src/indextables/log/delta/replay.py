"""Replays a Delta segment on one machine, column by column.

The commits of the tail arrive reduced to one entry per key. A checkpoint is cut into row
groups, each a task: read the wanted columns, drop the rows the tail touches, prune the
rest by the predicate, and type the rows that remain.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import cast

import pyarrow as pa

from indextables.lazy import pc
from indextables.log.delta.checkpoint.large import ROW, local_file, read_adds_with_texts, statistics_of
from indextables.log.delta.checkpoint.reader import AddRows, DeltaCheckpointReader, pieces_of, read_adds
from indextables.log.delta.columns import DeltaColumns, SchemaLeaf
from indextables.log.delta.files.file_table import (
    COLUMNS,
    DEFAULT_COLUMNS,
    STATISTICS,
    FileProjection,
    decimal_digits,
    files_form,
    raw_table,
    statistics_paths,
    vector_ids,
)
from indextables.log.delta.files.text import DOUBLE_DIGITS, json_texts, key_paths, text_column
from indextables.log.replay.rule import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.model.actions import AddAction
from indextables.model.arrays import booleans, from_values, scalar, whole
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.prune.rule import asks_for_nulls, columns_needed, prune_table
from indextables.records import dataclass
from indextables.runtime import default_parallelism, in_threads

_MEMO = "delta"
# Rows per task when a file was read as a whole: at most, and at least where there are enough.
_PART_ROWS, _LEAST_ROWS = 125_000, 20_000
# If fewer than 1/8 of the rows have no bounds, their null counts are fetched for those rows only.
_FEW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRequest(ReplayRequest):
    """A replay request for a Delta table, with the logical and physical names of its columns."""

    delta: DeltaColumns
    only_with_vectors: bool = False
    """Leave out, and do not count, the files without a deletion vector."""


@dataclass(slots=True)
class Stages:
    """Seconds each stage of a replay took, summed over threads."""

    seconds: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure one stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + spent


class DeltaColumnarEngine:
    """The local engine: works on Arrow arrays from the checkpoint to the result."""

    name = "columnar"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request, in the order of the log."""
        assert isinstance(request, DeltaRequest)
        work = _Work(request)
        pieces, inline = work.pieces()
        tail = work.tail()
        loads = work.tasks(pieces)
        # What is empty costs as many calls of Arrow as what is not; one result is needed for its columns.
        loads += [work.in_memory(inline, base=True)] if inline.num_rows else []
        loads += [work.in_memory(tail, base=False)] if tail.num_rows or not loads else []
        results = list(in_threads(lambda load: load(), loads, default_parallelism()))
        files = pa.concat_tables(part.files for part in results)
        metrics = PruneMetrics(reasons=pa.array([], pa.string()) if request.explain else None)
        for part in results:
            metrics = metrics.plus(part.metrics)
        replayed = ReplayMetrics(
            self.name,
            checkpoint_files=sum(part.base_rows for part in results),
            tail_adds=len(request.tail.adds),
            tail_removes=len(request.tail.removed),
            bytes_read=sum(part.bytes_read for part in results),
            seconds=work.stages.seconds,
            rows_collected=files.num_rows,
        )
        return LiveFiles(files, metrics, replayed)


class DeltaReferenceEngine:
    """The replay rule in plain Python: one map from key to add, filled in log order."""

    name = "reference"

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request, in the order of the log."""
        assert isinstance(request, DeltaRequest)
        checkpoint, live = request.segment.checkpoint, {}
        if checkpoint is not None:
            live = {request.dialect.key(add): add for add in request.reader.adds(request.store, checkpoint)}
        base, tail = len(live), request.tail
        for key in tail.removed:
            live.pop(key, None)
        live.update(tail.adds)
        work = _Work(request)
        result = work.in_memory(raw_table(list[AddAction](live.values())), base=False)()
        metrics = ReplayMetrics(self.name, base, len(tail.adds), len(tail.removed))
        return LiveFiles(result.files, result.metrics, metrics)


def tail_files(request: DeltaRequest) -> tuple[pa.Table, PruneMetrics]:
    """The files that the commits after the checkpoint add, pruned and typed."""
    work = _Work(request)
    result = work.in_memory(work.tail(), base=False)()
    return result.files, result.metrics


def checkpoint_pieces(request: DeltaRequest) -> tuple[list[AddRows], pa.Table]:
    """The row groups of the checkpoint's files, and the adds its top-level file holds itself."""
    return _Work(request).pieces()


def projections_of(request: DeltaRequest) -> tuple[FileProjection, FileProjection | None]:
    """The columns the result shows, and those the predicate needs (None without a predicate)."""
    shown = DEFAULT_COLUMNS if request.columns is None else tuple(request.columns)
    output = FileProjection.of([name for name in COLUMNS if name in shown], request.delta, None)
    if request.where is None:
        return output, None
    needs = columns_needed(request.where, request.partition_columns)
    names = {"partition_values"} if needs.partitions else set()
    if needs.statistics:
        names |= STATISTICS
    return output, FileProjection.of(names, request.delta, needs.statistics)


@dataclass(frozen=True, slots=True)
class _TypedFiles:
    files: pa.Table
    metrics: PruneMetrics
    base_rows: int = 0
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Some adds that are live and may match, not typed yet; and what they are left of."""

    raw: pa.Table
    metrics: PruneMetrics
    base_rows: int = 0
    bytes_read: int = 0

    def with_documents(self, documents: pa.Array, output: FileProjection) -> _Candidates:
        """The same adds with their statistics documents, which have more than the texts cut out of them."""
        raw = self.raw
        if output.leaves:
            raw = raw.drop_columns([name for name in raw.column_names if name.startswith(text_column(("",)))])
        return replace(self, raw=raw.append_column("stats", documents))


class _Memo:
    """Columns read from a checkpoint, kept within a memory budget for the next scan of the same snapshot."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, tuple[int, ...]], tuple[frozenset[str], pa.Table]] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self._reading: dict[tuple[str, tuple[int, ...]], threading.Lock] = {}

    def reading(self, piece: AddRows) -> threading.Lock:
        """Held by the scan that reads a row group, so that scans at the same time read it once."""
        with self._lock:
            return self._reading.setdefault((piece.path, piece.groups), threading.Lock())

    def get(self, piece: AddRows, names: set[str]) -> pa.Table | None:
        """The rows of a row group, if all the wanted columns are kept."""
        with self._lock:
            entry = self._tables.get((piece.path, piece.groups))
        return None if entry is None or not names <= entry[0] else entry[1]

    def keep(self, piece: AddRows, names: set[str], table: pa.Table, budget: int) -> None:
        """Keep the rows of a row group while the budget lasts, replacing an entry with fewer columns."""
        key = (piece.path, piece.groups)
        with self._lock:
            before = self._tables.get(key)
            growth = table.nbytes - (0 if before is None else before[1].nbytes)
            if self._bytes + growth <= budget:
                self._tables[key] = (frozenset(names), table)
                self._bytes += growth


class _Work:
    """One replay, divided into tasks for threads."""

    def __init__(self, request: DeltaRequest) -> None:
        self._request = request
        self._output, self._filtering = projections_of(request)
        self.stages = Stages()

    @cached_property
    def _touched(self) -> frozenset[tuple[str, str | None]]:
        # Computed only when needed: for a tail that is not decoded yet, it means reading every commit.
        return cast("frozenset[tuple[str, str | None]]", self._request.tail.touches())

    @cached_property
    def _touched_paths(self) -> frozenset[str]:
        return frozenset(path for path, _ in self._touched)

    @cached_property
    def _touched_array(self) -> pa.Array:
        return from_values(list(self._touched_paths), pa.string())

    def pieces(self) -> tuple[list[AddRows], pa.Table]:
        """Row groups of the checkpoint, and the adds its top-level file holds itself."""
        request, checkpoint = self._request, self._request.segment.checkpoint
        if checkpoint is None:
            return [], raw_table([])
        assert isinstance(request.reader, DeltaCheckpointReader)
        with self.stages.stage("open"):
            manifest = request.reader.manifest(request.store, checkpoint)
            pieces = [
                piece for path in manifest.parquet for piece in pieces_of(request.store, path, checkpoint)
            ]
        return pieces, raw_table(manifest.inline)

    def tail(self) -> pa.Table:
        """The adds of the commits after the checkpoint, with the wanted fields."""
        names = self._output.sources(None) | (
            set() if self._filtering is None else self._filtering.sources(None)
        )
        return raw_table(list(self._request.tail.adds.values()), names)

    def tasks(self, pieces: Sequence[AddRows]) -> list[Callable[[], _TypedFiles]]:
        """One task per row group, from the file to the result."""
        tasks: list[Callable[[], _TypedFiles]] = []
        for path in dict.fromkeys(piece.path for piece in pieces):
            groups = [piece for piece in pieces if piece.path == path]
            file = self._large_file(groups)
            if file is None:
                tasks += [self._task(piece) for piece in groups]
            else:
                tasks += self._large_tasks(file, groups)
        return tasks

    def _large_tasks(self, file: str, groups: Sequence[AddRows]) -> list[Callable[[], _TypedFiles]]:
        """The result for a large file, which is read and pruned here; the tasks type what is left of it."""
        parts = list(
            in_threads(self._candidates, _parts(self._read_large(file, groups)), default_parallelism())
        )
        if "stats" in self._output.columns or self._output.leaves:
            with self.stages.stage("read"):
                numbers = pa.concat_arrays([whole(part.raw.column(ROW)) for part in parts])
                documents = statistics_of(file, numbers)
            starts = accumulate((part.raw.num_rows for part in parts), initial=0)
            parts = [
                part.with_documents(documents[start:][: part.raw.num_rows], self._output)
                for start, part in zip(starts, parts, strict=False)
            ]
        return [partial(self._typed, part) for part in parts]

    def _task(self, piece: AddRows) -> Callable[[], _TypedFiles]:
        return lambda: self._typed_files(self._read(piece), base=True)

    def _large_file(self, groups: Sequence[AddRows]) -> str | None:
        """The file DuckDB should read: large, local, and with JSON statistics that the predicate needs."""
        filtering = self._filtering
        if filtering is None or "stats" not in filtering.sources(groups[0].add):
            return None
        if decimal_digits(filtering.leaves) > DOUBLE_DIGITS:
            return None
        return local_file(self._request.store, groups)

    def _read_large(self, file: str, groups: Sequence[AddRows]) -> pa.Table:
        assert self._filtering is not None
        assert self._request.where is not None
        all_groups, leaves = AddRows(groups[0].path, (), groups[0].add), self._filtering.leaves
        asks = asks_for_nulls(self._request.where) or not all(leaf.comparable for leaf in leaves)
        texts = statistics_paths(leaves, nulls=asks)
        names = self._names(all_groups) | {text_column(path) for path in texts}
        memo: _Memo = self._request.memo.setdefault(_MEMO, _Memo())
        with memo.reading(all_groups):
            rows = memo.get(all_groups, names)
            if rows is not None:
                return rows
            with self.stages.stage("read"):
                fields = self._names(all_groups)
                rows = read_adds_with_texts(file, all_groups.add, fields, texts)
                bare = None if asks else whole(_without_bounds(rows, leaves))
                if bare is not None and bare.true_count * _FEW > rows.num_rows:
                    rows = read_adds_with_texts(file, all_groups.add, fields, statistics_paths(leaves))
                elif bare is not None and bare.true_count:
                    rows = _with_null_counts(rows, bare, file, leaves)
            memo.keep(all_groups, names, rows, self._request.options.replay.local_memory)
        return rows

    def in_memory(self, raw: pa.Table, *, base: bool) -> Callable[[], _TypedFiles]:
        """The result for adds that are in memory already."""
        return lambda: self._typed_files(raw, base=base)

    def _typed_files(self, raw: pa.Table, *, base: bool) -> _TypedFiles:
        return self._typed(self._candidates(raw, base=base))

    def _candidates(self, raw: pa.Table, *, base: bool = True) -> _Candidates:
        """What reconciliation and pruning leave of some adds."""
        rows, size = (raw.num_rows, raw.nbytes) if base else (0, 0)
        if self._request.only_with_vectors:
            raw = _with_vectors(raw)
        live = None
        if base:
            with self.stages.stage("reconcile"):
                live = self._live(raw)
        with self.stages.stage("prune"):
            raw, metrics = self._pruned(raw, live)
        return _Candidates(raw, metrics, rows, size)

    def _typed(self, candidates: _Candidates) -> _TypedFiles:
        with self.stages.stage("type"):
            files = files_form(candidates.raw, self._request.delta, self._output, self._request.store)
        return _TypedFiles(files, candidates.metrics, candidates.base_rows, candidates.bytes_read)

    def _read(self, piece: AddRows) -> pa.Table:
        request, checkpoint = self._request, self._request.segment.checkpoint
        assert checkpoint is not None
        names = self._names(piece)
        memo: _Memo = request.memo.setdefault(_MEMO, _Memo())
        with memo.reading(piece):
            cached = memo.get(piece, names)
            if cached is not None:
                return cached
            with self.stages.stage("read"):
                table = read_adds(request.store, piece, checkpoint, names)
                if "stats_parsed.numRecords" in names and "stats" not in names and _lacks_counts(table):
                    # Some rows have their statistics only as JSON text.
                    table = read_adds(request.store, piece, checkpoint, {*names, "stats"})
            memo.keep(piece, names, table, request.options.replay.local_memory)
        return table

    def _names(self, piece: AddRows) -> set[str]:
        """The fields of `add` that the result, the predicate and the reconciliation with the tail need."""
        names = {"path"} | self._output.sources(piece.add)
        if self._filtering is not None:
            names |= self._filtering.sources(piece.add)
        needs_vectors = self._touched or self._request.only_with_vectors
        return names | {"deletionVector"} if needs_vectors else names

    def _live(self, raw: pa.Table) -> pa.BooleanArray | None:
        """Which rows have a key that does not occur in the tail; None for all of them."""
        if not self._touched or not raw.num_rows:
            return None
        paths = key_paths(raw.column("path"))
        if len(self._touched_paths) > raw.num_rows:
            # Arrow makes a table of all these paths each time it is asked.
            hit = booleans(path in self._touched_paths for path in paths.to_pylist())
        else:
            hit = pc.is_in(paths, value_set=self._touched_array)
        candidates = pc.indices_nonzero(hit)
        if not len(candidates):
            return None
        rows = raw.take(candidates)
        has_vectors = "deletionVector" in rows.column_names
        ids = vector_ids(rows.column("deletionVector")).to_pylist() if has_vectors else [None] * rows.num_rows
        keys = list(zip(paths.take(candidates).to_pylist(), ids, strict=True))
        if all(key in self._touched for key in keys):
            return pc.invert(hit)
        # A path that occurs with several deletion vectors, of which only some were removed.
        spared = iter(key not in self._touched for key in keys)
        return booleans(not here or next(spared) for here in hit.to_pylist())

    def _pruned(self, raw: pa.Table, live: pa.BooleanArray | None) -> tuple[pa.Table, PruneMetrics]:
        """The live rows that the predicate cannot exclude; None means that all rows are live."""
        request = self._request
        if request.where is None or self._filtering is None:
            raw = raw if live is None else raw.filter(live)
            rows = raw.num_rows
            reasons = pa.nulls(rows, pa.string()) if request.explain else None
            return raw, PruneMetrics(considered=rows, kept=rows, reasons=reasons)
        form = files_form(raw, request.delta, self._filtering, request.store)
        pruned = prune_table(
            request.where,
            form,
            request.schema,
            request.partition_columns,
            among=live,
            explain=request.explain,
        )
        is_whole = pruned.metrics.kept == raw.num_rows
        return (raw if is_whole else raw.filter(pruned.mask)), pruned.metrics


def _without_bounds(rows: pa.Table, leaves: Sequence[SchemaLeaf]) -> pa.Array:
    """Which rows have neither a minimum nor a maximum of some column."""
    bare = pa.repeat(scalar(False, pa.bool_()), rows.num_rows)
    for leaf in leaves:
        low, high = (
            pc.is_null(rows.column(text_column((name, *leaf.physical))))
            for name in ("minValues", "maxValues")
        )
        bare = pc.or_(bare, pc.and_(low, high))
    return bare


def _with_null_counts(
    rows: pa.Table, bare: pa.BooleanArray, file: str, leaves: Sequence[SchemaLeaf]
) -> pa.Table:
    """Add the null counts of the rows without bounds. Of the others, a bound already proves a value."""
    present = set(rows.column_names)
    paths = [path for path in statistics_paths(leaves) if text_column(path) not in present]
    documents = statistics_of(file, whole(rows.column(ROW)).filter(bare))
    for path, texts in zip(paths, json_texts(documents, paths), strict=True):
        column = pc.replace_with_mask(pa.nulls(rows.num_rows, pa.string()), bare, texts)
        rows = rows.append_column(text_column(path), column)
    return rows


def _with_vectors(raw: pa.Table) -> pa.Table:
    if "deletionVector" not in raw.column_names:
        return raw.slice(0, 0)
    return raw.filter(pc.is_valid(vector_ids(raw.column("deletionVector"))))


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """A table in parts for tasks, cut where its chunks end if those are large enough: joining them copies."""
    gathered: list[pa.RecordBatch] = []
    for batch in rows.to_batches(_PART_ROWS):
        gathered.append(batch)
        if sum(part.num_rows for part in gathered) >= _LEAST_ROWS:
            yield pa.Table.from_batches(gathered)
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered)


def _lacks_counts(table: pa.Table) -> bool:
    if "stats_parsed" not in table.column_names:
        return False
    return bool(pc.struct_field(table.column("stats_parsed"), "numRecords").null_count)
