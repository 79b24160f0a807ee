"""Verbs that look at a table: inspect, history, files, search, describe, report, bench."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from indextables.cli import render
from indextables.cli.flags import (
    Flags,
    limit_flag,
    open_table,
    run_command,
    table_argument,
    verb,
    version_flag,
    where_flag,
)
from indextables.cli.render import Form
from indextables.display.plain import counted
from indextables.sql import commands
from indextables.sql.commands import TableName

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.delta import DeltaTable
    from indextables.table import Table

_REPEATS = 3
_text_flag = click.option(
    "--text", help="In place of QUERY, any text such as a line of a log: rows that hold all of its words."
)


@click.command()
@table_argument
@version_flag
@verb
def inspect(table: str, version: int | None, settings: Flags) -> None:
    """Show version, columns, files and sizes of a table."""
    described = open_table(table, settings, version).describe()
    facts = described.to_arrow()
    if settings.form is not Form.TEXT:
        render.show(facts, settings.form)
        return
    render.show(facts.drop_columns(["schema", "properties"]), settings.form)
    render.show(described.columns_to_arrow(), settings.form, title="\nColumns")


@click.command()
@table_argument
@limit_flag
@verb
def history(table: str, limit: int, settings: Flags) -> None:
    """Show the newest versions and what made them."""
    versions = open_table(table, settings).history(limit)
    if settings.form is Form.TEXT:
        from indextables.ops.maintain.describe import metrics_text

        change = [metrics_text(pairs or ()) for pairs in versions["operation_metrics"].to_pylist()]
        versions = versions.select(["version", "timestamp", "operation"]).append_column("change", [change])
    render.show(versions, settings.form)


@click.command()
@table_argument
@click.argument("first")
@click.argument("last", required=False, type=int)
@where_flag
@limit_flag
@verb
def changes(  # noqa: PLR0917 - one parameter per argument and flag
    table: str, first: str, last: int | None, where: str | None, limit: int, settings: Flags
) -> None:
    """Show the rows that commits inserted, deleted and updated.

    FIRST is a version, or a time such as 2026-11-18T12:00; LAST is a version, by default the newest.
    """
    from indextables.table import Table

    opened = Table.open(table, options=settings.options)
    begin: dict[str, Any] = {"from_version": int(first)} if first.isdigit() else {"from_time": first}
    rows = opened.changes(to_version=last, where=where, **begin)
    if settings.form is not Form.TEXT:
        render.show(rows.to_arrow(), settings.form)
        return
    shown = rows.head(limit + 1)
    render.show(shown.slice(0, limit), settings.form)
    if shown.num_rows > limit:
        click.echo(f"There are more than these {limit}; use --limit to show more.", err=True)


@click.command()
@table_argument
@where_flag
@version_flag
@limit_flag
@verb
def files(table: str, where: str | None, version: int | None, limit: int, settings: Flags) -> None:
    """List the files of a table, or those a condition leaves."""
    opened = open_table(table, settings, version)
    if settings.form is not Form.TEXT:
        render.show(opened.files(where=where), settings.form)
        return
    live = opened.files(where=where, columns=["path", "size", "num_records"])
    render.show(live.slice(0, limit), settings.form)
    if live.num_rows > limit:
        click.echo(f"... and {live.num_rows - limit:,} more (--limit shows more, --json all)")


@click.command()
@table_argument
@click.argument("query", required=False)
@_text_flag
@where_flag
@click.option("--columns", metavar="A,B", help="Columns to show, separated by commas.")
@click.option("--score", is_flag=True, help="Best matches first, with their score.")
@click.option(
    "--operator",
    type=click.Choice(("or", "and")),
    help="How to join two words without an operator; the default is or.",
)
@click.option("--highlight", is_flag=True, help="Mark the words that match, in colour on a terminal.")
@click.option("--snippets", type=click.IntRange(1), help="Show only this many passages with matches per row.")
@click.option("-f", "--follow", is_flag=True, help="Show new rows as they are appended, until Ctrl-C.")
@click.option("--sort", metavar="A,B DESC", help="Sort the rows by these columns.")
@click.option("--total", is_flag=True, help="Also print how many rows match in total.")
@click.option(
    "--facet", metavar="COLUMN", help="Instead of rows, count the most frequent values of a column."
)
@click.option(
    "--histogram", metavar="COLUMN=INTERVAL", help="Instead of rows, count by interval: ts=1h, price=10."
)
@version_flag
@limit_flag
@verb
def search(
    *,
    table: str,
    query: str | None,
    text: str | None,
    where: str | None,
    columns: str | None,
    score: bool,
    operator: str | None,
    highlight: bool,
    snippets: int | None,
    follow: bool,
    sort: str | None,
    total: bool,
    facet: str | None,
    histogram: str | None,
    version: int | None,
    limit: int,
    settings: Flags,
) -> None:
    """Find rows by a full-text query.

    QUERY is a word, "a phrase", column:word, or several joined by AND, OR and NOT;
    The page search.md describes the whole language. A Delta table has no index, so all
    of its rows are read. With --follow, matching rows are printed as they are
    appended; with --json too, as one JSON object per line.

    \b
    indextables search /data/logs "timeout AND level:error"
    indextables search /data/logs '"not found"' --where "day > '2026-11-14'"
    indextables search /data/logs timeout --sort "ts DESC" --highlight
    indextables search /data/logs --text '[ERROR] 10.0.0.1:8080 - GET /a?b=c'
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    from indextables.ops.read.arguments import require_question

    question = require_question(query, text)
    names = [name.strip() for name in columns.split(",")] if columns else None
    from indextables.table import Table

    opened = open_table(table, settings, version)
    ours: dict[str, Any] = {"score": score, "sort": sort, "total": total}
    if follow:
        if version is not None or any(ours.values()) or facet or histogram or not isinstance(opened, Table):
            raise click.UsageError(_FOLLOWS)
        _follow(opened, question, where, names, settings)
        return
    coloured = settings.form is Form.TEXT
    ours["highlight"] = render.MARKS if coloured and (highlight or snippets) else highlight
    ours["snippets"] = snippets
    if not isinstance(opened, Table) and (facet or histogram or any(ours.values())):
        raise click.UsageError(f"a Delta table has no index: leave {_OURS} out")
    if facet or histogram:
        assert isinstance(opened, Table)
        counts = counts_of(opened, question, where, facet=facet, histogram=histogram, top=limit)
        _show_counts(counts, limit, settings)
        _show_remarks(opened, settings)
        return
    plain: dict[str, Any] = {"where": where, "columns": names, "limit": limit, "operator": operator}
    rows = opened.search(question, **plain, **(ours if isinstance(opened, Table) else {})).read_all()
    if coloured and "_highlight" in rows.column_names:
        rows = _in_place(rows)
    if not rows.num_rows:
        # The reason first: it is all there is to read.
        _show_remarks(opened, settings)
    render.show(rows, settings.form, empty=_no_row(query), data=True)
    if rows.num_rows:
        _show_remarks(opened, settings)


def _show_remarks(opened: Table | DeltaTable, settings: Flags) -> None:
    """How many rows match, where that was asked for, and what the author of the query should know."""
    scan = opened.last_scan
    if scan is None:
        return
    if scan.total is not None:
        click.echo(f"{counted(scan.total, 'matching row')} in total", err=settings.form is not Form.TEXT)
    render.show_notes(scan.notes)


def _in_place(rows: pa.Table) -> pa.Table:
    """Marked texts in the place of the plain ones."""
    import pyarrow.compute as pc

    marked = rows["_highlight"].combine_chunks()
    rows = rows.drop_columns(["_highlight"])
    for at, field in enumerate(marked.type):
        if field.name in rows.column_names:
            place = rows.column_names.index(field.name)
            shown = pc.coalesce(marked.field(at), rows[field.name].combine_chunks())
            rows = rows.set_column(place, field.name, shown)
    return rows


_LOOK_EVERY_S = 1.0


def _no_row(query: str | None) -> str:
    """What is said when nothing was found; of a plain word, how to find it inside of others."""
    if query is None or re.fullmatch(r"\w+", query) is None:
        return "No row matches."
    return f"No row matches. Words are found whole; '*{query}*' also finds parts of words."


_FOLLOWS = (
    "--follow shows new rows of an IndexTables table as they come; leave --version, --score, --sort, "
    "--total, --facet and --histogram out"
)
_OURS = "--score, --sort, --total, --facet, --histogram, --highlight and --snippets"


def _follow(table: Table, query: str, where: str | None, columns: list[str] | None, settings: Flags) -> None:
    import time

    from indextables.errors import StorageError
    from indextables.ops.read.follow import Follower

    follower = Follower(table.log, query, where, columns)
    click.echo(f"Following {table.uri} from version {follower.version}; Ctrl-C ends it.", err=True)
    while True:
        try:
            for rows in follower.poll():
                for row in rows.to_pylist(maps_as_pydicts="lossy"):
                    render.show_line(settings.form, row)
        except StorageError as failed:
            # Nothing is lost by waiting: the next look goes on behind the last row shown.
            click.echo(f"{failed.message} Trying again.", err=True)
        time.sleep(_LOOK_EVERY_S)


def _show_counts(counts: pa.Table, limit: int, settings: Flags) -> None:
    """Print counts; a histogram is whole unless a limit is given: its end counts as much as its beginning."""
    has_limit = click.get_current_context().get_parameter_source("limit") is not ParameterSource.DEFAULT
    most = limit if has_limit else counts.num_rows
    render.show(counts.slice(0, most), settings.form, empty="No row matches.", data=True)
    if counts.num_rows > most:
        render.show_notes([f"{counts.num_rows - most:,} more; a larger --limit shows more"])


def counts_of(
    opened: Table, query: str | None, where: str | None, *, facet: str | None, histogram: str | None, top: int
) -> pa.Table:
    """What --facet or --histogram asks for."""
    if facet and histogram:
        raise click.UsageError("--facet and --histogram cannot be used together")
    if facet:
        return opened.facets(facet, query, where, top)
    column, equals, interval = (histogram or "").partition("=")
    if not equals or not column.strip() or not interval.strip():
        raise click.UsageError(f"--histogram {histogram} is not COLUMN=INTERVAL, such as ts=1h or price=10")
    return opened.histogram(column.strip(), interval.strip(), query, where)


@click.command()
@table_argument
@click.argument("query", required=False)
@_text_flag
@where_flag
@click.option("--by", metavar="A,B", help="One count for each value of these columns.")
@version_flag
@verb
def count(
    *,
    table: str,
    query: str | None,
    text: str | None,
    where: str | None,
    by: str | None,
    version: int | None,
    settings: Flags,
) -> None:
    """Count the rows of a table, or those that match.

    \b
    indextables count /data/logs
    indextables count /data/logs timeout --where "status >= 500" --by level
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    import pyarrow as pa

    from indextables.ops.read.arguments import question_of
    from indextables.table import Table

    question = question_of(query, text)
    opened = open_table(table, settings, version)
    names = [name.strip() for name in by.split(",")] if by else []
    if names and isinstance(opened, Table):
        render.show(opened.aggregate(names, {"count": "count(*)"}, question, where), settings.form, data=True)
        _show_remarks(opened, settings)
        return
    if names:
        raise click.UsageError("rows of a Delta table cannot be counted by columns here; leave --by out")
    total = opened.count(where, query=question)
    if settings.form is Form.TEXT:
        click.echo(f"{total:,}")
    else:
        render.show(pa.table({"count": pa.array([total], pa.int64())}), settings.form)
    _show_remarks(opened, settings)


_SUBJECTS = {subject.value.lower().replace(" ", "-"): subject for subject in commands.Subject}


@click.command()
@click.argument("subject", type=click.Choice(sorted(_SUBJECTS)))
@click.argument("table", required=False)
@click.option(
    "--include-all", is_flag=True, help="With transaction-log: read every version file, not only the state."
)
@verb
def describe(subject: str, table: str | None, include_all: bool, settings: Flags) -> None:
    """Show one aspect of a table in detail.

    \b
    state                version, sizes, protocol, checkpoint, properties, schema
    history              one row per version: time, operation, metrics
    transaction-log      one row per entry of the log
    skipped-files        files that a merge could not read
    component-sizes      sizes of columns and index parts, per file
    data-skipping-stats  files skipped by the queries of this process
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    chosen = _SUBJECTS[subject]
    if table is None and chosen is not commands.Subject.DATA_SKIPPING_STATS:
        raise click.UsageError(f"describe {subject} needs a table")
    run_command(commands.Describe(chosen, TableName(table) if table else None, include_all), settings)


@click.command()
@table_argument
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="The file to write.",
)
@verb
def report(table: str, output: str, settings: Flags) -> None:
    """Write an HTML page about a table.

    It shows columns, sizes, versions and advice.

    The page is a single file that loads nothing from elsewhere.
    """
    from pathlib import Path

    from indextables.report import facts_of, render_report

    facts = facts_of(open_table(table, settings))
    Path(output).write_text(render_report(facts), encoding="utf-8")
    if settings.form is Form.TEXT:
        click.echo(f"Wrote {output}")
    else:
        import pyarrow as pa

        render.show(pa.table({"output": [output]}), settings.form)


@click.command()
@table_argument
@where_flag
@click.option("--query", help="Also time this full-text query.")
@verb
def bench(table: str, where: str | None, query: str | None, settings: Flags) -> None:
    """Time opening, listing, counting and searching a table."""
    render.show(_time_table(lambda: open_table(table, settings), where, query), settings.form)


def _time_table(make: Callable[[], Table | DeltaTable], where: str | None, query: str | None) -> pa.Table:
    """Time opening, listing, counting and searching; the first run is cold, the best of the others warm."""
    import pyarrow as pa

    opened: list[Table | DeltaTable] = []

    def open_table() -> int:
        opened.append(make())
        return opened[-1].version

    measured: list[tuple[str, Callable[[], Any]]] = [
        ("open", open_table),
        ("list files", lambda: opened[0].files().num_rows),
        ("count rows", partial(_count, opened)),
    ]
    if where is not None:
        measured.append(("files that may match", lambda: opened[0].files(where=where).num_rows))
        measured.append(("count matching rows", partial(_count, opened, where)))
    if query is not None:
        measured.append(("count rows found", partial(_count, opened, where, query)))
    rows = [(name, *_timed(work)) for name, work in measured]
    names = ("question", "answer", "first_ms", "best_ms")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def _count(opened: list[Table | DeltaTable], where: str | None = None, query: str | None = None) -> int:
    return opened[0].count(where, query=query)


def _timed(work: Callable[[], Any]) -> tuple[int, float, float]:
    times = []
    for _ in range(1 + _REPEATS):
        began = time.perf_counter()
        answer = work()
        times.append((time.perf_counter() - began) * 1000)
    return answer, round(times[0], 1), round(min(times[1:]), 1)


VERBS = (inspect, history, changes, files, search, count, describe, report, bench)
