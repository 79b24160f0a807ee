"""Answers a pruner's questions for many files at once, from the Arrow table of the live files.

The table is that of `files()`: `num_records`, and the structs `partition_values`, `min`,
`max`, `max_number` and `null_count`, of which only the needed fields have to be there. A
missing or null field is unknown, except that a null partition value is the value NULL.
`max` is above every value; `max_number` is above every number, though NaN may occur too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import FALSE, NEITHER, TRUE, from_values, scalar, whole
from indextables.model.truncation import LAST, MARKER, REPLACEMENTS, successor
from indextables.predicate.evaluate.ordering import as_double, compare_array
from indextables.predicate.prune.facts import is_nan, spans_of
from indextables.predicate.prune.one_file import keeps_order
from indextables.predicate.tree import Cast, Column, Operand
from indextables.records import dataclass

_NONE = scalar(0, pa.int64())
_SEARCHED = 4  # lists longer than this are searched, shorter ones tested value by value


class ManyFiles:
    """A table of files; `partitions_only` shows what partition values decide without statistics."""

    def __init__(
        self, files: pa.Table, partition_columns: frozenset[str], *, partitions_only: bool = False
    ) -> None:
        self._files = files
        self._partition_columns = partition_columns
        self._partitions_only = partitions_only
        self._bounds: dict[Operand, _FileBounds] = {}

    def column(self, operand: Operand) -> _FileBounds:
        """Return the bounds of a column in every file, after its cast if there is one."""
        if operand not in self._bounds:
            column = operand.column if isinstance(operand, Cast) else operand
            if column.is_one_of(self._partition_columns):
                bounds = self._partition(column)
            elif self._partitions_only:
                bounds = _FileBounds()
            else:
                bounds = self._statistics(column)
            self._bounds[operand] = _seen_as(bounds, operand)
        return self._bounds[operand]

    def constant(self, truth: bool | None) -> Any:
        """Return one answer for all files."""
        return scalar(truth, pa.bool_())

    def both(self, left: Any, right: Any) -> Any:
        """Kleene's AND."""
        return pc.and_kleene(left, right)

    def either(self, left: Any, right: Any) -> Any:
        """Kleene's OR."""
        return pc.or_kleene(left, right)

    def _child(self, struct: str, column: Column, kind: pa.DataType) -> Any:
        if struct not in self._files.column_names:
            return None
        parent = self._files.column(struct)
        position = parent.type.get_field_index(column.name) if pa.types.is_struct(parent.type) else -1
        if position < 0 or parent.type.field(position).type != kind:
            return None
        return whole(pc.struct_field(parent, [position]))

    def _partition(self, column: Column) -> _FileBounds:
        values = self._child("partition_values", column, column.type)
        if values is None:
            return _FileBounds()
        null, present = pc.is_null(values), pc.is_valid(values)
        parent = self._files.column("partition_values")
        if parent.null_count:
            is_readable = whole(pc.is_valid(parent))
            null = pc.if_else(is_readable, null, NEITHER)
            present = pc.if_else(is_readable, present, NEITHER)
        return _FileBounds(values, values, None, null, present, is_partition=True)

    def _statistics(self, column: Column) -> _FileBounds:
        least = self._child("min", column, column.type)
        greatest = self._child("max", column, column.type)
        nulls = self._child("null_count", column, pa.int64())
        present: Any = NEITHER
        if nulls is not None and "num_records" in self._files.column_names:
            present = pc.not_equal(nulls, whole(self._files.column("num_records")))
        for bound in (least, greatest):
            if bound is not None:
                present = pc.if_else(pc.is_valid(bound), TRUE, present)
        null = NEITHER if nulls is None else pc.not_equal(nulls, _NONE)
        lower, _ = _uncut(_numbers(least), keep_prefix=True)
        upper, cut = _uncut(_numbers(greatest), keep_prefix=False)
        number = _numbers(self._child("max_number", column, column.type))
        return _trusted(_FileBounds(lower, upper, cut, null, present, number=number))


@dataclass(frozen=True, slots=True)
class _FileBounds:
    """Bounds by file. Where a maximum was cut, `upper` is null and `cut` holds its prefix."""

    lower: Any = None
    upper: Any = None
    cut: Any = None
    null: Any = NEITHER
    value: Any = NEITHER
    is_partition: bool = False
    number: Any = None
    """Upper bounds of the numbers, also where NaN may lie above them and `upper` is null."""

    def of_numbers(self) -> _FileBounds:
        if self.number is None:
            return self
        upper = self.number if self.upper is None else pc.coalesce(self.upper, self.number)
        return replace(self, upper=upper, number=None)

    def may_be_null(self) -> Any:
        return self.null

    def may_have_value(self) -> Any:
        return self.value

    def may_be_below(self, value: Any, *, or_equal: bool) -> Any:
        return NEITHER if self.lower is None else compare_array("<=" if or_equal else "<", self.lower, value)

    def may_be_above(self, value: Any, *, or_equal: bool) -> Any:
        if self.upper is None:
            return NEITHER
        above = compare_array(">=" if or_equal else ">", self.upper, value)
        if self.cut is None:
            return above
        # A text lies above everything with a prefix if it is greater and does not begin with it itself.
        longest = pc.max(pc.utf8_length(self.cut)).as_py() or 0
        prefixes = from_values([value[:end] for end in range(min(len(value), longest) + 1)], pa.string())
        beyond = pc.and_(
            compare_array("<", self.cut, value), pc.invert(pc.is_in(self.cut, value_set=prefixes))
        )
        return pc.coalesce(above, pc.invert(beyond))

    def may_be_one_of(self, values: tuple[Any, ...]) -> Any:
        if (
            self.lower is not None
            and self.upper is not None
            and len(values) > _SEARCHED
            and self._is_searchable()
        ):
            return self._search(values)
        possible: Any = FALSE
        for low, high in spans_of(values):
            column = self if is_nan(high) else self.of_numbers()
            within = pc.and_kleene(
                column.may_be_below(high, or_equal=True), column.may_be_above(low, or_equal=True)
            )
            possible = pc.or_kleene(possible, within)
        return possible

    def _is_searchable(self) -> bool:
        kind = self.lower.type
        if pa.types.is_decimal(kind) or pa.types.is_binary(kind) or not hasattr(pc, "search_sorted"):
            return False
        return not (self.is_partition and pa.types.is_floating(kind))

    def _search(self, values: tuple[Any, ...]) -> Any:
        """Count the values below the lower bound and up to the upper: if the counts differ, one is within."""
        kind = self.lower.type
        numbers = [value for value in values if not is_nan(value)]
        ordered = from_values(sorted(numbers), kind)
        below = pc.fill_null(pc.search_sorted(ordered, self.lower, side="left"), 0)
        upto = pc.search_sorted(ordered, self.of_numbers().upper, side="right")
        if self.cut is not None:
            ends = self.cut.dictionary_encode()
            nexts = pa.array([successor(text) for text in ends.dictionary.to_pylist()], kind).take(
                ends.indices
            )
            upto = pc.coalesce(upto, pc.search_sorted(ordered, nexts, side="left"))
        possible = pc.greater(pc.fill_null(upto, len(numbers)), below)
        if len(numbers) < len(values):
            possible = pc.or_(possible, pc.is_null(self.upper))
        return possible

    def may_be_none_of(self, values: tuple[Any, ...]) -> Any:
        if self.lower is None or self.upper is None:
            return NEITHER
        single = pc.equal(self.lower, self.upper)
        held: Any = self.lower
        chosen = list(values)
        if pa.types.is_floating(held.type):
            single = pc.or_(single, pc.and_(pc.is_nan(self.lower), pc.is_nan(self.upper)))
            held, chosen = pc.add(held, 0.0), [value + 0.0 for value in chosen]  # -0.0 hashes unlike 0.0
        listed = pc.is_in(held, value_set=from_values(chosen, held.type))
        return pc.invert(pc.and_kleene(single, listed))

    def may_start(self, prefix: str) -> Any:
        if self.lower is None:
            return pc.and_kleene(NEITHER, self.may_be_above(prefix, or_equal=True))
        after = pc.and_(compare_array(">", self.lower, prefix), pc.invert(pc.starts_with(self.lower, prefix)))
        return pc.and_kleene(pc.invert(after), self.may_be_above(prefix, or_equal=True))

    def may_start_otherwise(self, prefix: str) -> Any:
        if self.lower is None or self.upper is None:
            return NEITHER
        greatest = self.upper if self.cut is None else pc.coalesce(self.upper, self.cut)
        same = pc.and_(pc.starts_with(self.lower, prefix), pc.starts_with(greatest, prefix))
        return pc.invert(same)


def _trusted(column: _FileBounds) -> _FileBounds:
    """The same facts, unknown where a minimum lies above its maximum."""
    greatest = column.of_numbers().upper
    if column.lower is None or greatest is None:
        return column
    if column.cut is not None:
        greatest = pc.coalesce(greatest, pc.binary_join_element_wise(column.cut, LAST, ""))
    crossed = are_crossed(column.lower, greatest)
    if not crossed.true_count:
        return column

    def sound(facts: Any) -> Any:
        return facts if facts is None else pc.if_else(crossed, scalar(None, facts.type), facts)

    names = ("lower", "upper", "cut", "null", "value", "number")
    return _FileBounds(**{name: sound(getattr(column, name)) for name in names})


def are_crossed(lower: pa.Array, upper: pa.Array) -> pa.BooleanArray:
    """For each file whether its minimum lies above its maximum, from which nothing follows."""
    return pc.fill_null(pc.greater(lower, upper), FALSE)


def _numbers(bound: Any) -> Any:
    """The values with NaN made null: a recorded NaN says nothing about the other numbers."""
    if bound is None or not pa.types.is_floating(bound.type):
        return bound
    nan = pc.is_nan(bound)
    return pc.if_else(nan, scalar(None, bound.type), bound) if pc.any(nan).as_py() else bound


def _uncut(bound: Any, *, keep_prefix: bool) -> tuple[Any, Any]:
    """Return complete values (for minima also prefixes, which serve as well), and prefixes of cut ones."""
    if bound is None or not pa.types.is_string(bound.type):
        return bound, None
    cut = pc.fill_null(pc.ends_with(bound, MARKER), FALSE)
    if not cut.true_count:
        return bound, None
    # The marker is ASCII, so its characters are bytes, and bytes are cut many times faster.
    shortened = pc.binary_slice(bound.cast(pa.binary()), 0, -len(MARKER)).view(pa.string())
    prefixes = _only(shortened, cut)
    if any(pc.any(pc.ends_with(prefixes, mark)).as_py() for mark in REPLACEMENTS):
        prefixes = pc.utf8_rtrim(prefixes, REPLACEMENTS)
    if not keep_prefix:
        return _only(bound, pc.and_not(pc.is_valid(bound), cut)), prefixes
    is_all = cut.true_count == len(bound) - bound.null_count
    return (prefixes if is_all else pc.if_else(cut, prefixes, bound)), prefixes


def _only(texts: Any, chosen: Any) -> Any:
    """Return the chosen texts and null elsewhere, without copying the texts."""
    if texts.offset or chosen.offset:
        return pc.if_else(chosen, texts, scalar(None, pa.string()))
    _, offsets, data = texts.buffers()
    return pa.StringArray.from_buffers(len(texts), offsets, data, chosen.buffers()[1])


def _seen_as(bounds: _FileBounds, operand: Operand) -> _FileBounds:
    if not isinstance(operand, Cast):
        if operand.order == "binary":
            return bounds
    elif keeps_order(operand):
        lower, upper, number = (
            None if end is None else as_double(end) for end in (bounds.lower, bounds.upper, bounds.number)
        )
        return _FileBounds(lower, upper, None, bounds.null, bounds.value, bounds.is_partition, number)
    return _FileBounds(null=bounds.null, value=bounds.value)
