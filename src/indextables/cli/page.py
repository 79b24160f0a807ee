"""The reference page of the command line, made from the commands themselves.

`python -m indextables.cli.page` prints what `docs/reference/cli.md` holds; a test compares the two.
"""

from __future__ import annotations

import inspect
import sys

import click

from indextables.cli.main import cli

_HEAD = """# Command line

Type `indextables VERB ...` or `python -m indextables VERB ...`. `indextables VERB --help` shows
what is on this page in a terminal. TABLE is a path or an address such as `s3://bucket/events`.

People get readable text; `--json` and `--csv` print exact values for programs. Results go to standard output,
and messages, notes and progress to standard error. Colours and progress bars appear on a terminal only.

| exit code | meaning |
| --- | --- |
| 0 | it worked |
| 1 | it failed: the table does not exist, a file is damaged, `check` found something broken |
| 2 | what was typed is wrong: a flag, a column, a condition, a query |
| 130 | interrupted with Ctrl-C |

An error is one message; with `--json` it is an object, `{"error": {"type": ..., "message": ...}}`.
"""


def markdown() -> str:
    """Render the whole page."""
    context = click.Context(cli, info_name="indextables")
    verbs = [(name, cli.get_command(context, name)) for name in cli.list_commands(context)]
    sections = [_section(name, verb, context) for name, verb in verbs if verb is not None and not verb.hidden]
    return "\n".join([_HEAD, *sections])


def _section(name: str, verb: click.Command, parent: click.Context) -> str:
    context = click.Context(verb, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *verb.collect_usage_pieces(context)])
    about = "\n\n".join(map(_paragraph, inspect.cleandoc(verb.help or "").split("\n\n")))
    records = [item.get_help_record(context) for item in verb.get_params(context)]
    shown = [(flag, text) for flag, text in filter(None, records) if text and "--help" not in flag]
    rows = [f"| `{_cell(flag)}` | {_cell(text)} |" for flag, text in shown]
    table = ["| flag | meaning |", "| --- | --- |", *rows, ""] if rows else []
    return "\n".join([f"## {name}", "", "```text", usage, "```", "", about, "", *table])


def _paragraph(text: str) -> str:
    """A paragraph of a help text; click prints one that begins with a backspace as it is."""
    if text.startswith("\b\n"):
        return "```text\n" + text[2:] + "\n```"
    return " ".join(text.split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
