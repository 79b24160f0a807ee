"""Words of any script by version 2 of the tokenizers: folding, pairs of characters, marks, emoji."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.index.highlight import tokens_at
from indextables.index.letters import EMOJI, MARK, PAIRED, clusters, folded, kind_of
from indextables.index.settings import IndexField
from indextables.index.tokenise import tokens_of
from indextables.index.tokens import sought_words, words_of
from support.dictionaries import dictionary_tokenizers

RULES = ("default@2", "default+fold@2", "en_stem@2", "en_stem+fold@2", "compact_ids@2")
ANYTHING = st.characters(exclude_categories=["Cs", "Cn"])
ODD = st.sampled_from(
    "人工智能日本語データはｶﾞハ\u3099ㅎㅏ한국กขิหมู่ក្រុងມື້ကို\u0301\u0327e\u200b\u200d\ufe0f👍🏽👩💻ßΣςİﬁ①㍻… ,-a1"
)
texts = st.text(st.one_of(ODD, ODD, ANYTHING), max_size=16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("人工智能", ["人工", "工智", "智能", "能"]),
        ("Python入門", ["python", "入門", "門"]),
        ("リアルタイム", ["リア", "アル", "ルタ", "タイ", "イム", "ム"]),
        ("서버를", ["서버", "버를", "를"]),
        ("ไทย", ["ไท", "ทย", "ย"]),
        ("กิขี", ["กิขี", "ขี"]),
        ("ລາວ", ["ລາ", "າວ", "ວ"]),
        ("ខ្មែរ", ["ខ្មែ", "មែរ", "រ"]),
        ("မြန်", ["မြန်", "န်"]),
        ("ｶﾞｷﾞ", ["ガギ", "ギ"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ΟΔΟΣ οδός", ["οδοσ", "οδόσ"]),
        ("cafe\u0301", ["café"]),
        ("हिन्दी", ["हिन्दी"]),
        ("don't don\u2019t don\u02bct", ["don", "t"] * 3),
        ("ok 👍🏽 👩\u200d💻 ❤\ufe0f", ["ok", "👍", "🏽", "👩", "💻", "❤"]),
        ("co\u00adoperate", ["cooperate"]),
        ("葛\U000e0100城", ["葛城", "城"]),
    ],
)
def test_words_of_many_scripts(text, words):
    assert words_of("default@2")(text) == words


def test_fold_leaves_accents_out_and_the_marks_of_other_scripts_in():
    words = words_of("default+fold@2")
    assert words("Crème Łódź smørbrød ёж ガ हिन्दी 한") == [
        "creme",
        "lodz",
        "smorbrod",
        "еж",
        "ガ",
        "हिन्दी",
        "한",
    ]
    assert words_of("en_stem+fold@2")("résumés") == ["resum"]


@pytest.mark.parametrize(
    ("text", "words", "begins"),
    [
        ("人工智能", ["人工", "工智", "智能"], None),
        ("人", [], "人"),
        ("第3章", ["第", "3"], "章"),
        ("東京 大阪", ["東京", "京", "大阪"], None),
        ("入門 Python", ["入門", "門", "python"], None),
        ("error", ["error"], None),
    ],
)
def test_a_text_that_is_searched_for_may_go_on_in_the_texts_that_hold_it(text, words, begins):
    assert sought_words("default@2", text) == (words, begins)


@pytest.mark.parametrize("tokenizer", [*RULES, *dictionary_tokenizers()])
@given(st.lists(texts, min_size=1, max_size=6))
def test_a_batch_has_the_words_of_its_texts_and_these_have_places(tokenizer, rows):
    tokens = tokens_of(IndexField("c", "text", tokenizer, "position"), pa.array(rows, pa.string()))
    words = tokens.words.to_pylist()
    in_batch = [[] for _ in rows]
    for code, row in zip(tokens.codes, tokens.rows, strict=True):
        in_batch[row].append(words[code].decode())
    one_by_one = [words_of(tokenizer)(text) for text in rows]
    assert in_batch == one_by_one
    for text, expected in zip(rows, one_by_one, strict=True):
        placed = tokens_at(text, tokenizer)
        assert [token.word for token in placed] == expected
        assert all(token.start < token.end <= len(text) for token in placed)


@given(texts)
def test_parts_of_a_text_are_folded_like_the_whole(text):
    parts = clusters(text)
    assert "".join(text[start:end] for start, end in parts) == text
    assert "".join(folded(text[start:end]) for start, end in parts) == folded(text)


@given(st.text(ANYTHING, max_size=30))
def test_text_without_these_scripts_has_the_words_of_version_1(text):
    """Where nothing is folded but case, and no mark or emoji occurs."""
    kinds = {kind_of(char) for char in text}
    unfolded = unicodedata.normalize("NFKC", text) == text and folded(text) == text.lower()
    if unfolded and not kinds & {PAIRED, MARK, EMOJI} and "\u02bc" not in text:
        assert words_of("default@2")(text) == words_of("default")(text)
        assert words_of("en_stem@2")(text) == words_of("en_stem")(text)
