"""The form of a log, from its first lines.

A line is taken for what most logs are made of: perhaps something in front of the time, the
time, then fields such as level, process or program, then the message. The time is looked for
first, in every shape that can be read. What stands before and after it is added piece by
piece, each if most lines have it. Access logs, `key=value` lines and JSON have forms of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from statistics import median
from typing import Any

import pyarrow as pa

from indextables.errors import OptionError
from indextables.ingest.log_json import JsonField, kind_of
from indextables.ingest.log_lines import (
    CONTINUES,
    KEYS,
    MESSAGE,
    TIME,
    LogForm,
    column_of_key,
    line_shown,
    unparsed_times,
)
from indextables.ingest.log_times import FORMS, SHAPES, Years, instants
from indextables.lazy import pc

_MOST = 0.5
"""A part belongs to the form if this share of the lines has it."""
_NEARLY_ALL = 0.95
_SOME = 0.1
_REACH = 100
"""Characters in which a time begins."""
_ENOUGH = 300
"""Lines that tell which fields there are."""
_MOST_PAIRS = 100
_ANY_LEAP_YEAR = 2024

_WORDS = (
    "trace|debug|info|information|notice|warn|warning|error|err|critical|crit|fatal|alert|emerg|panic|severe|fine|"
    "finer|finest|config|verbose|log"
)
_LEVEL = (
    rf"[\[(<]?\s?(?:[a-z]\w*:)?(?P<level>(?i:{_WORDS})|[VDIWEFTNC])\s?[\])>]?"
    r"(?:[:,|]\s*|\s+-\s+|\s+|$)"
)
_NAME = r"[\w.$/*@-]+(?:\(\w+\))?"
_PID = r"(?P<pid>\d{1,10})"
_QUOTED = r'(?:[^"\\]|\\.)*'
_ACCESS = (
    r"^(?:(?P<host>[\w.-]+:\d+) )?(?P<client>\S+) \S+ (?:-|(?P<user>\S+(?: \S+)?)) \[(?P<ts>[^\]]+)\] "
    rf'"(?P<message>{_QUOTED})" (?P<status>\d{{3}}) (?:-|(?P<bytes>\d+))'
    rf'(?: "(?:-|(?P<referrer>{_QUOTED}))" "(?:-|(?P<agent>{_QUOTED}))")?(?: (?P<extra>.*))?$'
)
_LOGFMT = rf'^(?:[A-Za-z_@][\w.@/-]*=(?:"{_QUOTED}"|[^\s"]*)(?:\s+|$)){{2,}}$'
_KEY = re.compile(rf'(?:^|[\s,;(\[{{])([A-Za-z_@][\w.@-]*)=(?:"{_QUOTED}"|[^\s"=]+)')
_LEFT = r"(?:^|[\s\[({<\"'=|>,;])"
_BEFORE = (
    r"^[\[(<\"']?",
    r"^<(?P<priority>\d{1,3})>(?:1 )?",
    r"^(?P<level>[IWEFD])",
    rf"^{_LEVEL}[\[(]?",
    r"^(?P<program>[\w./-]+)\s+\|\s+[\[(]?",
)
"""What stands before the time, if nearly all lines have it."""
_ANYTHING = rf"^(?P<_before>(?:.{{0,{_REACH}}}?[\s\[({{<\"'=|>,;])??)"
_AFTER = r"[\])>\"']?[,:;|]?\s*(?:-\s+)?"
_RFC5424 = (
    r"(?P<host>\S+) (?P<program>\S+) (?:-|(?P<pid>\d+)|\S+) (?:-|(?P<msgid>\S+)) "
    r"(?:-|(?P<data>(?:\[(?:[^\]\\\"]|\"(?:[^\"\\]|\\.)*\"|\\.)*\])+))(?: " + "\ufeff?|$)"
)
_FIELDS = (
    r"(?P<stream>stdout|stderr) [FP] ",
    rf"{_PID}\s+(?:(?P<thread>\d{{1,10}})\s+)?{_LEVEL}",
    _LEVEL,
    rf"\[(?:pid )?{_PID}(?::tid (?P<thread>\d+))?\]:?\s+",
    rf"{_PID}#\d+:\s+",
    rf"{_PID}\s+(?P<program>[\w./-]+:\d+)\]\s+",
    rf"\[(?P<thread>[^\]\[]+)\]\s+{_LEVEL}",
    rf"\[(?P<thread>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\s+(?P<program>{_NAME})(?::|\s+-)\s+",
    r"(?P<program>[^|\s]+)\|(?P<pid>\d+)\|",
    rf"(?P<program>{_NAME})(?:\s\*\d+)?\s+-\s+",
)
"""Fields after the time; the first that most lines have is taken, and then they are tried again."""
_HOST_AND_PROGRAM = r"(?P<host>[^\s:\[=]+)\s+(?P<program>[^\s\[:=]+(?: [^\s\[:=]+){0,3})"
_SYSLOG = _HOST_AND_PROGRAM + r"(?:\[(?P<pid>\d+)\])?:(?:\s+|$)"
_SYSLOG_WITH_PID = _HOST_AND_PROGRAM + r"\[(?P<pid>\d+)\]:"
_AFTER_LEVEL = (
    rf"(?P<program>{_NAME})(?:\[\d+\])?:\s+",
    r"(?P<program>\w+)\s{2,}",
    r"(?P<program>[A-Za-z_][\w$]*(?:\.[\w$]+)+)\s+",
)
"""Fields that stand behind a level or a process only; elsewhere a sentence may begin like this."""
_NEAR_LEVEL = rf"(?P<_between>(?:\S+\s+){{1,6}}?)(?P<level>{_WORDS.upper()})\s+"
_LEVEL_ALONE = rf"^[\[(<]?(?P<level>{_WORDS.upper()})[\])>]?(?:[:,|]\s*|\s+)(?P<message>.*)$"
_EPOCH, _KLOG, _BSD = "epoch times", "klog times", "syslog times"


def log_form(
    sample: pa.Array, pattern: str | None = None, *, with_pairs: bool = False, with_raw: bool = False
) -> LogForm:
    """The form of a log, by a pattern of the caller or by what most of the first lines look like."""
    lines = sample.filter(pc.not_equal(pc.utf8_trim_whitespace(sample), ""))
    form = _form_of_pattern(pattern, lines) if pattern is not None else _recognised(lines)
    if with_pairs and not form.fields:
        columns = {*form.schema.names} - ({MESSAGE} if form.is_logfmt else set())
        keys = [key for key in _keys(lines) if column_of_key(key) not in columns]
        form = replace(form, pairs=(*form.pairs, *keys))
    return replace(form, has_raw=with_raw)


def _recognised(lines: pa.Array) -> LogForm:
    heads = lines.filter(pc.invert(pc.match_substring_regex(lines, CONTINUES)))
    if not len(heads):
        return LogForm("plain lines", None)
    documents = [_object(line) for line in heads.to_pylist()]
    if len(documents) - documents.count(None) >= _MOST * len(heads):
        return _json_form([document for document in documents if document is not None])
    if _fits(heads, _ACCESS) >= _MOST * len(heads):
        return LogForm("a web server", _without_empty(_ACCESS, heads))
    if _fits(heads, _LOGFMT) >= _MOST * len(heads):
        keys = [key for key in _keys(heads) if column_of_key(key) in {TIME, "level"}]
        return LogForm("key=value pairs", None, tuple(keys), is_logfmt=True)
    return _timed_form(heads)


def _fits(lines: pa.Array, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(lines, pattern)).as_py() or 0


def _timed_form(lines: pa.Array) -> LogForm:
    """A form made of the pieces that most lines have."""
    names = _times_in_order(lines)
    if not names:
        has_level = _fits(lines, _LEVEL_ALONE) >= _MOST * len(lines)
        return LogForm("lines with a level", _LEVEL_ALONE) if has_level else LogForm("plain lines", None)
    time = rf"(?P<ts>{_bare(names[0])})\b"
    if names[0] == _EPOCH and len(names) > 1:
        # The same time twice: the one that a person reads may be of any time zone.
        time += rf"(?P<_copy>.{{0,80}}?[\s\[(]{_bare(names[1])})\b"
    time += _AFTER
    counts = {item: _fits(lines, item + time) for item in (*_BEFORE, _ANYTHING)}
    pattern = next(item for item in counts if counts[item] >= _NEARLY_ALL * max(counts.values())) + time
    some_lines = lines.take(pa.array(range(0, len(lines), 1 + len(lines) // _ENOUGH)))
    while (field := _next_field(some_lines, pattern)) is not None:
        pattern += f"(?:{field})?"
    return LogForm(names[0], _without_empty(rf"{pattern}(?P<message>.*)$", lines))


def _times_in_order(lines: pa.Array) -> list[str]:
    """The shapes of the times that most lines have, as they stand in a line."""
    counts, places = {}, {}
    for name in SHAPES:
        left = r"^[IWEFD]" if name == _KLOG else _LEFT
        at = pc.find_substring_regex(lines, rf"{left}(?:{_bare(name)})\b").to_numpy(zero_copy_only=False)
        at = at[(at >= 0) & (at < _REACH)]
        if len(at) >= _MOST * len(lines):
            counts[name], places[name] = len(at), median(at.tolist())
    often = [name for name in counts if counts[name] >= _NEARLY_ALL * max(counts.values())]
    return sorted(often, key=lambda name: places[name])


def _next_field(lines: pa.Array, pattern: str) -> str | None:
    """A field that most lines have behind a pattern."""
    groups = re.compile(pattern).groupindex.keys()
    needed = _MOST * _fits(lines, pattern)
    fields = [
        *([_RFC5424] if "priority" in groups else ()),
        *_FIELDS,
        *(_AFTER_LEVEL if {"level", "pid"} & groups else ()),
        *([_SYSLOG] if _is_syslog(lines, pattern) else ()),
        _NEAR_LEVEL,
    ]
    return next(
        (
            field
            for field in fields
            if not re.compile(field).groupindex.keys() & groups and _count(lines, pattern, field) >= needed
        ),
        None,
    )


def _count(lines: pa.Array, pattern: str, field: str) -> int:
    """How many lines have a field behind what a pattern takes first; it does not take less for its sake."""
    groups = pc.extract_regex(lines, f"{pattern}(?P<_field>{field})?")
    return pc.sum(pc.not_equal(pc.struct_field(groups, "_field"), "")).as_py() or 0


def _is_syslog(lines: pa.Array, pattern: str) -> bool:
    """Whether two words and a colon are a host and a program: other logs have sentences there."""
    is_time_of_syslog = f"(?P<ts>{_bare(_BSD)})" in pattern
    return is_time_of_syslog or _count(lines, pattern, _SYSLOG_WITH_PID) >= _SOME * len(lines)


def _without_empty(pattern: str, lines: pa.Array) -> str:
    """The pattern without columns that are empty in all lines: what they hold later joins the message."""
    groups = pc.extract_regex(lines, pattern)
    for item in groups.type:
        is_empty = not pc.any(pc.not_equal(pc.struct_field(groups, item.name), "")).as_py()
        if is_empty and item.name != MESSAGE and not item.name.startswith("_"):
            pattern = pattern.replace(f"(?P<{item.name}>", f"(?P<_{item.name}>")
    return pattern


def _bare(shape: str) -> str:
    """The pattern of a shape without the names of its groups."""
    return re.sub(r"\(\?P<\w+>", "(?:", SHAPES[shape])


def _keys(lines: pa.Array) -> list[str]:
    """The keys of pairs, one for each column, those of many lines first."""
    counts = Counter(key for line in lines.to_pylist() for key in _KEY.findall(line))
    keys = {column_of_key(key): key for key, _ in reversed(counts.most_common(_MOST_PAIRS))}
    return [key for key in counts if key in keys.values()]


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _json_form(documents: list[dict[str, Any]]) -> LogForm:
    """A column for each key; those that logs call by several names have one name."""
    values: dict[str, list[Any]] = {}
    for document in documents:
        for key, value in document.items():
            values.setdefault(key, []).append(value)
    names = {key: key for key in values}
    for name, keys in KEYS.items():
        if name in {TIME, "level", MESSAGE}:
            fitting = [key for key in keys if key in values and (name != TIME or _are_times(values[key]))]
            if fitting and (fitting[0] == name or name not in values):
                names[fitting[0]] = name
    fields = [
        JsonField(key, names[key], "time" if names[key] == TIME and _are_times(of_key) else kind_of(of_key))
        for key, of_key in values.items()
        if any(value is not None for value in of_key)
    ]
    return LogForm("JSON objects", None, fields=tuple(_text_messages(fields)))


def _text_messages(fields: list[JsonField]) -> list[JsonField]:
    """The fields with `message` as text, without which it is the line."""
    return [replace(item, kind="string") if item.name == MESSAGE else item for item in fields]


def _are_times(values: list[Any]) -> bool:
    texts = pa.array([str(value) for value in values if isinstance(value, str | int | float)], pa.string())
    return len(texts) > 0 and instants(texts, lambda: Years(_ANY_LEAP_YEAR)).null_count < _MOST * len(texts)


def _form_of_pattern(pattern: str, lines: pa.Array) -> LogForm:
    """The form of a pattern of the caller's, which is refused if it does not fit."""
    try:
        groups = tuple(re.compile(pattern).groupindex)
        pc.extract_regex(pa.array([""]), pattern)
    except (re.error, pa.ArrowInvalid) as bad:
        raise OptionError(f"--pattern is not a regular expression with named groups: {bad}") from bad
    if MESSAGE not in groups:
        raise OptionError("--pattern needs a group (?P<message>...), which takes the lines that do not fit")
    form = LogForm("your pattern", pattern)
    if len(lines) and not _fits(lines, pattern):
        raise OptionError(
            f"--pattern fits none of the first {len(lines)} lines, such as {line_shown(lines[0].as_py())}"
        )
    texts = form.times(lines)
    unparsed = unparsed_times(texts, instants(texts, lambda: Years(_ANY_LEAP_YEAR)))
    times = pc.sum(pc.fill_null(pc.not_equal(texts, ""), fill_value=False)).as_py() or 0
    if times and times == (pc.sum(unparsed).as_py() or 0):
        raise OptionError(
            f"the group ts of --pattern finds {texts.filter(unparsed)[0].as_py()!r} as the time of the line "
            f"{line_shown(lines.filter(unparsed)[0].as_py())}, and no time of the first {len(lines)} lines "
            f"can be read. Times look like {FORMS}. Give the group another name, such as "
            "time_text, to load it as text."
        )
    return form
