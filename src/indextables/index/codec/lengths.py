"""Row lengths for ranking: one byte each, exact up to 40 tokens, coarser above.

The length classes are those of tantivy and Lucene, so that scores are the same.
"""

from __future__ import annotations

import numpy as np

from indextables.index.codec.numbers import Array

K1, B = 1.2, 0.75
NORM_BITS = 15
NORM_PAGE = 1 << NORM_BITS
"""Rows per page of row lengths, so that the rows of a rare word need few pages."""
_EXACT = 40
_PER_STEP = 8


def _table() -> Array:
    lengths = list(range(_EXACT + 1))
    step = 2
    while len(lengths) < 256:  # noqa: PLR2004 - the values of a byte
        lengths += [lengths[-1] + step * at for at in range(1, _PER_STEP + 1)]
        step *= 2
    return np.array(lengths[:256], np.int64)


LENGTHS = _table()
"""The length each class represents: the smallest in it."""


def length_classes(lengths: Array) -> Array:
    """The length class of every length."""
    return (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)


def saturation(mean_length: float) -> Array:
    """For every length class the K of BM25: the weight of a word is occurrences / (occurrences + K)."""
    mean = mean_length or 1.0
    return (K1 * (1 - B + B * LENGTHS / mean)).astype(np.float32)
