"""Sorted runs: the postings of some rows, ordered by word, and how runs are merged.

A run holds its words in order and, for each, its rows in order. Runs of consecutive rows
are merged a range of words at a time, so that memory beyond the runs themselves stays
small whatever their number. Indexes that are merged are read as runs too; see `merge`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from indextables.index.codec.numbers import Array, gather, narrow, starts_of
from indextables.index.tokenise import Tokens, word_bytes

POSTINGS_AT_ONCE = 1 << 18
"""Number of postings merged at a time, unless a single word has more."""
_KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Postings:
    """Words in order, each with its rows, its number of occurrences per row, and their positions."""

    words: pa.BinaryArray
    frequencies: Array
    """Number of rows of every word."""
    rows: Array
    """The rows of all words, word by word, ascending within each."""
    counts: Array | None
    """Occurrences in every row; None when each word occurs once per row."""
    positions: Array | None
    """The positions of all occurrences; None when positions are not kept."""


class PostingsSource(Protocol):
    """Postings that are consumed in word order."""

    def samples(self, step: int) -> Sequence[tuple[bytes, int]]:
        """Some words in order, about `step` postings apart, with the postings since the one before."""
        ...

    def take(self, until: bytes | None) -> Postings:
        """The words below `until` that were not taken yet; all remaining words for None."""
        ...


class Run:
    """The postings of one batch of rows."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings
        self._first = starts_of(postings.frequencies)
        self._first_position: Array | None = None
        if postings.counts is not None and postings.positions is not None:
            self._first_position = starts_of(postings.counts)[self._first]
        self._next = 0

    def samples(self, step: int) -> Sequence[tuple[bytes, int]]:
        at = np.searchsorted(self._first, np.arange(step, int(self._first[-1]), step))
        at = np.unique(at[at < len(self._postings.words)])
        return [(self._postings.words[int(i)].as_py(), step) for i in at]

    def take(self, until: bytes | None) -> Postings:
        begin, postings = self._next, self._postings
        end = len(postings.words) if until is None else first_not_below(postings.words, until, begin)
        self._next = end
        a, b = int(self._first[begin]), int(self._first[end])
        x, y = a, b
        if self._first_position is not None:
            x, y = int(self._first_position[begin]), int(self._first_position[end])
        return Postings(
            postings.words.slice(begin, end - begin),
            postings.frequencies[begin:end],
            postings.rows[a:b],
            None if postings.counts is None else postings.counts[a:b],
            None if postings.positions is None else postings.positions[x:y],
        )


def first_not_below(words: pa.BinaryArray, until: bytes, low: int) -> int:
    """The index, from `low` on, of the first word that is not below `until`."""
    high = len(words)
    while low < high:
        middle = (low + high) // 2
        if words[middle].as_py() < until:
            low = middle + 1
        else:
            high = middle
    return low


def make_run(tokens: Tokens, first_row: int, *, counted: bool, positions: bool) -> Run:
    """The postings of a batch of rows, numbered from `first_row`."""
    words, codes = _in_order(tokens)
    row_bits = max(1, len(tokens.lengths).bit_length())
    position_bits = int(tokens.positions.max(initial=0)).bit_length() if positions else 0
    key = codes.astype(np.uint64) << np.uint64(row_bits + position_bits)
    key |= tokens.rows.astype(np.uint64) << np.uint64(position_bits)
    if positions:
        key |= tokens.positions.astype(np.uint64)
    key.sort()
    sorted_positions = narrow(key & np.uint64((1 << position_bits) - 1)) if positions else None
    key >>= np.uint64(position_bits)
    new = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    first = new.nonzero()[0]
    key = key[first]
    counts = None
    if counted and len(first) < len(new):
        counts = narrow(np.diff(np.append(first, len(new))))
    rows = (key & np.uint64((1 << row_bits) - 1)).astype(np.uint32) + np.uint32(first_row)
    frequencies = np.bincount((key >> np.uint64(row_bits)).astype(np.int64), minlength=len(words))
    if len(frequencies) and not frequencies.all():
        used = frequencies.nonzero()[0]
        words, frequencies = words.take(pa.array(used)), frequencies[used]
    return Run(Postings(words, frequencies.astype(np.uint32), rows, counts, sorted_positions))


def _in_order(tokens: Tokens) -> tuple[pa.BinaryArray, Array]:
    """The distinct words, sorted, and for every token the number of its word."""
    coded = tokens.words.dictionary_encode()
    order = sort_words(coded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    if len(coded.dictionary) < len(tokens.words):
        rank = rank[coded.indices.to_numpy()]
    return coded.dictionary.take(pa.array(order)), rank[tokens.codes]


def sort_words(words: pa.BinaryArray) -> Array:
    """The order of distinct words by their bytes, compared eight bytes at a time as numbers."""
    if len(words) < 2:  # noqa: PLR2004 - nothing to sort
        return np.arange(len(words))
    data, at = word_bytes(words)
    size = np.diff(at)
    padded = np.concatenate([data[: at[-1]], np.zeros(_KEY_BYTES, np.uint8)])
    window = np.lib.stride_tricks.sliding_window_view(padded, _KEY_BYTES)

    def keys(which: Array, skip: int) -> Array:
        left = np.clip(size[which] - skip, 0, _KEY_BYTES)
        prefix = window[np.minimum(at[which] + skip, at[-1])].copy()
        prefix[np.arange(_KEY_BYTES)[None, :] >= left[:, None]] = 0
        numbers: Array = prefix.view(">u8").ravel().astype(np.uint64)
        return numbers

    key = keys(np.arange(len(words)), 0)
    order = np.argsort(key)
    tied = np.zeros(len(words), bool)
    skip, group = _KEY_BYTES, key[order]
    undecided = np.arange(len(words))
    while True:
        same = group[1:] == group[:-1]
        tied = np.append(same, False) | np.append(False, same)
        undecided = undecided[tied]
        if not len(undecided):
            return order
        number = np.cumsum(np.append(True, ~same))[tied]
        which = order[undecided]
        key = keys(which, skip)
        # Words that differ only in trailing zero bytes are ordered by length.
        inner = np.lexsort((size[which], key, number))
        order[undecided] = which[inner]
        key, number, which = key[inner], number[inner], which[inner]
        skip += _KEY_BYTES
        new = np.ones(len(which), bool)
        new[1:] = (number[1:] != number[:-1]) | (key[1:] != key[:-1])
        if int(size[which].max()) <= skip:
            return order
        group = np.cumsum(new)


def merge_postings(sources: Sequence[PostingsSource]) -> Iterator[Postings]:
    """The merged postings of all sources, a range of words at a time; rows of earlier sources come first."""
    step = max(1024, POSTINGS_AT_ONCE // max(1, len(sources)))
    weight, last = 0, b""
    for word, postings in heapq.merge(*(source.samples(step) for source in sources)):
        weight += postings
        if weight >= POSTINGS_AT_ONCE and word > last:
            yield from _slice(sources, word)
            weight, last = 0, word
    yield from _slice(sources, None)


def _slice(sources: Sequence[PostingsSource], until: bytes | None) -> Iterator[Postings]:
    parts = [part for source in sources if len((part := source.take(until)).words)]
    if parts:
        yield parts[0] if len(parts) == 1 else merge_parts(parts)


def merge_parts(parts: Sequence[Postings]) -> Postings:
    """Several postings as one; the rows of a word are those of the first part, then of the second, ..."""
    coded = pa.concat_arrays([part.words for part in parts]).dictionary_encode()
    order = sort_words(coded.dictionary)
    rank = np.empty(len(order), np.uint64)
    rank[order] = np.arange(len(order), dtype=np.uint64)
    # A piece is the list of one word in one part.
    word_of_piece = rank[coded.indices.to_numpy()]
    # By word, then by part: the number of the piece in the lower half keeps the order of equal words.
    keys = (word_of_piece << np.uint64(32)) | np.arange(len(word_of_piece), dtype=np.uint64)
    keys.sort()
    pieces = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    sizes = np.concatenate([part.frequencies for part in parts]).astype(np.int64)
    starts = starts_of(sizes)
    order_of_rows = gather(starts[pieces], sizes[pieces])
    counts = _all_counts(parts)
    positions = None
    if parts[0].positions is not None:
        all_positions = np.concatenate([_present(part.positions) for part in parts])
        if counts is None:
            positions = all_positions[order_of_rows]
        else:
            position_starts = starts_of(counts)[starts]
            lengths = np.diff(position_starts)
            positions = all_positions[gather(position_starts[pieces], lengths[pieces])]
    return Postings(
        coded.dictionary.take(pa.array(order)),
        np.bincount(word_of_piece.astype(np.int64), weights=sizes, minlength=len(order)).astype(np.int64),
        np.concatenate([part.rows for part in parts])[order_of_rows],
        None if counts is None else counts[order_of_rows],
        positions,
    )


def concatenated(parts: Sequence[Postings]) -> Postings:
    """Concatenate postings whose word ranges follow each other."""
    return Postings(
        pa.concat_arrays([part.words for part in parts]),
        np.concatenate([part.frequencies for part in parts]),
        np.concatenate([part.rows for part in parts]),
        _all_counts(parts),
        None if parts[0].positions is None else np.concatenate([_present(part.positions) for part in parts]),
    )


def _present(positions: Array | None) -> Array:
    assert positions is not None
    return positions


def _all_counts(parts: Sequence[Postings]) -> Array | None:
    if all(part.counts is None for part in parts):
        return None
    return np.concatenate(
        [np.ones(len(part.rows), np.uint8) if part.counts is None else part.counts for part in parts]
    )
