"""Answers Spark about streams: the Python side of `StreamSource.java` and `StreamSink.java`."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
from typing import Any

from indextables.errors import TableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.actions import MetadataAction
from indextables.ops.delta.scan import require_schema
from indextables.ops.read.changes import plan_versions
from indextables.ops.table_settings import require_parquet
from indextables.spark.bridge.request import JvmRequest
from indextables.spark.read.changes import frame_of_commits
from indextables.spark.requests import OWN_SCHEMA
from indextables.spark.stream.frame import batch_frame
from indextables.spark.stream.offset import StreamOffset
from indextables.spark.stream.sink import stream_write_request, write_batch
from indextables.spark.stream.source import Columns, TableStream


def open_stream(request: JvmRequest) -> dict[str, Any]:
    """What is asked again with every question about the stream: its columns, and the options of its table.

    The columns are given as a DataFrame shows them and as the log does, with the newest version.
    """
    if request.arguments.get("declared"):
        raise TableError(OWN_SCHEMA)
    stream = _stream(request)
    snapshot = stream.newest
    if isinstance(snapshot, DeltaSnapshot):
        require_schema(snapshot)
    else:
        require_parquet(snapshot)
    if stream.has_changes:
        no_rows = frame_of_commits(request.spark, snapshot, {}, plan_versions(snapshot, 0, 0), [])
    else:
        no_rows = batch_frame(request.spark, snapshot.with_files(()), stream.settings)
    mapping = snapshot.metadata.column_mapping
    return {
        "schema": str(no_rows._jdf.schema().json()),
        "columns": snapshot.metadata.schema_string,
        "partitions": list(snapshot.metadata.partition_columns),
        "mapping": None if mapping is None else json.dumps(mapping),
        "version": snapshot.version,
        "table": dict(stream.settings.table),
    }


def next_offset(request: JvmRequest) -> dict[str, Any]:
    """How far the next batch goes; the text of its start where there is nothing new."""
    text = request.arguments.get("start")
    start = None if text is None else StreamOffset.of_text(text)
    end = _stream(request).next_end(
        start,
        request.arguments.get("until"),
        limited=bool(request.arguments["limited"]),
        columns=_columns(request),
    )
    return {"offset": text if start is not None and end == start.place() else end.to_text()}


def batch(request: JvmRequest) -> dict[str, Any]:
    """The plan of the rows between two offsets."""
    text = request.arguments.get("start")
    stream = _stream(request)
    start = None if text is None else StreamOffset.of_text(text)
    end, columns = StreamOffset.of_text(request.arguments["end"]), _columns(request)
    if stream.has_changes:
        frame = stream.changes(start, end, columns)
    else:
        frame = batch_frame(request.spark, stream.batch(start, end, columns), stream.settings)
    request.objects["plan"] = frame._jdf.queryExecution().analyzed()
    return {}


def into(request: JvmRequest) -> dict[str, Any]:
    """Look at the settings of a stream into a table before it starts."""
    stream_write_request(request.arguments)
    return {}


def write(request: JvmRequest) -> dict[str, Any]:
    """Write one batch of a stream."""
    plan = stream_write_request(request.arguments)
    arguments = request.arguments
    write_batch(request.spark, request.frame("data"), plan, arguments.get("query"), int(arguments["batch"]))
    return {}


def _stream(request: JvmRequest) -> TableStream:
    opened = request.arguments["opened"]
    return TableStream.of(request.spark, request.path, request.options, opened.get("table"))


def _columns(request: JvmRequest) -> Columns:
    opened = request.arguments["opened"]
    mapping = opened.get("mapping")
    metadata = MetadataAction(
        id="",
        schema_string=str(opened["columns"]),
        partition_columns=tuple(opened["partitions"]),
        column_mapping=None if mapping is None else json.loads(mapping),
    )
    return Columns(metadata, int(opened["version"]))
