"""Search finds exactly the rows that the meaning of the query says, however it comes to its answer."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indextables.index.query.plain_text import PlainText
from support.search_cases import (
    TOKENIZERS,
    WORDS,
    cases,
    column_of,
    queries,
    settings_of,
    several,
    singles,
    table_of,
    texts,
)
from support.search_oracle import Column, Phrase, found, parts_of, tokenise
from support.splits import build_split, flip, index_bytes

beside = st.sampled_from(["", ",substring", ",string", ",string,substring"])


@settings(max_examples=60)
@given(cases(), st.sampled_from(["position", "freq", "basic"]), beside)
def test_the_index_finds_what_the_query_means(case, record, beside):
    """Every tokenizer; phrases, prefixes, ranges, stems, long words, CJK and punctuation; any record option.

    The words of a column are its words, whatever other fields stand beside them.
    """
    rows, lists, asked = case
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), settings_of(record, beside))
        for query in asked:
            note = []
            assert built.hits(str(query), note) == found(query, len(rows)), str(query)
            assert built.count(str(query)) == len(found(query, len(rows)))
            assert (note[0].by_index, note[0].scanned) == (1, 0)


@settings(max_examples=30)
@given(cases(), st.integers(0, 10**9), st.integers(0, 7), beside)
def test_a_damaged_index_gives_the_same_answer(case, where, bit, beside):
    """A flipped bit of a piece that a query reads is noticed, and the rows are scanned with the same words."""
    rows, lists, asked = case
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), settings_of(beside=beside))
        ranges = index_bytes(built)
        offset, length = ranges[where % len(ranges)]
        flip(built.path, offset + where % length, bit)
        for query in asked:
            note = []
            assert built.hits(str(query), note) == found(query, len(rows)), str(query)
            noticed = (note[0].by_index, note[0].scanned, note[0].damaged) == (0, 1, 1)
            # Every query reads the root; another piece it may do without.
            assert noticed or (offset, length) != ranges[1]


@settings(max_examples=30)
@given(cases(), st.sampled_from(["none", "other tokenizer", "some", "more fields", "fewer fields"]))
def test_splits_without_the_tables_index_give_the_same_answer(case, older):
    """Older splits: not indexed, with another tokenizer, only some columns, more or fewer fields."""
    rows, lists, asked = case
    now = settings_of(beside=",string,substring" if older == "fewer fields" else "")
    then = {
        "none": {},
        "other tokenizer": {
            **settings_of(),
            **{f"indexing.tokenizer.{column_of(name)}": "whitespace" for name in TOKENIZERS},
        },
        "some": {"indexing.typemap.c_default": "text"},
        "more fields": settings_of(beside=",string,substring"),
        "fewer fields": {
            key: "string" if "typemap" in key else value
            for key, value in settings_of().items()
            if "typemap" in key
        },
    }[older]
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), then).seen_with(now)
        for query in asked:
            assert built.hits(str(query)) == found(query, len(rows)), str(query)


@settings(max_examples=30)
@given(cases())
def test_splits_older_than_a_column_hold_nothing_in_it(case):
    """A column that the split lacks matches nothing, also under negation."""
    rows, lists, asked = case
    with tempfile.TemporaryDirectory() as directory:
        whole = table_of(rows, lists)
        old = whole.select(["c_default", "id"])
        built = build_split(Path(directory), old, {"indexing.typemap.c_default": "text"})
        later = type(built)(built.store, built.add, whole.schema, built.spec, built.options).seen_with(
            settings_of()
        )
        for query in asked:
            younger = _emptied(query)
            assert later.hits(str(query)) == found(younger, len(rows)), str(query)


@settings(max_examples=60)
@given(cases(), texts, st.sampled_from(["index", "damaged", "none"]), st.sampled_from(["position", "basic"]))
def test_a_plain_text_finds_the_rows_that_hold_every_piece_of_it(case, text, index, record):
    """Every piece between spaces with all its words in one column, whatever the tokenizers; no sign matters."""
    rows, lists, _ = case
    columns = [Column(column_of(name), name, tuple(rows)) for name in TOKENIZERS]
    columns += [Column("many", "default", tuple(lists))]
    pieces = [piece for piece in text.split() if all(tokenise(piece, one.tokenizer) for one in columns)]

    def holds(piece, row):
        return any(all(Phrase(one, part).finds(row) for part in parts_of(piece, one)) for one in columns)

    expected = [row for row in range(len(rows)) if pieces and all(holds(piece, row) for piece in pieces)]
    with tempfile.TemporaryDirectory() as directory:
        options = {} if index == "none" else settings_of(record)
        built = build_split(Path(directory), table_of(rows, lists), options).seen_with(settings_of(record))
        if index == "damaged":
            flip(built.path, index_bytes(built)[1][0], 0)
        assert built.hits(PlainText(text)) == expected
        assert built.count(PlainText(text)) == len(expected)
        assert sorted(built.search(PlainText(text), ["id"], score=True)["id"].to_pylist()) == expected


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["index", "damaged", "none"]))
def test_columns_without_a_search_field_are_compared_by_whole_values(data, index):
    """Texts and lists of texts, beside an indexed column and alone, with and without an index."""
    count = data.draw(st.integers(1, 40))
    rows = data.draw(st.lists(singles, min_size=count, max_size=count))
    lists = data.draw(st.lists(several, min_size=count, max_size=count))
    columns = [Column("c_default", "default", tuple(rows)), Column("c_raw", "raw", tuple(rows))]
    columns += [Column("many", "raw", tuple(lists))]
    asked = data.draw(st.lists(queries(columns), min_size=3, max_size=8))
    options = {"indexing.typemap.c_default": "text", "indexing.tokenizer.c_default": "default@1"}
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), {} if index == "none" else options)
        built = built.seen_with(options)
        if index == "damaged":
            flip(built.path, index_bytes(built)[1][0], 0)
        for query in asked:
            expected = found(query, count)
            assert built.hits(str(query)) == expected, str(query)
            assert built.count(str(query)) == len(expected)
            scored = built.search(str(query), ["id"], score=True)
            assert sorted(scored["id"].to_pylist()) == expected, str(query)


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_every_word_of_every_script_is_found_whole_and_in_part(tokenizer):
    """Each word alone, side by side with others, and cut at either end, by the index and by scanning."""
    rows = [
        *WORDS,
        *(f"{one} {other}" for one, other in zip(WORDS, WORDS[7:], strict=False)),
        "".join(WORDS),
        None,
    ]
    column = Column(column_of(tokenizer), tokenizer, tuple(rows))
    asked = []
    for word in WORDS:
        parts = {word, word[:1], word[1:], word[:-1], word[1:-1]} - {""}
        asked += [Phrase(column, part) for part in parts if part.strip()]
        asked += [Phrase(column, part, prefix=True) for part in (word[:1], word[:-1] or word)]
    lists = [None] * len(rows)
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), settings_of())
        for query in asked:
            assert built.hits(str(query)) == found(query, len(rows)), str(query)
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), {}).seen_with(settings_of())
        for query in asked[::9]:
            assert built.hits(str(query)) == found(query, len(rows)), str(query)


def _emptied(query):
    """The query as it is over a table whose columns other than c_default are null."""
    if isinstance(query, str):
        return query
    if hasattr(query, "column"):
        column = query.column
        if column.name == "c_default":
            return query
        empty = Column(column.name, column.tokenizer, (None,) * len(column.rows))
        return type(query)(
            empty, *(getattr(query, name) for name in query.__dataclass_fields__ if name != "column")
        )
    values = [getattr(query, name) for name in query.__dataclass_fields__]
    return type(query)(*(tuple(map(_emptied, v)) if isinstance(v, tuple) else _emptied(v) for v in values))
