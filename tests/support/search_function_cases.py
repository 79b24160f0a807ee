"""Rows and calls for `search` and `isearch`, and what plain Python says of them."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa

LETTERS = "abAB"
PIECES = ("a", "b", "A", "B", "ab", "Ba", "1", "2", "_", "'", ".", " ", " ", "-", "!", "é", "É", "日", "本")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("m", pa.string()),
        ("n", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("s", pa.struct([("u", pa.string()), ("k", pa.int32()), ("deep", pa.struct([("t", pa.string())]))])),
        ("mp", pa.map_(pa.string(), pa.string())),
        ("ls", pa.list_(pa.struct([("x", pa.string()), ("y", pa.int32())]))),
    ]
)
# Independent of the library: runs of letters, digits and `_`; a dot or an apostrophe inside of a word or number.
_WORD = re.compile(
    r"[a-zA-ZéÉ0-9_]+(?:(?:(?<=[a-zA-ZéÉ])['.](?=[a-zA-ZéÉ])|(?<=[0-9])['.](?=[0-9]))[a-zA-ZéÉ0-9_]+)*|.",
    re.DOTALL,
)


def text(chance: random.Random, most: int = 8) -> str | None:
    """A short text, or null."""
    return None if chance.random() < 0.1 else "".join(chance.choices(PIECES, k=chance.randrange(most)))


def rows(count: int, seed: int = 5) -> pa.Table:
    """Rows with texts in columns of every searchable type."""
    chance = random.Random(seed)

    def some(make: Any) -> Any:
        return None if chance.random() < 0.1 else make()

    def row(number: int) -> dict[str, Any]:
        return {
            "id": number,
            "m": text(chance),
            "n": text(chance),
            "tags": some(lambda: [text(chance, 5) for _ in range(chance.randrange(4))]),
            "s": some(lambda: {"u": text(chance), "k": number, "deep": some(lambda: {"t": text(chance)})}),
            "mp": some(lambda: [(f"ab{key}", text(chance, 5)) for key in range(chance.randrange(3))]),
            "ls": some(
                lambda: [some(lambda: {"x": text(chance, 5), "y": 1}) for _ in range(chance.randrange(3))]
            ),
        }

    return pa.Table.from_pylist([row(number) for number in range(count)], SCHEMA)


def calls(count: int, seed: int = 6) -> list[tuple[str, tuple[str, ...], str, str]]:
    """Calls: the function, columns, pattern and mode."""
    chance = random.Random(seed)
    made = []
    columns = ("m", "n", "tags", "s", "s.u", "s.deep", "mp", "ls")
    while len(made) < count:
        pattern = "".join(chance.choices(PIECES, k=chance.randrange(1, 5)))
        mode = chance.choice(("substring", "word"))
        if mode == "word" and not words(pattern):
            continue
        chosen = tuple(chance.sample(columns, chance.choice((1, 1, 1, 2, 3))))
        made.append((chance.choice(("search", "isearch")), chosen, pattern, mode))
    return made


def sql(call: tuple[str, tuple[str, ...], str, str], apostrophe: str = "''") -> str:
    """A call as SQL, with an apostrophe written as it is inside of texts."""
    name, columns, pattern, mode = call
    quoted = pattern.replace("'", apostrophe)
    named = "" if mode == "substring" and len(pattern) % 2 else f", mode => '{mode}'"
    return f"{name}({', '.join(columns)}, '{quoted}'{named})"


def words(pattern: str) -> list[str]:
    """The words of a text of the pieces above."""
    return [word for word in _WORD.findall(pattern) if any(char.isalnum() for char in word)]


def answer(call: tuple[str, tuple[str, ...], str, str], row: dict[str, Any]) -> bool | None:
    """Whether a call is true of a row."""
    name, columns, pattern, mode = call
    values: list[str | None] = []
    for column in columns:
        value: Any = row
        for part in column.split("."):
            value = None if value is None else value[part]
        values += list(leaves(value, column))
    fold = str.lower if name == "isearch" else str
    needle = fold(pattern)
    for value in values:
        if value is None:
            continue
        held = fold(value)
        if (needle in held) if mode == "substring" else set(words(needle)) <= set(_WORD.findall(held)):
            return True
    return None if None in values else False


def leaves(value: Any, column: str) -> Any:
    """The texts in a value; a null for each that is missing."""
    if value is None:
        yield None
    elif isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in ("k", "y"):
                yield from leaves(one, column)
    else:
        for one in value:
            yield from leaves(one[1] if column == "mp" else one, column)
