"""The `indextables` command: each verb one call, its rows printed as text, JSON or CSV.

A mistake in what was typed ends with exit code 2, anything else that goes
wrong with 1; both print one message and no traceback.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from indextables import __version__
from indextables.cli import render
from indextables.cli.render import Form
from indextables.errors import CommandError, Error, OptionError, PredicateError, QueryError, SchemaError
from indextables.sql import commands
from indextables.sql.commands import TableName

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.table import Table

_TYPED_WRONG = (CommandError, OptionError, PredicateError, QueryError, SchemaError)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the flags before or after the verb say."""

    form: Form
    options: dict[str, str]


def _option_pair(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        pairs[key.strip()] = text
    return pairs


def _verb(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the shared flags and hand it their values as `settings`."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
    @click.option(
        "-o",
        "--option",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_option_pair,
        help="Set an option; may be repeated.",
    )
    @functools.wraps(function)
    def run(as_json: bool, as_csv: bool, pairs: dict[str, str], **arguments: Any) -> None:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv exclude each other")
        form = Form.JSON if as_json else Form.CSV if as_csv else Form.TEXT
        function(settings=Settings(form, pairs), **arguments)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="indextables")
def cli() -> None:
    """ACID tables with full-text search: look at them, search them, keep them healthy."""


def main() -> None:
    """Run the command line; the only place where an error becomes an exit code."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as wanted:
        sys.exit(wanted.exit_code)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        render.complain("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away; say nothing and keep the interpreter from saying it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Error as error:
        render.complain(error.message)
        sys.exit(2 if isinstance(error, _TYPED_WRONG) else 1)


def _run(command: commands.Command, settings: Settings, **shown: Any) -> pa.Table:
    from indextables.sql.runner import run

    with render.watching() as progress:
        table = run(command, options=settings.options, progress=progress)
    render.show(table, settings.form, **shown)
    return table


def _open(uri: str, settings: Settings, version: int | None = None, as_of: str | None = None) -> Table:
    from indextables.table import Table

    return Table.open(uri, version=version, as_of=as_of, options=settings.options)


_version = click.option("--version", type=int, help="Look at this version instead of the newest.")
_where = click.option("--where", metavar="CONDITION", help="A SQL condition, such as \"day = '2024-01-01'\".")
_limit = click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True)
_dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
_table = click.argument("table")


@cli.command()
@_table
@_version
@_verb
def inspect(table: str, version: int | None, settings: Settings) -> None:
    """Show version, columns, files and sizes of a table."""
    described = _open(table, settings, version).describe()
    render.show(described.to_arrow(), settings.form)
    if settings.form is Form.TEXT:
        render.show(described.columns_to_arrow(), settings.form, title="\nColumns")


@cli.command()
@_table
@_limit
@_verb
def history(table: str, limit: int, settings: Settings) -> None:
    """Show the newest versions and what made them."""
    from indextables.ops.describe import history_table

    found = history_table(_open(table, settings).log, limit)
    if settings.form is Form.TEXT:
        found = found.select(["version", "timestamp", "operation", "operation_metrics"])
    render.show(found, settings.form)


@cli.command()
@_table
@_where
@_version
@_limit
@_verb
def files(table: str, where: str | None, version: int | None, limit: int, settings: Settings) -> None:
    """List the files of a table, or those that may match."""
    found = _open(table, settings, version).files(where=where)
    if settings.form is not Form.TEXT:
        render.show(found, settings.form)
        return
    render.show(found.slice(0, limit).select(["path", "size", "num_records"]), settings.form)
    if found.num_rows > limit:
        click.echo(f"... and {found.num_rows - limit:,} more (--limit shows more, --json all)")


@cli.command()
@_table
@click.argument("query")
@_where
@click.option("--columns", metavar="A,B", help="Columns to show, separated by commas.")
@click.option("--score", is_flag=True, help="Best matches first, with their score.")
@_version
@_limit
@_verb
def search(
    *,
    table: str,
    query: str,
    where: str | None,
    columns: str | None,
    score: bool,
    version: int | None,
    limit: int,
    settings: Settings,
) -> None:
    """Find rows by a full-text query.

    For example: indextables search /data/logs "message:timeout AND level:error"
    """
    names = [name.strip() for name in columns.split(",")] if columns else None
    opened = _open(table, settings, version)
    rows = opened.search(query, where=where, columns=names, limit=limit, score=score).read_all()
    render.show(rows, settings.form, empty="No row matches.")


@cli.command()
@click.argument("statement")
@_verb
def sql(statement: str, settings: Settings) -> None:
    """Run one maintenance command ("-": from standard input)."""
    from indextables.sql.grammar import parse_command

    text = sys.stdin.read() if statement == "-" else statement
    table = _run(parse_command(text), settings)
    _fail_on_error_row(table)


@cli.command()
@click.argument("source")
@click.argument("target")
@click.option("--from-splits", is_flag=True, help="Rebuild the log from the split files themselves.")
@click.option("--deep", is_flag=True, help="Also check footers, sizes and checksums of every split.")
@click.option("--fail-on-missing", is_flag=True, help="Write nothing when a split is missing.")
@_verb
def repair(
    *, source: str, target: str, from_splits: bool, deep: bool, fail_on_missing: bool, settings: Settings
) -> None:
    """Write a clean copy of a damaged log.

    Reads the log directory SOURCE and writes the new one TARGET; SOURCE is never
    changed. To use the result, move SOURCE away and TARGET in its place.
    """
    if deep:
        settings.options.setdefault("repair.validateSplits", "deep")
    if fail_on_missing:
        settings.options.setdefault("repair.failOnMissing", "true")
    _fail_on_error_row(_run(commands.RepairLog(source, target, from_splits), settings))


@cli.command()
@_table
@_where
@click.option("--target-size", metavar="SIZE", help="Size to aim for, such as 100M or 1G.")
@click.option("--max-dest-splits", type=click.IntRange(min=1), help="Stop after this many new splits.")
@click.option("--max-source-splits", type=click.IntRange(min=2), help="Most splits that become one.")
@_dry_run
@_verb
def merge(
    *,
    table: str,
    where: str | None,
    target_size: str | None,
    max_dest_splits: int | None,
    max_source_splits: int | None,
    dry_run: bool,
    settings: Settings,
) -> None:
    """Turn small splits into larger ones."""
    from indextables.options import parse_size

    try:
        target_bytes = parse_size(target_size) if target_size else None
    except ValueError as bad:
        raise click.BadParameter(
            f"{target_size!r} is not a size such as 100M", param_hint="--target-size"
        ) from bad
    command = commands.MergeSplits(
        TableName(table), where, target_bytes, max_dest_splits, max_source_splits, dry_run
    )
    _run(command, settings)


def _hours(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    number, unit = value[:-1], value[-1:].lower()
    if not number.isdigit() or unit not in ("d", "h"):
        raise click.BadParameter(f"{value!r} is not a time such as 7d or 36h")
    return int(number) * (24 if unit == "d" else 1)


@cli.command()
@_table
@click.option("--older-than", metavar="TIME", callback=_hours, help="Only files older than this: 7d, 36h.")
@click.option("--log-retention", metavar="TIME", callback=_hours, help="Keep the log for this long: 30d.")
@_dry_run
@_verb
def purge(
    table: str, older_than: int | None, log_retention: int | None, dry_run: bool, settings: Settings
) -> None:
    """Delete split files that no version needs any more."""
    _run(commands.Purge(TableName(table), older_than, log_retention, dry_run), settings)


@cli.command()
@_table
@_verb
def checkpoint(table: str, settings: Settings) -> None:
    """Write a checkpoint of the newest version."""
    _run(commands.WriteCheckpoint(TableName(table)), settings)


@cli.command("drop-partitions")
@_table
@click.option("--where", required=True, metavar="CONDITION", help="A condition on partition columns.")
@_verb
def drop_partitions(table: str, where: str, settings: Settings) -> None:
    """Remove whole partitions from a table."""
    _run(commands.DropPartitions(TableName(table), where), settings)


@cli.command("truncate-history")
@_table
@_dry_run
@_verb
def truncate_history(table: str, dry_run: bool, settings: Settings) -> None:
    """Delete the log files that only old versions need."""
    _run(commands.TruncateHistory(TableName(table), dry_run), settings)


@cli.command()
@_table
@click.option("--to", "version", type=click.IntRange(min=0), required=True, help="The version to restore.")
@_verb
def restore(table: str, version: int, settings: Settings) -> None:
    """Make an older version the newest again."""
    _run(commands.Restore(TableName(table), version), settings)


@cli.command()
@_table
@click.option("--where", required=True, metavar="CONDITION", help="Which rows to delete.")
@_verb
def delete(table: str, where: str, settings: Settings) -> None:
    """Delete the rows that match a condition."""
    _run(commands.DeleteRows(TableName(table), where), settings)


_SUBJECTS = {subject.value.lower().replace(" ", "-"): subject for subject in commands.Subject}


@cli.command()
@click.argument("subject", type=click.Choice(sorted(_SUBJECTS)))
@click.argument("table", required=False)
@click.option("--include-all", is_flag=True, help="With transaction-log: every version file, not the state.")
@_verb
def describe(subject: str, table: str | None, include_all: bool, settings: Settings) -> None:
    """Show facts about the log of a table."""
    chosen = _SUBJECTS[subject]
    if table is None and chosen is not commands.Subject.DATA_SKIPPING_STATS:
        raise click.UsageError(f"describe {subject} needs a table")
    _run(commands.Describe(chosen, TableName(table) if table else None, include_all), settings)


@cli.command()
@_table
@click.option("-O", "--output", default="report.html", show_default=True, type=click.Path(dir_okay=False))
@_verb
def report(table: str, output: str, settings: Settings) -> None:
    """Write one HTML page about a table."""
    from pathlib import Path

    from indextables.report import render_report

    Path(output).write_text(render_report(_open(table, settings)), encoding="utf-8")
    click.echo(f"Wrote {output}")


@cli.command()
@_table
@_where
@click.option("--query", help="A full-text query to time as well.")
@_verb
def bench(table: str, where: str | None, query: str | None, settings: Settings) -> None:
    """Time opening, listing, counting and searching."""
    from indextables.cli.timing import time_table

    render.show(time_table(table, settings.options, where, query), settings.form)


@cli.command()
@click.option("--rows", type=click.IntRange(min=1000), default=300_000, show_default=True)
@click.option(
    "--dir", "directory", type=click.Path(file_okay=False), help="Keep the table in this directory."
)
@click.option("--spark/--no-spark", default=None, help="Default: with Spark where Java is there.")
def demo(rows: int, directory: str | None, spark: bool | None) -> None:
    """Build a table of log events and show what it can do."""
    from indextables.cli.demo import run_demo

    run_demo(rows, directory, spark)


def _fail_on_error_row(table: pa.Table) -> None:
    """A repair that found nothing to repair reports it as a row; a shell wants an exit code."""
    if "status" in table.column_names and any(
        str(s).startswith("ERROR") for s in table["status"].to_pylist()
    ):
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    main()
