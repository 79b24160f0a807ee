"""Write the pages that are made from the source: options, command line, decisions, a table of figures.

A test compares what this makes with what is in the tree.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import click

from indextables.cli.main import cli
from indextables.options import GROUPS, PREFIX, declared
from indextables.options.groups import COLUMN_KEYS

DOCS = Path(__file__).parent.parent / "docs"
_FIGURES = DOCS.parent / "benchmarks" / "results" / "delta.json"
_FROM, _TO = "<!-- written by scripts/write_pages.py from benchmarks/results/delta.json -->", "<!-- end -->"
_LOG_FORMS = DOCS.parent / "benchmarks" / "results" / "log_forms.json"
_LOGS_FROM = "<!-- written by scripts/write_pages.py from benchmarks/results/log_forms.json -->"
_SPARKS = DOCS.parent / "tests" / "spark_versions.json"
_SPARKS_FROM = "<!-- written by scripts/write_pages.py from tests/spark_versions.json -->"
_SIZES = ("1k", "10k", "100k", "1M")
_FORMS = (("", ("list", "describe", "prune 1%")), (" in commits alone", ("list commits", "prune commits")))
_SYSTEMS = {
    "delta local": "Delta, this process",
    "delta spark": "Delta, Spark",
    "native local": "IndexTables, this process",
    "native spark": "IndexTables, Spark",
}
DECISION_HEAD = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)\. (?P<status>(?:[^.(]|\([^)]*\))+)\. Topic: (?P<topic>[^.]+)\."
)
"""The third line of a decision: its date, whether it still holds, and what it is about."""
_DECISIONS = """# Decisions

Why things are as they are: what was weighed, what was measured, what was chosen.

A number is a name: it is never used again. A decision that was
superseded keeps its page, which names the one that holds.

"""
_OPTIONS = f"""# Options

Every key may be given to `.option()` and `options=` with or without the prefix
`{PREFIX}`; in a Spark session or Hadoop configuration the prefix is needed.
An option beats the session configuration, which beats the Hadoop configuration,
which beats a table property, which beats the default. Keys are not case-sensitive.
"""
_COMMAND_LINE = """# Command line

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


def options() -> str:
    """Every option, from its declaration."""
    lines = [_OPTIONS]
    current = ""
    for group, item in declared():
        if group != current:
            current = group
            summary = (GROUPS[group].__doc__ or "").strip().rstrip(".")
            lines += [
                "",
                f"## {summary}",
                "",
                "| key | default | expects | meaning |",
                "| --- | --- | --- | --- |",
            ]
            lines += [
                f"| `{prefix}<column>` | | {key.kind.name} | {key.doc} |"
                for prefix, key in COLUMN_KEYS.items()
                if key.group == group
            ]
        lines.append(_option_row(item))
    lines += [
        "",
        "Keys that begin with `aws_`, `azure_`, `google_`, `fs.`, `s3_`, `client_` or `storage.`",
        "configure the object store.",
        "",
    ]
    return "\n".join(lines)


def _option_row(item: dataclasses.Field[Any]) -> str:
    also = "".join(f" Also `{alias}`." for alias in item.metadata["aliases"])
    default = _default(item.metadata["kind"].name, item.default)
    expects = item.metadata["kind"].name.replace("|", "\\|")
    return f"| `{item.metadata['key']}` | {default} | {expects} | {item.metadata['doc']}{also} |"


def _default(kind: str, default: Any) -> str:
    if default is None:
        return "auto" if kind.startswith("auto") else ""
    if isinstance(default, bool):
        return str(default).lower()
    if kind.startswith("a size"):
        return f"{default >> 30}G" if default % (1 << 30) == 0 else f"{default >> 20}M"
    return str(default)


def command_line() -> str:
    """Every verb, from its help."""
    context = click.Context(cli, info_name="indextables")
    verbs = [(name, cli.get_command(context, name)) for name in cli.list_commands(context)]
    sections = [_verb(name, verb, context) for name, verb in verbs if verb is not None and not verb.hidden]
    return "\n".join([_COMMAND_LINE, *sections])


def _verb(name: str, verb: click.Command, parent: click.Context) -> str:
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


def decisions() -> str:
    """Every decision under its topic, with its number, date and status."""
    by_topic: dict[str, list[str]] = {}
    for page in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title, _, about = page.read_text().split("\n", 3)[:3]
        head = DECISION_HEAD.fullmatch(about)
        topic, date, status = (head["topic"], head["date"], head["status"]) if head else ("Other", "", "")
        number, _, name = title.removeprefix("# ").partition(": ")
        by_topic.setdefault(topic, []).append(f"| {number} | [{name}]({page.name}) | {date} | {status} |\n")
    return _DECISIONS + "\n".join(
        f"## {topic}\n\n| | | | |\n| --- | --- | --- | --- |\n" + "".join(rows)
        for topic, rows in sorted(by_topic.items())
    )


def log_forms() -> str:
    """The page about logs, with what was recognised in real ones."""
    text = (DOCS / "howto" / "logs.md").read_text()
    before, _, rest = text.partition(_LOGS_FROM)
    _, _, after = rest.partition(_TO)
    lines = ["| system | time | level | host | program | pid |", "| --- |" + " --: |" * 5]
    for system, graded in json.loads(_LOG_FORMS.read_text()).items():
        cells = (
            f"{graded['right'][name]:,} of {count:,}" if count else ""
            for name, count in graded["has"].items()
        )
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return before + _LOGS_FROM + "\n" + "\n".join(lines) + "\n" + _TO + after


def deploy() -> str:
    """The page on where it runs, with what the Spark suite came to on each version of Spark."""
    before, _, rest = (DOCS / "deploy.md").read_text().partition(_SPARKS_FROM)
    _, _, after = rest.partition(_TO)
    lines = [
        "| Spark | suite | passed | failed | skipped, and why | seconds | commit |",
        "| --- | --- | --: | --: | --- | --: | --- |",
    ]
    for name, run in (json.loads(_SPARKS.read_text()) if _SPARKS.exists() else {}).items():
        skipped = "; ".join(f"{count} {reason}" for reason, count in run["skipped"].items())
        counts = (run["passed"], run["failed"], skipped, run["seconds"], run["commit"])
        cells = (*name.split(), *counts)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return before + _SPARKS_FROM + "\n" + "\n".join(lines) + "\n" + _TO + after


def delta() -> str:
    """The page on Delta tables, with the CPU seconds of each engine as they were measured last."""
    before, _, rest = (DOCS / "delta.md").read_text().partition(_FROM)
    _, _, after = rest.partition(_TO)
    return before + _FROM + "\n" + _engines() + _TO + after


def _engines() -> str:
    rows = json.loads(_FIGURES.read_text())["rows"]
    seconds = {
        (row["case"], row["system"], row["size"]): row["cpu_seconds"] + row["facts"].get("jvm_cpu_s", 0.0)
        for row in rows
    }
    lines = ["| files | " + " | ".join(_SYSTEMS.values()) + " |", "|---" * (len(_SYSTEMS) + 1) + "|"]
    for size, (note, cases) in ((size, form) for form in _FORMS for size in _SIZES):
        known = [[seconds.get((case, system, size)) for case in cases] for system in _SYSTEMS]
        if any(found is not None for pair in known for found in pair):
            cells = (", ".join(map(_shown, pair)) for pair in known)
            lines.append(f"| {size}{note} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _shown(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"


PAGES = {
    "options.md": options,
    "reference/cli.md": command_line,
    "decisions/index.md": decisions,
    "delta.md": delta,
    "deploy.md": deploy,
    "howto/logs.md": log_forms,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())
