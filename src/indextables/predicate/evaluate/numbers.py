"""Arithmetic of arrays as Spark's ANSI rules have it: an overflow and a division by zero are failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_a

from indextables.lazy import pc
from indextables.model.arrays import scalar
from indextables.predicate.evaluate.each import any_failed, each
from indextables.predicate.literals import cast_value
from indextables.predicate.tree import Call, Literal

_WIDE = Context(prec=120, rounding=ROUND_HALF_UP)
_PRODUCT = Context(prec=39, rounding=ROUND_HALF_UP)
_QUOTIENT = Decimal(1).scaleb(-39)
_LONGEST = (1 << 63) - 1
_CHECKED = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_PLAIN = {"+": "add", "-": "subtract", "*": "multiply"}
_EXACTLY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}


def _in_range(function: Callable[..., int], kind: pa.DataType) -> Callable[..., int]:
    half = 1 << (kind.bit_width - 1)

    def checked(*args: int) -> int:
        result = function(*args)
        if not -half <= result < half:
            raise ValueError(f"{result} is out of range")
        return result

    return checked


def _fitting(value: Decimal, kind: pa.DataType, rounding: str = ROUND_HALF_UP) -> Decimal:
    scaled = value.quantize(Decimal(1).scaleb(-kind.scale), rounding=rounding, context=_WIDE)
    if scaled and scaled.adjusted() + kind.scale + 1 > kind.precision:
        raise ValueError(f"{value} has too many digits")
    return scaled


def sums(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """Add, subtract or multiply."""
    if is_a.is_floating(call.type):
        return pc.call_function(_PLAIN[call.name], args), None
    if is_a.is_decimal(call.type):
        if call.name == "*":
            return each(lambda a, b: _fitting(_PRODUCT.multiply(a, b), call.type), args, call.type)
        exactly = {"+": _WIDE.add, "-": _WIDE.subtract}[call.name]
        return each(lambda a, b: _fitting(exactly(a, b), call.type), args, call.type)
    try:
        return pc.call_function(_CHECKED[call.name], args), None
    except pa.ArrowInvalid:
        return each(_in_range(_EXACTLY[call.name], call.type), args, call.type)


def divisions(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """`/`, `%` and `div`: a divisor of zero fails, for doubles too."""
    if is_a.is_decimal(call.type):
        return each(_DECIMAL_DIVISIONS[call.name](call.type), args, call.type)
    left, right = args
    zero = pc.equal(right, scalar(0, call.type) if is_a.is_integer(call.type) else pa.scalar(0, call.type))
    failed = pc.and_(zero, pc.is_valid(left))
    one = pa.scalar(1, call.type)
    if call.name == "/":
        results = pc.divide(left, pc.if_else(zero, one, right))
    else:
        # -1 divides evenly, but the least number has no opposite.
        opposite = pc.equal(right, pa.scalar(-1, call.type))
        divisor = pc.if_else(pc.or_(zero, opposite), one, right)
        if call.name == "%":
            results = _remainders(left, divisor)
        else:
            least = pc.and_(opposite, pc.equal(left, pa.scalar(-_LONGEST - 1, call.type)))
            failed = pc.or_(failed, least)
            quotient = pc.divide(left, divisor)
            results = pc.if_else(pc.and_(opposite, pc.invert(least)), pc.negate(quotient), quotient)
    return pc.if_else(failed, pa.scalar(None, call.type), results), any_failed(failed)


def _remainders(left: Any, right: Any) -> Any:
    """The remainder with the sign of the dividend, exact for floating point numbers too."""
    kind = left.type
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    numbers = [
        pc.fill_null(side, pa.scalar(1, kind)).to_numpy(zero_copy_only=False) for side in (left, right)
    ]
    with np.errstate(all="ignore"):
        results = pa.array(np.fmod(*numbers), kind)
    return pc.if_else(valid, results, pa.scalar(None, kind))


def _decimal_quotient(kind: pa.DataType) -> Callable[[Decimal, Decimal], Decimal]:
    def divided(left: Decimal, right: Decimal) -> Decimal:
        if not right:
            raise ValueError("division by zero")
        return _fitting(_WIDE.divide(left, right).quantize(_QUOTIENT, context=_WIDE), kind)

    return divided


def _decimal_remainder(kind: pa.DataType) -> Callable[[Decimal, Decimal], Decimal]:
    def remaining(left: Decimal, right: Decimal) -> Decimal:
        if not right:
            raise ValueError("division by zero")
        return _fitting(_WIDE.remainder(left, right), kind)

    return remaining


_DECIMAL_DIVISIONS = {"/": _decimal_quotient, "%": _decimal_remainder}


def signed(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """`abs` and the unary minus; the least whole number has no opposite."""
    kind = call.type
    if is_a.is_floating(kind) or is_a.is_decimal(kind):
        return (pc.abs if call.name == "abs" else pc.negate)(args[0]), None
    least = pc.equal(args[0], pa.scalar(-(1 << (kind.bit_width - 1)), kind))
    values = pc.if_else(least, pa.scalar(None, kind), args[0])
    return (pc.abs if call.name == "abs" else pc.negate)(values), any_failed(least)


def rounded(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """Round halves away from zero, in the digits that Java and Python write for a double."""
    digits = call.args[1]
    assert isinstance(digits, Literal)
    step = Decimal(1).scaleb(-digits.value)
    if is_a.is_decimal(call.type):
        return each(lambda value: _fitting(value, call.type), args[:1], call.type)

    def half_up(value: float) -> float:
        if not math.isfinite(value):
            return value
        written = Decimal(repr(value))
        # Nothing to round away, and too long to write out.
        if -written.as_tuple().exponent <= digits.value:  # type: ignore[operator]
            return value
        return float(written.quantize(step, rounding=ROUND_HALF_UP, context=Context(prec=400)))

    return each(half_up, args[:1], call.type)


def whole_numbers(call: Call, args: Sequence[Any], _zone: str) -> tuple[Any, Any]:
    """`floor` and `ceil`: a double becomes a long, NaN as in Java 0, and fails where it does not fit."""
    if is_a.is_decimal(call.type):
        rounding = ROUND_FLOOR if call.name == "floor" else ROUND_CEILING
        return each(lambda value: _fitting(value, call.type, rounding), args, call.type)
    cut = (pc.floor if call.name == "floor" else pc.ceil)(args[0])
    small = pc.and_(pc.less(cut, 2.0**62), pc.greater(cut, -(2.0**62)))
    if pc.all(small).as_py() is not False:
        return cut.cast(pa.int64()), None
    return each(
        lambda value: 0 if math.isnan(value) else cast_value(value, pa.float64(), call.type), [cut], call.type
    )
