"""`spark.sql`: what is ours in a statement is answered here, and all else by Spark's own method.

Maintenance commands go to the runner. Views over tables, inserts into them and
queries that read by path or search are turned into calls of our reader and
writer and into SQL over hidden views, which exist only while Spark resolves
the statement.
"""

from __future__ import annotations

import datetime as dt
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.errors import CommandError, NotATableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.history import time_of_text
from indextables.model.names import quoted_name, unquoted_name
from indextables.spark.load import load_table
from indextables.spark.options import CallSettings, is_connect, session_zone
from indextables.spark.read.frame import LoadedTable, reading_way
from indextables.spark.read.scans import searches_in
from indextables.spark.read.version import resolve_read
from indextables.spark.read.views import (
    TableView,
    names_a_view,
    refresh_named,
    register_view,
    table_of_frame,
    table_of_name,
)
from indextables.spark.requests import ReadRequest
from indextables.spark.search.dataframe import hidden_frame, no_index, with_highlights
from indextables.spark.sql.bucket_functions import make_functions
from indextables.spark.sql.own_statements import create_view, has_parser, is_own_command, names_tables
from indextables.spark.versions import frame_of_arrow
from indextables.spark.write.save import insert_frame
from indextables.sql.recogniser import (
    Change,
    CreateView,
    Insert,
    Statement,
    insertion_of,
    recognise,
)
from indextables.sql.runner import sql as run_sql
from indextables.sql.select.conditions import pruning_filter
from indextables.sql.select.rewrite import hidden_view, rewrite, rewrite_paths
from indextables.sql.select.rewritten import Reference, Rewritten

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

Sql = Callable[..., Any]

_AT_VERSION = re.compile(r"@v\d+$")


def run_statement(spark: Any, original: Sql, text: str, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """Run a statement of `spark.sql`: by us what is ours, and by Spark's own method all else."""
    statement = recognise(text)
    if "bucket" in statement.mentions:
        make_functions(spark, original)
    # A view that a client of Connect has made is not known to the server as one of ours.
    by_client = not has_parser(spark) or (is_connect(spark) and names_a_view(spark, text))
    by_parser = statement.is_command and not by_client
    if statement.is_sparks or by_parser:
        refresh_named(spark, text)
        return original(text, args, **kwargs)
    frames: Mapping[str, Any] = {}
    if kwargs:
        text, frames = _format(spark, text, kwargs)
        statement = recognise(text)
    if is_own_command(spark, statement.form):
        return frame_of_arrow(spark, run_sql(text, spark))
    match statement.form:
        case CreateView() as created if not names_tables(spark) or (created.temporary and is_connect(spark)):
            create_view(spark, created)
            return _nothing(spark)
        case Change() as change if (table := _table_of_view(spark, change.target)) is not None:
            raise _no_change(change, table.path)
        case Insert() as insert if (table := _table_of_view(spark, insert.target)) is not None:
            return _insert(spark, insert, table, args, frames)
    return _query(spark, original, statement, args, frames)


def _table_of_view(spark: Any, name: tuple[str, ...]) -> LoadedTable | None:
    """The table behind a view of IndexTables; Spark itself knows how to change a named table, and a path."""
    by_path = len(name) > 1 and name[0].lower() == "indextables" and names_tables(spark)
    return None if by_path else table_of_name(spark, name)


def _no_change(change: Change, path: str) -> CommandError:
    name, location = ".".join(change.target), path.replace("'", "\\'")
    other = (
        ""
        if change.verb == "DELETE"
        else f" Or replace rows with INSERT INTO {name} REPLACE WHERE ... SELECT ..."
    )
    return CommandError(
        f"{change.verb} is not supported on {name}, a view of the IndexTables table {path}. Run it on the "
        f"table: on indextables.{quoted_name(path)}, or on a name that CREATE TABLE ... USING indextables "
        f"LOCATION '{location}' gives it.{other}"
    )


def _query(spark: Any, original: Sql, statement: Statement, args: Any, frames: Mapping[str, Any]) -> Any:
    """Run a statement with hidden views in place of what Spark does not know by itself.

    Searches are left to Spark's parser and optimizer, which know them, except on Connect and in tables
    that are read in Python.
    """
    head, query = statement.text[: statement.start], statement.text[statement.start :]
    lookup = _Lookup(spark, frames)
    rewritten = rewrite_paths(query) if statement.mentions & {"search", "path"} else None
    if rewritten is not None and lookup.in_python(rewritten, query):
        rewritten = rewrite(query, lookup.columns, args)
    elif rewritten is None or all(map(lookup.has_a_name, rewritten.references)):
        refresh_named(spark, statement.text)
        frame = original(_unformat(statement.text, frames), args, **frames)
        if not statement.is_explained or "search" not in statement.mentions or is_connect(spark):
            return frame
        return _explained(spark, frame, original(_unformat(query, frames), args, **frames))
    assert rewritten is not None
    views = {**frames, **_hidden_frames(spark, rewritten, lookup)}
    remaining = _remaining(args, rewritten)
    if statement.view is None:
        return original(_unformat(head + rewritten.text, views), remaining, **views)
    frame = original(_unformat(rewritten.text, views), remaining, **views)
    name = unquoted_name(statement.view.name)
    register_view(frame, TableView(name, replace=statement.view.replace, shared=statement.view.shared))
    return _nothing(spark)


def _explained(spark: Any, explanation: Any, frame: Any) -> Any:
    """The output of EXPLAIN for a query, with how its searches are run."""
    plan = "\n".join([explanation.first()[0], *searches_in(frame)])
    return spark.createDataFrame([(plan,)], explanation.schema)


def _hidden_frames(spark: Any, rewritten: Rewritten, lookup: _Lookup) -> dict[str, Any]:
    frames = {}
    for number, reference in enumerate(rewritten.references):
        searches = [search for search in rewritten.searches if search.reference == number]
        highlights = [item for item in rewritten.highlights if item.reference == number]
        if searches:
            version = lookup.version_of(reference)
            if isinstance(version[1], DeltaSnapshot):
                raise CommandError(no_index(version[1]))
            conditions = [item for at, item in rewritten.conditions if at == number]
            where = pruning_filter(conditions, version[1].schema, session_zone(spark))
            frame = hidden_frame(spark, version, searches, rewritten.columns, where)
            frames[hidden_view(number)] = with_highlights(frame, version[1], highlights)
        elif highlights:
            raise CommandError(
                "highlight marks what a search finds: it needs an indexquery about the same table"
            )
        else:
            frames[hidden_view(number)] = load_table(spark, lookup.request(reference))
    return frames


class _Lookup:
    """Resolves the table references of one statement."""

    def __init__(self, spark: Any, frames: Mapping[str, Any]) -> None:
        self._spark = spark
        self._frames = frames
        self._versions: dict[Reference, tuple[CallSettings, Snapshot]] = {}

    def version_of(self, reference: Reference) -> tuple[CallSettings, Snapshot]:
        """The version a reference means; always the same one within a statement."""
        version = self._versions.get(reference)
        if version is None:
            version = self._versions[reference] = resolve_read(self._spark, self.request(reference))
        return version

    def request(self, reference: Reference) -> ReadRequest:
        """A read of the version a reference means."""
        if reference.by_path:
            options: dict[str, str] = {}
            if reference.version is not None:
                options["versionAsOf"] = str(reference.version)
            if reference.timestamp is not None:
                options["timestampAsOf"] = _evaluated(self._spark, reference.timestamp)
            return ReadRequest(reference.name[0], options)
        table = self._table(reference)
        if table is None:
            raise CommandError(f"{'.'.join(reference.name)} is not a view of an IndexTables table")
        return table.request()

    def in_python(self, rewritten: Rewritten, text: str) -> bool:
        """Whether the searches of a statement have to be answered before Spark sees it.

        A Connect server whose catalog is ours knows searches, but not the views of this client.
        """
        if not rewritten.has_searches:
            return False
        if is_connect(self._spark):
            by_server = names_tables(self._spark) and all(map(self.has_a_name, rewritten.references))
            return not by_server or names_a_view(self._spark, text)
        return any(self._way(reference) == "arrow" for reference in rewritten.references)

    def _way(self, reference: Reference) -> str:
        try:
            snapshot = self.version_of(reference)[1]
        except NotATableError:
            # The name may be another's, in a database called indextables; `path@v1` is nobody else's.
            if _AT_VERSION.search(reference.name[0]):
                raise
            return "elsewhere"
        return "delta" if isinstance(snapshot, DeltaSnapshot) else reading_way(self._spark, snapshot)

    def has_a_name(self, reference: Reference) -> bool:
        """Whether Spark's catalog knows the path, and can read what is there.

        A moment at a path is refused by Spark.
        """
        if not names_tables(self._spark) or reference.timestamp:
            return False
        # A Connect server whose catalog is ours reads by itself; what it can read, the client cannot tell.
        way = self._way(reference)
        if (
            reference.by_path
            and "/" not in reference.name[0]
            and self._spark.catalog.databaseExists("indextables")
        ):
            # Spark's catalog takes such a name for a table in that database.
            return way == "elsewhere"
        return way in {"native", "planned", "elsewhere"} or (way == "delta" and not is_connect(self._spark))

    def columns(self, reference: Reference) -> Sequence[str] | None:
        """The columns of a reference that is a whole table of IndexTables."""
        if not reference.by_path and self._table(reference) is None:
            return None
        return tuple(self.version_of(reference)[1].schema.names)

    def _table(self, reference: Reference) -> LoadedTable | None:
        frame = self._frames.get(reference.name[-1])
        return table_of_frame(frame) if frame is not None else table_of_name(self._spark, reference.name)


def _evaluated(spark: Any, expression: str) -> str:
    """The time a SQL expression evaluates to, as text with its offset."""
    literal = re.fullmatch(r"'([^'\\]*)'|\"([^\"\\]*)\"", expression)
    if literal:
        text = literal.group(1) or literal.group(2) or ""
        return time_of_text(text, lambda: session_zone(spark)).isoformat()
    micros = spark.range(1).selectExpr(f"unix_micros(CAST({expression} AS TIMESTAMP)) AS at").first()["at"]
    if micros is None:
        raise CommandError(f"TIMESTAMP AS OF {expression} is NULL")
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)).isoformat()


def _remaining(args: Any, rewritten: Rewritten) -> Any:
    if not rewritten.used_arguments or not isinstance(args, Sequence):
        return args
    remaining = [value for at, value in enumerate(args) if at not in rewritten.used_arguments]
    return remaining or None


def _insert(spark: Any, insert: Insert, target: LoadedTable, args: Any, frames: Mapping[str, Any]) -> Any:
    insertion = insertion_of(insert)
    frame = spark.sql(_unformat(insertion.query, frames), args, **frames)
    insert_frame(
        spark, frame, target, overwrite=insert.overwrite, columns=insertion.columns,
        by_name=insertion.by_name, replace_where=insertion.replace_where,
    )  # fmt: skip
    return _nothing(spark)


def _nothing(spark: Any) -> Any:
    from pyspark.sql.types import StructType

    if is_connect(spark):
        return spark.createDataFrame([], StructType([]))
    from pyspark.sql import DataFrame

    return DataFrame(spark._jsparkSession.emptyDataFrame(), spark)  # noqa: SLF001


def _format(spark: Any, text: str, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement with its `{fields}` filled in, as Spark would; DataFrames stay apart, under names."""
    if is_connect(spark):
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter
    else:
        from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    pieces: list[str] = []
    frames: dict[str, Any] = {}
    for literal, field, spec, conversion in string.Formatter().parse(text):
        pieces.append(literal)
        if field is None:
            continue
        value = kwargs.get(field)
        if hasattr(value, "createOrReplaceTempView"):
            name = f"__frame_{field}"
            frames[name] = value
            pieces.append(name)
        else:
            whole = (
                "{" + field + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
            )
            pieces.append(formatter.format(whole, **kwargs))
    return "".join(pieces), frames


def _unformat(text: str, frames: Mapping[str, Any]) -> str:
    """Text for `spark.sql(text, **frames)`: braces kept, names of frames turned into fields."""
    if not frames:
        return text
    text = text.replace("{", "{{").replace("}", "}}")
    for name in sorted(frames, key=len, reverse=True):
        text = re.sub(rf"(?<![\w`]){re.escape(name)}(?![\w`])", "{" + name + "}", text)
    return text
