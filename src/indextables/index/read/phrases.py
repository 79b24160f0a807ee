"""Phrases: words that follow each other, possibly with others in between.

Rows with all the words are found first; positions are read only for the pages of these
rows. Every occurrence is then given one number, its place, such that a phrase is found by
adding and looking up numbers. For frequently used words the places in the whole index are
cached: numbered row after row, by the row lengths that ranking has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from indextables.index.codec.lengths import LENGTHS
from indextables.index.codec.lists import has, pack, page_count
from indextables.index.codec.numbers import Array, damaged, gather, starts_of
from indextables.index.read.adjacent import are_in, rows_in_order
from indextables.index.read.lookup import Index
from indextables.index.read.rowset import NO_ROWS, Rows, found_in, intersection
from indextables.index.read.words import Word, pages_of, read_positions
from indextables.records import dataclass

KEPT_AFTER = 2
"""After this many phrases with a word, its places in the whole index are cached."""
_LEAD = 64
"""Unused places before the first and after the last row: the longest phrase cached places can answer."""
_FILTERED = 1024
_SPREAD = 32
_FEW = 64
_SEARCHED = 16
"""If more than one in this many numbers is wanted, a bitmap is used for the lookup."""


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a phrase, and its number of occurrences in each."""

    rows: Array
    counts: Array


class Part(Protocol):
    """One word of a phrase, or several alternatives in its place."""

    def rows(self) -> Rows:
        """The rows that contain it."""
        ...

    def words(self) -> Sequence[Word]:
        """The words whose positions have to be read."""
        ...

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """For ascending rows, the index of the row and the position of every occurrence, in order."""
        ...


class OneWord:
    """A word of a phrase."""

    def __init__(self, word: Word) -> None:
        self.word = word

    def rows(self) -> Rows:
        """See Part."""
        return self.word

    def words(self) -> Sequence[Word]:
        """See Part."""
        return (self.word,)

    def occurrences(self, rows: Array, pages: Array) -> tuple[Array, Array]:
        """See Part."""
        return placed(rows, *self.word.occurrences(pages))


def placed(rows: Array, held: Array, counts: Array | None, positions: Array) -> tuple[Array, Array]:
    """The occurrences in some rows of a list: the index of the row among these, and the position."""
    at, wanted = _shared(rows, held)
    if counts is None:
        return wanted, positions.take(at)
    size = counts.take(at).astype(np.int64)
    return wanted.repeat(size), positions.take(gather(starts_of(counts)[at], size))


def _shared(rows: Array, held: Array) -> tuple[Array, Array]:
    """The rows that two ascending lists share: their indexes in the second list and in the first."""
    if len(rows) == len(held) and bool((rows == held).all()):
        every = np.arange(len(rows))
        return every, every
    if len(rows) * _SEARCHED > len(held) and len(rows):
        # Looking up all of them in a bitmap is faster than searching for each.
        universe = int(max(rows[-1], held[-1])) + 1 if len(held) else int(rows[-1]) + 1
        at = has(pack(rows, universe), held).nonzero()[0]
        if len(at) == len(rows):
            return at, np.arange(len(rows))
        return at, has(pack(held, universe), rows).nonzero()[0]
    at, inside = found_in(held, rows)
    wanted = inside.nonzero()[0]
    return at[wanted], wanted


def find_phrase(
    index: Index, field: int, parts: Sequence[Part], *, slop: int, gaps: Word | None, counted: bool = True
) -> Found:
    """The rows in which the parts follow each other, with at most `slop` other words between them.

    `gaps` are positions that a phrase may not cross: the ends of the values of a row.
    """
    words = [part.word for part in parts if isinstance(part, OneWord)]
    if not slop and gaps is None and len(words) == len(parts) <= _LEAD and _all_kept(index, field, words):
        return _kept_phrase(words, counted=counted)
    if not slop and len(words) == len(parts):
        return Found(*rows_in_order(index, words))
    rows = intersection([part.rows() for part in parts], index.rows).array()
    if not len(rows):
        return Found(NO_ROWS, NO_ROWS)
    pages = pages_of(rows, index.rows)
    more = [gaps] if gaps is not None and slop else []
    read_positions(
        index, [(word, pages) for part in parts for word in part.words()] + [(w, pages) for w in more]
    )
    numbered = [part.occurrences(rows, pages) for part in parts]
    most = max((int(at.max(initial=0)) for _, at in numbered), default=0)
    slop = min(slop, most + 1)
    # Far enough apart that neither a phrase nor its gaps reach into another row.
    stride = most + len(parts) + (most + 1 + slop if slop else 0)
    numbering = _Numbering(len(rows), stride, len(parts))
    places = [numbering.places(*one) for one in numbered]
    if slop:
        between = None
        if more:
            number, at = OneWord(more[0]).occurrences(rows, pages)
            # Gaps after the last word of a row separate nothing and get no place.
            inside = at <= most
            between = numbering.places(number[inside], at[inside])
        first = _spread(places, slop, between)
    else:
        first = _consecutive(places, numbering.total)
    return _by_row(rows, numbering.numbers(first))


class _Numbering:
    """Numbers the places of some rows: `stride` places per row, after `lead` unused ones."""

    def __init__(self, rows: int, stride: int, lead: int) -> None:
        self.total = (rows + 1) * stride + 2 * lead
        self.kind: Any = np.uint32 if self.total < 1 << 32 else np.int64
        self.stride: Any = self.kind(stride)
        self.lead: Any = self.kind(lead)

    def places(self, numbers: Array, positions: Array) -> Array:
        """The places of positions in rows, which are given by index."""
        found: Array = numbers.astype(self.kind)
        found *= self.stride
        found += self.lead
        found += positions.astype(self.kind)
        return found

    def numbers(self, places: Array) -> Array:
        """The indexes of the rows that places belong to."""
        found: Array = (places - self.lead) // self.stride
        return found


def _by_row(rows: Array, numbers: Array) -> Found:
    if not len(numbers):
        return Found(NO_ROWS, NO_ROWS)
    new = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    at = new.nonzero()[0]
    return Found(rows[numbers[at]], np.diff(np.append(at, len(numbers))))


def _consecutive(places: Sequence[Array], total: int) -> Array:
    """Where a phrase begins: places whose successors are places of the other words; all below `total`."""
    order = sorted(range(len(places)), key=lambda at: len(places[at]))
    first = order[0]
    here = places[first]
    for at in order[1:]:
        if not len(here):
            break
        kind = here.dtype.type
        to = here + kind(at - first) if at > first else here - kind(first - at)
        here = here.compress(are_in(places[at], to, total))
    start: Array = here - here.dtype.type(first)
    return start


def _spread(places: Sequence[Array], slop: int, between: Array | None) -> Array:
    """Where a phrase with gaps begins; the earliest place of each word leaves the most room for the rest."""
    start = here = places[0]
    for held in places[1:]:
        if not len(held) or not len(start):
            return start[:0]
        at = held.searchsorted(here, "right")
        inside = at < len(held)
        start, here = start[inside], held[at[inside]]
        near = here <= start + (len(places) - 1 + slop)
        start, here = start[near], here[near]
    if between is not None and len(between):
        whole = between.searchsorted(start) == between.searchsorted(here)
        start = start[whole]
    return start


class _Kept:
    """The places of a word in the whole index."""

    __slots__ = ("bits", "mask", "places", "rows", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.places: Array | None = None
        self.rows: Array = NO_ROWS
        self.bits: Array | None = None
        self.mask: np.unsignedinteger | None = None

    @property
    def size(self) -> int:
        held = (self.places, self.rows, self.bits)
        return sum(one.nbytes for one in held if one is not None) + 100


def is_kept(word: Word) -> bool:
    """Whether the places of a word in the whole index are cached."""
    return word.phrases is not None and word.phrases.places is not None


def _all_kept(index: Index, field: int, words: Sequence[Word]) -> bool:
    """Count a use of each word; returns whether the places of all are, or now should be, cached."""
    for word in words:
        if word.phrases is None:
            word.phrases = _Kept()
        word.phrases.uses += 1
    if any(word.phrases.uses < KEPT_AFTER for word in words):
        return False
    missing = [word for word in words if word.phrases.places is None]
    # A word whose places would displace everything else is not cached.
    if sum(word.count for word in missing) * 24 > index.cache.max_bytes:
        return False
    if not missing:
        return True
    room, start, total = _row_starts(index, field)
    everywhere = np.arange(page_count(index.rows))
    for word in missing:
        index.fetch([(word, None)])
    read_positions(index, [(word, everywhere) for word in missing])
    for word in missing:
        _keep(word, everywhere, room[index.norms(field)], start, total)
    return True


def _row_starts(index: Index, field: int) -> tuple[Array, Array, int]:
    """Places per row for each length class, the first place of every row, and the number of all places."""
    room = np.append(LENGTHS[1:], LENGTHS[-1] * 2).astype(np.int64)
    kept = index.cache.get((index.identity, ("starts", field)))
    if kept is None:
        at = starts_of(room[index.norms(field)]) + _LEAD
        total = int(at[-1]) + _LEAD
        start = at[:-1].astype(np.uint32 if total < 1 << 32 else np.int64)
        kept = start, total
        index.cache.put((index.identity, ("starts", field)), kept, start.nbytes)
    return room, *kept


def _keep(word: Word, pages: Array, room: Array, start: Array, total: int) -> None:
    rows, counts, positions = word.occurrences(pages)
    if counts is not None:
        rows = rows.repeat(counts)
    if len(rows) and bool((positions >= room.take(rows)).any()):
        raise damaged("a position lies beyond its row")
    kept = word.phrases
    places = start.take(rows) + positions.astype(start.dtype)
    if len(places) > _FILTERED:
        # A Bloom-like filter with one place in 32 set, or the complete bitmap if that is not larger.
        bits = (len(places) * _SPREAD - 1).bit_length()
        if len(places) * 256 > total:
            kept.bits = pack(places, total)
        else:
            kept.mask = start.dtype.type((1 << bits) - 1)
            kept.bits = pack(np.sort(places & kept.mask), 1 << bits)
    kept.rows = rows
    kept.places = places
    word.grown = True


def _kept_phrase(words: Sequence[Word], *, counted: bool) -> Found:
    held = [word.phrases for word in words]
    order = sorted(range(len(held)), key=lambda at: len(held[at].places))
    first = order[0]
    here, rows = held[first].places, held[first].rows
    for at in order[1:]:
        kept, kind = held[at], here.dtype.type
        to = here + kind(at - first) if at > first else here - kind(first - at)
        if kept.bits is None or len(to) < _FEW:
            keep = found_in(kept.places, to)[1]
        elif kept.mask is None:
            keep = has(kept.bits, to)
        else:
            some = has(kept.bits, to & kept.mask).nonzero()[0]
            to, here, rows = to.take(some), here.take(some), rows.take(some)
            keep = found_in(kept.places, to)[1]
        rows = rows.compress(keep)
        if not len(rows):
            return Found(NO_ROWS, NO_ROWS)
        if at != order[-1]:
            here = here.compress(keep)
    if words[first].counts() is None:
        return Found(rows, np.ones(len(rows), np.int64) if counted else NO_ROWS)
    new = np.empty(len(rows), bool)
    new[0] = True
    np.not_equal(rows[1:], rows[:-1], out=new[1:])
    if not counted:
        return Found(rows.compress(new), NO_ROWS)
    begin = new.nonzero()[0]
    return Found(rows.take(begin), np.diff(np.append(begin, len(rows))))


__all__ = ["Found", "OneWord", "Part", "find_phrase", "is_kept", "placed"]
