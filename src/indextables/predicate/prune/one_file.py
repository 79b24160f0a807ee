"""Answers a pruner's questions for one file, from its add action."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from indextables.model.stats import FileStats
from indextables.model.truncation import LAST, is_truncated, prefix_of, successor
from indextables.model.values import parse_partition, parse_stat
from indextables.predicate.prune.facts import spans_of
from indextables.predicate.tree import Cast, Column, Operand
from indextables.records import dataclass

Truth = bool | None


def both(left: Truth, right: Truth) -> Truth:
    """Kleene's AND."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    """Kleene's OR."""
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def less(left: Any, right: Any) -> bool:
    """Spark's order of two values of one type."""
    if isinstance(left, float) and math.isnan(left):
        return False
    if isinstance(right, float) and math.isnan(right):
        return True
    return bool(left < right)


@dataclass(frozen=True, slots=True)
class OneFile:
    """The statistics and partition values of a file."""

    stats: FileStats
    partition_values: Mapping[str, str | None]
    partition_columns: frozenset[str]

    def column(self, operand: Operand) -> Bounds:
        """Return the bounds of a column, after its cast if there is one."""
        column = operand.column if isinstance(operand, Cast) else operand
        if column.is_one_of(self.partition_columns):
            bounds = _of_partition(column, self.partition_values)
        else:
            bounds = _of_statistics(column, self.stats)
        return _seen_as(bounds, operand) if isinstance(operand, Cast) else bounds

    def constant(self, truth: Truth) -> Truth:
        """Return the answer itself."""
        return truth

    def both(self, left: Truth, right: Truth) -> Truth:
        """Kleene's AND."""
        return both(left, right)

    def either(self, left: Truth, right: Truth) -> Truth:
        """Kleene's OR."""
        return either(left, right)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The minimum and maximum of a column; a truncated maximum leaves a prefix and an open bound."""

    lower: Any = None
    upper: Any = None
    cut: str | None = None
    null: Truth = None
    value: Truth = None

    def of_numbers(self) -> Bounds:
        """A recorded maximum covers NaN, so nothing more is known of the numbers."""
        return self

    def may_be_null(self) -> Truth:
        """From the null count, or the partition value."""
        return self.null

    def may_have_value(self) -> Truth:
        """From a bound, or from fewer nulls than rows."""
        return self.value

    def may_be_below(self, value: Any, *, or_equal: bool) -> Truth:
        """Compare with the lower bound."""
        if self.lower is None:
            return None
        return not less(value, self.lower) if or_equal else less(self.lower, value)

    def may_be_above(self, value: Any, *, or_equal: bool) -> Truth:
        """Compare with the upper bound."""
        if self.upper is None:
            return None
        if self.cut is not None or not or_equal:
            return less(value, self.upper)
        return not less(self.upper, value)

    def may_be_one_of(self, values: tuple[Any, ...]) -> Truth:
        """Look for a value, or a range of them, that meets the bounds."""
        possible: Truth = False
        for low, high in spans_of(values):
            within = both(self.may_be_below(high, or_equal=True), self.may_be_above(low, or_equal=True))
            possible = either(possible, within)
        return possible

    def may_be_none_of(self, values: tuple[Any, ...]) -> Truth:
        """Only a file with one single value, and that in the list, cannot."""
        if self.lower is None or self.upper is None or self.cut is not None:
            return None
        single = not less(self.lower, self.upper)
        return not (
            single and any(not less(value, self.lower) and not less(self.lower, value) for value in values)
        )

    def may_start(self, prefix: str) -> Truth:
        """Texts with a prefix lie from the prefix to its successor."""
        after = None if self.lower is None else self.lower > prefix and not self.lower.startswith(prefix)
        not_after = None if after is None else not after
        return both(not_after, self.may_be_above(prefix, or_equal=True))

    def may_start_otherwise(self, prefix: str) -> Truth:
        """False if both bounds begin with it, since then everything between them does."""
        greatest = self.upper if self.cut is None else self.cut
        if self.lower is None or greatest is None:
            return None
        return not (self.lower.startswith(prefix) and greatest.startswith(prefix))


UNKNOWN = Bounds()


def _of_partition(column: Column, values: Mapping[str, str | None]) -> Bounds:
    if column.name not in values:
        return UNKNOWN
    text = values[column.name]
    if text is None:
        return Bounds(null=True, value=False)
    try:
        value = parse_partition(text, column.type)
    except ValueError:
        return UNKNOWN
    return _ordered(Bounds(value, value, null=False, value=True), column)


def _of_statistics(column: Column, stats: FileStats) -> Bounds:
    least = _parsed(stats.min_values.get(column.name), column.type)
    greatest = _parsed(stats.max_values.get(column.name), column.type)
    nulls, rows = stats.null_count.get(column.name), stats.num_records
    # A minimum or maximum proves a value, whatever the counts say.
    value = True if least is not None or greatest is not None else None
    if value is None and nulls is not None and rows is not None:
        value = nulls != rows
    lower, upper, cut = _number(least), _number(greatest), None
    if isinstance(lower, str) and is_truncated(lower):
        lower = prefix_of(lower)
    if isinstance(upper, str) and is_truncated(upper):
        cut = prefix_of(upper)
        upper = successor(cut)
    greatest = upper if cut is None else cut + LAST
    if lower is not None and greatest is not None and less(greatest, lower):
        # A minimum above its maximum is wrong, and nothing follows from wrong statistics.
        return UNKNOWN
    return _ordered(Bounds(lower, upper, cut, None if nulls is None else nulls != 0, value), column)


def _parsed(text: str | None, kind: pa.DataType) -> Any:
    try:
        return None if text is None else parse_stat(text, kind)
    except ValueError:
        return None


def _number(value: Any) -> Any:
    """None for a NaN: a recorded NaN says nothing about the other numbers."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _ordered(bounds: Bounds, column: Column) -> Bounds:
    """For padded and collated strings, which do not compare by bytes, only nulls are known."""
    return bounds if column.order == "binary" else Bounds(null=bounds.null, value=bounds.value)


def _seen_as(bounds: Bounds, cast: Cast) -> Bounds:
    """Apply a cast to bounds if it keeps the order of numbers; otherwise only nulls are known."""
    if keeps_order(cast):
        lower, upper = (None if end is None else float(end) for end in (bounds.lower, bounds.upper))
        return Bounds(lower, upper, None, bounds.null, bounds.value)
    return Bounds(null=bounds.null, value=bounds.value)


def keeps_order(cast: Cast) -> bool:
    """Whether a cast is from a number to double, which rounds but never changes the order."""
    source = cast.column.type
    is_number = pa.types.is_integer(source) or pa.types.is_floating(source) or pa.types.is_decimal(source)
    return bool(is_number and pa.types.is_float64(cast.type))
