"""Answers to the page's requests, as values that JSON can carry.

A RowRequest comes in; each answer is one call of a table's own verb, and says
beside its rows how it came about: the version, the files left out and read, the
time. Also how the answer is drawn: words of the query marked, bars of a round width.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.display.plain import plain_value
from indextables.errors import OptionError, QueryError, SchemaError
from indextables.index.highlight import Highlighter
from indextables.index.query.plain_text import PlainText
from indextables.lazy import pc
from indextables.model.names import quoted_name, require_name
from indextables.model.types import type_to_sql
from indextables.ops.read.highlighting import text_columns
from indextables.ops.read.rows import Rows
from indextables.ops.table_settings import query_of
from indextables.split.search.run import SCORE
from indextables.split.source import bytes_counted
from indextables.table import Table
from indextables.web.row_request import RowRequest, moment
from indextables.web.tables import ServedTable

if TYPE_CHECKING:
    from indextables.delta import DeltaTable
    from indextables.predicate.tree import Node

    AnyTable = Table | DeltaTable

_SAFE_INTEGER = 1 << 53
"""Beyond this a browser's numbers lose digits."""

Pieces = list[tuple[str, bool]]
"""A text cut into pieces, each with whether it is marked."""

_S, _M, _H, _D = 1, 60, 3600, 86_400
_INTERVALS = {
    "1ms": 0.001, "10ms": 0.01, "100ms": 0.1, "1s": _S, "5s": 5 * _S, "10s": 10 * _S, "30s": 30 * _S,
    "1m": _M, "5m": 5 * _M, "10m": 10 * _M, "30m": 30 * _M, "1h": _H, "3h": 3 * _H, "6h": 6 * _H,
    "12h": 12 * _H, "1d": _D, "1w": 7 * _D, "1mon": 31 * _D, "3mon": 92 * _D, "1y": 366 * _D,
    "10y": 3660 * _D,
}  # fmt: skip
"""Widths of a histogram's bars, shortest first, with about how many seconds each lasts."""
_MOST_BARS = 90


def rows(served: ServedTable, row_request: RowRequest) -> dict[str, Any]:
    """One page of rows, with the words of the query marked."""
    began = time.perf_counter()
    table = served.open(row_request.version)
    row_request = readable(table, row_request)
    # One row more than the page holds says whether there is a next page.
    needed = row_request.offset + row_request.limit + 1
    first = first_rows(table, row_request, needed)
    page = first.slice(row_request.offset, row_request.limit)
    return {
        "version": table.version,
        "columns": [{"name": item.name, "type": type_to_sql(item.type)} for item in page.schema],
        "rows": [[_shown(value) for value in row.values()] for row in _dicts(page)],
        "marks": marks(table, row_request.query, page)
        if row_request.query and isinstance(table, Table)
        else [],
        "offset": row_request.offset,
        "more": first.num_rows == needed,
        "found": scan_summary(table, began),
    }


def readable(table: AnyTable, row_request: RowRequest) -> RowRequest:
    """The request with a query that can be read: of a text that is no query, all words are searched."""
    query = row_request.query
    if query is None:
        return row_request
    try:
        _check_query(table, query)
    except QueryError as wrong:
        why = f"this cannot be read as a query, so rows with all of its words are shown: {wrong.message}"
        text = PlainText(query, why)
        try:
            _check_query(table, text)
        except QueryError:
            raise wrong from None
        return replace(row_request, query=text)
    return row_request


def _check_query(table: AnyTable, query: str) -> None:
    if isinstance(table, Table):
        query_of(table.snapshot, query)
    else:
        table.search(query, limit=0).close()


def first_rows(table: AnyTable, row_request: RowRequest, count: int) -> pa.Table:
    """The first rows of an answer, in the requested order."""
    with stream(table, row_request, count) as rows:
        return rows.head(count)


def stream(table: AnyTable, row_request: RowRequest, limit: int | None = None) -> Rows:
    """All rows of an answer, or the first of them, as a stream of batches."""
    row_request = readable(table, row_request).of(table.schema)
    where = filter_of(table, row_request)
    if not isinstance(table, Table):
        if row_request.sort is not None:
            raise OptionError("the rows of a Delta table come in the order of its files; leave sort out")
        if row_request.query is None:
            return table.scan(where, row_request.columns)
        return table.search(row_request.query, where, row_request.columns, limit)
    order = (
        None
        if row_request.sort in (None, SCORE)
        else sort_text(str(row_request.sort), row_request.descending)
    )
    if row_request.query is None:
        return table.scan(where, row_request.columns, limit, sort=order)
    score = row_request.sort == SCORE
    return table.search(row_request.query, where, row_request.columns, limit, score=score, sort=order)


def sort_text(column: str, descending: bool) -> list[str]:
    """One column as `sort=` takes it, whatever its name holds."""
    return [f"{quoted_name(column)} {'DESC' if descending else 'ASC'}"]


def count(served: ServedTable, row_request: RowRequest) -> dict[str, Any]:
    """How many rows there are in all."""
    began = time.perf_counter()
    table = served.open(row_request.version)
    row_request = readable(table, row_request)
    total = table.count(filter_of(table, row_request), query=row_request.query)
    return {"version": table.version, "total": total, "found": scan_summary(table, began)}


def facets(served: ServedTable, row_request: RowRequest, column: str, top: int = 12) -> dict[str, Any]:
    """The most frequent values of a column; what is chosen of that column does not narrow them."""
    began = time.perf_counter()
    table = _counting(served, row_request)
    row_request = readable(table, row_request)
    column = require_name(table.schema.names, column)
    where = filter_of(table, row_request, without=column)
    counted = table.facets(column, query=row_request.query, where=where, top=top + 1)
    values = [{"value": _shown(row["value"]), "count": row["count"]} for row in counted.to_pylist()]
    return {
        "column": column,
        "values": values[:top],
        "more": len(values) > top,
        "found": scan_summary(table, began),
    }


def histogram(served: ServedTable, row_request: RowRequest, column: str) -> dict[str, Any]:
    """How many rows there are over time, in bars of a readable width."""
    began = time.perf_counter()
    table = _counting(served, row_request)
    row_request = readable(table, row_request).of(table.schema)
    column = require_name(table.schema.names, column)
    span = _extent(table, row_request, column)
    if span is None:
        return {
            "column": column,
            "interval": None,
            "bars": [],
            "total": 0,
            "found": scan_summary(table, began),
        }
    interval = interval_for(*span)
    where = filter_of(table, row_request)
    counted = table.histogram(column, interval, query=row_request.query, where=where, time_zone="UTC")
    bars = [
        [plain_value(row["bucket"]), row["count"]] for row in counted.to_pylist() if row["bucket"] is not None
    ]
    return {
        "column": column,
        "interval": interval,
        "seconds": float(_INTERVALS[interval]),
        "start": plain_value(span[0]),
        "end": plain_value(span[1]),
        "bars": bars,
        "total": pc.sum(counted.column("count")).as_py() or 0,
        "found": scan_summary(table, began),
    }


def marks(table: Table, query: str, page: pa.Table) -> list[dict[str, Pieces]]:
    """For each row, the columns in which something matches, cut into pieces."""
    marked: list[dict[str, Pieces]] = [{} for _ in range(page.num_rows)]
    parsed = query_of(table.snapshot, query)
    for name in text_columns(parsed):
        if name not in page.column_names or not pa.types.is_string(page.schema.field(name).type):
            continue
        texts = page.column(name).to_pylist()
        for row, text, spans in zip(marked, texts, Highlighter(parsed, name).spans(texts), strict=True):
            if text is not None and spans:
                row[name] = _pieces(text, spans)
    return marked


def _pieces(text: str, spans: list[tuple[int, int]]) -> Pieces:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [piece for piece in [*pieces, (text[at:], False)] if piece[0]]


def interval_for(start: date | datetime, end: date | datetime) -> str:
    """The shortest interval that cuts a range into at most 90 bars; days are never cut."""
    whole_days = not isinstance(start, datetime)
    length = (_instant(end) - _instant(start)).total_seconds()
    for name, seconds in _INTERVALS.items():
        if length / seconds <= _MOST_BARS and not (whole_days and seconds < _D):
            return name
    return "10y"


def _instant(value: date | datetime) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def filter_of(table: AnyTable, row_request: RowRequest, *, without: str | None = None) -> Node | None:
    """The filter of a request, read against the columns of the table."""
    return row_request.where(table.schema, table.time_zone, without=without)


def scan_summary(table: AnyTable, began: float) -> dict[str, Any]:
    """How an answer came about: time, files left out and read, bytes, notes of the newest scan."""
    scan = table.last_scan
    if scan is None:
        return {"milliseconds": _since(began)}
    # The files of a Delta table are read by Arrow itself, which does not say how much it reads.
    read = bytes_counted() if isinstance(table, Table) else None
    return {
        "milliseconds": _since(began),
        **({} if read is None else {"bytes_read": read}),
        "considered": scan.files.considered,
        "pruned_by_partition": scan.files.pruned_by_partition,
        "skipped_by_statistics": scan.files.skipped_by_statistics,
        "files_read": scan.files_read,
        "engine": scan.replay.engine,
        **({} if scan.coverage is None else {"coverage": asdict(scan.coverage)}),
        "notes": list(scan.notes),
        "search": asdict(scan.search),
    }


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


def _counting(served: ServedTable, row_request: RowRequest) -> Table:
    table = served.open(row_request.version)
    if not isinstance(table, Table):
        raise OptionError("values of a Delta table are not counted here: it has no index that knows them")
    return table


def _extent(table: Table, row_request: RowRequest, column: str) -> tuple[Any, Any] | None:
    """From when to when: by the requested span, else by the statistics in the log."""
    kind = table.schema.field(column).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise SchemaError(f"{column!r} is {type_to_sql(kind)}; a histogram here is over dates or timestamps")
    span = row_request.span
    start = moment(span.start, kind) if span and span.column == column and span.start else None
    end = moment(span.end, kind) if span and span.column == column and span.end else None
    if start is None or end is None:
        files = table.files(filter_of(table, replace(row_request, query=None)))
        low, high = (_bound(files, side, column) for side in ("min", "max"))
        start, end = start or low, end or high
    if start is None or end is None or end < start:
        return None
    return start, end


def _bound(files: pa.Table, side: str, column: str) -> Any:
    values = pc.struct_field(files.column(side), column) if _has(files, side, column) else None
    if values is None:
        return None
    return (pc.min if side == "min" else pc.max)(values).as_py()


def _has(files: pa.Table, side: str, column: str) -> bool:
    kind = files.schema.field(side).type
    return bool(pa.types.is_struct(kind) and kind.get_field_index(column) >= 0)


def _dicts(page: pa.Table) -> Iterator[dict[str, Any]]:
    yield from page.to_pylist(maps_as_pydicts="lossy")


def _shown(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _SAFE_INTEGER:
        return str(value)
    return plain_value(value)
