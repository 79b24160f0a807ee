"""Filters written in Python: `col("price") > 10`, combined with `&`, `|` and `~`.

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
        given: Iterable[Any] = values
        if len(values) == 1 and isinstance(values[0], (list, tuple, set, frozenset)):
            given = values[0]
        return Expr("in", self, tuple(given))

    def between(self, low: Any, high: Any) -> Expr:
        """At least `low` and at most `high`."""
        return Expr("and", self >= low, self <= high)

    def is_null(self) -> Expr:
        """Null."""
        return Expr("isnull", self)

    def is_not_null(self) -> Expr:
        """Not null."""
        return ~Expr("isnull", self)

    def startswith(self, text: str) -> Expr:
        """Begin with the text."""
        return Expr("startswith", self, text)

    def endswith(self, text: str) -> Expr:
        """End with the text."""
        return Expr("endswith", self, text)

    def contains(self, text: str) -> Expr:
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


def col(name: str) -> Expr:
    """Return the column of that name, to build a filter from."""
    return Expr("column", name)
