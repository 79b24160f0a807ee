"""Lines of a log as columns: by a pattern with named groups, or by a form that is recognised.

A line that does not fit, such as one of a stack trace, keeps its text as `message`
and has no other value. A line whose time cannot be read keeps the whole of it there
too, beside its other values, and is counted. All lines of a block are taken apart at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from indextables.errors import OptionError
from indextables.ingest.log_times import FORMS, INSTANT, Years, has_yearless, instants
from indextables.lazy import pc

TIME = "ts"
MESSAGE = "message"
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL"
KNOWN = {
    "ISO times": (
        r"^(?P<ts>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+"
        rf"(?:\[?(?P<level>(?i:{_LEVELS}))\]?:?\s+)?(?P<message>.*)$"
    ),
    "syslog": (
        r"^(?P<ts>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
        r"(?P<program>[^\[:\s]+)(?:\[(?P<pid>\d+)\])?: (?P<message>.*)$"
    ),
    "web server": (
        r"^(?P<client>\S+) \S+ (?P<user>\S+) \[(?P<ts>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
        r'"(?P<message>[^"]*)" (?P<status>\d{3}) (?P<bytes>\d+|-)'
        r'(?: "(?P<referrer>[^"]*)" "(?P<agent>[^"]*)")?$'
    ),
}
_NUMBERS = ("status", "bytes", "pid")
_FITS = 0.5
_SHOWN = 120
_ANY_LEAP_YEAR = 2024


@dataclass(frozen=True, slots=True)
class LogForm:
    """How the lines of a log are taken apart."""

    name: str
    pattern: str | None
    groups: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([pa.field(name, _type_of(name)) for name in self.groups or (MESSAGE,)])

    def times(self, lines: pa.Array) -> pa.Array:
        """The texts of the times; null for a line that does not fit."""
        if self.pattern is None or TIME not in self.groups:
            return pa.nulls(len(lines), pa.string())
        return pc.struct_field(pc.extract_regex(lines, self.pattern), TIME)


@dataclass(slots=True)
class LineReader:
    """Takes the lines of one file apart, in their order, and counts the times that cannot be read."""

    form: LogForm
    find_years: Callable[[], Years]
    """Called once, at the first time that says no year."""
    unparsed_times: int = 0
    example: str = ""
    """The first line whose time cannot be read."""
    _years: Years | None = field(default=None, init=False)

    def rows(self, lines: pa.Array) -> pa.RecordBatch:
        """The rows of the next lines."""
        schema = self.form.schema
        if self.form.pattern is None:
            return pa.record_batch([lines], schema=schema)
        groups = pc.extract_regex(lines, self.form.pattern)
        times = self._times(pc.struct_field(groups, TIME), lines) if TIME in schema.names else None
        columns = []
        for name in schema.names:
            text = pc.struct_field(groups, name)
            if name == TIME:
                columns.append(times)
            elif name == MESSAGE:
                fits = pc.is_valid(groups)
                if times is not None:
                    fits = pc.and_(fits, pc.invert(_unparsed(pc.struct_field(groups, TIME), times)))
                columns.append(pc.if_else(fits, text, lines))
            elif name in _NUMBERS:
                digits = pc.if_else(
                    pc.match_substring_regex(text, r"^\d{1,18}$"), text, pa.scalar(None, pa.string())
                )
                columns.append(digits.cast(pa.int64()))
            else:
                columns.append(pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text))
        return pa.record_batch(columns, schema=schema)

    def _times(self, text: pa.Array, lines: pa.Array) -> pa.Array:
        if self._years is None and has_yearless(text):
            self._years = self.find_years()
        times = instants(text, self._years)
        unparsed = _unparsed(text, times)
        count = pc.sum(unparsed).as_py() or 0
        if count and not self.unparsed_times:
            self.example = lines.filter(unparsed)[0].as_py()
        self.unparsed_times += count
        return times


def _unparsed(text: pa.Array, times: pa.Array) -> pa.Array:
    """Which texts are there and were not understood as a time."""
    has_text = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(text), ""), fill_value=False)
    return pc.and_(has_text, pc.is_null(times))


def log_form(sample: pa.Array, pattern: str | None = None) -> LogForm:
    """The form of a log, by a pattern of the caller or by what most of the first lines look like."""
    if pattern is not None:
        form = form_of("your pattern", pattern)
        _check_times(form, sample)
        return form
    for name, known_pattern in KNOWN.items():
        fits = pc.sum(pc.match_substring_regex(sample, known_pattern)).as_py() or 0
        if len(sample) and fits >= _FITS * len(sample):
            return form_of(name, known_pattern)
    return form_of("plain lines", None)


def form_of(name: str, pattern: str | None) -> LogForm:
    """The form with a pattern; without one, every line is a message."""
    return LogForm(name, pattern, () if pattern is None else _groups(pattern))


def _check_times(form: LogForm, sample: pa.Array) -> None:
    """Refuse a pattern if none of the times it finds can be read: it takes something else for the time."""
    texts = form.times(sample)
    unparsed = _unparsed(texts, instants(texts, Years(_ANY_LEAP_YEAR)))
    times = pc.sum(pc.fill_null(pc.not_equal(texts, ""), fill_value=False)).as_py() or 0
    if times and times == (pc.sum(unparsed).as_py() or 0):
        raise OptionError(
            f"the group ts of --pattern finds {texts.filter(unparsed)[0].as_py()!r} as the time of the line "
            f"{line_shown(sample.filter(unparsed)[0].as_py())}, and no time of the first {len(sample)} lines "
            f"can be read. Times look like {FORMS}. Give the group another name, such as "
            "time_text, to load it as text."
        )


def line_shown(line: str) -> str:
    """A line for a message, cut if it is long."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")


def _groups(pattern: str) -> tuple[str, ...]:
    try:
        groups = tuple(re.compile(pattern).groupindex)
        pc.extract_regex(pa.array([""]), pattern)
    except (re.error, pa.ArrowInvalid) as bad:
        raise OptionError(f"--pattern is not a regular expression with named groups: {bad}") from bad
    if MESSAGE not in groups:
        raise OptionError("--pattern needs a group (?P<message>...), which takes the lines that do not fit")
    return groups


def _type_of(name: str) -> pa.DataType:
    return INSTANT if name == TIME else pa.int64() if name in _NUMBERS else pa.string()


def split_lines(block: str) -> pa.Array:
    """The lines of a block that ends with a line end; empty ones are left out."""
    lines = pc.list_flatten(pc.split_pattern(pa.array([block.replace("\r\n", "\n")]), "\n"))
    return lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
