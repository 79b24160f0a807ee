"""Spark's order over Arrow arrays: comparisons of a column with one value, and the order of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from indextables.lazy import pc
from indextables.model.arrays import FALSE, TRUE, scalar
from indextables.model.arrow_internals import call_kernel

_KERNELS = {"=": "equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


def compare_array(op: str, values: Any, value: Any) -> Any:
    """Compare each element with an internal value of the array's type; op is one of = < <= > >=."""
    kind = values.type
    if not pa.types.is_floating(kind):
        return call_kernel(_KERNELS[op], values, scalar(value, kind))
    # Spark: NaN equals NaN and is above every number; Arrow follows IEEE, where NaN compares with nothing.
    nan = call_kernel("is_nan", values)
    if math.isnan(value):
        if op in {"=", ">="}:
            return nan
        every = TRUE if op == "<=" else FALSE
        return pc.invert(nan) if op == "<" else pc.if_else(nan, every, every)
    compared = call_kernel(_KERNELS[op], values, scalar(value, kind))
    return call_kernel("or", compared, nan) if op in {">", ">="} else compared


def compare_arrays(op: str, left: Any, right: Any) -> Any:
    """Compare two arrays of one type row by row; op is one of = <=> < <= > >=."""
    if op == "<=>":
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(pc.fill_null(compare_arrays("=", left, right), FALSE), both_null)
    compared = pc.call_function(_KERNELS[op], [left, right])
    if not pa.types.is_floating(left.type):
        return compared
    first, second = pc.is_nan(left), pc.is_nan(right)
    if op == "=":
        return pc.or_(compared, pc.and_(first, second))
    greater, lesser = (first, second) if op in {">", ">="} else (second, first)
    above = greater if op in {">=", "<="} else pc.and_(greater, pc.invert(lesser))
    return pc.or_(compared, above)


def as_double(values: Any) -> Any:
    """Cast numbers to double with one correct rounding, as Spark does."""
    if pa.types.is_decimal(values.type):
        # Arrow's own cast multiplies by a power of ten and can be off in the last bit; its parser is exact.
        return pc.cast(pc.cast(values, pa.string()), pa.float64())
    return pc.cast(values, pa.float64(), safe=False)


def spark_order(table: pa.Table, keys: Sequence[tuple[str, bool]]) -> pa.Array:
    """The places of the rows in Spark's order: nulls first ascending and last descending, NaN the greatest.

    Keys are column names, each with whether it descends. Equal rows keep their order.
    """
    columns: dict[str, Any] = {}
    order: list[tuple[str, str]] = []
    for name, descends in keys:
        values = table.column(name)
        parts = [pc.is_valid(values), values]
        if pa.types.is_floating(values.type):
            parts.insert(1, pc.is_nan(values))
            # One zero: Arrow puts the negative one first.
            parts[2] = pc.add(values, scalar(0.0, values.type))
        for part in parts:
            order.append((str(len(columns)), "descending" if descends else "ascending"))
            columns[str(len(columns))] = part
    return pc.sort_indices(pa.table(columns), order)
