r"""Regular expressions of RLIKE, as far as Java's and RE2's mean exactly the same.

Java decides what RLIKE means, Arrow matches with RE2. A pattern is read here, piece
by piece, and written anew so that RE2 finds what Java would: `.` stops at every line
end that Java knows, `\s` and `\w` are spelled out, `$` also matches before a last line
end. What could differ (look-around, back references, `\b`, flags, possessive
quantifiers, Unicode classes) is not understood, and the caller says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from indextables.records import dataclass

MOST_CHOICES = 16
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SETS = {
    "d": "0-9", "w": "A-Za-z0-9_", "s": r" \t\n\x0b\f\r",
}  # fmt: skip
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TIMES = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")
_MOST_TIMES = 1000


class NotUnderstoodError(ValueError):
    """A pattern with a part whose meaning may differ between Java and RE2."""


Choices = tuple[tuple[str, ...], ...]
"""Alternatives, each with the texts that every match of it contains."""
NOTHING: Choices = ((),)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a pattern: its RE2 spelling, and what a match of it contains."""

    spelled: str
    char: str | None = None
    """The one character it matches."""
    choices: Choices = NOTHING
    before_end: bool = False
    """Whether it cannot match a carriage return, so that `$` may follow."""


@lru_cache(maxsize=256)
def translated(pattern: str) -> str:
    """The pattern for RE2; NotUnderstoodError when it may mean something else there."""
    return _read(pattern)[0]


@lru_cache(maxsize=256)
def required_texts(pattern: str) -> Choices:
    """Alternatives of texts: a matching value contains all texts of at least one alternative."""
    return _read(pattern)[1]


def _read(pattern: str) -> tuple[str, Choices]:
    reader = _Reader(pattern)
    spelled, choices, _ = reader.alternatives(0)
    if reader.at < len(pattern):
        raise NotUnderstoodError(f"there is a ) too many in {pattern!r}")
    return spelled, choices


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def alternatives(self, depth: int) -> tuple[str, Choices, bool]:
        """Their RE2 spelling, what they contain, and whether none of them can end in a carriage return."""
        branches = [self._sequence(depth)]
        while self._next() == "|":
            self.at += 1
            branches.append(self._sequence(depth))
        choices = tuple(choice for _, some, _ in branches for choice in some)
        spelled = "|".join(one for one, _, _ in branches)
        may_end = all(ends for _, _, ends in branches)
        return spelled, choices if len(choices) <= MOST_CHOICES else NOTHING, may_end

    def _sequence(self, depth: int) -> tuple[str, Choices, bool]:
        spelled: list[str] = []
        parts: list[Choices] = []
        run = ""
        # At its start a pattern is not yet behind anything, least of all a carriage return.
        may_end = depth == 0
        while self._next() not in ("", "|", ")"):
            if self._next() == "$":
                spelled.append(self._end(depth, allowed=may_end))
                continue
            piece = self._atom(depth)
            least, times = self._times()
            spelled.append(piece.spelled + times)
            if piece.char is not None and least:
                run += piece.char
            if piece.char is None or times:
                parts.append(((run,),))
                run = ""
            if piece.char is None and least:
                parts.append(piece.choices)
            may_end = piece.before_end and (bool(least) or may_end)
        parts.append(((run,),))
        return "".join(spelled), _crossed(parts), may_end

    def _end(self, depth: int, *, allowed: bool) -> str:
        self.at += 1
        if depth or not allowed or self._next() not in ("", "|"):
            raise NotUnderstoodError("$ is understood at the end of a pattern, behind a plain character")
        return rf"(?:\r\n|[{_LINE_ENDS}])?\z"

    def _atom(self, depth: int) -> _Piece:
        char = self._next()
        self.at += 1
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char == ".":
            return _Piece(f"[^{_LINE_ENDS}]", before_end=True)
        if char == "^":
            return _Piece(r"\A", before_end=True)
        if char in "*+?{":
            raise NotUnderstoodError(f"{char} has nothing before it to repeat")
        return _literal(char)

    def _group(self, depth: int) -> _Piece:
        if self._next() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise NotUnderstoodError("flags, names and look-around in (?...) are not understood")
            self.at += 2
        spelled, choices, may_end = self.alternatives(depth + 1)
        if self._next() != ")":
            raise NotUnderstoodError("a ( is not closed")
        self.at += 1
        return _Piece(f"(?:{spelled})", choices=choices, before_end=may_end)

    def _escape(self) -> _Piece:
        char = self._next()
        self.at += 1
        if char in _SETS:
            return _Piece(f"[{_SETS[char]}]", before_end=char != "s")
        if char.lower() in _SETS:
            return _Piece(f"[^{_SETS[char.lower()]}]")
        return _literal(_escaped(char))

    def _class(self) -> _Piece:
        negated = self._next() == "^"
        self.at += negated
        held: list[str] = []
        codes: list[tuple[int, int]] = []
        while self._next() != "]" or not held:
            char = self._next()
            if char in ("", "[", "]", "&", "^"):
                # Java nests classes and intersects them.
                raise NotUnderstoodError("a class [...] with [, ], & or ^ inside is not understood")
            self.at += 1
            if char == "\\" and self._next() in _SETS:
                held.append(_SETS[self._next()])
                codes.append((0, 0x20) if self._next() == "s" else (0x30, 0x30))
                self.at += 1
                continue
            low = self._class_char(char)
            high = low
            if self._next() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                char = self._next()
                self.at += 1
                high = self._class_char(char)
            if high < low:
                raise NotUnderstoodError("a range in [...] runs backwards")
            held.append(f"\\x{{{ord(low):x}}}-\\x{{{ord(high):x}}}")
            codes.append((ord(low), ord(high)))
        self.at += 1
        holds_return = any(low <= ord("\r") <= high for low, high in codes)
        return _Piece(
            f"[{'^' if negated else ''}{''.join(held)}]", before_end=not negated and not holds_return
        )

    def _class_char(self, char: str) -> str:
        if char != "\\":
            if char in ("", "[", "]", "&", "^"):
                raise NotUnderstoodError("a range in [...] is not understood")
            return char
        character = _escaped(self._next())
        self.at += 1
        return character

    def _times(self) -> tuple[int, str]:
        """How often the piece before occurs at least, and the quantifier."""
        char = self._next()
        if char in ("*", "+", "?") and char:
            self.at += 1
            least, spelled = int(char == "+"), char
        elif char == "{":
            match = _TIMES.match(self.pattern, self.at)
            if match is None or int(match[1]) > _MOST_TIMES or int(match[2] or 0) > _MOST_TIMES:
                raise NotUnderstoodError("{ is not followed by a number of times up to 1000")
            self.at = match.end()
            least, spelled = int(match[1]), match[0]
        else:
            return 1, ""
        if self._next() == "?":
            self.at += 1
            spelled += "?"
        if self._next() in ("*", "+", "?", "{") and self._next():
            raise NotUnderstoodError("a quantifier behind a quantifier is not understood")
        return least, spelled


def _literal(char: str) -> _Piece:
    return _Piece(f"\\x{{{ord(char):x}}}", char, before_end=char != "\r")


def _escaped(char: str) -> str:
    if char in _CONTROL:
        return _CONTROL[char]
    if not char or char.isalnum() or not char.isascii():
        raise NotUnderstoodError(f"\\{char} is not understood")
    return char


def _crossed(parts: Sequence[Choices]) -> Choices:
    """One text of every part: the choices of a sequence."""
    required: list[Choices] = []
    size = 1
    for choices in parts:
        if choices != NOTHING and size * len(choices) <= MOST_CHOICES:
            size *= len(choices)
            required.append(choices)
    return tuple(tuple(text for some in chosen for text in some if text) for chosen in product(*required))
