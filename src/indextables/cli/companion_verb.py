"""The verb `companion`: make a companion index, keep it up to date, and see how far it is."""

from __future__ import annotations

import time

import click

from indextables.cli import render
from indextables.cli.completion import directories
from indextables.cli.flags import Flags, dry_run_flag, verb, where_flag


def _kinds(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(name for name, _, _ in pairs):
        raise click.BadParameter("give a column, or a column and a kind such as level=string")
    return {name: kind or "text" for name, _, kind in pairs}


@click.command()
@click.argument("action", type=click.Choice(["build", "refresh", "status"]))
@click.argument("table", shell_complete=directories)
@click.option("--of", "source", metavar="SOURCE", help="The Delta table or the Parquet files to index.")
@click.option(
    "-i", "--index", "columns", multiple=True, metavar="COLUMN[=KIND]", callback=_kinds,
    help="Index a column, as text or another kind; may be repeated.",
)  # fmt: skip
@where_flag
@click.option("--every", type=click.FloatRange(min=0.1), help="Refresh again every so many seconds.")
@dry_run_flag
@verb
def companion(
    *,
    action: str,
    table: str,
    source: str | None,
    columns: dict[str, str],
    where: str | None,
    every: float | None,
    dry_run: bool,
    settings: Flags,
) -> None:
    """Search a Delta table or Parquet files where they lie.

    TABLE is the place of the index; the source is never written. build makes it, or
    brings one that is there up to date; refresh indexes what is new in the source;
    status says how far the index is. The rows are searched like those of any table.

    \b
    indextables companion build logs_index --of logs -i message -i level=string
    indextables companion refresh logs_index --every 60
    indextables search logs_index timeout
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    from indextables.companion.make import BuildRequest, run_build
    from indextables.companion.refresh import run_refresh, status_of
    from indextables.companion.settings import ColumnChoice
    from indextables.connection import open_log

    if action != "build" and (source or columns or where):
        raise click.UsageError("--of, --index and --where are for build; an index knows its own")
    if action != "refresh" and every is not None:
        raise click.UsageError("--every is for refresh")
    log = open_log(table, settings.options)
    if action == "status":
        render.show(status_of(log).to_arrow(), settings.form)
        return
    if action == "build":
        if source is None:
            raise click.UsageError("build needs --of: the Delta table or the Parquet files to index")
        request = BuildRequest(source, ColumnChoice.of(columns or None), where, dry_run=dry_run)
        with render.watching() as progress:
            built = run_build(log, request, progress)[1]
        render.show(built.to_arrow(), settings.form)
        return
    try:
        while True:
            with render.watching() as progress:
                refreshed = run_refresh(log, dry_run=dry_run, progress=progress)
            if every is None:
                render.show(refreshed.to_arrow(), settings.form)
                return
            if refreshed.status != "no_action":
                facts = ("source_version", "parquet_files_indexed", "splits_invalidated", "message")
                render.show_line(settings.form, {name: getattr(refreshed, name) for name in facts})
            time.sleep(every)
    except KeyboardInterrupt:
        # The way to end the loop; a refresh that was under way is complete or absent.
        if every is None:
            raise


VERBS = (companion,)
