"""Answers the pruner's questions with DataFrame columns, so that files are pruned on the cluster.

`predicate.prune.rule` asks what is possible and combines the answers; here an answer is a
Spark column, true, false or null for each file. The same code asks the questions on one
machine, so both keep the same files. Spark's own comparisons have the tree's order: NaN
above all, -0.0 equal to 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from indextables.model.truncation import LAST, MARKER, REPLACEMENTS
from indextables.predicate.prune.facts import is_nan, spans_of
from indextables.predicate.prune.one_file import keeps_order
from indextables.predicate.prune.rule import columns_needed, conjuncts, possible
from indextables.predicate.tree import Cast, Node, Operand
from indextables.predicate.tree import Column as TreeColumn
from indextables.spark.read.filters import literal

# Longer lists become one array that is searched, shorter ones a test per value.
_SEARCHED = 8

Lookup = Callable[[TreeColumn], Column | None]


def _unknown() -> Column:
    return F.lit(None).cast("boolean")


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a DataFrame of files; a lookup returns None for a column it lacks."""

    partition: Lookup
    least: Lookup
    greatest: Lookup
    null_count: Lookup
    number: Lookup = lambda _: None
    """Upper bounds of the numbers of a column, above which NaN may lie."""
    num_records: Column | None = None
    partitions_readable: Column | None = None
    """False for files whose partition values could not be read; None when they always can."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """Two conditions on files, never null: what partition values leave, and what everything leaves."""

    by_partition: Column
    everything: Column


def skipping(node: Node | None, files: FileColumns, partition_columns: frozenset[str]) -> Skipping:
    """The conditions under which a file may hold a row that matches."""
    facts = SparkFiles(files, partition_columns)
    alone = SparkFiles(files, partition_columns, partitions_only=True)
    by_partition = everything = F.lit(True)
    for part in conjuncts(node):
        needs = columns_needed(part, partition_columns)
        if needs.partitions:
            by_partition = by_partition & _unless_false(possible(part, True, alone))
        everything = everything & _unless_false(possible(part, True, facts))
    return Skipping(by_partition, everything)


def _unless_false(truth: Column) -> Column:
    return F.coalesce(truth, F.lit(True))


class SparkFiles:
    """Facts about files in the rows of a DataFrame; `partitions_only` leaves statistics aside."""

    def __init__(
        self, files: FileColumns, partition_columns: frozenset[str], *, partitions_only: bool = False
    ) -> None:
        self._files = files
        self._partition_columns = partition_columns
        self._partitions_only = partitions_only

    def column(self, operand: Operand) -> ColumnOfFiles:
        """The bounds of a column, after its cast if there is one."""
        column = operand.column if isinstance(operand, Cast) else operand
        if column.is_one_of(self._partition_columns):
            bounds = self._partition(column)
        elif self._partitions_only:
            bounds = ColumnOfFiles(column.type)
        else:
            bounds = self._statistics(column)
        return _seen_as(bounds, operand)

    def constant(self, truth: bool | None) -> Column:
        """One answer for all files."""
        return F.lit(truth).cast("boolean")

    def both(self, left: Column, right: Column) -> Column:
        """Kleene's AND, which is SQL's."""
        return left & right

    def either(self, left: Column, right: Column) -> Column:
        """Kleene's OR, which is SQL's."""
        return left | right

    def _partition(self, column: TreeColumn) -> ColumnOfFiles:
        value = self._files.partition(column)
        if value is None:
            return ColumnOfFiles(column.type)
        null, present = value.isNull(), value.isNotNull()
        readable = self._files.partitions_readable
        if readable is not None:
            null, present = F.when(readable, null), F.when(readable, present)
        return ColumnOfFiles(column.type, value, value, None, null, present)

    def _statistics(self, column: TreeColumn) -> ColumnOfFiles:
        least, greatest = self._files.least(column), self._files.greatest(column)
        nulls, rows = self._files.null_count(column), self._files.num_records
        present = _unknown() if nulls is None or rows is None else nulls != rows
        for bound in (least, greatest):
            if bound is not None:
                present = F.when(bound.isNotNull(), True).otherwise(present)
        null = _unknown() if nulls is None else nulls != F.lit(0)
        lower, upper, cut = _number(least, column.type), _number(greatest, column.type), None
        if pa.types.is_string(column.type):
            lower = None if lower is None else F.when(lower.endswith(MARKER), _prefix(lower)).otherwise(lower)
            if upper is not None:
                cut = F.when(upper.endswith(MARKER), _prefix(upper))
                upper = F.when(~upper.endswith(MARKER), upper)
        number = _number(self._files.number(column), column.type)
        return _trusted(ColumnOfFiles(column.type, lower, upper, cut, null, present, number))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnOfFiles:
    """Bounds of one column by file. Where a maximum was cut, `upper` is null and `cut` holds its prefix."""

    kind: pa.DataType
    lower: Column | None = None
    upper: Column | None = None
    cut: Column | None = None
    null: Column | None = None
    value: Column | None = None
    number: Column | None = None

    def of_numbers(self) -> ColumnOfFiles:
        """The same with an upper bound of the numbers, where NaN cannot match."""
        if self.number is None:
            return self
        upper = self.number if self.upper is None else F.coalesce(self.upper, self.number)
        return replace(self, upper=upper, number=None)

    def may_be_null(self) -> Column:
        """From the null count, or the partition value."""
        return _unknown() if self.null is None else self.null

    def may_have_value(self) -> Column:
        """From a bound, or from fewer nulls than rows."""
        return _unknown() if self.value is None else self.value

    def may_be_below(self, value: Any, *, or_equal: bool) -> Column:
        """Compare with the lower bound."""
        if self.lower is None:
            return _unknown()
        literal = self._literal(value)
        return self.lower <= literal if or_equal else self.lower < literal

    def may_be_above(self, value: Any, *, or_equal: bool) -> Column:
        """Compare with the upper bound, or with the prefix of one that was cut."""
        if self.upper is None:
            return _unknown()
        literal = self._literal(value)
        whole = self.upper >= literal if or_equal else self.upper > literal
        if self.cut is None:
            return whole
        beyond = (self.cut < literal) & ~F.startswith(literal, self.cut)
        return F.coalesce(whole, ~beyond)

    def may_be_one_of(self, values: tuple[Any, ...]) -> Column:
        """Look for a value, or a range of them, that meets the bounds."""
        spans = spans_of(values)
        if len(spans) <= _SEARCHED:
            matches = F.lit(False)
            for low, high in spans:
                column = self if is_nan(high) else self.of_numbers()
                matches = matches | column._within(low, high)  # noqa: SLF001 - the same class
            return matches
        pairs = F.array(
            *(F.struct(self._literal(low).alias("l"), self._literal(high).alias("h")) for low, high in spans)
        )
        column = self if any(is_nan(value) for value in values) else self.of_numbers()
        return F.exists(pairs, lambda span: column._within(span["l"], span["h"]))  # noqa: SLF001 - the same class

    def may_be_none_of(self, values: tuple[Any, ...]) -> Column:
        """Only a file with one single value, and that in the list, cannot."""
        if self.lower is None or self.upper is None:
            return _unknown()
        listed = F.array_contains(F.array(*(self._literal(value) for value in values)), self.lower)
        return ~((self.lower == self.upper) & listed)

    def may_start(self, prefix: str) -> Column:
        """Texts with a prefix lie from the prefix to its successor."""
        above = self.may_be_above(prefix, or_equal=True)
        if self.lower is None:
            return _unknown() & above
        after = (self.lower > F.lit(prefix)) & ~F.startswith(self.lower, F.lit(prefix))
        return ~after & above

    def may_start_otherwise(self, prefix: str) -> Column:
        """Not where both bounds begin so, since then everything between them does."""
        if self.lower is None or self.upper is None:
            return _unknown()
        greatest = self.upper if self.cut is None else F.coalesce(self.upper, self.cut)
        return ~(F.startswith(self.lower, F.lit(prefix)) & F.startswith(greatest, F.lit(prefix)))

    def _within(self, low: Any, high: Any) -> Column:
        return self.may_be_below(high, or_equal=True) & self.may_be_above(low, or_equal=True)

    def _literal(self, value: Any) -> Column:
        return value if isinstance(value, Column) else literal(value, self.kind)


def _trusted(column: ColumnOfFiles) -> ColumnOfFiles:
    """The same facts, unknown where a minimum lies above its maximum: such statistics are wrong."""
    greatest = column.of_numbers().upper
    if column.lower is None or greatest is None:
        return column
    if column.cut is not None:
        greatest = F.coalesce(greatest, F.concat(column.cut, F.lit(LAST)))
    sound = F.coalesce(column.lower <= greatest, F.lit(True))
    names = ("lower", "upper", "cut", "null", "value", "number")
    facts = {name: getattr(column, name) for name in names}
    return replace(column, **{name: F.when(sound, fact) for name, fact in facts.items() if fact is not None})


def _number(bound: Column | None, kind: pa.DataType) -> Column | None:
    """A NaN that a writer recorded says nothing of the numbers."""
    if bound is None or not pa.types.is_floating(kind):
        return bound
    return F.when(~F.isnan(bound), bound)


def _prefix(bound: Column) -> Column:
    """The text before the truncation marker, without what a cut surrogate pair leaves behind."""
    text = bound.substr(F.lit(1), F.length(bound) - F.lit(len(MARKER)))
    # Spark's rtrim takes the characters to remove since 4.0.
    return F.regexp_replace(text, rf"[{REPLACEMENTS}]+\z", "")


def _seen_as(bounds: ColumnOfFiles, operand: Operand) -> ColumnOfFiles:
    if not isinstance(operand, Cast):
        if operand.order == "binary":
            return bounds
    elif keeps_order(operand):
        lower, upper, number = (
            None if end is None else end.cast("double") for end in (bounds.lower, bounds.upper, bounds.number)
        )
        return ColumnOfFiles(operand.type, lower, upper, None, bounds.null, bounds.value, number)
    return ColumnOfFiles(bounds.kind, null=bounds.null, value=bounds.value)
