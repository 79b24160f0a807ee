"""DELETE and MERGE over random rows and conditions: exactly the rows that are true go, and nothing else changes."""

import random

import pyarrow as pa
import pytest

from indextables.ops.rewrite.merge import MergeRequest, run_merge
from indextables.ops.write.delete import run_delete
from support.index_merging import indexes_of_any_size  # noqa: F401 - a fixture
from support.upkeep import RowTable

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("day", pa.string())])


def random_rows(rng, count):
    return [
        {
            "a": rng.choice([None, *range(-3, 12)]),
            "b": rng.choice([None, "", "x", "y", "zz", "ünï"]),
            "day": rng.choice([None, "1", "2"]),
        }
        for _ in range(count)
    ]


def random_condition(rng, depth=2):
    """A condition as SQL text and as a function with three truths: True, False, None."""
    if depth and rng.random() < 0.6:
        left, right = random_condition(rng, depth - 1), random_condition(rng, depth - 1)
        match rng.randrange(3):
            case 0:
                return f"({left[0]} AND {right[0]})", lambda row: both(left[1](row), right[1](row))
            case 1:
                return f"({left[0]} OR {right[0]})", lambda row: flip(
                    both(flip(left[1](row)), flip(right[1](row)))
                )
            case _:
                return f"NOT ({left[0]})", lambda row: flip(left[1](row))
    column = rng.choice(["a", "b", "day"])
    if rng.random() < 0.25:
        return f"{column} IS NULL", lambda row: row[column] is None
    value = rng.randint(-3, 12) if column == "a" else rng.choice(["", "1", "x", "y", "zz"])
    literal = str(value) if column == "a" else f"'{value}'"
    operator, test = rng.choice(
        [
            ("=", lambda v: v == value),
            ("<", lambda v: v < value),
            (">=", lambda v: v >= value),
            ("<>", lambda v: v != value),
        ]
    )
    return f"{column} {operator} {literal}", lambda row: None if row[column] is None else test(row[column])


def both(left, right):
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def flip(truth):
    return None if truth is None else not truth


def key(row):
    return tuple((value is not None, value) for value in row.values())


@pytest.mark.parametrize("seed", range(12))
def test_what_is_true_goes_and_everything_else_stays(tmp_path, seed):
    """H11: NULL is not true; the same before and after splits are merged."""
    rng = random.Random(seed)
    table = RowTable(tmp_path / "t", SCHEMA, partition_by=("day",) if seed % 2 else ())
    expected = []
    for _ in range(3):
        rows = random_rows(rng, rng.randint(1, 25))
        expected += rows
        table.append(pa.Table.from_pylist(rows, SCHEMA))
    for _ in range(3):
        text, holds = random_condition(rng)
        gone = sum(holds(row) is True for row in expected)
        expected = [row for row in expected if holds(row) is not True]
        assert run_delete(table.handle(), text).rows_deleted == gone, text
        assert sorted(table.rows(), key=key) == sorted(expected, key=key), text
        run_merge(table.handle(), MergeRequest())
        assert sorted(table.rows(), key=key) == sorted(expected, key=key), "merged"
