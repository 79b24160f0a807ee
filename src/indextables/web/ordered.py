"""Rows in the order of a column: the first of them are kept while batches go by, so memory stays small."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.table import Table

_HELD = 65_536


def ordered(
    table: Table,
    query: str | None,
    where: Any,
    columns: list[str],
    by: str,
    *,
    descending: bool,
    limit: int | None,
) -> pa.Table:
    """The first rows by a column, or all of them; rows without a value come last."""
    wanted = columns if by in columns else [*columns, by]
    reader = table.scan(where, wanted) if query is None else table.search(query, where, wanted)
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        held.append(batch)
        rows += batch.num_rows
        if limit is not None and rows > limit + _HELD:
            held = _sorted(held, reader.schema, by, descending, limit).to_batches()
            rows = sum(part.num_rows for part in held)
    return _sorted(held, reader.schema, by, descending, limit)


def _sorted(
    held: list[pa.RecordBatch], schema: pa.Schema, by: str, descending: bool, limit: int | None
) -> pa.Table:
    found = pa.Table.from_batches(held, schema)
    way = "descending" if descending else "ascending"
    order = pc.sort_indices(found, [(by, way)])
    return found.take(order.slice(0, limit))
