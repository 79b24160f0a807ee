"""Ranges and prefixes of words as regular expressions, which is how the index is asked for them.

Words are ordered by code point. Every character is written as a number, so that
none has a meaning of its own.
"""

from __future__ import annotations

REST = "(?s:.)*"
NEVER = "[^\\x{0}-\\x{10ffff}]"
_LAST = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def starting(prefix: str) -> str:
    """Words that begin with a prefix."""
    return _plain(prefix) + REST


def between(lower: str | None, upper: str | None, *, include_lower: bool, include_upper: bool) -> str | None:
    """Words within bounds, of which None is open; None when there can be none."""
    if lower is None and upper is None:
        return REST
    if upper is None:
        return _at_least(lower or "", include_lower)
    if lower is None:
        return _either(_at_most(upper, include_upper))
    shared = 0
    while shared < min(len(lower), len(upper)) and lower[shared] == upper[shared]:
        shared += 1
    head, low, high = lower[:shared], lower[shared:], upper[shared:]
    if not low:
        choices = _at_most(high, include_upper)
        if high and not include_lower:
            choices = choices[1:]
        elif not high and not (include_lower and include_upper):
            choices = []
        return _plain(head) + _either(choices) if choices else None
    if not high or low[0] > high[0]:
        return None
    choices = [_plain(low[0]) + _at_least(low[1:], include_lower)]
    inner = _class(_next(low[0]), _previous(high[0]))
    if inner is not None:
        choices.append(inner + REST)
    tail = _at_most(high[1:], include_upper)
    if tail:
        choices.append(_plain(high[0]) + _either(tail))
    return _plain(head) + _either(choices)


def _at_least(bound: str, include: bool) -> str:
    choices = [_plain(bound) + (REST if include else "(?s:.)+")]
    for at, char in enumerate(bound):
        above = _class(_next(char), _LAST)
        if above is not None:
            choices.append(_plain(bound[:at]) + above + REST)
    return _either(choices)


def _at_most(bound: str, include: bool) -> list[str]:
    """The choices for words up to a bound, the empty word first."""
    choices: list[str] = []
    for at, char in enumerate(bound):
        choices.append(_plain(bound[:at]))
        below = _class(0, _previous(char))
        if below is not None:
            choices.append(_plain(bound[:at]) + below + REST)
    return [*choices, _plain(bound)] if include else choices


def _either(choices: list[str]) -> str:
    return f"(?:{'|'.join(choices)})" if choices else NEVER


def _plain(text: str) -> str:
    return "".join(f"\\x{{{ord(char):x}}}" for char in text)


def _class(first: int, last: int) -> str | None:
    return f"[\\x{{{first:x}}}-\\x{{{last:x}}}]" if 0 <= first <= last <= _LAST else None


def _next(char: str) -> int:
    return _AFTER_SURROGATES if ord(char) == _BEFORE_SURROGATES else ord(char) + 1


def _previous(char: str) -> int:
    return _BEFORE_SURROGATES if ord(char) == _AFTER_SURROGATES else ord(char) - 1
