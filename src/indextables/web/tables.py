"""The tables that are served, by name, and how each is described to the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from indextables.any_table import open_table
from indextables.companion.opening import open_version
from indextables.errors import NotATableError, NotFoundError, OptionError
from indextables.model.types import type_to_sql
from indextables.table import Table

if TYPE_CHECKING:
    from indextables.delta import DeltaTable
    from indextables.log.transaction_log import TransactionLog

_TIME_NAMES = ("@timestamp", "timestamp", "ts", "time", "event_time", "datetime", "created_at", "date")


class ServedTable:
    """A table under the name that the page shows, kept open from one request to the next.

    Every request asks the store once whether there is a newer version, or another table in this place;
    what was read of the log before is used again.
    """

    def __init__(
        self,
        name: str,
        uri: str,
        options: Mapping[str, str] | None = None,
        log: TransactionLog | None = None,
    ) -> None:
        self.name = name
        self.uri = uri
        self.options = dict(options or {})
        self._log = log

    def open(self, version: int | None = None) -> Table | DeltaTable:
        """A handle for one request alone, so that its last scan is about that one."""
        log = self._log
        if log is not None:
            try:
                return Table(log, open_version(log, version, max_staleness_s=0), pinned=True)
            except NotATableError:
                # Nothing is left here, or a table of another kind.
                self._log = None
        table = open_table(self.uri, version, self.options)
        if isinstance(table, Table):
            self._log = table.log
        return table


class Catalog:
    """The served tables, in the order they were given."""

    def __init__(self, tables: Iterable[ServedTable]) -> None:
        self._tables = {table.name: table for table in tables}

    @classmethod
    def of(cls, texts: Iterable[str], options: Mapping[str, str] | None = None) -> Catalog:
        """Read `URI` or `NAME=URI` of each table; every one has to be there."""
        tables: dict[str, ServedTable] = {}
        for text in texts:
            name, equals, uri = text.partition("=")
            if not equals or "/" in name or ":" in name:
                name, uri = unquote(text.rstrip("/").rpartition("/")[2]) or text, text
            if name in tables:
                raise OptionError(f"two tables would be called {name!r}; write NAME=PATH to name one of them")
            tables[name] = ServedTable(name, uri, dict(options or {}))
            tables[name].open()
        return cls(tables.values())

    def __iter__(self) -> Any:
        return iter(self._tables.values())

    def find(self, name: str) -> ServedTable:
        """The table of a name; NotFoundError lists the names there are."""
        if name not in self._tables:
            raise NotFoundError(f"there is no table {name!r} here; served are {', '.join(self._tables)}")
        return self._tables[name]


def summary(served: ServedTable, version: int | None = None) -> dict[str, Any]:
    """What a table is: its version, its columns and what each can be used for."""
    table = served.open(version)
    state = table.describe()
    kinds = {column.name: column.index for column in state.columns}
    columns = [
        {
            "name": item.name,
            "type": type_to_sql(item.type),
            "index": kinds.get(item.name),
            "partition": item.name in table.partition_columns,
            "time": _is_time(item.type),
            "facet": _is_facet(item.type, kinds.get(item.name)),
            "sortable": not pa.types.is_nested(item.type),
            "number": _is_number(item.type),
        }
        for item in table.schema
    ]
    return {
        "name": served.name,
        "uri": table.uri,
        "delta": not isinstance(table, Table),
        "version": table.version,
        "rows": state.num_rows,
        "files": state.num_files,
        "bytes": state.size_bytes,
        "columns": columns,
        "time": time_column(table.schema),
    }


def time_column(schema: pa.Schema) -> str | None:
    """The column that says when: a timestamp rather than a date, a usual name rather than another."""
    times = [item.name for item in schema if pa.types.is_timestamp(item.type)]
    dates = [item.name for item in schema if pa.types.is_date(item.type)]

    def rank(name: str) -> int:
        return _TIME_NAMES.index(name.lower()) if name.lower() in _TIME_NAMES else len(_TIME_NAMES)

    return min(times or dates, key=rank, default=None)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_facet(kind: pa.DataType, index: str | None) -> bool:
    """Whether counting the values of a column tells something: not of texts, fractions or instants."""
    if pa.types.is_string(kind):
        return index not in ("text", "json")
    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind))
