"""The words of some dictionary blocks as one Arrow array, for patterns that any word may match.

Blocks store a word without the prefix it shares with the one before. Here the words of many blocks are
put together at once, in as many steps as words lie between two that are stored whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from indextables.index.codec.blocks import RESTART, Block
from indextables.index.codec.numbers import Array, damaged, starts_of
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class WordList:
    """The words of consecutive dictionary blocks, ascending."""

    words: pa.Array
    """As bytes: behind the words of texts a field has marks that are no text."""
    first_block: int
    starts: Array
    """For every block the number of its first word, and at the end the number of all words."""

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self.words.nbytes + self.starts.nbytes)

    def between(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The numbers of the words from `low` up to `high`: the first, and the one after the last."""
        numbers = range(len(self.words))

        def spelled(number: int) -> bytes:
            word: bytes = self.words[number].as_py()
            return word

        return bisect_left(numbers, low, key=spelled), bisect_left(numbers, high, key=spelled)

    def texts(self, begin: int, end: int) -> pa.Array:
        """The words with these numbers as texts."""
        try:
            texts: pa.Array = self.words[begin:end].cast(pa.large_string())
        except pa.ArrowInvalid as bad:
            raise damaged("a word of the dictionary is no text") from bad
        return texts

    def by_block(self, numbers: Array) -> list[tuple[int, Array]]:
        """Ascending words by the block they are in: its number, and theirs in the block."""
        if not len(numbers):
            return []
        homes = np.searchsorted(self.starts, numbers, "right") - 1
        cuts = np.flatnonzero(np.diff(homes, prepend=-1)).tolist()
        parts = zip(cuts, [*cuts[1:], len(numbers)], strict=True)
        return [(self.first_block + int(homes[a]), numbers[a:b] - self.starts[homes[a]]) for a, b in parts]


def word_list(blocks: Sequence[Block], first_block: int) -> WordList:
    """Decode the words of consecutive blocks."""
    counts = np.array([block.count for block in blocks], np.int64)
    starts = starts_of(counts)
    parts = [block.spelling() for block in blocks]
    shared = np.concatenate([part[0] for part in parts]).astype(np.int64)
    own = np.concatenate([part[1] for part in parts]).astype(np.int64)
    ends = starts_of(shared + own)
    text = np.empty(int(ends[-1]), np.uint8)
    text[_places(ends[:-1] + shared, own)] = np.frombuffer(b"".join(part[2] for part in parts), np.uint8)
    steps = (np.arange(len(shared)) - np.repeat(starts[:-1], counts)) % RESTART
    if shared[steps == 0].any() or (shared[1:] > np.diff(ends)[:-1])[steps[1:] > 0].any():
        raise damaged("a word of the dictionary shares more than the word before it has")
    for step in range(1, RESTART):
        words = np.flatnonzero(steps == step)
        lengths = shared[words]
        text[_places(ends[words], lengths)] = text[_places(ends[words - 1], lengths)]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(text)]
    return WordList(pa.Array.from_buffers(pa.large_binary(), len(shared), buffers), first_block, starts)


def _places(begins: Array, lengths: Array) -> Array:
    """The offsets of all bytes of some ranges, one range after the other."""
    return np.repeat(begins - starts_of(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))
