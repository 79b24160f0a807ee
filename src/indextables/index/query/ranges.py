"""Query parts for ranges of words, patterns and phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from indextables.index.codec.lists import has, pack, ranks
from indextables.index.codec.numbers import Array, unframe, unplanes
from indextables.index.query.patterns import Pattern
from indextables.index.query.plan import Plan, Scored, Session, TermKey, WordBounds, bm25, conjunction_lists
from indextables.index.read.global_positions import NO_PHRASE, PhraseRows, has_global_positions
from indextables.index.read.lookup import Term
from indextables.index.read.phrases import OneWord, PhrasePart, find_phrase, find_words
from indextables.index.read.rowset import NO_ROWS, TESTED, RowSet, RowSetLike, find_in, union
from indextables.index.read.words import WordPostings, read_lists
from indextables.index.tokens import BEYOND, GAPS, ID_MARK, with_spaces
from indextables.lazy import pc
from indextables.model.arrays import from_values, truths, whole
from indextables.records import dataclass


@dataclass(frozen=True)
class WordRange(Plan):
    """Rows with a word in a range: with a prefix, or within bounds; or with the `whole` word."""

    field: int
    low: bytes
    high: bytes | None
    exact: bool = True
    whole: bytes | None = None

    @property
    def span(self) -> WordBounds:
        """The range."""
        return self.field, self.low, self.high

    def keys(self) -> Sequence[TermKey]:
        return () if self.whole is None else ((self.field, self.whole),)

    def spans(self) -> Sequence[WordBounds]:
        return (self.span,)

    def long_words(self, session: Session) -> list[WordPostings]:
        """The words of the range whose lists are outside the dictionary, and the whole word."""
        words = [] if self.whole is None else [session.word((self.field, self.whole))]
        for block, begin, end in session.slices(self.span):
            a, b = np.searchsorted(block.columns.long, (begin, end))
            words += [
                WordPostings(session.index, block.entry(int(number))) for number in block.columns.long[a:b]
            ]
        return [word for word in words if word is not None]

    def candidates(self, session: Session) -> RowSetLike:
        return self.rows_of(session, self.long_words(session))

    def rows_of(self, session: Session, long_words: Sequence[WordPostings]) -> RowSetLike:
        """The rows of the range; `long_words` are its words with lists outside the dictionary."""
        universe = session.index.rows
        read_lists(session.index, [(word, None) for word in long_words])
        parts: list[RowSetLike] = list(long_words)
        short = [block.short_rows(begin, end)[0] for block, begin, end in session.slices(self.span)]
        if any(map(len, short)):
            parts.append(_row_set(short, universe))
        return union(parts, universe)


@dataclass(frozen=True)
class MatchingWords(Plan):
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
    def span(self) -> WordBounds:
        """The range."""
        return self.field, self.low, self.high

    def candidates(self, session: Session) -> RowSetLike:
        return self._rows(session, buckets=True)

    def certain(self, session: Session) -> RowSetLike:
        return self._rows(session, buckets=False)

    def _rows(self, session: Session, *, buckets: bool) -> RowSetLike:
        index = session.index
        numbers = session.blocks_of(self.span)
        if not numbers:
            return union([], index.rows)
        listed = index.word_list(numbers)
        begin, end = listed.between(self.low, BEYOND if self.high is None else self.high)
        matching = listed.by_block(
            self._matches(listed.texts(begin, end), buckets=buckets).nonzero()[0] + begin
        )
        blocks = index.blocks([number for number, _ in matching])
        long: list[WordPostings] = []
        short: list[Array] = []
        for number, words in matching:
            block = blocks[number]
            is_long = np.isin(words, block.columns.long, assume_unique=True)
            long += [WordPostings(index, block.entry(int(word))) for word in words[is_long]]
            if not is_long.all():
                rows, sizes = block.short_rows(0, block.count)
                fits = np.zeros(block.count, np.bool_)
                fits[words] = True
                short.append(rows[np.repeat(fits[block.columns.inline_lengths > 0], sizes)])
        read_lists(index, [(word, None) for word in long])
        parts: list[RowSetLike] = list(long)
        if any(map(len, short)):
            parts.append(_row_set(short, index.rows))
        return union(parts, index.rows)

    def _matches(self, words: pa.Array, *, buckets: bool) -> Array:
        plain = words
        if self.before:
            spelled = words.cast(pa.large_binary()).to_pylist()
            texts = [with_spaces(word[len(self.before) :].decode()) for word in spelled]
            plain = from_values(texts, pa.string())
        fits = self.pattern.matches(plain)
        if self.ids and not buckets:
            fits &= ~truths(whole(pc.starts_with(words, ID_MARK)))
        return fits


def _row_set(parts: Sequence[Array], universe: int) -> RowSet:
    """A set of rows from rows in any order, possibly repeated."""
    rows = np.concatenate(parts)
    if len(rows) * 64 > universe:
        flags = np.zeros((universe + 63) // 64 * 64, np.uint8)
        flags[rows] = 1
        return RowSet(universe, bits=np.packbits(flags, bitorder="little"))
    return RowSet(universe, array=np.unique(rows))


class AnyOfRange:
    """A range of words in place of one word of a phrase."""

    def __init__(self, plan: WordRange, session: Session) -> None:
        self.plan, self.session = plan, session
        self._long = plan.long_words(session)
        self._rows: RowSetLike | None = None

    def rows(self) -> RowSetLike:
        if self._rows is None:
            self._rows = self.plan.rows_of(self.session, self._long)
        return self._rows

    def words(self) -> Sequence[WordPostings]:
        return self._long

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """The occurrences of all words of the range, whose rows are looked up together."""
        read_lists(self.session.index, [(word, pages if word.cut else None) for word in self._long])
        all_rows, all_positions = [NO_ROWS], [NO_ROWS]
        for word in self._long:
            listed, counts, positions = word.occurrences(pages)
            all_rows.append(listed if counts is None else listed.repeat(counts))
            all_positions.append(positions)
        lookup = _RowLookup(rows, self.session.index.rows)
        for listed, positions in self._short_occurrences(lookup):
            all_rows.append(listed)
            all_positions.append(positions)
        inside, number = lookup.indexes(np.concatenate(all_rows))
        # One number for row and position, since these are sorted many times as quickly.
        both = np.sort(number << 32 | np.concatenate(all_positions).take(inside).astype(np.int64))
        return both >> 32, both & 0xFFFFFFFF

    def _short_occurrences(self, lookup: _RowLookup) -> Iterator[tuple[Array, Array]]:
        """Rows and positions of the words with lists in the dictionary, from blocks with one of the rows."""
        slices = [(*one, *one[0].short_rows(*one[1:])) for one in self.session.slices(self.plan.span)]
        needed = [one for one in slices if len(lookup.indexes(one[3])[0])]
        stored = (block.columns.short_positions for block, *_ in needed)
        ranges = [(int(offset), int(length)) for offset, length in stored]
        data = self.session.index.read_piece("positions", ranges) if ranges else ()
        for (block, begin, end, rows, sizes), (offset, _), raw in zip(needed, ranges, data, strict=True):
            at = block.position_at
            positions = unplanes(unframe(raw, offset, "positions"))[int(at[begin]) : int(at[end])]
            counts = block.short_counts(begin, end, sizes)
            yield rows if counts is None else rows.repeat(counts), positions


class _RowLookup:
    """Ascending rows among which others are looked up."""

    def __init__(self, rows: Array, universe: int) -> None:
        self._rows = rows
        self._bits = pack(rows, universe) if len(rows) * TESTED > universe else None

    def indexes(self, rows: Array) -> tuple[Array, Array]:
        """Which of some rows are among the ascending ones, and where among these."""
        if self._bits is None:
            at, present = find_in(self._rows, rows)
            inside = present.nonzero()[0]
            return inside, at.take(inside)
        inside = has(self._bits, rows).nonzero()[0]
        return inside, ranks(self._bits, rows.take(inside))


@dataclass(frozen=True)
class Phrase(Plan):
    """Rows in which words follow each other."""

    field: int
    column: str
    words: tuple[bytes, ...]
    slop: int = 0
    last: WordRange | None = None
    gaps: bool = False

    def keys(self) -> Sequence[TermKey]:
        return self._keys

    @cached_property
    def _word_keys(self) -> tuple[TermKey, ...]:
        return tuple((self.field, word) for word in self.words)

    @cached_property
    def _keys(self) -> Sequence[TermKey]:
        more = ((self.field, GAPS),) if self.gaps and self.slop else ()
        return self._word_keys + more + tuple(self.last.keys() if self.last is not None else ())

    def spans(self) -> Sequence[WordBounds]:
        return () if self.last is None else self.last.spans()

    def terms(self) -> Sequence[Term]:
        return tuple((self.column, word) for word in self.words)

    def lists_to_read(self, session: Session) -> Sequence[WordPostings]:
        words = [word for key in self._word_keys if (word := session.word(key)) is not None]
        if len(words) < len(self.words) or all(map(has_global_positions, words)):
            return ()
        return conjunction_lists(words)

    def phrase_rows(self, session: Session) -> PhraseRows:
        """The rows of the phrase, and its number of occurrences in each; computed once in a search."""
        phrase: PhraseRows | None = session.phrases.get(id(self))
        if phrase is None:
            phrase = session.phrases[id(self)] = self._find(session)
        return phrase

    def _find(self, session: Session) -> PhraseRows:
        words = [word for key in self._word_keys if (word := session.word(key)) is not None]
        if len(words) < len(self.words):
            return NO_PHRASE
        if self.last is None and not self.slop:
            return find_words(session.index, self.field, words)
        parts: list[PhrasePart] = [OneWord(word) for word in words]
        if self.last is not None:
            parts.append(AnyOfRange(self.last, session))
        gaps = session.word((self.field, GAPS)) if self.gaps and self.slop else None
        return find_phrase(session.index, parts, slop=self.slop, gaps=gaps)

    def candidates(self, session: Session) -> RowSetLike:
        return RowSet(session.index.rows, array=self.phrase_rows(session).rows)

    def score(self, session: Session, rows: Array) -> Scored:
        phrase = self.phrase_rows(session)
        number, inside = find_in(phrase.rows, rows)
        matching = inside.nonzero()[0]
        scores = np.zeros(len(rows), np.float32)
        counts = phrase.counts[number[matching]]
        scores[matching] = bm25(session, self.field, self.terms(), rows[matching], counts)
        return inside, scores
