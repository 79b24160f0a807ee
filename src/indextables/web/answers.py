"""Answers to the page's questions, as values that JSON can carry.

Each is one call of a table's own verb, and says beside the answer how it came
about: the version, the files left out and read, the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.display.plain import plain_value
from indextables.errors import OptionError, SchemaError
from indextables.model.names import quoted_name, require_name
from indextables.model.types import type_to_sql
from indextables.ops.read.rows import Rows
from indextables.split.search.run import SCORE
from indextables.split.source import bytes_counted
from indextables.table import Table
from indextables.web.intervals import interval_for, length_of
from indextables.web.marks import marks
from indextables.web.questions import Question, moment
from indextables.web.tables import Served

if TYPE_CHECKING:
    from indextables.delta import DeltaTable
    from indextables.predicate.tree import Node

    AnyTable = Table | DeltaTable

_SAFE_INTEGER = 1 << 53
"""Beyond this a browser's numbers lose digits."""


def rows(served: Served, question: Question) -> dict[str, Any]:
    """One page of rows, with the words that were found marked."""
    began = time.perf_counter()
    table = served.open(question.version)
    wanted = question.offset + question.limit + 1
    found = first_rows(table, question, wanted)
    page = found.slice(question.offset, question.limit)
    return {
        "version": table.version,
        "columns": [{"name": item.name, "type": type_to_sql(item.type)} for item in page.schema],
        "rows": [[_shown(value) for value in row.values()] for row in _dicts(page)],
        "marks": marks(table, question.query, page) if question.query and isinstance(table, Table) else [],
        "offset": question.offset,
        "more": found.num_rows == wanted,
        "found": how(table, began),
    }


def first_rows(table: AnyTable, question: Question, count: int) -> pa.Table:
    """The first rows of an answer, in the order that is asked for."""
    with stream(table, question, count) as rows:
        return rows.head(count)


def stream(table: AnyTable, question: Question, limit: int | None = None) -> Rows:
    """All rows of an answer, or the first of them, as a stream of batches."""
    question = question.of(table.schema)
    where = filter_of(table, question)
    if not isinstance(table, Table):
        if question.sort is not None:
            raise OptionError("the rows of a Delta table come in the order of its files; leave sort out")
        if question.query is None:
            return table.scan(where, question.columns)
        return table.search(question.query, where, question.columns, limit)
    order = None if question.sort in (None, SCORE) else sort_text(str(question.sort), question.descending)
    if question.query is None:
        return table.scan(where, question.columns, limit, sort=order)
    score = question.sort == SCORE
    return table.search(question.query, where, question.columns, limit, score=score, sort=order)


def sort_text(column: str, descending: bool) -> list[str]:
    """One column as `sort=` takes it, whatever its name holds."""
    return [f"{quoted_name(column)} {'DESC' if descending else 'ASC'}"]


def count(served: Served, question: Question) -> dict[str, Any]:
    """How many rows there are in all."""
    began = time.perf_counter()
    table = served.open(question.version)
    total = table.count(filter_of(table, question), query=question.query)
    return {"version": table.version, "total": total, "found": how(table, began)}


def facets(served: Served, question: Question, column: str, top: int = 12) -> dict[str, Any]:
    """The most frequent values of a column; what is chosen of that column does not narrow them."""
    began = time.perf_counter()
    table = _counting(served, question)
    column = require_name(table.schema.names, column)
    where = filter_of(table, question, without=column)
    found = table.facets(column, query=question.query, where=where, top=top + 1)
    values = [{"value": _shown(row["value"]), "count": row["count"]} for row in found.to_pylist()]
    return {"column": column, "values": values[:top], "more": len(values) > top, "found": how(table, began)}


def histogram(served: Served, question: Question, column: str) -> dict[str, Any]:
    """How many rows there are over time, in bars of a readable width."""
    began = time.perf_counter()
    table = _counting(served, question)
    question = question.of(table.schema)
    column = require_name(table.schema.names, column)
    span = _extent(table, question, column)
    if span is None:
        return {"column": column, "interval": None, "bars": [], "total": 0, "found": how(table, began)}
    interval = interval_for(*span)
    where = filter_of(table, question)
    counted = table.histogram(column, interval, query=question.query, where=where, time_zone="UTC")
    bars = [
        [plain_value(row["bucket"]), row["count"]] for row in counted.to_pylist() if row["bucket"] is not None
    ]
    return {
        "column": column,
        "interval": interval,
        "seconds": length_of(interval).total_seconds(),
        "start": plain_value(span[0]),
        "end": plain_value(span[1]),
        "bars": bars,
        "total": pc.sum(counted.column("count")).as_py() or 0,
        "found": how(table, began),
    }


def filter_of(table: AnyTable, question: Question, *, without: str | None = None) -> Node | None:
    """The filter of a question, read against the columns of the table."""
    return question.where(table.schema, table.time_zone, without=without)


def how(table: AnyTable, began: float) -> dict[str, Any]:
    """How an answer came about."""
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
        "notes": list(scan.notes),
        "search": asdict(scan.search),
    }


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


def _counting(served: Served, question: Question) -> Table:
    table = served.open(question.version)
    if not isinstance(table, Table):
        raise OptionError("values of a Delta table are not counted here: it has no index that knows them")
    return table


def _extent(table: Table, question: Question, column: str) -> tuple[Any, Any] | None:
    """From when to when: as far as the question says, else as the log's statistics have it."""
    kind = table.schema.field(column).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise SchemaError(f"{column!r} is {type_to_sql(kind)}; a histogram here is over dates or timestamps")
    span = question.span
    start = moment(span.start, kind) if span and span.column == column and span.start else None
    end = moment(span.end, kind) if span and span.column == column and span.end else None
    if start is None or end is None:
        files = table.files(filter_of(table, replace(question, query=None)))
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
