"""The types of option values: how each is read from text, and what to say when that fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of option value: how to read it from text, and what to say when that fails."""

    name: str
    read: Callable[[str], Any]


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError(text)
    return lowered == "true"


def at_least(low: int, high: int | None = None) -> Kind:
    """Whole numbers within limits."""

    def read(text: str) -> int:
        number = int(text.strip())
        if number < low or (high is not None and number > high):
            raise ValueError(text)
        return number

    return Kind(
        f"a whole number from {low} to {high}" if high is not None else f"a whole number >= {low}", read
    )


def _hours(text: str) -> float:
    number = float(text.strip())
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def one_of(*choices: str) -> Kind:
    """One of a few words, in any case."""

    def read(text: str) -> str:
        lowered = text.strip().lower()
        if lowered not in choices:
            raise ValueError(text)
        return lowered

    return Kind("one of " + ", ".join(choices), read)


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_size(text: str) -> int:
    """Read `100M`, `1g`, `64 MiB` or a plain number of bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(float(match[1]) * _SCALE[match[2].lower()])


def auto_or(kind: Kind) -> Kind:
    """A value of another kind, or the word auto, read as None."""

    def read(text: str) -> int | None:
        if text.strip().lower() == "auto":
            return None
        number: int = kind.read(text)
        return number

    return Kind(f"auto, or {kind.name}", read)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _fraction(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError(text)
    return number


STRATEGIES = ("drop", "truncate")


def _lenient_strategy(text: str) -> str:
    """A strategy; one that does not exist stays as it was written, and counts as `drop` with a warning."""
    lowered = text.strip().lower()
    return lowered if lowered in STRATEGIES else text


BOOLEAN = Kind("true or false", _boolean)
COUNT = at_least(0)
POSITIVE = at_least(1)
HOURS = Kind("a number of hours >= 0", _hours)
SIZE = Kind("a size such as 128M or 1G", parse_size)
TEXT = Kind("text", str)
FRACTION = Kind("a number from 0 to 1", _fraction)
STRATEGY = Kind("drop or truncate", _lenient_strategy)
NAMES = Kind("column names separated by commas", _names)
ADDRESSES = Kind("addresses separated by commas", _names)


def option(key: str, default: Any, kind: Kind, doc: str, aliases: tuple[str, ...] = ()) -> Any:
    """Declare one option as a dataclass field."""
    return field(default=default, metadata={"key": key, "kind": kind, "doc": doc, "aliases": aliases})
