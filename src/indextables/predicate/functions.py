"""Values computed in a filter: operators and functions, typed by Spark's ANSI rules.

`call` is the one way to make them, from SQL and from Python alike. It finds the types,
adds the casts that Spark would add, and computes at once what depends on no column. What
is not in the table below, or would not mean exactly what it means in Spark, raises
`Unsupported`; what Spark refuses is a PredicateError. `evaluate.values` computes them.
"""

# ruff: noqa: ARG001 - what makes a function of the table takes its name, its arguments and the zone

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as is_a

from indextables.errors import PredicateError
from indextables.model.types import TIMESTAMP, TIMESTAMP_NTZ, decimal_type, type_to_sql
from indextables.predicate import coerce
from indextables.predicate.coerce import Unsupported, common_type
from indextables.predicate.conditions import compare, is_null
from indextables.predicate.regex import NotUnderstoodError, translated
from indextables.predicate.tree import Call, Column, Literal, Match, Node, Not, Value, type_of
from indextables.predicate.values import (
    MOST_DIGITS,
    WIDTHS,
    Args,
    as_value,
    call_of,
    cast,
    common,
    condition,
    is_void,
    require_plain,
    shape,
)

_INT, _LONG, _DOUBLE, _TEXT, _DATE, _BOOL = (
    pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_(),
)  # fmt: skip
_LEAST_SCALE = 6
TRUNCATIONS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{
        name: name.lower()
        for name in ("QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    },
}
"""What `date_trunc` cuts to, by the words for it."""
Build = Callable[[str, Args, str], Value]


def call(name: str, args: Args, zone: str) -> Value:
    """Return the value of a function (or operator) of these arguments.

    >>> import pyarrow as pa
    >>> from indextables.predicate.tree import Column, Literal
    >>> str(call("%", [Column(("id",), pa.int64()), Literal(100, pa.int32())], "UTC"))
    'id % 100'
    """
    entry = _FUNCTIONS.get(name)
    if entry is None:
        raise Unsupported
    counts, build = entry
    if len(args) not in counts:
        raise PredicateError(f"{name} takes {_counted(counts)}, not {len(args)}", part=name)
    for arg in args:
        require_plain(arg)
    return build(name, args, zone)


def _counted(counts: range) -> str:
    if len(counts) > 2:  # noqa: PLR2004 - too many to list
        return f"at least {counts[0]} arguments"
    return f"{' or '.join(map(str, counts))} argument{'s' * (counts[-1] > 1)}"


def _is_number(kind: pa.DataType) -> bool:
    return bool(is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind))


def _arithmetic(name: str, args: Args, zone: str) -> Value:
    name = {"mod": "%"}.get(name, name)
    if all(is_void(arg) for arg in args):
        raise Unsupported
    other = next(type_of(arg) for arg in args if not is_void(arg))
    values = [Literal(None, other) if is_void(arg) else arg for arg in args]
    kinds = [type_of(value) for value in values]
    if not all(map(_is_number, kinds)):
        raise Unsupported
    if any(map(is_a.is_decimal, kinds)) and not any(map(is_a.is_floating, kinds)):
        return _with_decimals(name, values, zone)
    if name == "/":
        return call_of("/", [cast(value, _DOUBLE, zone) for value in values], _DOUBLE)
    if name == "div":
        if any(map(is_a.is_floating, kinds)):
            raise PredicateError(f"div takes whole numbers, not {type_to_sql(kinds[0])}", part="div")
        return call_of("div", [cast(value, _LONG, zone) for value in values], _LONG)
    kind = common_type(*kinds)
    assert kind is not None
    return call_of(name, [cast(value, kind, zone) for value in values], kind)


def _with_decimals(name: str, values: Args, zone: str) -> Value:
    """The operands keep their own precision and scale; those of the result follow Spark's rule."""
    typed = [_as_decimal(value, zone) for value in values]
    (p1, s1), (p2, s2) = (shape(type_of(value)) for value in typed)
    scale = max(s1, s2)
    if name in {"+", "-"}:
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif name == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif name == "/":
        scale = max(_LEAST_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    elif name == "%":
        precision = min(p1 - s1, p2 - s2) + scale
    else:
        raise Unsupported
    if precision > MOST_DIGITS:
        scale = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return call_of(name, typed, decimal_type(min(precision, MOST_DIGITS), scale))


def _as_decimal(value: Value, zone: str) -> Value:
    kind = type_of(value)
    if is_a.is_decimal(kind):
        return value
    if isinstance(value, Literal) and value.value is not None:
        return cast(value, decimal_type(len(str(abs(value.value))), 0), zone)
    return cast(value, decimal_type(WIDTHS[kind], 0), zone)


def _same(name: str, args: Args, zone: str) -> Value:
    """A call whose result has the type of its argument: `abs` and the unary minus."""
    kind = type_of(args[0])
    if not _is_number(kind):
        raise Unsupported
    return call_of(name, [args[0]], kind)


def _rounded(name: str, args: Args, zone: str) -> Value:
    kind = type_of(args[0])
    digits = args[1] if len(args) > 1 else Literal(0, _INT)
    if (
        not isinstance(digits, Literal)
        or not is_a.is_integer(digits.type)
        or digits.value is None
        or digits.value < 0
        or not _is_number(kind)
        or is_a.is_float32(kind)
    ):
        raise Unsupported
    if is_a.is_integer(kind):
        return args[0]
    if is_a.is_decimal(kind):
        if digits.value >= kind.scale:
            return args[0]
        kind = decimal_type(min(kind.precision - kind.scale + 1 + digits.value, MOST_DIGITS), digits.value)
    return call_of("round", [args[0], digits], kind)


def _whole(name: str, args: Args, zone: str) -> Value:
    name = {"ceiling": "ceil"}.get(name, name)
    kind = type_of(args[0])
    if is_a.is_decimal(kind):
        return call_of(name, args, decimal_type(min(kind.precision - kind.scale + 1, MOST_DIGITS), 0))
    if is_a.is_integer(kind):
        return cast(args[0], _LONG, zone)
    if not is_a.is_floating(kind):
        raise Unsupported
    return call_of(name, [cast(args[0], _DOUBLE, zone)], _LONG)


def _text(value: Value, zone: str) -> Value:
    return cast(value, _TEXT, zone)


def _count(value: Value) -> Value:
    """A number of characters or a position: an int."""
    kind = type_of(value)
    if is_void(value):
        return Literal(None, _INT)
    if not is_a.is_integer(kind) or kind == _LONG:
        raise Unsupported
    return cast(value, _INT, "UTC")


def _cased(name: str, args: Args, zone: str) -> Value:
    """Upper or lower case; `upper(lower(a))` is `upper(a)`, as Spark simplifies it."""
    name = {"lcase": "lower", "ucase": "upper"}.get(name, name)
    inner = args[0]
    while isinstance(inner, Call) and inner.name in {"lower", "upper"}:
        inner = inner.args[0]
    return _of_text(name, [inner], zone)


def _of_text(name: str, args: Args, zone: str) -> Value:
    return call_of(name, [_text(arg, zone) for arg in args], _TEXT)


def _length(name: str, args: Args, zone: str) -> Value:
    is_bytes = is_a.is_binary(type_of(args[0]))
    return call_of("length", [args[0] if is_bytes else _text(args[0], zone)], _INT)


def _substring(name: str, args: Args, zone: str) -> Value:
    length = _count(args[2]) if len(args) > 2 else Literal((1 << 31) - 1, _INT)  # noqa: PLR2004 - the third
    return call_of("substring", [_text(args[0], zone), _count(args[1]), length], _TEXT)


def _end(name: str, args: Args, zone: str) -> Value:
    return call_of(name, [_text(args[0], zone), _count(args[1])], _TEXT)


def _replace(name: str, args: Args, zone: str) -> Value:
    texts = [*args, Literal("", _TEXT)] if len(args) == 2 else args  # noqa: PLR2004 - without replacement
    return call_of("replace", [_text(arg, zone) for arg in texts], _TEXT)


def _concat(name: str, args: Args, zone: str) -> Value:
    if all(is_a.is_binary(type_of(arg)) for arg in args):
        return call_of("concat", args, pa.binary())
    return call_of("concat", [_text(arg, zone) for arg in args], _TEXT)


def _match(name: str, args: Args, zone: str) -> Value:
    first, second = (_text(arg, zone) for arg in args)
    if isinstance(first, Column) and isinstance(second, Literal) and second.value is not None:
        return Match(name, first, second.value)
    return call_of(name, [first, second], _BOOL)


def _position(name: str, args: Args, zone: str) -> Value:
    """Where a text is in another, counted from 1; 0 where it is not."""
    text, part = args if name == "instr" else args[::-1]
    return call_of("instr", [_text(text, zone), _text(part, zone)], _INT)


def _like(name: str, args: Args, zone: str) -> Value:
    first, pattern = _text(args[0], zone), args[1]
    escape = args[2] if len(args) > 2 else Literal("\\", _TEXT)  # noqa: PLR2004 - the third
    if not isinstance(pattern, Literal) or not isinstance(escape, Literal):
        raise Unsupported
    if pattern.value is None:
        return Literal(None, _BOOL)
    if not is_a.is_string(pattern.type):
        raise Unsupported
    if not isinstance(escape.value, str) or len(escape.value) != 1:
        raise PredicateError("ESCAPE takes one character", part=f"LIKE {pattern}")
    if isinstance(first, Column):
        return as_value(coerce.like(first, pattern, escape.value))
    coerce.like_pieces(pattern.value, escape.value)
    return call_of("like", [first, pattern, escape], _BOOL)


def _rlike(name: str, args: Args, zone: str) -> Value:
    first, pattern = _text(args[0], zone), args[1]
    if not isinstance(pattern, Literal) or not is_a.is_string(pattern.type):
        raise Unsupported
    if pattern.value is None:
        return Literal(None, _BOOL)
    if isinstance(first, Column):
        return as_value(coerce.rlike(first, pattern))
    try:
        translated(pattern.value)
    except NotUnderstoodError as bad:
        raise Unsupported from bad
    return call_of("rlike", [first, pattern], _BOOL)


def _coalesce(name: str, args: Args, zone: str) -> Value:
    present = [arg for arg in args if not is_void(arg)]
    if not present:
        return args[0]
    kind = common(present, name)
    return call_of("coalesce", [cast(arg, kind, zone) for arg in present], kind)


def _greatest(name: str, args: Args, zone: str) -> Value:
    present = [arg for arg in args if not is_void(arg)]
    if not present:
        return args[0]
    kind = common(present, name)
    return call_of(name, [cast(arg, kind, zone) for arg in present], kind)


def _if(name: str, args: Args, zone: str) -> Value:
    test = as_value(condition(args[0]))
    kind = common(args[1:], name)
    return call_of("if", [test, *(cast(arg, kind, zone) for arg in args[1:])], kind)


def _nullif(name: str, args: Args, zone: str) -> Value:
    same = as_value(compare("=", args[0], args[1], zone))
    return call_of("if", [same, Literal(None, type_of(args[0])), args[0]], type_of(args[0]))


def _nvl2(name: str, args: Args, zone: str) -> Value:
    return _if("if", [Not(is_null(args[0])), args[1], args[2]], zone)


def _is_null(name: str, args: Args, zone: str) -> Value:
    absent = is_null(args[0])
    return as_value(Not(absent) if name == "isnotnull" else absent)


def _date_part(name: str, args: Args, zone: str) -> Value:
    name = {"dayofmonth": "day"}.get(name, name)
    return call_of(name, [cast(args[0], _DATE, zone)], _INT)


def _time_part(name: str, args: Args, zone: str) -> Value:
    kind = type_of(args[0])
    moment = args[0] if kind in (TIMESTAMP, TIMESTAMP_NTZ) else cast(args[0], TIMESTAMP, zone)
    return call_of(name, [moment], _INT, zone if type_of(moment) == TIMESTAMP else None)


def _to_date(name: str, args: Args, zone: str) -> Value:
    return cast(args[0], _DATE, zone)


def _date_trunc(name: str, args: Args, zone: str) -> Value:
    unit = args[0]
    if not isinstance(unit, Literal) or not is_a.is_string(unit.type):
        raise Unsupported
    cut = TRUNCATIONS.get(str(unit.value).upper())
    if cut is None:
        return Literal(None, TIMESTAMP)
    return call_of(name, [Literal(cut, _TEXT), cast(args[1], TIMESTAMP, zone)], TIMESTAMP, zone)


def _type_name(kind: pa.DataType) -> Build:
    return lambda _name, args, zone: cast(args[0], kind, zone)


def case(tests: Sequence[tuple[Node, Value]], default: Value, zone: str) -> Value:
    """Return `CASE WHEN test THEN value ... ELSE default END`."""
    kind = common([*(value for _, value in tests), default], "CASE")
    result = cast(default, kind, zone)
    for test, value in reversed(tests):
        result = call_of("if", [as_value(test), cast(value, kind, zone), result], kind)
    return result


_ONE, _TWO, _THREE = range(1, 2), range(2, 3), range(3, 4)
_SOME, _SEVERAL = range(1, 1 << 16), range(2, 1 << 16)
_FUNCTIONS: Mapping[str, tuple[range, Build]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div", "mod"), (_TWO, _arithmetic)),
    **dict.fromkeys(("abs", "negative"), (_ONE, _same)),
    "round": (range(1, 3), _rounded),
    **dict.fromkeys(("floor", "ceil", "ceiling"), (_ONE, _whole)),
    **dict.fromkeys(("lower", "upper", "lcase", "ucase"), (_ONE, _cased)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), (_ONE, _of_text)),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), (_ONE, _length)),
    **dict.fromkeys(("substring", "substr"), (range(2, 4), _substring)),
    **dict.fromkeys(("left", "right"), (_TWO, _end)),
    "replace": (range(2, 4), _replace),
    "concat": (_SOME, _concat),
    **dict.fromkeys(("startswith", "endswith", "contains"), (_TWO, _match)),
    **dict.fromkeys(("instr", "locate", "position", "charindex"), (_TWO, _position)),
    "like": (range(2, 4), _like),
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), (_TWO, _rlike)),
    "coalesce": (_SOME, _coalesce),
    **dict.fromkeys(("ifnull", "nvl"), (_TWO, _coalesce)),
    **dict.fromkeys(("greatest", "least"), (_SEVERAL, _greatest)),
    "nullif": (_TWO, _nullif),
    "nvl2": (_THREE, _nvl2),
    "if": (_THREE, _if),
    **dict.fromkeys(("isnull", "isnotnull"), (_ONE, _is_null)),
    **dict.fromkeys(("year", "month", "day", "dayofmonth"), (_ONE, _date_part)),
    **dict.fromkeys(("hour", "minute", "second"), (_ONE, _time_part)),
    "to_date": (_ONE, _to_date),
    "date_trunc": (_TWO, _date_trunc),
    **{
        name: (_ONE, _type_name(kind))
        for name, kind in {
            "boolean": _BOOL, "tinyint": pa.int8(), "smallint": pa.int16(), "int": _INT, "bigint": _LONG,
            "float": pa.float32(), "double": _DOUBLE, "string": _TEXT, "binary": pa.binary(), "date": _DATE,
            "timestamp": TIMESTAMP,
        }.items()
    },
}  # fmt: skip
