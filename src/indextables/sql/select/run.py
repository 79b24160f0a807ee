"""SELECT without Spark: DuckDB runs the statement, our tables are views of it.

A table is named in the statement by its path, ``'path'`` or ``indextables.`path` ``,
or by a name that the caller gives. `column indexquery 'words'` may stand in any boolean
position, as in Spark: the statement is rewritten by the same rules, and each
table it reads becomes a stream of Arrow batches that is read anew for each scan.
What WHERE requires of a table goes along: conditions become the filter of its scan, a
search becomes its query. The bucket functions of Spark are known here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.any_table import open_table
from indextables.duck import database
from indextables.errors import CommandError, Error
from indextables.handle import Handle
from indextables.index.query.tree import all_of as all_queries
from indextables.lazy import duckdb, pc
from indextables.log.snapshot import Snapshot
from indextables.model.names import no_column
from indextables.ops.read.changes import change_schema
from indextables.ops.read.highlighting import highlighter_of, marker
from indextables.ops.read.in_order import in_order
from indextables.ops.read.record import Record
from indextables.ops.read.search import search
from indextables.ops.read.splits import live_splits, splits_at
from indextables.ops.table_settings import query_of_statement
from indextables.options import Options
from indextables.predicate.names import resolve
from indextables.predicate.tree import Node, all_of
from indextables.predicate.zones import zone_of
from indextables.split.layout import SplitRef
from indextables.split.search.filtered import Filtered
from indextables.split.search.run import hits_split
from indextables.split.search.selection import Selection
from indextables.sql.select.bucket_functions import make_functions, names_bucket_function
from indextables.sql.select.mentions import DUCKDB, ChangeRange
from indextables.sql.select.pushdown import Pushed, pushed_down
from indextables.sql.select.rewrite import hidden_view, rewrite
from indextables.sql.select.rewritten import Highlight, Reference, ResolvedSearch, Rewritten
from indextables.sql.select.search_functions import make_search_functions, spelled_for_duckdb
from indextables.storage.store import scans_at_once
from indextables.table import Table

_COMMENTS = r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*"
_READS = re.compile(_COMMENTS + r"(select|with|from|describe\s+select|explain)\b", re.IGNORECASE | re.DOTALL)
_PREFIX = re.compile(_COMMENTS + r"(?:(?:explain(?:\s+analyze)?|describe)\s)?", re.IGNORECASE | re.DOTALL)

_OF_OURS = re.compile(r"^.*? while executing the UDF: \w+: ", re.DOTALL)
_NO_COLUMN = re.compile(r'Referenced column "(.*?)" not found|does not have a column named "(.*?)"')
_NO_TABLE = re.compile(r'Table with name (.+?) does not exist|Referenced table "(.*?)" not found')
_HIDDEN = re.compile(r'"?\b__(?:indextables|table)_(\d+)\b"?')
_NAMING = "Tables are named by path, FROM 'path/to/table', or on the command line by --table NAME=PATH."


def is_select(text: str) -> bool:
    """Whether a statement reads rows, so that it is none of the maintenance commands."""
    return _READS.match(text) is not None


def run_select(
    text: str,
    tables: Mapping[str, str | Handle[Any]] | None = None,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The rows of a SELECT over tables by path, and over those that `tables` gives names to.

    Times without an offset are read in one zone: the option `timeZone`, else the zone that properties of the
    tables name, else UTC. Instants in the result are in UTC, as in every other result.
    """
    opened = _Tables(tables or {}, options)
    text = spelled_for_duckdb(text)
    start = _PREFIX.match(text).end()  # type: ignore[union-attr]
    try:
        rewritten = rewrite(text[start:], opened.columns_of, engine=DUCKDB, instant_of=opened.instant_of)
    except CommandError as wrong:
        raise CommandError(f"{wrong} {_NAMING}") from wrong
    rewritten = rewritten or Rewritten(text[start:], (), (), frozenset())
    zone = opened.zone(rewritten.references)
    connection = _connected(zone)
    failed: list[Error] = []
    try:
        if names_bucket_function(text):
            make_functions(connection, zone)
        make_search_functions(connection, text)
        for name, table in opened.named.items():
            connection.register(name, _Stream(table.scan, failed))
        for number, reference in enumerate(rewritten.references):
            rows = _rows_of(opened.of(reference), rewritten, number, zone)
            connection.register(hidden_view(number), _Stream(rows, failed))
        relation = connection.sql(text[:start] + rewritten.text)
        if relation is None:
            raise CommandError("the statement gives no rows; only SELECT is run here")
        return _in_utc(relation.to_arrow_table())
    except duckdb.Error as wrong:
        if failed:
            raise failed[0] from wrong
        raise CommandError(_explained(wrong, rewritten.references, opened)) from wrong
    finally:
        connection.close()


class TableChanges:
    """The changes of a table, which a statement reads as if they were rows of one."""

    def __init__(self, table: Table, commits: ChangeRange) -> None:
        self._table = table
        self._commits = commits
        self.schema = change_schema(table.snapshot)
        self.time_zone = table.time_zone
        self.uri = table.uri

    def scan(self, where: Any = None, columns: Sequence[str] | None = None) -> Any:
        """The changed rows, or those for which the filter is true."""
        first, last = self._commits.first, self._commits.last
        begin = {"from_time": first} if isinstance(first, str) else {"from_version": first}
        return self._table.changes(to_version=last, where=where, columns=columns, **begin)


class _Tables:
    """The tables of one statement, each opened once."""

    def __init__(self, named: Mapping[str, str | Handle[Any]], options: Mapping[str, str] | None) -> None:
        self._options = options
        self._by_path: dict[Reference, Any] = {}
        self.named = {
            name.lower(): table if isinstance(table, Handle) else open_table(table, None, options)
            for name, table in named.items()
        }

    def of(self, reference: Reference) -> Any:
        """The open table of a reference; None if it names no table of IndexTables."""
        if not reference.by_path:
            return self.named.get(reference.name[-1].lower()) if len(reference.name) == 1 else None
        if reference.timestamp is not None:
            raise CommandError("TIMESTAMP AS OF is for Spark; use VERSION AS OF here")
        if reference not in self._by_path:
            self._by_path[reference] = self._opened(reference)
        return self._by_path[reference]

    def _opened(self, reference: Reference) -> Any:
        (name,), changes = reference.name, reference.changes
        if changes is None:
            return open_table(name, reference.version, self._options)
        table = self.named.get(name.lower()) or open_table(name, None, self._options)
        if not isinstance(table, Table):
            raise CommandError(f"{name} is a Delta table; table_changes reads tables of IndexTables")
        return TableChanges(table, changes)

    def columns_of(self, reference: Reference) -> Sequence[str] | None:
        table = self.of(reference)
        return None if table is None else table.schema.names

    def zone(self, references: Sequence[Reference]) -> str:
        """The zone of a statement. A table in UTC, as one without a zone of its own is, gives way."""
        options = Options.of(self._options)
        tables = list(map(self.of, references)) or list(self.named.values())
        if not tables or "timeZone" in options.explicit:
            return options.search.time_zone
        zones: dict[str, str] = {table.time_zone: table.uri for table in tables}
        others = {zone: uri for zone, uri in zones.items() if zone_of(zone) != 0}
        if len(others) > 1:
            listed = ", ".join(f"{uri} is in {zone}" for zone, uri in others.items())
            raise CommandError(
                f"the tables of this statement have time zones of their own ({listed}), and one statement "
                "has only one; give the option timeZone"
            )
        return next(iter(others or zones))

    def instant_of(
        self, references: Sequence[Reference], reference: Reference, column: str, value: str
    ) -> str | None:
        """What a text that is compared with a column is in UTC, if DuckDB would take it for another time."""
        kind = resolve((column,), self.of(reference).schema).type
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            return None
        return _first_of_two(value, self.zone(references))


def _connected(zone: str) -> Any:
    """A connection of DuckDB whose session has the zone."""
    try:
        return database.connect(TimeZone=_name_in_duckdb(zone), enable_external_access="false")
    except duckdb.NotImplementedException as unknown:
        raise CommandError(
            f"DuckDB {duckdb.__version__} cannot be in the time zone {zone!r}. Name a zone such as "
            "'Asia/Kolkata' in the option timeZone, or install DuckDB 2.0 or later."
        ) from unknown


def _name_in_duckdb(zone: str) -> str:
    """What DuckDB calls a zone; an offset is a zone by another name there.

    Whole hours have names that every release knows, with the sign the other way round.
    """
    rules = zone_of(zone)
    if not isinstance(rules, int):
        return rules.key
    hours, rest = divmod(abs(rules) // 1_000_000, 3600)
    if not rest and hours <= (12 if rules < 0 else 14):
        return f"Etc/GMT{'+' if rules < 0 else '-'}{hours}" if hours else "UTC"
    return f"GMT{'-' if rules < 0 else '+'}{hours:02}:{rest // 60:02}:{rest % 60:02}"


def _first_of_two(text: str, zone: str) -> str | None:
    """The time in UTC of a local time that happened twice: the first of the two. DuckDB takes the second."""
    rules = zone_of(zone)
    if isinstance(rules, int):
        return None
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        return None
    if local.tzinfo is not None:
        return None
    first, second = (local.replace(tzinfo=rules, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first.replace(tzinfo=None).isoformat(" ") if first < second else None


def _in_utc(rows: pa.Table) -> pa.Table:
    """The same instants, shown in UTC."""

    def shown(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_timestamp(kind) and kind.tz:
            return pa.timestamp(kind.unit, "UTC")
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(shown(kind.value_type)))
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(shown(field.type)) for field in kind])
        if pa.types.is_map(kind):
            return pa.map_(shown(kind.key_type), shown(kind.item_type))
        return kind

    schema = pa.schema([field.with_type(shown(field.type)) for field in rows.schema], rows.schema.metadata)
    return rows if schema == rows.schema else rows.cast(schema)


class _Stream:
    """What DuckDB scans: each scan asks for the rows again.

    DuckDB passes on an error of IndexTables as text only; `failed` keeps the error itself.
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


def _rows_of(table: Any, rewritten: Rewritten, number: int, zone: str) -> Callable[[], Any]:
    """The function that reads a table's rows for the statement; it is called for each scan."""
    searches = [item for item in rewritten.searches if item.reference == number]
    highlights = [item for item in rewritten.highlights if item.reference == number]
    conditions = [one for at, one in rewritten.conditions if at == number]
    pushed = [part for one in conditions if (part := pushed_down(one, table.schema, zone)) is not None]
    columns = list(table.schema.names)
    if rewritten.columns is not None:
        # A statement that counts rows mentions no column; one is enough to count by.
        columns = [name for name in columns if name.lower() in rewritten.columns] or columns[:1]
    if (searches or highlights) and not isinstance(table, Table):
        what = "changes have" if isinstance(table, TableChanges) else "a Delta table has"
        raise CommandError(f"{what} no index; search the table itself with indextables search")
    read = partial(_read, table, columns, searches, pushed)
    return partial(_highlighted, table, read, highlights) if highlights else read


def _read(
    table: Any, columns: list[str], searches: Sequence[ResolvedSearch], pushed: Sequence[Pushed]
) -> Any:
    """The rows of a table that can count, with a column for each search that not every row has to match."""
    node = all_of([one.node for one in pushed]) if pushed else None
    if not searches:
        return table.scan(node, columns)
    snapshot = table.snapshot
    if any(not item.required for item in searches):
        return _marked(snapshot, columns, searches, node)
    query = all_queries([_query(snapshot, item) for item in searches])
    # The best rows are known before DuckDB sees them only if nothing is left for it to decide.
    exact = sum(one.exact for one in pushed) == searches[0].beside
    best = searches[0].best if exact else None
    return search(snapshot, query, node, columns, best, score=searches[0].score)[0]


def _query(snapshot: Snapshot, search: ResolvedSearch) -> Any:
    return query_of_statement(snapshot, search.query, search.column, with_text=search.required)


def _highlighted(table: Table, read: Callable[[], Any], highlights: Sequence[Highlight]) -> Any:
    """The rows with a column of marked texts for every call of `highlight`."""
    snapshot = table.snapshot
    markers = [marker(highlighter_of(snapshot, one.column, one.query)) for one in highlights]
    rows = read()
    schema = pa.schema([*rows.schema, *(pa.field(one.hidden, pa.string()) for one in highlights)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            texts = [mark(batch.column(one.column)) for mark, one in zip(markers, highlights, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *texts], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _marked(
    snapshot: Snapshot, columns: list[str], searches: Sequence[ResolvedSearch], node: Node | None
) -> pa.RecordBatchReader:
    """The rows of the splits that a filter leaves, with a boolean column for each optional search."""
    pairs = [(item, _query(snapshot, item)) for item in searches]
    record = Record(snapshot)
    schema = pa.schema(
        [
            *(snapshot.schema.field(name) for name in columns),
            *(pa.field(item.hidden, pa.bool_()) for item in searches if not item.required),
        ]
    )
    paths = None if node is None else snapshot.plan(node, columns={"path"}).files.column("path").to_pylist()
    refs = live_splits(snapshot) if paths is None else splits_at(snapshot, paths)
    pieces = (partial(_marked_split, snapshot, ref, pairs, columns, record) for ref in refs)

    def batches() -> Iterator[pa.RecordBatch]:
        for part in in_order(pieces, scans_at_once(snapshot.store)):
            yield from part.cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _marked_split(
    snapshot: Snapshot,
    ref: SplitRef,
    pairs: Sequence[tuple[ResolvedSearch, Any]],
    columns: list[str],
    record: Record,
) -> Iterator[pa.Table]:
    """The rows of a split that every required search finds; each other search adds a column of its truth.

    Each pair is a search of the statement and its query.
    """
    hits = [np.asarray(hits_split(snapshot.reading, ref, Selection(query))) for _, query in pairs]
    names = list(dict.fromkeys([*columns, *(item.column for item, _ in pairs if item.column)]))
    for numbers, rows in Filtered(snapshot.reading, ref, None).tables(None, names):
        record.read(rows.num_rows, files=0)
        keep: Any = pa.repeat(pa.scalar(True), rows.num_rows)
        shown = rows.select(columns)
        for (item, _), rows_hit in zip(pairs, hits, strict=True):
            mask = np.isin(numbers, rows_hit, assume_unique=True)
            if item.required:
                keep = pc.and_(keep, pa.array(mask))
                continue
            truth = pa.array(mask)
            if item.column is not None:
                absent = pc.is_null(rows.column(item.column)).combine_chunks()
                truth = pc.if_else(absent, pa.scalar(None, pa.bool_()), truth)
            shown = shown.append_column(item.hidden, truth)
        yield shown.filter(keep)
    record.read(0)


def _explained(wrong: Exception, references: Sequence[Reference], tables: _Tables) -> str:
    """DuckDB's message without the echo of the statement, and in the names that its author used."""
    message = _OF_OURS.sub("", str(wrong).strip().split("\n\n")[0])
    if match := _NO_COLUMN.search(message):
        names = dict.fromkeys(name for one in references for name in tables.columns_of(one) or ())
        return no_column(names, match[1] or match[2], "what the statement reads")
    if match := _NO_TABLE.search(message):
        name = match[1] or match[2]
        hint = f"For the directory of that name write FROM '{name}'. " if Path(name).is_dir() else ""
        return f"there is no table {name!r} here. {hint}{_NAMING}"

    def written(hidden: re.Match[str]) -> str:
        number = int(hidden[1])
        return f"'{'.'.join(references[number].name)}'" if number < len(references) else hidden[0]

    return f"DuckDB cannot run the statement: {_HIDDEN.sub(written, message)}"
