"""`highlight(column, 'words')` in SQL: a column of marked texts, made on the executors batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import CommandError
from indextables.index.highlight import Highlighter, marked
from indextables.model.names import quoted_name
from indextables.ops.table_settings import query_of

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.sql.rewrite import Highlight


def with_highlights(frame: Any, snapshot: Snapshot, highlights: Sequence[Highlight]) -> Any:
    """A frame with a column of marked texts for every call of `highlight`."""
    from pyspark.sql import functions as f

    for one in highlights:
        mark = f.arrow_udf(marker(highlighter_of(snapshot, one.column, one.query)), "string")
        frame = frame.withColumn(one.hidden, mark(f.col(quoted_name(one.column))))
    return frame


def highlighter_of(snapshot: Snapshot, column: str, text: str) -> Highlighter:
    """What marks the matches of a query in a column."""
    query = query_of(snapshot, text, (column,))
    if not pa.types.is_string(snapshot.schema.field(column).type):
        raise CommandError(f"highlight marks text, and column {column!r} is none")
    try:
        return Highlighter(query, column)
    except ValueError as bad:
        raise CommandError(f"highlight: {bad}") from bad


def marker(highlighter: Highlighter) -> Callable[[pa.Array], pa.Array]:
    """A function of texts that marks the matches in them."""

    def mark(texts: pa.Array) -> pa.Array:
        values = texts.to_pylist()
        spans = highlighter.spans(values)
        found = [
            None if text is None else marked(text, places) for text, places in zip(values, spans, strict=True)
        ]
        return pa.array(found, pa.string())

    return mark
