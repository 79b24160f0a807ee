"""The byte format of lists of rows, and bitmaps of rows.

In a large index, the list of a word in many rows is divided into pages of 65,536 rows, so
that a query decodes only the pages it needs; every other list is one page. A page stores
differences between rows, or a bitmap if there are many rows. The number of occurrences is
stored only where it is above one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.index.codec.numbers import Array, Bytes, damaged, decodes, starts_of, unvarints, varints
from indextables.model.arrays import as_numpy
from indextables.model.arrow_internals import filter_values

PAGE = 1 << 16
"""Rows covered by one page."""
CUT = 32_768
"""From this many rows on, the list of a word is divided into pages."""
INLINE = 48
"""Lists of up to this many bytes are stored in the dictionary, beside their word."""

_DIFFERENCES, _BITMAP = 0, 1
_HEAD = struct.Struct("<BI")
_DENSE = 32
"""From one row in this many on, a page is a bitmap: compressed it is no larger, and faster to read."""
_FLAG = 128
"""A varint byte from this value on is followed by another."""
_NO_INDEXES = np.zeros(0, np.int64)
_NO_COUNTS = np.zeros(0, np.uint32)
_MASK = np.left_shift(1, np.arange(8)).astype(np.uint8)
_CHUNK = 1 << 20
_SPARSE = 4
"""If fewer than one in this many 64-bit words of a bitmap are non-zero, only those are expanded."""
_THICK = 8
"""From one row in this many on, one byte per row is the fastest way to expand a bitmap."""
_FLAGGED = 128
"""From one row in this many on, one byte per row is the fastest way to make a bitmap."""


def page_count(rows: int) -> int:
    """The number of pages in an index of this many rows."""
    return -(-rows // PAGE)


def is_cut(frequency: Any, rows: int) -> Any:
    """Whether the list of a word is divided into pages; also for arrays of frequencies."""
    return (frequency >= CUT) & (rows > PAGE)


_BELOW = (np.uint64(1) << np.arange(64, dtype=np.uint64)) - np.uint64(1)


def ranks(bits: Array, at: Array) -> Array:
    """For each number, how many smaller numbers are set in a bitmap."""
    words = bits.view(np.uint64)
    before = np.zeros(len(words), np.int64)
    np.bitwise_count(words[:-1]).cumsum(out=before[1:])
    word = at >> 6
    below: Array = before.take(word)
    below += np.bitwise_count(words.take(word) & _BELOW.take(at & 63))
    return below


def has(bits: Array, at: Array) -> Array:
    """For each number, whether it is set in a bitmap."""
    present: Array = (bits.take(at >> 3) & _MASK.take(at & 7)) != 0  # take: half the time of an index
    return present


def empty_bits(rows: int) -> Array:
    """An empty bitmap, padded to whole 64-bit words."""
    return np.zeros((rows + 63) // 64 * 8, np.uint8)


def pack(ascending: Array, rows: int) -> Array:
    """The bitmap of ascending numbers."""
    if len(ascending) * _FLAGGED > rows:
        flags = np.zeros((rows + 63) // 64 * 64, bool)
        flags[ascending] = True
        return np.packbits(flags, bitorder="little")
    out = empty_bits(rows)
    if len(ascending):
        byte = ascending >> 3
        first = np.concatenate([[0], (byte[1:] != byte[:-1]).nonzero()[0] + 1])
        out[byte[first]] = np.bitwise_or.reduceat(_MASK.take(ascending & 7), first)
    return out


@lru_cache(maxsize=1)
def _numbers() -> pa.Array:
    numbers = np.arange(_CHUNK, dtype=np.uint32)
    return pa.Array.from_buffers(pa.uint32(), _CHUNK, [None, pa.py_buffer(numbers)])


def unpack(bits: Array) -> Array:
    """The numbers set in a bitmap, ascending.

    Many are expanded with one byte for each, few by the 64-bit words that are not zero, others by Arrow's
    filter.
    """
    whole = bits.view(np.uint64)
    if int(np.bitwise_count(whole).sum(dtype=np.int64)) * _THICK > len(bits) * 8:
        return np.unpackbits(bits, bitorder="little").view(bool).nonzero()[0].astype(np.uint32)
    words = whole.nonzero()[0]
    if len(words) * _SPARSE < len(bits) // 8:
        inside = np.unpackbits(bits.reshape(-1, 8)[words].ravel(), bitorder="little").view(bool).nonzero()[0]
        numbers: Array = ((words[inside >> 6] << 6) + (inside & 63)).astype(np.uint32)
        return numbers
    chunks = []
    for start in range(0, len(bits) * 8, _CHUNK):
        chunk = bits[start >> 3 : (start + _CHUNK) >> 3]
        count = len(chunk) * 8
        mask = pa.BooleanArray.from_buffers(pa.bool_(), count, [None, pa.py_buffer(chunk)])
        numbers = as_numpy(filter_values(_numbers().slice(0, count), mask))
        chunks.append(numbers if not start else numbers + np.uint32(start))
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks) if chunks else np.zeros(0, np.uint32)


def differences(rows: Array, starts: Array) -> Array:
    """Each row minus the one before; the first row of each list, at `starts`, stays."""
    steps = np.empty(len(rows), np.uint32)
    steps[:1] = rows[:1]
    np.subtract(rows[1:], rows[:-1], out=steps[1:], casting="unsafe")
    steps[starts] = rows[starts]
    return steps


def exceptions(counts: Array, starts: Array) -> tuple[Array, Array]:
    """The occurrences above 1 of several lists, as pairs of varints, and the offset of each list's pairs.

    A pair is the number of postings since the previous pair of its list, and the occurrences minus 2.
    """
    at = (counts > 1).nonzero()[0]
    owner = np.searchsorted(starts, at, "right") - 1
    local = at - starts[owner]
    step = local.copy()
    again = (owner[1:] == owner[:-1]).nonzero()[0] + 1
    step[again] -= local[again - 1]
    pairs = np.empty(2 * len(at), np.uint32)
    pairs[0::2] = step
    pairs[1::2] = counts[at].astype(np.uint32) - np.uint32(2)
    body, offsets = varints(pairs)
    return body, offsets[2 * np.searchsorted(at, starts)]


def encode_page(rows: Array, counts: Array | None, span: int) -> bytes:
    """Encode a page of ascending rows below `span`, and the occurrences of the word in each."""
    tail = b""
    if counts is not None:
        body, _ = exceptions(counts, np.array([0, len(rows)]))
        tail = body.tobytes()
    if len(rows) * _DENSE > span:
        return _HEAD.pack(_BITMAP, len(tail)) + pack(rows, span)[: (span + 7) // 8].tobytes() + tail
    body, _ = varints(differences(rows, np.zeros(1, np.int64)))
    return _HEAD.pack(_DIFFERENCES, len(tail)) + body.tobytes() + tail


def encode_differences(body: Bytes, tail: Bytes) -> bytes:
    """Encode a page from differences that are encoded already."""
    return _HEAD.pack(_DIFFERENCES, len(tail)) + bytes(body) + bytes(tail)


def is_dense(count: int, span: int) -> bool:
    """Whether `encode_page` writes a bitmap."""
    return count * _DENSE > span


def _parts(raw: bytes) -> tuple[int, memoryview, memoryview]:
    kind, tail = _HEAD.unpack_from(raw)
    end = len(raw) - tail
    if end < _HEAD.size or kind not in (_DIFFERENCES, _BITMAP):
        raise damaged("a list has an unknown form")
    view = memoryview(raw)
    return kind, view[_HEAD.size : end], view[end:]


@decodes("a list")
def page_rows(raw: bytes, count: int, span: int) -> Array:
    """The rows of a page."""
    kind, body, _ = _parts(raw)
    rows = unpack(_padded(body, span)) if kind == _BITMAP else unvarints(body).cumsum(dtype=np.uint32)
    if len(rows) != count or (count and rows[-1] >= span):
        raise damaged("a list does not hold the rows that were written")
    return rows


def is_bitmap(raw: bytes) -> bool:
    """Whether a page is a bitmap."""
    return raw[0] == _BITMAP


@decodes("a list")
def pages_rows(pages: Sequence[tuple[bytes, int, int]], firsts: Sequence[int]) -> Array:
    """The rows of several pages, each given with count, span and first row, decoded together."""
    kinds = {is_bitmap(raw) for raw, _, _ in pages}
    if len(kinds) > 1:
        return np.concatenate(
            [page_rows(*page) + np.uint32(first) for page, first in zip(pages, firsts, strict=True)]
        )
    counts = [count for _, count, _ in pages]
    bodies = [_parts(raw)[1] for raw, _, _ in pages]
    moved = np.array(firsts, np.int64)
    if True in kinds:
        for body, (_, _, span) in zip(bodies, pages, strict=True):
            _padded(body, span)
        rows = unpack(_padded(memoryview(b"".join(bodies)), sum(span for _, _, span in pages)))
        spans = starts_of(np.array([span for _, _, span in pages]))
        if not np.array_equal(rows.searchsorted(spans), starts_of(np.array(counts))):
            raise damaged("a list does not hold the rows that were written")
        if moved[-1] - moved[0] == spans[-2]:
            return rows + np.uint32(firsts[0]) if firsts[0] else rows
        moved -= spans[:-1]
    else:
        steps = unvarints(b"".join(bodies))
        if len(steps) != sum(counts):
            raise damaged("a list does not hold the rows that were written")
        rows = np.cumsum(steps, dtype=np.uint32)
        begin = starts_of(np.array(counts))
        before = rows.take(begin[:-1]) - steps.take(begin[:-1])
        if (rows.take(begin[1:] - 1) - before >= np.array([span for _, _, span in pages])).any():
            raise damaged("a list has a row beyond the last")
        moved -= before
    rows += moved.repeat(counts).astype(np.uint32)
    return rows


@decodes("a list")
def page_bits(raw: bytes, count: int, span: int) -> Array:
    """The bitmap of a page."""
    kind, body, _ = _parts(raw)
    return _padded(body, span) if kind == _BITMAP else pack(page_rows(raw, count, span), span)


def _padded(body: memoryview, span: int) -> Array:
    bits = np.frombuffer(body, np.uint8)
    if len(bits) != (span + 7) // 8:
        raise damaged("a bitmap does not have the length that was written")
    if not len(bits) % 8:
        return bits
    out = empty_bits(span)
    out[: len(bits)] = bits
    return out


@decodes("a list")
def pages_repeats(pages: Sequence[tuple[bytes, int]]) -> tuple[Array, Array]:
    """The rows of several pages with repeated occurrences, by their index in all, and how many."""
    if len(pages) == 1:
        raw, count = pages[0]
        return repeats_of(_parts(raw)[2], count)
    tails = [_parts(raw)[2] for raw, _ in pages]
    joined = b"".join(tails)
    if not joined:
        return _NO_INDEXES, _NO_COUNTS
    numbers = unvarints(joined)
    steps = numbers[0::2]
    # Find the pairs of every page: a varint ends with a byte below 128.
    ended = [np.count_nonzero(np.frombuffer(tail, np.uint8) < _FLAG) if len(tail) else 0 for tail in tails]
    pairs = starts_of(np.array(ended) >> 1)
    before = starts_of(np.array([count for _, count in pages]))
    total = np.cumsum(steps, dtype=np.int64)
    size = np.diff(pairs)
    filled = size.nonzero()[0]
    begin, last = pairs.take(filled), pairs.take(filled + 1) - 1
    base = total.take(begin) - steps.take(begin)
    if len(numbers) % 2 or (total.take(last) - base >= np.diff(before).take(filled)).any():
        raise damaged("a list has other occurrences than were written")
    total += (before.take(filled) - base).repeat(size.take(filled))
    return total, numbers[1::2] + np.uint32(2)


def repeats_of(tail: Bytes, count: int) -> tuple[Array, Array]:
    """Decode what `exceptions` wrote for one list of `count` rows: indexes, and occurrences above 1."""
    if not len(tail):
        return _NO_INDEXES, _NO_COUNTS
    pairs = unvarints(tail)
    indexes = pairs[0::2].cumsum(dtype=np.int64)
    if len(pairs) % 2 or indexes[-1] >= count:
        raise damaged("a list has other occurrences than were written")
    return indexes, pairs[1::2] + np.uint32(2)


def counts_of(tail: Bytes, count: int) -> Array | None:
    """The occurrences in every row, from what `exceptions` wrote for one list; None when all are 1."""
    if not len(tail):
        return None
    repeated, repeats = repeats_of(tail, count)
    counts = np.ones(count, np.uint32)
    counts[repeated] = repeats
    return counts
