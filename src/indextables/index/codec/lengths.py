"""Lengths of rows as ranking knows them: one byte each, exact up to 40 tokens, coarser above.

The classes are those of tantivy and Lucene, so that scores are the same.
"""

from __future__ import annotations

import numpy as np

from indextables.index.codec.numbers import Array

K1, B = 1.2, 0.75
NORM_PAGE = 1 << 15
"""Rows of one page of norms: the rows of a rare word touch few of them."""
_EXACT = 40
_PER_STEP = 8


def _table() -> Array:
    found = list(range(_EXACT + 1))
    step = 2
    while len(found) < 256:  # noqa: PLR2004 - the values of a byte
        found += [found[-1] + step * at for at in range(1, _PER_STEP + 1)]
        step *= 2
    return np.array(found[:256], np.int64)


LENGTHS = _table()
"""The length that every class stands for: the smallest of it."""


def length_classes(lengths: Array) -> Array:
    """The class of every length."""
    return (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)


def saturation(mean_length: float) -> Array:
    """For every class the K of BM25: occurrences / (occurrences + K) is the weight of a word in a row."""
    mean = mean_length or 1.0
    return (K1 * (1 - B + B * LENGTHS / mean)).astype(np.float32)
