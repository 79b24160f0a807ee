"""An index seen through a mask: some of its rows are no longer there.

A companion index covers files that belong to somebody else. Rows of files that are gone and rows that a
deletion vector hides stay in the index until it is built again, so whoever asks it is given the numbers of
the live rows alone: 0 is the first live row. `None` in place of a mask means that every row is live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.lazy import pa


class LiveRows:
    """The live rows of an index, as stretches of consecutive rows.

    `count_tokens` returns the tokens of the live rows by column; ranking needs them.

    >>> live = LiveRows([(0, 2), (5, 7)], dict)
    >>> live.count, live.numbers(np.array([1, 2, 5])).tolist(), live.stored(np.array([1, 2])).tolist()
    (4, [1, 2], [1, 5])
    """

    def __init__(self, stretches: Any, count_tokens: Callable[[], Mapping[str, int]]) -> None:
        """Take `(start, end)` pairs, ascending and apart from each other."""
        pairs = np.asarray(stretches, np.int64).reshape(-1, 2)
        pairs = pairs[pairs[:, 1] > pairs[:, 0]]
        self._starts, self._ends = pairs[:, 0], pairs[:, 1]
        lengths = self._ends - self._starts
        self._first = np.cumsum(lengths) - lengths
        self.count = int(lengths.sum())
        self._count_tokens = count_tokens

    @cached_property
    def tokens(self) -> Mapping[str, int]:
        """The tokens of the live rows, by column."""
        return self._count_tokens()

    def numbers(self, rows: Array) -> Array:
        """The live numbers of those rows of the index (ascending) that are live."""
        at = np.searchsorted(self._starts, rows, "right") - 1
        inside = at >= 0
        inside[inside] = rows[inside] < self._ends[at[inside]]
        at, rows = at[inside], rows[inside]
        live: Array = (rows - self._starts[at] + self._first[at]).astype(rows.dtype)
        return live

    def stored(self, numbers: Array) -> Array:
        """The rows of the index that have these live numbers."""
        at = np.searchsorted(self._first, numbers, "right") - 1
        rows: Array = (numbers - self._first[at] + self._starts[at]).astype(numbers.dtype)
        return rows

    def spread(self, values: pa.Array, rows: int) -> pa.Array:
        """The values of the live rows, in an array for all rows of the index; null for the others."""
        places = np.zeros(rows, np.int64)
        hidden = np.ones(rows, bool)
        stored = self.stored(np.arange(self.count))
        places[stored] = np.arange(self.count)
        hidden[stored] = False
        return values.take(pa.array(places, mask=hidden))
