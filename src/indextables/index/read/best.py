"""The best rows for several words of a field, when their impacts are cached.

A word that is used repeatedly keeps its impact (its contribution to the score) in every
row, and its few best rows. These give a threshold; then only rows that can still reach it
are scored (MaxScore), a sample of them first. Bounds are summed in the same order as
scores, so that rounding never loses a tie; ties are in row order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from indextables.index.codec.lengths import NORM_BITS, saturation
from indextables.index.codec.lists import has
from indextables.index.codec.numbers import Array
from indextables.index.read.first import best_from_rarest, best_of_few
from indextables.index.read.lookup import Index
from indextables.index.read.ranking import Weighted, best_of, impacts_at
from indextables.index.read.rowset import NO_ROWS, TESTED, found_in
from indextables.index.read.sets import are_sets, best_by_sets
from indextables.index.read.words import Word
from indextables.records import dataclass

KEPT_AFTER = 2
"""After this many rankings with a word, its impacts are kept."""
CHAMPIONS = 64
"""Number of best rows remembered per word."""
_SMALL = 512
"""Words with up to this many rows are scored completely."""
_FEW = 128
"""Up to this many rows, a loop is the fastest way."""
_SAMPLE = 16
_MANY = 8192
_ACCUMULATED = 20_000
_RARER = 16
"""A word in fewer than one in this many rows counts as rare."""
_PAIR = 2
_SOME = 256
_SLACK = np.float32(1 - 2e-6)
"""Tolerance: the first filter divides, and must not lose a tie to rounding."""


@dataclass(frozen=True, slots=True)
class _Impacts:
    """The impact of a word in each of its rows, for one mean row length."""

    mean: float
    impact: Array
    champions: Array
    """The best rows, by their index in the list."""
    best_rows: Array
    """The best rows, and their impacts."""
    best: Array
    by_class: Array
    """The largest impact in rows of each length class."""
    most: np.float32

    @classmethod
    def of(cls, word: Word, norms: Array, mean: float) -> _Impacts:
        rows = word.array()
        classes = norms.take(rows)
        impact = impacts_at(word.counts(), classes, saturation(mean))
        by_class = np.zeros(256, np.float32)
        np.maximum.at(by_class, classes, impact)
        champions = best_of(impact, CHAMPIONS)
        best = impact.take(champions)
        return cls(mean, impact, champions, rows.take(champions), best, by_class, best[0])


class _Kept:
    """What is cached of a word for ranking."""

    __slots__ = ("made", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.made: _Impacts | None = None

    @property
    def size(self) -> int:
        return 3000 + (0 if self.made is None else int(self.made.impact.nbytes))


def best_rows(
    index: Index, field_number: int, words: Sequence[Weighted], limit: int, mean: float
) -> tuple[Array, Array]:
    """The best rows with any of some words of a field: scores and rows, best first.

    Contributions are summed from the rarest word on, cached or not, so that a score never changes.
    """
    if len(words) > 1:
        words = sorted(words, key=_rows_of)
    runners = _runners(index, field_number, words, mean)
    if runners is None:
        return _first_time(index, field_number, words, limit, mean)
    if len(runners) == 1:
        only = runners[0]
        if limit <= CHAMPIONS or only.word.count <= CHAMPIONS:
            return only.weight * only.kept.best[:limit], only.kept.best_rows[:limit]
    elif limit <= CHAMPIONS:
        if len(runners) == _PAIR and runners[0].word.count <= _MANY:
            return _best_of_two(runners[0], runners[1], index.rows, limit)
        if sum(one.word.count for one in words) <= _FEW:
            return _few_kept(runners, limit)
    return _Race(runners, index.norms(field_number), limit).run()


def _runners(index: Index, field_number: int, words: Sequence[Weighted], mean: float) -> list[_Runner] | None:
    """The words with their cached impacts; None unless all were used before and may be cached."""
    found, total, every = [], 0, True
    for one in words:
        word = one.word
        kept = word.ranked
        if kept is None:
            kept = word.ranked = _Kept()
        kept.uses += 1
        every = every and kept.uses >= KEPT_AFTER
        total += word.count
    if not every or total * 12 > index.cache.max_bytes:
        return None
    for one in words:
        # Another thread may use another mean length at the same time.
        made = one.word.ranked.made
        if made is None or made.mean != mean:
            made = one.word.ranked.made = _Impacts.of(one.word, index.norms(field_number), mean)
            one.word.grown = True
        found.append(_Runner(one.word, one.weight, made))
    return found


def _first_time(
    index: Index, field_number: int, words: Sequence[Weighted], limit: int, mean: float
) -> tuple[Array, Array]:
    """The same for words of which nothing is cached."""
    table = saturation(mean)
    total = sum(one.word.count for one in words)
    lengths = _Lengths(index, field_number)
    if total < _ACCUMULATED:
        return best_of_few(words, lengths.classes, table, limit)
    if min(one.word.count for one in words) * _RARER > total and are_sets(words):
        return best_by_sets(words, index.norms(field_number), table, limit)
    return best_from_rarest(words, lengths.classes, table, limit)


class _Lengths:
    """The length classes of the rows of a field; after most pages were needed, this search holds all."""

    def __init__(self, index: Index, field_number: int) -> None:
        self.index, self.field_number = index, field_number
        self.norms: Array | None = None

    def classes(self, rows: Array) -> Array:
        """The length classes of some ascending rows."""
        if self.norms is None and len(rows) > _SOME:
            pages = np.count_nonzero(np.bincount(rows >> np.uint32(NORM_BITS)))
            if pages * 2 > len(self.index.root.fields[self.field_number].norms):
                self.norms = self.index.norms(self.field_number)
        return self.index.classes(self.field_number, rows) if self.norms is None else self.norms.take(rows)


class _Runner(NamedTuple):
    word: Word
    weight: np.float32
    kept: _Impacts


def _rows_of(one: Weighted) -> int:
    return one.word.count


def _few_kept(words: Sequence[_Runner], limit: int) -> tuple[Array, Array]:
    """The best of a few rows, by a loop, which is faster than the fixed cost of array operations.

    A row with only one of the words is among the best only if it is one of that word's champions.
    """
    worth: dict[int, float] = {}
    several = []
    for one in words:
        for row, more in zip(one.word.array().tolist(), (one.weight * one.kept.impact).tolist(), strict=True):
            if row in worth:
                # Rounded like all scores: each sum to 32 bits.
                worth[row] = float(np.float32(worth[row] + more))
                several.append(row)
            else:
                worth[row] = more
    for one in words:
        several += one.kept.best_rows[:limit].tolist()
    return _sorted({row: worth[row] for row in several}, limit)


def _best_of_two(rarer: _Runner, other: _Runner, universe: int, limit: int) -> tuple[Array, Array]:
    """The best rows for two words: those with both, and the champions of each."""
    held, rows = other.word, rarer.word.array()
    if len(rows) > _SOME and held.count * TESTED > universe:
        both = has(held.bits(), rows).nonzero()[0]
        at = held.array().searchsorted(rows.take(both))
    else:
        at, inside = found_in(held.array(), rows)
        both = inside.nonzero()[0]
        at = at.take(both)
    scores = rarer.weight * rarer.kept.impact.take(both) + other.weight * other.kept.impact.take(at)
    rows = rows.take(both)
    if len(rows) > max(limit, CHAMPIONS):
        # A champion that is left out here has the score of one word below, which is too low as well.
        some = best_of(scores, limit)
        rows, scores = rows.take(some), scores.take(some)
    worth: dict[int, float] = dict(zip(rows.tolist(), scores.tolist(), strict=True))
    for one in (rarer, other):
        best = (one.weight * one.kept.best[:limit]).tolist()
        for row, alone in zip(one.kept.best_rows[:limit].tolist(), best, strict=True):
            if row not in worth:
                worth[row] = alone
    return _sorted(worth, limit)


def _sorted(worth: dict[int, float], limit: int) -> tuple[Array, Array]:
    """The best of a few rows with their scores, ties in row order."""
    order = sorted((-score, row) for row, score in worth.items())[:limit]
    return np.array([-score for score, _ in order], np.float32), np.array(
        [row for _, row in order], np.uint32
    )


class _Race:
    """Finds the best rows of words whose impacts are cached, the rarest word first."""

    def __init__(self, words: Sequence[_Runner], norms: Array, limit: int) -> None:
        self.words = words
        self.norms = norms
        self.limit = limit
        self.scores, self.rows = np.zeros(0, np.float32), NO_ROWS
        self.low, self.last = np.float32(-1), 0
        """Score and row of the last of the best so far."""

    @cached_property
    def by_class(self) -> list[Array]:
        """The largest contribution of each word in rows of each length class."""
        return [one.weight * one.kept.by_class for one in self.words]

    def run(self) -> tuple[Array, Array]:
        words = self.words
        first = [
            one.word.array() if one.word.count <= _SMALL else one.word.array().take(one.kept.champions)
            for one in words
        ]
        rows = np.sort(np.concatenate(first))
        new = np.ones(len(rows), bool)
        np.not_equal(rows[1:], rows[:-1], out=new[1:])
        rows = rows.compress(new)
        scores = np.zeros(len(rows), np.float32)
        for one in words:
            _add(scores, one, rows, len(self.norms))
        self.take(rows, scores)
        tops = [float(one.weight * one.kept.most) for one in words]
        for number, one in enumerate(words):
            others = sum(tops[number + 1 :])
            if tops[number] + others < self.low * _SLACK:
                break
            if one.word.count > _SMALL:
                self.follow(number, others)
        return self.scores, self.rows

    def follow(self, at: int, others: float) -> None:
        """Score the rows of one word that can still be among the best; a sample raises the threshold."""
        one = self.words[at]
        kept = one.kept
        for step in (_SAMPLE, 1) if one.word.count > _MANY else (1,):
            need = (self.low - others) / one.weight * _SLACK
            if need > kept.most:
                return
            some = (kept.impact >= need).nonzero()[0] if need > 0 else np.arange(one.word.count)
            if step == 1 or len(some) >= _MANY:
                self.judge(at, some[::step])

    def judge(self, at: int, some: Array) -> None:
        """Score some rows of a word that have no earlier word.

        Bounds are summed like scores, from left to right: rounding is monotonic, so a bound is never below
        its score, and a later row with an equal score can be dropped without scoring it.
        """
        words, one = self.words, self.words[at]
        rows = one.word.array().take(some)
        scores = one.weight * one.kept.impact.take(some)
        classes = self.norms.take(rows)
        for following in range(at + 1, len(words) + 1):
            if self.low > 0:
                bound = scores
                for most in self.by_class[following:]:
                    bound = bound + most.take(classes)
                live = (bound >= self.low).nonzero()[0]
                if len(live) > _SOME:
                    tied = bound.take(live)
                    live = live.compress((tied > self.low) | (rows.take(live) < self.last))
                if len(live) < len(rows):
                    rows, scores, classes = rows.take(live), scores.take(live), classes.take(live)
            if not len(rows):
                return
            if following < len(words):
                _add(scores, words[following], rows, len(self.norms))
        for other in words[:at]:
            new = ~other.word.test(rows)
            rows, scores = rows.compress(new), scores.compress(new)
        if len(rows):
            self.take(rows, scores)

    def take(self, rows: Array, scores: Array) -> None:
        """Merge rows with their complete scores into the best so far."""
        if len(rows) > 8 * self.limit:
            cut = np.partition(scores, len(scores) - self.limit)[len(scores) - self.limit]
            some = (scores >= cut).nonzero()[0]
            rows, scores = rows[some], scores[some]
        if len(self.rows):
            rows, first = np.unique(np.concatenate([self.rows, rows]), return_index=True)
            scores = np.concatenate([self.scores, scores])[first]
        order = np.lexsort((rows, -scores))[: self.limit]
        self.scores, self.rows = scores[order], rows[order]
        if len(order) == self.limit:
            self.low, self.last = self.scores[-1], int(self.rows[-1])


def _add(scores: Array, one: _Runner, rows: Array, universe: int) -> None:
    """Add the impact of a word to the scores of some rows."""
    word, impact = one.word, one.kept.impact
    if len(rows) > _SOME and word.count * TESTED > universe:
        some = has(word.bits(), rows).nonzero()[0]
        scores[some] += one.weight * impact.take(word.array().searchsorted(rows.take(some)))
    else:
        at, inside = found_in(word.array(), rows)
        scores += one.weight * impact.take(at) * inside
