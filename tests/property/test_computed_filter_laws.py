"""The law of computed filters: random expressions over random rows, against an evaluator in plain Python.

The evaluator works row by row, as Spark does: from left to right, null before what follows is evaluated, and
an overflow or a division by zero is a failure of the row that needs it.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import PredicateError
from indextables.predicate.build.from_sql import parse
from indextables.predicate.evaluate.rows import mask

ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("j j", pa.int32()),
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("s", pa.string()),
        ("Größe", pa.string()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)
BITS = {"int": 32, "long": 64}
COLUMNS = {"int": ["i", "j j"], "long": ["l"], "double": ["x", "y"], "text": ["s", "Größe"], "date": ["d"], "time": ["ts"]}  # fmt: skip
NAN, INF = math.nan, math.inf


class FailedError(Exception):
    """An overflow or a division by zero."""


@dataclass(frozen=True)
class Made:
    """An expression: its SQL, its type, and its value for a row."""

    sql: str
    kind: str
    of: Callable[[dict[str, Any]], Any]
    cased: Made | None = None
    """What it is the upper or lower case of: Spark leaves out all but the last change of case."""


def strict(
    function: Callable[..., Any], *args: Made, last_first: bool = False
) -> Callable[[dict[str, Any]], Any]:
    """Evaluate arguments in turn until one is null."""

    def value(row: dict[str, Any]) -> Any:
        found = []
        for arg in args[::-1] if last_first else args:
            given = arg.of(row)
            if given is None:
                return None
            found.append(given)
        return function(*(found[::-1] if last_first else found))

    return value


def fitting(value: int, kind: str) -> int:
    if not -(1 << (BITS[kind] - 1)) <= value < 1 << (BITS[kind] - 1):
        raise FailedError
    return value


def wider(*kinds: str) -> str:
    return max(kinds, key=["int", "long", "double"].index)


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise FailedError
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    if math.isnan(a) or math.isnan(b) or math.isinf(a):
        return NAN
    return math.fmod(a, b)


def quotient(a: float, b: float) -> float:
    if b == 0:
        raise FailedError
    return float(a) / float(b)


def whole_quotient(a: int, b: int) -> int:
    if b == 0:
        raise FailedError
    return fitting(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), "long")


def as_long(value: float) -> int:
    if math.isnan(value):
        return 0
    if not math.isfinite(value) or not -(2.0**63) <= value <= 2.0**63:
        raise FailedError
    return min(int(value), (1 << 63) - 1)


def order(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def substring(text: str, position: int, length: int) -> str:
    letters = list(text)
    start = position - 1 if position > 0 else len(letters) + position if position < 0 else 0
    return "".join(letters[at] for at in range(len(letters)) if start <= at < start + length)


class Draw:
    """Draws expressions of a type."""

    def __init__(self, rng: Random, zone: str) -> None:
        self.rng = rng
        self.zone = ZoneInfo(zone)

    def number(self, depth: int) -> Made:
        return self.of(self.rng.choice(["int", "int", "long", "double"]), depth)

    def of(self, kind: str, depth: int) -> Made:
        if depth == 0 or self.rng.random() < 0.25:
            return self.leaf(kind)
        if self.rng.random() < 0.25:
            return self.choice(kind, depth - 1)
        return {"text": self.text, "double": self.double, "date": self.date}.get(kind, self.whole)(
            kind, depth - 1
        )

    def leaf(self, kind: str) -> Made:
        if kind == "date" or self.rng.random() < 0.6:
            name = self.rng.choice(COLUMNS[kind])
            return Made(f"`{name}`", kind, lambda row: row[name])
        if kind == "text":
            value = self.rng.choice(["", "a", "ß", "Σ", "x y"])
            return Made(f"'{value}'", kind, lambda _: value)
        number = self.rng.choice([0, 1, 2, -3, 7, 100])
        suffix = {"int": "", "long": "L", "double": ".5D"}[kind]
        constant = (
            number + (math.copysign(0.5, number) if number < 0 else 0.5) if kind == "double" else number
        )
        return Made(f"{number}{suffix}", kind, lambda _: constant)

    def choice(self, kind: str, depth: int) -> Made:
        first, second = self.of(kind, depth), self.of(kind, depth)
        shape = self.rng.randrange(4)
        if shape == 0:
            test = self.test(depth)
            return Made(f"if({test.sql}, {first.sql}, {second.sql})", kind, lambda row: first.of(row) if test.of(row) else second.of(row))  # fmt: skip
        if shape == 1:

            def present(row: dict[str, Any]) -> Any:
                value = first.of(row)
                return second.of(row) if value is None else value

            return Made(f"coalesce({first.sql}, {second.sql})", kind, present)
        if shape == 2:

            def unequal(row: dict[str, Any]) -> Any:
                a = first.of(row)
                b = None if a is None else second.of(row)
                return None if a is not None and b is not None and order(a) == order(b) else first.of(row)

            return Made(f"nullif({first.sql}, {second.sql})", kind, unequal)
        name = self.rng.choice(["greatest", "least"])

        def extreme(row: dict[str, Any]) -> Any:
            values = [value for value in (first.of(row), second.of(row)) if value is not None]
            return (max if name == "greatest" else min)(values, key=order) if values else None

        return Made(f"{name}({first.sql}, {second.sql})", kind, extreme)

    def whole(self, kind: str, depth: int) -> Made:
        shape = self.rng.randrange(8)
        if kind == "int" and shape == 0:
            inner = self.of("text", depth)
            return Made(f"length({inner.sql})", kind, strict(len, inner))
        if kind == "int" and shape == 1:
            part = self.rng.choice(["year", "month", "day"])
            inner = self.of("date", depth)
            return Made(f"{part}({inner.sql})", kind, strict(lambda day: getattr(day, part), inner))
        if kind == "int" and shape == 2:
            part = self.rng.choice(["hour", "minute", "second"])
            return Made(f"{part}(`ts`)", kind, lambda row: None if row["ts"] is None else getattr(row["ts"].astimezone(self.zone), part))  # fmt: skip
        if kind == "long" and shape == 0:
            name, function = self.rng.choice([("floor", math.floor), ("ceil", math.ceil)])
            inner = self.of("double", depth)
            return Made(f"{name}({inner.sql})", kind, strict(lambda value: as_long(function(value) if math.isfinite(value) else value), inner))  # fmt: skip
        if kind == "long" and shape == 1:
            a, b = self.of("int", depth), self.of("long", depth)
            return Made(f"({a.sql} div {b.sql})", kind, strict(whole_quotient, a, b, last_first=True))
        if shape == 3:
            inner = self.of(kind, depth)
            return Made(f"(- {inner.sql})", kind, strict(lambda value: fitting(-value, kind), inner))
        if shape == 4:
            inner = self.of(kind, depth)
            return Made(f"abs({inner.sql})", kind, strict(lambda value: fitting(abs(value), kind), inner))
        a, b = (
            self.of(kind, depth),
            self.of("int" if kind == "int" else self.rng.choice(["int", "long"]), depth),
        )
        if shape == 5:
            return Made(f"({a.sql} % {b.sql})", kind, strict(remainder, a, b, last_first=True))
        name, function = self.rng.choice([("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)])
        return Made(
            f"({a.sql} {name} {b.sql})", kind, strict(lambda p, q: fitting(function(p, q), kind), a, b)
        )

    def double(self, kind: str, depth: int) -> Made:
        a, b = self.of("double", depth), self.number(depth)
        shape = self.rng.randrange(6)
        if shape == 0:
            a = self.number(depth)
            return Made(f"({a.sql} / {b.sql})", kind, strict(quotient, a, b, last_first=True))
        if shape == 1:
            return Made(f"({a.sql} % {b.sql})", kind, strict(lambda p, q: remainder(p, float(q)), a, b, last_first=True))  # fmt: skip
        if shape == 2:
            return Made(f"abs({a.sql})", kind, strict(abs, a))
        name, function = self.rng.choice([("+", float.__add__), ("-", float.__sub__), ("*", float.__mul__)])
        return Made(f"({a.sql} {name} {b.sql})", kind, strict(lambda p, q: function(p, float(q)), a, b))

    def date(self, kind: str, depth: int) -> Made:
        return Made("to_date(`ts`)", kind, lambda row: None if row["ts"] is None else row["ts"].astimezone(self.zone).date())  # fmt: skip

    def text(self, kind: str, depth: int) -> Made:
        inner, other = self.of("text", depth), self.of("text", depth)
        bare = inner.cased or inner
        position, count = self.rng.randint(-4, 4), self.rng.randint(-1, 4)
        return self.rng.choice(
            [
                Made(f"lower({inner.sql})", kind, strict(str.lower, bare), bare),
                Made(f"upper({inner.sql})", kind, strict(str.upper, bare), bare),
                Made(f"trim({inner.sql})", kind, strict(lambda text: text.strip(" "), inner)),
                Made(f"ltrim({inner.sql})", kind, strict(lambda text: text.lstrip(" "), inner)),
                Made(f"rtrim({inner.sql})", kind, strict(lambda text: text.rstrip(" "), inner)),
                Made(f"concat({inner.sql}, {other.sql})", kind, strict(str.__add__, inner, other)),
                Made(f"({inner.sql} || {other.sql})", kind, strict(str.__add__, inner, other)),
                Made(f"substring({inner.sql}, {position}, {count})", kind, strict(lambda text: substring(text, position, count), inner)),
                Made(f"left({inner.sql}, {count})", kind, strict(lambda text: text[: max(count, 0)], inner)),
                Made(f"right({inner.sql}, {count})", kind, strict(lambda text: text[len(text) - min(count, len(text)) :] if count > 0 else "", inner)),
                Made(f"replace({inner.sql}, 'a', 'bb')", kind, strict(lambda text: "bb".join(text.split("a")), inner)),
            ]
        )  # fmt: skip

    def test(self, depth: int) -> Made:
        shape = self.rng.randrange(9) if depth else 8
        if shape == 0:
            a, b = self.test(depth - 1), self.test(depth - 1)

            def both(row: dict[str, Any]) -> Any:
                first = a.of(row)
                if first is False:
                    return False
                second = b.of(row)
                return False if second is False else None if first is None or second is None else True

            return Made(f"({a.sql} AND {b.sql})", "bool", both)
        if shape == 1:
            a, b = self.test(depth - 1), self.test(depth - 1)

            def either(row: dict[str, Any]) -> Any:
                first = a.of(row)
                if first is True:
                    return True
                second = b.of(row)
                return True if second is True else None if first is None or second is None else False

            return Made(f"({a.sql} OR {b.sql})", "bool", either)
        if shape == 2:
            inner = self.test(depth - 1)
            return Made(f"(NOT {inner.sql})", "bool", strict(lambda value: not value, inner))
        if shape == 3:
            inner = self.rng.choice([self.test, self.number, lambda deep: self.of("text", deep)])(depth - 1)
            return Made(f"({inner.sql} IS NULL)", "bool", lambda row: inner.of(row) is None)
        if shape == 4:
            name = self.rng.choice(["startswith", "endswith", "contains"])
            function = {"startswith": str.startswith, "endswith": str.endswith, "contains": str.__contains__}[
                name
            ]
            a, b = self.of("text", depth - 1), self.of("text", depth - 1)
            return Made(f"{name}({a.sql}, {b.sql})", "bool", strict(function, a, b))
        if shape == 5:
            return self.position(depth - 1)
        return self.comparison(depth)

    def position(self, depth: int) -> Made:
        """The place of one text in another, compared with a number: whole ones and such as ask for presence."""
        part, place = self.rng.choice(["a", "ab", "", "é", "zz"]), self.rng.randint(-1, 3)
        inner = self.of("text", depth)
        op, test = self.rng.choice(
            [
                (">", operator.gt),
                (">=", operator.ge),
                ("=", operator.eq),
                ("<", operator.lt),
                ("<=", operator.le),
            ]
        )
        call = self.rng.choice(
            [
                f"instr({inner.sql}, '{part}')",
                f"locate('{part}', {inner.sql})",
                f"position('{part}' IN {inner.sql})",
            ]
        )
        return Made(
            f"({call} {op} {place})", "bool", strict(lambda text: test(text.find(part) + 1, place), inner)
        )

    def comparison(self, depth: int) -> Made:
        if self.rng.random() < 0.4:
            kind = self.rng.choice(["text", "date"])
            a, b = self.of(kind, depth), self.of(kind, depth)
        else:
            a, b = self.number(depth), self.number(depth)
            kind = wider(a.kind, b.kind)
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])

        def key(value: Any) -> Any:
            return order(float(value) if kind == "double" else value)

        if op == "<=>":

            def same(row: dict[str, Any]) -> bool:
                p, q = a.of(row), b.of(row)
                return p is None and q is None if p is None or q is None else bool(key(p) == key(q))

            return Made(f"({a.sql} <=> {b.sql})", "bool", same)
        holds = {"=": lambda p, q: p == q, "<>": lambda p, q: p != q, "<": lambda p, q: p < q,
                 "<=": lambda p, q: p <= q, ">": lambda p, q: p > q, ">=": lambda p, q: p >= q}[op]  # fmt: skip
        return Made(f"({a.sql} {op} {b.sql})", "bool", strict(lambda p, q: holds(key(p), key(q)), a, b))


def rows(rng: Random, count: int) -> list[dict[str, Any]]:
    pools: dict[str, list[Any]] = {
        "int": [0, 1, -1, 2, 7, 100, -(1 << 31), (1 << 31) - 1],
        "long": [0, 1, -7, 10**12, -(1 << 63), (1 << 63) - 1, (1 << 53) + 1],
        "double": [0.0, -0.0, 0.5, -2.5, 1e19, 1e300, NAN, INF, -INF, 3.0],
        "text": ["", " ", "a", "A a", "straße", "İ", "ΟΔΟΣ", "x y ", "😀é", "%_"],
        "date": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        "time": [dt.datetime(2024, 3, 10, 7, 30, 59, 5, tzinfo=dt.UTC), dt.datetime(2024, 11, 3, 5, 59, tzinfo=dt.UTC),
                 dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
    }  # fmt: skip
    kinds = {name: kind for kind, names in COLUMNS.items() for name in names}
    return [
        {name: None if rng.random() < 0.2 else rng.choice(pools[kinds[name]]) for name in SCHEMA.names}
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_a_computed_filter_chooses_the_rows_that_plain_python_chooses(seed):
    """H11: where every row has an answer; and where one fails, the filter fails."""
    rng = Random(f"computed filters {seed}")
    zone = ZONES[seed % len(ZONES)]
    draw = Draw(rng, zone)
    answered = failing = 0
    for _ in range(100):
        test = draw.test(rng.choice([1, 2, 3]))
        sound, expected, broken = [], [], []
        for row in rows(rng, 25):
            try:
                answer = test.of(row) is True
            except FailedError:
                broken.append(row)
            else:
                sound.append(row)
                expected.append(answer)
        node = parse(test.sql, SCHEMA, zone)
        assert mask(node, pa.Table.from_pylist(sound, SCHEMA), SCHEMA).to_pylist() == expected, test.sql
        answered += any(expected)
        if broken:
            failing += 1
            with pytest.raises(PredicateError, match="fails for row"):
                mask(node, pa.Table.from_pylist([*sound, *broken], SCHEMA), SCHEMA)
    assert answered > 30
    assert failing > 5


def test_no_file_is_left_out_that_holds_a_row_of_a_computed_filter(tmp_path):
    """H6: computed conditions beside plain ones, over several files with statistics and partitions."""
    rng = Random("files of computed filters")
    table = it.Table.create(tmp_path / "t", SCHEMA, ("s",), {"timeZone": "UTC"})
    everything = []
    for _ in range(3):
        some = rows(rng, 12)
        everything += some
        table.append(pa.Table.from_pylist(some, SCHEMA))
    draw = Draw(rng, "UTC")
    compared = 0
    for _ in range(80):
        test = draw.test(2)
        plain = rng.choice(["`i` > 0", "`l` IS NOT NULL", "`x` < 1", "`s` = 'a'"])
        where = rng.choice([test.sql, f"NOT {test.sql}", f"{plain} AND {test.sql}", f"{plain} OR {test.sql}"])
        node = parse(where, SCHEMA)
        try:
            expected = mask(node, pa.Table.from_pylist(everything, SCHEMA), SCHEMA).true_count
        except PredicateError:
            continue
        compared += 1
        assert table.count(where) == expected, where
        assert len(table.scan(where).read_all()) == expected, where
    assert compared > 30
