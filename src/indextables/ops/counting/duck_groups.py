"""Partial tables of whole splits by DuckDB's GROUP BY, for keys and states that it computes exactly.

A histogram is grouped by steps of numbers or time, none of which is in two buckets, and the
few resulting groups get their buckets here. What DuckDB returns is grouped once more, so that keys
which are equal here (NaN, zeros) are one group. Left to others: bounds of floats and decimals,
collations, and fields of structs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from indextables.duck.conditions import UnlikeError, column_text, is_comparable
from indextables.lazy import pc
from indextables.log.snapshot import Snapshot
from indextables.ops.counting.aggregation import Aggregation, GroupKey
from indextables.ops.counting.buckets import Calendar, Width
from indextables.ops.counting.partial import Layout, PartialState, key_values
from indextables.ops.read.pushdown import DuckQuery, run_in_duckdb
from indextables.predicate.tree import Node
from indextables.split.layout import SplitRef

FAR = 1 << 61
"""How far below zero whole numbers may be. Those of a year are below 1 << 45, in microseconds."""


def partial_by_duckdb(
    snapshot: Snapshot, refs: Sequence[SplitRef], node: Node | None, aggregation: Aggregation, layout: Layout
) -> tuple[pa.Table | None, Sequence[SplitRef]]:
    """The partial table of the splits that DuckDB can group, if any, and the splits that are left."""
    try:
        selected = [*map(_key, aggregation.keys), *map(_state, layout.states), *map(_proof, aggregation.keys)]
        by = ", ".join(str(at + 1) for at in range(len(aggregation.keys)))
        query = DuckQuery(", ".join(selected), aggregation.columns, f"GROUP BY {by}" if by else "")
        groups, left = run_in_duckdb(snapshot, refs, node, query)
        return (None, refs) if groups is None else (_partial(groups, aggregation, layout), left)
    except UnlikeError:
        return None, refs


def _partial(groups: pa.Table, aggregation: Aggregation, layout: Layout) -> pa.Table:
    columns: dict[str, Any] = {}
    first_proof = len(aggregation.keys) + len(layout.states)
    for at, key in enumerate(aggregation.keys):
        without_key = pc.is_null(groups.column(at))
        if pc.sum(groups.column(first_proof + at).filter(without_key)).as_py():
            raise UnlikeError("DuckDB takes the largest times for infinite, and counts them as null")
        columns[f"k{at}"] = key_values(_bucketed(key, groups.column(at).combine_chunks()))
    for at, state in enumerate(layout.states):
        columns[f"s{at}"] = groups.column(len(aggregation.keys) + at).cast(state.type)
    return layout.grouped(pa.table(columns), again=True)


def _key(key: GroupKey) -> str:
    name = column_text(key.column)
    bucket, kind = key.bucket, key.column.type
    if bucket is None:
        if not is_comparable(kind):
            raise UnlikeError(key.name)
        return name
    if isinstance(bucket, Calendar):
        if is_a.is_date32(kind):
            return name
        steps = bucket.fixed_steps(kind) if is_a.is_timestamp(kind) and kind.unit == "us" else None
        if steps is None:
            raise UnlikeError(key.name)
        return _step(f"epoch_us({name})", *steps)
    if is_a.is_signed_integer(kind) and isinstance(bucket.size, int) and isinstance(bucket.offset, int):
        return _step(f"CAST({name} AS BIGINT)", bucket.size, bucket.offset)
    if is_a.is_floating(kind):
        return f"floor((CAST({name} AS DOUBLE) - {_double(bucket.offset)}) / {_double(bucket.size)})"
    raise UnlikeError(key.name)


def _proof(key: GroupKey) -> str:
    """How many values of a group are not null; none should be where the key is."""
    return f"count({column_text(key.column)})" if isinstance(key.bucket, Calendar) else "0"


def _step(number: str, unit: int, origin: int) -> str:
    """The number of the step that a whole number is in, counted so that the first one of any use is 1.

    Whole numbers are divided towards zero in SQL, which is down for numbers above it.
    """
    return f"({number} + CAST({_lifted(unit) - origin} AS BIGINT)) // CAST({unit} AS BIGINT)"


def _lifted(unit: int) -> int:
    lifted = FAR // unit * unit
    if not lifted:
        raise UnlikeError(f"steps of {unit}")
    return lifted


def _starts(steps: Any, unit: int, origin: int) -> Any:
    """Where steps begin; the numbers of a column may be too far below zero for steps above it."""
    numbers = steps.drop_null().to_numpy()
    if len(numbers) and int(numbers.min()) < 1:
        raise UnlikeError("numbers far below zero")
    return pc.add(pc.multiply(steps, unit), origin - _lifted(unit))


def _double(value: Any) -> str:
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def _bucketed(key: GroupKey, values: Any) -> Any:
    """The keys of groups, from the steps that DuckDB grouped by."""
    bucket, kind = key.bucket, key.column.type
    if isinstance(bucket, Calendar):
        steps = None if is_a.is_date32(kind) else bucket.fixed_steps(kind)
        return bucket.of(values.cast(kind) if steps is None else _starts(values, *steps).cast(kind))
    if isinstance(bucket, Width) and is_a.is_integer(kind):
        return _starts(values, int(bucket.size), int(bucket.offset))
    if isinstance(bucket, Width):
        # As for rows: NaN and the infinite ones stay what they are.
        return bucket.starts(values)
    return values.cast(key.type)


def _state(state: PartialState) -> str:
    if state.column is None:
        return "count(*)"
    name, kind = column_text(state.column), state.column.type
    if state.kind == "count":
        return f"count({name})"
    if state.kind == "sum" and is_a.is_signed_integer(kind):
        return f"CAST(sum({name}) AS DECIMAL(38, 0))"
    if state.kind == "sum" and is_a.is_floating(kind):
        return f"sum(CAST({name} AS DOUBLE))"
    if state.kind in ("min", "max") and is_comparable(kind):
        return f"{state.kind}({name})"
    raise UnlikeError(str(state))
