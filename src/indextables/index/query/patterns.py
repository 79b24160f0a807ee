"""Which words a pattern means: wildcards, regular expressions, and words spelled almost alike.

A pattern looks at distinct words, many at once: those of a dictionary, or those of
rows whose index cannot be used. Regular expressions are RE2's, whose time grows with
the words and not with the expression; edits are counted over a whole column of words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.index.codec.numbers import Array

MOST_EDITS = 2
LONGEST_EXPRESSION = 1000


class Gap(Enum):
    """What stands for unknown characters in a wildcard."""

    ONE = "?"
    MANY = "*"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Words with `?` for one character and `*` for any number of them."""

    parts: tuple[str | Gap, ...]

    @property
    def prefix(self) -> str:
        """What every such word begins with."""
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""

    def matches(self, words: pa.StringArray) -> Array:
        """Which of some words fit."""
        shape = "".join(
            re.escape(part) if isinstance(part, str) else "." if part is Gap.ONE else ".*"
            for part in self.parts
        )
        return _whole_match(words, shape)


@dataclass(frozen=True, slots=True)
class Expression:
    """Words that a regular expression describes from their first character to their last."""

    text: str

    @property
    def prefix(self) -> str:
        """What every such word begins with, as far as that is plain to see."""
        if "|" in self.text:
            return ""
        found = re.match(r"[A-Za-z0-9]*", self.text)
        assert found is not None
        optional = self.text[found.end() : found.end() + 1] in ("*", "?", "{")
        return found[0][:-1] if optional else found[0]

    def matches(self, words: pa.StringArray) -> Array:
        """Which of some words fit."""
        return _whole_match(words, self.text)

    def problem(self) -> str | None:
        """Why the expression cannot be used; None when it can."""
        if len(self.text) > LONGEST_EXPRESSION:
            return f"it is {len(self.text)} characters long; at most {LONGEST_EXPRESSION} are read"
        try:
            # By itself: inside other brackets one too many would go unnoticed.
            pc.match_substring_regex(pa.array([""], pa.string()), self.text)
        except pa.ArrowInvalid as bad:
            return str(bad).partition("error: ")[2] or str(bad)
        return None


@dataclass(frozen=True, slots=True)
class Similar:
    """Words that become this one by so many edits: a character more, less, another, or two swapped."""

    word: str
    edits: int

    @property
    def prefix(self) -> str:
        """Any word may be similar."""
        return ""

    def matches(self, words: pa.StringArray) -> Array:
        """Which of some words fit."""
        lengths = pc.utf8_length(words).to_numpy(zero_copy_only=False)
        found = np.zeros(len(words), bool)
        near = (np.abs(lengths - len(self.word)) <= self.edits).nonzero()[0]
        if len(near):
            found[near] = _edits(words.take(pa.array(near)).to_pylist(), self.word) <= self.edits
        return found


Pattern: TypeAlias = Wildcard | Expression | Similar


def _whole_match(words: pa.StringArray, shape: str) -> Array:
    found = pc.match_substring_regex(words, rf"\A(?s:{shape})\z")
    mask: Array = found.to_numpy(zero_copy_only=False).astype(bool, copy=False)
    return mask


def _edits(words: list[str], wanted: str) -> Array:
    """For every word the least edits that make it the wanted one; no part is edited twice."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    width = max(1, int(lengths.max()))
    letters = np.array(words, f"U{width}").view(np.uint32).reshape(len(words), width)
    target = [ord(char) for char in wanted]
    # One row of the table per character of the word, for all words at once.
    before: Array | None = None
    row = np.tile(np.arange(len(target) + 1, dtype=np.int16), (len(words), 1))
    found = row[:, -1].copy()
    for at in range(width):
        new = np.empty_like(row)
        new[:, 0] = at + 1
        for k, char in enumerate(target, start=1):
            cost = letters[:, at] != char
            best = np.minimum(np.minimum(new[:, k - 1], row[:, k]) + 1, row[:, k - 1] + cost)
            if before is not None and k > 1:
                swapped = (letters[:, at] == target[k - 2]) & (letters[:, at - 1] == char)
                best = np.where(swapped, np.minimum(best, before[:, k - 2] + 1), best)
            new[:, k] = best
        before, row = row, new
        done = lengths == at + 1
        found[done] = row[done, -1]
    return found
