"""Words as Unicode defines them, and texts that have all of some words."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from indextables.predicate.word_breaks import boundaries, have_words, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick (\"brown\") fox can't jump 32.3 feet, right?",
         ["The", "quick", "brown", "fox", "can't", "jump", "32.3", "feet", "right"]),
        ("snake_case kebab-case a.b 1,000 3'4 x:y", ["snake_case", "kebab", "case", "a.b", "1,000", "3'4", "x:y"]),
        ("'quoted' 1. end.", ["quoted", "1", "end"]),
        ("人工智能 カタカナ ひら", ["人", "工", "智", "能", "カタカナ", "ひ", "ら"]),
        ('צה״ל אל"ף', ["צה״ל", 'אל"ף']),
        ("e\u0301te\u0301 a\u00adb", ["e\u0301te\u0301", "a\u00adb"]),
        ("🇩🇪🇫🇷🇮 👩‍🚀🚀", ["🇩🇪", "🇫🇷", "🇮", "👩‍🚀", "🚀"]),
        ("!!! \t\r\n ", []),
        ("", []),
        ("a²b", ["a", "²", "b"]),
    ],
)  # fmt: skip
def test_words(text, words):
    assert words_of(text) == words


def test_many_texts_at_once_are_cut_like_each_alone():
    chance = random.Random(1)
    letters = "ab1_'., \n\r\u0308\u200d🇩🇪👩🚀א\"カ人"
    texts = ["".join(chance.choices(letters, k=chance.randrange(8))) for _ in range(400)]
    sizes = np.cumsum([0, *map(len, texts)])
    whole = boundaries(np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32), sizes)
    for text, start in zip(texts, sizes.tolist(), strict=False):
        alone = boundaries(np.frombuffer(text.encode("utf-32-le"), np.uint32), np.zeros(1, np.int64))
        assert whole[start : start + len(text)].tolist() == alone[: len(text)].tolist(), repr(text)


def test_a_text_has_a_word_only_between_boundaries():
    texts = pa.array(["a cat sat", "concat", "cat", None, "cat's", "sat-cat", "the cat, sat"])
    assert have_words(texts, ["cat"]).to_pylist() == [True, False, True, None, False, True, True]
    assert have_words(texts, ["sat", "cat"]).to_pylist() == [True, False, False, None, False, True, True]
    assert have_words(texts.slice(5), ["cat"]).to_pylist() == [True, True]
