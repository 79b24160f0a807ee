"""Sets of rows: small ones as an ascending array, large ones as a bitmap, and how they are combined.

A set converts to the other representation only when asked. A word's list is such a set
too, so that a query does not decode what it does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

import numpy as np

from indextables.index.codec.lists import empty_bits, has, pack, unpack
from indextables.index.codec.numbers import Array

DENSE = 64
"""From one row in this many on, sets are combined as bitmaps."""
TESTED = 256
"""From one row in this many on, membership is looked up in a bitmap."""
NO_ROWS = np.zeros(0, np.uint32)
_count = attrgetter("count")


class RowSetLike(Protocol):
    """A set of rows of one index."""

    @property
    def count(self) -> int:
        """Number of rows in the set."""
        ...

    def array(self) -> Array:
        """The rows, ascending; callers must not modify the array."""
        ...

    def bits(self) -> Array:
        """The bitmap of the rows; callers must not modify it."""
        ...

    def test(self, rows: Array) -> Array:
        """For some ascending rows, whether each is in the set."""
        ...


class RowSet:
    """A set of rows in memory."""

    __slots__ = ("_array", "_bits", "_count", "universe")

    def __init__(
        self,
        universe: int,
        *,
        array: Array | None = None,
        bits: Array | None = None,
        count: int | None = None,
    ) -> None:
        self.universe = universe
        self._array = array
        self._bits = bits
        self._count = len(array) if array is not None else count

    @property
    def count(self) -> int:
        """Number of rows in the set."""
        if self._count is None:
            assert self._bits is not None
            self._count = int(np.bitwise_count(self._bits.view(np.uint64)).sum(dtype=np.int64))
        return self._count

    def array(self) -> Array:
        """The rows, ascending."""
        if self._array is None:
            assert self._bits is not None
            self._array = unpack(self._bits)
            self._count = len(self._array)
        return self._array

    def bits(self) -> Array:
        """The bitmap of the rows."""
        if self._bits is None:
            assert self._array is not None
            self._bits = pack(self._array, self.universe)
        return self._bits

    def test(self, rows: Array) -> Array:
        """For some ascending rows, whether each is in the set."""
        if self._bits is not None or self.count * TESTED > self.universe:
            return has(self.bits(), rows)
        return find_in(self.array(), rows)[1]


def find_in(ascending: Array, numbers: Array) -> tuple[Array, Array]:
    """The insertion index of each number in an ascending list, and whether it is in the list."""
    at = ascending.searchsorted(numbers)
    if not len(ascending):
        return at, np.zeros(len(numbers), bool)
    # A number above the last is compared with the last, and so differs.
    np.minimum(at, len(ascending) - 1, out=at)
    return at, ascending.take(at) == numbers


def nothing(universe: int) -> RowSet:
    """No row."""
    return RowSet(universe, array=NO_ROWS)


def everything(universe: int) -> RowSet:
    """Every row."""
    bits = np.full(len(empty_bits(universe)), 255, np.uint8)
    whole, rest = divmod(universe, 8)
    bits[whole:] = 0
    if rest:
        bits[whole] = (1 << rest) - 1
    return RowSet(universe, bits=bits, count=universe)


def intersection(sets: Sequence[RowSetLike], universe: int) -> RowSetLike:
    """Rows in all of some sets."""
    ordered = sorted(sets, key=_count)
    first = ordered[0]
    if len(ordered) == 1:
        return first
    if first.count * DENSE > universe:
        bits = first.bits()
        for one in ordered[1:]:
            bits = bits & one.bits()
        return RowSet(universe, bits=bits)
    rows = first.array()
    for one in ordered[1:]:
        if not len(rows):
            break
        if one is not first:
            rows = rows.compress(one.test(rows))
    return RowSet(universe, array=rows)


def union(sets: Sequence[RowSetLike], universe: int) -> RowSetLike:
    """Rows in any of some sets."""
    filled = [one for one in sets if one.count]
    if len(filled) < 2:  # noqa: PLR2004 - nothing to unite
        return filled[0] if filled else nothing(universe)
    if sum(one.count for one in filled) * DENSE > universe:
        bits = filled[0].bits().copy()
        for one in filled[1:]:
            if one.count * TESTED > universe:
                bits |= one.bits()
            else:
                bits |= pack(one.array(), universe)
        return RowSet(universe, bits=bits)
    return RowSet(universe, array=np.unique(np.concatenate([one.array() for one in filled])))


def difference(rows: RowSetLike, other: RowSetLike, universe: int) -> RowSetLike:
    """Rows of one set that are not in another."""
    if not other.count or not rows.count:
        return rows
    if rows.count * DENSE > universe:
        return RowSet(universe, bits=rows.bits() & ~other.bits())
    array = rows.array()
    return RowSet(universe, array=array.compress(~other.test(array)))
