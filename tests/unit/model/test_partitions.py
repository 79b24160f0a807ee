"""Partition values as directories."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import SchemaError
from indextables.model.partitions import (
    NULL_DIRECTORY,
    check_partition_columns,
    parse_directory,
    partition_directory,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_a_path_has_one_component_per_column_in_their_order():
    assert (
        partition_directory(["year", "city"], {"city": "New York", "year": "2024"})
        == "year=2024/city=New%20York"
    )
    assert partition_directory([], {}) == ""


@pytest.mark.parametrize("char", list('/ %=:*?"<>|\\[]{},') + ["\x00", "\n", "\x7f", "#", "'", "."])
def test_characters_that_paths_or_globs_give_a_meaning_are_escaped(char):
    """I1: what is not safe in a path is written as %XX and reads back."""
    directory = partition_directory(["c"], {"c": char})
    assert char not in directory.removeprefix("c=").replace("%", "", 1 if char == "%" else 0)
    assert parse_directory(directory) == {"c": char}


def test_null_the_empty_string_and_the_word_for_null_are_three_directories():
    """I2: null is __HIVE_DEFAULT_PARTITION__ on disk, and nothing else is."""
    values = [None, "", NULL_DIRECTORY, "__EMPTY__", ".", ".."]
    directories = [partition_directory(["c"], {"c": value}) for value in values]
    assert directories[0] == f"c={NULL_DIRECTORY}"
    assert len(set(directories)) == len(values)
    assert [parse_directory(directory)["c"] for directory in directories] == values


@given(TEXTS, TEXTS)
def test_distinct_values_never_share_a_directory(left, right):
    """I1: and each reads back as it was."""
    first, second = (partition_directory(["c"], {"c": value}) for value in (left, right))
    assert (first == second) == (left == right)
    assert "/" not in first
    assert parse_directory(first) == {"c": left}


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=150, max_size=400),
    st.text(max_size=3, alphabet="ab"),
)
def test_values_too_long_for_a_file_name_are_shortened_and_stay_distinct(stem, tail):
    """I1: a component stays within what file systems allow."""
    first, second = (partition_directory(["c"], {"c": stem + end}) for end in (tail, tail + "x"))
    assert first != second
    assert all(len(path.encode()) <= 255 for path in (first, second))
    assert parse_directory(first) in ({}, {"c": stem + tail})


def test_components_that_are_no_partition_are_passed_over():
    assert parse_directory("data/year=2024/part-0.split") == {"year": "2024"}


def test_partition_columns_must_be_plain_columns_of_the_schema():
    """A2, I2: the error names the column, and for a missing one lists what there is."""
    schema = pa.schema(
        [
            ("a", pa.int32()),
            ("Day", pa.date32()),
            ("l", pa.list_(pa.int32())),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )
    assert check_partition_columns(schema, ["day", "a"]) == ("Day", "a")
    with pytest.raises(SchemaError, match=r"'nope'.*a, Day, l, s"):
        check_partition_columns(schema, ["nope"])
    for bad in (["l"], ["s"], ["a", "A"]):
        with pytest.raises(SchemaError, match=bad[-1]):
            check_partition_columns(schema, bad)
    with pytest.raises(SchemaError, match="at least one"):
        check_partition_columns(pa.schema([("a", pa.int32())]), ["a"])
