"""Partial aggregates: what some rows contribute, to be merged with what others contribute.

A partial table has one row per group, with the keys and the states that the aggregates
need; partial tables are merged by grouping them again. The results follow Spark: NULL is
a group, NaN equals NaN and is the greatest number, 0.0 and -0.0 are one key, sums of
integers are exact and an overflow is an error, decimals have Spark's precision and scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import TableError
from indextables.lazy import pc
from indextables.ops.counting.aggregation import Aggregate, Aggregation, GroupKey
from indextables.predicate.evaluate.ordering import spark_order
from indextables.predicate.tree import Column

MERGE_AT = 65_536
"""Partial tables are merged once their rows are this many, or twice as many as the last merge left."""
_WHOLE = pa.decimal128(38, 0)
_MOST_DIGITS = 38
_SUM_DIGITS, _AVG_DIGITS = 10, 4
_HOW = {"rows": "count_all", "count": "count", "sum": "sum", "min": "min", "max": "max", "nan": "any"}
_AGAIN = {"rows": "sum", "count": "sum", "sum": "sum", "min": "min", "max": "max", "nan": "any"}


@dataclass(frozen=True, slots=True)
class PartialState:
    """One number kept per group: `rows`, or count, sum, min, max or nan of a column."""

    kind: str
    column: Column | None = None

    @property
    def type(self) -> pa.DataType:
        """Its type in a partial table."""
        if self.kind in ("rows", "count"):
            return pa.int64()
        if self.kind == "nan":
            return pa.bool_()
        assert self.column is not None
        return _sum_type(self.column.type) if self.kind == "sum" else self.column.type

    def prepared(self, values: Any) -> Any:
        """The values of its column in the form that is aggregated."""
        if self.kind == "nan":
            return pc.is_nan(values)
        if self.kind != "sum":
            return values
        if pa.types.is_integer(values.type) and not _may_overflow(values):
            return values
        return values.cast(self.type)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a partial table: `k0..` the keys, `s0..` the states."""

    keys: tuple[pa.DataType, ...]
    states: tuple[PartialState, ...]
    where: tuple[tuple[int, ...], ...]
    """For every aggregate, the indexes of its states."""

    @classmethod
    def of(cls, aggregation: Aggregation) -> Layout:
        """The layout of an aggregation without its distinct counts."""
        states = {PartialState("rows"): 0}
        where = []
        for item in aggregation.aggregates:
            needed = () if item.distinct else _states(item)
            where.append(tuple(states.setdefault(state, len(states)) for state in needed))
        return cls(tuple(key.type for key in aggregation.keys), tuple(states), tuple(where))

    @property
    def schema(self) -> pa.Schema:
        """The schema of a partial table."""
        keys = [pa.field(f"k{at}", kind) for at, kind in enumerate(self.keys)]
        return pa.schema([*keys, *(pa.field(f"s{at}", state.type) for at, state in enumerate(self.states))])

    def grouped(self, table: pa.Table, *, again: bool, words: Mapping[int, Any] | None = None) -> pa.Table:
        """Group rows, or with `again` partial rows, into one row per group.

        Keys in `words` are numbers of texts; those texts are given there.
        """
        names = [f"k{at}" for at in range(len(self.keys))]
        if not names:
            # A constant key: groups without one are counted by other functions.
            table = table.append_column("all", pa.repeat(pa.scalar(0, pa.int8()), table.num_rows))
        how = _AGAIN if again else _HOW
        functions: list[Any] = [
            ([], how[state.kind]) if how[state.kind] == "count_all" else (f"s{at}", how[state.kind])
            for at, state in enumerate(self.states)
        ]
        groups = table.group_by(names or ["all"], use_threads=False).aggregate(functions)
        states = [groups.column(at + len(names or ["all"])) for at in range(len(self.states))]
        keys = [groups.column(name) for name in names]
        for at, texts in (words or {}).items():
            keys[at] = pa.chunked_array([texts.take(keys[at].combine_chunks())])
        cast = [column.cast(field.type) for column, field in zip([*keys, *states], self.schema, strict=True)]
        return pa.Table.from_arrays(cast, schema=self.schema)


def distinct_aggregations(aggregation: Aggregation) -> list[tuple[int, Aggregation]]:
    """For every distinct count its index, and an aggregation whose groups are the distinct values."""
    rows = (Aggregate("", "count"),)
    return [
        (at, Aggregation((*aggregation.keys, GroupKey("", item.column)), rows))
        for at, item in enumerate(aggregation.aggregates)
        if item.distinct and item.column is not None
    ]


def _states(item: Aggregate) -> tuple[PartialState, ...]:
    if item.column is None:
        return (PartialState("rows"),)
    if item.function == "avg":
        return PartialState("sum", item.column), PartialState("count", item.column)
    if item.function == "max" and pa.types.is_floating(item.column.type):
        return PartialState("max", item.column), PartialState("nan", item.column)
    return (PartialState(item.function, item.column),)


def key_values(values: Any) -> Any:
    """Values as keys: every NaN the same one, and no negative zero."""
    if not pa.types.is_floating(values.type):
        return values
    nan = pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, pa.scalar(0.0, values.type)))


class Merging:
    """Merges partial tables as they come; memory depends on the number of groups only."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._held: list[pa.Table] = []
        self._rows = 0
        self._bound = MERGE_AT

    def add(self, part: pa.Table) -> None:
        """Add one partial table."""
        self._held.append(part)
        self._rows += part.num_rows
        if self._rows > self._bound:
            self._held = [self.total()]
            self._rows = self._held[0].num_rows
            self._bound = max(MERGE_AT, 2 * self._rows)

    def total(self) -> pa.Table:
        """All of them, merged."""
        if len(self._held) == 1:
            return self._held[0]
        if not self._held:
            return self._layout.schema.empty_table()
        return self._layout.grouped(pa.concat_tables(self._held), again=True)


def finished(
    total: pa.Table, aggregation: Aggregation, layout: Layout, distinct: dict[int, pa.Table]
) -> pa.Table:
    """The result: keys and aggregates by name, sorted by the keys with nulls first."""
    keys = [f"k{at}" for at in range(len(aggregation.keys))]
    for at, values in distinct.items():
        total = _with_distinct(total, values, keys, at)
    if not keys and not total.num_rows:
        total = pa.table({field.name: pa.nulls(1, field.type) for field in total.schema})
    if keys:
        total = total.take(spark_order(total, [(name, False) for name in keys]))
    arrays = [total.column(name) for name in keys]
    fields = [pa.field(key.name, key.type) for key in aggregation.keys]
    for at, item in enumerate(aggregation.aggregates):
        column = total.column(f"d{at}") if item.distinct else _value(item, total, layout, at)
        if item.function == "count":
            column = pc.fill_null(column, 0)
        fields.append(pa.field(item.name, column.type, nullable=item.function != "count"))
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _with_distinct(total: pa.Table, values: pa.Table, keys: list[str], at: int) -> pa.Table:
    """The groups with one more column: how many distinct values each has."""
    value = f"k{len(keys)}"
    groups = values.append_column("all", pa.repeat(pa.scalar(0, pa.int8()), values.num_rows))
    counted = groups.group_by(keys or ["all"], use_threads=False).aggregate([(value, "count")])
    if keys:
        # Both sides have the same groups, so sorted by their keys they line up.
        order = [(name, False) for name in keys]
        counted, total = (side.take(spark_order(side, order)) for side in (counted, total))
    return total.append_column(f"d{at}", counted.column(f"{value}_count"))


def _value(item: Aggregate, total: pa.Table, layout: Layout, at: int) -> Any:
    states = [total.column(f"s{place}") for place in layout.where[at]]
    if item.column is None or item.function == "count":
        return states[0]
    if item.function == "sum":
        return _summed(states[0], item.column.type, item.name)
    if item.function == "avg":
        return _mean(states[0], states[1], item.column.type)
    if item.function == "max" and len(states) > 1:
        nan = pa.scalar(float("nan"), states[0].type)
        return pc.if_else(pc.fill_null(states[1], False), nan, states[0])
    return states[0]


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_integer(kind):
        return _WHOLE
    if kind.precision + _SUM_DIGITS <= _MOST_DIGITS:
        return pa.decimal128(_MOST_DIGITS, kind.scale)
    return pa.decimal256(76, kind.scale)


def _may_overflow(values: Any) -> bool:
    """Whether a sum of whole numbers might not fit 64 bits."""
    ends = pc.min_max(values)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and max(-least, most) * len(values) >= 1 << 63


def _summed(total: Any, kind: pa.DataType, name: str) -> Any:
    if pa.types.is_floating(kind):
        return total
    target = pa.int64()
    if pa.types.is_decimal(kind):
        target = pa.decimal128(min(_MOST_DIGITS, kind.precision + _SUM_DIGITS), kind.scale)
    try:
        return total.cast(target)
    except pa.ArrowInvalid as bad:
        raise TableError(
            f"{name} is too large for {target}; cast the column to a wider type in Spark"
        ) from bad


def _mean(total: Any, count: Any, kind: pa.DataType) -> Any:
    some = pc.if_else(pc.greater(count, 0), count, pa.nulls(1, pa.int64())[0])
    if not pa.types.is_decimal(kind):
        return pc.divide(total.cast(pa.float64()), some.cast(pa.float64()))
    scale = min(_MOST_DIGITS, kind.scale + _AVG_DIGITS)
    target = pa.decimal128(min(_MOST_DIGITS, kind.precision + _AVG_DIGITS), scale)
    # The quotient has twenty digits more than are kept, so cutting it off does not change how it rounds.
    quotient = pc.divide(total.cast(pa.decimal256(48, kind.scale)), some.cast(pa.decimal256(20, 0)))
    return pc.round(quotient, scale, round_mode="half_towards_infinity").cast(target)
