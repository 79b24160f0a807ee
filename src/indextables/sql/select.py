"""SELECT without Spark: DuckDB runs the statement, our tables are views of it.

A table is named in the statement by its path, ``'path'`` or ``indextables.`path` ``,
or by a name that the caller gives. `column indexquery 'words'` may stand in any boolean
position, as in Spark: the statement is rewritten by the same rules, and each
table it reads becomes a stream of Arrow batches that is read anew for each scan.
The bucket functions of Spark are known here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.any_table import open_table
from indextables.errors import CommandError, Error
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.ops.read.in_order import in_order
from indextables.ops.read.record import Record
from indextables.ops.read.scan import rows_found, rows_of
from indextables.ops.table_settings import query_of
from indextables.options import Options
from indextables.runtime import default_parallelism
from indextables.split.layout import SplitRef
from indextables.split.search import hits_split
from indextables.split.selection import Selection
from indextables.sql.bucket_functions import make_functions, names_bucket_function
from indextables.sql.mentions import quoted_paths_as_names
from indextables.sql.rewrite import Reference, Rewritten, Search, hidden_view, rewrite
from indextables.storage import duck
from indextables.table import Table

_READS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(select|with|from|describe\s+select|explain)\b",
    re.IGNORECASE | re.DOTALL,
)

_OF_OURS = re.compile(r"^.*? while executing the UDF: \w+: ", re.DOTALL)
_NAMING = "Tables are named by path, FROM 'path/to/table', or on the command line by --table NAME=PATH."


def is_select(text: str) -> bool:
    """Whether a statement reads rows, so that it is none of the maintenance commands."""
    return _READS.match(text) is not None


def run_select(
    text: str, tables: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
) -> pa.Table:
    """The rows of a SELECT over tables by path, and over those that `tables` gives names to."""
    import duckdb

    named = {name.lower(): open_table(uri, None, options) for name, uri in (tables or {}).items()}
    opened: dict[Reference, Any] = {}

    def table_of(reference: Reference) -> Any:
        if not reference.by_path:
            return named.get(reference.name[-1].lower()) if len(reference.name) == 1 else None
        if reference.timestamp is not None:
            raise CommandError("TIMESTAMP AS OF is for Spark; use VERSION AS OF here")
        if reference not in opened:
            opened[reference] = open_table(reference.name[0], reference.version, options)
        return opened[reference]

    def columns_of(reference: Reference) -> Sequence[str] | None:
        table = table_of(reference)
        return None if table is None else table.schema.names

    text = quoted_paths_as_names(text)
    try:
        rewritten = rewrite(text, columns_of, hiding="EXCLUDE")
    except CommandError as wrong:
        raise CommandError(f"{wrong} {_NAMING}") from wrong
    connection = duck.connect(enable_external_access="false")
    failed: list[Error] = []
    try:
        if names_bucket_function(text):
            make_functions(connection, Options.of(options).search.time_zone)
        for name, table in named.items():
            connection.register(name, _Stream(table.scan, failed))
        for number, reference in enumerate(rewritten.references if rewritten else ()):
            make = _rows_of(table_of(reference), rewritten, number)
            connection.register(hidden_view(number), _Stream(make, failed))
        found = connection.sql(rewritten.text if rewritten else text)
        if found is None:
            raise CommandError("the statement gives no rows; only SELECT is run here")
        return found.to_arrow_table()
    except duckdb.Error as wrong:
        if failed:
            raise failed[0] from wrong
        raise CommandError(f"DuckDB cannot run the statement: {_said(wrong)}") from wrong
    finally:
        connection.close()


class _Stream:
    """What DuckDB scans: each scan asks for the rows again.

    An error of ours goes through DuckDB as text; `failed` keeps it as it is.
    """

    def __init__(self, make: Callable[[], Any], failed: list[Error]) -> None:
        self._make = make
        self._failed = failed

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        try:
            rows = self._make()
        except Error as error:
            self._failed.append(error)
            raise
        watched = pa.RecordBatchReader.from_batches(rows.schema, self._watched(rows))
        return watched.__arrow_c_stream__(requested_schema)

    def _watched(self, rows: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except Error as error:
            self._failed.append(error)
            raise


def _rows_of(table: Any, rewritten: Rewritten | None, number: int) -> Callable[[], Any]:
    """The function that reads a table's rows for the statement; it is called for each scan."""
    assert rewritten is not None
    searches = [item for item in rewritten.searches if item.reference == number]
    columns = None
    if rewritten.columns is not None:
        # A statement that counts rows mentions no column; one is enough to count by.
        columns = [name for name in table.schema.names if name.lower() in rewritten.columns]
        columns = columns or [table.schema.names[0]]
    if not searches:
        return partial(table.scan, None, columns)
    if not isinstance(table, Table):
        raise CommandError("a Delta table has no index; search it with indextables search")
    return partial(_searched, table, columns or list(table.schema.names), searches)


def _searched(table: Table, columns: list[str], searches: Sequence[Search]) -> pa.RecordBatchReader:
    """The rows of a table with a boolean column per search, or those that the required searches find."""
    snapshot = table.log.snapshot(table.version)
    queries = [
        query_of(snapshot, item.query, None if item.column is None else [item.column]) for item in searches
    ]
    record = Record(snapshot)
    hidden = [item for item in searches if not item.required]
    schema = pa.schema(
        [
            *(snapshot.schema.field(name) for name in columns),
            *(pa.field(item.hidden, pa.bool_()) for item in hidden),
        ]
    )
    pairs = list(zip(searches, queries, strict=True))
    make: Callable[[AddAction], Iterator[pa.Table]]
    if len(searches) == 1 and not hidden:

        def make(add: AddAction) -> Iterator[pa.Table]:
            selection = Selection(queries[0], columns=tuple(columns))
            return rows_found(snapshot, SplitRef.of(add), selection, record)
    else:

        def make(add: AddAction) -> Iterator[pa.Table]:
            return _marked(snapshot, add, pairs, columns, record)

    pieces = (partial(make, add) for add in snapshot.adds())

    def batches() -> Iterator[pa.RecordBatch]:
        for part in in_order(pieces, default_parallelism()):
            yield from part.cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _marked(
    snapshot: Snapshot,
    add: AddAction,
    pairs: Sequence[tuple[Search, Any]],
    columns: list[str],
    record: Record,
) -> Iterator[pa.Table]:
    hits = [
        np.asarray(hits_split(snapshot.reading, SplitRef.of(add), Selection(query))) for _, query in pairs
    ]
    wanted = list(dict.fromkeys([*columns, *(item.column for item, _ in pairs if item.column)]))
    start = 0
    for rows in rows_of(snapshot, add, None, wanted, record):
        keep: Any = pa.repeat(pa.scalar(True), rows.num_rows)
        shown = rows.select(columns)
        for (item, _), found in zip(pairs, hits, strict=True):
            at = found[(found >= start) & (found < start + rows.num_rows)] - start
            mask = np.zeros(rows.num_rows, bool)
            mask[at] = True
            if item.required:
                keep = pc.and_(keep, pa.array(mask))
                continue
            truth = pa.array(mask)
            if item.column is not None:
                absent = pc.is_null(rows.column(item.column)).combine_chunks()
                truth = pc.if_else(absent, pa.scalar(None, pa.bool_()), truth)
            shown = shown.append_column(item.hidden, truth)
        start += rows.num_rows
        yield shown.filter(keep)


def _said(wrong: Exception) -> str:
    """DuckDB's message without the echo of the statement, and how tables are named where it found none."""
    said = _OF_OURS.sub("", str(wrong).strip().split("\n\n")[0])
    return f"{said}\n{_NAMING}" if "Table with name" in said else said
