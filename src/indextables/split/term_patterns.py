"""Ranges and prefixes of words as regular expressions, which is how the index is asked for them.

Words are ordered by code point. Every character is written as a number, so that
none has a meaning of its own. The automaton behind an expression may only have so
many states, so the caller keeps bounds short.
"""

from __future__ import annotations

REST = "(?s:.)*"
_LAST = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


class _Choices:
    """Alternatives: words given whole, and beginnings after which anything may follow."""

    def __init__(self) -> None:
        self.whole: list[str] = []
        self.begun: list[str] = []

    def pattern(self, head: str = "") -> str | None:
        """All alternatives after a common beginning; None when there are none."""
        parts = [*self.whole]
        if self.begun:
            parts.append(f"(?:{'|'.join(self.begun)}){REST}")
        return f"{_plain(head)}(?:{'|'.join(parts)})" if parts else None


def starting(prefix: str) -> str:
    """Words that begin with a prefix."""
    return _plain(prefix) + REST


def between(lower: str | None, upper: str | None, *, include_lower: bool, include_upper: bool) -> str | None:
    """Words within bounds, of which None is open; None when there can be none."""
    choices = _Choices()
    if upper is None:
        _at_least(choices, "", lower or "", include=include_lower or lower is None)
        return choices.pattern()
    if lower is None:
        _at_most(choices, "", upper, include=include_upper)
        return choices.pattern()
    shared = 0
    while shared < min(len(lower), len(upper)) and lower[shared] == upper[shared]:
        shared += 1
    head, low, high = lower[:shared], lower[shared:], upper[shared:]
    if not low:
        _at_most(choices, "", high, include=include_upper)
        if not include_lower:
            choices.whole = [word for word in choices.whole if word]
    elif high and low[0] <= high[0]:
        _at_least(choices, low[0], low[1:], include=include_lower)
        inner = _class(_next(low[0]), _previous(high[0]))
        if inner is not None:
            choices.begun.append(inner)
        _at_most(choices, high[0], high[1:], include=include_upper)
    return choices.pattern(head)


def _at_least(choices: _Choices, head: str, bound: str, *, include: bool) -> None:
    whole = _plain(head + bound)
    choices.begun.append(whole if include else f"{whole}(?s:.)")
    for at, char in enumerate(bound):
        above = _class(_next(char), _LAST)
        if above is not None:
            choices.begun.append(_plain(head + bound[:at]) + above)


def _at_most(choices: _Choices, head: str, bound: str, *, include: bool) -> None:
    for at, char in enumerate(bound):
        choices.whole.append(_plain(head + bound[:at]))
        below = _class(0, _previous(char))
        if below is not None:
            choices.begun.append(_plain(head + bound[:at]) + below)
    if include:
        choices.whole.append(_plain(head + bound))


def _plain(text: str) -> str:
    return "".join(f"\\x{{{ord(char):x}}}" for char in text)


def _class(first: int, last: int) -> str | None:
    return f"[\\x{{{first:x}}}-\\x{{{last:x}}}]" if 0 <= first <= last <= _LAST else None


def _next(char: str) -> int:
    return _AFTER_SURROGATES if ord(char) == _BEFORE_SURROGATES else ord(char) + 1


def _previous(char: str) -> int:
    return _BEFORE_SURROGATES if ord(char) == _AFTER_SURROGATES else ord(char) - 1
