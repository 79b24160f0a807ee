"""BM25: the contribution of a word to the score of a row.

The statistics may be those of this index or of a whole table; scores equal tantivy's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from indextables.index.codec.lengths import K1, length_classes
from indextables.index.codec.numbers import Array
from indextables.index.read.live_rows import LiveRows
from indextables.index.read.lookup import Index, Term
from indextables.index.read.words import WordPostings, read_lists
from indextables.records import dataclass

_SHORTEST = length_classes(np.arange(256))
"""By number of occurrences, the length class of a row that holds nothing else."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs of all rows that are ranked against each other."""

    rows: int
    tokens: Mapping[str, int] = field(default_factory=dict)
    """By column."""
    frequencies: Mapping[Term, int] = field(default_factory=dict)

    def plus(self, other: Statistics) -> Statistics:
        """The sum of both."""
        return Statistics(
            self.rows + other.rows, _sum(self.tokens, other.tokens), _sum(self.frequencies, other.frequencies)
        )

    def mean_length(self, column: str) -> float:
        """The average number of tokens per row."""
        return self.tokens.get(column, 0) / self.rows if self.rows else 0.0

    def idf(self, term: Term) -> float:
        """The inverse document frequency of a word: large for rare words."""
        frequency = self.frequencies.get(term, 0)
        return math.log(1 + (self.rows - frequency + 0.5) / (frequency + 0.5))


def _sum(one: Mapping[Any, int], other: Mapping[Any, int]) -> dict[Any, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def statistics_of_terms(index: Index, terms: Sequence[Term]) -> Statistics:
    """The statistics of one index for some words; of its live rows, where it has others."""
    if index.live is not None:
        return _live_statistics(index, index.live, terms)
    frequencies = index.frequencies(terms)
    return Statistics(index.rows, dict(index.tokens), dict(zip(terms, frequencies, strict=True)))


def _live_statistics(index: Index, live: LiveRows, terms: Sequence[Term]) -> Statistics:
    """The same, for which the lists of the words are read: the dictionary counts hidden rows too."""
    numbers = index.spec.numbers
    indexed = [term for term in terms if (term[0], None) in numbers]
    keys = [(numbers[column, None], word) for column, word in indexed]
    words = {
        term: index.word(*key, entry)
        for term, key, entry in zip(indexed, keys, index.entries(keys), strict=True)
        if entry is not None
    }
    read_lists(index, [(word, None) for word in words.values()])
    counts = {term: len(live.numbers(word.array())) for term, word in words.items()}
    return Statistics(live.count, dict(live.tokens), {term: counts.get(term, 0) for term in terms})


def weight_of(idf: float, boost: float = 1.0) -> np.float32:
    """The largest score a word can contribute."""
    return np.float32(idf * (1 + K1) * boost)


def impacts_at(counts: Array | None, classes: Array, table: Array) -> Array:
    """The saturated occurrences of a word in rows of some length classes."""
    if counts is None:
        once: Array = (1 / (1 + table)).astype(np.float32).take(classes)
        return once
    times = counts.astype(np.float32)
    return times / (times + table.take(classes))


def max_impact_by_count(table: Array) -> Array:
    """By number of occurrences, the impact in a row of nothing else; the last is for all above."""
    times = np.arange(256, dtype=np.float32)
    most: Array = times / (times + table.take(_SHORTEST))
    most[-1] = 1
    return most


def top_indexes(scores: Array, k: int) -> Array:
    """The indexes of the k largest numbers, largest first, ties in order."""
    at = np.arange(len(scores))
    if len(scores) > k:
        cut = kth_largest(scores, k)
        above = (scores > cut).nonzero()[0]
        level = (scores == cut).nonzero()[0][: k - len(above)]
        at = np.concatenate([above, level])
    order: Array = at[np.lexsort((at, -scores[at]))]
    return order


def kth_largest(scores: Array, k: int) -> Any:
    """The k-th largest of at least k numbers."""
    stretch = len(scores) // (2 * k)
    if stretch > 1:
        # Scores with many ties are partitioned slowly. The k-th largest of the maxima of 2k stretches is not
        # above the k-th largest number, and few numbers reach it.
        maxima = scores[: stretch * 2 * k].reshape(2 * k, stretch).max(axis=1)
        scores = scores[scores >= np.partition(maxima, k)[k]]
    return -np.partition(-scores, k - 1)[k - 1]


@dataclass(frozen=True, slots=True)
class WeightedWord:
    """A word and its weight."""

    word: WordPostings
    weight: np.float32
