"""Query parts for ranges of words, patterns and phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from indextables.index.codec.blocks import Block
from indextables.index.codec.lists import has, pack, ranks
from indextables.index.codec.numbers import Array, unframe, unplanes
from indextables.index.query.patterns import Pattern
from indextables.index.query.plan import Key, Plan, Scored, Session, Span, bm25, conjunction_lists
from indextables.index.read.global_positions import NO_PHRASE, PhraseRows, has_global_positions
from indextables.index.read.lookup import Term
from indextables.index.read.phrases import OneWord, PhrasePart, find_phrase, find_words
from indextables.index.read.rowset import NO_ROWS, TESTED, Rows, RowSet, find_in, union
from indextables.index.read.words import Word, read_lists
from indextables.index.tokens import GAPS, ID_MARK, with_spaces
from indextables.records import dataclass

Slice: TypeAlias = tuple[Block, int, int]
"""Consecutive words of a block."""


@dataclass(frozen=True)
class WordRange(Plan):
    """Rows with a word in a range: with a prefix, or within bounds; or with the `whole` word."""

    field: int
    low: bytes
    high: bytes | None
    exact: bool = True
    whole: bytes | None = None

    @property
    def span(self) -> Span:
        """The range."""
        return self.field, self.low, self.high

    def keys(self) -> Sequence[Key]:
        """See Plan."""
        return () if self.whole is None else ((self.field, self.whole),)

    def spans(self) -> Sequence[Span]:
        """See Plan."""
        return (self.span,)

    def long_words(self, at: Session) -> list[Word]:
        """The words of the range whose lists are outside the dictionary, and the whole word."""
        found = [] if self.whole is None else [at.word((self.field, self.whole))]
        for block, begin, end in at.slices(self.span):
            a, b = np.searchsorted(block.columns.long, (begin, end))
            found += [Word(at.index, block.entry(int(place))) for place in block.columns.long[a:b]]
        return [word for word in found if word is not None]

    def upper(self, at: Session) -> Rows:
        """See Plan."""
        return self.rows_of(at, self.long_words(at))

    def rows_of(self, at: Session, words: Sequence[Word]) -> Rows:
        """The rows of the range, of which these are the words with lists outside the dictionary."""
        universe = at.index.rows
        read_lists(at.index, [(word, None) for word in words])
        parts: list[Rows] = list(words)
        short = [block.short_rows(begin, end)[0] for block, begin, end in at.slices(self.span)]
        held = [rows for rows in short if len(rows)]
        if held:
            parts.append(_scattered(held, universe))
        return union(parts, universe)


@dataclass(frozen=True)
class FittingWords(Plan):
    """Rows with a word that matches a pattern; all words with the pattern's prefix are tested."""

    field: int
    low: bytes
    high: bytes | None
    pattern: Pattern
    before: bytes = b""
    """The text before the words themselves: the path of a JSON value."""
    ids: bool = False
    """Whether the words include buckets of identifiers."""

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Not exact with buckets: a bucket is spelled like a word that a text might contain."""
        return not self.ids

    @property
    def span(self) -> Span:
        """The range."""
        return self.field, self.low, self.high

    def spans(self) -> Sequence[Span]:
        """See Plan."""
        return (self.span,)

    def upper(self, at: Session) -> Rows:
        """See Plan."""
        return self._rows(at, buckets=True)

    def lower(self, at: Session) -> Rows:
        """See Plan."""
        return self._rows(at, buckets=False)

    def _rows(self, at: Session, *, buckets: bool) -> Rows:
        universe = at.index.rows
        long: list[Word] = []
        short: list[Array] = []
        for (block, begin, end), fits in self._looked_at(at.slices(self.span), buckets=buckets):
            places = fits.nonzero()[0] + begin
            if not len(places):
                continue
            is_long = np.isin(places, block.columns.long, assume_unique=True)
            long += [Word(at.index, block.entry(int(place))) for place in places[is_long]]
            if not is_long.all():
                held, sizes = block.short_rows(begin, end)
                inline = block.columns.inline_lengths[begin:end] > 0
                short.append(held[np.repeat(fits[inline], sizes)])
        read_lists(at.index, [(word, None) for word in long])
        parts: list[Rows] = list(long)
        if any(map(len, short)):
            parts.append(_scattered(short, universe))
        return union(parts, universe)

    def _looked_at(self, slices: Sequence[Slice], *, buckets: bool) -> Iterator[tuple[Slice, Array]]:
        """Which words of every slice match; the words of many blocks are tested together."""
        waiting: list[Slice] = []
        words: list[bytes] = []
        for number, (block, begin, end) in enumerate(slices, start=1):
            waiting.append((block, begin, end))
            words += block.words()[begin:end]
            if len(words) >= _WORDS_AT_ONCE or number == len(slices):
                fits, first = self._fitting(words, buckets=buckets), 0
                for one in waiting:
                    yield one, fits[first : first + one[2] - one[1]]
                    first += one[2] - one[1]
                waiting, words = [], []

    def _fitting(self, words: list[bytes], *, buckets: bool) -> Array:
        plain = [word[len(self.before) :] for word in words]
        if self.before:
            plain = [with_spaces(word.decode()).encode() for word in plain]
        fits = self.pattern.matches(pa.array(plain, pa.binary()).cast(pa.string()))
        if self.ids and not buckets:
            fits &= ~np.fromiter((word.startswith(_BUCKET) for word in words), bool, len(words))
        return fits


_BUCKET = ID_MARK.encode()
_WORDS_AT_ONCE = 65_536


def _scattered(parts: Sequence[Array], universe: int) -> RowSet:
    """A set of rows from rows in any order, possibly repeated."""
    rows = np.concatenate(parts)
    if len(rows) * 64 > universe:
        flags = np.zeros((universe + 63) // 64 * 64, np.uint8)
        flags[rows] = 1
        return RowSet(universe, bits=np.packbits(flags, bitorder="little"))
    return RowSet(universe, array=np.unique(rows))


class AnyOfRange:
    """A range of words in place of one word of a phrase."""

    def __init__(self, plan: WordRange, at: Session) -> None:
        self.plan, self.at = plan, at
        self._long = plan.long_words(at)
        self._rows: Rows | None = None

    def rows(self) -> Rows:
        """See phrases.Part."""
        if self._rows is None:
            self._rows = self.plan.rows_of(self.at, self._long)
        return self._rows

    def words(self) -> Sequence[Word]:
        """See phrases.Part."""
        return self._long

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """See phrases.Part. The words are put together before their rows are looked up, once for all."""
        read_lists(self.at.index, [(word, pages if word.cut else None) for word in self._long])
        held, places = [NO_ROWS], [NO_ROWS]
        for word in self._long:
            some, counts, positions = word.occurrences(pages)
            held.append(some if counts is None else some.repeat(counts))
            places.append(positions)
        chosen = _Chosen(rows, self.at.index.rows)
        for some, positions in self._short(chosen):
            held.append(some)
            places.append(positions)
        inside, number = chosen.numbers(np.concatenate(held))
        # One number for row and position, since these are sorted many times as quickly.
        both = np.sort(number << 32 | np.concatenate(places).take(inside).astype(np.int64))
        return both >> 32, both & 0xFFFFFFFF

    def _short(self, chosen: _Chosen) -> Iterator[tuple[Array, Array]]:
        """Rows and positions of the words with lists in the dictionary, from blocks with a chosen row."""
        slices = [(*one, *one[0].short_rows(*one[1:])) for one in self.at.slices(self.plan.span)]
        some = [one for one in slices if len(chosen.numbers(one[3])[0])]
        ranges = [
            (int(offset), int(length)) for offset, length in (one[0].columns.short_positions for one in some)
        ]
        data = self.at.index.read_piece("positions", ranges) if ranges else ()
        for (block, begin, end, held, sizes), (offset, _), raw in zip(some, ranges, data, strict=True):
            at = block.position_at
            positions = unplanes(unframe(raw, offset, "positions"))[int(at[begin]) : int(at[end])]
            counts = block.short_counts(begin, end, sizes)
            yield held if counts is None else held.repeat(counts), positions


class _Chosen:
    """Some ascending rows, for looking up others among them."""

    def __init__(self, rows: Array, universe: int) -> None:
        self._rows = rows
        self._bits = pack(rows, universe) if len(rows) * TESTED > universe else None

    def numbers(self, held: Array) -> tuple[Array, Array]:
        """Which of some rows are chosen, and the index of each of these among the chosen ones."""
        if self._bits is None:
            at, found = find_in(self._rows, held)
            inside = found.nonzero()[0]
            return inside, at.take(inside)
        inside = has(self._bits, held).nonzero()[0]
        return inside, ranks(self._bits, held.take(inside))


@dataclass(frozen=True)
class InOrder(Plan):
    """Rows in which words follow each other."""

    field: int
    column: str
    words: tuple[bytes, ...]
    slop: int = 0
    last: WordRange | None = None
    gaps: bool = False

    def keys(self) -> Sequence[Key]:
        """See Plan."""
        return self._keys

    @cached_property
    def _word_keys(self) -> tuple[Key, ...]:
        return tuple((self.field, word) for word in self.words)

    @cached_property
    def _keys(self) -> Sequence[Key]:
        more = ((self.field, GAPS),) if self.gaps and self.slop else ()
        return self._word_keys + more + tuple(self.last.keys() if self.last is not None else ())

    def spans(self) -> Sequence[Span]:
        """See Plan."""
        return () if self.last is None else self.last.spans()

    def terms(self) -> Sequence[Term]:
        """See Plan."""
        return tuple((self.column, word) for word in self.words)

    def wanted(self, at: Session) -> Sequence[Word]:
        """See Plan."""
        held = [at.word((self.field, word)) for word in self.words]
        words = [word for word in held if word is not None]
        if len(words) < len(held) or all(map(has_global_positions, words)):
            return ()
        return conjunction_lists(words)

    def phrase_rows(self, at: Session) -> PhraseRows:
        """The rows of the phrase, and its number of occurrences in each; computed once in a search."""
        phrase: PhraseRows | None = at.phrases.get(id(self))
        if phrase is None:
            phrase = at.phrases[id(self)] = self._find(at)
        return phrase

    def _find(self, at: Session) -> PhraseRows:
        words = [word for key in self._word_keys if (word := at.word(key)) is not None]
        if len(words) < len(self.words):
            return NO_PHRASE
        if self.last is None and not self.slop:
            return find_words(at.index, self.field, words)
        parts: list[PhrasePart] = [OneWord(word) for word in words]
        if self.last is not None:
            parts.append(AnyOfRange(self.last, at))
        gaps = at.word((self.field, GAPS)) if self.gaps and self.slop else None
        return find_phrase(at.index, parts, slop=self.slop, gaps=gaps)

    def upper(self, at: Session) -> Rows:
        """See Plan."""
        return RowSet(at.index.rows, array=self.phrase_rows(at).rows)

    def score(self, at: Session, rows: Array) -> Scored:
        """See Plan."""
        phrase = self.phrase_rows(at)
        number, inside = find_in(phrase.rows, rows)
        matching = inside.nonzero()[0]
        scores = np.zeros(len(rows), np.float32)
        counts = phrase.counts[number[matching]]
        scores[matching] = bm25(at, self.field, self.terms(), rows[matching], counts)
        return inside, scores
