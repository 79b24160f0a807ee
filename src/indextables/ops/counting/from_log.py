"""Files whose aggregates follow from the log alone, by their partition values and statistics.

Such a file has one value for every key (a partition value, a column whose minimum and
maximum are equal, all nulls, or bounds within one bucket), and all its rows match the
filter. It is not read. If the log does not know enough, the file is read: so is one of which rows
are deleted, since its statistics are those of all its rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import whole
from indextables.model.truncation import MARKER
from indextables.ops.counting.aggregation import Aggregation, GroupKey
from indextables.ops.counting.partial import Layout, PartialState, key_values
from indextables.predicate.prune.many_files import are_crossed
from indextables.predicate.tree import Column


@dataclass(frozen=True, slots=True)
class _ByFile:
    """Values by file, and the files for which they are exact."""

    values: Any
    is_exact: Any


class LogCounts:
    """The files of a plan as the rows of a partial table."""

    def __init__(self, files: pa.Table, partition_columns: Collection[str]) -> None:
        self._files = files
        self._partition_columns = partition_columns
        self._rows = whole(files.column("num_records"))

    def constant_keys(self, aggregation: Aggregation) -> tuple[list[Any], Any]:
        """The keys by file, and the files in which all rows have the same keys."""
        by_file = [self._key(key) for key in aggregation.keys]
        is_constant: Any = pc.is_valid(self._rows)
        for one in by_file:
            is_constant = pc.and_(is_constant, pc.fill_null(one.is_exact, False))
        return [key_values(one.values) for one in by_file], is_constant

    def partial(self, aggregation: Aggregation, layout: Layout, all_match: Any) -> tuple[pa.Table, Any]:
        """The partial rows of the files that the log can aggregate, and which files those are.

        `all_match` tells for each file whether all its rows match.
        """
        keys, answered = self.constant_keys(aggregation)
        states = [self._state(state) for state in layout.states]
        answered = pc.and_(answered, pc.and_(all_match, self._is_whole()))
        for one in states:
            answered = pc.and_(answered, pc.fill_null(one.is_exact, False))
        table = pa.Table.from_arrays([*keys, *(one.values for one in states)], schema=layout.schema)
        # A file without rows has no group.
        counted = pc.and_(answered, pc.greater(self._rows, 0))
        return layout.grouped(table.filter(counted), again=True), answered

    def _is_whole(self) -> Any:
        """The files of which no row is deleted; a log without the column has none that are not."""
        if "num_deleted" not in self._files.column_names:
            return pa.repeat(pa.scalar(True), len(self._files))
        return pc.is_null(whole(self._files.column("num_deleted")))

    def _child(self, struct: str, column: Column) -> Any:
        parent = self._files.column(struct)
        place = parent.type.get_field_index(column.name)
        return None if place < 0 else whole(pc.struct_field(parent, [place]))

    def _is_partition(self, column: Column) -> bool:
        return column.is_one_of(self._partition_columns)

    def _bounds(self, column: Column) -> tuple[Any, Any]:
        """Minimum and maximum where they are exact, else null."""
        low, high = (_exact(self._child(end, column), column, len(self._files)) for end in ("min", "max"))
        crossed = are_crossed(low, high)
        if crossed.true_count:
            nothing = pa.nulls(1, column.type)[0]
            low, high = (pc.if_else(crossed, nothing, end) for end in (low, high))
        return low, high

    def _nulls(self, column: Column) -> Any:
        counts = self._child("null_count", column)
        return pa.nulls(len(self._files), pa.int64()) if counts is None else counts

    def _key(self, key: GroupKey) -> _ByFile:
        if self._is_partition(key.column):
            values = self._child("partition_values", key.column)
            return _ByFile(values if key.bucket is None else key.bucket.of(values), self._has_partitions())
        low, high = self._bounds(key.column)
        nulls = self._nulls(key.column)
        empty = pc.fill_null(pc.equal(nulls, self._rows), False)
        filled = pc.fill_null(pc.equal(nulls, 0), False)
        if key.bucket is None:
            same, values = pc.equal(low, high), low
        else:
            same, values = key.bucket.is_constant(low, high), key.bucket.of(low)
        values = pc.if_else(empty, pa.nulls(1, values.type)[0], values)
        return _ByFile(values, pc.or_(empty, pc.and_(filled, pc.fill_null(same, False))))

    def _has_partitions(self) -> Any:
        return whole(pc.is_valid(self._files.column("partition_values")))

    def _state(self, state: PartialState) -> _ByFile:
        always = pa.repeat(pa.scalar(True), len(self._files))
        if state.column is None:
            return _ByFile(self._rows, always)
        column = state.column
        if self._is_partition(column) and state.kind in ("count", "min", "max"):
            values = self._child("partition_values", column)
            if state.kind == "count":
                values = pc.if_else(pc.is_valid(values), self._rows, 0)
            return _ByFile(values, self._has_partitions())
        nulls = self._nulls(column)
        if state.kind == "count":
            return _ByFile(pc.subtract(self._rows, nulls), pc.is_valid(nulls))
        empty = pc.fill_null(pc.equal(nulls, self._rows), False)
        if state.kind in ("min", "max"):
            values = self._bounds(column)[state.kind == "max"]
            return _ByFile(values, pc.or_(empty, pc.is_valid(values)))
        if state.kind == "nan":
            # A column with a NaN has no maximum.
            return _ByFile(pc.and_not(always, always), pc.or_(empty, pc.is_valid(self._bounds(column)[1])))
        return _ByFile(pa.nulls(len(self._files), state.type), empty)


def _exact(bound: Any, column: Column, rows: int) -> Any:
    if bound is None or bound.type != column.type:
        return pa.nulls(rows, column.type)
    if pa.types.is_floating(bound.type):
        return pc.if_else(pc.is_nan(bound), pa.nulls(1, bound.type)[0], bound)
    if not pa.types.is_string(bound.type):
        return bound
    return pc.if_else(pc.ends_with(bound, MARKER), pa.nulls(1, pa.string())[0], bound)
