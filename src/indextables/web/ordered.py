"""Rows in the order of a column: the first of them are kept while batches go by, so memory stays small.

The first rows of a large table lie in few of its splits when the order is that
of time. The log's statistics say where to look first; if that does not give
enough rows, more is looked at, and in the end everything. Which rows come first
never depends on the statistics: rows are taken by an exact condition, and only
if there are enough of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import Node, all_of
from indextables.table import Table
from indextables.web.questions import quoted

_HELD = 65_536
_WIDER = 4
"""How many times as many files are looked at when those before did not have enough rows."""


def ordered(
    table: Table,
    query: Any,
    where: Any,
    columns: list[str],
    by: str,
    *,
    descending: bool,
    limit: int | None,
) -> pa.Table:
    """The first rows by a column, or all of them; rows without a value come last."""
    wanted = columns if by in columns else [*columns, by]
    node = as_node(where, table.schema, "UTC")
    if limit is not None:
        for bound in _bounds(table, node, by, limit, descending=descending):
            column = quoted(by)
            near = as_node(column >= bound if descending else column <= bound, table.schema, "UTC")
            narrowed = all_of([part for part in (node, near) if part is not None])
            found = _first(table, query, narrowed, wanted, by, descending=descending, limit=limit)
            if found.num_rows >= limit:
                return found
    return _first(table, query, node, wanted, by, descending=descending, limit=limit)


def _bounds(table: Table, where: Node | None, by: str, limit: int, *, descending: bool) -> Iterator[Any]:
    """Values of the column beyond which enough rows may lie, ever farther from the first row.

    Only of types whose every value compares like its text in the log: a float may be no number.
    """
    kind = table.schema.field(by).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)):
        return
    files = table.files(where)
    side = "min" if descending else "max"
    held = files.schema.field(side).type
    if files.num_rows < _WIDER or not pa.types.is_struct(held) or held.get_field_index(by) < 0:
        return
    edges = pa.table({"edge": pc.struct_field(files[side], by), "rows": files["num_records"]}).drop_null()
    edges = edges.sort_by([("edge", "descending" if descending else "ascending")])
    reached = pc.greater_equal(pc.cumulative_sum(edges["rows"].combine_chunks()), limit)
    at = pc.index(reached, True).as_py()
    while 0 <= at < edges.num_rows - 1:
        yield edges["edge"][at].as_py()
        at = (at + 1) * _WIDER


def _first(
    table: Table, query: Any, where: Node | None, columns: list[str], by: str,
    *, descending: bool, limit: int | None,
) -> pa.Table:  # fmt: skip
    """The first of all rows that match."""
    reader = table.scan(where, columns) if query is None else table.search(query, where, columns)
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
