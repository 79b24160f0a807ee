"""Lines of a log as rows: how a form takes them apart, and what its reader counts on the way.

A line that does not fit keeps its text as `message` and has no other value. A line whose
time cannot be read keeps the whole of it there too, beside its other values. A line of a
stack trace is part of the row of the line before it. All lines of a block are taken apart
at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.ingest.log_json import JsonField, json_rows
from indextables.ingest.log_times import INSTANT, Years, instants
from indextables.lazy import pc

TIME = "ts"
MESSAGE = "message"
RAW = "_raw"
NUMBERS = ("status", "bytes", "pid", "priority")
CONTINUES = (
    r"^(?:\s|Caused by: |Suppressed: |Traceback \(most recent|During handling of |The above exception |"
    r"\.\.\. \d+ more|goroutine \d+ \[|panic: |created by |[)}\]]+[;,]?$|stack backtrace:|"
    r"(?:[A-Za-z_][\w$]*[./])*[A-Z]\w*(?:Exception|Error|Warning|Interrupt|Exit|Throwable)(?:: |$)|"
    r"[\w./*()]+\(.*\)$)"
)
"""What the lines of a stack trace begin with, as far as they do not fit the form of the log."""
KEYS = {
    TIME: ("ts", "time", "timestamp", "@timestamp", "t", "datetime", "date", "asctime", "eventTime"),
    "level": ("level", "lvl", "severity", "levelname", "log.level", "loglevel"),
    MESSAGE: ("message", "msg", "log", "event", "text", "body"),
    "host": ("host", "hostname"),
    "program": ("program", "app", "logger", "service", "component", "source"),
    "pid": ("pid", "process"),
}
"""What the keys of pairs and of JSON objects are called whose values are columns of every log."""
_REST, _REST_OF_BYTES = r"(?P<message>.*)$", r"(?P<message>\C*)$"
"""The rest of a line by characters, and by bytes, which Arrow finds in two thirds of the time."""
_MOST_LINES = 500
"""Joined to one line at most."""
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class LogForm:
    """How the lines of a log are taken apart.

    The named groups of the pattern are columns; what those with a name that begins with `_` hold is put in
    front of the message, and nothing is lost.
    """

    name: str
    pattern: str | None
    pairs: tuple[str, ...] = ()
    """Keys of `key=value` pairs that are columns."""
    is_logfmt: bool = False
    """The line has nothing but pairs: those that are columns are left out of the message."""
    fields: tuple[JsonField, ...] = ()
    """The columns of a log whose lines are JSON objects."""
    has_raw: bool = False
    """Whether the line as it was is a column too."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        if self.fields:
            columns = [item.column for item in self.fields]
        else:
            columns = [pa.field(name, _type_of(name)) for name in self._names]
        return pa.schema([*columns, *([pa.field(RAW, pa.string())] if self.has_raw else [])])

    @property
    def has_times(self) -> bool:
        """Whether its lines have a time."""
        return TIME in self.schema.names

    @property
    def _names(self) -> tuple[str, ...]:
        groups = [name for name in _groups(self.pattern) if not name.startswith("_")]
        return (
            *(name for name in groups if name != MESSAGE),
            *(column_of_key(key) for key in self.pairs if column_of_key(key) != MESSAGE),
            MESSAGE,
        ) if self.pairs else tuple(groups) or (MESSAGE,)  # fmt: skip

    def take_apart(self, lines: pa.Array) -> tuple[pa.Array, dict[str, pa.Array]]:
        """Which lines fit, and the texts of their columns; without a value is null or empty."""
        if self.fields:
            return json_rows(lines, self.fields)
        if self.pattern is None:
            fits, texts = pa.array(np.ones(len(lines), bool)), {MESSAGE: lines}
        else:
            groups = pc.extract_regex(lines, self.pattern.replace(_REST, _REST_OF_BYTES))
            fits = pc.is_valid(groups)
            texts = {item.name: pc.struct_field(groups, item.name) for item in groups.type}
        for key in self.pairs:
            texts[column_of_key(key)] = pair_values(lines, key)
        if self.is_logfmt:
            rest = lines
            for key in self.pairs:
                rest = pc.replace_substring_regex(rest, _pair(key), " ")
            rest = pc.utf8_trim_whitespace(rest)
            has_message = MESSAGE in {column_of_key(key) for key in self.pairs}
            texts[MESSAGE] = _joined([texts[MESSAGE], rest]) if has_message else rest
        hidden = [pc.utf8_trim(text, " \t[(<|") for name, text in texts.items() if name.startswith("_")]
        if hidden:
            texts[MESSAGE] = _joined([*hidden, texts[MESSAGE]])
        return fits, texts

    def times(self, lines: pa.Array) -> pa.Array:
        """The texts of the times; null for a line that does not fit."""
        if not self.has_times:
            return pa.nulls(len(lines), pa.string())
        if self.pattern is not None and not self.pairs:
            return pc.struct_field(pc.extract_regex(lines, self.pattern), TIME)
        return self.take_apart(lines)[1][TIME]

    def fits(self, lines: pa.Array) -> bool:
        """Whether most lines have this form."""
        fits = self.take_apart(lines)[0]
        return self.has_times and (pc.sum(fits).as_py() or 0) * 2 >= len(lines)

    def to_wire(self) -> dict[str, Any]:
        """The form as JSON; what is as in most forms is left out."""
        more = {
            "pairs": list(self.pairs),
            "is_logfmt": self.is_logfmt,
            "fields": [item.to_wire() for item in self.fields],
            "has_raw": self.has_raw,
        }
        return {
            "name": self.name,
            "pattern": self.pattern,
            **{key: value for key, value in more.items() if value},
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> LogForm:
        """The form that `to_wire` wrote."""
        return cls(
            wire["name"],
            wire["pattern"],
            tuple(wire.get("pairs", ())),
            wire.get("is_logfmt", False),
            tuple(JsonField.from_wire(item) for item in wire.get("fields", ())),
            wire.get("has_raw", False),
        )


@dataclass(slots=True)
class LineReader:
    """Takes the lines of one file apart, in their order, and counts them."""

    form: LogForm
    find_years: Callable[[], Years]
    """Called once, at the first time that says no year."""
    lines: int = 0
    """Lines so far, empty ones as well."""
    joined: int = 0
    """Lines that are part of the row of the line before."""
    rows: int = 0
    without_time: int = 0
    """Rows whose time is missing or cannot be read."""
    example: str = ""
    """The first line of these, and its number."""
    example_line: int = 0
    _held: pa.Array = field(default_factory=lambda: pa.array([], pa.string()), init=False)
    """The last line and what is joined to it so far: the next block may go on with it."""
    _years: Years | None = field(default=None, init=False)

    def read(self, lines: pa.Array, *, is_last: bool = True) -> pa.RecordBatch:
        """The rows of the next lines; the last of them is kept for later unless it is the last at all."""
        first = self.lines + 1 - len(self._held)
        self.lines += len(lines)
        lines = pa.concat_arrays([self._held, lines.cast(pa.string())])
        held_from = len(lines)
        filled = np.flatnonzero(pc.not_equal(pc.utf8_trim_whitespace(lines), "").to_numpy(False))
        texts = lines if len(filled) == len(lines) else lines.take(pa.array(filled))
        fits, columns = self.form.take_apart(texts)
        starts = self._starts(texts, fits)
        if not is_last and self.form.has_times and len(starts):
            held_from = int(filled[starts[-1]])
            starts = starts[:-1]
        self._held = lines.slice(held_from)
        end = int(np.searchsorted(filled, held_from))
        self.joined += end - len(starts)
        self.rows += len(starts)

        def at_starts(values: pa.Array) -> pa.Array:
            """The values of the lines with which rows begin."""
            return values.slice(0, end) if end == len(starts) else values.take(pa.array(starts))

        columns = {name: at_starts(values) for name, values in columns.items()}
        traces = _traces(texts.slice(0, end), starts)
        return self._batch(at_starts(fits), columns, at_starts(texts), traces, filled[starts] + first)

    def _starts(self, texts: pa.Array, fits: pa.Array) -> np.ndarray:
        """Where rows begin: at each line that is no part of a stack trace."""
        rows = np.arange(len(texts))
        if not self.form.has_times or pc.all(fits).as_py() in {True, None}:
            return rows
        strange = np.flatnonzero(~fits.to_numpy(zero_copy_only=False))
        continues = np.zeros(len(texts), bool)
        continues[strange] = pc.match_substring_regex(texts.take(pa.array(strange)), CONTINUES).to_numpy(
            zero_copy_only=False
        )
        last_start = np.maximum.accumulate(np.where(continues, 0, rows))
        starts: np.ndarray = np.flatnonzero(~continues | ((rows - last_start) % (_MOST_LINES + 1) == 0))
        return starts

    def _batch(
        self,
        fits: pa.Array,
        texts: dict[str, pa.Array],
        heads: pa.Array,
        traces: pa.Array | None,
        numbers: np.ndarray,
    ) -> pa.RecordBatch:
        columns = []
        schema = self.form.schema
        if TIME in schema.names:
            times = instants(texts[TIME], self._years_of_file)
            fits = pc.and_(fits, pc.invert(unparsed_times(texts[TIME], times)))
            self._count(times, heads, numbers)
        for item in schema:
            text = texts.get(item.name)
            if item.name == TIME:
                columns.append(times)
            elif item.name == RAW:
                columns.append(_with_traces(heads, traces))
            elif text is None or item.name == MESSAGE:
                message = (
                    heads if text is None else pc.if_else(pc.fill_null(fits, fill_value=False), text, heads)
                )
                columns.append(_with_traces(message, traces))
            elif item.name in NUMBERS and not self.form.fields:
                digits = pc.if_else(
                    pc.match_substring_regex(text, r"^\d{1,18}$"), text, pa.scalar(None, pa.string())
                )
                columns.append(digits.cast(pa.int64()))
            elif pa.types.is_string(item.type):
                columns.append(pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text))
            else:
                columns.append(text)
        return pa.record_batch(columns, schema=schema)

    def _count(self, times: pa.Array, heads: pa.Array, numbers: np.ndarray) -> None:
        if times.null_count and not self.without_time:
            at = pc.index(pc.is_null(times), value=True).as_py()
            self.example, self.example_line = heads[at].as_py(), int(numbers[at])
        self.without_time += times.null_count

    def _years_of_file(self) -> Years:
        if self._years is None:
            self._years = self.find_years()
        return self._years


def _traces(texts: pa.Array, starts: np.ndarray) -> pa.Array | None:
    """The further lines of each row, empty where there are none; None if no row has any."""
    if len(starts) == len(texts):
        return None
    continues = np.ones(len(texts), bool)
    continues[starts] = False
    before = np.append(starts - np.arange(len(starts)), len(texts) - len(starts))
    lists = pa.ListArray.from_arrays(pa.array(before, pa.int32()), texts.filter(pa.array(continues)))
    traces: pa.Array = pc.binary_join(lists, "\n")
    return traces


def _with_traces(text: pa.Array, traces: pa.Array | None) -> pa.Array:
    if traces is None:
        return text
    return pc.if_else(pc.equal(traces, ""), text, pc.binary_join_element_wise(text, traces, "\n"))


def _joined(texts: list[pa.Array]) -> pa.Array:
    """Texts side by side with a space between; empty ones are left out."""
    first, *others = (pc.fill_null(text, "") for text in texts)
    for other in others:
        both = pc.binary_join_element_wise(first, other, " ")
        first = pc.if_else(pc.equal(first, ""), other, pc.if_else(pc.equal(other, ""), first, both))
    return first


def unparsed_times(text: pa.Array, times: pa.Array) -> pa.Array:
    """Which texts are there and were not understood as a time."""
    has_text = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(text), ""), fill_value=False)
    return pc.and_(has_text, pc.is_null(times))


def column_of_key(key: str) -> str:
    """The column in which the value of a key is."""
    return next((column for column, keys in KEYS.items() if key in keys), key)


def pair_values(lines: pa.Array, key: str) -> pa.Array:
    """The value of a key in each line that has it."""
    groups = pc.extract_regex(lines, _pair(key))
    quoted, plain = pc.struct_field(groups, "quoted"), pc.struct_field(groups, "plain")
    for written, meant in (('\\"', '"'), ("\\n", "\n"), ("\\t", "\t"), ("\\\\", "\\")):
        quoted = pc.replace_substring(quoted, written, meant)
    return pc.if_else(pc.equal(quoted, ""), plain, quoted)


def _pair(key: str) -> str:
    return (
        rf"(?:^|[\s,;(\[{{]){re.escape(key)}="
        r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s"]*?))[,;)\]}]*(?:\s|$)'
    )


def line_shown(line: str) -> str:
    """A line for a message, cut if it is long."""
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}...")


def _groups(pattern: str | None) -> tuple[str, ...]:
    return () if pattern is None else tuple(re.compile(pattern).groupindex)


def _type_of(name: str) -> pa.DataType:
    return INSTANT if name == TIME else pa.int64() if name in NUMBERS else pa.string()


def split_lines(block: bytes) -> pa.Array:
    """The lines of a block; bytes that are no UTF-8 are replaced."""
    text = block.decode("utf-8", "replace")
    if "\r" in text or "\ufffd" in text:
        block = text.replace("\r\n", "\n").encode()
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends, [] if block.endswith(b"\n") else [len(block)]]).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(block))
    trimmed: pa.Array = pc.ascii_rtrim(lines, "\n")
    return trimmed
