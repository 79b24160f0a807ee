"""`highlight(column, 'words')` in SQL: a column of marked texts, made on the executors batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from indextables.model.names import quoted_name
from indextables.ops.read.highlighting import highlighter_of, marker

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.sql.select.rewritten import Highlight


def with_highlights(frame: Any, snapshot: Snapshot, highlights: Sequence[Highlight]) -> Any:
    """A frame with a column of marked texts for every call of `highlight`."""
    from pyspark.sql import functions as f

    for one in highlights:
        mark = f.arrow_udf(marker(highlighter_of(snapshot, one.column, one.query)), "string")
        frame = frame.withColumn(one.hidden, mark(f.col(quoted_name(one.column))))
    return frame
