"""Adds decoded from their JSON have the columns that whole actions have, whatever a writer put into them."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

from indextables.errors import CorruptLogError
from indextables.log.adds import decoder as add_decoder
from indextables.log.adds.columns import AddLeaf, adds_columns, leaves_of
from indextables.log.adds.decoder import decode_adds, decode_lines
from indextables.log.adds.lines import join_lines, line_array, lines_adds
from indextables.model.lines import decode_many

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")), ("in", pa.struct([("a", pa.int32())])),
    ]
)  # fmt: skip
LEAVES = leaves_of(SCHEMA, ["day"])
BOUNDS = [
    "7",
    "-3",
    "x",
    'quote " \\ \n',
    "é😀{}",
    "1.5",
    "NaN",
    5,
    2.5,
    True,
    None,
    10**25,
    {"deep": "1"},
    [1],
]
NUMBERS = [0, 7, -1, "12", 3.0, 2.5, 10**25, True, None, "x"]
DOCUMENTS = [None, "", "null", "[1]", "{", '{"numRecords":-4}', '{"nullCount":{"id":18446744073709551616}}']
SEEDS, CHUNKS = 4, 100


class Writer:
    """Writes adds of one shape; with `odd`, now and then a field that only the careful reader accepts."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.odd = self.dice.choice([0.0, 0.0, 0.02, 0.2])

    def bounds(self):
        plain = {"id": "7", "name": self.dice.choice(["a", 'q"', "é"]), "price": "1.5", "in.a": "3"}
        found = {key: plain[key] for key in self.dice.sample(sorted(plain), self.dice.randint(0, len(plain)))}
        if self.dice.random() < self.odd:
            found[self.dice.choice(["id", "name", "price"])] = self.dice.choice(BOUNDS)
        return found

    def document(self):
        if self.dice.random() < self.odd:
            return self.dice.choice(DOCUMENTS)
        made = {"nullCount": {"id": self.dice.randint(0, 9), "in.a": 1}}
        if self.dice.random() < 0.3:
            made |= {"numRecords": 9, "minValues": self.bounds(), "maxValues": {"id": 4, "in": {"a": 2}}}
        return json.dumps(made)

    def add(self, number: int):
        made = {
            "path": f"p{number}", "size": number, "modificationTime": 1_700_000_000_000, "dataChange": True,
            "partitionValues": {"day": self.dice.choice(["2024-02-03", None])}, "numRecords": 9,
            "minValues": self.bounds(), "maxValues": self.bounds(), "stats": self.document(),
        }  # fmt: skip
        for name in ("numRecords", "minValues", "maxValues", "stats", "partitionValues"):
            if self.dice.random() < 0.2:
                del made[name]
        if self.dice.random() < self.odd:
            name = self.dice.choice(
                ["size", "numRecords", "modificationTime", "dataChange", "hotcacheLength"]
            )
            made[name] = self.dice.choice(NUMBERS)
        if self.dice.random() < 0.1:
            made["tags"] = self.dice.choice([{"a": "b", "c": None}, {}, None, {"n": 5 if self.odd else "5"}])
        return json.dumps(made, ensure_ascii=self.dice.random() < 0.5).encode()


def outcome(read, *arguments):
    """The columns as text, because NaN is not equal to itself; for damage, that it is damage."""
    try:
        return [str(array.to_pylist()) for array in read(*arguments)]
    except CorruptLogError:
        return CorruptLogError


def columns_of_actions(lines, leaves):
    return adds_columns(list(lines_adds(lines, "lines")), leaves)


def question(dice: random.Random) -> tuple[AddLeaf, ...]:
    return tuple(dice.sample(LEAVES, dice.randint(1, len(LEAVES))))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_decoded_columns_are_those_of_whole_actions(seed):
    """A2, C2, K3: every leaf, alone and beside others, in plain adds and odd ones, from lines and commits."""
    whole = 0
    for number in range(CHUNKS):
        writer = Writer(seed * CHUNKS + number)
        texts = [writer.add(at) for at in range(writer.dice.randint(1, 9))]
        lines = line_array(join_lines(texts), "lines")
        commit = b"".join(b'{"add":' + text + b"}\n" for text in texts)
        # Damage in a field that is not asked for is not looked for.
        for leaves in (LEAVES, question(writer.dice)):
            expected = outcome(columns_of_actions, lines, leaves)
            adds = decode_many(commit, name="commit", version=1)
            for found in (outcome(decode_lines, lines, leaves, "lines"), outcome(decode_adds, adds, leaves)):
                assert found == expected or (expected is CorruptLogError and leaves is not LEAVES)
        whole += expected is not CorruptLogError
    assert whole > CHUNKS // 2


def test_lines_that_are_not_one_add_each_are_damage():
    """Two adds on one line and one on two would give as many adds as lines."""
    lines = pa.array([b'{"path":"a"},{"path":"b",\n', b'"size":3},\n'], pa.binary())
    odd = pa.array([b'{"path":"a"},{"path":"b"},\n', b'{"path":"c"},\n'], pa.binary())
    for broken in (odd, pa.array([b'{"path":"a",\n'], pa.binary()), pa.array([b"null,\n"], pa.binary())):
        with pytest.raises(CorruptLogError):
            decode_lines(broken, LEAVES, "lines")
    assert decode_lines(lines, LEAVES[:1], "lines")[0].to_pylist() == ["a", "b"]


def test_plain_adds_are_never_built_as_actions(monkeypatch):
    """K1: what the decoder is for; statistics documents that cannot be read do not cost the adds around them."""

    def careful(*_):
        raise AssertionError("read as whole actions")

    monkeypatch.setattr(add_decoder, "adds_columns", careful)
    writer = Writer(0)
    writer.odd = 0.0
    texts = [writer.add(at) for at in range(50)] + [b'{"path":"z","stats":"{"}']
    assert len(decode_lines(line_array(join_lines(texts), "lines"), LEAVES, "lines")[0]) == 51
