"""Search finds exactly the rows that the meaning of the query says, however it comes to its answer."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search_oracle import Both, Column, Either, Neither, Phrase, Present, Span, Without, found
from support.splits import build_split, flip, index_bytes

TOKENIZERS = ("default", "raw", "en_stem", "whitespace", "compact_ids")
WORDS = [
    "error", "Error", "errors", "erroring", "run", "running", "runs", "timeout", "time-out", "a", "I/O",
    "x" * 45, "x" * 45 + "y", "naïve", "ÉTÉ", "日本語", "日本", "データ", "Ωmega", "Привет", "don't", "e-mail",
    "10.0.0.1", "v2.0.1", "foo_bar", "C++", "!!!", "...", "🙂", "100%", "user@example.com",
    "550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440001",
    "deadbeefdeadbeef01", "req00000000000000000042", "ꙮ1a2b",
]  # fmt: skip
SEPARATORS = [" ", " ", " ", "  ", ", ", "\t", "\n", "-", "/", "。"]

texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SEPARATORS)), max_size=7).map(
    lambda parts: "".join(itertools.chain.from_iterable(parts))
)
singles = st.one_of(st.none(), st.just(""), texts, texts, texts)
several = st.one_of(st.none(), st.lists(st.one_of(st.none(), texts), max_size=3))
simple_words = st.sampled_from(["error", "run", "日本語", "naïve", "x" * 45, "timeout", "zebra", "A", "e"])


def queries(columns):
    column = st.sampled_from(columns)
    phrase = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    leaf = st.one_of(
        st.builds(Phrase, column, phrase),
        st.builds(Phrase, column, phrase),
        st.builds(Phrase, column, phrase, slop=st.integers(1, 3)),
        st.builds(
            lambda col, text, cut: Phrase(col, text[: max(1, len(text) - cut)], prefix=True),
            column,
            phrase,
            st.integers(0, 4),
        ),
        st.builds(
            Span,
            column,
            st.none() | simple_words,
            st.none() | simple_words,
            st.sampled_from(["[]", "[}", "{]", "{}"]),
        ),
        st.builds(Present, column),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Both, st.tuples(inner, inner)),
            st.builds(Either, st.tuples(inner, inner, inner)),
            st.builds(Without, inner, inner),
            st.builds(Neither, inner),
        ),
        max_leaves=5,
    )


@st.composite
def cases(draw):
    count = draw(st.integers(1, 14))
    rows = draw(st.lists(singles, min_size=count, max_size=count))
    lists = draw(st.lists(several, min_size=count, max_size=count))
    columns = [Column(f"c_{name}", name, tuple(rows)) for name in TOKENIZERS]
    columns += [Column("many", "default", tuple(None if row is None else tuple(row) for row in lists))]
    asked = draw(st.lists(queries(columns), min_size=3, max_size=10))
    return rows, lists, asked


def table_of(rows, lists):
    arrays = {f"c_{name}": pa.array(rows, pa.string()) for name in TOKENIZERS}
    arrays["many"] = pa.array(lists, pa.list_(pa.field("element", pa.string())))
    arrays["id"] = pa.array(range(len(rows)), pa.int64())
    return pa.table(arrays)


def settings_of(record="position"):
    options = {"indexing.typemap.many": "text", "indexing.indexrecordoption.many": record}
    for name in TOKENIZERS:
        options[f"indexing.typemap.c_{name}"] = "text"
        options[f"indexing.tokenizer.c_{name}"] = name
        options[f"indexing.indexrecordoption.c_{name}"] = record
    return options


@settings(max_examples=60)
@given(cases(), st.sampled_from(["position", "freq", "basic"]))
def test_the_index_finds_what_the_query_means(case, record):
    """Every tokenizer; phrases, prefixes, ranges, stems, long words, CJK and punctuation; any record option."""
    rows, lists, asked = case
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), settings_of(record))
        for query in asked:
            note = []
            assert built.hits(str(query), note) == found(query, len(rows)), str(query)
            assert built.count(str(query)) == len(found(query, len(rows)))
            assert (note[0].by_index, note[0].scanned) == (1, 0)


@settings(max_examples=30)
@given(cases(), st.integers(0, 10**9), st.integers(0, 7))
def test_a_damaged_index_gives_the_same_answer(case, where, bit):
    """Any flipped bit of the index is noticed, and the rows are scanned with the same words."""
    rows, lists, asked = case
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), settings_of())
        ranges = index_bytes(built)
        offset, length = ranges[where % len(ranges)]
        flip(built.path, offset + where % length, bit)
        for query in asked:
            note = []
            assert built.hits(str(query), note) == found(query, len(rows)), str(query)
            assert (note[0].by_index, note[0].scanned, note[0].damaged) == (0, 1, 1)


@settings(max_examples=30)
@given(cases(), st.sampled_from(["none", "other tokenizer", "some"]))
def test_splits_without_the_tables_index_give_the_same_answer(case, older):
    """Older splits: not indexed, indexed with another tokenizer, or only some columns indexed."""
    rows, lists, asked = case
    then = {
        "none": {},
        "other tokenizer": {
            **settings_of(),
            **{f"indexing.tokenizer.c_{name}": "whitespace" for name in TOKENIZERS},
        },
        "some": {"indexing.typemap.c_default": "text"},
    }[older]
    with tempfile.TemporaryDirectory() as directory:
        built = build_split(Path(directory), table_of(rows, lists), then).seen_with(settings_of())
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


def _emptied(query):
    """The query as it is over a table whose columns other than c_default are null."""
    if isinstance(query, (Phrase, Span, Present)):
        column = query.column
        if column.name == "c_default":
            return query
        empty = Column(column.name, column.tokenizer, (None,) * len(column.rows))
        return type(query)(
            empty, *(getattr(query, name) for name in query.__dataclass_fields__ if name != "column")
        )
    values = [getattr(query, name) for name in query.__dataclass_fields__]
    return type(query)(*(tuple(map(_emptied, v)) if isinstance(v, tuple) else _emptied(v) for v in values))
