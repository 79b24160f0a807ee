"""Letters: how Unicode text is folded, and where the words of folded text begin and end.

Version 2 of the tokenizers goes by these rules:

- Text is folded first: compatibility forms (NFKC), letter case, characters that show nothing; accents too
  where a tokenizer says `+fold`.
- A word is a run of letters and digits. A mark belongs to the character before it.
- Scripts that put no spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are cut
  into overlapping pairs of characters, and the last character of a run stands alone. The pairs of a text
  follow each other exactly where the text itself occurs.
- An emoji is a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple
from unicodedata import category, normalize

SEPARATOR, WORD, PAIRED, EMOJI, MARK = range(5)
"""What a character is for the words of a text."""

_SCRIPTS = (
    "\u0e01-\u0e7f"  # Thai
    "\u0e80-\u0eff"  # Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa1-\uffdc"  # Hangul
    "\u3031-\u3035\u303c\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # Hiragana, Katakana
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"  # Han
)
_PAIRED = re.compile(f"[{_SCRIPTS}]")
_EMOJI = re.compile("[\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e3"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_STROKES = str.maketrans(
    {
        "\u00e6": "ae",
        "\u00f0": "d",
        "\u00f8": "o",
        "\u00fe": "th",
        "\u0111": "d",
        "\u0127": "h",
        "\u0131": "i",
        "\u0142": "l",
        "\u0153": "oe",
        "\u0167": "t",
    }
)
_APOSTROPHE = "\u02bc"
"""The apostrophe that Unicode counts as a letter; here all apostrophes separate words."""
_JOINING_JAMO = re.compile("[\u1161-\u11ff\ud7b0-\ud7ff]")


def folded(text: str, *, accents: bool = False) -> str:
    """The text in one spelling of many: compatibility forms, case, invisible characters, perhaps accents.

    >>> folded("Straße ｶﾞ ²")
    'strasse ガ 2'
    >>> folded("Crème brûlée", accents=True)
    'creme brulee'
    """
    if text.isascii():
        return text.lower()
    plain = normalize("NFKC", _INVISIBLE.sub("", normalize("NFKC", text)).casefold())
    if not accents:
        return plain
    return normalize("NFKC", _ACCENTS.sub("", normalize("NFKD", plain)).translate(_STROKES))


@lru_cache(maxsize=65_536)
def kind_of(char: str) -> int:
    """What a folded character is for the words of a text."""
    if char.isascii():
        return WORD if char.isalnum() else SEPARATOR
    if category(char)[0] == "M":
        return MARK
    if char.isalnum() and char != _APOSTROPHE:
        return PAIRED if _PAIRED.match(char) else WORD
    return EMOJI if _EMOJI.match(char) else SEPARATOR


def has_paired(text: str) -> bool:
    """Whether a text has characters of a script that is indexed in pairs."""
    return not text.isascii() and any(kind_of(char) == PAIRED for char in _PAIRED.findall(text))


class Piece(NamedTuple):
    """A word of a folded text: where it starts, where its first character ends if it is a pair, its end."""

    kind: int
    start: int
    middle: int
    end: int


def pieces_of(text: str, cut: Callable[[str], list[str]] | None = None) -> list[Piece]:
    """The words of a folded text, in order; `cut` makes words of scripts that would be paired.

    >>> [text[piece.start : piece.end] for text in ["Ein 人工智能 🙂".lower()] for piece in pieces_of(text)]
    ['ein', '人工', '工智', '智能', '能', '🙂']
    """
    units: list[Piece] = []
    for at, char in enumerate(text):
        kind = kind_of(char)
        if units and units[-1].end == at and _continues(kind, units[-1].kind):
            units[-1] = units[-1]._replace(end=at + 1, middle=at + 1)
        elif kind not in (SEPARATOR, MARK):
            units.append(Piece(kind, at, at + 1, at + 1))
    if cut is not None:
        return _by_dictionary(text, units, cut)
    paired = [
        one._replace(end=other.end) if one.kind == other.kind == PAIRED and one.end == other.start else one
        for one, other in pairwise(units)
    ]
    return paired + units[-1:]


def _by_dictionary(text: str, units: list[Piece], cut: Callable[[str], list[str]]) -> list[Piece]:
    """The words with every run of characters that would be paired cut by a dictionary."""
    pieces: list[Piece] = []
    at = 0
    while at < len(units):
        end = at + 1
        if units[at].kind != PAIRED:
            pieces.append(units[at])
            at = end
            continue
        while end < len(units) and units[end].kind == PAIRED and units[end].start == units[end - 1].end:
            end += 1
        begin = units[at].start
        for word in cut(text[begin : units[end - 1].end]):
            pieces.append(Piece(WORD, begin, begin + len(word), begin + len(word)))
            begin += len(word)
        at = end
    return pieces


def _continues(kind: int, before: int) -> bool:
    return before != EMOJI if kind == MARK else kind == before == WORD


def runs_of(text: str) -> list[str]:
    """The pieces of a text that hold no separator: letters and digits with their marks.

    Emoji count only where there is nothing else: not every tokenizer has words for them.

    >>> runs_of("well-known: กรุงเทพ 👍")
    ['well', 'known', 'กรุงเทพ']
    """
    spaced = [char if kind_of(char) != SEPARATOR or _INVISIBLE.match(char) else " " for char in text]
    runs = "".join(spaced).split()
    kinds = [{piece.kind for piece in pieces_of(folded(run))} for run in runs]
    lettered = [run for run, some in zip(runs, kinds, strict=True) if some - {EMOJI}]
    return lettered or [run for run, some in zip(runs, kinds, strict=True) if some]


def by_script(text: str) -> list[str]:
    """A text cut where scripts that are indexed in pairs begin and end.

    >>> by_script("Python入門と3章")
    ['Python', '入門と', '3', '章']
    """
    runs = groupby(clusters(text), lambda place: has_paired(text[slice(*place)]))
    return ["".join(text[start:end] for start, end in places) for _, places in runs]


def clusters(text: str) -> list[tuple[int, int]]:
    """Start and end of the parts of a text that are folded each for itself: characters with their marks."""
    starts = [at for at, char in enumerate(text) if not at or not _joins(char)]
    return list(pairwise([*starts, len(text)]))


@lru_cache(maxsize=65_536)
def _joins(char: str) -> bool:
    """Whether a character may combine with the one before it."""
    if char.isascii():
        return False
    first = normalize("NFKC", char)[0]
    return category(first)[0] == "M" or bool(_JOINING_JAMO.match(first) or _INVISIBLE.match(char))


__all__ = [
    "EMOJI",
    "MARK",
    "PAIRED",
    "SEPARATOR",
    "WORD",
    "by_script",
    "clusters",
    "folded",
    "has_paired",
    "kind_of",
    "pieces_of",
    "runs_of",
]
