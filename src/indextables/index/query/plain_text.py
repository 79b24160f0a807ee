"""Text that is no query."""

from __future__ import annotations

from typing import Self


class PlainText(str):
    """A text that is no query: wherever a query is taken, it stands for all of its words.

    `why` is a note for whoever wrote it as a query that could not be read.
    """

    __slots__ = ("why",)
    why: str

    def __new__(cls, text: str, why: str = "") -> Self:
        made = super().__new__(cls, text)
        made.why = why
        return made
