"""Verbs that look at a table: inspect, history, files, search, describe, report, bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
from indextables.sql import commands
from indextables.sql.commands import TableName

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.table import Table


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
    found = open_table(table, settings).history(limit)
    if settings.form is Form.TEXT:
        from indextables.ops.describe.table import metrics_text

        change = [metrics_text(pairs or ()) for pairs in found["operation_metrics"].to_pylist()]
        found = found.select(["version", "timestamp", "operation"]).append_column("change", [change])
    render.show(found, settings.form)


@click.command()
@table_argument
@where_flag
@version_flag
@limit_flag
@verb
def files(table: str, where: str | None, version: int | None, limit: int, settings: Flags) -> None:
    """List the files of a table, ours or Delta's, or those that may match."""
    found = open_table(table, settings, version).files(where=where)
    if settings.form is not Form.TEXT:
        render.show(found, settings.form)
        return
    render.show(found.slice(0, limit).select(["path", "size", "num_records"]), settings.form)
    if found.num_rows > limit:
        click.echo(f"... and {found.num_rows - limit:,} more (--limit shows more, --json all)")


@click.command()
@table_argument
@click.argument("query")
@where_flag
@click.option("--columns", metavar="A,B", help="Columns to show, separated by commas.")
@click.option("--score", is_flag=True, help="Best matches first, with their score.")
@click.option(
    "--operator", type=click.Choice(("or", "and")), help="What joins words side by side; or by default."
)
@click.option("--highlight", is_flag=True, help="Mark what matches; in colour on a terminal.")
@click.option("--snippets", type=click.IntRange(1), help="Show so many pieces with most matches.")
@click.option("-f", "--follow", is_flag=True, help="Show rows as they are appended, until Ctrl-C.")
@version_flag
@limit_flag
@verb
def search(
    *,
    table: str,
    query: str,
    where: str | None,
    columns: str | None,
    score: bool,
    operator: str | None,
    highlight: bool,
    snippets: int | None,
    follow: bool,
    version: int | None,
    limit: int,
    settings: Flags,
) -> None:
    """Find rows by a full-text query; those of a Delta table are read one and all.

    With --follow the rows that match are printed as they are appended, one JSON
    object a line with --json.

    For example: indextables search /data/logs "message:timeout AND level:error"
    """
    names = [name.strip() for name in columns.split(",")] if columns else None
    from indextables.table import Table

    opened = open_table(table, settings, version)
    if follow:
        if version is not None or score or not isinstance(opened, Table):
            raise click.UsageError("--follow shows what is appended to a table of ours, as it comes")
        _follow(opened, query, where, names, settings)
        return
    coloured = settings.form is Form.TEXT
    if isinstance(opened, Table):
        found = opened.search(
            query,
            where=where,
            columns=names,
            limit=limit,
            score=score,
            operator=operator,
            highlight=render.MARKS if coloured and (highlight or snippets) else highlight,
            snippets=snippets,
        )
    elif score or highlight or snippets:
        raise click.UsageError("a Delta table has no index: leave --score, --highlight and --snippets out")
    else:
        found = opened.search(query, where=where, columns=names, limit=limit, operator=operator)
    rows = found.read_all()
    if coloured and "_highlight" in rows.column_names:
        rows = _in_place(rows)
    render.show(rows, settings.form, empty="No row matches.")
    if opened.last_scan is not None:
        render.show_notes(opened.last_scan.notes)


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


def _follow(table: Table, query: str, where: str | None, columns: list[str] | None, settings: Flags) -> None:
    import time

    from indextables.ops.read.follow import Follower

    follower = Follower(table.log, query, where, columns)
    click.echo(f"Following {table.uri} from version {follower.version}; Ctrl-C ends it.", err=True)
    while True:
        for found in follower.poll():
            for row in found.to_pylist(maps_as_pydicts="lossy"):
                render.show_line(settings.form, row)
        time.sleep(_LOOK_EVERY_S)


_SUBJECTS = {subject.value.lower().replace(" ", "-"): subject for subject in commands.Subject}


@click.command()
@click.argument("subject", type=click.Choice(sorted(_SUBJECTS)))
@click.argument("table", required=False)
@click.option("--include-all", is_flag=True, help="With transaction-log: every version file, not the state.")
@verb
def describe(subject: str, table: str | None, include_all: bool, settings: Flags) -> None:
    """Show facts about the log of a table."""
    chosen = _SUBJECTS[subject]
    if table is None and chosen is not commands.Subject.DATA_SKIPPING_STATS:
        raise click.UsageError(f"describe {subject} needs a table")
    run_command(commands.Describe(chosen, TableName(table) if table else None, include_all), settings)


@click.command()
@table_argument
@click.option("-o", "--output", default="report.html", show_default=True, type=click.Path(dir_okay=False))
@verb
def report(table: str, output: str, settings: Flags) -> None:
    """Write one HTML page about a table."""
    from pathlib import Path

    from indextables.report import facts_of, render_report

    facts = facts_of(open_table(table, settings))
    Path(output).write_text(render_report(facts), encoding="utf-8")
    click.echo(f"Wrote {output}")


@click.command()
@table_argument
@where_flag
@click.option("--query", help="A full-text query to time as well.")
@verb
def bench(table: str, where: str | None, query: str | None, settings: Flags) -> None:
    """Time opening, listing, counting and searching."""
    from indextables.cli.timing import time_table

    render.show(time_table(lambda: open_table(table, settings), where, query), settings.form)


VERBS = (inspect, history, files, search, describe, report, bench)
