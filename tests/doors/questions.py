"""Questions: trees of tuples that know nothing of any door, and how each dialect writes them.

Conditions: ("and"|"or", ...), ("not", c), ("compare", operator, e, e), ("in", e, [e]),
("between", e, e, e), ("null", e), ("like", e, pattern).
Expressions: ("column", role), ("field", role, name), ("literal", value, spelling), ("call", operator, e, ...).
Queries: ("and"|"or"|"beside", ...), ("not", q), ("in column", role, q), ("word"|"phrase"|"prefix", text),
("value"|"least", value) in a column without a search field.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from doors.worlds import WORDS, World

PLAIN_ZONES = ("UTC", "America/New_York", "Asia/Tokyo", "Europe/Berlin")
COMPARABLE = ("id", "n", "x", "s", "ts", "tn", "d", "dec", "b", "p", "level")
SORTABLE = ("id", "n", "x", "s", "ts", "tn", "d", "dec", "b", "level")
RESERVED = ("select", "when", "date")
GROUPABLE = ("n", "s", "level", "p", "b", "d", "x")


@dataclass(frozen=True)
class Question:
    """One question: which rows, and what is to be known of them."""

    kind: str
    """rows, order, score, groups, facets or histogram."""
    where: tuple[Any, ...] | None = None
    query: tuple[Any, ...] | None = None
    keys: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    by: str | None = None
    interval: str | None = None
    version: int | None = None
    zone: str | None = None
    """The option timeZone of the call, where it is given."""
    operator: str | None = None
    """The option search.defaultOperator of the call, where it is given."""
    seed: int = field(default=0, compare=False)
    """How names are spelled."""


def draw(world: World, chance: random.Random) -> Question:
    """A question that the table of a world can be asked."""
    version = (
        chance.randrange(world.versions[0][0], world.versions[-1][0] + 1) if chance.random() < 0.15 else None
    )
    kind = chance.choice(["rows"] * 4 + ["order"] * 2 + ["score", "groups", "facets", "histogram"])
    if version is not None and version < world.searchable_from:
        kind = "rows"
    where = _condition(world, chance, chance.choice((1, 1, 2, 3))) if chance.random() < 0.75 else None
    query = _query(world, chance, 2) if kind == "score" or chance.random() < 0.45 else None
    if kind in ("score", "order") and chance.random() < 0.35:
        # Times are where doors have differed: the zone has to reach every way of reading.
        role = chance.choice(("ts", "tn"))
        where = ("compare", chance.choice(("<", ">=")), ("column", role), _literal(world, chance, role))
    if version is not None and version < world.searchable_from:
        query = None
    by = interval = None
    keys: list[tuple[str, bool]] = []
    if kind == "order":
        roles = chance.sample([role for role in SORTABLE if role in world.names], chance.choice((1, 2)))
        keys = [(role, chance.random() < 0.5) for role in roles if role != "id"] + [
            ("id", chance.random() < 0.5)
        ]
    if kind in ("groups", "facets"):
        by = chance.choice([role for role in GROUPABLE if role in world.names])
    if kind == "histogram":
        by, interval = chance.choice((("ts", "day"), ("ts", "hour"), ("tn", "day"), ("d", "day")))
    return Question(
        kind,
        where,
        query,
        tuple(keys),
        chance.choice((1, 3, 10)) if kind == "order" and chance.random() < 0.7 else None,
        by,
        interval,
        version,
        chance.choice(PLAIN_ZONES) if chance.random() < 0.3 else None,
        chance.choice(("and", "or")) if query is not None and chance.random() < 0.2 else None,
        chance.randrange(1 << 30),
    )


def _condition(world: World, chance: random.Random, depth: int) -> tuple[Any, ...]:
    if depth > 1 and chance.random() < 0.75:
        way = chance.choice(("and", "and", "or", "not"))
        if way == "not":
            return ("not", _condition(world, chance, depth - 1))
        return (way, *(_condition(world, chance, depth - 1) for _ in range(2)))
    if chance.random() < 0.06:
        inside = ("field", "k", "a")
        tests = (("null", ("column", "k")), ("null", inside), ("compare", "=", inside, ("literal", 1, "")))
        return chance.choice(tests)
    role = chance.choice([role for role in COMPARABLE if role in world.names])
    column = ("column", role)
    form = chance.random()
    if form < 0.1:
        test: tuple[Any, ...] = ("null", column)
        return test if chance.random() < 0.5 else ("not", test)
    if form < 0.2:
        return ("in", column, [_literal(world, chance, role) for _ in range(chance.choice((1, 3)))])
    if form < 0.3 and role != "b":
        return ("between", column, _literal(world, chance, role), _literal(world, chance, role))
    if form < 0.4 and role in ("s", "level"):
        return ("like", column, _pattern(world, chance, role))
    if form < 0.5 and role == "n":
        return (
            "compare",
            "=",
            ("call", "%", column, ("literal", chance.choice((2, 3, 7)), "")),
            ("literal", 1, ""),
        )
    if form < 0.5 and role == "id":
        return ("compare", chance.choice(("<", ">=")), ("column", "n"), ("column", "id"))
    if form < 0.5 and role in ("level", "s"):
        return (
            "compare",
            "=",
            ("call", "lower", column),
            ("literal", chance.choice(("error", "a", "é")), ""),
        )
    operator = chance.choice(("=", "<>", "<=>") if role == "b" else ("=", "<>", "<", "<=", ">", ">=", "<=>"))
    return ("compare", operator, column, _literal(world, chance, role))


def _literal(world: World, chance: random.Random, role: str) -> tuple[Any, ...]:
    values = [row[role] for row in world.rows if row[role] is not None] or [world.usual(role)]
    chosen = chance.choice(values)
    if role in ("ts", "tn"):
        moved = chosen + dt.timedelta(minutes=chance.choice((0, 0, -60, 60, 7)))
        if chance.random() < 0.5:
            aware = moved if moved.tzinfo else moved.replace(tzinfo=dt.UTC)
            return ("literal", aware, "offset")
        # On the wall clock; the zone of the question decides which instant it is.
        return (
            "literal",
            moved.replace(tzinfo=None),
            chance.choice(("typed", "text")) if role == "ts" else "typed",
        )
    if role in ("id", "n") and chance.random() < 0.3:
        return ("literal", chosen + chance.choice((-1, 1)), "")
    if isinstance(chosen, float) and math.isnan(chosen):
        return ("literal", chosen, "cast") if chance.random() < 0.5 else ("literal", 0.5, "")
    return ("literal", chosen, "")


def _pattern(world: World, chance: random.Random, role: str) -> str:
    values = [row[role] for row in world.rows if row[role]] or ["a"]
    text = "".join(letter for letter in chance.choice(values) if letter not in "%_\\")
    cut = chance.randrange(len(text) + 1)
    return chance.choice((f"{text[:cut]}%", f"%{text[cut:]}", f"%{text[cut:]}%", f"{text[:cut]}_%", text))


def _query(world: World, chance: random.Random, depth: int) -> tuple[Any, ...]:
    if depth and chance.random() < 0.6:
        way = chance.choice(("and", "or", "and not", "in column", "beside"))
        if way == "in column":
            role = chance.choice(("msg", "level", "n", "dec", "b"))
            if role in ("msg", "level"):
                return ("in column", role, _leaf(chance, role))
            value = chance.choice([row[role] for row in world.rows if row[role] is not None] or [0])
            return ("in column", role, (chance.choice(("value", "least")), value))
        if way == "beside":
            return ("beside", _leaf(chance, "msg"), _leaf(chance, "msg"))
        parts = [_query(world, chance, depth - 1) for _ in range(2)]
        return ("and", parts[0], ("not", parts[1])) if way == "and not" else (way, *parts)
    return _leaf(chance, "msg")


def _leaf(chance: random.Random, role: str) -> tuple[Any, ...]:
    if role == "level":
        return chance.choice((("word", "ERROR"), ("word", "error"), ("prefix", "E"), ("word", "INFO")))
    word = chance.choice(WORDS)
    form = chance.random()
    if form < 0.2:
        return ("phrase", f"{word} {chance.choice(WORDS)}")
    return ("prefix", word[: chance.choice((2, 3))]) if form < 0.35 else ("word", word)


class Writer:
    """Writes a question in one dialect: `spark`, which Table's filters share, or `duckdb`."""

    def __init__(self, world: World, dialect: str, seed: int) -> None:
        self._world = world
        self._dialect = dialect
        self._chance = random.Random(seed)

    def name(self, role: str) -> str:
        """A column's name, quoted where it must be, and then and again where it need not be."""
        name = self._world.names[role]
        plain = name.isidentifier() and name.isascii() and name.lower() not in RESERVED
        if plain and self._chance.random() < 0.5:
            return self._chance.choice((name, name.upper()))
        if self._dialect == "spark":
            return "`" + name.replace("`", "``") + "`"
        return '"' + name.replace('"', '""') + '"'

    def condition(self, tree: tuple[Any, ...]) -> str:
        """SQL text."""
        kind = tree[0]
        if kind in ("and", "or"):
            return "(" + f" {kind.upper()} ".join(self.condition(part) for part in tree[1:]) + ")"
        if kind == "not":
            return f"NOT ({self.condition(tree[1])})"
        if kind == "null":
            return f"{self.expression(tree[1])} IS NULL"
        if kind == "like":
            return f"{self.expression(tree[1])} LIKE {self.text(tree[2])}"
        if kind == "in":
            return f"{self.expression(tree[1])} IN ({', '.join(map(self.expression, tree[2]))})"
        if kind == "between":
            column, low, high = map(self.expression, tree[1:])
            return f"{column} BETWEEN {low} AND {high}"
        operator = tree[1]
        if operator == "<=>" and self._dialect == "duckdb":
            operator = "IS NOT DISTINCT FROM"
        return f"{self.expression(tree[2])} {operator} {self.expression(tree[3])}"

    def expression(self, tree: tuple[Any, ...]) -> str:
        """SQL text."""
        if tree[0] == "column":
            return self.name(tree[1])
        if tree[0] == "field":
            return f"{self.name(tree[1])}.{tree[2]}"
        if tree[0] == "literal":
            return self.literal(tree[1], tree[2])
        parts = [self.expression(part) for part in tree[2:]]
        return f"{tree[1]}({parts[0]})" if len(parts) == 1 else f"{parts[0]} {tree[1]} {parts[1]}"

    def literal(self, value: Any, spelling: str) -> str:
        """SQL text."""
        if isinstance(value, dt.datetime):
            text = value.strftime("%Y-%m-%d %H:%M:%S")
            if spelling == "text":
                return f"'{text}'"
            if value.tzinfo:
                utc = value.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
                return f"TIMESTAMP'{utc}Z'" if self._dialect == "spark" else f"TIMESTAMPTZ '{utc}+00'"
            return f"TIMESTAMP'{text}'" if self._dialect == "spark" else f"TIMESTAMPTZ '{text}'"
        if isinstance(value, dt.date):
            return f"DATE'{value.isoformat()}'"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
            named = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"CAST('{named}' AS DOUBLE)"
        return str(value) if isinstance(value, (int, Decimal)) else repr(value)

    def text(self, value: str) -> str:
        """A string literal."""
        if self._dialect == "spark":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def query(self, tree: tuple[Any, ...]) -> str:
        """A full-text query."""
        kind = tree[0]
        if kind in ("and", "or"):
            return "(" + f" {kind.upper()} ".join(self.query(part) for part in tree[1:]) + ")"
        if kind == "beside":
            return f"({self.query(tree[1])} {self.query(tree[2])})"
        if kind == "not":
            return f"NOT {self.query(tree[1])}"
        if kind == "in column":
            name = "".join(
                letter if letter.isalnum() or letter == "_" else f"\\{letter}"
                for letter in self._world.names[tree[1]]
            )
            return f"{name}:{self.query(tree[2])}"
        if kind == "phrase":
            return f'"{tree[1]}"'
        if kind in ("value", "least"):
            return ("" if kind == "value" else ">=") + str(tree[1]).lower()
        return f"{tree[1]}*" if kind == "prefix" else tree[1]
