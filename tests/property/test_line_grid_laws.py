"""Lines of one writer, some of them odd, are read by their layout as a JSON parser reads them, or not at all."""

from __future__ import annotations

import json
import random

import pytest

from indextables.log.checkpoint.add_lines import join_lines, line_array
from indextables.log.lines.line_grid import LineGrid

FIELDS = {"path": None, "size": None, "flag": None, "note": None, "min": ["id", "name"], "gone": ["id"]}
NAMES = ["path", "note", "min", "gone", "other", "more", "size", "flag", "stats"]
ALPHABETS = ["ab1", "ab{}", 'ab",', 'ab\\n"', 'a{},:"', "é😀{"]
SEEDS, CHUNKS = 8, 800


class Writer:
    """Writes objects with the same fields in the same order, and now and then another one."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.names = self.rng.sample(NAMES, self.rng.randint(2, len(NAMES)))
        self.alphabet = self.rng.choice(ALPHABETS)
        self.inner = {
            name: self.rng.sample(["id", "name", "min", "x", "size"], self.rng.randint(0, 4))
            for name in ("min", "gone", "other", "more")
        }

    def text(self):
        return "".join(self.rng.choice(self.alphabet) for _ in range(self.rng.randint(0, 5)))

    def value(self, name):
        if name in self.inner:
            return {key: self.text() for key in self.inner[name]}
        match name:
            case "size":
                return None if self.rng.random() < 0.05 else self.rng.randint(0, 10 ** self.rng.randint(1, 9))
            case "flag":
                return self.rng.random() < 0.5
            case "stats":
                return json.dumps({"minValues": {"id": self.text()}, "n": self.rng.randint(0, 99)})
        return self.text()

    def line(self):
        made = {name: self.value(name) for name in self.names}
        if self.rng.random() < 0.05:
            made[self.rng.choice(self.names)] = self.rng.choice([None, self.text(), 5, {"id": self.text()}])
        if self.rng.random() < 0.03:
            made["extra"] = self.text()
        if self.rng.random() < 0.03:
            made.pop(self.rng.choice(self.names))
        return made


def column(lines, name, children):
    found = [line.get(name) for line in lines]
    if children is None:
        return found
    return [None if value is None else {key: value.get(key) for key in children} for value in found]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_lines_of_one_writer_are_read_as_a_parser_reads_them_or_not_at_all(seed):
    """A2, C2: braces, quotes and backslashes in any text, wanted or not, the first line included."""
    read = 0
    for number in range(CHUNKS):
        writer = Writer(seed * CHUNKS + number)
        lines = [writer.line() for _ in range(writer.rng.randint(1, 12))]
        texts = [json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() for line in lines]
        grid = LineGrid(FIELDS, frozenset({"size"}), frozenset({"flag"}))
        found = grid.cut(line_array(join_lines(texts), "lines"))
        if found is not None:
            read += 1
            expected = {name: column(lines, name, children) for name, children in FIELDS.items()}
            assert {name: array.to_pylist() for name, array in found.items()} == expected
    assert read > CHUNKS // 4
