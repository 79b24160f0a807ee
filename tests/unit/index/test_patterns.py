"""Patterns over many words at once say of each what the definition says of it alone."""

from __future__ import annotations

import random

import pyarrow as pa

from indextables.index.query.patterns import Expression, Gap, Similar, Wildcard
from support.search_oracle import _edits, _fits


def test_similar_words_are_those_within_the_edits():
    dice = random.Random(11)
    letters = "abcdé日@\x00"
    words = ["".join(dice.choices(letters, k=dice.randint(0, 9))) for _ in range(3000)]
    array = pa.array(words, pa.string())
    for _ in range(12):
        wanted = "".join(dice.choices(letters, k=dice.randint(1, 8)))
        for edits in (1, 2):
            found = Similar(wanted, edits).matches(array).tolist()
            assert found == [_edits(word, wanted) <= edits for word in words], wanted


def test_wildcards_fit_whole_words():
    words = ["", "a", "ab", "abc", "a.c", "a\nc", "日本", "aXbXc"]
    array = pa.array(words, pa.string())
    for shape, text in (
        ((Gap.MANY,), "*"),
        (("a", Gap.ONE, "c"), "a?c"),
        (("a", Gap.MANY), "a*"),
        ((Gap.ONE, "本"), "?本"),
        ((Gap.MANY, "b", Gap.MANY), "*b*"),
        (("a.c",), "a.c"),
    ):
        assert Wildcard(shape).matches(array).tolist() == [_fits(word, text) for word in words], text


def test_an_expression_knows_what_its_words_begin_with():
    for text, prefix in (
        ("größe.*", "größe"),
        ("日本語?", "日本"),
        ("err.*", "err"), ("errs?", "err"), ("err*", "er"), ("err+", "err"), ("err{2}", "er"), ("a|b", ""), ("(a)", ""), (".a", ""),
    ):  # fmt: skip
        assert Expression(text).prefix == prefix, text


def test_a_literal_end_only_rules_words_out():
    dice = random.Random(5)
    words = ["".join(dice.choices("abé.", k=dice.randint(0, 6))) for _ in range(2000)]
    array = pa.array(words, pa.large_string())
    for shape in (
        (Gap.MANY, "ab"),
        (Gap.ONE, "b"),
        ("a", Gap.MANY, "b"),
        (Gap.MANY, "a", Gap.ONE, "é"),
        ("ab",),
    ):
        text = "".join(part if isinstance(part, str) else part.value for part in shape)
        assert Wildcard(shape).matches(array).tolist() == [_fits(word, text) for word in words], shape
