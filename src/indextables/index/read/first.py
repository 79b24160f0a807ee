"""The best rows for several words of which nothing is cached, starting from the rarest.

The rarest word comes first because it contributes most. Once enough rows are scored, a
row can be among the best only if the words it may hold, each at its maximum, reach the
last of these. So common words are mostly looked up in the rows of rarer ones and need not
be read completely.

Scores and bounds are summed in the order of the words: rounding is monotonic, so a bound
is never below the score it bounds. Ties are in row order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.index.read.ranking import Weighted, best_of, impacts_at, most_by_count
from indextables.index.read.rowset import NO_ROWS
from indextables.index.read.words import Word

_SAMPLE = 4
"""This many times the wanted rows are scored completely before others are ruled out."""


def best_of_few(
    words: Sequence[Weighted], classes: Callable[[Array], Array], table: Array, limit: int
) -> tuple[Array, Array]:
    """The same for words in few rows, all of which are scored."""
    rows, counts = _counted([one.word for one in words])
    lengths = classes(rows)
    scores = np.zeros(len(rows), np.float32)
    for one, often in zip(words, counts, strict=True):
        scores += one.weight * impacts_at(often, lengths, table)
    at = best_of(scores, limit)
    return scores[at], rows[at]


def _counted(words: Sequence[Word]) -> tuple[Array, list[Array | None]]:
    """The rows with any of some words, and how often each word is in each; None if once in all."""
    held = [word.array() for word in words]
    if len(held) == 1:
        return held[0], [words[0].counts()]
    rows = np.sort(np.concatenate(held))
    new = np.ones(len(rows), bool)
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    rows = rows.compress(new)
    counts: list[Array | None] = []
    for word, some in zip(words, held, strict=True):
        often = np.zeros(len(rows), np.uint32)
        mine = word.counts()
        often[rows.searchsorted(some)] = 1 if mine is None else mine
        counts.append(often)
    return rows, counts


def best_from_rarest(
    words: Sequence[Weighted], classes: Callable[[Array], Array], table: Array, limit: int
) -> tuple[Array, Array]:
    """The best rows with any of some words: scores and rows, best first."""
    return _FromRarest(sorted(words, key=lambda one: one.word.count), classes, table, limit).run()


class _FromRarest:
    def __init__(
        self, words: Sequence[Weighted], classes: Callable[[Array], Array], table: Array, limit: int
    ) -> None:
        self.words, self.classes, self.table, self.limit = words, classes, table, limit
        self.scores, self.rows = np.zeros(0, np.float32), NO_ROWS
        self.low = np.float32(-1)
        """The score of the last of the best; negative while there are too few."""

    def run(self) -> tuple[Array, Array]:
        for at in range(len(self.words)):
            if self.bound(np.float32(0), at) < self.low:
                break
            self.follow(at)
        return self.scores, self.rows

    def bound(self, scores: Any, at: int) -> Any:
        """The most that scores can become with all words from `at` on."""
        for one in self.words[at:]:
            scores = scores + one.weight
        return scores

    def follow(self, at: int) -> None:
        """Score the rows of a word that have none of the words before it."""
        one = self.words[at]
        rows, often = one.word.array(), one.word.counts()
        if self.low > 0:
            # What a row can score at most is known from its occurrences, before its length is read.
            most = one.weight * most_by_count(self.table)
            if often is not None:
                live = (self.bound(most, at + 1) >= self.low).take(often, mode="clip").nonzero()[0]
                rows, often = rows.take(live), often.take(live)
            elif self.bound(most[1], at + 1) < self.low:
                return
        classes = self.classes(rows)
        scores = one.weight * impacts_at(often, classes, self.table)
        if self.low < 0 and len(rows) > 2 * _SAMPLE * self.limit:
            first = np.sort(best_of(scores, _SAMPLE * self.limit))
            self.judge(at, rows.take(first), classes.take(first), scores.take(first))
            rest = np.ones(len(rows), bool)
            rest[first] = False
            rest &= self.bound(scores, at + 1) >= self.low
            some = rest.nonzero()[0]
            rows, classes, scores = rows.take(some), classes.take(some), scores.take(some)
        self.judge(at, rows, classes, scores)

    def judge(self, at: int, rows: Array, classes: Array, scores: Array) -> None:
        """Add the contributions of the words after `at`, ruling out rows before each."""
        for following in range(at + 1, len(self.words) + 1):
            if self.low > 0:
                live = (self.bound(scores, following) >= self.low).nonzero()[0]
                if len(live) < len(rows):
                    rows, classes, scores = rows.take(live), classes.take(live), scores.take(live)
            if not len(rows):
                return
            if following < len(self.words):
                other = self.words[following]
                often = other.word.often(rows)
                some = often.nonzero()[0]
                scores[some] += other.weight * impacts_at(often.take(some), classes.take(some), self.table)
        for earlier in self.words[:at]:
            new = ~earlier.word.test(rows)
            rows, scores = rows.compress(new), scores.compress(new)
        self.take(rows, scores)

    def take(self, rows: Array, scores: Array) -> None:
        """Merge rows with their complete scores into the best so far; no row comes twice."""
        if not len(rows):
            return
        if len(rows) > 8 * self.limit:
            cut = np.partition(scores, len(scores) - self.limit)[len(scores) - self.limit]
            some = (scores >= cut).nonzero()[0]
            rows, scores = rows.take(some), scores.take(some)
        rows, scores = np.append(self.rows, rows), np.append(self.scores, scores)
        order = np.lexsort((rows, -scores))[: self.limit]
        self.scores, self.rows = scores[order], rows[order]
        if len(order) == self.limit:
            self.low = self.scores[-1]
