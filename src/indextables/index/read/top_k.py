"""The top k rows by BM25 among the rows with any of several words of a field.

In come words with their weights, out go scores and rows, best first, ties in row order. Both ways
of doing it are MaxScore: words are followed from the rarest, which contributes most, and a row is
scored only while the words it may hold can still lift it above the k-th best score. A word that is
ranked repeatedly keeps its impact (its contribution to the score) in every row, which makes bounds
tighter and needs no list; otherwise common words are looked up in the rows of rarer ones, so that
they need not be read completely.

Invariant: scores and bounds are summed from the rarest word on, cached or not. Rounding is
monotonic, so a bound is never below the score it bounds, no tie is lost, and a score never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from indextables.index.codec.lengths import NORM_BITS, saturation
from indextables.index.codec.lists import has
from indextables.index.codec.numbers import Array
from indextables.index.read.lookup import Index
from indextables.index.read.ranking import (
    WeightedWord,
    impacts_at,
    kth_largest,
    max_impact_by_count,
    top_indexes,
)
from indextables.index.read.rowset import NO_ROWS, TESTED, find_in
from indextables.index.read.words import WordPostings
from indextables.records import dataclass

CACHED_AFTER = 2
"""A word's impacts are cached when it is ranked for this many times."""
BEST_CACHED = 64
"""Number of best rows cached per word."""
_SCORED_COMPLETELY = 512
"""Words in up to this many rows are scored completely."""
_SAMPLE_STEP = 16
"""Every this many candidates of a frequent word are scored first, to raise the threshold."""
_FREQUENT = 8192
_FIRST_SCORED = 4
"""Without cached impacts, this many times k rows are scored completely before others are ruled out."""
_MANY_ROWS = 256
_COUNTED_UP_TO = 256
"""From this many occurrences on, an impact counts as 1, which it nearly is."""
_SLACK = np.float32(1 - 2e-6)
"""Tolerance: the first filter divides, and must not lose a tie to rounding."""


def top_rows(
    index: Index, field_number: int, words: Sequence[WeightedWord], k: int, mean_length: float
) -> tuple[Array, Array]:
    """The best k rows with any of some words of a field: scores and rows, best first."""
    if len(words) > 1:
        words = sorted(words, key=_row_count)
    ranked = _with_impacts(index, field_number, words, mean_length)
    if ranked is None:
        if words:
            index.read_with_norms(words[0].word, field_number)
        return _FromLists(words, _Lengths(index, field_number), saturation(mean_length), k).run()
    if len(ranked) == 1:
        only = ranked[0]
        if k <= BEST_CACHED or only.word.count <= BEST_CACHED:
            return only.weight * only.impacts.best[:k], only.impacts.best_rows[:k]
    return _FromImpacts(ranked, index.norms(field_number), k).run()


def _row_count(weighted: WeightedWord) -> int:
    return weighted.word.count


class _TopK:
    """The best k rows so far. A row may be added twice, with the same score."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.scores, self.rows = np.zeros(0, np.float32), NO_ROWS
        self.threshold, self.last_row = np.float32(-1), 0
        """Score and row of the last of them; the score is negative while there are fewer than k."""

    def candidates(self, bounds: Array, rows: Array) -> Array:
        """The indexes of rows that can still be among the best; a tie must come before the last of these."""
        reaching = (bounds >= self.threshold).nonzero()[0]
        if len(reaching) > _MANY_ROWS:
            above = bounds.take(reaching) > self.threshold
            reaching = reaching.compress(above | (rows.take(reaching) < self.last_row))
        return reaching

    def add(self, rows: Array, scores: Array) -> None:
        """Merge rows with their complete scores."""
        if len(rows) > 8 * self.k:
            candidates = (scores >= kth_largest(scores, self.k)).nonzero()[0]
            rows, scores = rows.take(candidates), scores.take(candidates)
        rows, scores = np.append(self.rows, rows), np.append(self.scores, scores)
        order = np.lexsort((rows, -scores))
        if len(self.rows):
            ordered = rows.take(order)
            order = order[np.append(True, ordered[1:] != ordered[:-1])]
        order = order[: self.k]
        self.scores, self.rows = scores[order], rows[order]
        if len(order) == self.k:
            self.threshold, self.last_row = self.scores[-1], int(self.rows[-1])


# Words without cached impacts


class _Lengths:
    """The length classes of the rows of a field; after most pages were needed, this search holds all."""

    def __init__(self, index: Index, field_number: int) -> None:
        self.index, self.field_number = index, field_number
        self.norms: Array | None = None

    def classes(self, rows: Array) -> Array:
        """The length classes of some ascending rows."""
        if self.norms is None and len(rows) > _MANY_ROWS:
            pages = np.count_nonzero(np.bincount(rows >> np.uint32(NORM_BITS)))
            if pages * 2 > len(self.index.root.fields[self.field_number].norms):
                self.norms = self.index.norms(self.field_number)
        return self.index.classes(self.field_number, rows) if self.norms is None else self.norms.take(rows)


class _FromLists:
    """The top k of words without cached impacts, which come in from the rarest on."""

    def __init__(self, words: Sequence[WeightedWord], lengths: _Lengths, table: Array, k: int) -> None:
        self.words, self.classes, self.table = words, lengths.classes, table
        self.top = _TopK(k)
        self.most: Sequence[Any] = [weighted.weight for weighted in words]
        """The largest contribution of each word."""
        self.most_by_class: Sequence[Any] = self.most
        """The same in rows of each length class, if the largest counts of all words are known."""
        if words[0].word.cut and len(words) > 1:
            # All pages of all words will be needed: looking for the largest counts costs little more.
            self.most_by_class = [
                weighted.weight * _largest_impact(weighted.word, table) for weighted in words
            ]
            self.most = [by_class.max() for by_class in self.most_by_class]

    def run(self) -> tuple[Array, Array]:
        for number in range(len(self.words)):
            if self.bound(np.float32(0), number) < self.top.threshold:
                break
            self.follow(number)
        return self.top.scores, self.top.rows

    def bound(self, scores: Any, number: int, classes: Array | None = None) -> Any:
        """The most that scores in rows of these length classes can become with words from `number` on."""
        if classes is None or self.most_by_class is self.most:
            for most in self.most[number:]:
                scores = scores + most
        else:
            for by_class in self.most_by_class[number:]:
                scores = scores + by_class.take(classes)
        return scores

    def follow(self, number: int) -> None:
        """Score the candidates among the rows of a word that have none of the words before it."""
        weighted, top = self.words[number], self.top
        rows, counts = weighted.word.array(), weighted.word.counts()
        if top.threshold > 0:
            # What a row can score at most follows from its occurrences, before its length is read.
            most = weighted.weight * max_impact_by_count(self.table)
            if counts is not None:
                reaching = self.bound(most, number + 1) >= top.threshold
                candidates = reaching.take(counts, mode="clip").nonzero()[0]
                rows, counts = rows.take(candidates), counts.take(candidates)
            elif self.bound(most[1], number + 1) < top.threshold:
                return
        classes = self.classes(rows)
        scores = weighted.weight * impacts_at(counts, classes, self.table)
        last = number + 1 == len(self.words)
        if not last and top.threshold < 0 and len(rows) > 2 * _FIRST_SCORED * top.k:
            first = np.sort(top_indexes(scores, _FIRST_SCORED * top.k))
            self.score(number, rows.take(first), classes.take(first), scores.take(first))
            bounds = self.bound(scores, number + 1, classes)
            bounds[first] = -1
            candidates = top.candidates(bounds, rows)
            rows, classes, scores = rows.take(candidates), classes.take(candidates), scores.take(candidates)
        self.score(number, rows, classes, scores)

    def score(self, number: int, rows: Array, classes: Array, scores: Array) -> None:
        """Add the contributions of the words after `number`, ruling out rows before each."""
        top = self.top
        for following in range(number + 1, len(self.words) + 1):
            if top.threshold > 0:
                candidates = top.candidates(self.bound(scores, following, classes), rows)
                if len(candidates) < len(rows):
                    rows, classes = rows.take(candidates), classes.take(candidates)
                    scores = scores.take(candidates)
            if not len(rows):
                return
            if following < len(self.words):
                other = self.words[following]
                counts = other.word.counts_in(rows)
                present = counts.nonzero()[0]
                impacts = impacts_at(counts.take(present), classes.take(present), self.table)
                scores[present] += other.weight * impacts
        rows, scores = _without_earlier(self.words[:number], rows, scores)
        if len(rows):
            top.add(rows, scores)


def _largest_impact(word: WordPostings, table: Array) -> Array:
    """By length class, the impact of a word with the largest number of occurrences it has in any row."""
    count = np.float32(word.repeats()[1].max(initial=1))
    return count / (count + table) if count < _COUNTED_UP_TO else np.ones(len(table), np.float32)


def _without_earlier(
    earlier: Sequence[WeightedWord | _RankedWord], rows: Array, scores: Array
) -> tuple[Array, Array]:
    """Drop rows with a word that was followed before: they were scored then."""
    for weighted in earlier:
        new = ~weighted.word.test(rows)
        rows, scores = rows.compress(new), scores.compress(new)
    return rows, scores


# Words with cached impacts


@dataclass(frozen=True, slots=True)
class _Impacts:
    """The impact of a word in each of its rows, for one mean row length."""

    mean_length: float
    impact: Array
    best_rows: Array
    """The rows with the largest impacts, best first."""
    best: Array
    """The impacts of these rows."""
    max_by_class: Array
    """The largest impact in rows of each length class."""

    @classmethod
    def of(cls, word: WordPostings, norms: Array, mean_length: float) -> _Impacts:
        rows = word.array()
        classes = norms.take(rows)
        impact = impacts_at(word.counts(), classes, saturation(mean_length))
        max_by_class = np.zeros(256, np.float32)
        np.maximum.at(max_by_class, classes, impact)
        best_at = top_indexes(impact, BEST_CACHED)
        return cls(mean_length, impact, rows.take(best_at), impact.take(best_at), max_by_class)


class ImpactCache:
    """How often a word was ranked, and its impacts if these are cached; stays with the word."""

    __slots__ = ("impacts", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.impacts: _Impacts | None = None

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        return 3000 + (0 if self.impacts is None else int(self.impacts.impact.nbytes))


class _RankedWord(NamedTuple):
    word: WordPostings
    weight: np.float32
    impacts: _Impacts


def _with_impacts(
    index: Index, field_number: int, words: Sequence[WeightedWord], mean_length: float
) -> list[_RankedWord] | None:
    """The words with their cached impacts; None unless all were ranked before and may be cached."""
    total, again = 0, True
    for weighted in words:
        word = weighted.word
        if word.impact_cache is None:
            word.impact_cache = ImpactCache()
        word.impact_cache.uses += 1
        again = again and word.impact_cache.uses >= CACHED_AFTER
        total += word.count
    if not again or total * 12 > index.cache.max_bytes:
        return None
    ranked = []
    for weighted in words:
        word = weighted.word
        # Another thread may use another mean length at the same time.
        impacts = word.impact_cache.impacts
        if impacts is None or impacts.mean_length != mean_length:
            impacts = _Impacts.of(word, index.norms(field_number), mean_length)
            word.impact_cache.impacts = impacts
            word.grown = True
        ranked.append(_RankedWord(word, weighted.weight, impacts))
    return ranked


class _FromImpacts:
    """The top k of words with cached impacts, which come in from the rarest on."""

    def __init__(self, words: Sequence[_RankedWord], norms: Array, k: int) -> None:
        self.words, self.norms = words, norms
        self.top = _TopK(k)

    @cached_property
    def max_by_class(self) -> list[Array]:
        """The largest contribution of each word in rows of each length class."""
        return [ranked.weight * ranked.impacts.max_by_class for ranked in self.words]

    def run(self) -> tuple[Array, Array]:
        """Score the best rows of each word, for a threshold; then follow the words."""
        words = self.words
        first = [
            ranked.word.array() if ranked.word.count <= _SCORED_COMPLETELY else ranked.impacts.best_rows
            for ranked in words
        ]
        rows = np.unique(np.concatenate(first))
        scores = np.zeros(len(rows), np.float32)
        for ranked in words:
            _add_impacts(scores, ranked, rows, len(self.norms))
        self.top.add(rows, scores)
        most = [float(ranked.weight * ranked.impacts.best[0]) for ranked in words]
        for number, ranked in enumerate(words):
            others = sum(most[number + 1 :])
            if most[number] + others < self.top.threshold * _SLACK:
                break
            if ranked.word.count > _SCORED_COMPLETELY:
                self.follow(number, others)
        return self.top.scores, self.top.rows

    def follow(self, number: int, others: float) -> None:
        """Score the candidates of one word, which other words can lift by `others`; a sample first."""
        ranked = self.words[number]
        impacts = ranked.impacts
        for step in (_SAMPLE_STEP, 1) if ranked.word.count > _FREQUENT else (1,):
            needed = (self.top.threshold - others) / ranked.weight * _SLACK
            if needed > impacts.best[0]:
                return
            candidates = (
                (impacts.impact >= needed).nonzero()[0] if needed > 0 else np.arange(ranked.word.count)
            )
            if step == 1 or len(candidates) >= _FREQUENT:
                self.score(number, candidates[::step])

    def score(self, number: int, candidates: Array) -> None:
        """Score some rows of a word, given by index, that have no earlier word.

        Bounds are summed like scores, so a later row with an equal score can be dropped without scoring it.
        """
        words, ranked, top = self.words, self.words[number], self.top
        rows = ranked.word.array().take(candidates)
        scores = ranked.weight * ranked.impacts.impact.take(candidates)
        classes = self.norms.take(rows)
        for following in range(number + 1, len(words) + 1):
            if top.threshold > 0:
                bound = scores
                for most in self.max_by_class[following:]:
                    bound = bound + most.take(classes)
                reaching = top.candidates(bound, rows)
                if len(reaching) < len(rows):
                    rows, scores = rows.take(reaching), scores.take(reaching)
                    classes = classes.take(reaching)
            if not len(rows):
                return
            if following < len(words):
                _add_impacts(scores, words[following], rows, len(self.norms))
        rows, scores = _without_earlier(words[:number], rows, scores)
        if len(rows):
            top.add(rows, scores)


def _add_impacts(scores: Array, ranked: _RankedWord, rows: Array, universe: int) -> None:
    """Add the contribution of a word to the scores of some ascending rows."""
    word, impact = ranked.word, ranked.impacts.impact
    if len(rows) > _MANY_ROWS and word.count * TESTED > universe:
        present = has(word.bits(), rows).nonzero()[0]
        scores[present] += ranked.weight * impact.take(word.array().searchsorted(rows.take(present)))
    else:
        at, inside = find_in(word.array(), rows)
        scores += ranked.weight * impact.take(at) * inside
