"""What can be asked of the files a predicate is tested against, in one form for one file and for many.

Truth is Kleene's: possible, impossible or not known. `one_file` answers with
`True`, `False` and `None`, `many_files` with Arrow arrays of them; `prune` asks
and combines, and is written once for both. All values are in Spark's order: NaN
equals itself and is above every number, -0.0 equals 0.0, strings go by bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Protocol, TypeVar

from indextables.predicate.tree import Operand

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SPANS = 64


class ColumnFacts(Protocol[T_co]):
    """What is known of one column. Values that are null are never meant, except by the first question."""

    def may_be_null(self) -> T_co:
        """Whether the column can be null in some row."""

    def may_have_value(self) -> T_co:
        """Whether the column can be other than null in some row."""

    def may_be_below(self, value: Any, *, or_equal: bool) -> T_co:
        """Whether some value can be less than (or equal to) this one."""

    def may_be_above(self, value: Any, *, or_equal: bool) -> T_co:
        """Whether some value can be greater than (or equal to) this one."""

    def may_be_one_of(self, values: tuple[Any, ...]) -> T_co:
        """Whether some value can be in the list."""

    def may_be_none_of(self, values: tuple[Any, ...]) -> T_co:
        """Whether some value can be missing from the list."""

    def may_start(self, prefix: str) -> T_co:
        """Whether some text can begin so."""

    def may_start_otherwise(self, prefix: str) -> T_co:
        """Whether some text can begin in another way."""


class Facts(Protocol[T]):
    """What is known of the files, and how answers combine."""

    def column(self, operand: Operand) -> ColumnFacts[T]:
        """Return what is known of a column."""

    def constant(self, truth: bool | None) -> T:
        """Return the same answer for every file."""

    def both(self, left: T, right: T) -> T:
        """Kleene's AND."""

    def either(self, left: T, right: T) -> T:
        """Kleene's OR."""


def spans_of(values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return ranges that hold all values: one each, but a bounded number for a long list of decimals.

    Decimals are what Arrow cannot search in, so each range costs a comparison with every file.
    """
    if len(values) <= SPANS or not isinstance(values[0], Decimal):
        return [(value, value) for value in values]
    ordered = sorted(values)
    size = -(-len(ordered) // SPANS)
    groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return [(group[0], group[-1]) for group in groups]
