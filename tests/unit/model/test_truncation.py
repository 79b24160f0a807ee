"""Long statistics kept out of the log, and what is left of them."""

from __future__ import annotations

import json
import logging

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indextables as it
from indextables.model.actions import AddAction, encode_action
from indextables.model.stats import (
    MARKER,
    is_truncated,
    prefix_of,
    successor,
    truncate_add,
    truncate_statistics,
)
from indextables.options import Options

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string()), ("n", pa.int64()), ("p", pa.string())])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def truncated(lower, upper, partition_columns=(), **options):
    return truncate_statistics(
        lower,
        upper,
        SCHEMA,
        {f"stats.truncation.{key}": value for key, value in options.items()},
        partition_columns,
    )


def test_a_long_value_is_dropped_by_default_and_short_ones_stay():
    """H1: the column leaves min and max; the others are kept."""
    lower, upper = truncated({"id": "doc1", "text": "x" * 2000}, {"id": "doc999", "text": "y" * 2000})
    assert (lower, upper) == ({"id": "doc1"}, {"id": "doc999"})


def test_one_long_side_takes_both_with_it():
    assert truncated({"text": "a"}, {"text": "y" * 2000}) == ({}, {})


def test_the_limit_itself_stays_and_counts_code_points():
    """H1: exactly maxLength (1024) is kept whole; an emoji is one character."""
    exact = {"text": "\U0001f600" * 1024}
    assert truncated(exact, exact) == (exact, exact)
    assert truncated({"text": "x" * 1025}, {}) == ({}, {})


def test_the_limit_can_be_set():
    """H1: 512 works, under the option's full name and in any case."""
    values = {"text": "x" * 600}
    for key in ("spark.indextables.stats.truncation.maxLength", "stats.truncation.maxlength"):
        assert it.truncate_statistics(values, values, SCHEMA, {key: "512"}) == ({}, {})
    assert truncated(values, values) == (values, values)


def test_truncate_keeps_the_beginning_and_a_marker_in_exactly_the_limit():
    """H2: length 100, ending in [TRUNCATED]."""
    lower, upper = truncated({"text": "x" * 2000}, {"text": "y" * 2000}, strategy="truncate", maxLength=100)
    assert lower["text"] == "x" * 88 + " [TRUNCATED]"
    assert len(upper["text"]) == 100


@pytest.mark.parametrize("limit", [1, 11, 12])
def test_a_limit_with_no_room_for_the_marker_drops(limit):
    """H2: maxLength <= 12 behaves as drop."""
    assert truncated({"text": "x" * 50}, {"text": "y" * 50}, strategy="TRUNCATE", maxLength=limit) == ({}, {})
    assert truncated({"text": "x" * 50}, {}, strategy="truncate", maxLength=13)[0] == {"text": "x" + MARKER}


def test_an_unknown_strategy_warns_and_drops(caplog):
    """H1: unknown strategy -> warning and drop."""
    with caplog.at_level(logging.WARNING):
        assert truncated({"text": "x" * 2000}, {}, strategy="invalid") == ({}, {})
    assert "invalid" in caplog.text


def test_nothing_changes_when_it_is_off_or_nothing_is_long():
    """H4: enabled=false leaves everything; nulls and empty maps pass through."""
    long = {"text": "x" * 5000}
    assert truncated(long, long, enabled=False) == (long, long)
    assert truncated({"id": None}, None) == ({"id": None}, {})
    assert truncate_statistics({}, {}) == ({}, {})


def test_partition_columns_and_columns_that_are_not_text_are_exempt():
    """H4: partition columns keep their values whatever their length."""
    values = {"p": "x" * 2000, "n": "1" * 2000, "text": "x" * 2000}
    lower, _ = truncated(values, values, ["P"])
    assert lower.keys() == {"p", "n"}


@pytest.mark.parametrize("spelled", ["Day", "day", "DAY"])
def test_a_partition_column_with_capital_letters_is_exempt_however_it_is_spelled(spelled):
    """H4."""
    values = {"Day": "x" * 2000, "text": "x" * 2000}
    lower, upper = truncated(values, values, [spelled])
    assert lower == upper == {"Day": "x" * 2000}


def test_what_is_done_is_logged_with_column_lengths_and_strategy(caplog):
    with caplog.at_level(logging.INFO):
        truncated({"text": "x" * 2000}, {"text": "y" * 3000})
    assert "'text' (min length: 2000, max length: 3000, strategy: drop)" in caplog.text


def test_an_add_is_truncated_in_all_places_and_says_what_it_saved():
    """H1, C10: top-level maps and the stats text; every other field stays."""
    long = "x" * 2000
    stats = json.dumps(
        {
            "numRecords": 3,
            "minValues": {"text": long, "id": "a"},
            "maxValues": {"text": long},
            "nullCount": {"text": 0},
        }
    )
    add = AddAction(
        path="a",
        size=5,
        min_values={"id": "a", "text": long},
        max_values={"id": "b", "text": long},
        stats=stats,
        extra={"later": 1},
    )
    after, done = truncate_add(add, SCHEMA, (), Options.of({}))
    assert (after.min_values, after.max_values) == ({"id": "a"}, {"id": "b"})
    assert json.loads(after.stats) == {
        "numRecords": 3,
        "minValues": {"id": "a"},
        "maxValues": {},
        "nullCount": {"text": 0},
    }
    assert (after.path, after.size, after.extra) == ("a", 5, {"later": 1})
    assert done.names == ("text",)
    assert done.bytes_saved > 7900
    again, nothing = truncate_add(after, SCHEMA, (), Options.of({}))
    assert again is after
    assert nothing.columns == ()


def test_forty_splits_of_long_text_leave_a_log_98_percent_smaller():
    """H10: measured on the uncompressed lines of forty adds."""
    adds = [
        AddAction(
            path=f"{n}.split",
            min_values={"text": f"{n} " + "x" * 8000},
            max_values={"text": f"{n} " + "y" * 8000},
        )
        for n in range(40)
    ]
    before = sum(len(encode_action(add)) for add in adds)
    after = sum(len(encode_action(truncate_add(add, SCHEMA, (), None)[0])) for add in adds)
    assert after <= 0.02 * before


def test_a_cut_value_is_recognised_and_loses_its_marker():
    assert is_truncated("abc [TRUNCATED]")
    assert not is_truncated("abc[TRUNCATED]")
    assert prefix_of("abc [TRUNCATED]") == "abc"


@pytest.mark.parametrize("half", ["\ud83d", "?", "\ufffd"])
def test_half_a_surrogate_pair_at_the_cut_is_not_part_of_the_value(half):
    """H3: a writer that counts UTF-16 units leaves one; the shorter prefix is still a bound."""
    assert prefix_of("abc" + half + MARKER) == "abc"


@pytest.mark.parametrize(
    ("prefix", "following"),
    [
        ("a", "b"),
        ("a\ud7ff", "a\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", None),
        ("", None),
        ("a\uffff", "a\U00010000"),
    ],
)
def test_the_successor_skips_the_surrogates_and_may_not_exist(prefix, following):
    """H3: code-point successor; none after U+10FFFF alone."""
    assert successor(prefix) == following


@given(TEXTS, TEXTS, TEXTS)
def test_everything_with_a_prefix_lies_below_its_successor_and_nothing_else_does(prefix, tail, other):
    """H3: for all texts, by code points as by bytes."""
    following = successor(prefix)
    if following is not None:
        assert prefix + tail < following
        assert (prefix + tail).encode() < following.encode()
        if prefix <= other < following:
            assert other.startswith(prefix)


@given(TEXTS.map(lambda text: text * 5), st.integers(13, 20))
def test_a_truncated_value_still_bounds_the_real_one(value, limit):
    """H2, H3: never longer than the limit; prefix <= value < successor."""
    lower, _ = truncated({"text": value}, {}, strategy="truncate", maxLength=limit)
    kept = lower["text"]
    assert len(kept) <= limit
    if is_truncated(kept):
        following = successor(prefix_of(kept))
        assert prefix_of(kept) <= value
        assert following is None or value < following
    else:
        assert kept == value


def test_long_values_of_binary_and_decimal_columns_are_left_out_whatever_the_strategy():
    """Only the beginning of a text is a bound; a cut number or a cut base64 text would be another value."""
    schema = pa.schema([("b", pa.binary()), ("d", pa.decimal128(38, 2)), ("t", pa.string())])
    values = {"b": "x" * 2000, "d": "1" * 2000, "t": "x" * 2000}
    for strategy, kept in (("drop", {}), ("truncate", {"t": "x" * 1012 + MARKER})):
        options = {"stats.truncation.strategy": strategy}
        assert truncate_statistics(values, values, schema, options) == (kept, kept)


def test_long_values_nested_in_the_stats_document_are_found():
    """Statistics are truncated wherever they stand, also in the nested form other writers use."""
    schema = pa.schema([("a", pa.struct([("b", pa.string()), ("n", pa.int64())]))])
    halves = {"minValues": {"a": {"b": "x" * 3000, "n": 1}}, "maxValues": {"a": {"b": "y", "n": 9}}}
    add = AddAction(path="x", stats=json.dumps({"numRecords": 2, **halves}))
    short, done = truncate_add(add, schema, (), None)
    assert json.loads(short.stats) == {
        "numRecords": 2,
        "minValues": {"a": {"n": 1}},
        "maxValues": {"a": {"n": 9}},
    }
    assert done.names == ("a.b",)
