"""Which words match a pattern: wildcards, regular expressions, and similar spellings.

A pattern is applied to many distinct words at once: those of a dictionary, or those of
rows whose index cannot be used. Regular expressions are RE2's, which run in linear time;
edit distances are computed over a whole column of words.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from indextables.index.codec.numbers import Array
from indextables.lazy import pc
from indextables.model.arrays import integers, truths
from indextables.records import dataclass

MOST_EDITS = 2
LONGEST_EXPRESSION = 1000


class Gap(Enum):
    """The kinds of wildcard."""

    ONE = "?"
    MANY = "*"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Words that match a pattern with `?` for one character and `*` for any number of them."""

    parts: tuple[str | Gap, ...]

    @property
    def prefix(self) -> str:
        """The literal text that every matching word begins with."""
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""

    def matches(self, words: pa.StringArray) -> Array:
        """For each word, whether it matches."""
        shape = "".join(
            re.escape(part) if isinstance(part, str) else "." if part is Gap.ONE else ".*"
            for part in self.parts
        )
        last = self.parts[-1] if self.parts else ""
        if not isinstance(last, str) or not last:
            return _whole_match(words, shape)
        # Most words are ruled out by their end, which is compared many times faster.
        matching: Array = truths(pc.ends_with(words, last))
        if self.parts[:-1] != (Gap.MANY,):
            ended = matching.nonzero()[0]
            matching[ended] = _whole_match(words.take(integers(ended)), shape)
        return matching


@dataclass(frozen=True, slots=True)
class Expression:
    """Words that a regular expression matches from beginning to end."""

    text: str

    @property
    def prefix(self) -> str:
        """The literal text that every matching word begins with, as far as it is obvious."""
        if "|" in self.text:
            return ""
        literal = re.match(r"[^\W_]*", self.text)
        assert literal is not None
        optional = self.text[literal.end() : literal.end() + 1] in ("*", "?", "{")
        return literal[0][:-1] if optional else literal[0]

    def matches(self, words: pa.StringArray) -> Array:
        """For each word, whether it matches."""
        return _whole_match(words, self.text)

    def problem(self) -> str | None:
        """Why the expression cannot be used; None when it can."""
        if len(self.text) > LONGEST_EXPRESSION:
            return f"it is {len(self.text)} characters long; at most {LONGEST_EXPRESSION} are read"
        try:
            # Compiled on its own: inside other brackets a surplus closing one would go unnoticed.
            pc.match_substring_regex(pa.array([""], pa.string()), self.text)
        except pa.ArrowInvalid as bad:
            return str(bad).partition("error: ")[2] or str(bad)
        return None


@dataclass(frozen=True, slots=True)
class Similar:
    """Words within some edits of this one: a character inserted, deleted, replaced, or two swapped."""

    word: str
    edits: int

    @property
    def prefix(self) -> str:
        """Empty: a similar word may begin with anything."""
        return ""

    def matches(self, words: pa.StringArray) -> Array:
        """For each word, whether it matches."""
        matching = np.zeros(len(words), bool)
        least, most = len(self.word) - self.edits, len(self.word) + self.edits
        sizes = pc.binary_length(words).to_numpy()
        # A character takes one to four bytes.
        near = ((sizes >= least) & (sizes <= 4 * most)).nonzero()[0]
        spelled = words.take(integers(near))
        lengths = pc.utf8_length(spelled).to_numpy()
        inside = ((lengths >= least) & (lengths <= most)).nonzero()[0]
        if not len(inside):
            return matching
        near, lengths = near[inside], lengths[inside]
        letters = _letters(spelled.take(integers(inside)), lengths)
        alike = _alike(letters, self.word, self.edits).nonzero()[0]
        if len(alike):
            near = near[alike]
            matching[near] = _edits(letters[alike], lengths[alike], self.word) <= self.edits
        return matching


Pattern: TypeAlias = Wildcard | Expression | Similar


def _whole_match(words: pa.StringArray, shape: str) -> Array:
    matches = pc.match_substring_regex(words, rf"\A(?s:{shape})\z")
    return truths(matches)


def _letters(words: pa.Array, lengths: Array) -> Array:
    """The characters of words as numbers, a row for each word, filled up with zeros."""
    width = max(1, int(lengths.max()))
    if int(lengths.sum()) != int(pc.sum(pc.binary_length(words)).as_py()):
        spelled = np.array(words.to_pylist(), f"U{width}")
        return spelled.view(np.uint32).reshape(len(words), width)
    # Each character is one byte.
    letters = np.zeros((len(words), width), np.uint32)
    text = b"".join(words.cast(pa.large_binary()).to_pylist())
    letters[np.arange(width) < lengths[:, None]] = np.frombuffer(text, np.uint8)
    return letters


def _alike(letters: Array, word: str, edits: int) -> Array:
    """Which words can be near enough: an edit adds at most one new letter and removes at most one."""
    bits = np.bitwise_or.reduce(np.uint64(1) << (letters.astype(np.uint64) & np.uint64(63)), axis=1)
    target = np.bitwise_or.reduce([np.uint64(1) << np.uint64(ord(char) & 63) for char in (*word, "\0")])
    # Short words are padded with zeros, so the bit for zero means nothing.
    bits |= np.uint64(1)
    missing, extra = np.bitwise_count(target & ~bits), np.bitwise_count(bits & ~target)
    return np.asarray((missing <= edits) & (extra <= edits))


def _edits(letters: Array, lengths: Array, word: str) -> Array:
    """For every word the fewest edits that turn it into `word`; no part is edited twice."""
    columns = np.ascontiguousarray(letters.T)
    target = [ord(char) for char in word]
    # One row of the dynamic-programming table per character, for all words at once.
    before: Array | None = None
    row = np.repeat(np.arange(len(target) + 1, dtype=np.int16)[:, None], columns.shape[1], axis=1)
    fewest = row[-1].copy()
    for at, column in enumerate(columns):
        new = np.empty_like(row)
        new[0] = at + 1
        for k, char in enumerate(target, start=1):
            best = np.minimum(np.minimum(new[k - 1], row[k]) + 1, row[k - 1] + (column != char))
            if before is not None and k > 1:
                swapped = (column == target[k - 2]) & (columns[at - 1] == char)
                best = np.where(swapped, np.minimum(best, before[k - 2] + 1), best)
            new[k] = best
        before, row = row, new
        done = lengths == at + 1
        fewest[done] = row[-1][done]
    return np.asarray(fewest)
