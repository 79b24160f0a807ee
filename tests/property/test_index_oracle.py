"""The index by itself finds exactly the rows that the meaning of a query says: built, merged or damaged."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.errors import DamagedIndexError
from indextables.index.build.merge import merge_indexes
from indextables.index.query.evaluate import IndexSearch, lacks_words
from indextables.index.query.tree import Between, Boolean, Exists, Words
from indextables.index.read.cache import BlockCache
from indextables.index.read.lookup import BytesRanges, Index
from indextables.index.settings import IndexField, IndexSpec
from indextables.split.search.match import FEW_ROWS, match_batch, match_rows
from support.indexes import Indexed, build, opened
from support.search_cases import cases, settings_of, table_of
from support.search_oracle import found


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["position", "freq", "basic"]))
def test_the_index_finds_what_the_query_means(case, record):
    """Every tokenizer; phrases, slop, prefixes, ranges, stems, long words, CJK and arrays; any record option."""
    rows, lists, asked = case
    indexed = Indexed(table_of(rows, lists), settings_of(record))
    for query in asked:
        for _ in range(3):  # the second and third time words are kept, and other ways are taken
            assert indexed.hits(str(query)) == found(query, len(rows)), str(query)


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(["position", "freq", "basic"]))
def test_an_index_that_lacks_the_words_of_a_query_has_no_row_for_it(case, record):
    rows, lists, asked = case
    indexed = Indexed(table_of(rows, lists), settings_of(record))
    for query in asked:
        if lacks_words(indexed.index, indexed.query(str(query)).node):
            assert not found(query, len(rows)), str(query)


def test_words_that_a_query_needs_are_looked_for_before_any_row_is():
    indexed = Indexed(pa.table({"m": ["red fox", "red hen"]}), {"indexing.typemap.m": "text"})
    lacking = ["owl", "+owl red", '"red owl"', "owl AND hen", "(owl OR cat)^2", '"owl he"*']
    present = ["red", "owl OR hen", '"hen red"', "NOT owl", "owl*", "red -owl", "o?l", "m:*"]
    assert [
        text for text in lacking + present if lacks_words(indexed.index, indexed.query(text).node)
    ] == lacking


@settings(max_examples=40, deadline=None)
@given(
    cases(),
    st.sampled_from(["position", "freq", "basic"]),
    st.lists(st.integers(0, 14), max_size=3),
    st.sampled_from(["", ",substring", ",string", ",string,substring"]),
)
def test_merged_indexes_are_the_bytes_of_building_from_the_rows(case, record, cuts, beside):
    rows, lists, asked = case
    table = table_of(rows, lists)
    whole = Indexed(table, settings_of(record, beside))
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [opened(build(table.slice(a, b - a), whole.spec)) for a, b in zip(edges, edges[1:], strict=False)]
    merged = merge_indexes(parts)
    assert merged.to_bytes() == build(table, whole.spec).to_bytes()
    again = Indexed(table, settings_of(record, beside), opened(merged))
    for query in asked:
        assert again.hits(str(query)) == found(query, len(rows)), str(query)


def many(table: pa.Table) -> pa.Table:
    """The rows over and over, so that they are matched as a batch."""
    return pa.concat_tables([table] * (1 + (FEW_ROWS + 1) // max(1, table.num_rows)))


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from(["position", "freq", "basic"]))
def test_a_batch_without_an_index_has_the_rows_that_the_query_means(case, record):
    rows, lists, asked = case
    indexed = Indexed(table_of(rows, lists), settings_of(record))
    batch = many(indexed.table)
    for query in asked:
        once = found(query, len(rows))
        wanted = [start + row for start in range(0, batch.num_rows, max(1, len(rows))) for row in once]
        matched = match_batch(indexed.query(str(query)), batch)
        assert np.flatnonzero(matched.to_numpy(zero_copy_only=False)).tolist() == wanted, str(query)


@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(0, 10**9), st.integers(0, 7), st.booleans())
def test_a_damaged_index_gives_the_right_answer_or_says_so(case, where, bit, cut):
    """Any flipped bit, and any cut: no other answer, no other error."""
    rows, lists, asked = case
    table = table_of(rows, lists)
    whole = Indexed(table, settings_of())
    built = build(table, whole.spec)
    data = bytearray(built.to_bytes())
    if cut:
        del data[where % len(data) :]
    else:
        data[where % len(data)] ^= 1 << bit
    noticed = 0
    try:
        index = Index.open(BytesRanges(bytes(data)), built.length, built.root_length, cache=BlockCache())
    except DamagedIndexError:
        return
    damaged = Indexed(table, settings_of(), index)
    for query in asked:
        for _ in range(2):
            try:
                assert damaged.hits(str(query)) == found(query, len(rows)), str(query)
            except DamagedIndexError:
                noticed += 1
    with pytest.raises(DamagedIndexError):
        index.verify()


ADDRESSES = ["10.0.0.1", "10.0.0.255", "10.1.0.0", "::1", "fe80::1", "192.168.1.1", "no address", ""]
DOCUMENTS = [
    '{"a": "error in disk", "b": {"c": 5, "d": [1.5, "x y"]}}', '{"a": "disk", "e": "error"}', '{"b": {"c": 7}}',
    "[]", "not json", '{"a": ["error in", "disk now"]}', '{"a": true, "b": null}', '{"b": {"c": "5"}}',
]  # fmt: skip
QUERIES = [
    "ip:10.0.0.1", 'ip:"10.0.0.0/24"', "ip:[10.0.0.1 TO 10.1.0.0]", 'ip:"::1"', "ip:*", "NOT ip:10.0.0.1",
    "doc:error", 'doc:"error in disk"', 'doc:"in disk"', 'doc:"error disk"~1', 'doc:"error disk"~3', "doc.a:disk", "doc.a:dis*",
    'doc.a:"in disk"', 'doc.a:"in di"*', "doc.b.c:5", "doc.b.c:[5 TO 6]", "doc.b:*", "doc.b.d:*", "doc:*", "NOT doc.b:*", "doc.a:true",
    'doc.a:"in now"~9', "n:5", "n:[2 TO 7]", "n:{2 TO 7}", "n:[* TO 3]", "n:[99 TO *]", "n:*", "NOT n:[2 TO 7]", "n:[0 TO 9]",
    "f:[0.5 TO 2]", "f:[* TO *]", "f:{-1 TO 1.5]", "day:[2024-01-02 TO 2024-01-03]", "s:b", "s:[a TO b]", "s:{a TO *]", 's:""', "s:b*",
    "s: IN [a b]", "n:5 OR doc:error", "+doc:error -n:[0 TO 4]", "(s:a OR s:b)^2 AND n:[1 TO 8]", "*", "b:true", "NOT b:true",
]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 12).flatmap(lambda count: st.tuples(
    st.lists(st.none() | st.sampled_from(ADDRESSES), min_size=count, max_size=count),
    st.lists(st.none() | st.sampled_from(DOCUMENTS), min_size=count, max_size=count),
    st.lists(st.none() | st.integers(0, 9), min_size=count, max_size=count),
    st.lists(st.none() | st.sampled_from([0.5, 1.5, float("nan"), -0.0, 2.0]), min_size=count, max_size=count),
    st.lists(st.none() | st.sampled_from(["a", "b", "", "bc", "Z"]), min_size=count, max_size=count),
)))  # fmt: skip
def test_addresses_documents_values_and_strings_are_found_as_a_scan_finds_them(columns):
    ips, documents, numbers, fractions, strings = columns
    table = pa.table({
        "ip": pa.array(ips, pa.string()), "doc": pa.array(documents, pa.string()), "n": pa.array(numbers, pa.int64()),
        "f": pa.array(fractions, pa.float64()), "s": pa.array(strings, pa.string()),
        "day": pa.array([None if n is None else dt.date(2024, 1, 1 + n) for n in numbers], pa.date32()),
        "b": pa.array([None if n is None else n > 4 for n in numbers], pa.bool_()),
    })  # fmt: skip
    indexed = Indexed(table, {
        "indexing.typemap.ip": "ip", "indexing.typemap.doc": "json", "indexing.typemap.s": "string",
        "indexing.fastfields": "n,f,day,b",
    })  # fmt: skip
    for text in QUERIES:
        query = indexed.query(text)
        wanted = [at for at, inside in enumerate(match_rows(query, table).to_pylist()) if inside]
        assert indexed.hits(text) == wanted, text
        assert not (wanted and lacks_words(indexed.index, query.node)), text
        assert match_batch(query, many(table)).equals(match_rows(query, many(table))), text
        without = IndexSearch(indexed.index, query)
        assert set(without.certain().tolist()) <= set(wanted) <= set(without.candidates().tolist()), text


REPEATING = (
    "three again three",
    "two three seven forty three again",
    "two three three again three",
    "seven three again three",
    "three three again",
    "again three three",
    "two three seven forty thousand three",
    "thousand three again three",
)
"""Phrases of several words, some of which are in their rows more than once."""


def long_index():
    """200,000 rows, so that lists are cut into pages: one word in every second row, others rarer."""
    count = 200_000
    steps = {"two": 2, "three": 3, "seven": 7, "forty": 40, "thousand": 1000, "rare": 70_001}
    numbers = np.arange(count)
    lines = [
        " ".join(word for word, step in steps.items() if number % step == 0)
        + (" three again three" if number % 30 == 0 else "")
        for number in numbers.tolist()
    ]
    table = pa.table({"c": pa.array(lines, pa.string())})
    spec = IndexSpec((IndexField("c", "text", "default", "position"),))
    return table, spec, steps, numbers, lines


@pytest.fixture(scope="module")
def long():
    return long_index()


@pytest.mark.parametrize("cache_bytes", [0, 64 << 20], ids=["nothing kept", "kept"])
def test_lists_cut_into_pages_answer_like_whole_ones(long, cache_bytes):
    table, spec, steps, numbers, lines = long
    index = opened(build(table, spec, 30_000), BlockCache(cache_bytes))

    def ask(node):
        found = IndexSearch(index, node).rows()
        assert IndexSearch(index, node).count() == len(found)
        return found

    def word(name):
        return Words("c", (name,))

    # The rows that repeat a word are those with "again".
    every = [(at, f" {line} ") for at, line in enumerate(lines) if "again" in line]
    repeating = {text: [at for at, line in every if f" {text} " in line] for text in REPEATING}
    for _ in range(3):
        for name, step in steps.items():
            assert np.array_equal(ask(word(name)), numbers[numbers % step == 0])
        for pair in [
            ("two", "three"),
            ("two", "rare"),
            ("seven", "forty"),
            ("rare", "thousand"),
            ("two", "seven", "three"),
        ]:
            wanted = numbers[np.all([numbers % steps[name] == 0 for name in pair], axis=0)]
            assert np.array_equal(ask(Boolean(must=tuple(map(word, pair)))), wanted)
            phrase = [at for at, line in enumerate(lines) if f" {' '.join(pair)} " in f" {line} "]
            assert ask(Words("c", pair)).tolist() == phrase
        for text, holding in repeating.items():
            assert ask(Words("c", tuple(text.split()))).tolist() == holding, text
        spread = list(range(0, 200_000, 30))
        assert ask(Words("c", ("three", "three"), slop=6)).tolist() == spread
        assert np.array_equal(ask(Boolean(must_not=(word("two"),))), numbers[numbers % 2 == 1])
        assert np.array_equal(
            ask(Between("c", "s", "thz")),
            numbers[(numbers % 7 == 0) | (numbers % 1000 == 0) | (numbers % 3 == 0)],
        )
        assert ask(Words("c", ("three",), prefix="se")).tolist() == [
            at for at, line in enumerate(lines) if " three se" in f" {line}"
        ]
        assert ask(Exists("c")).tolist() == numbers.tolist()


def test_merging_and_building_agree_where_lists_are_cut(long):
    table, spec, *_ = long
    parts = [opened(build(table.slice(a, n), spec)) for a, n in ((0, 66_000), (66_000, 1), (66_001, 133_999))]
    assert merge_indexes(parts).to_bytes() == build(table, spec, 50_000).to_bytes()


def test_a_gap_behind_the_last_word_of_a_row_does_not_reach_into_the_next_row():
    rows = [["error in disk", "much more than that", "x"], ["error in disk", "y"], ["error", "disk"]]
    table = pa.table({"c": pa.array(rows, pa.list_(pa.string()))})
    index = opened(build(table, IndexSpec((IndexField("c", "text", "default", "position"),))))
    assert IndexSearch(index, Words("c", ("error", "disk"), slop=1)).rows().tolist() == [0, 1]
    assert IndexSearch(index, Words("c", ("error", "disk"), slop=9)).rows().tolist() == [0, 1]


def test_indexes_with_other_settings_are_not_merged(long):
    table, spec, *_ = long
    other = IndexSpec((IndexField("c", "text", "whitespace", "position"),))
    few = table.slice(0, 5)
    with pytest.raises(ValueError, match="different settings"):
        merge_indexes([opened(build(few, spec)), opened(build(few, other))])
