"""Random rows and random queries over them, for every tokenizer."""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import strategies as st

from support.search_oracle import (
    Boosted,
    Both,
    Column,
    Either,
    Expression,
    Fuzzy,
    Grouped,
    Neither,
    Phrase,
    Present,
    Span,
    Wild,
    Without,
)

TOKENIZERS = (
    "default", "raw", "en_stem", "whitespace", "compact_ids",
    "default@2", "en_stem@2", "compact_ids@2", "default+fold@2", "en_stem+fold@2",
)  # fmt: skip
"""Those without a version are of version 1."""
WORDS = [
    "error", "Error", "errors", "erroring", "run", "running", "runs", "timeout", "time-out", "a", "I/O", "and", "not",
    "x" * 45, "x" * 45 + "y", "naïve", "ÉTÉ", "日本語", "日本", "データ", "人", "本日は", "서버", "서버를", "Ωmega", "Привет", "don't", "e-mail",
    "10.0.0.1", "v2.0.1", "foo_bar", "C++", "!!!", "...", "🙂", "100%", "user@example.com",
    "550e8400-e29b-41d4-a716-446655440000", "550E8400-E29B-41D4-A716-446655440001",
    "deadbeefdeadbeef01", "req00000000000000000042", "ꙮ1a2b",
    "ระบบฐานข้อมูล", "ข้อมูล", "ລະບົບ", "ប្រព័ន្ធ", "စနစ်", "ＡＢＣ", "ｶﾞス", "ガス", "Straße", "ﬁne", "l’été", "e\u0301te\u0301", "ΣΊΣΥΦΟΣ",
    "Grün", "👩🚀", "がっこう", "ᄒ\u1161\u11ab글",
]  # fmt: skip
SEPARATORS = [" ", " ", " ", "  ", ", ", "\t", "\n", "-", "/", "。"]

texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SEPARATORS)), max_size=7).map(
    lambda parts: "".join(itertools.chain.from_iterable(parts))
)
singles = st.one_of(st.none(), st.just(""), texts, texts, texts)
several = st.one_of(st.none(), st.lists(st.one_of(st.none(), texts), max_size=3))
simple_words = st.sampled_from(
    ["error", "run", "日本語", "naïve", "x" * 45, "timeout", "zebra", "A", "e", "and", "not"]
)

ascii_words = simple_words.filter(str.isascii)

misspelled = st.sampled_from(
    ["error", "errro", "eror", "timeuot", "runing", "naive", "rnu", "日本誤", "a", "zebra", "Error"]
)
EXPRESSIONS = [
    "err.*",
    "(run|error)s?",
    "[a-z]{3}",
    "日.*",
    ".*o.*",
    "x+y?",
    "[0-9]+",
    "e.?rr?or",
    "E[a-z]+",
    "",
][:-1]


@st.composite
def shapes(draw):
    """A word with some of its letters unknown."""
    word = draw(
        st.sampled_from(["error", "Errors", "running", "timeout", "日本語", "naïve", "x" * 45, "a", "ꙮ1a2b"])
    )
    at = draw(st.integers(0, len(word) - 1))
    gap, width = draw(st.sampled_from(["?", "*", "**", "?*"])), draw(st.integers(0, 3))
    more = draw(st.sampled_from(["", "*", "?"]))
    found = word[:at] + gap + word[at + width :] + more
    if not found.strip("*"):
        # Alone it asks whether there is a value, which is another question.
        return "?*"
    return found if "?" in found or found.rstrip("*").count("*") or found.startswith("*") else "?" + found


shapes = shapes()


def queries(columns):
    column = st.sampled_from(columns)
    # With pairs of characters a pattern inside of text without spaces is refused.
    unpaired = st.sampled_from([one for one in columns if "@" not in one.tokenizer])
    paired = st.sampled_from([one for one in columns if "@" in one.tokenizer] or columns)
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
            unpaired,
            st.none() | simple_words,
            st.none() | simple_words,
            st.sampled_from(["[]", "[}", "{]", "{}"]),
        ),
        st.builds(Present, column),
        st.builds(Wild, unpaired, shapes),
        st.builds(Fuzzy, unpaired, misspelled, st.sampled_from([1, 2])),
        st.builds(Expression, unpaired, st.sampled_from(EXPRESSIONS)),
        st.builds(Wild, paired, shapes.filter(str.isascii)),
        st.builds(Fuzzy, paired, misspelled.filter(str.isascii), st.sampled_from([1, 2])),
        st.builds(Expression, paired, st.sampled_from([one for one in EXPRESSIONS if one.isascii()])),
        st.builds(Span, paired, st.none() | ascii_words, st.none() | ascii_words, st.just("[]")),
        st.builds(
            Grouped,
            column,
            st.tuples(simple_words, simple_words),
            st.sampled_from([" ", " OR ", " AND ", " && "]),
        ),
        st.builds(Boosted, st.builds(Phrase, column, phrase)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Both, st.tuples(inner, inner), st.sampled_from([" AND ", " && "])),
            st.builds(Either, st.tuples(inner, inner, inner), st.sampled_from([" OR ", " || ", " "])),
            st.builds(
                Without,
                inner,
                inner,
                st.sampled_from(["(+{} -{})", "({} -{})", "({} AND NOT {})", "({} !{})"]),
            ),
            st.builds(Neither, inner, st.sampled_from(["NOT ", "!", "-"])),
        ),
        max_leaves=5,
    )


@st.composite
def cases(draw):
    count = draw(st.integers(1, 14))
    rows = draw(st.lists(singles, min_size=count, max_size=count))
    lists = draw(st.lists(several, min_size=count, max_size=count))
    columns = [Column(column_of(name), name, tuple(rows)) for name in TOKENIZERS]
    columns += [Column("many", "default", tuple(None if row is None else tuple(row) for row in lists))]
    asked = draw(st.lists(queries(columns), min_size=3, max_size=10))
    return rows, lists, asked


def table_of(rows, lists):
    arrays = {column_of(name): pa.array(rows, pa.string()) for name in TOKENIZERS}
    arrays["many"] = pa.array(lists, pa.list_(pa.field("element", pa.string())))
    arrays["id"] = pa.array(range(len(rows)), pa.int64())
    return pa.table(arrays)


def column_of(tokenizer):
    return "c_" + tokenizer.replace("@", "_").replace("+", "_")


def settings_of(record="position", beside=""):
    """A column for every tokenizer; `beside` are the kinds of fields that each has beside its words."""
    options = {
        "indexing.typemap.many": "text,string" if "string" in beside.split(",") else "text",
        "indexing.tokenizer.many": "default@1",
        "indexing.indexrecordoption.many": record,
    }
    for name in TOKENIZERS:
        versioned = "@" not in name and name not in ("raw", "whitespace")
        options[f"indexing.typemap.{column_of(name)}"] = f"text{beside}"
        options[f"indexing.tokenizer.{column_of(name)}"] = f"{name}@1" if versioned else name
        options[f"indexing.indexrecordoption.{column_of(name)}"] = record
    return options
