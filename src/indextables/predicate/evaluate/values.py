"""Computed values of a filter, for whole arrays, as Spark (ANSI) computes them.

A kernel takes the arguments of a call as arrays of equal length and returns an array of
the call's type, with the rows it failed for (overflow, division by zero, a text that is no
number); their value is null. A failure is recorded, not raised: whether it matters depends
on the rest of the filter. What Arrow computes otherwise than Spark is computed in Python,
once for each distinct value where there is one column.
"""

# ruff: noqa: ARG001 - a kernel takes the call, its arguments and the zone

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from indextables.lazy import pc
from indextables.model.arrays import scalar
from indextables.predicate.evaluate.casts import cast_values, local_times_of
from indextables.predicate.evaluate.each import any_failed, each, internal
from indextables.predicate.evaluate.numbers import divisions, rounded, signed, sums, whole_numbers
from indextables.predicate.evaluate.ordering import as_double, compare_arrays
from indextables.predicate.evaluate.searching import searched
from indextables.predicate.evaluate.texts import like_texts, rlike_texts
from indextables.predicate.evaluate.times import date_parts, days_of_times, time_parts, truncations
from indextables.predicate.literals import cast_value
from indextables.predicate.searchable import CALLS
from indextables.predicate.tree import Call, Literal
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class Computed:
    """An array, the rows for which computing it failed (None: there are none), and what failed there."""

    values: Any
    failed: Any = None
    cause: str = ""


def compute(call: Call, args: Sequence[Computed], zone: str | None = None) -> Computed:
    """Return the value of a call for every row; `zone` overrides the zone of the call."""
    place = (zone or call.zone) if call.zone else "UTC"
    if call.name in _LAZY:
        return _LAZY[call.name](call, args)
    values, failed = _KERNELS[call.name](call, [arg.values for arg in args], place)
    before, cause = _failures(call, args)
    if failed is None:
        return Computed(values, before, cause)
    mine = pc.fill_null(failed, False)
    return Computed(values, mine if before is None else pc.or_(before, mine), cause or str(call))


def constant_of(call: Call) -> Literal | Call:
    """Return the value of a call of literals; the call itself if it fails, since no row may need it."""
    args = [Computed(of_literal(arg, 1)) for arg in call.args if isinstance(arg, Literal)]
    result = compute(call, args)
    if result.failed is not None and result.failed[0].as_py():
        return call
    return Literal(internal(result.values)[0], call.type)


def of_literal(literal: Literal, rows: int) -> pa.Array:
    """Return a literal as an array."""
    return pa.repeat(scalar(literal.value, literal.type), rows)


def _failures(call: Call, args: Sequence[Computed]) -> tuple[Any, str]:
    """Failures of the arguments: Spark does not evaluate what stands after a null; a divisor comes first."""
    ordered = args[::-1] if call.name in {"/", "%", "div"} else args
    failed, cause, needed = None, "", None
    for arg in ordered:
        if arg.failed is not None:
            mine = arg.failed if needed is None else pc.and_(arg.failed, needed)
            failed = mine if failed is None else pc.or_(failed, mine)
            cause = cause or arg.cause
        if call.name not in {"greatest", "least", "isnull"}:
            needed = pc.is_valid(arg.values) if needed is None else pc.and_(needed, pc.is_valid(arg.values))
    return failed, cause


def _compare(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    return compare_arrays(call.name, *args), None


def _in(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    values = args[0]
    chosen = pa.array(
        [literal.value for literal in call.args[1:] if isinstance(literal, Literal)], values.type
    )
    if is_a.is_floating(values.type):
        zero = pa.scalar(0.0, values.type)  # -0.0 hashes unlike 0.0
        is_listed = pc.is_in(pc.add(values, zero), value_set=pc.add(chosen, zero))
    else:
        is_listed = pc.is_in(values, value_set=chosen)
    return pc.if_else(pc.is_valid(values), is_listed, pa.scalar(None, pa.bool_())), None


def _case_changed(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """Arrow maps one character to one; Spark, like Python, `ß` to `SS`, and a final sigma by its place."""
    if call.name == "lower":
        return _lowered(args[0]), None
    if pc.all(pc.string_is_ascii(args[0])).as_py() is not False:
        return pc.ascii_upper(args[0]), None
    return each(_upper, args, call.type)


def _lowered(texts: Any) -> Any:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return pc.ascii_lower(texts)
    return each(str.lower, [texts], pa.string())[0]


def _search(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    return searched(call, args, _lowered), None


def _upper(text: str) -> str:
    return text.upper().translate(_NEWER_CAPITALS)


def _length(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    return (pc.binary_length if is_a.is_binary(args[0].type) else pc.utf8_length)(args[0]), None


def _trimmed(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    cut = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[call.name]
    return cut(args[0], characters=" "), None


def substring(text: str, position: int, length: int) -> str:
    """Part of a text from a position that counts from 1, or from the end if it is negative.

    >>> substring("abc", 2, 5), substring("abc", -5, 3), substring("abc", 0, 1)
    ('bc', 'a', 'a')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + length, (1 << 31) - 1)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _replaced(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _joined(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    separator = "" if is_a.is_string(call.type) else b""
    return pc.binary_join_element_wise(
        *args, pa.scalar(separator, call.type), null_handling="emit_null"
    ), None


def _python(function: Callable[..., Any]) -> Kernel:
    return lambda call, args, _zone: each(function, args, call.type)


def _like(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    pattern, escape = (arg.value for arg in call.args[1:] if isinstance(arg, Literal))
    return like_texts(args[0], pattern, escape), None


def _rlike(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    pattern = call.args[1]
    assert isinstance(pattern, Literal)
    return rlike_texts(args[0], pattern.value), None


def _extreme(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """`greatest` and `least` of the values that are not null."""
    op = "<" if call.name == "greatest" else ">"

    def more_extreme(best: Any, other: Any) -> Any:
        is_beaten = pc.or_kleene(pc.is_null(best), compare_arrays(op, best, other))
        return pc.if_else(pc.and_(pc.is_valid(other), pc.fill_null(is_beaten, False)), other, best)

    return reduce(more_extreme, args), None


def _is_null(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    return pc.is_null(args[0]), None


def _cast(call: Call, args: Sequence[Any], zone: str) -> tuple[Any, Any]:
    values, kind = args[0], call.type
    source = values.type
    if (is_a.is_string(source) and not is_a.is_decimal(kind)) or (
        is_a.is_timestamp(source) and is_a.is_timestamp(kind)
    ):
        converted, failed = cast_values(values, kind, zone)
        return converted, None if failed is None else any_failed(failed)
    if _widens(source, kind):
        return (as_double(values) if is_a.is_float64(kind) else values.cast(kind)), None
    if is_a.is_timestamp(source) and is_a.is_date(kind):
        local = local_times_of(values, zone) if source.tz else values
        return days_of_times(local).cast(kind), None
    return each(lambda value: cast_value(value, source, kind, zone), args, kind)


def _widens(source: pa.DataType, kind: pa.DataType) -> bool:
    if is_a.is_float64(kind):
        return bool(is_a.is_integer(source) or is_a.is_floating(source) or is_a.is_decimal(source))
    return bool(is_a.is_integer(source) and is_a.is_integer(kind) and source.bit_width <= kind.bit_width)


def _coalesced(call: Call, args: Sequence[Computed]) -> Computed:
    """The first value that is not null; those after it are not evaluated."""
    values, failed, cause = args[0].values, args[0].failed, args[0].cause
    for arg in args[1:]:
        missing = pc.is_null(values)
        if arg.failed is not None:
            mine = pc.and_(arg.failed, missing)
            failed = mine if failed is None else pc.or_(failed, mine)
            cause = cause or arg.cause
        values = pc.if_else(missing, arg.values, values)
    return Computed(values, failed, cause)


def _chosen(call: Call, args: Sequence[Computed]) -> Computed:
    """One of two values; the other is not evaluated."""
    test, first, second = args
    holds = pc.fill_null(test.values, False)
    none = pa.repeat(pa.scalar(False), len(holds))
    sides = pc.if_else(holds, *(none if side.failed is None else side.failed for side in (first, second)))
    failed = sides if test.failed is None else pc.or_(test.failed, sides)
    cause = test.cause or first.cause or second.cause
    return Computed(pc.if_else(holds, first.values, second.values), any_failed(failed), cause)


# Capitals of older letters that Unicode 16 and 17 added: Spark has them, most versions of Python do not.
_NEWER_CAPITALS = {0x19B: 0xA7DC, 0x264: 0xA7CB, 0xA7D3: 0xA7D2, 0xA7D5: 0xA7D4}
Kernel = Callable[[Call, Sequence[Any], str], tuple[Any, Any]]
_LAZY: Mapping[str, Callable[[Call, Sequence[Computed]], Computed]] = {"coalesce": _coalesced, "if": _chosen}
_KERNELS: Mapping[str, Kernel] = {
    **dict.fromkeys(("+", "-", "*"), sums),
    **dict.fromkeys(("/", "%", "div"), divisions),
    **dict.fromkeys(("abs", "negative"), signed),
    "round": rounded,
    **dict.fromkeys(("floor", "ceil"), whole_numbers),
    **dict.fromkeys(("=", "<=>", "<", "<=", ">", ">="), _compare),
    "in": _in,
    **dict.fromkeys(("lower", "upper"), _case_changed),
    "length": _length,
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trimmed),
    "substring": _python(substring),
    "left": _python(lambda text, count: text[: max(count, 0)]),
    "right": _python(lambda text, count: text[-count:] if count > 0 else ""),
    "replace": _python(_replaced),
    "concat": _joined,
    "startswith": _python(str.startswith),
    "endswith": _python(str.endswith),
    "contains": _python(str.__contains__),
    "instr": _python(lambda text, part: text.find(part) + 1),
    **dict.fromkeys(CALLS.values(), _search),
    "like": _like,
    "rlike": _rlike,
    **dict.fromkeys(("greatest", "least"), _extreme),
    "isnull": _is_null,
    "cast": _cast,
    **dict.fromkeys(("year", "month", "day"), date_parts),
    **dict.fromkeys(("hour", "minute", "second"), time_parts),
    "date_trunc": truncations,
}
