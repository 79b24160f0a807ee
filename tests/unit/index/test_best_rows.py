"""The top k rows and phrases over lists that are cut, beside counting everything."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from indextables.index.codec.lengths import saturation
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.tree import Boolean, Words
from indextables.index.read.cache import BlockCache
from indextables.index.read.ranking import WeightedWord, impacts_at, top_indexes
from indextables.index.read.top_k import top_rows
from indextables.index.settings import IndexField, IndexSpec
from support.indexes import build, opened

SPEC = IndexSpec((IndexField("c", "text", "default", "position"),))
WORDS = ("alpha", "beta", "gamma", "delta", "rare", "odd", "strange")


def texts(count, seed):
    """Short rows of a few words, in which one comes twice now and then."""
    dice = random.Random(seed)
    for _ in range(count):
        some = dice.sample(WORDS[:4], dice.randrange(5)) + ["filler"] * dice.randrange(5)
        again = some[:1] if dice.random() < 0.03 else []
        seldom = [word for word in ("odd", "strange") for _ in range(dice.random() < 0.01)]
        yield " ".join(some + again + seldom + ["rare"] * (dice.random() < 0.02))


@pytest.fixture(scope="module")
def index():
    return opened(build(pa.table({"c": list(texts(4000, 1))}), SPEC))


def by_scoring_all(index, words, table, limit):
    scores = np.zeros(index.rows, np.float32)
    for one in sorted(words, key=lambda one: one.word.count):
        rows = one.word.array()
        scores[rows] += one.weight * impacts_at(one.word.counts(), index.norms(0).take(rows), table)
    rows = (scores > 0).nonzero()[0]
    at = top_indexes(scores[rows], limit)
    return scores[rows][at], rows[at]


@pytest.mark.parametrize("limit", [1, 10, 64, 65, 5000])
@pytest.mark.parametrize("mean", [0.5, 6.0, 1e9])
def test_the_first_and_later_rankings_give_the_rows_that_scoring_all_gives(index, limit, mean):
    """From the second ranking on impacts are cached. With a mean of 1e9 all lengths weigh the same: rows decide ties."""
    dice, table = random.Random(limit), saturation(mean)
    for size in (1, 2, 2, 3, 5):
        for _ in range(6):
            words = [
                WeightedWord(index.word(0, word.encode(), entry), np.float32(dice.choice([0.3, 1.0, 2.5])))
                for word in dice.sample(WORDS, size)
                if (entry := index.entries([(0, word.encode())])[0]) is not None
            ]
            wanted_scores, wanted_rows = by_scoring_all(index, words, table, limit)
            for weighted in words:
                weighted.word.impact_cache = None
            for _ in range(3):
                scores, rows = top_rows(index, 0, words, limit, mean)
                assert rows.tolist() == wanted_rows.tolist()
                assert scores.tolist() == wanted_scores.tolist()


@pytest.fixture(scope="module")
def frequent():
    """Words whose lists are all cut into pages; `alpha` and `beta` come once in a row, `gamma` up to three times."""
    dice = random.Random(3)
    rows = [
        " ".join(
            ["alpha"] * dice.randrange(2) + ["beta"] * dice.randrange(2)
            + ["gamma"] * dice.choice((0, 1, 1, 3)) + ["filler"] * dice.randrange(4)
        )
        for _ in range(140_000)
    ]  # fmt: skip
    return opened(build(pa.table({"c": rows}), SPEC), cache=BlockCache(0))


@pytest.mark.parametrize("words", ["alpha beta", "alpha gamma", "beta gamma alpha"])
@pytest.mark.parametrize("mean", [4.0, 1e9])
def test_rankings_of_frequent_words_without_a_cache_give_the_rows_that_scoring_all_gives(
    frequent, words, mean
):
    for limit in (1, 10, 700):
        for weights in ((1.0, 1.0, 1.0), (0.4, 2.5, 1.0)):
            weighted = [
                WeightedWord(frequent.word(0, word.encode(), entry), np.float32(weight))
                for word, weight in zip(words.split(), weights, strict=False)
                if (entry := frequent.entries([(0, word.encode())])[0]) is not None
            ]
            assert all(one.word.cut for one in weighted)
            wanted_scores, wanted_rows = by_scoring_all(frequent, weighted, saturation(mean), limit)
            scores, rows = top_rows(frequent, 0, weighted, limit, mean)
            assert rows.tolist() == wanted_rows.tolist()
            assert scores.tolist() == wanted_scores.tolist()


def test_a_word_says_how_often_it_is_in_some_rows_of_some_pages(spread):
    rows, built = spread
    asked = np.array([0, 3, 5, 65_540, 70_001, 139_999], np.uint32)
    for word in ("common", "pair", "filler"):
        for before in (False, True):
            index = opened(built, cache=BlockCache(0))
            held = index.word(0, word.encode(), index.entries([(0, word.encode())])[0])
            if before:
                held.counts()
            assert held.counts_in(asked).tolist() == [rows[at].split().count(word) for at in asked]


@pytest.fixture(scope="module")
def spread():
    """Three pages of rows: `common` is everywhere, `pair` follows it in a few rows of the outer pages.

    `middling` is in a thousand rows, `seldom` in fifty.
    """
    rows = ["common filler common"] * 140_000
    rows[7::97] = ["middling common filler"] * len(rows[7::97])
    rows[7::2910] = ["middling seldom common seldom"] * len(rows[7::2910])
    rows[8::29_100] = ["seldom middling seldom middling"] * len(rows[8::29_100])
    for at in (3, 70_001, 139_999):
        rows[at] = "filler common pair common pair"
    rows[5] = "pair common"
    rows[65_540] = "common filler pair"
    return rows, build(pa.table({"c": rows}), SPEC)


@pytest.mark.parametrize("kept", [0, 64 << 20])
def test_phrases_over_pages_are_counted_where_they_stand(spread, kept):
    rows, built = spread
    index = opened(built, cache=BlockCache(kept))
    for phrase in (
        "common pair", "pair common", "common pair common", "filler common", "common filler pair",
        "middling common", "middling seldom", "seldom middling", "seldom common", "middling seldom common",
        "seldom middling seldom", "common seldom", "filler seldom", "seldom seldom", "common middling",
    ):  # fmt: skip
        wanted = [number for number, row in enumerate(rows) if f" {phrase} " in f" {row} "]
        for _ in range(3):
            search = IndexSearch(index, Words("c", tuple(phrase.split())))
            assert search.rows().tolist() == wanted
            often = [
                f" {rows[at]} ".replace(" ", "  ").count(f" {phrase.replace(' ', '  ')} ") for at in wanted
            ]
            session, plan = search.prepared(None)
            assert plan.phrase_rows(session).counts.tolist() == often


def test_nothing_kept_ranks_as_kept_lists_do(spread):
    _, built = spread
    query = Boolean(should=tuple(Words("c", (word,)) for word in ("common", "pair", "filler")))
    cold, warm = (opened(built, cache=BlockCache(size)) for size in (0, 64 << 20))
    wanted = IndexSearch(cold, query).best(20)
    for _ in range(3):
        scores, rows = IndexSearch(warm, query).best(20)
        assert rows.tolist() == wanted[1].tolist()
        assert np.allclose(scores, wanted[0], rtol=1e-6)
