"""Where words begin and end, by the rules of Unicode (UAX #29, without the tailoring of any language).

`search(..., mode => 'word')` means these words. They are not the words of an index: `can't`, `3.14` and
`snake_case` are one word each here, and a Chinese character is one by itself. The same rules in Java are in
`WordSearch.java`; both read the table of classes beside this module.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pyarrow as pa

from indextables.lazy import pc

Array = np.ndarray
_UNICODE = 0x110000


def table_of_classes() -> str:
    """The word break class of every character as runs: a letter and, if not one, how many have it."""
    return files("indextables.predicate").joinpath("word_breaks.txt").read_text("ascii").replace("\n", "")


@cache
def _classes() -> Array:
    table = np.empty(_UNICODE, np.uint8)
    at = 0
    for letter, digits in re.findall(r"(\D)(\d*)", table_of_classes()):
        count = int(digits or 1)
        table[at : at + count] = ord(letter)
        at += count
    return table


@cache
def _members(letters: str) -> Array:
    return np.isin(np.arange(256), np.frombuffer(letters.encode(), np.uint8))


def boundaries(chars: Array, starts: Array) -> Array:
    """Whether a word may begin before each character of some texts; one more for the end of the last.

    `chars` are the characters of all texts, one text after the other, and `starts` where each text begins.
    """
    breaks = np.ones(len(chars) + 1, bool)
    if not len(chars):
        return breaks
    raw = _classes()[chars]
    first = np.zeros(len(chars), bool)
    first[starts[starts < len(chars)]] = True
    before = np.concatenate([np.zeros(1, np.uint8), raw[:-1]])
    before[first] = 0
    # WB4: what extends a character is no character of its own, but at the beginning of a text or line.
    extends = _members("EFZ")[raw] & (before != 0) & ~_members("Rnv")[before]
    breaks[:-1][extends] = False
    base = (~extends).nonzero()[0]
    kinds, starting = raw[base], first[base]
    padded = np.concatenate([np.zeros(2, np.uint8), kinds, np.zeros(1, np.uint8)])
    last, here, after = padded[1:-2].copy(), kinds, padded[3:].copy()
    earlier = padded[:-3].copy()
    last[starting] = earlier[starting] = 0
    earlier[1:][starting[:-1]] = 0
    after[:-1][starting[1:]] = 0
    joined = _joined(earlier, last, here, after)
    near = before[base]
    joined |= (near == ord("R")) & (here == ord("n"))  # WB3; a line feed, and only it, is `n`
    joined |= (near == ord("Z")) & _members("pa")[here]  # WB3c
    joined |= (near == ord("W")) & (here == ord("W"))  # WB3d
    joined |= _second_of_pair(here == ord("I"), starting)  # WB15, WB16
    joined &= ~starting
    breaks[base[joined]] = False
    return breaks


def _joined(earlier: Array, last: Array, here: Array, after: Array) -> Array:
    """Rules WB5 to WB13b: whether a character belongs to the word of the one before it."""
    letter, digit, kana, joiner = _members("AaH"), _members("N"), _members("K"), _members("_")
    hebrew, in_word, in_number = _members("H"), _members("LBS"), _members("MBS")
    single, double = _members("S"), _members("D")
    joined = (letter | digit)[last] & (letter | digit)[here]
    joined |= letter[last] & in_word[here] & letter[after]
    joined |= letter[earlier] & in_word[last] & letter[here]
    joined |= hebrew[last] & single[here]
    joined |= hebrew[last] & double[here] & hebrew[after]
    joined |= hebrew[earlier] & double[last] & hebrew[here]
    joined |= digit[earlier] & in_number[last] & digit[here]
    joined |= digit[last] & in_number[here] & digit[after]
    joined |= kana[last] & kana[here]
    joined |= (letter | digit | kana | joiner)[last] & joiner[here]
    joined |= joiner[last] & (letter | digit | kana)[here]
    return np.asarray(joined)


def _second_of_pair(indicators: Array, starting: Array) -> Array:
    """The regional indicators that end a pair, counted from the beginning of their run."""
    at = np.arange(len(indicators))
    run_starts = np.where(~indicators, at + 1, np.where(starting, at, 0))
    return np.asarray(indicators & ((at - np.maximum.accumulate(run_starts)) % 2 == 1))


def words_of(text: str) -> list[str]:
    """The words of a text: its pieces that have a letter, a digit or a pictograph.

    >>> words_of("Don't use snake_case: 3.14 of 42!")
    ["Don't", 'use', 'snake_case', '3.14', 'of', '42']
    """
    chars = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    cuts = boundaries(chars, np.zeros(1, np.int64)).nonzero()[0].tolist()
    pieces = [text[begin:end] for begin, end in pairwise(cuts)]
    return [piece for piece in pieces if any(map(_is_of_a_word, piece))]


def _is_of_a_word(char: str) -> bool:
    return bool(_members("AaHKNIp")[_classes()[ord(char)]]) or unicodedata.category(char)[0] in "LN"


def have_words(texts: pa.Array, words: list[str]) -> pa.BooleanArray:
    """For each text, whether it has all these words, in any order; null for null."""
    matches = pc.is_valid(texts)
    for word in words:
        matches = pc.and_(matches, pc.fill_null(pc.match_substring(texts, word), False))
    left = matches.to_numpy(zero_copy_only=False)
    rows = left.nonzero()[0]
    if len(rows):
        left = left.copy()
        left[rows] = _bounded(texts.take(pa.array(rows)), words)
    return pc.if_else(pc.is_valid(texts), pa.array(left), pa.scalar(None, pa.bool_()))


def _bounded(texts: pa.Array, words: list[str]) -> Array:
    """Whether each of some texts has all words between boundaries."""
    sizes = pc.utf8_length(texts).to_numpy().astype(np.int64)
    joined = b"".join(texts.cast(pa.binary()).to_pylist())
    chars = np.frombuffer(joined.decode().encode("utf-32-le"), np.uint32)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    breaks = boundaries(chars, starts)
    every = np.ones(len(sizes), bool)
    for word in words:
        spelled = np.frombuffer(word.encode("utf-32-le"), np.uint32)
        at = (chars[: len(chars) - len(spelled) + 1] == spelled[0]).nonzero()[0]
        for offset, char in enumerate(spelled.tolist()):
            at = at[chars[at + offset] == char]
        end = at + len(spelled)
        at = at[(owner[at] == owner[end - 1]) & breaks[at] & breaks[end]]
        has_word = np.zeros(len(sizes), bool)
        has_word[owner[at]] = True
        every &= has_word
    return every
