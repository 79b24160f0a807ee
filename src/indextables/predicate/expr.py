"""Filters written in Python: `col("price") > 10`, combined with `&`, `|` and `~`.

Both sides of a comparison may be computed: `col("id") % 100 == 7`, `col("level").lower() == "error"`.

An `Expr` only records what was said. It meets the schema when it is used, and
then means exactly what the same SQL would. Names follow Spark: `a.b` is the
field `b` of the struct `a`, and backticks keep a dot in a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Expr:
    """A column, or a condition built from columns."""

    __hash__ = None  # type: ignore[assignment]  # equality builds a condition
    __slots__ = ("args", "op")

    def __init__(self, op: str, *args: Any) -> None:
        self.op = op
        self.args = args

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Expr("=", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return ~Expr("=", self, other)

    def __lt__(self, other: Any) -> Expr:
        return Expr("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return Expr("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return Expr(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return Expr(">=", self, other)

    def __and__(self, other: Any) -> Expr:
        return Expr("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return Expr("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return Expr("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return Expr("or", other, self)

    def __invert__(self) -> Expr:
        return Expr("not", self)

    def __add__(self, other: Any) -> Expr:
        return Expr("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return Expr("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return Expr("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return Expr("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return Expr("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return Expr("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return Expr("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return Expr("/", other, self)

    def __mod__(self, other: Any) -> Expr:
        return Expr("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return Expr("%", other, self)

    def __neg__(self) -> Expr:
        return Expr("negative", self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition is not true or false by itself: combine conditions with &, | and ~, in parentheses"
        )

    def __repr__(self) -> str:
        return f"Expr({self.op}, {', '.join(map(repr, self.args))})"

    def eq_null_safe(self, other: Any) -> Expr:
        """Equal, where two nulls are equal too (`<=>`)."""
        return Expr("<=>", self, other)

    def isin(self, *values: Any) -> Expr:
        """Equal to one of the values, given one by one or as one list."""
        choices: Iterable[Any] = values
        if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset)):
            choices = values[0]
        return Expr("in", self, tuple(choices))

    def between(self, low: Any, high: Any) -> Expr:
        """At least `low` and at most `high`."""
        return Expr("and", self >= low, self <= high)

    def is_null(self) -> Expr:
        """Null."""
        return Expr("isnull", self)

    def is_not_null(self) -> Expr:
        """Not null."""
        return ~Expr("isnull", self)

    def startswith(self, text: Any) -> Expr:
        """Begin with the text."""
        return Expr("startswith", self, text)

    def endswith(self, text: Any) -> Expr:
        """End with the text."""
        return Expr("endswith", self, text)

    def contains(self, text: Any) -> Expr:
        """Hold the text anywhere."""
        return Expr("contains", self, text)

    def like(self, pattern: str, escape: str = "\\") -> Expr:
        """Match a pattern where `%` is any text and `_` any one character."""
        return Expr("like", self, pattern, escape)

    def rlike(self, pattern: str) -> Expr:
        """Hold a match of a regular expression anywhere."""
        return Expr("rlike", self, pattern)

    def cast(self, kind: str) -> Expr:
        """Be seen as another SQL type, e.g. `col("ts").cast("date")`."""
        return Expr("cast", self, kind)

    def div(self, other: Any) -> Expr:
        """Divide whole numbers and drop the remainder."""
        return Expr("div", self, other)

    def abs(self) -> Expr:
        """The number without its sign."""
        return Expr("abs", self)

    def round(self, digits: int = 0) -> Expr:
        """Round to so many digits, halves away from zero."""
        return Expr("round", self, digits)

    def floor(self) -> Expr:
        """The greatest whole number that is not above."""
        return Expr("floor", self)

    def ceil(self) -> Expr:
        """The least whole number that is not below."""
        return Expr("ceil", self)

    def lower(self) -> Expr:
        """The text in lower case."""
        return Expr("lower", self)

    def upper(self) -> Expr:
        """The text in upper case."""
        return Expr("upper", self)

    def length(self) -> Expr:
        """The number of characters, or of bytes."""
        return Expr("length", self)

    def instr(self, part: Any) -> Expr:
        """Where a text first occurs, counted from 1; 0 where it does not."""
        return Expr("instr", self, part)

    def trim(self) -> Expr:
        """The text without spaces at its ends."""
        return Expr("trim", self)

    def ltrim(self) -> Expr:
        """The text without spaces at its start."""
        return Expr("ltrim", self)

    def rtrim(self) -> Expr:
        """The text without spaces at its end."""
        return Expr("rtrim", self)

    def substring(self, position: Any, length: Any = (1 << 31) - 1) -> Expr:
        """Part of the text from a position, counted from 1 or, if negative, from the end."""
        return Expr("substring", self, position, length)

    def left(self, count: Any) -> Expr:
        """The first characters."""
        return Expr("left", self, count)

    def right(self, count: Any) -> Expr:
        """The last characters."""
        return Expr("right", self, count)

    def replace(self, old: Any, new: Any = "") -> Expr:
        """The text with another in the place of each occurrence of `old`."""
        return Expr("replace", self, old, new)

    def concat(self, *others: Any) -> Expr:
        """The texts joined; null if one of them is."""
        return Expr("concat", self, *others)

    def coalesce(self, *others: Any) -> Expr:
        """The first that is not null."""
        return Expr("coalesce", self, *others)

    def nullif(self, other: Any) -> Expr:
        """Null where both are equal."""
        return Expr("nullif", self, other)

    def greatest(self, *others: Any) -> Expr:
        """The greatest that is not null."""
        return Expr("greatest", self, *others)

    def least(self, *others: Any) -> Expr:
        """The least that is not null."""
        return Expr("least", self, *others)

    def if_else(self, yes: Any, no: Any = None) -> Expr:
        """One value where this condition is true and another where it is not."""
        return Expr("if", self, yes, no)

    def year(self) -> Expr:
        """The year of a date or time."""
        return Expr("year", self)

    def month(self) -> Expr:
        """The month, 1 to 12."""
        return Expr("month", self)

    def day(self) -> Expr:
        """The day of the month."""
        return Expr("day", self)

    def hour(self) -> Expr:
        """The hour of a time, 0 to 23."""
        return Expr("hour", self)

    def minute(self) -> Expr:
        """The minute of a time."""
        return Expr("minute", self)

    def second(self) -> Expr:
        """The second of a time, without its fraction."""
        return Expr("second", self)

    def date(self) -> Expr:
        """The date of a time."""
        return Expr("date", self)

    def date_trunc(self, unit: str) -> Expr:
        """The time cut to a unit such as `hour`, `day`, `week` or `month`."""
        return Expr("date_trunc", unit, self)


def col(name: str) -> Expr:
    """Return the column of that name, to build a filter from."""
    return Expr("column", name)
