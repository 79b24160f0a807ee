"""A stream into a table, exactly once.

Each batch is one commit that carries the query's id and the batch's number: a
batch that Spark runs again after a failure finds its number in the log and
writes nothing.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from indextables.errors import TableError
from indextables.spark.options import STREAM_WRITE_KEYS, is_connect, split
from indextables.spark.requests import WriteRequest

Batch = Callable[[Any, int], None]


def sink(spark: Any, request: WriteRequest) -> Batch:
    """The function that writes one batch, for `foreachBatch`."""
    call, table = split(request.options, STREAM_WRITE_KEYS)
    checkpoint = call.pop("checkpointLocation", None) or spark.conf.get(
        "spark.sql.streaming.checkpointLocation", None
    )
    options = {**table, **{key: value for key, value in call.items() if key != "path"}}
    plain = replace(request, options=options)

    def write_batch(frame: Any, batch_id: int) -> None:
        from indextables.spark.write.save import save_frame

        session = frame.sparkSession
        app_id = plain.options.get("txnAppId") or _query_id(session, frame, checkpoint)
        exact = {**plain.options, "txnAppId": app_id, "txnVersion": str(batch_id)}
        save_frame(session, frame, replace(plain, options=exact))

    return write_batch


def _query_id(spark: Any, frame: Any, checkpoint: str | None) -> str:
    """The id of the streaming query, which outlives its restarts."""
    if not is_connect(spark):
        query_id = frame._jdf.sparkSession().sparkContext().getLocalProperty("sql.streaming.queryId")
        if query_id:
            return str(query_id)
    if checkpoint is not None:
        text = spark.read.text(f"{checkpoint.rstrip('/')}/metadata").first()
        if text is not None:
            return str(json.loads(text[0])["id"])
    raise TableError(
        "the id of this streaming query is not known, so its batches could not be told apart after a "
        "restart. Set the option 'txnAppId' to a name of its own, or give it a checkpointLocation."
    )
