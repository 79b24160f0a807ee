"""The parameters of a request as a value: which rows, which columns, in which order, how many.

A filter comes as values of a column, a range of time, or SQL text; all of them
become one tree, typed by the schema. Nothing of a request is pasted into SQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from indextables.errors import OptionError, PredicateError
from indextables.model.names import quoted_name, require_name
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.expr import Expr, col
from indextables.predicate.tree import Node, all_of
from indextables.split.search.run import SCORE

PAGE_ROWS = 50
MOST_ROWS = 1000
DEEPEST_ROW = 100_000


@dataclass(frozen=True, slots=True)
class Choice:
    """Values of one column that a row must have, or must not have. None stands for no value."""

    column: str
    values: tuple[Any, ...]
    excluded: bool = False

    def to_expr(self) -> Expr:
        """The condition."""
        column = quoted(self.column)
        values = [value for value in self.values if value is not None]
        parts = [column.isin(values)] if values else []
        parts += [column.is_null()] if None in self.values else []
        chosen = parts[0] if len(parts) == 1 else parts[0] | parts[1]
        if not self.excluded:
            return chosen
        # A row without a value does not have the excluded ones.
        return ~chosen if None in self.values else ~chosen | column.is_null()


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of a time column: from `start` on, before `end`."""

    column: str
    start: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Which rows of which version, which of their columns, in which order, and which page of them."""

    query: str | None = None
    text: str | None = None
    choices: tuple[Choice, ...] = ()
    span: TimeRange | None = None
    version: int | None = None
    columns: tuple[str, ...] | None = None
    sort: str | None = None
    descending: bool = False
    limit: int = PAGE_ROWS
    offset: int = 0

    def of(self, schema: pa.Schema) -> RowRequest:
        """The same request with every column as the table spells it; SchemaError names one it lacks."""
        names = schema.names
        return replace(
            self,
            choices=tuple(
                replace(choice, column=require_name(names, choice.column)) for choice in self.choices
            ),
            span=self.span and replace(self.span, column=require_name(names, self.span.column)),
            columns=None if self.columns is None else tuple(require_name(names, one) for one in self.columns),
            sort=self.sort if self.sort in (None, SCORE) else require_name(names, self.sort),
        )

    def where(self, schema: pa.Schema, zone: str, *, without: str | None = None) -> Node | None:
        """The filter as a tree; `without` leaves out the choices of one column."""
        spelled = self.of(schema)
        parts = [] if self.text is None else [as_node(self.text, schema, zone)]
        parts += [
            as_node(choice.to_expr(), schema, zone) for choice in spelled.choices if choice.column != without
        ]
        if spelled.span is not None:
            column = quoted(spelled.span.column)
            kind = schema.field(spelled.span.column).type
            if spelled.span.start is not None:
                parts.append(as_node(column >= moment(spelled.span.start, kind), schema, zone))
            if spelled.span.end is not None:
                parts.append(as_node(column < moment(spelled.span.end, kind), schema, zone))
        return all_of([part for part in parts if part is not None]) if parts else None


def read_row_request(params: Mapping[str, str]) -> RowRequest:
    """Read the parameters of a request; OptionError names one that cannot be understood."""
    time = params.get("time") or None
    span = TimeRange(time, params.get("from") or None, params.get("to") or None) if time else None
    sort = params.get("sort") or None
    limit = _whole(params, "limit", PAGE_ROWS)
    offset = _whole(params, "offset", 0)
    if not 0 < limit <= MOST_ROWS or offset > DEEPEST_ROW:
        raise OptionError(f"a page has up to {MOST_ROWS} of the first {DEEPEST_ROW:,} rows; download has all")
    version = params.get("version")
    return RowRequest(
        query=(params.get("q") or "").strip() or None,
        text=(params.get("where") or "").strip() or None,
        choices=_choices(params.get("filters")),
        span=span,
        version=_whole(params, "version", 0) if version else None,
        columns=_names(params.get("columns")),
        sort=sort,
        descending=params.get("order") == "desc",
        limit=limit,
        offset=offset,
    )


def moment(text: str, kind: pa.DataType) -> date | datetime:
    """A time as a column of that type compares it; without an offset it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PredicateError(f"{text!r} is not a time such as 2024-05-03T10:00:00Z", part=text) from None
    if pa.types.is_date(kind):
        return time.date()
    if not pa.types.is_timestamp(kind):
        raise PredicateError("a range of time needs a column of dates or timestamps", part=text)
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return aware if kind.tz else aware.astimezone(UTC).replace(tzinfo=None)


def quoted(name: str) -> Expr:
    """A top-level column of exactly that name."""
    return col(quoted_name(name))


def _choices(text: str | None) -> tuple[Choice, ...]:
    if not text:
        return ()
    try:
        items = json.loads(text)
        return tuple(
            Choice(str(item["column"]), tuple(map(_plain, item["values"])), bool(item.get("not")))
            for item in items
            if item["values"]
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise OptionError(
            'filters is not JSON such as [{"column": "level", "values": ["error"], "not": false}]'
        ) from None


def _plain(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise TypeError(value)
    return value


def _names(text: str | None) -> tuple[str, ...] | None:
    if not text:
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise OptionError('columns is not JSON such as ["ts", "message"]')
    return tuple(names) or None


def _whole(params: Mapping[str, str], name: str, default: int) -> int:
    text = params.get(name) or str(default)
    if not text.isdigit():
        raise OptionError(f"{name} is {text!r}; give a whole number")
    return int(text)
