"""Replay on the cluster, for tables whose file list is too large for one machine.

The commits after the checkpoint arrive reduced, on the driver: they are few.
The checkpoint stays on the executors. Its rows lose the keys the commits touch
(an anti-join with a broadcast list), are tested by the predicate, and only what
is left travels to the driver. The same frame, not collected, is what
`replay_frame` gives.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.errors import CorruptLogError, Error
from indextables.log.delta_files import RAW, files_form, raw_table
from indextables.log.delta_replay import DeltaRequest, checkpoint_pieces, tail_files, wanted_columns
from indextables.log.files_table import files_schema, tabulate
from indextables.log.reference import prune
from indextables.log.replay import LiveFiles, ReplayMetrics, ReplayRequest
from indextables.predicate.prune import PruneMetrics, columns_needed
from indextables.predicate.tree import Column as TreeColumn
from indextables.predicate.tree import Node
from indextables.spark import delta_base, native_base
from indextables.spark.pushdown import pushable
from indextables.spark.skipping import FileColumns, Skipping, skipping
from indextables.spark.translation import known_error
from indextables.spark.workers import default_width

logger = logging.getLogger(__name__)

_MEMO = "spark"
_MOST_PARTITIONS = 50
_DAMAGE = ("FAILED_READ_FILE", "is not a Parquet file", "FileNotFoundException", "CANNOT_READ_FILE_FOOTER")
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Live:
    """The live rows of a checkpoint on the cluster, before any predicate."""

    frame: DataFrame
    files: FileColumns
    rows: int | None = None
    """Rows of the checkpoint, where its files say so themselves."""


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
        replayed = ReplayMetrics(
            self.name,
            tail_adds=len(request.tail.adds),
            tail_removes=len(request.tail.removed),
            bytes_read=_stored_bytes(request),
            seconds=seconds,
            rows_collected=collected,
            rows_on_executors=on_cluster,
        )
        return LiveFiles(tail, metrics, replayed)

    def live(self, request: ReplayRequest) -> Live | None:
        """The rows of the checkpoint that still count; scans of one version share them."""
        if request.segment.checkpoint is None:
            return None
        key = (request.segment.version, request.segment.checkpoint.identity, id(self._spark))
        with _lock:
            shared = request.memo.get(_MEMO)
            if isinstance(shared, _Shared) and shared.covers(key, request):
                return shared.again()
            columns = _frame_columns(request)
            made = self._live(request, columns)
            if made is not None:
                request.memo[_MEMO] = _Shared(key, columns, made)
            return made

    def whole(self, request: ReplayRequest) -> Live | None:
        """The same with every column and statistic, for a frame whose questions are not known yet."""
        if request.segment.checkpoint is None:
            return None
        every = None if isinstance(request, DeltaRequest) else _frame_columns(request)
        return self._live(request, every)

    def _live(self, request: ReplayRequest, columns: frozenset[str] | None) -> Live | None:
        checkpoint = request.segment.checkpoint
        assert checkpoint is not None
        if isinstance(request, DeltaRequest):
            pieces, inline = checkpoint_pieces(request)
            frame = None
            if pieces:
                frame = delta_base.checkpoint_frame(
                    self._spark, request.store, pieces, request.delta, columns
                )
            if inline.num_rows:
                small = self._delta_frame(inline, request, columns)
                frame = small if frame is None else frame.unionByName(small, allowMissingColumns=True)
            if frame is None:
                return None
            files = form_columns(delta_base.partitions_known(request.delta))
        else:
            tasks = request.options.replay.num_partitions or min(_MOST_PARTITIONS, default_width(self._spark))
            frame = native_base.checkpoint_frame(
                self._spark, request, checkpoint, sorted(columns or ()), tasks
            )
            files = form_columns(None)
        return Live(self._untouched(frame, request), files)

    def _untouched(self, frame: DataFrame, request: ReplayRequest) -> DataFrame:
        """The rows whose key no commit of the tail is about."""
        touched = [key if isinstance(key, tuple) else (key, None) for key in request.tail.touches()]
        if not touched:
            return frame
        keys = pa.table(
            {
                "touched_path": pa.array([path for path, _ in touched], pa.string()),
                "touched_dv": pa.array([dv or "" for _, dv in touched], pa.string()),
            }
        )
        gone = F.broadcast(self._spark.createDataFrame(keys))
        vector = F.coalesce(frame["dv"], F.lit("")) if "dv" in frame.columns else F.lit("")
        same = (frame["path"] == gone["touched_path"]) & (vector == gone["touched_dv"])
        return frame.join(gone, same, "left_anti")

    def _delta_frame(
        self, raw: pa.Table, request: DeltaRequest, statistics: frozenset[str] | None = None
    ) -> DataFrame:
        """Adds that are on the driver, in the form of the checkpoint's."""
        struct = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in raw.columns], fields=list(raw.schema)
        )
        frame = self._spark.createDataFrame(pa.table({delta_base.ADD: struct}))
        # Their paths are decoded already.
        form = delta_base.files_frame(frame, request.delta, None, statistics)
        return form.withColumn("path", F.col(delta_base.raw_column("path")))

    def _collect(self, live: Live, request: ReplayRequest) -> tuple[pa.Table, PruneMetrics]:
        conditions = skipping(request.where, live.files, frozenset(request.partition_columns))
        output = _output(request)
        if request.where is None:
            rows = live.frame.select(*output).toArrow()
            counts = PruneMetrics(considered=rows.num_rows, kept=rows.num_rows)
            return _finished(rows, request), counts
        pushed = pushable(request.where, live.frame, request)
        frame = live.frame
        if pushed is not None:
            considered, after = _counted(frame, conditions)
            rows = frame.where(pushed).where(conditions.everything).select(*output).toArrow()
        else:
            seen = Observation()
            counted = frame.withColumn("__keep", conditions.everything).observe(
                seen, F.count(F.lit(1)).alias("considered"), _count_if(conditions.by_partition).alias("after")
            )
            rows = counted.where("__keep").select(*output).toArrow()
            considered, after = seen.get["considered"], seen.get["after"] or 0
        kept = rows.num_rows
        metrics = PruneMetrics(considered, considered - after, after - kept, kept)
        return _finished(rows, request), metrics


class _Shared:
    """The frame of one version in a snapshot's memo; a second scan makes the cluster keep its rows."""

    def __init__(self, key: object, columns: frozenset[str], live: Live) -> None:
        self._key = key
        self._columns = columns
        self._live = live
        self._kept = False

    def covers(self, key: object, request: ReplayRequest) -> bool:
        """Whether it is of the same version and has every column."""
        return self._key == key and _frame_columns(request) <= self._columns

    def again(self) -> Live:
        """The same rows, computed once from now on."""
        if not self._kept:
            self._kept = True
            self._live.frame.persist(StorageLevel.MEMORY_AND_DISK)
            weakref.finalize(self, _forget, self._live.frame)
        return self._live


@contextmanager
def _ours(request: ReplayRequest) -> Iterator[None]:
    """Turn what Spark says of a damaged or missing log file into our error, so that an older state serves."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        known = known_error(text)
        if isinstance(known, Error):
            raise known from error
        if any(mark in text for mark in _DAMAGE):
            raise CorruptLogError(
                f"a checkpoint file of version {request.segment.version} of {request.store.uri} could not be "
                f"read on the cluster: {text.splitlines()[0]}",
                version=request.segment.version,
                uri=request.store.uri,
            ) from error
        raise


def _forget(frame: DataFrame) -> None:
    try:
        frame.unpersist()
    except Exception:
        logger.debug("a kept file list could not be released", exc_info=True)


def form_columns(known: Column | None) -> FileColumns:
    """Where a frame in the files() form keeps what is known of its files."""

    def child(struct: str) -> Any:
        return lambda column: F.col(struct).getField(column.name)

    return FileColumns(child("partition_values"), child("min"), child("max"), child("null_count"),
                       F.col("num_records"), known)  # fmt: skip


def present_columns(frame: DataFrame) -> FileColumns:
    """The same for a frame that may lack some of them."""

    def child(struct: str) -> Any:
        def find(column: TreeColumn) -> Column | None:
            kind = frame.schema[struct].dataType if struct in frame.columns else None
            names = getattr(kind, "names", ())
            return F.col(struct).getField(column.name) if column.name in names else None

        return find

    rows = F.col("num_records") if "num_records" in frame.columns else None
    known = F.col("partition_values").isNotNull() if "partition_values" in frame.columns else None
    return FileColumns(
        child("partition_values"), child("min"), child("max"), child("null_count"), rows, known
    )


def replay_frame(spark: Any, request: ReplayRequest) -> DataFrame:
    """The live files of a request as a DataFrame in the files() form; nothing is collected."""
    engine = SparkEngine(spark)
    whole = replace(request, where=None)
    live = engine.whole(whole)
    if isinstance(whole, DeltaRequest):
        raw = raw_table(list(whole.tail.adds.values()))
        tail = engine._delta_frame(raw, whole)  # noqa: SLF001 - the same module
        frame = tail if live is None else live.frame.unionByName(tail, allowMissingColumns=True)
        return frame.drop(*(name for name in frame.columns if name.startswith(delta_base.raw_column(""))))
    rows = tabulate(list(whole.tail.adds.values()), whole.schema, whole.partition_columns, whole.store)
    schema = native_base.spark_schema(rows.schema)
    tail = spark.createDataFrame(_in_micros(rows), schema)
    return tail if live is None else live.frame.unionByName(tail, allowMissingColumns=True)


def skip(frame: DataFrame, node: Node | None, partition_columns: frozenset[str]) -> DataFrame:
    """Leave out of a frame of files those that cannot hold a matching row."""
    return frame.where(skipping(node, present_columns(frame), partition_columns).everything)


def _tail(request: ReplayRequest) -> tuple[pa.Table, PruneMetrics]:
    if isinstance(request, DeltaRequest):
        return tail_files(request)
    adds = list(request.tail.adds.values())
    return prune(tabulate(adds, request.schema, request.partition_columns, request.store), request)


def _frame_columns(request: ReplayRequest) -> frozenset[str]:
    """What a frame must have for a request.

    Of a Delta log the columns of the table whose statistics the predicate looks at, everything else is there;
    of a native log the columns of the files() form that are shown or looked at.
    """
    if isinstance(request, DeltaRequest):
        return columns_needed(request.where, request.partition_columns).statistics
    shown = files_schema(request.schema, request.partition_columns, request.columns).names
    needs = columns_needed(request.where, request.partition_columns)
    names = {*shown, *({"partition_values"} if needs.partitions else ())}
    if needs.statistics:
        names |= {"num_records", "min", "max", "null_count"}
    return frozenset(names - {"uri"})


def _output(request: ReplayRequest) -> list[Column]:
    """What is collected: raw fields of `add` for Delta, typed on arrival; columns of the form otherwise."""
    if not isinstance(request, DeltaRequest):
        shown = files_schema(request.schema, request.partition_columns, request.columns).names
        return [F.col(name) for name in shown if name != "uri"]
    output, _ = wanted_columns(request)
    names = {name.partition(".")[0] for name in output.sources(None)} & set(RAW.names)
    if not output.columns & {"stats", "min", "max", "null_count"}:
        # The count of records alone comes typed; the documents stay where they are.
        names.discard("stats")
    fields = [F.col("path"), *(F.col(delta_base.raw_column(name)).alias(name) for name in sorted(names))]
    if output.columns & {"num_records", "min", "max", "null_count"}:
        # Text statistics may be missing where typed ones are there.
        fields.append(F.col("num_records").alias("__num_records"))
    return fields


def _finished(rows: pa.Table, request: ReplayRequest) -> pa.Table:
    if not isinstance(request, DeltaRequest):
        target = files_schema(request.schema, request.partition_columns, request.columns)
        return _native_form(rows, target, request)
    output, _ = wanted_columns(request)
    counts = rows.column("__num_records") if "__num_records" in rows.column_names else None
    raw = rows.drop_columns(["__num_records"]) if counts is not None else rows
    files = files_form(raw, request.delta, output, request.store)
    if counts is not None and "num_records" in files.column_names:
        at = files.schema.get_field_index("num_records")
        files = files.set_column(at, "num_records", counts.cast(pa.int64()))
    return files


def _native_form(rows: pa.Table, target: pa.Schema, request: ReplayRequest) -> pa.Table:
    from indextables.log.files_table import file_uris

    arrays: list[Any] = []
    for field in target:
        if field.name == "uri":
            arrays.append(file_uris(request.store, rows.column("path").combine_chunks()))
        else:
            arrays.append(rows.column(field.name).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=target)


def _counted(frame: DataFrame, conditions: Skipping) -> tuple[int, int]:
    """Rows before any predicate, and those partition values leave, without touching statistics."""
    row = frame.agg(F.count(F.lit(1)), _count_if(conditions.by_partition)).first()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def _count_if(condition: Column) -> Column:
    return F.sum(condition.cast("long"))


def _stored_bytes(request: ReplayRequest) -> int:
    checkpoint = request.segment.checkpoint
    return 0 if checkpoint is None else sum(file.size for file in checkpoint.files)


def _in_micros(table: pa.Table) -> pa.Table:
    fields: Sequence[pa.Field] = [
        pa.field(field.name, pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
