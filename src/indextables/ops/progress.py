"""Progress: how a long verb tells whoever watches how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many pieces are finished, and how many there are."""


def silent(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


def watched(results: Iterable[T], progress: Progress, stage: str, total: int) -> Iterator[T]:
    """Pass results through and report each one as a finished piece."""
    progress(stage, 0, total)
    for done, result in enumerate(results, start=1):
        yield result
        progress(stage, done, total)
