"""The order of rows as in Spark: nulls first ascending and last descending, NaN above every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def spark_order(table: pa.Table, keys: Sequence[tuple[str, bool]]) -> pa.Array:
    """The places of the rows in order; keys are column names, each with whether it descends."""
    columns: dict[str, Any] = {}
    order: list[tuple[str, str]] = []
    for name, descends in keys:
        values = table.column(name)
        parts = [pc.is_valid(values), values]
        if pa.types.is_floating(values.type):
            parts.insert(1, pc.is_nan(values))
            # One zero: Arrow puts the negative one first.
            parts[2] = pc.add(values, pa.scalar(0.0, values.type))
        for part in parts:
            order.append((str(len(columns)), "descending" if descends else "ascending"))
            columns[str(len(columns))] = part
    return pc.sort_indices(pa.table(columns), order)
