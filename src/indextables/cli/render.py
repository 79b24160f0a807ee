"""What the command line prints: an Arrow table as text for people, JSON or CSV for programs.

People get sizes and times in readable units, one fact per line when there is a
single wide row, and lines that fit the terminal. Programs get the values as
they are. Nothing that stands in a table moves the terminal's cursor, changes its
colours or its title: control characters are shown, not sent.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from indextables.display.plain import plain_value, size_text
from indextables.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

_FACTS_FROM = 4
_READABLE_WIDTH = 16
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Everything but tab and line end that a terminal obeys, and what turns the direction of writing around."""


MARKS = ("\ue000", "\ue001")
"""Characters of nobody around what is to stand out."""


class Form(Enum):
    """How rows are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def printable(text: str) -> str:
    """Text for a terminal: control characters appear as the escapes that JSON has for them."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class WarningLines(logging.StreamHandler[Any]):
    """Prints warnings; one about a store that failed waits for what comes next.

    If the next thing is the error with which the same store ended the command, the error says it all.
    """

    waiting: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning, or let it wait; the same one again takes its place."""
        if self.waiting is None or _about(record) != _about(self.waiting):
            self.print_waiting()
        if isinstance(record.args, tuple) and any(isinstance(part, StorageError) for part in record.args):
            self.waiting = record
        else:
            super().emit(record)

    def print_waiting(self) -> None:
        """Print the warning that waits."""
        record, self.waiting = self.waiting, None
        if record is not None:
            super().emit(record)

    def close(self) -> None:
        """Print what waits when the process ends."""
        self.print_waiting()
        super().close()


def _about(record: logging.LogRecord) -> tuple[str, ...]:
    """What a warning says, apart from the failure itself, whose text may hold the time it took."""
    parts = record.args if isinstance(record.args, tuple) else ()
    return (record.msg, *(str(part) for part in parts if not isinstance(part, StorageError)))


def warn_on_terminal() -> WarningLines:
    """Let warnings reach standard error as one plain line each; a file may be named anything."""
    handler = WarningLines()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Printable("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    return handler


def show(
    table: pa.Table, form: Form, *, title: str | None = None, empty: str = "No rows.", data: bool = False
) -> None:
    """Print rows to standard output; `data` are rows of the user, whose names and values stay as they are."""
    match form:
        case Form.JSON:
            _show_json(table)
        case Form.CSV:
            _show_csv(table)
        case Form.TEXT:
            _show_text(table, title, empty, _DATA if data else _FACTS)
    sys.stdout.flush()


def show_line(form: Form, facts: Mapping[str, Any]) -> None:
    """Print what just happened: a JSON object on a line for programs, words for people."""
    if form is Form.TEXT:
        text = ", ".join(f"{name} {readable(name, value)}" for name, value in facts.items())
    else:
        text = json.dumps(plain_value(dict(facts)), ensure_ascii=False)
    sys.stdout.write(printable(text) + "\n")
    sys.stdout.flush()


def _show_facts(facts: Mapping[str, Any], title: str | None, style: _Style) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(Text(style.head(name)), _styled(style.text(name, value)))
    console = Console(highlight=False)
    if title:
        console.print(Text(printable(title), style="bold"))
    console.print(grid)


def complain(message: str) -> None:
    """Print an error to standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("Error: ", "bold red"), printable(message)))


def complain_json(kind: str, message: str) -> None:
    """Print an error to standard error for a program: one object with the kind of error and its message."""
    payload = {"error": {"type": kind, "message": message}}
    print(printable(json.dumps(payload, ensure_ascii=False)), file=sys.stderr)


def _styled(text: str) -> Text:
    """Text in which what stands between the marks stands out; a file or pipe gets it plain."""
    if MARKS[0] not in text:
        return Text(text)
    styled = Text()
    for number, piece in enumerate(re.split(f"[{MARKS[0]}{MARKS[1]}]", text)):
        styled.append(piece, style="bold red" if number % 2 else None)
    return styled


def show_notes(notes: Iterable[str]) -> None:
    """Print hints to standard error, one line each."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for note in notes:
        console.print(Text.assemble(("Note: ", "bold"), printable(note)))


def readable(name: str, value: Any) -> str:
    """One value as people read it; the column's name tells sizes and times from counts."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and (name == "size" or name.endswith("_bytes") or name.startswith("bytes_")):
        return size_text(value)
    if isinstance(value, int) and name in ("modification_time", "skip_timestamp", "retry_after"):
        return str(dt.datetime.fromtimestamp(value / 1000, dt.UTC).isoformat(" ", "seconds"))[:19]
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and "version" not in name:
        return f"{value:,}"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "seconds")[:19]
    if isinstance(value, dict):
        pairs = ((str(key), item) for key, item in value.items() if item is not None)
        return ", ".join(f"{printable(key)}={readable(key, item)}" for key, item in pairs)
    if isinstance(value, (list, tuple)):
        return ", ".join(readable(name, item) for item in value)
    return printable(str(value))


@contextmanager
def watching(*, of_bytes: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A progress listener that draws bars on a terminal and stays quiet anywhere else.

    Of bytes it shows how many a second they are, and how long the rest will take.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _stage, _done, _total: None
        return
    from rich import progress

    counted = (
        (progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn())
        if of_bytes
        else (progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    )
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), *counted)
    with progress.Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield advance


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="lossy")
    return rows


def _show_json(table: pa.Table) -> None:
    out = sys.stdout
    out.write("[")
    for number, row in enumerate(_rows(table)):
        out.write(",\n " if number else "")
        # The escapes mean the same to whoever reads the document.
        out.write(printable(json.dumps(plain_value(row), ensure_ascii=False)))
    out.write("]\n")


def _show_csv(table: pa.Table) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    # A program gets every character; CSV has no escape that would let a terminal show them instead.
    shown = printable if sys.stdout.isatty() else str
    writer.writerow(map(shown, table.column_names))
    for row in _rows(table):
        values = (plain_value(row[name]) for name in table.column_names)
        texts = (
            json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
            for value in values
        )
        writer.writerow(shown(text) if isinstance(text, str) else text for text in texts)


class _Style(NamedTuple):
    """How people see a column's name, and a value of it."""

    head: Callable[[str], str]
    text: Callable[[str, Any], str]


def _title(name: str) -> str:
    return printable(name.replace("_", " "))


def exact(_name: str, value: Any) -> str:
    """One value of a user's row, nothing rounded or cut: it may be copied into the next query."""
    if value is None or isinstance(value, str):
        return printable(value or "")
    plain = plain_value(value)
    if isinstance(plain, str):
        return printable(plain.replace("T", " ", 1) if isinstance(value, dt.datetime) else plain)
    return printable(json.dumps(plain, ensure_ascii=False))


_FACTS = _Style(_title, readable)
_DATA = _Style(printable, exact)


def _show_text(table: pa.Table, title: str | None, empty: str, style: _Style) -> None:
    console = Console(highlight=False)
    if not table.num_rows:
        console.print(Text(empty, style="dim"))
        return
    rows = _rows(table)
    if len(rows) == 1 and table.num_columns >= _FACTS_FROM:
        _show_facts(rows[0], title, style)
        return
    if not _fits(rows, console.width, style):
        for number, row in enumerate(rows):
            if number:
                console.print()
            facts = {name: value for name, value in row.items() if value is not None}
            _show_facts(facts, None if number else title, style)
        return
    heading = None if title is None else Text(printable(title))
    drawn = Table(title=heading, title_justify="left", title_style="bold", header_style="bold")
    drawn.box = None
    for name in table.column_names:
        number = all(isinstance(row[name], (int, float)) or row[name] is None for row in rows)
        drawn.add_column(Text(style.head(name)), justify="right" if number else "left", overflow="fold")
    for above, row in zip([None, *rows], rows, strict=False):
        first, *others = (style.text(name, row[name]) for name in table.column_names)
        repeated = above is not None and above[table.column_names[0]] == row[table.column_names[0]]
        # A long name that heads a group of rows is read once; a row of the user's is shown whole.
        shown = "" if style is _FACTS and repeated and len(first) > _READABLE_WIDTH else first
        drawn.add_row(_styled(shown), *map(_styled, others))
    console.print(drawn)


def _fits(rows: list[dict[str, Any]], width: int, style: _Style) -> bool:
    """Whether columns side by side stay readable: whole words in the head, long values not in slivers."""
    needed = 0
    for name in rows[0]:
        word = max(map(len, style.head(name).split() or [""]))
        value = max(len(style.text(name, row[name])) for row in rows)
        needed += max(word, min(value, _READABLE_WIDTH)) + 2
    return needed <= width
