"""A search as a function of a row's own text, for rows without an index, such as those of streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import CommandError
from indextables.ops.read.highlighting import highlighter_of, marker
from indextables.ops.table_settings import query_of, settings_of
from indextables.spark.versions import arrow_udf
from indextables.split.search.match import match_batch

if TYPE_CHECKING:
    from indextables.index.query.tree import Query
    from indextables.log.snapshot import Snapshot


def comparison(snapshot: Snapshot, kind: str, columns: Sequence[str], text: str) -> Any:
    """A function of Spark columns, given in the order of their names."""
    if kind == "indexhighlight":
        return highlighting(snapshot, columns[0], text)
    searched = columns if kind == "indexquery" else settings_of(snapshot).columns
    query = query_of(snapshot, text, tuple(searched))
    absent = [name for name in query.columns if name not in columns]
    if absent:
        raise CommandError(
            f"indexquery {text!r} also looks into {', '.join(absent)}, which is not at hand here. Write it "
            f"as a search of its own: {absent[0]} indexquery '...'"
        )
    types = [snapshot.schema.field(name).type for name in columns]
    return arrow_udf(_matcher(query, tuple(columns), types), "boolean", types)


def highlighting(snapshot: Snapshot, column: str, text: str) -> Any:
    """A function of a Spark column that marks the matches of a query in its texts."""
    return arrow_udf(marker(highlighter_of(snapshot, column, text)), "string", [pa.string()])


def _matcher(query: Query, columns: tuple[str, ...], types: list[pa.DataType]) -> Callable[..., pa.Array]:
    searched = [at for at, name in enumerate(columns) if name in query.spec.columns]

    def match(*texts: pa.Array) -> pa.Array:
        values = [text.cast(kind) for text, kind in zip(texts, types, strict=True)]
        matches = match_batch(query, pa.table(values, names=list(columns)))
        absent = pc.is_null(values[searched[0]])
        for at in searched[1:]:
            absent = pc.and_(absent, pc.is_null(values[at]))
        return pc.if_else(absent, pa.scalar(None, pa.bool_()), matches)

    return match
