"""Simple conditions are read without sqlglot, and mean what sqlglot says they mean."""

from __future__ import annotations

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot.tokens import TokenType

from indextables.errors import PredicateError
from indextables.predicate.build import from_sql
from indextables.predicate.build.from_python import Builder
from indextables.predicate.build.plain_sql import read_plain

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("big", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("x", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("flag", pa.bool_()),
        ("date", pa.date32()),
        ("a b", pa.string()),
        ("point", pa.struct([("lat", pa.float64()), ("name", pa.string())])),
    ]
)


def by_sqlglot(text: str, schema: pa.Schema = SCHEMA) -> object:
    return from_sql.of_syntax(from_sql._syntax(text), schema, "Europe/Berlin")


def simply(text: str, schema: pa.Schema = SCHEMA) -> object:
    simple = read_plain(text)
    return None if simple is None else Builder(schema, "Europe/Berlin").predicate(simple)


COLUMNS = st.sampled_from(
    ["i", "BIG", "s", "d", "at", "local", "x", "price", "flag", "date", "`a b`", "point.lat"]
)
LITERALS = st.one_of(
    st.integers(-(1 << 59), 1 << 59).map(str),
    st.sampled_from(["2147483647", "2147483648", "-2147483648", "-2147483649", "007", "-0", "0.0", "-0.0", "1.50"]),
    st.decimals(-1000, 1000, places=3).map(lambda value: format(value, "f")),
    st.text("ab%_ é12-:", max_size=6).map(lambda text: f"'{text}'"),
    st.sampled_from(
        ["'2024-01-01'", "DATE '2024-01-01'", "timestamp '2024-01-01 10:00:00'", "timestamp'2024-03-31 02:30:00'",
         "'2024-01-01 00:00:00'", "true", "FALSE", "null", "'5'", "'true'"]
    ),
)  # fmt: skip
SIGNS = st.sampled_from(["=", "==", "<", "<=", ">", ">=", "<=>", "!=", "<>"])
LISTS = st.lists(LITERALS, min_size=1, max_size=4).map(", ".join)
NOTS = st.sampled_from(["", "NOT ", "not "])
TESTS = st.one_of(
    st.tuples(COLUMNS, SIGNS, LITERALS).map(" ".join),
    st.tuples(LITERALS, SIGNS, COLUMNS).map("".join),
    st.tuples(COLUMNS, SIGNS, COLUMNS).map(" ".join),
    st.tuples(COLUMNS, NOTS, LISTS).map(lambda part: f"{part[0]} {part[1]}IN ({part[2]})"),
    st.tuples(COLUMNS, NOTS, LITERALS, LITERALS).map(
        lambda part: f"{part[0]} {part[1]}between {part[2]} AND {part[3]}"
    ),
    st.tuples(COLUMNS, NOTS, st.text("ab%_", max_size=5)).map(
        lambda part: f"{part[0]} {part[1]}LIKE '{part[2]}'"
    ),
    st.tuples(COLUMNS, NOTS).map(lambda part: f"{part[0]} IS {part[1]}NULL"),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "or", "And"]), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"NOT {text}"),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(CONDITIONS)
def test_a_drawn_condition_means_what_sqlglot_says(text):
    try:
        expected = by_sqlglot(text)
    except PredicateError:
        # The text is refused whichever way it is read.
        with pytest.raises(PredicateError):
            from_sql.parse(text, SCHEMA, "Europe/Berlin")
        return
    assert from_sql.parse(text, SCHEMA, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    "text",
    ["i = 1", "day >= '2024-01-01'", "a.b <> 3 AND c IN ('x', 'y')", "NOT (i < 3 OR s LIKE 'a%')", "i IS NOT NULL",
     "d BETWEEN DATE '2024-01-01' AND DATE '2024-02-01'", "5 < i", "price >= -1.50", "`a b` = ''"],
)  # fmt: skip
def test_what_people_type_is_read_without_sqlglot(text):
    assert read_plain(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "i", "i =", "lower(s) = 'a'", "i + 1 = 2", "i = 1L", "i = 1e3", "s = 'a' 'b'", "s = 'it''s'", r"s = 'a\n'",
     's = "a"', "i = 1 -- one", "i = /* one */ 1", "1 = 1", "i = 1 AND", "(i = 1", "i = 1)", "i IN ()", "s LIKE s",
     "s LIKE 'a' ESCAPE '!'", "x = X'00'", "i IS TRUE", "i = 1; i = 2", "case when i = 1 then true end",
     "interval '1' day = d", "i = 1 i = 2", "current_date = d", "s RLIKE 'a'", "i NOT = 1", "größe = 1",
     "(" * 60 + "i = 1" + ")" * 60],
)  # fmt: skip
def test_every_other_text_is_left_to_sqlglot(text):
    assert read_plain(text) is None


def test_every_word_that_sqlglot_knows_means_the_same_as_a_column():
    keywords = sqlglot.Dialect.get_or_raise("spark").tokenizer_class.KEYWORDS
    words = {word.lower() for word in keywords if word.replace("_", "").isalpha()}
    words |= {kind.name.lower() for kind in TokenType}
    read = 0
    for word in sorted(words):
        schema = pa.schema([(word, pa.int64())])
        for text in (
            f"{word} = 1",
            f"1 < {word}",
            f"NOT {word} IN (1, 2)",
            f"{word} IS NULL",
            f"({word} < 3)",
        ):
            node = simply(text, schema)
            if node is not None:
                read += 1
                assert node == by_sqlglot(text, schema), text
    assert read > 1000
