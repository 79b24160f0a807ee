"""Simple SQL conditions, read without sqlglot, which takes longer to load than most questions take to answer.

Simple is what people type: columns compared with numbers, texts, dates and times, IN, BETWEEN, LIKE and
IS NULL, joined by AND, OR, NOT and brackets. `read_plain` returns the expression that `col(...)` would
make, or None for every other text. None is never an answer: the caller then asks sqlglot, which also words
the errors. A test compares both on drawn conditions and on every word that sqlglot knows.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from indextables.predicate.expr import Expr, col

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>(?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*)
      | (?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,18})?)(?![\w.])
      | '(?P<text>[^'\\]*)'(?!')
      | (?P<sign><=>|<=|>=|<>|!=|==|[=<>(),])
    )\s*""",
    re.VERBOSE | re.ASCII,
)
_COMPARISONS = frozenset({"=", "==", "<", "<=", ">", ">=", "<=>", "!=", "<>"})
_TYPED = frozenset({"date", "timestamp"})
"""Words that give a text behind them a type, and otherwise are names like any other."""
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        alter analyze and any array as begin between cache call case comment commit copy create cross
        current_date current_timestamp current_user declare delete desc describe distinct drop else except
        execute explain false fetch for from glob grant having ilike in inner insert intersect into is
        join kill lateral like list load map merge minus not notnull null nullable object on optimize or
        outer partitioned_by pivot pragma prepare qualify range refresh regexp rename returning revoke
        rlike rollback select serdeproperties session_user set show struct tablesample then true truncate
        uncache union unpivot update use using vacuum values when where with xor
        """,
    )
)
"""Words that mean something else than a column of that name."""
_DEEPEST = 50
_LARGEST_INT = 1 << 31
_CONSTANTS = {"true": True, "false": False, "null": None}


class _NotPlainError(Exception):
    """The text has a part that is left to sqlglot."""


def read_plain(text: str) -> Expr | None:
    """The expression of a simple condition; None for any other text.

    >>> read_plain("day = 'mon' AND id < 5")
    Expr(and, Expr(=, Expr(column, 'day'), 'mon'), Expr(<, Expr(column, 'id'), 5))
    >>> read_plain("lower(day) = 'mon'") is None
    True
    """
    try:
        return _Parser(_tokens(text)).whole()
    except _NotPlainError:
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotPlainError
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = [*tokens, ("end", "")]
        self._at = 0
        self._depth = 0

    def whole(self) -> Expr:
        condition = self._any()
        if self._tokens[self._at][0] != "end":
            raise _NotPlainError
        return condition

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        if token[0] == "end":
            raise _NotPlainError
        self._at += 1
        return token

    def _takes(self, expected: str) -> bool:
        """Whether the next token is this word or sign; it is then passed."""
        kind, text = self._tokens[self._at]
        if text.lower() != expected or kind not in {"name", "sign"}:
            return False
        self._at += 1
        return True

    def _require(self, expected: str) -> None:
        if not self._takes(expected):
            raise _NotPlainError

    def _any(self) -> Expr:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Expr("or", *parts)

    def _all(self) -> Expr:
        parts = [self._negatable()]
        while self._takes("and"):
            parts.append(self._negatable())
        return parts[0] if len(parts) == 1 else Expr("and", *parts)

    def _negatable(self) -> Expr:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotPlainError
        if self._takes("not"):
            condition = ~self._negatable()
        elif self._takes("("):
            condition = self._any()
            self._require(")")
        else:
            condition = self._test()
        self._depth -= 1
        return condition

    def _test(self) -> Expr:
        left = self._value()
        if isinstance(left, Expr) and left.op == "column":
            if self._takes("is"):
                is_negated = self._takes("not")
                self._require("null")
                return ~left.is_null() if is_negated else left.is_null()
            is_negated = self._takes("not")
            listed = self._listed(left)
            if listed is not None:
                return ~listed if is_negated else listed
            if is_negated:
                raise _NotPlainError
        kind, sign = self._next()
        if kind != "sign" or sign not in _COMPARISONS:
            raise _NotPlainError
        right = self._value()
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            raise _NotPlainError
        if sign in {"!=", "<>"}:
            return ~Expr("=", left, right)
        return Expr("=" if sign == "==" else sign, left, right)

    def _listed(self, column: Expr) -> Expr | None:
        """IN, BETWEEN or LIKE behind a column."""
        if self._takes("in"):
            self._require("(")
            values = [self._value()]
            while self._takes(","):
                values.append(self._value())
            self._require(")")
            return column.isin(values)
        if self._takes("between"):
            low = self._value()
            self._require("and")
            return column.between(low, self._value())
        if self._takes("like"):
            kind, pattern = self._next()
            if kind != "text":
                raise _NotPlainError
            return column.like(pattern)
        return None

    def _value(self) -> Any:
        """A column, or a literal as a Python value."""
        kind, text = self._next()
        if kind == "number":
            return _number(text)
        if kind == "text":
            # Texts beside each other are one text.
            if self._tokens[self._at][0] == "text":
                raise _NotPlainError
            return text
        if kind != "name":
            raise _NotPlainError
        word = text.lower()
        if self._tokens[self._at][0] == "text":
            if word not in _TYPED:
                raise _NotPlainError
            return Expr("cast", self._value(), word)
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if _RESERVED.intersection(word.split(".")) or self._tokens[self._at] == ("sign", "("):
            raise _NotPlainError
        return col(text)


def _number(text: str) -> int | Decimal:
    digits = text.removeprefix("-")
    if "." in digits:
        return -Decimal(digits) if text != digits else Decimal(digits)
    # The digits of the least int are a bigint by themselves, and stay one behind a minus.
    if text != digits and int(digits) == _LARGEST_INT:
        raise _NotPlainError
    return int(text)
