"""Lines of a log as columns: by a pattern with named groups, or by a form that is recognised.

A line that does not fit, such as one of a stack trace, keeps its text as `message`
and has no other value. All lines of a block are taken apart at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from indextables.errors import OptionError

TIME = "ts"
MESSAGE = "message"
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL"
_INSTANT = pa.timestamp("us", "UTC")
_US = 1_000_000
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


@dataclass(frozen=True, slots=True)
class LogForm:
    """How the lines of a log are taken apart."""

    name: str
    pattern: str | None
    groups: tuple[str, ...]
    year: int
    """For times that say no year."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([pa.field(name, _type_of(name)) for name in self.groups or (MESSAGE,)])

    def rows(self, lines: pa.Array) -> pa.RecordBatch:
        """The rows of some lines."""
        schema = self.schema
        if self.pattern is None:
            return pa.record_batch([lines], schema=schema)
        found = pc.extract_regex(lines, self.pattern)
        columns = []
        for name in schema.names:
            text = pc.struct_field(found, name)
            if name == TIME:
                columns.append(instants(text, self.year))
            elif name == MESSAGE:
                columns.append(pc.if_else(pc.is_valid(found), text, lines))
            elif name in _NUMBERS:
                digits = pc.if_else(
                    pc.match_substring_regex(text, r"^\d{1,18}$"), text, pa.scalar(None, pa.string())
                )
                columns.append(digits.cast(pa.int64()))
            else:
                columns.append(pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text))
        return pa.record_batch(columns, schema=schema)


def log_form(sample: pa.Array, year: int, pattern: str | None = None) -> LogForm:
    """The form of a log, by a pattern of the caller or by what most of the first lines look like."""
    if pattern is not None:
        return LogForm("your pattern", pattern, _groups(pattern), year)
    for name, known in KNOWN.items():
        fits = pc.sum(pc.match_substring_regex(sample, known)).as_py() or 0
        if len(sample) and fits >= _FITS * len(sample):
            return LogForm(name, known, _groups(known), year)
    return LogForm("plain lines", None, (), year)


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
    return _INSTANT if name == TIME else pa.int64() if name in _NUMBERS else pa.string()


def instants(text: pa.Array, year: int) -> pa.Array:
    """Times as instants, those without an offset in UTC; what is no time becomes null."""
    iso = _strptime(pc.replace_substring(pc.utf8_slice_codeunits(text, 0, 19), "T", " "), "%Y-%m-%d %H:%M:%S")
    web = _strptime(pc.utf8_slice_codeunits(text, 0, 20), "%d/%b/%Y:%H:%M:%S")
    dated = pc.binary_join_element_wise(pa.scalar(str(year)), text, " ")
    plain = _strptime(dated, "%Y %b %d %H:%M:%S")
    seconds = pc.coalesce(iso, web, plain)
    fraction = pc.struct_field(pc.extract_regex(text, r":\d\d[.,](?P<part>\d{1,6})"), "part")
    micros = pc.fill_null(pc.utf8_rpad(fraction, 6, "0").cast(pa.int64()), 0)
    offset = pc.extract_regex(text, r"(?P<sign>[+-])(?P<hour>\d\d):?(?P<minute>\d\d)$")
    minutes = pc.add(
        pc.multiply(pc.struct_field(offset, "hour").cast(pa.int64()), 60),
        pc.struct_field(offset, "minute").cast(pa.int64()),
    )
    signed = pc.if_else(pc.equal(pc.struct_field(offset, "sign"), "-"), pc.negate(minutes), minutes)
    shift = pc.multiply(pc.fill_null(signed, 0), 60 * _US)
    return pc.subtract(pc.add(seconds, micros), shift).cast(_INSTANT)


def _strptime(text: pa.Array, form: str) -> pa.Array:
    return pc.strptime(text, format=form, unit="us", error_is_null=True).cast(pa.int64())


def split_lines(block: str) -> pa.Array:
    """The lines of a block that ends with a line end; empty ones are left out."""
    lines = pc.list_flatten(pc.split_pattern(pa.array([block.replace("\r\n", "\n")]), "\n"))
    return lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
