"""The flags and arguments that verbs share, and the two things most verbs do: open a table, run a command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from indextables.cli import render
from indextables.cli.completion import directories
from indextables.cli.render import Form
from indextables.records import dataclass
from indextables.sql import commands

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.delta import DeltaTable
    from indextables.table import Table


@dataclass(frozen=True, slots=True)
class Flags:
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


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the shared flags and hand it their values as `settings`."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON; errors are JSON too.")
    @click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
    @click.option(
        "-O",
        "--option",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_option_pair,
        help="Set an option, such as timeZone=UTC; may be repeated.",
    )
    @functools.wraps(function)
    def run(as_json: bool, as_csv: bool, pairs: dict[str, str], **arguments: Any) -> None:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv cannot be used together")
        form = Form.JSON if as_json else Form.CSV if as_csv else Form.TEXT
        function(settings=Flags(form, pairs), **arguments)

    return run


def run_command(command: commands.Command, settings: Flags) -> pa.Table:
    """Carry a command out and print its rows."""
    from indextables.sql.runner import run

    with render.watching() as progress:
        table = run(command, options=settings.options, progress=progress)
    render.show(table, settings.form)
    return table


def open_table(uri: str, settings: Flags, version: int | None = None) -> Table | DeltaTable:
    """Open a table, ours or Delta's as its log says, at a version where one is given."""
    from indextables.any_table import open_table as opened

    return opened(uri, version, settings.options)


version_flag = click.option("--version", type=int, help="Use this version instead of the newest.")
where_flag = click.option(
    "--where", metavar="CONDITION", help="A SQL condition, such as \"day = '2024-01-01'\"."
)
limit_flag = click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The most rows to show."
)
dry_run_flag = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
table_argument = click.argument("table", shell_complete=directories)
