"""Verbs that keep a table healthy, or change what it holds, each a maintenance command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from indextables.cli.flags import Flags, dry_run_flag, run_command, table_argument, verb, where_flag
from indextables.sql import commands
from indextables.sql.commands import TableName

if TYPE_CHECKING:
    import pyarrow as pa


def _named(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(name and uri for name, _, uri in pairs):
        raise click.BadParameter("give a name and a path, such as logs=/data/logs")
    return {name: uri for name, _, uri in pairs}


@click.command()
@click.argument("statement")
@click.option(
    "-t",
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=PATH",
    callback=_named,
    help="Name a table; may be repeated.",
)
@verb
def sql(statement: str, tables: dict[str, str], settings: Flags) -> None:
    """Run a SELECT or a maintenance statement.

    With "-" it is read from standard input. A SELECT is run by DuckDB, without Spark
    and Java. Name tables by their path in quotes, or give them names with --table.
    indexquery searches in a SELECT.

    \b
    indextables sql -t logs=/data/logs "SELECT level, count(*) AS n FROM logs
        WHERE message indexquery 'timeout' GROUP BY level ORDER BY n DESC"
    indextables sql "SELECT * FROM '/data/logs' LIMIT 10"
    indextables sql "MERGE SPLITS '/data/logs'"
    """  # noqa: D301 - the backspace of click's verbatim paragraphs
    text = sys.stdin.read() if statement == "-" else statement
    from indextables.sql.select.run import is_select

    if is_select(text):
        from indextables.cli import render
        from indextables.sql.select.run import run_select

        render.show(run_select(text, tables, settings.options), settings.form, data=True)
        return
    if tables:
        raise click.UsageError("--table names tables for a SELECT; a maintenance command has the path in it")
    from indextables.sql.commands.grammar import parse_command

    table = run_command(parse_command(text), settings)
    _fail_on_error_row(table)


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--from-splits", is_flag=True, help="Rebuild the log from the split files themselves.")
@click.option(
    "--up-to-version", type=click.IntRange(min=0), help="Leave out everything committed after this version."
)
@click.option("--deep", is_flag=True, help="Also check footers, sizes and checksums of every split.")
@click.option("--fail-on-missing", is_flag=True, help="Write nothing when a split is missing.")
@click.option("--swap", is_flag=True, help="Put the clean log in the place of SOURCE, and keep the old one.")
@verb
def repair(
    *,
    source: str,
    target: str,
    from_splits: bool,
    up_to_version: int | None,
    deep: bool,
    fail_on_missing: bool,
    swap: bool,
    settings: Flags,
) -> None:
    """Write a clean copy of a damaged transaction log.

    Reads the log directory SOURCE, which is not changed, and writes a new one to
    TARGET. With --swap the new log then takes the place of SOURCE; else move SOURCE
    away and TARGET into its place.

    For example: indextables repair events/_transaction_log events/_repaired
    """
    if deep:
        settings.options.setdefault("repair.validateSplits", "deep")
    if fail_on_missing:
        settings.options.setdefault("repair.failOnMissing", "true")
    command = commands.RepairLog(source, target, from_splits, up_to_version, swap)
    _fail_on_error_row(run_command(command, settings))


@click.command()
@table_argument
@click.option("--deep", is_flag=True, help="Also check footers, row counts and checksums of every split.")
@verb
def check(table: str, deep: bool, settings: Flags) -> None:
    """Look for damage, and say which command helps.

    Nothing is changed. The exit code is 1 if something is broken.
    """
    if deep:
        settings.options.setdefault("repair.validateSplits", "deep")
    findings = run_command(commands.CheckTable(TableName(table)), settings)
    if "BROKEN" in findings["severity"].to_pylist():
        raise click.exceptions.Exit(1)


@click.command("merge-splits")
@table_argument
@where_flag
@click.option("--target-size", metavar="SIZE", help="Size to aim for, such as 100M or 1G.")
@click.option("--max-dest-splits", type=click.IntRange(min=1), help="Stop after this many new splits.")
@click.option("--max-source-splits", type=click.IntRange(min=2), help="The most splits to merge into one.")
@dry_run_flag
@verb
def merge(
    *,
    table: str,
    where: str | None,
    target_size: str | None,
    max_dest_splits: int | None,
    max_source_splits: int | None,
    dry_run: bool,
    settings: Flags,
) -> None:
    """Merge small splits (data files); no row changes."""
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
    run_command(command, settings)


def _hours(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    number, unit = value[:-1], value[-1:].lower()
    if not number.isdigit() or unit not in ("d", "h"):
        raise click.BadParameter(f"{value!r} is not a time such as 7d or 36h")
    return int(number) * (24 if unit == "d" else 1)


@click.command()
@table_argument
@click.option(
    "--older-than", metavar="TIME", callback=_hours, help="Only files older than this, such as 7d or 36h."
)
@click.option(
    "--log-retention",
    metavar="TIME",
    callback=_hours,
    help="First delete log files older than this, such as 30d.",
)
@click.option("--inventory", metavar="FILE", help="A Parquet file that lists the files of the table.")
@click.option("--lite", is_flag=True, help="Look only at files that the log names.")
@dry_run_flag
@verb
def purge(
    table: str, *, older_than: int | None, log_retention: int | None, inventory: str | None, lite: bool,
    dry_run: bool, settings: Flags,
) -> None:  # fmt: skip
    """Delete data files that no version of the table needs."""
    command = commands.Purge(TableName(table), older_than, log_retention, dry_run, inventory, lite)
    run_command(command, settings)


@click.command("purge-rows")
@table_argument
@where_flag
@dry_run_flag
@verb
def purge_rows(table: str, where: str | None, dry_run: bool, settings: Flags) -> None:
    """Write data files that have deleted rows anew."""
    run_command(commands.PurgeRows(TableName(table), where, dry_run), settings)


@click.command()
@table_argument
@verb
def checkpoint(table: str, settings: Flags) -> None:
    """Write a checkpoint, which makes the log quick to read."""
    run_command(commands.WriteCheckpoint(TableName(table)), settings)


@click.command("drop-partitions")
@table_argument
@click.option("--where", required=True, metavar="CONDITION", help="A condition on partition columns.")
@verb
def drop_partitions(table: str, where: str, settings: Flags) -> None:
    """Remove whole partitions from a table."""
    run_command(commands.DropPartitions(TableName(table), where), settings)


@click.command("truncate-history")
@table_argument
@dry_run_flag
@verb
def truncate_history(table: str, dry_run: bool, settings: Flags) -> None:
    """Delete all versions except the newest. This cannot be undone."""
    run_command(commands.TruncateHistory(TableName(table), dry_run), settings)


@click.command()
@table_argument
@click.option("--to", "version", type=click.IntRange(min=0), required=True, help="The version to restore.")
@verb
def restore(table: str, version: int, settings: Flags) -> None:
    """Bring back an older version, as a new commit."""
    run_command(commands.Restore(TableName(table), version), settings)


@click.command()
@table_argument
@click.option("--where", required=True, metavar="CONDITION", help="Which rows to delete.")
@verb
def delete(table: str, where: str, settings: Flags) -> None:
    """Delete the rows that match a condition."""
    run_command(commands.DeleteRows(TableName(table), where), settings)


def _fail_on_error_row(table: pa.Table) -> None:
    """A repair that found nothing to repair reports it as a row; a shell wants an exit code."""
    if "status" in table.column_names and any(
        str(s).startswith("ERROR") for s in table["status"].to_pylist()
    ):
        raise click.exceptions.Exit(1)


VERBS = (
    sql,
    check,
    repair,
    merge,
    purge,
    purge_rows,
    checkpoint,
    drop_partitions,
    truncate_history,
    restore,
    delete,
)
