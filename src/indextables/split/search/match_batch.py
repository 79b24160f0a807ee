"""Matches whole batches of rows that have no index, such as those of a stream, against a query.

The words of a batch are found and sorted a column at a time, as for an index, and the
query is asked of that. Rows that an index can only propose are decided one by one, by the
definition in `match.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from indextables.index.build.builder import IndexBuilder
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.tree import Query, restrict_to_columns
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import SUBSTRING, IndexSpec
from indextables.model.arrays import integers
from indextables.split.search.match import match_rows

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS = 16
"""Up to this many rows, looking at each is faster than an index of them."""


def match_batch(query: Query, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """For each row, whether the query finds it. Columns that the rows lack count as empty.

    >>> import pyarrow as pa
    >>> from indextables.index.query.syntax import parse_query
    >>> from indextables.index.settings import IndexField, IndexSpec
    >>> rows = pa.table({"m": ["disk error", "all quiet", None]})
    >>> spec = IndexSpec((IndexField("m", "text", "default", "position"),))
    >>> query = parse_query("error", spec, rows.schema)
    >>> match_batch(query, rows).to_pylist()
    [True, False, False]
    """
    import pyarrow as pa

    columns = [name for name in query.columns if name in rows.schema.names]
    if not columns or rows.num_rows <= FEW_ROWS:
        return match_rows(query, rows)
    asked = IndexSearch(
        _index_of(query, rows.select(columns)),
        replace(query, node=restrict_to_columns(query.node, frozenset(columns))),
        values=lambda name: _whole(rows.column(name)),
    )
    found = np.zeros(rows.num_rows, bool)
    sure = asked.certain()
    found[sure] = True
    doubtful = np.setdiff1d(asked.candidates(), sure, assume_unique=True)
    if len(doubtful):
        found[doubtful] = match_rows(query, rows.take(integers(doubtful))).to_numpy(zero_copy_only=False)
    return pa.array(found)


def _index_of(query: Query, rows: pa.Table | pa.RecordBatch) -> Index:
    names = rows.schema.names
    spec = IndexSpec(
        tuple(item for item in query.spec.fields if item.column in names and item.kind != SUBSTRING)
    )
    builder = IndexBuilder(spec, rows.schema)
    builder.add(rows)
    built = builder.finish()
    data = built.to_bytes()
    # Nobody asks it again, so nothing of it is kept.
    return Index.open(BytesRanges(data), len(data), built.root_length, cache=BlockCache(0))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
