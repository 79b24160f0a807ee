"""Random SQL conditions over typed columns, their literals near the values that are there."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from indextables.model.calendar import format_date, format_timestamp

COMPARISONS = ["=", "<", "<=", ">", ">=", "<=>", "<>"]


def literal(value: Any, kind: str, rng: random.Random) -> str:
    """A value of a type as SQL."""
    if kind == "string":
        return "'" + value.replace("'", "''") + "'"
    if kind == "date":
        return f"DATE '{format_date(value)}'"
    if kind == "timestamp":
        # With an offset, or as a local time of whoever asks.
        return f"TIMESTAMP '{format_timestamp(value)}{rng.choice(['Z', ''])}'"
    if kind == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{format_timestamp(value)}'"
    if kind in {"float", "double"}:
        return f"double('{value!r}')" if value != value or abs(value) == float("inf") else f"{value!r}D"
    if kind == "boolean":
        return str(value).upper()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def leaf(columns: list[tuple[str, str]], values: Any, rng: random.Random) -> str:
    """A condition on one column; `values(kind)` gives a value of a type."""
    name, kind = rng.choice(columns)
    shape = rng.randrange(10)
    if shape == 0 or kind == "binary":
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if shape == 1:
        items = ", ".join(literal(values(kind), kind, rng) for _ in range(rng.choice([1, 2, 3, 9])))
        return f"{name} {rng.choice(['', 'NOT '])}IN ({items}{rng.choice(['', '', ', NULL'])})"
    if shape == 2:
        low, high = literal(values(kind), kind, rng), literal(values(kind), kind, rng)
        return f"{name} BETWEEN {low} AND {high}"
    if shape in {3, 4} and kind == "string":
        prefix = values(kind)[:2].replace("%", "").replace("_", "")
        return f"{name} {rng.choice(['', 'NOT '])}LIKE '{prefix}%'"
    return f"{name} {rng.choice(COMPARISONS)} {literal(values(kind), kind, rng)}"


def condition(columns: list[tuple[str, str]], values: Any, rng: random.Random, depth: int = 2) -> str:
    """A condition of some depth, NULL-ness of conditions among its parts."""
    shape = rng.randrange(8) if depth else 0
    if shape < 3:
        return leaf(columns, values, rng)
    below = [condition(columns, values, rng, depth - 1) for _ in range(2)]
    if shape < 5:
        return f"({below[0]}) {rng.choice(['AND', 'OR'])} ({below[1]})"
    if shape == 5:
        return f"NOT ({below[0]})"
    return f"({below[0]}) IS {rng.choice(['', 'NOT '])}NULL"
