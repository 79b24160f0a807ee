"""The `indextables` command: each verb one call, its rows printed as text, JSON or CSV.

A mistake in what was typed ends with exit code 2, anything else that goes
wrong with 1; both print one message and no traceback, as JSON with --json.
"""

from __future__ import annotations

import atexit
import copy
import gc
import os
import sys

import click

from indextables import __version__
from indextables.cli import companion_verb, completion, load_verbs, maintain_verbs, read_verbs, render, serve
from indextables.errors import (
    CommandError,
    Error,
    OptionError,
    PredicateError,
    QueryError,
    SchemaError,
    StorageError,
)

_MISTYPED = (CommandError, OptionError, PredicateError, QueryError, SchemaError)


PURPOSES = {
    "Begin": ("demo", "load", "tail"),
    "Search and count": ("search", "count", "sql", "serve"),
    "Look at a table": ("inspect", "files", "history", "changes", "describe", "report", "bench"),
    "Keep a table healthy": (
        "check",
        "merge-splits",
        "checkpoint",
        "purge-rows",
        "purge",
        "truncate-history",
        "repair",
    ),
    "Search tables of other systems": ("companion",),
    "Delete or bring back rows": ("delete", "drop-partitions", "restore"),
    "Set up": ("completion", "jar"),
}
"""What the verbs are for, in the order in which people need them."""


class _ByPurpose(click.Group):
    """A group whose help lists its verbs by their purpose."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write one list of verbs for each purpose, with the summaries below each other."""
        longest = max(len(name) for verbs in PURPOSES.values() for name in verbs)
        for purpose, verbs in PURPOSES.items():
            with formatter.section(purpose):
                formatter.write_dl([(name.ljust(longest), self._summary(name, formatter)) for name in verbs])

    def _summary(self, name: str, formatter: click.HelpFormatter) -> str:
        return self.commands[name].get_short_help_str(formatter.width)


@click.group(
    cls=_ByPurpose, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="indextables")
def cli() -> None:
    """ACID tables with full-text search: look at them, search them, keep them healthy."""


class _NoPandas:
    """Hides pandas from pyarrow, which loads it to see whether a Python list is a pandas type.

    No verb has such values, and the look takes longer than most verbs do. Spark needs pandas and gets it.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Refuse pandas; leave every other module to the finders after this one."""
        if name == "pandas" and not {"pyspark", "indextables.spark"} & sys.modules.keys():
            raise ModuleNotFoundError("pandas is not loaded by the command line", name=name)


def program() -> None:
    """The process of the command line, which runs `main` and nothing else."""
    # Loading modules makes objects that stay; looking for cycles among them takes a tenth of a short verb,
    # half of it at the very end, when everything is released anyway.
    gc.set_threshold(100_000)
    atexit.register(_skip_last_collection)
    if sys.argv[1:2] != ["demo"]:
        # pyarrow looks for pandas once: the demo also shows Spark, where it has to be found.
        sys.meta_path.insert(0, _NoPandas)
    main()


def _skip_last_collection() -> None:
    """Leave all objects to the end of the process, but for DuckDB, which reports those nobody collects."""
    if "_duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line; the only place where an error becomes an exit code."""
    warnings = render.warn_on_terminal()
    try:
        code = cli(prog_name="indextables", standalone_mode=False)
    except click.ClickException as wrong:
        if _wants_json():
            _report("UsageError", wrong.format_message())
        else:
            wrong.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _report("Interrupted", "interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away; say nothing and keep the interpreter from saying it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Error as error:
        if isinstance(error, StorageError):
            warnings.waiting = None
        message = error.message
        takes_text = sys.argv[1:2] in (["search"], ["count"])
        if takes_text and isinstance(error, QueryError) and message.startswith("cannot read the query"):
            message += ". For any text as it is, such as a line of a log, use --text."
        _report(type(error).__name__, message)
        sys.exit(2 if isinstance(error, _MISTYPED) else 1)
    except OSError as error:
        # A file named on the command line that cannot be written or read, such as that of --output.
        _report(type(error).__name__, f"{error.filename}: {error.strerror}" if error.filename else str(error))
        sys.exit(1)
    sys.exit(code or 0)


def _report(kind: str, message: str) -> None:
    """One message on standard error, as JSON with --json."""
    if _wants_json():
        render.complain_json(kind, message)
    else:
        render.complain(message)


def _wants_json() -> bool:
    """Whether --json was given; the arguments may be what is wrong, so nothing has read them."""
    return "--json" in sys.argv[1:]


@cli.command()
@click.option(
    "--rows", type=click.IntRange(min=1000), default=200_000, show_default=True, help="How many log events."
)
@click.option(
    "--dir", "directory", type=click.Path(file_okay=False), help="Keep the table in this directory."
)
@click.option(
    "--spark/--no-spark", default=None, help="With Spark or without; by default with it if Java is installed."
)
def demo(rows: int, directory: str | None, spark: bool | None) -> None:
    """Build a table of log events and show what it can do."""
    from indextables.demo import run_demo

    run_demo(rows, directory, spark, lambda table: render.show(table, render.Form.TEXT))


@cli.command()
@click.option("--into", type=click.Path(dir_okay=False), help="Write a copy of the jar to this file.")
def jar(into: str | None) -> None:
    """Print the path of the jar for `spark.jars`.

    spark-sql and Spark Connect servers need it. It is made first if it does not exist yet,
    which needs Java.
    """
    from indextables.spark.jvm.installed import check_java
    from indextables.spark.jvm.jar import ready_jar

    check_java()
    click.echo(ready_jar(into))


for _verb in (
    *read_verbs.VERBS, *load_verbs.VERBS, *serve.VERBS, *maintain_verbs.VERBS, *companion_verb.VERBS,
    *completion.VERBS,
):  # fmt: skip
    cli.add_command(_verb)
# What the verb was called while rows could not be merged; it works, and help names the other one.
_merge = copy.copy(maintain_verbs.merge)
_merge.hidden = True
cli.add_command(_merge, "merge")
