"""LIKE, RLIKE and contains over whole columns: the quick search in bytes says what a slow one says."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from indextables import col
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate import texts
from indextables.predicate.evaluate.texts import text_matches

SCHEMA = pa.schema([("t", pa.string())])
ALPHABET = "abcdé日\n. %_"


def column(seed, rows=4000, size=14):
    dice = random.Random(seed)
    return [
        None if dice.random() < 0.04 else "".join(dice.choices(ALPHABET, k=dice.randrange(size)))
        for _ in range(rows)
    ]


def answers(where, values):
    return text_matches(as_node(where, SCHEMA), values).to_pylist()


def python_like(pattern):
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(char) or re.escape(char) for char in pattern), re.DOTALL)


@pytest.mark.parametrize("seed", range(3))
def test_every_pattern_finds_what_a_regular_expression_finds(seed):
    values = column(seed)
    array = pa.array(values)
    assert pc.sum(pc.binary_length(array)).as_py() > texts.FEW_BYTES
    dice = random.Random(seed)
    for _ in range(40):
        word = "".join(dice.choices("abcdé日\n. ", k=dice.randrange(1, 5)))
        other = "".join(dice.choices("abcdé日", k=dice.randrange(1, 3)))
        pattern = dice.choice([f"%{word}%", f"{word}%", f"%{word}", f"%{word}%{other}%", f"_{word}_%"])
        wanted = python_like(pattern)
        assert answers(col("t").like(pattern), array) == [
            None if value is None else wanted.fullmatch(value) is not None for value in values
        ], pattern
        assert answers(col("t").contains(word), array) == [
            None if value is None else word in value for value in values
        ]


def test_a_slice_of_a_column_is_asked_about_its_own_rows():
    values = column(9)
    part = pa.array(values).slice(700, 2500)
    assert answers(col("t").contains("ab"), part) == [
        None if value is None else "ab" in value for value in values[700:3200]
    ]


def test_what_ends_in_the_next_value_is_found_in_neither():
    values = ["xxxxneed", "lexxxx"] * 1000
    assert not any(answers(col("t").contains("needle"), pa.array(values)))
    assert not any(answers("t LIKE '%needle%xx'", pa.array(values)))


def test_a_text_across_two_blocks_is_found(monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 4099)
    values = column(3)
    for word in ("abc", "é", "日a", "b"):
        assert answers(col("t").contains(word), pa.array(values)) == [
            None if value is None else word in value for value in values
        ]


def test_a_text_that_looks_like_everything_is_left_to_the_regular_expression():
    values = ["a" * 40, "a" * 40 + "b", "b", None] * 500
    array = pa.array(values)
    assert texts._holding(array, b"a" * 12) is None
    assert answers(col("t").contains("a" * 12), array) == [True, True, False, None] * 500


def test_rlike_looks_for_the_text_it_needs_first():
    values = [f"line {at} took {at % 7} ms" if at % 3 else None for at in range(3000)]
    wanted = re.compile(r"took [0-3]+ ms")
    assert answers("t RLIKE 'took [0-3]+ ms'", pa.array(values)) == [
        None if value is None else wanted.search(value) is not None for value in values
    ]
    assert answers("t RLIKE 'no such|took 5'", pa.array(values)) == [
        None if value is None else "took 5" in value for value in values
    ]
