"""Arrays computed value by value in Python, where Arrow has no function that does what Spark does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from indextables.errors import PredicateError
from indextables.lazy import pc


def internal(values: pa.Array) -> list[Any]:
    """The values of an array in the form literals have: days, microseconds, numbers and texts."""
    if is_a.is_date(values.type):
        values = values.cast(pa.int32())
    elif is_a.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return values.to_pylist()


def each(function: Callable[..., Any], args: Sequence[Any], kind: pa.DataType) -> tuple[Any, Any]:
    """Apply a Python function to the rows in which no argument is null; a ValueError is a failure."""
    constant = {at: arg[0].as_py() for at, arg in enumerate(args) if len(arg) and _is_constant(arg)}
    varying = [at for at in range(len(args)) if at not in constant]
    if len(varying) == 1 and is_a.is_string(args[varying[0]].type):
        distinct = args[varying[0]].dictionary_encode()
        rows = [
            [constant.get(at, text) for at in range(len(args))] for text in distinct.dictionary.to_pylist()
        ]
        values, failed = applied(function, rows, kind)
        failed = None if failed is None else failed.take(distinct.indices)
        return values.take(distinct.indices), failed
    return applied(function, list(zip(*map(internal, args), strict=True)), kind)


def _is_constant(values: pa.Array) -> bool:
    """Whether an array of texts or whole numbers holds one value throughout."""
    if not (is_a.is_string(values.type) or is_a.is_integer(values.type)) or values.null_count:
        return False
    return bool(pc.all(pc.equal(values, values[0])).as_py())


def applied(
    function: Callable[..., Any], rows: Sequence[Sequence[Any]], kind: pa.DataType
) -> tuple[Any, Any]:
    """Apply a Python function to rows of values: the results, and the rows it failed for, if any."""
    results: list[Any] = []
    failed: list[bool] = []
    for row in rows:
        result, failure = None, False
        if None not in row:
            try:
                result = function(*row)
            except (ValueError, InvalidOperation, PredicateError):
                failure = True
        results.append(result)
        failed.append(failure)
    return pa.array(results, kind), pa.array(failed, pa.bool_()) if any(failed) else None


def any_failed(failed: Any) -> Any:
    """The rows that failed; None if there are none."""
    return failed if pc.any(failed).as_py() else None
