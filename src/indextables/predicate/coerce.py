"""Comparisons between a column and a literal of different types, resolved by Spark's ANSI rules.

Spark finds the common type and casts both sides. Here the literal is cast at once, and if
the column's cast loses nothing, the comparison is rewritten in the column's own type
(`int_col < 2.5` becomes `int_col <= 2`), so that statistics of that type can answer it.
Only casts that cannot be undone remain in the tree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.model.calendar import US_PER_DAY
from indextables.model.types import TIMESTAMP, TIMESTAMP_NTZ, decimal_type, type_to_sql
from indextables.predicate.literals import cast_value
from indextables.predicate.regex import NotUnderstoodError, translated
from indextables.predicate.tree import (
    FALSE,
    FLIPPED,
    NULL,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Match,
    Node,
    Not,
    Operand,
    RLike,
    all_of,
    any_of,
)
from indextables.predicate.zones import start_of_day, to_local, zone_of

__all__ = [
    "FLIPPED",
    "Unsupported",
    "cast_operand",
    "common_type",
    "compare",
    "in_list",
    "is_null",
    "like",
    "match",
]

_RANKS = {pa.int8(): 0, pa.int16(): 1, pa.int32(): 2, pa.int64(): 3, pa.float32(): 4, pa.float64(): 5}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_EXACT_IN_DOUBLE = (pa.int8(), pa.int16(), pa.int32())
_WIDE = Context(prec=120)


class Unsupported(Exception):  # noqa: N818 - not an error: the part becomes an Unknown node
    """A part that has a meaning in Spark but none in the tree."""


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark (ANSI) compares two types; None when it refuses."""
    is_ = pa.types
    if left == right:
        return left
    if left in _RANKS and right in _RANKS:
        wider = max(left, right, key=lambda kind: _RANKS[kind])
        return pa.float64() if is_.is_float32(wider) else wider
    if is_.is_decimal(left) or is_.is_decimal(right):
        decimal = _common_decimal(left, right)
        if decimal is not None:
            return decimal
    for text, other in ((left, right), (right, left)):
        if is_.is_string(text):
            if is_.is_integer(other):
                return pa.int64()
            if is_.is_floating(other) or is_.is_decimal(other):
                return pa.float64()
            return None if is_.is_nested(other) else other
    if all(is_.is_date(kind) or is_.is_timestamp(kind) for kind in (left, right)):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    return None


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    shapes = [_decimal_shape(kind) for kind in (left, right)]
    if None in shapes:
        return None
    scale = max(shape[1] for shape in shapes if shape)
    whole = max(shape[0] - shape[1] for shape in shapes if shape)
    return decimal_type(min(whole + scale, 38), min(scale, 38))


def _decimal_shape(kind: pa.DataType) -> tuple[int, int] | None:
    if pa.types.is_decimal(kind):
        return kind.precision, kind.scale
    return (_DIGITS[kind], 0) if kind in _DIGITS else None


def cast_operand(operand: Operand, target: pa.DataType, zone: str) -> Operand:
    """Return the column cast to another type, by an explicit CAST or because a comparison needs it."""
    if operand.type == target:
        return operand
    if isinstance(operand, Cast):
        if not _is_lossless(operand.column.type, operand.type):
            raise Unsupported
        return cast_operand(operand.column, target, zone)
    if not _is_supported_cast(operand.type, target):
        raise Unsupported
    return Cast(operand, target, zone)


def _is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    is_ = pa.types
    if source in _RANKS and target in _RANKS:
        if is_.is_integer(source) and is_.is_floating(target):
            return bool(is_.is_float64(target)) and source in _EXACT_IN_DOUBLE
        return _RANKS[source] <= _RANKS[target]
    shape = _decimal_shape(source)
    if shape is not None and is_.is_decimal(target):
        return bool(shape[1] <= target.scale and shape[0] - shape[1] <= target.precision - target.scale)
    return False


def _is_supported_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the tree supports this cast of a column, exactly, for rows."""
    is_ = pa.types
    if is_.is_string(source):
        return not (is_.is_decimal(target) or is_.is_nested(target))
    if is_.is_date(source) or is_.is_timestamp(source):
        return bool(is_.is_date(target) or is_.is_timestamp(target))
    if is_.is_float64(target):
        return source in _RANKS or bool(is_.is_decimal(source))
    if is_.is_decimal(source) and is_.is_decimal(target):
        return bool(target.scale >= source.scale)
    return _is_lossless(source, target)


def compare(op: str, operand: Operand, literal: Literal, zone: str) -> Node:
    """Return `operand op literal` with Spark's coercions; PredicateError where Spark would refuse it."""
    if literal.value is None:
        return IsNull(_column(operand)) if op == "<=>" else NULL
    kind = common_type(operand.type, literal.type)
    if kind is None or pa.types.is_nested(operand.type):
        raise PredicateError(
            f"{operand} is {type_to_sql(operand.type)} and cannot be compared with "
            f"{literal} of type {type_to_sql(literal.type)}",
            part=f"{operand} {op} {literal}",
        )
    _check_order(operand, kind)
    return _narrow(op, cast_operand(operand, kind, zone), _cast_literal(literal, kind, zone), zone)


def is_null(operand: Operand) -> Node:
    """Return `operand IS NULL`; not supported for a cast that can fail, since its failures may be null."""
    if isinstance(operand, Cast) and not _never_fails(operand):
        raise Unsupported
    return IsNull(_column(operand))


def _never_fails(cast: Cast) -> bool:
    source = cast.column.type
    is_number = source in _RANKS or pa.types.is_decimal(source)
    return _is_lossless(source, cast.type) or bool(is_number and pa.types.is_float64(cast.type))


def never_null(kind: pa.DataType) -> bool:
    """Whether sums and products of a type are null only if an operand is; not true for decimals."""
    return kind in _RANKS


def _column(operand: Operand) -> Column:
    return operand.column if isinstance(operand, Cast) else operand


def _check_order(operand: Operand, kind: pa.DataType) -> None:
    if _column(operand).order == "collated" and pa.types.is_string(kind):
        raise Unsupported


def _cast_literal(literal: Literal, kind: pa.DataType, zone: str) -> Literal:
    if _decimal_shape(literal.type) is not None and pa.types.is_decimal(kind):
        return Literal(Decimal(literal.value), kind)  # compared exactly, whatever its length
    try:
        return Literal(cast_value(literal.value, literal.type, kind, zone), kind)
    except ValueError as bad:
        raise PredicateError(
            f"{literal} cannot be read as {type_to_sql(kind)}: {bad}", part=str(literal)
        ) from bad


def _narrow(op: str, operand: Operand, literal: Literal, zone: str) -> Node:
    """Rewrite a comparison of a cast column in the column's own type, if the cast can be undone."""
    column, value = _column(operand), literal.value
    is_ = pa.types
    exact = is_.is_decimal(literal.type) or is_.is_integer(literal.type)
    if is_.is_integer(column.type) and (
        exact or (column.type in _EXACT_IN_DOUBLE and is_.is_floating(literal.type))
    ):
        half = 1 << (column.type.bit_width - 1)
        return _stepped(op, column, value, (Decimal(-half), Decimal(half - 1)), 0)
    if is_.is_decimal(column.type) and exact:
        scale = column.type.scale
        most = Decimal(10**column.type.precision - 1).scaleb(-scale, _WIDE)
        return _stepped(op, column, value, (-most, most), scale)
    if not isinstance(operand, Cast):
        return Compare(op, operand, literal)
    if is_.is_date(column.type) and is_.is_timestamp(literal.type):
        return _date_against_time(op, column, literal, zone)
    if is_.is_timestamp(column.type) and is_.is_date(literal.type):
        return _time_as_date(op, column, value, zone)
    return Compare(op, operand, literal)


def _stepped(op: str, column: Column, value: Any, limits: tuple[Decimal, Decimal], scale: int) -> Node:
    """Compare a column of evenly spaced values with any number, by the nearest value below it."""
    lowest, highest = limits
    number = Decimal(value)
    if number.is_nan() or number > highest:
        return _beyond(op, column, lowest, above=True)
    if number < lowest:
        return _beyond(op, column, lowest, above=False)
    floor = number.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_FLOOR, context=_WIDE)
    return _at_floor(op, column, _stored(floor, column.type), is_exact=floor == number)


def _stored(value: Decimal, kind: pa.DataType) -> Literal:
    return Literal(value if pa.types.is_decimal(kind) else int(value), kind)


def _at_floor(op: str, column: Column, floor: Literal, *, is_exact: bool) -> Node:
    if is_exact:
        return Compare(op, column, floor)
    if op == "<=>":
        return FALSE
    if op == "=":
        return In(column, ())
    return Compare({"<": "<=", "<=": "<=", ">": ">", ">=": ">"}[op], column, floor)


def _beyond(op: str, column: Column, lowest: Decimal, *, above: bool) -> Node:
    """Compare with a number outside the column's range: true for all values or for none; null stays null."""
    if op == "<=>":
        return FALSE
    holds = op in ({"<", "<="} if above else {">", ">="})
    return Compare(">=", column, _stored(lowest, column.type)) if holds else In(column, ())


def _date_against_time(op: str, column: Column, literal: Literal, zone: str) -> Node:
    """Compare a date, taken as its first instant, with an instant: with the last date that began by then."""
    place = zone_of(zone) if literal.type.tz else 0
    days = to_local(literal.value, place) // US_PER_DAY
    while start_of_day(days, place) > literal.value:
        days -= 1
    while start_of_day(days + 1, place) <= literal.value:
        days += 1
    is_exact = start_of_day(days, place) == literal.value
    return _at_floor(op, column, Literal(days, column.type), is_exact=is_exact)


def _time_as_date(op: str, column: Column, days: int, zone: str) -> Node:
    """Compare the date of an instant with a date: the instant with the first of that date and of the next."""
    place = zone_of(zone) if column.type.tz else 0
    first, after = (_instant(start_of_day(day, place), column.type) for day in (days, days + 1))
    if op in {"=", "<=>"}:
        within = all_of([Compare(">=", column, first), Compare("<", column, after)])
        return within if op == "=" else all_of([Not(IsNull(column)), within])
    bound = {"<": ("<", first), "<=": ("<", after), ">": (">=", after), ">=": (">=", first)}[op]
    return Compare(bound[0], column, bound[1])


def _instant(value: int, kind: pa.DataType) -> Literal:
    """Return a timestamp literal; dates reach further than timestamps, whose range it stays in."""
    return Literal(max(-(1 << 63), min(value, (1 << 63) - 1)), kind)


def in_list(operand: Operand, literals: list[Literal], zone: str) -> Node:
    """Return `operand IN (literals)`; all are compared in the one type that is common to them."""
    values = [literal for literal in literals if literal.value is not None]
    has_null = len(values) < len(literals)
    kind: pa.DataType | None = operand.type
    for literal in values:
        kind = None if kind is None else common_type(kind, literal.type)
    if kind is None or pa.types.is_nested(operand.type):
        raise PredicateError(
            f"{operand} is {type_to_sql(operand.type)} and cannot be compared with all values of the list",
            part=f"{operand} IN (...)",
        )
    _check_order(operand, kind)
    seen = cast_operand(operand, kind, zone)
    typed = [_cast_literal(literal, kind, zone) for literal in values]
    narrowed = [_narrow("=", seen, literal, zone) for literal in typed]
    if not all(isinstance(node, (Compare, In)) for node in narrowed):
        return any_of([*narrowed, NULL] if has_null else narrowed)
    # An empty IN results from a value that the column's type does not have.
    comparisons = [node for node in narrowed if isinstance(node, Compare)]
    distinct = {node.literal.value: node.literal for node in comparisons}
    return In(comparisons[0].column if comparisons else _column(seen), tuple(distinct.values()), has_null)


def match(kind: str, operand: Operand, text: Literal) -> Node:
    """Return a startswith, endswith or contains test; NULL for a null text."""
    column = _text_column(operand, text)
    return NULL if text.value is None else Match(kind, column, text.value)


def _text_column(operand: Operand, text: Literal) -> Column:
    if isinstance(operand, Cast) or not pa.types.is_string(operand.type) or operand.order == "collated":
        raise Unsupported
    if text.value is not None and not pa.types.is_string(text.type):
        raise Unsupported
    return operand


_TESTS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FAR = 1 << 31


def position(op: str, contains: Match, place: int) -> Node:
    """Return `instr(column, text) op place` as a test whether the text is there; else raise Unsupported.

    A text is at 1 or further on, or at 0 where it is not there.
    """
    test = _TESTS.get(op)
    if test is None:
        raise Unsupported
    (present, *others) = [test(at, place) for at in (1, max(1, place), _FAR)]
    if present == test(0, place) or any(other != present for other in others):
        raise Unsupported
    return contains if present else Not(contains)


def like(operand: Operand, pattern: Literal, escape: str = "\\") -> Node:
    """Return `operand LIKE pattern`, as a plainer test where the pattern is one."""
    column = _text_column(operand, pattern)
    if pattern.value is None:
        return NULL
    pieces = like_pieces(pattern.value, escape)
    if column.order == "binary":
        texts = [piece for piece in pieces if len(piece) > 1 or piece not in "%_"]
        shape = "".join("t" if piece in texts else piece for piece in pieces)
        plain = {
            "t": "=",
            "": "=",
            "%": "startswith",
            "t%": "startswith",
            "%t": "endswith",
            "%t%": "contains",
        }.get(shape)
        text = texts[0][1:] if texts else ""
        if plain == "=":
            return Compare("=", column, Literal(text, column.type))
        if plain is not None:
            return Match(plain, column, text)
    return Like(column, pattern.value, escape)


def rlike(operand: Operand, pattern: Literal) -> Node:
    """Return `operand RLIKE pattern`; not supported where Java's expression may mean something else here."""
    column = _text_column(operand, pattern)
    if pattern.value is None:
        return NULL
    try:
        translated(pattern.value)
    except NotUnderstoodError as bad:
        raise Unsupported from bad
    return RLike(column, pattern.value)


def like_pieces(pattern: str, escape: str) -> list[str]:
    """Split a LIKE pattern into `%`, `_` and texts, each text marked by a leading `=`."""
    pieces: list[str] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == escape:
            position += 1
            following = pattern[position : position + 1]
            if not following or following not in f"%_{escape}":
                raise PredicateError(
                    f"LIKE pattern {pattern!r}: the escape {escape!r} must come before %, _ or itself",
                    part=pattern,
                )
            char = "=" + following
        elif char not in "%_":
            char = "=" + char
        if char.startswith("=") and pieces and pieces[-1].startswith("="):
            pieces[-1] += char[1:]
        elif not (char == "%" and pieces and pieces[-1] == "%"):
            pieces.append(char)
        position += 1
    return pieces
