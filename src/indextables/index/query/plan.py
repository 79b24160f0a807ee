"""The parts of a query as one index evaluates them: candidate rows, certain rows, and scores.

Candidates may match, certain rows do. A part is exact when the two are the same, which is
decided before anything is read. Where they can differ (a phrase on a column without
positions, an identifier of which only the bucket is indexed, a range inside JSON), the
caller compares the candidates with their text. Negation swaps the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from indextables.errors import QueryError
from indextables.index.codec.blocks import Block, Entry
from indextables.index.codec.lengths import saturation
from indextables.index.codec.numbers import Array
from indextables.index.query.tree import Between, Exists, Matching, Words
from indextables.index.query.values import typed_between, value_mask
from indextables.index.read.global_positions import PhraseRows
from indextables.index.read.lookup import Index, Term
from indextables.index.read.ranking import Statistics, impacts_at, weight_of
from indextables.index.read.rowset import RowSet, RowSetLike, difference, everything, nothing
from indextables.index.read.words import WordPostings
from indextables.index.tokens import BEYOND, NULLS
from indextables.records import dataclass

ColumnValues: TypeAlias = Callable[[str], pa.Array]
Scored: TypeAlias = tuple[Array, Array]
"""For some rows: whether each matches, and its score, which is 0 where it does not."""
TermKey: TypeAlias = tuple[int, bytes]
"""A field number, and a word of that field."""
WordBounds: TypeAlias = tuple[int, bytes, bytes | None]
"""A field, the first word and the end of a range of words; None means up to the last."""


class Session:
    """What one search has read of one index so far: entries, words, ranges of words and phrases."""

    def __init__(self, index: Index, values: ColumnValues | None) -> None:
        self.index = index
        self.values = values
        self.statistics: Statistics | None = None
        self._entries: dict[TermKey, Entry | None] = {}
        self._words: dict[TermKey, WordPostings] = {}
        self._slices: dict[WordBounds, list[tuple[Block, int, int]]] = {}
        self.phrases: dict[int, PhraseRows] = {}
        """The rows of every phrase of the plan, by the identity of the part."""
        self.compared: dict[int, RowSetLike] = {}
        """The rows of every part that compares values, likewise."""

    def look_up(self, keys: Sequence[TermKey], spans: Sequence[WordBounds]) -> None:
        """Look up words and ranges of words, in one round trip."""
        index, root = self.index, self.index.root
        if index.add_remembered(keys, self._entries) and not spans:
            return
        keys = [key for key in keys if key not in self._entries]
        spans = [span for span in spans if span not in self._slices]
        if not keys and not spans:
            return
        key_blocks = [root.block_of(*key) for key in keys]
        span_blocks = [self.blocks_of(span) for span in spans]
        blocks = index.blocks([*(number for number in key_blocks if number >= 0), *chain(*span_blocks)])
        for key, number in zip(keys, key_blocks, strict=True):
            self._entries[key] = entry = None if number < 0 else blocks[number].find(key[1])
            index.remember(key, entry)
        for span, numbers in zip(spans, span_blocks, strict=True):
            self._slices[span] = _slices_of([blocks[number] for number in numbers], span)

    def blocks_of(self, span: WordBounds) -> range:
        """The numbers of the dictionary blocks that can hold words of a range."""
        field, low, high = span
        root = self.index.root
        first, last = root.block_of(field, low), root.block_of(field, BEYOND if high is None else high)
        return range(first, last + 1) if first >= 0 else range(0)

    def use_cached_words(self, keys: Sequence[TermKey]) -> bool:
        """Take words with complete lists from the cache, if all are there; returns whether they were."""
        index = self.index
        words: list[WordPostings] | None = index.cache.get_all(index.identity, keys) if keys else None
        if words is None or not all(word.whole for word in words):
            return False
        self._words = dict(zip(keys, words, strict=True))
        return True

    def entry(self, key: TermKey) -> Entry | None:
        """The entry of a word."""
        word = self._words.get(key)
        if word is not None:
            return word.entry
        if key not in self._entries:
            self.look_up([key], [])
        return self._entries[key]

    def word(self, key: TermKey) -> WordPostings | None:
        """A word, if the index has it."""
        word = self._words.get(key)
        if word is None:
            entry = self.entry(key)
            if entry is None:
                return None
            word = self._words[key] = self.index.word(*key, entry)
        return word

    def slices(self, span: WordBounds) -> list[tuple[Block, int, int]]:
        """A range of words as parts of dictionary blocks."""
        if span not in self._slices:
            self.look_up([], [span])
        return self._slices[span]

    def cache_words(self) -> None:
        """Cache what was decoded, for later searches."""
        if not self.index.cache.max_bytes:
            return
        for (field, text), word in self._words.items():
            if word.grown:
                self.index.cache_word(field, text, word)

    def statistics_for(self, terms: Sequence[Term]) -> Statistics:
        """The given statistics, or else those of this index."""
        if self.statistics is None:
            self.statistics = self.own_statistics(terms)
        return self.statistics

    def own_statistics(self, terms: Sequence[Term]) -> Statistics:
        """The statistics of this index for some words."""
        entries = {term: self.entry((self.index.spec.numbers[term[0], None], term[1])) for term in terms}
        frequencies = {term: 0 if entry is None else entry.frequency for term, entry in entries.items()}
        return Statistics(self.index.rows, self.index.tokens, frequencies)


def _slices_of(blocks: Sequence[Block], span: WordBounds) -> list[tuple[Block, int, int]]:
    """The words of a range as block, first index and end, from the blocks that cover it."""
    _, low, high = span
    end_word = BEYOND if high is None else high
    slices = []
    for at, block in enumerate(blocks):
        begin = block.lower_bound(low)[0] if at == 0 else 0
        end = block.lower_bound(end_word)[0] if at == len(blocks) - 1 else block.count
        if end > begin:
            slices.append((block, begin, end))
    return slices


class Plan:
    """A part of a query. By default it matches every row and scores 1."""

    exact = True
    counts_by_dictionary = False
    """Whether the dictionary and the root say how many rows match, so that no list is read for a count."""

    def keys(self) -> Sequence[TermKey]:
        """Words to look up."""
        return ()

    def spans(self) -> Sequence[WordBounds]:
        """Ranges of words to look up."""
        return ()

    def lists_to_read(self, session: Session) -> Sequence[WordPostings]:
        """Words whose lists are read completely before rows are computed."""
        del session
        return ()

    def terms(self) -> Sequence[Term]:
        """Words whose frequencies a score needs."""
        return ()

    def count(self, session: Session) -> int:
        """How many rows are candidates."""
        return self.candidates(session).count

    def candidates(self, session: Session) -> RowSetLike:
        """Rows that may match: no row that matches is missing."""
        return everything(session.index.rows)

    def certain(self, session: Session) -> RowSetLike:
        """Rows that certainly match."""
        return self.candidates(session) if self.exact else nothing(session.index.rows)

    @property
    def only_words(self) -> Mapping[OneTerm, float]:
        """Words and their boosts, if the part is an OR of plain words of one field; otherwise empty."""
        return {}

    def score(self, session: Session, rows: Array) -> Scored:
        """For some ascending rows, whether they match, and their scores; a part without words scores 1."""
        inside = self.candidates(session).test(rows)
        return inside, inside.astype(np.float32)


@dataclass(frozen=True)
class AllRows(Plan):
    """Every row."""

    exact: bool = True
    counts_by_dictionary = True

    def count(self, session: Session) -> int:
        return session.index.rows

    def score(self, session: Session, rows: Array) -> Scored:
        del session
        return np.ones(len(rows), bool), np.ones(len(rows), np.float32)


@dataclass(frozen=True)
class NotNull(Plan):
    """Rows with a value."""

    field: int
    counts_by_dictionary = True

    def keys(self) -> Sequence[TermKey]:
        return ((self.field, NULLS),)

    def count(self, session: Session) -> int:
        return session.index.rows - session.index.root.fields[self.field].nulls

    def candidates(self, session: Session) -> RowSetLike:
        every = everything(session.index.rows)
        if not session.index.root.fields[self.field].nulls:
            return every
        nulls = session.word((self.field, NULLS))
        return every if nulls is None else difference(every, nulls, session.index.rows)


@dataclass(frozen=True)
class ValueRange(Plan):
    """A range of a column of typed values."""

    field: int
    node: Between
    inside: bool | None
    """What the column's bounds say: all values are in the range, none is, or neither is known (None)."""
    exact: bool = True

    def candidates(self, session: Session) -> RowSetLike:
        rows = session.index.rows
        if self.inside is False:
            return nothing(rows)
        if self.inside or session.values is None:
            return NotNull(self.field).candidates(session)
        mask = typed_between(self.node, session.values(self.node.column))
        if isinstance(mask, pa.ChunkedArray):
            mask = mask.combine_chunks()
        if len(mask) != rows:
            raise QueryError(f"column {self.node.column!r} has {len(mask)} values for {rows} rows")
        return RowSet(rows, array=mask.to_numpy(zero_copy_only=False).nonzero()[0].astype(np.uint32))


@dataclass(frozen=True)
class ComparedRows(Plan):
    """Rows whose value of a column without a search field matches; it adds nothing to a score."""

    node: Words | Matching | Between | Exists
    exact: bool = True
    """Whether the values can be had and compared; else every row may match."""

    def candidates(self, session: Session) -> RowSetLike:
        rows = session.index.rows
        if not self.exact or session.values is None:
            return everything(rows)
        if id(self) not in session.compared:
            mask = value_mask(self.node, session.values(self.node.column))
            matching = mask.to_numpy(zero_copy_only=False).nonzero()[0]
            session.compared[id(self)] = RowSet(rows, array=matching.astype(np.uint32))
        return session.compared[id(self)]

    def score(self, session: Session, rows: Array) -> Scored:
        return self.candidates(session).test(rows), np.zeros(len(rows), np.float32)


@dataclass(frozen=True)
class OneTerm(Plan):
    """Rows with a word."""

    field: int
    column: str
    word: bytes
    exact: bool = True
    constant: bool = False
    """Scores 1 wherever it matches."""
    counts_by_dictionary = True

    @cached_property
    def key(self) -> TermKey:
        """The word and its field."""
        return self.field, self.word

    @property
    def only_words(self) -> Mapping[OneTerm, float]:
        return {} if self.constant else {self: 1.0}

    def keys(self) -> Sequence[TermKey]:
        return (self.key,)

    def terms(self) -> Sequence[Term]:
        return () if self.constant else ((self.column, self.word),)

    def lists_to_read(self, session: Session) -> Sequence[WordPostings]:
        word = session.word(self.key)
        return () if word is None else (word,)

    def count(self, session: Session) -> int:
        entry = session.entry(self.key)
        return 0 if entry is None else entry.frequency

    def candidates(self, session: Session) -> RowSetLike:
        return session.word(self.key) or nothing(session.index.rows)

    def score(self, session: Session, rows: Array) -> Scored:
        word = session.word(self.key)
        if word is None:
            return np.zeros(len(rows), bool), np.zeros(len(rows), np.float32)
        if self.constant:
            return super().score(session, rows)
        counts = word.counts()
        scores = np.zeros(len(rows), np.float32)
        inside = word.test(rows)
        matching = inside.nonzero()[0]
        if counts is not None:
            counts = counts[word.array().searchsorted(rows[matching])]
        scores[matching] = bm25(session, self.field, self.terms(), rows[matching], counts)
        return inside, scores


def bm25(session: Session, field: int, terms: Sequence[Term], rows: Array, counts: Array | None) -> Array:
    """The scores of rows with `counts` occurrences of a word, or of a phrase of several words."""
    statistics = session.statistics_for(terms)
    weight = weight_of(sum(statistics.idf(term) for term in terms))
    table = saturation(statistics.mean_length(terms[0][0]))
    return weight * impacts_at(counts, session.index.classes(field, rows), table)


def conjunction_lists(words: Sequence[WordPostings]) -> Sequence[WordPostings]:
    """The lists that an AND of words must read completely.

    If the rarest word's list is in the dictionary, only those pages of long lists are read that have its
    rows.
    """
    if not words:
        return ()
    missing = [word for word in words if not word.whole]
    if missing and min(words, key=_count).entry.inline is not None:
        return [word for word in missing if not word.cut]
    return missing


_count = attrgetter("count")
