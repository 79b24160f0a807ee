"""What a question means, in plain Python over plain values. Shares no code with the package.

Rows are dictionaries. A condition is a tree of tuples (see `questions`), evaluated with
three truths: True, False and None for "unknown". Numbers follow Spark: NaN equals itself and
is above everything, -0.0 equals 0.0; strings are ordered by their UTF-8 bytes; a time without
an offset is a time of the zone that the question is asked in.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from functools import cmp_to_key
from typing import Any
from zoneinfo import ZoneInfo

Row = dict[str, Any]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def truth(condition: tuple[Any, ...], row: Row, zone: str) -> bool | None:
    """Whether a condition holds for a row."""
    kind = condition[0]
    if kind == "and":
        return _all(truth(part, row, zone) for part in condition[1:])
    if kind == "or":
        return _negated(_all(_negated(truth(part, row, zone)) for part in condition[1:]))
    if kind == "not":
        return _negated(truth(condition[1], row, zone))
    if kind == "null":
        return value(condition[1], row, zone) is None
    if kind == "like":
        text = value(condition[1], row, zone)
        return None if text is None else _like(text, condition[2])
    if kind == "in":
        left = value(condition[1], row, zone)
        parts = (compared("=", left, value(item, row, zone), zone) for item in condition[2])
        return _negated(_all(_negated(part) for part in parts))
    if kind == "between":
        left, low, high = (value(part, row, zone) for part in condition[1:])
        return _all([compared(">=", left, low, zone), compared("<=", left, high, zone)])
    left, right = value(condition[2], row, zone), value(condition[3], row, zone)
    if condition[1] == "<=>":
        return left is right if left is None or right is None else compared("=", left, right, zone)
    return compared(condition[1], left, right, zone)


def value(expression: tuple[Any, ...], row: Row, zone: str) -> Any:
    """The value of an expression for a row."""
    kind = expression[0]
    if kind == "column":
        return row[expression[1]]
    if kind == "field":
        return None if row[expression[1]] is None else row[expression[1]][expression[2]]
    if kind == "literal":
        return expression[1]
    parts = [value(part, row, zone) for part in expression[2:]]
    if any(part is None for part in parts):
        return None
    if expression[1] == "%":
        left, right = parts
        return int(math.fmod(left, right))
    if expression[1] == "+":
        return parts[0] + parts[1]
    if expression[1] == "lower":
        return parts[0].lower()
    assert expression[1] == "length"
    return len(parts[0])


def compared(operator: str, left: Any, right: Any, zone: str) -> bool | None:
    """One comparison; None when a side is null."""
    if left is None or right is None:
        return None
    left, right = _comparable(left, right, zone)
    order = _order(left, right)
    return {
        "=": order == 0, "<>": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0,
    }[operator]  # fmt: skip


def instant(moment: dt.datetime, zone: str) -> dt.datetime:
    """A time on the time line; one without an offset is local to the zone, the earlier one where it is twice."""
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone), fold=0)


def sort_rows(rows: list[Row], keys: list[tuple[str, bool]]) -> list[Row]:
    """In Spark's order: nulls first, last when descending; NaN above every number."""

    def order(left: Row, right: Row) -> int:
        for name, descending in keys:
            one, other = left[name], right[name]
            if one is None or other is None:
                way = (one is not None) - (other is not None)
            else:
                way = _order(one, other)
            if way:
                return -way if descending else way
        return 0

    return sorted(rows, key=cmp_to_key(order))


def words(text: str) -> list[str]:
    """The words of a text as the default tokenizer makes them, for texts without scripts that have no spaces."""
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]


def matches(query: tuple[Any, ...], row: Row, fields: dict[str, str], operator: str) -> bool:
    """Whether a full-text query finds a row; `fields` are the searched columns: text or string.

    `operator` joins words that stand side by side.
    """
    kind = operator if query[0] == "beside" else query[0]
    if kind == "and":
        return all(matches(part, row, fields, operator) for part in query[1:])
    if kind == "or":
        return any(matches(part, row, fields, operator) for part in query[1:])
    if kind == "not":
        return not matches(query[1], row, fields, operator)
    if kind == "in column":
        if query[2][0] in ("value", "least"):
            held, given = row[query[1]], query[2][1]
            return held is not None and (held == given if query[2][0] == "value" else held >= given)
        return matches(query[2], row, {query[1]: fields[query[1]]}, operator)
    return any(_in_field(query, row[name], form) for name, form in fields.items() if row[name] is not None)


def bucket(moment: Any, interval: str, zone: str) -> Any:
    """The beginning of the hour or day that a time lies in, on the clocks of the zone."""
    if isinstance(moment, dt.datetime):
        local = moment.astimezone(ZoneInfo(zone)) if moment.tzinfo else moment
        if interval == "day":
            cut = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        else:
            cut = local.replace(minute=0, second=0, microsecond=0)
        return cut.astimezone(dt.UTC) if moment.tzinfo else cut
    return moment


def _in_field(query: tuple[Any, ...], text: str, form: str) -> bool:
    kind, given = query
    if form == "string":
        if kind == "prefix":
            return text.startswith(given)
        return text == given
    held = words(text)
    if kind == "prefix":
        return any(word.startswith(given.lower()) for word in held)
    wanted = words(given)
    if not wanted:
        return False
    return any(held[at : at + len(wanted)] == wanted for at in range(len(held) - len(wanted) + 1))


def _all(parts: Any) -> bool | None:
    answer: bool | None = True
    for part in parts:
        if part is False:
            return False
        answer = None if part is None else answer
    return answer


def _negated(part: bool | None) -> bool | None:
    return None if part is None else not part


def _comparable(left: Any, right: Any, zone: str) -> tuple[Any, Any]:
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        times = [isinstance(side, dt.datetime) for side in (left, right)]
        if any(times):
            left, right = (_as_time(side) for side in (left, right))
            if bool(left.tzinfo) != bool(right.tzinfo):
                left, right = instant(left, zone), instant(right, zone)
    return left, right


def _as_time(side: dt.date) -> dt.datetime:
    return side if isinstance(side, dt.datetime) else dt.datetime(side.year, side.month, side.day)


def _order(left: Any, right: Any) -> int:
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = (Decimal(side) if isinstance(side, int) else side for side in (left, right))
    if isinstance(left, dt.datetime) and left.tzinfo:
        left, right = left - EPOCH, right - EPOCH
    one, other = (isinstance(side, float) and math.isnan(side) for side in (left, right))
    if one or other:
        return one - other
    return (left > right) - (left < right)


def _like(text: str, pattern: str) -> bool:
    parts = [".*" if letter == "%" else "." if letter == "_" else re.escape(letter) for letter in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None
