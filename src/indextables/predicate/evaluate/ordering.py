"""Spark's order over Arrow arrays: comparisons of a column with one value, null where the column is null."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_KERNELS = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def compare_array(op: str, values: Any, value: Any) -> Any:
    """Compare each element with an internal value of the array's type; op is one of = < <= > >=."""
    kind = values.type
    if not pa.types.is_floating(kind):
        return _KERNELS[op](values, pa.scalar(value, kind))
    # Spark: NaN equals NaN and is above every number; Arrow follows IEEE, where NaN compares with nothing.
    nan = pc.is_nan(values)
    if math.isnan(value):
        if op in {"=", ">="}:
            return nan
        return pc.invert(nan) if op == "<" else pc.if_else(nan, op == "<=", op == "<=")
    compared = _KERNELS[op](values, pa.scalar(value, kind))
    return pc.or_(compared, nan) if op in {">", ">="} else compared


def as_double(values: Any) -> Any:
    """Cast numbers to double with one correct rounding, as Spark does."""
    if pa.types.is_decimal(values.type):
        # Arrow's own cast multiplies by a power of ten and can be off in the last bit; its parser is exact.
        return pc.cast(pc.cast(values, pa.string()), pa.float64())
    return pc.cast(values, pa.float64(), safe=False)
