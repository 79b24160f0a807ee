"""The best rows for several words of which nothing is cached, if most rows hold each word only once.

Then the score of a row depends only on which of the words it holds and on its length
class. So the sets "these words and no others" are visited in the order of the highest
score they allow, and within a set the shortest rows come first; a set that cannot reach
the last of the best is not computed. Rows that hold a word more than once are few and
scored individually; a row that repeats one word only if its score there, with all other
words once, can still reach.

Scores and bounds are summed in the order of the words: rounding is monotonic, so a bound
is never below the score it bounds. Ties are in row order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indextables.index.codec.lists import has, pack, unpack
from indextables.index.codec.numbers import Array
from indextables.index.read.ranking import Weighted, impacts_at
from indextables.index.read.rowset import NO_ROWS, Rows, RowSet, difference, everything, intersection

MOST_WORDS = 8
"""With more words there are too many sets."""
_RARE = 8
"""Fewer than one in this many rows may repeat a word."""


def are_sets(words: Sequence[Weighted]) -> bool:
    """Whether few enough rows repeat a word."""
    if len(words) > MOST_WORDS:
        return False
    repeats = sum(len(one.word.repeats()[0]) for one in words)
    return repeats * _RARE < sum(one.word.count for one in words)


def best_by_sets(words: Sequence[Weighted], norms: Array, table: Array, limit: int) -> tuple[Array, Array]:
    """The best rows with any of some words: scores and rows, best first."""
    return _Sets(sorted(words, key=lambda one: one.word.count), norms, table, limit).run()


class _Ranked:
    """One of the words of a ranking."""

    __slots__ = ("often", "once", "repeated", "repeating", "weight", "word")

    def __init__(self, one: Weighted, table: Array, rows: int) -> None:
        self.word = one.word
        self.weight = one.weight
        self.once = one.weight * (1 / (1 + table)).astype(np.float32)
        """The contribution of one occurrence, by length class."""
        places, self.often = one.word.repeats()
        self.repeating = one.word.array().take(places) if len(places) else NO_ROWS
        """The rows with more than one occurrence."""
        self.repeated = pack(self.repeating, rows) if len(places) else None

    def worth(self, rows: Array, classes: Array, table: Array) -> Array:
        """The contribution of the word in some ascending rows; 0 where it is absent."""
        found: Array = self.once.take(classes) * self.word.test(rows)
        if self.repeated is not None:
            at = has(self.repeated, rows).nonzero()[0]
            if len(at):
                often = self.often.take(self.repeating.searchsorted(rows.take(at)))
                found[at] = self.weight * impacts_at(often, classes.take(at), table)
        return found


class _Sets:
    """Finds the best rows by sets of rows with the same words."""

    def __init__(self, words: Sequence[Weighted], norms: Array, table: Array, limit: int) -> None:
        self.words = [_Ranked(one, table, len(norms)) for one in words]
        self.norms, self.table, self.limit = norms, table, limit
        self.scores, self.rows = np.zeros(0, np.float32), NO_ROWS
        self.low = np.float32(-1)
        """The score of the last of the best; negative while there are too few."""
        self.shortest = int(norms.min(initial=255))

    def run(self) -> tuple[Array, Array]:
        total = len(self.norms)
        once: Rows = everything(total)
        several = None
        for one in self.words:
            if one.repeated is not None:
                either = one.repeated if several is None else several[0] | one.repeated
                both = one.repeated[:0] if several is None else several[0] & one.repeated
                more = both if several is None or not len(several[1]) else several[1] | both
                several = either, more
        if several is not None:
            once = RowSet(total, bits=once.bits() & ~several[0])
        self.descend(0, once, ())
        if several is not None:
            if len(several[1]):
                self.judge(unpack(several[1]))
            self.repeats(several[1])
        return self.scores, self.rows

    def most(self, chosen: Sequence[int]) -> np.float32:
        """The highest score of a row with one occurrence of each of these words."""
        found = np.float32(0)
        for number in chosen:
            found = found + self.words[number].once[self.shortest]
        return found

    def descend(self, number: int, rows: Rows, chosen: tuple[int, ...]) -> None:
        """Visit the sets of rows that hold the chosen words among those before `number`."""
        if number == len(self.words):
            if chosen:
                self.take_set(rows.array(), chosen)
            return
        rest = tuple(range(number + 1, len(self.words)))
        word = self.words[number].word
        if not self.most((*chosen, number, *rest)) < self.low:
            inside = intersection([rows, word], len(self.norms))
            if inside.count:
                self.descend(number + 1, inside, (*chosen, number))
        if (chosen or rest) and not self.most((*chosen, *rest)) < self.low:
            outside = difference(rows, word, len(self.norms))
            if outside.count:
                self.descend(number + 1, outside, chosen)

    def take_set(self, rows: Array, chosen: Sequence[int]) -> None:
        """Rows with one occurrence of each chosen word and no other word: the shortest are the best."""
        if not len(rows):
            return
        worth = np.zeros(256, np.float32)
        for number in chosen:
            worth += self.words[number].once
        classes = self.norms.take(rows)
        if len(rows) > self.limit:
            # Length classes of equal contribution are one level: of its rows the first ones are wanted.
            levels = np.zeros(256, np.uint8)
            np.cumsum(worth[1:] < worth[:-1], out=levels[1:])
            held = levels.take(classes)
            last = int(np.bincount(held, minlength=256).cumsum().searchsorted(self.limit))
            better = (held < last).nonzero()[0]
            some = np.append(better, (held == last).nonzero()[0][: self.limit - len(better)])
            rows, classes = rows.take(some), classes.take(some)
        self.take(rows, worth.take(classes))

    def repeats(self, several: Array) -> None:
        """Rows that repeat one word and hold the others at most once."""
        for number, one in enumerate(self.words):
            if one.repeated is None:
                continue
            alone = (~has(several, one.repeating)).nonzero()[0] if len(several) else slice(None)
            rows, often = one.repeating[alone], one.often[alone]
            classes = self.norms.take(rows)
            bound = np.zeros(len(rows), np.float32)
            for place, other in enumerate(self.words):
                if place == number:
                    bound += one.weight * impacts_at(often, classes, self.table)
                else:
                    bound += other.once.take(classes)
            live = (bound >= self.low).nonzero()[0]
            if len(live):
                self.judge(rows.take(live))

    def judge(self, rows: Array) -> None:
        """Score some rows, whatever words they hold."""
        classes = self.norms.take(rows)
        scores = np.zeros(len(rows), np.float32)
        for one in self.words:
            scores += one.worth(rows, classes, self.table)
        self.take(rows, scores)

    def take(self, rows: Array, scores: Array) -> None:
        """Merge rows with their complete scores into the best so far; no row comes twice."""
        live = (scores >= self.low).nonzero()[0]
        if len(live) > 8 * self.limit:
            some = scores.take(live)
            cut = np.partition(some, len(some) - self.limit)[len(some) - self.limit]
            live = live.compress(some >= cut)
        if not len(live):
            return
        rows, scores = np.append(self.rows, rows.take(live)), np.append(self.scores, scores.take(live))
        order = np.lexsort((rows, -scores))[: self.limit]
        self.scores, self.rows = scores[order], rows[order]
        if len(order) == self.limit:
            self.low = self.scores[-1]
