"""The questions a pruner asks about files, with one interface for one file and for many.

Answers have three values (Kleene logic): possible, impossible or unknown. `one_file`
answers with `True`, `False` and `None`, `many_files` with Arrow arrays of them; `rule`
asks and combines, and is written once for both. Values are in Spark's order: NaN equals
itself and is above every number, -0.0 equals 0.0, strings compare by bytes.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from indextables.predicate.tree import Operand

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SPANS = 64


class ColumnFacts(Protocol[T_co]):
    """The bounds of one column. All methods but the first are about values that are not null."""

    def of_numbers(self) -> ColumnFacts[T_co]:
        """The same column where no row with NaN can match, so that only its numbers count."""

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
        """Whether some text can begin with the prefix."""

    def may_start_otherwise(self, prefix: str) -> T_co:
        """Whether some text can begin with something else."""


class Facts(Protocol[T]):
    """The columns of the files, and how truths about them combine."""

    def column(self, operand: Operand) -> ColumnFacts[T]:
        """Return the bounds of a column."""

    def constant(self, truth: bool | None) -> T:
        """Return the same answer for every file."""

    def both(self, left: T, right: T) -> T:
        """Kleene's AND."""

    def either(self, left: T, right: T) -> T:
        """Kleene's OR."""


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, which equals itself and is above every number."""
    return isinstance(value, float) and math.isnan(value)


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
