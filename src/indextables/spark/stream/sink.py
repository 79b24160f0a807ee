"""A stream into a table, exactly once.

Each batch is one commit that carries the query's id and the batch's number: a
batch that Spark runs again after a failure finds its number in the log and
writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from indextables.errors import TableError
from indextables.spark.options import STREAM_WRITE_KEYS, split
from indextables.spark.requests import WriteRequest
from indextables.spark.write.save import save_frame

_MODES = {"append": "append", "complete": "overwrite"}


def stream_write_request(arguments: Mapping[str, Any]) -> WriteRequest:
    """What `StreamSink.java` was told: the path, output mode, options and partition columns of a stream."""
    call, table = split(arguments["options"], STREAM_WRITE_KEYS)
    output_mode = str(arguments["mode"]).lower()
    if output_mode not in _MODES:
        raise TableError(
            f"output mode {output_mode!r} is not possible: a stream into an IndexTables table appends "
            "(outputMode 'append') or replaces the whole table with each batch ('complete')"
        )
    call.pop("checkpointLocation", None)
    by = arguments.get("partitions")
    return WriteRequest(
        str(arguments["path"]), _MODES[output_mode], {**table, **call}, None if by is None else tuple(by)
    )


def write_batch(spark: Any, frame: Any, request: WriteRequest, query: str | None, number: int) -> None:
    """Commit one batch, unless it was committed before."""
    app_id = request.options.get("txnAppId") or query
    if app_id is None:
        raise TableError(
            "the id of this streaming query is not known, so its batches could not be told apart after a "
            "restart. Set the option 'txnAppId' to a name of its own."
        )
    exact = {**request.options, "txnAppId": app_id, "txnVersion": str(number)}
    save_frame(spark, frame, replace(request, options=exact, stream=True))
