"""Partial tables of whole files by DuckDB's GROUP BY, for keys and states that it computes exactly.

A histogram is grouped by steps of numbers or time, none of which is in two buckets, and the
few resulting groups get their buckets here. What DuckDB returns is grouped once more, so that keys
which are equal here (NaN, zeros) are one group. Not asked: bounds of floats and decimals, keys
whose number is close to that of the rows, collations, and fields of structs.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_a

from indextables.duck import database
from indextables.duck.conditions import is_comparable
from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.ops.counting.buckets import Calendar, Width
from indextables.ops.counting.partial import Layout, State, key_values
from indextables.ops.counting.question import Key, Question
from indextables.ops.read.together import Asked, ask
from indextables.predicate.tree import Column, Node

FAR = 1 << 61
"""How far below zero whole numbers may be. Those of a year are below 1 << 45, in microseconds."""


class _UnlikeError(Exception):
    """A part of a question that is not put to DuckDB."""


def partial_by_duckdb(
    snapshot: Snapshot, adds: list[AddAction], node: Node | None, question: Question, layout: Layout
) -> tuple[pa.Table | None, list[AddAction]]:
    """The partial table of splits that DuckDB can be asked about, if any, and the splits that are left."""
    try:
        wanted = [*map(_key, question.keys), *map(_state, layout.states), *map(_proof, question.keys)]
        by = ", ".join(str(at + 1) for at in range(len(question.keys)))
        end = f"GROUP BY {by}" if by else ""
        found, left = ask(snapshot, adds, node, Asked(", ".join(wanted), question.columns, end))
        return (None, adds) if found is None else (_partial(found, question, layout), left)
    except _UnlikeError:
        return None, adds


def _partial(found: pa.Table, question: Question, layout: Layout) -> pa.Table:
    columns: dict[str, Any] = {}
    first_proof = len(question.keys) + len(layout.states)
    for at, key in enumerate(question.keys):
        without = pc.is_null(found.column(at))
        if pc.sum(found.column(first_proof + at).filter(without)).as_py():
            raise _UnlikeError("DuckDB takes the largest times for infinite, and counts them as null")
        columns[f"k{at}"] = key_values(_bucketed(key, found.column(at).combine_chunks()))
    for at, state in enumerate(layout.states):
        columns[f"s{at}"] = found.column(len(question.keys) + at).cast(state.type)
    return layout.grouped(pa.table(columns), again=True)


def _key(key: Key) -> str:
    name = _column(key.column)
    bucket, kind = key.bucket, key.column.type
    if bucket is None:
        if not is_comparable(kind):
            raise _UnlikeError(key.name)
        return name
    if isinstance(bucket, Calendar):
        if is_a.is_date32(kind):
            return name
        steps = bucket.fixed_steps(kind) if is_a.is_timestamp(kind) and kind.unit == "us" else None
        if steps is None:
            raise _UnlikeError(key.name)
        return _step(f"epoch_us({name})", *steps)
    if is_a.is_signed_integer(kind) and isinstance(bucket.size, int) and isinstance(bucket.offset, int):
        return _step(f"CAST({name} AS BIGINT)", bucket.size, bucket.offset)
    if is_a.is_floating(kind):
        return f"floor((CAST({name} AS DOUBLE) - {_double(bucket.offset)}) / {_double(bucket.size)})"
    raise _UnlikeError(key.name)


def _proof(key: Key) -> str:
    """How many values of a group are not null; none should be where the key is."""
    return f"count({_column(key.column)})" if isinstance(key.bucket, Calendar) else "0"


def _step(number: str, unit: int, origin: int) -> str:
    """The number of the step that a whole number is in, counted so that the first one of any use is 1.

    Whole numbers are divided towards zero in SQL, which is down for numbers above it.
    """
    return f"({number} + CAST({_lifted(unit) - origin} AS BIGINT)) // CAST({unit} AS BIGINT)"


def _lifted(unit: int) -> int:
    found = FAR // unit * unit
    if not found:
        raise _UnlikeError(f"steps of {unit}")
    return found


def _starts(steps: Any, unit: int, origin: int) -> Any:
    """Where steps begin; the numbers of a column may be too far below zero for steps above it."""
    numbers = steps.drop_null().to_numpy()
    if len(numbers) and int(numbers.min()) < 1:
        raise _UnlikeError("numbers far below zero")
    return pc.add(pc.multiply(steps, unit), origin - _lifted(unit))


def _double(value: Any) -> str:
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def _bucketed(key: Key, values: Any) -> Any:
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


def _state(state: State) -> str:
    if state.column is None:
        return "count(*)"
    name, kind = _column(state.column), state.column.type
    if state.kind == "count":
        return f"count({name})"
    if state.kind == "sum" and is_a.is_signed_integer(kind):
        return f"CAST(sum({name}) AS DECIMAL(38, 0))"
    if state.kind == "sum" and is_a.is_floating(kind):
        return f"sum(CAST({name} AS DOUBLE))"
    if state.kind in ("min", "max") and is_comparable(kind):
        return f"{state.kind}({name})"
    raise _UnlikeError(str(state))


def _column(column: Column) -> str:
    if len(column.path) > 1 or column.order != "binary":
        raise _UnlikeError(str(column))
    return database.quoted(column.path[0])
