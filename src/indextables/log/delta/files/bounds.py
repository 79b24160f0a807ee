"""Turns the minima and maxima of a Delta log into bounds that no value of the file exceeds.

Writers differ. Delta truncates timestamps to milliseconds. Some writers ignore NaN in a
maximum, although NaN sorts above every number. Delta Lake 1.2 to 3.2 cuts a long maximum
and ends it with U+FFFD, which is not above all that was cut off. delta-rs writes decimals as doubles, which
keep fifteen digits. A column widened from float to double keeps the short texts of its
floats. If the true bound may lie outside the written value, the value is moved outwards;
if nothing can be said, it becomes null, and the file is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from struct import pack

import pyarrow as pa

from indextables.lazy import pc
from indextables.log.delta.columns import SchemaLeaf
from indextables.log.delta.files.text import DOUBLE_DIGITS
from indextables.model.arrays import scalar
from indextables.model.truncation import MARKER

# The real maximum of a timestamp may lie 999 microseconds above the written one. The scalar is taken out of
# an array, since making one from a Python value loads pandas.
_CUT = pa.Array.from_buffers(pa.duration("us"), 1, [None, pa.py_buffer(pack("q", 999))])[0]
_CUT_OFF = "\ufffd"
_EXACT = Context(prec=80)
_TEXT_DIGITS = 17


def lower_bound(values: pa.Array, leaf: SchemaLeaf, *, is_text: bool) -> pa.Array:
    """Lower bounds from the written minima of a column, given as text or as typed values."""
    if not leaf.comparable:
        return pa.nulls(len(values), leaf.type)
    if pa.types.is_floating(leaf.type):
        return _widened(_numbers(values), leaf, pc.min_element_wise)
    return _beyond_rounding(values, is_text=is_text, upwards=False) if _may_be_rounded(leaf.type) else values


def upper_bound(
    values: pa.Array, leaf: SchemaLeaf, counts_nan: pa.Array | None, *, is_text: bool
) -> pa.Array:
    """Upper bounds from the written maxima; `counts_nan` tells for which files a maximum covers NaN."""
    if not leaf.comparable:
        return pa.nulls(len(values), leaf.type)
    if pa.types.is_floating(leaf.type):
        numbers = number_bound(values, leaf)
        if counts_nan is None or leaf.no_nan:
            return numbers
        return pc.if_else(counts_nan, numbers, pa.scalar(None, leaf.type))
    if pa.types.is_string(leaf.type):
        return _prefixes(values)
    if pa.types.is_timestamp(leaf.type):
        try:
            return pc.add_checked(values, _CUT)
        except pa.ArrowInvalid:
            return pa.nulls(len(values), leaf.type)
    return _beyond_rounding(values, is_text=is_text, upwards=True) if _may_be_rounded(leaf.type) else values


def number_bound(values: pa.Array, leaf: SchemaLeaf) -> pa.Array:
    """Upper bounds of the numbers of a floating-point column; NaN may occur above them."""
    return _widened(_numbers(values), leaf, pc.max_element_wise)


def _prefixes(values: pa.Array) -> pa.Array:
    """Maxima that end with U+FFFD as those of our own log that were cut: what was cut off is not known.

    The writer chose U+FFFD by comparing UTF-16 units, in which characters above U+FFFF are smaller. Half of
    such a character may have become a question mark before it. Both are removed with the marker.
    """
    cut = pc.fill_null(pc.ends_with(values, _CUT_OFF), scalar(False, pa.bool_()))
    return (
        pc.if_else(cut, pc.binary_join_element_wise(values, MARKER, ""), values) if cut.true_count else values
    )


def _numbers(values: pa.Array) -> pa.Array:
    """The values with NaN made null: a recorded NaN says nothing about the other numbers."""
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _widened(values: pa.Array, leaf: SchemaLeaf, outer: Callable[[pa.Array, pa.Array], pa.Array]) -> pa.Array:
    """The outermost of two readings of a text: as a double, and as the float it may stand for."""
    if not leaf.was_float:
        return values
    return outer(values, values.cast(pa.float32(), safe=False).cast(pa.float64()))


def _may_be_rounded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and kind.precision > DOUBLE_DIGITS)


def _beyond_rounding(values: pa.Array, *, is_text: bool, upwards: bool) -> pa.Array:
    """Decimals moved outwards by more than a conversion to double and back can have moved them."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    limit = Decimal(1).scaleb(DOUBLE_DIGITS - values.type.scale)

    def is_exact(value: Decimal) -> bool:
        # A double is written with at most seventeen digits, so a longer text is exact.
        return abs(value) < limit or (
            is_text and len(value.normalize(_EXACT).as_tuple().digits) > _TEXT_DIGITS
        )

    if all(is_exact(value) for value in distinct):
        return values
    moved = [value if is_exact(value) else _moved(value, values.type, upwards=upwards) for value in distinct]
    return pa.array(moved, values.type).take(encoded.indices)


def _moved(value: Decimal, kind: pa.DataType, *, upwards: bool) -> Decimal | None:
    # Rounding twice moves a number by less than 4e-16 of its value.
    margin = _EXACT.multiply(abs(value), Decimal("1E-15"))
    outer = _EXACT.add(value, margin if upwards else -margin)
    outer = outer.quantize(Decimal(1).scaleb(-kind.scale), ROUND_CEILING if upwards else ROUND_FLOOR, _EXACT)
    return outer if abs(outer) < Decimal(1).scaleb(kind.precision - kind.scale) else None
