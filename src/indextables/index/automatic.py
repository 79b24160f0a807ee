"""Which index columns of text get by themselves: what `load`, `tail` and `indexing.auto` go by.

A column of sentences is searched by its words. A column of few values, such as the level, host, service or
status of a log, is asked for whole values. Identifiers and other texts that hardly repeat get no index.
"""

from __future__ import annotations

import pyarrow as pa

from indextables.index.settings import STRING, TEXT
from indextables.lazy import pc

SAMPLE_ROWS = 10_000
"""Rows that are looked at."""
_WORDS = 3
"""From this many words on, on average, values are sentences."""
_REPEATED = 2
"""A value of a column of few values is in at least this many rows, on average..."""
_FEW, _SHARE = 16, 20
"""...and there are no more values than this, or than one in so many rows."""


def automatic_kinds(rows: pa.Table | pa.RecordBatch) -> dict[str, str]:
    """The kind of index of each column that gets one, by some of the rows.

    >>> levels = ["info", "info", "error", "info"]
    >>> rows = pa.table({"id": ["a", "b", "c", "d"], "level": levels, "message": ["disk sda is full"] * 4})
    >>> automatic_kinds(rows)
    {'level': 'string', 'message': 'text'}
    """
    kinds = {name: _kind_of(rows.column(name)) for name in rows.schema.names}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _kind_of(values: pa.Array | pa.ChunkedArray) -> str | None:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return None
    words = pc.mean(pc.count_substring_regex(values, r"\S+")).as_py()
    if words is None:
        return None
    if words >= _WORDS:
        return TEXT
    rows = len(values) - values.null_count
    distinct = pc.count_distinct(values).as_py()
    is_few = distinct * _REPEATED <= rows and distinct <= max(_FEW, rows // _SHARE)
    return STRING if is_few else None
