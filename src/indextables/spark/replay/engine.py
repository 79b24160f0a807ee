"""Replay on the cluster, for tables whose file list is too large for one machine.

The commits after the checkpoint are reduced on the driver if they are few; large ones are
decoded and reduced by tasks. The checkpoint stays on the executors. An anti-join drops
the rows whose keys the commits touch, the predicate prunes the rest, and only what
remains is sent to the driver. `replay_frame` returns the same frame without collecting
it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.errors import CorruptLogError, Error
from indextables.log.adds.columns import tabulate
from indextables.log.adds.file_table import file_uris, files_schema
from indextables.log.delta.columns import DeltaColumns
from indextables.log.delta.files.file_table import COLUMNS, STATISTICS, FileProjection, files_form, raw_table
from indextables.log.delta.replay import DeltaRequest, checkpoint_pieces, projections_of, tail_files
from indextables.log.replay.long_tail import LongTail
from indextables.log.replay.reference import prune
from indextables.log.replay.rule import LiveFiles, ReplayMetrics, ReplayRequest, Sums, Tail
from indextables.log.replay.sums import sums_of
from indextables.predicate.prune.metrics import PruneMetrics
from indextables.predicate.tree import Column as TreeColumn
from indextables.predicate.tree import Node
from indextables.spark.errors import own_error
from indextables.spark.replay import delta_adds, native_adds
from indextables.spark.replay.commit_tasks import KEY, VECTOR, AddForm, newest_adds, touched_keys
from indextables.spark.replay.delta_adds import DeltaAdds
from indextables.spark.replay.form import in_micros, spark_schema
from indextables.spark.replay.pushdown import Pushable, pushable
from indextables.spark.replay.shared import FrameColumns, SharedFrame, needs_of
from indextables.spark.replay.skipping import FileColumns, Skipping, skipping
from indextables.spark.versions import arrow_of_frame, frame_of_arrow
from indextables.spark.workers import default_width

logger = logging.getLogger(__name__)

_MEMO = "spark"
_MOST_PARTITIONS = 50
_DAMAGE = (
    "FAILED_READ_FILE",
    "Encountered error while reading file",  # the same on Spark 3.5
    "is not a Parquet file",
    "FileNotFoundException",
    "CANNOT_READ_FILE_FOOTER",
)
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Live:
    """The live rows of a checkpoint on the cluster, before any predicate."""

    frame: DataFrame

    def columns(self, request: ReplayRequest) -> FileColumns:
        """Where its rows have the values that the columns of a predicate need."""
        if not isinstance(request, DeltaRequest):
            return present_columns(self.frame)
        leaves, partitions = request.delta.leaves, request.delta.physical_partitions()

        def physical(column: TreeColumn) -> str | None:
            if column.is_one_of(partitions):
                return partitions[column.name]
            leaf = leaves.get(column.path)
            return None if leaf is None else ".".join(leaf.physical)

        return present_columns(self.frame, physical)


class SparkEngine:
    """The distributed engine; it keeps nothing but the session."""

    name = "spark"

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def replay(self, request: ReplayRequest) -> LiveFiles:
        """Return the live files of the request: only those reach this process."""
        started = time.perf_counter()
        live = self.live(request)
        planned = time.perf_counter()
        tail, metrics = _tail(request)
        collected = on_cluster = 0
        if live is not None:
            with _ours(request):
                rows, seen = self._collect(live, request)
            collected, on_cluster = rows.num_rows, seen.considered
            metrics = seen.plus(metrics)
            tail = pa.concat_tables([rows, tail.select(rows.column_names)])
        if not isinstance(request, DeltaRequest):
            tail = tail.sort_by("path")
        seconds = {"plan": planned - started, "run": time.perf_counter() - planned}
        return LiveFiles(tail, metrics, _metrics(request, seconds, collected, on_cluster))

    def sums(self, request: ReplayRequest) -> Sums:
        """Sums of the request's columns over the live files: only they reach this process."""
        started = time.perf_counter()
        names = sorted(request.columns or ())
        recent = sums_of(_tail(request)[0], names)
        files, sums, counts, on_cluster = recent.num_files, recent.sums, recent.counts, 0
        # Not shared: a sum reads other columns than a scan, and the snapshot caches the sum itself.
        live = self._for(request, needs_of(request))
        if live is not None:
            columns = {name: _summed(name, request) for name in names}
            with _ours(request):
                row = live.frame.agg(
                    F.count(F.lit(1)),
                    *(F.count(counted) for counted, _ in columns.values()),
                    *(F.sum(columns[name][1]) for name in sums),
                ).first()
            assert row is not None
            on_cluster = row[0]
            counts = {name: counts[name] + row[1 + at] for at, name in enumerate(names)}
            there = row[1 + len(names) :]
            sums = {name: sums[name] + (there[at] or 0) for at, name in enumerate(sums)}
        seconds = {"run": time.perf_counter() - started}
        return Sums(files + on_cluster, sums, counts, _metrics(request, seconds, 0, on_cluster))

    def live(self, request: ReplayRequest) -> Live | None:
        """The rows of the checkpoint that are still live; scans of one version share them."""
        checkpoint = request.segment.checkpoint
        if checkpoint is None and not isinstance(request.tail, LongTail):
            return None
        key = (request.segment.version, checkpoint and checkpoint.identity, id(self._spark))
        needs = needs_of(request)
        with _lock:
            shared = request.memo.get(_MEMO)
            if isinstance(shared, SharedFrame) and shared.key == key:
                if shared.covers(needs):
                    return Live(shared.again(needs))
                # Scans that take turns are to find what both of them use.
                needs = needs.with_columns(shared.needs)
            live = self._for(request, needs)
            if live is not None:
                request.memo[_MEMO] = SharedFrame(key, needs, live.frame, request)
            return live

    def _for(self, request: ReplayRequest, needs: FrameColumns) -> Live | None:
        """A frame with what is needed, by physical names: all requests of a version have them in common."""
        names = request.delta.by_physical_names() if isinstance(request, DeltaRequest) else None
        return self._live(request, needs, names)

    def whole(self, request: ReplayRequest) -> Live | None:
        """The same with every column and statistic, for a frame whose queries come later."""
        if request.segment.checkpoint is None and not isinstance(request.tail, LongTail):
            return None
        if isinstance(request, DeltaRequest):
            return self._live(request, None, request.delta)
        return self._live(request, needs_of(request), None)

    def _live(
        self, request: ReplayRequest, needs: FrameColumns | None, names: DeltaColumns | None
    ) -> Live | None:
        if isinstance(request, DeltaRequest):
            assert names is not None
            frame = self._delta_live(request, needs, names)
            return None if frame is None else Live(frame)
        assert needs is not None
        checkpoint, columns = request.segment.checkpoint, sorted(needs.columns)
        base = None
        if checkpoint is not None:
            width = self._width(request)
            base = native_adds.checkpoint_frame(self._spark, request, checkpoint, columns, width)
        frame = self._with_tail(base, request, native_adds.native_adds(request, columns))
        return None if frame is None else Live(frame)

    def _delta_live(
        self, request: DeltaRequest, needs: FrameColumns | None, names: DeltaColumns
    ) -> DataFrame | None:
        pieces, inline = checkpoint_pieces(request)
        columns = None if needs is None else needs.statistics
        frames = []
        if pieces:
            frames.append(delta_adds.checkpoint_frame(self._spark, request.store, pieces, names, columns))
        if inline.num_rows:
            frames.append(self._delta_frame(inline, names, columns))
        base = reduce(_joined, frames) if frames else None
        if base is not None and request.options.replay.num_partitions is not None:
            base = base.repartition(request.options.replay.num_partitions, "path")
        form = DeltaAdds.whole(names)
        if needs is not None:
            form = DeltaAdds.needed(names, needs.columns, needs.statistics)
        return self._with_tail(base, request, form)

    def _with_tail(self, base: DataFrame | None, request: ReplayRequest, form: AddForm) -> DataFrame | None:
        """The rows of the checkpoint that the tail leaves, and the adds of the tail that are on executors."""
        if not isinstance(request.tail, LongTail):
            return None if base is None else self._untouched(base, request)
        tail = (self._spark, request.store, request.tail, self._width(request), form)
        adds = newest_adds(*tail)
        return adds if base is None else _joined(_without(base, touched_keys(*tail), request), adds)

    def _width(self, request: ReplayRequest) -> int:
        return request.options.replay.num_partitions or min(_MOST_PARTITIONS, default_width(self._spark))

    def _untouched(self, frame: DataFrame, request: ReplayRequest) -> DataFrame:
        """The rows whose key does not occur in the tail."""
        touched = [key if isinstance(key, tuple) else (key, None) for key in request.tail.touches()]
        if not touched:
            return frame
        keys = pa.table(
            {
                KEY: pa.array([path for path, _ in touched], pa.string()),
                VECTOR: pa.array([dv or "" for _, dv in touched], pa.string()),
            }
        )
        return _without(frame, F.broadcast(frame_of_arrow(self._spark, keys)), request)

    def _delta_frame(
        self, raw: pa.Table, names: DeltaColumns, statistics: frozenset[str] | None = None
    ) -> DataFrame:
        """Adds that are on the driver, in the form of the checkpoint's."""
        struct = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in raw.columns], fields=list(raw.schema)
        )
        adds = frame_of_arrow(self._spark, pa.table({delta_adds.ADD: struct}))
        # Their paths are decoded already.
        form = delta_adds.files_frame(adds, names, statistics)
        return form.withColumn("path", F.col(delta_adds.raw_column("path")))

    def _collect(self, live: Live, request: ReplayRequest) -> tuple[pa.Table, PruneMetrics]:
        files = live.columns(request)
        conditions = skipping(request.where, files, frozenset(request.partition_columns))
        output, frame = _output(live, request), live.frame
        if isinstance(request, DeltaRequest) and request.only_with_vectors:
            frame = frame.where(F.col(delta_adds.raw_column("deletionVector"))["storageType"].isNotNull())
        if request.where is None:
            rows = arrow_of_frame(frame.select(*output))
            counts = PruneMetrics(considered=rows.num_rows, kept=rows.num_rows)
            return _finished(rows, request), counts
        pushed = pushable(request.where, frame, request)
        if pushed is not None:
            considered, after, crossed = _counted(frame, conditions, pushed)
            narrowed = frame if crossed else frame.where(pushed.condition)
            rows = arrow_of_frame(narrowed.where(conditions.everything).select(*output))
        else:
            seen = Observation()
            counted = frame.withColumn("__keep", conditions.everything).observe(
                seen, F.count(F.lit(1)).alias("considered"), _count_if(conditions.by_partition).alias("after")
            )
            rows = arrow_of_frame(counted.where("__keep").select(*output))
            considered, after = seen.get["considered"], seen.get["after"] or 0
        left = rows.num_rows
        metrics = PruneMetrics(considered, considered - after, after - left, left)
        return _finished(rows, request), metrics


def _joined(one: DataFrame, two: DataFrame) -> DataFrame:
    return one.unionByName(two, allowMissingColumns=True)


def _without(frame: DataFrame, touched: DataFrame, request: ReplayRequest) -> DataFrame:
    """The files whose key is not among those the commits touched."""
    if not isinstance(request, DeltaRequest):
        # The path is the key of a native log.
        return frame.join(touched, frame["path"] == touched[KEY], "left_anti")
    path, vector = delta_adds.key_path(frame["path"]), F.coalesce(frame["dv"], F.lit(""))
    return frame.join(touched, (path == touched[KEY]) & (vector == touched[VECTOR]), "left_anti")


@contextmanager
def _ours(request: ReplayRequest) -> Iterator[None]:
    """Turn what Spark says of a damaged or missing log file into our error, so that an older state serves."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        ours = own_error(text)
        if isinstance(ours, Error):
            raise ours from error
        if any(mark in text for mark in _DAMAGE):
            raise CorruptLogError(
                f"a checkpoint file of version {request.segment.version} of {request.store.uri} could not be "
                f"read on the cluster: {text.splitlines()[0]}",
                version=request.segment.version,
                uri=request.store.uri,
            ) from error
        raise


def present_columns(
    frame: DataFrame, named: Callable[[TreeColumn], str | None] = lambda column: column.name
) -> FileColumns:
    """The columns that a frame in the files() form has; some of them may be missing."""
    kinds = {field.name: field.dataType for field in frame.schema}

    def child(struct: str) -> Any:
        # Spark looks fields up without regard to case, and refuses a name that fits two of them.
        names = [name.lower() for name in getattr(kinds.get(struct), "names", ())]

        def find(column: TreeColumn) -> Column | None:
            name = named(column)
            is_unique = name is not None and names.count(name.lower()) == 1
            return F.col(struct).getField(name) if is_unique else None

        return find

    rows = F.col("num_records") if "num_records" in kinds else None
    readable = F.col("partition_values").isNotNull() if "partition_values" in kinds else None
    return FileColumns(
        child("partition_values"),
        child("min"),
        child("max"),
        child("null_count"),
        child("max_number"),
        rows,
        readable,
    )


def replay_frame(spark: Any, request: ReplayRequest) -> DataFrame:
    """The live files of a request as a DataFrame in the files() form; nothing is collected."""
    engine = SparkEngine(spark)
    whole = replace(request, where=None)
    live = engine.whole(whole)
    if isinstance(whole, DeltaRequest):
        adds = [] if isinstance(whole.tail, LongTail) else list(whole.tail.adds.values())
        tail = engine._delta_frame(raw_table(adds), whole.delta)  # noqa: SLF001 - the same module
        frame = tail if live is None else _joined(live.frame, tail)
        return frame.drop(*(name for name in frame.columns if name.startswith(delta_adds.raw_column(""))))
    recent = [] if isinstance(whole.tail, LongTail) else list(whole.tail.adds.values())
    rows = tabulate(recent, whole.schema, whole.partition_columns, whole.store)
    schema = spark_schema(rows.schema)
    tail = frame_of_arrow(spark, in_micros(rows.select(schema.names)), schema)
    return tail if live is None else live.frame.unionByName(tail, allowMissingColumns=True)


def skip(frame: DataFrame, node: Node | None, partition_columns: frozenset[str]) -> DataFrame:
    """Leave out of a frame of files those that cannot hold a matching row."""
    return frame.where(skipping(node, present_columns(frame), partition_columns).everything)


def _tail(request: ReplayRequest) -> tuple[pa.Table, PruneMetrics]:
    if isinstance(request.tail, LongTail):
        # An undecoded tail is already part of the cluster's frame.
        request = replace(request, tail=Tail(request.tail.version))
    if isinstance(request, DeltaRequest):
        return tail_files(request)
    adds = list(request.tail.adds.values())
    return prune(tabulate(adds, request.schema, request.partition_columns, request.store), request)


def _output(live: Live, request: ReplayRequest) -> list[Column]:
    """What is collected: raw fields of `add` for Delta, typed on arrival; columns of the form otherwise."""
    if not isinstance(request, DeltaRequest):
        shown = files_schema(request.schema, request.partition_columns, request.columns).names
        return [F.col(name) for name in shown if name != "uri" and name in live.frame.columns]
    output, _ = projections_of(request)
    # Statistics come typed; their documents are read only if the request names them.
    plain = FileProjection(output.columns - STATISTICS)
    names = sorted(plain.sources(None))
    fields = [F.col("path"), *(F.col(delta_adds.raw_column(name)).alias(name) for name in names)]
    return [*fields, *(F.col(name).alias(f"__{name}") for name in sorted(_collected_statistics(output)))]


def _collected_statistics(output: FileProjection) -> frozenset[str]:
    """Statistics that are collected; where no column has any, there are no structs of them either."""
    return output.columns & (STATISTICS if output.leaves else {"num_records"})


def _summed(name: str, request: ReplayRequest) -> tuple[Column, Column]:
    """Where a frame has a column to be counted, and to be summed up; of a Delta log its raw field."""
    if not isinstance(request, DeltaRequest) or name in STATISTICS:
        return F.col(name), F.col(name)
    (source,) = FileProjection(frozenset({name})).sources(None)
    field = F.col(delta_adds.raw_column(source))
    return (field["storageType"], field["cardinality"]) if source == "deletionVector" else (field, field)


def _metrics(
    request: ReplayRequest, seconds: Mapping[str, float], collected: int, on_cluster: int
) -> ReplayMetrics:
    added, removed = request.tail.size()
    return ReplayMetrics(
        SparkEngine.name,
        tail_adds=added,
        tail_removes=removed,
        bytes_read=_stored_bytes(request),
        seconds=seconds,
        rows_collected=collected,
        rows_on_executors=on_cluster,
    )


def _finished(rows: pa.Table, request: ReplayRequest) -> pa.Table:
    if not isinstance(request, DeltaRequest):
        target = files_schema(request.schema, request.partition_columns, request.columns)
        return _native_form(rows, target, request)
    output, _ = projections_of(request)
    files = files_form(rows, request.delta, FileProjection(output.columns - STATISTICS), request.store)
    for name in _collected_statistics(output):
        files = files.append_column(name, _typed(name, rows.column(f"__{name}").combine_chunks(), output))
    for name in (output.columns & STATISTICS) - set(files.column_names):
        files = files.append_column(name, pa.array([{}] * rows.num_rows, pa.struct([])))
    return files.select([name for name in COLUMNS if name in output.columns])


def _typed(name: str, statistics: pa.Array, output: FileProjection) -> pa.Array:
    """Statistics as they came from the cluster, by physical names, under the logical ones."""
    if name == "num_records":
        return statistics.cast(pa.int64())
    arrays, names = [], []
    for leaf in output.leaves:
        kind = pa.int64() if name == "null_count" else leaf.type
        at = statistics.type.get_field_index(".".join(leaf.physical))
        arrays.append(
            pa.nulls(len(statistics), kind) if at < 0 else pc.struct_field(statistics, at).cast(kind)
        )
        names.append(".".join(leaf.logical))
    return pa.StructArray.from_arrays(arrays, names)


def _native_form(rows: pa.Table, target: pa.Schema, request: ReplayRequest) -> pa.Table:
    arrays: list[Any] = []
    for field in target:
        if field.name == "uri":
            arrays.append(file_uris(request.store, rows.column("path").combine_chunks()))
        elif pa.types.is_struct(field.type) and not field.type.num_fields:
            arrays.append(pa.array([{}] * rows.num_rows, field.type))
        else:
            arrays.append(rows.column(field.name).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=target)


def _counted(frame: DataFrame, conditions: Skipping, pushed: Pushable) -> tuple[int, int, int]:
    """Rows before any predicate, those partition values leave, and those with statistics that cannot be."""
    counts = F.count(F.lit(1)), _count_if(conditions.by_partition), _count_if(pushed.crossed)
    row = frame.agg(*counts).first()
    assert row is not None
    return int(row[0]), int(row[1] or 0), int(row[2] or 0)


def _count_if(condition: Column) -> Column:
    return F.sum(condition.cast("long"))


def _stored_bytes(request: ReplayRequest) -> int:
    checkpoint = request.segment.checkpoint
    base = 0 if checkpoint is None else sum(file.size for file in checkpoint.files)
    return base + (sum(file.size for file in request.tail.files) if isinstance(request.tail, LongTail) else 0)
