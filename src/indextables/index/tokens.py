"""Words: how text becomes the tokens that are indexed and searched for.

One definition serves the index, the query and the scan of rows whose index cannot be
used, so that all three agree. A token may have any length: nothing is dropped, so its
index in the list is its position.

The words of `default`, `en_stem` and `compact_ids` go by rules that have versions, since a change of
them changes what is found. `default` alone means version 1 in an index and in the log: that is how
it was written before there were others. Version 2 follows `letters`.

`jieba` and `icu` make words of such scripts by a dictionary (`dictionaries`), and of other text as version 2.

`compact_ids` reads UUIDs and long identifiers as single words and keeps them out of the
index's dictionary: the index only has a 16-bit bucket for each, and the rows it proposes
are checked against the text.
"""

from __future__ import annotations

import ipaddress
import re
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from indextables.index.dictionaries import DICTIONARIES, cutter, edition_of
from indextables.index.letters import PAIRED, Piece, folded, pieces_of
from indextables.lazy import tantivy
from indextables.records import dataclass

ID_MARK = "\ua66e"
"""A letter that hardly occurs in text; it begins the words that represent identifiers in the index."""
_ID = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[a-z]*[0-9])[0-9a-z]{20,}|(?=[a-f]*[0-9])[0-9a-f]{16,})(?![0-9a-z])",
    re.IGNORECASE | re.ASCII,
)
NULLS = b"\xffn"
"""The entry for rows that are null."""
GAPS = b"\xffg"
"""The entry for boundaries between two values of one row."""
BEYOND = b"\xff"
"""Sorts after every word."""
PATH_END = "\x1f"
"""Separates the path of a JSON value from a word of it."""
PATH_MARK = "\x1e"
"""Follows a JSON path in the entry that says the path has a value."""
LEAF_GAP = "\x1d"
"""Separates two values of a JSON document."""
_SPACES = re.compile("[ \t\n\r\x0c]")
_SPELLED_SPACE = re.compile("\x1c([0-9a-f]+)\x1c")

Tokenize = Callable[[str], list[str]]


PAIRING = ("default", "en_stem", "compact_ids")
"""Tokenizers that cut scripts without spaces into pairs, from version 2 on."""
VERSIONED = (*PAIRING, *DICTIONARIES)
"""Tokenizers whose rules have versions."""
NEWEST = 2
"""The newest version of those that make pairs; of a dictionary it is the edition that is installed."""
FOLD = "+fold"
"""Follows the name of a tokenizer that does without accents."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A tokenizer by its parts: its rules, their version, and whether accents count."""

    base: str
    version: int = 1
    accents: bool = True

    @property
    def name(self) -> str:
        """As an index and the log spell it; version 1 is left out."""
        return self._spelled if self.version == 1 else f"{self._spelled}@{self.version}"

    @property
    def shown(self) -> str:
        """As people are told of it, with every version."""
        return f"{self._spelled}@{self.version}" if self.base in VERSIONED else self._spelled

    @property
    def _spelled(self) -> str:
        return self.base if self.accents else self.base + FOLD


@lru_cache(maxsize=64)
def tokenizer_of(name: str) -> Tokenizer:
    """The parts of a name such as `en_stem+fold@2`.

    >>> tokenizer_of("default")
    Tokenizer(base='default', version=1, accents=True)
    """
    base, _, version = name.partition("@")
    accents = not base.endswith(FOLD)
    return Tokenizer(base.removesuffix(FOLD), int(version or (1 if accents else NEWEST)), accents)


def makes_pairs(name: str) -> bool:
    """Whether a tokenizer cuts scripts without spaces into pairs of characters."""
    parts = tokenizer_of(name)
    return parts.version > 1 and parts.base in PAIRING


def newest_version(base: str) -> int:
    """The version that a column gets which names none; MissingPackageError where a dictionary is missing."""
    return edition_of(base) if base in DICTIONARIES else NEWEST


def plain_words(name: str) -> str:
    """The tokenizer that finds the words of another as the text has them: not their stems."""
    parts = tokenizer_of(name)
    return Tokenizer("default", parts.version, parts.accents).name if parts.base in PAIRING else name


@lru_cache(maxsize=16)
def analyzer(name: str) -> Any:
    """The tantivy analyzer behind version 1 of a tokenizer; `words_of` is the whole definition."""
    if name == "raw":
        return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).build()
    if name == "whitespace":
        return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    if name == "stems":
        # The stems of words that spaces separate.
        spaced = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        return spaced.filter(tantivy.Filter.stemmer("english")).build()
    simple = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    if name == "en_stem":
        return simple.filter(tantivy.Filter.stemmer("english")).build()
    return simple.build()


@lru_cache(maxsize=16)
def words_of(tokenizer: str) -> Tokenize:
    """The words of a text, in order."""
    parts = tokenizer_of(tokenizer)
    if parts.base == "raw":
        return lambda text: [text]
    analyze: Tokenize = analyzer("default" if parts.base in DICTIONARIES else parts.base).analyze
    if parts.version > 1:
        analyze = _by_letters(analyze, parts)
    if parts.base == "compact_ids":
        return lambda text: list(_words_and_ids(text, analyze))
    return analyze


def _by_letters(analyze: Tokenize, parts: Tokenizer) -> Tokenize:
    """The words by the rules of `letters`; `analyze` has the same ones for ASCII."""
    stems: Tokenize | None = analyzer("stems").analyze if parts.base == "en_stem" else None
    cut = cut_of(parts)

    def words(text: str) -> list[str]:
        if text.isascii():
            return analyze(text)
        plain = folded(text, accents=not parts.accents)
        pieces = [plain[piece.start : piece.end] for piece in pieces_of(plain, cut)]
        return pieces if stems is None else stems(" ".join(pieces))

    return words


def cut_of(parts: Tokenizer) -> Tokenize | None:
    """How a tokenizer of a dictionary cuts scripts without spaces; None where it makes pairs of them."""
    return cutter(parts.base, parts.version) if parts.base in DICTIONARIES else None


def sought_words(tokenizer: str, text: str) -> tuple[list[str], str | None]:
    """What a text asks of others when it is searched for: words in a row, then a character that begins one.

    A text that is found may go on behind the last pair of characters, so the single last character is left
    out; if it is all there is of its script, it is found as the first one of a pair.

    >>> sought_words("default@2", "Der Text 人工智能")
    (['der', 'text', '人工', '工智', '智能'], None)
    >>> sought_words("default@2", "人")
    ([], '人')
    """
    words = words_of(tokenizer)(text)
    parts = tokenizer_of(tokenizer)
    if not makes_pairs(tokenizer) or text.isascii() or not words:
        return words, None
    pieces = pieces_of(folded(text, accents=not parts.accents))
    if not pieces or pieces[-1].kind != PAIRED:
        return words, None
    return words[:-1], None if _goes_on(pieces) else words[-1]


def is_one_word(tokenizer: str, text: str) -> bool:
    """Whether a text is a single word, from its first character to its last."""
    parts = tokenizer_of(tokenizer)
    if parts.version == 1:
        words = words_of("default")
        return len(words(text)) == 1 and all(map(words, text))
    return words_of(plain_words(tokenizer))(text) == [folded(text, accents=not parts.accents)]


def _goes_on(pieces: list[Piece]) -> bool:
    """Whether the last character is also the second one of a pair."""
    return len(pieces) > 1 and pieces[-2].end == pieces[-1].end


def _words_and_ids(text: str, analyze: Tokenize) -> Iterator[str]:
    at = 0
    for match in _ID.finditer(text):
        yield from analyze(text[at : match.start()])
        yield match[0].lower()
        at = match.end()
    yield from analyze(text[at:])


def id_spans(text: str) -> list[tuple[int, int]]:
    """The start and end of identifiers that `compact_ids` recognises."""
    return [match.span() for match in _ID.finditer(text)]


def is_id(word: str) -> bool:
    """Whether `compact_ids` reads this word as an identifier."""
    return _ID.fullmatch(word) is not None


def bucket(word: str) -> str:
    """The word that represents an identifier in the index."""
    return f"{ID_MARK}{zlib.crc32(word.lower().encode()) & 0xFFFF:04x}"


def without_ids(text: str) -> str:
    """The text with identifiers replaced by their buckets, as a `compact_ids` column is indexed."""
    return _ID.sub(lambda match: f" {bucket(match[0])} ", text)


def address(text: str) -> str | None:
    """An IP address as 32 digits that sort like addresses; IPv4 inside IPv6. None when it is not one."""
    try:
        parsed = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return _digits(parsed)


def network(text: str) -> tuple[str, str] | None:
    """The first and last address of a network such as 10.0.0.0/8; None when it is not one."""
    try:
        parsed = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None
    return _digits(parsed[0]), _digits(parsed[-1])


def _digits(parsed: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    number = int(parsed) if parsed.version == 6 else 0xFFFF_0000_0000 | int(parsed)  # noqa: PLR2004
    return f"{number:032x}"


def json_leaves(value: Any, *, is_text: bool = True) -> list[tuple[str, Any]]:
    """The values of a JSON document with their paths; text that is not JSON has none.

    `is_text` says whether a text is the text of a document, or a value by itself.
    """
    if is_text and isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return []
    leaves: list[tuple[str, Any]] = []
    pending = [("", value)]
    while pending:
        path, item = pending.pop()
        if isinstance(item, dict):
            pending.extend(
                (f"{path}.{key}" if path else str(key), one) for key, one in reversed(item.items())
            )
        elif isinstance(item, (list, tuple)):
            pending.extend((path, one) for one in reversed(item))
        elif item is not None:
            leaves.append((path, item))
    return leaves


def leaf_words(value: Any, tokenize: Tokenize) -> list[str]:
    """The words of one JSON value: text by its tokenizer, numbers and booleans as JSON prints them."""
    return tokenize(value) if isinstance(value, str) else [leaf_text(value)]


def leaf_text(value: Any) -> str:
    """One JSON value as text: numbers and booleans as JSON prints them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def json_text(value: Any, tokenize: Tokenize, *, is_text: bool = True) -> str:
    """A JSON document as text in which every word carries its path, for the whitespace tokenizer."""
    out: list[str] = []
    paths: set[str] = set()
    for path, leaf in json_leaves(value, is_text=is_text):
        words = leaf_words(leaf, tokenize)
        for prefix in dict.fromkeys((path, "")):
            out.extend(json_word(prefix, word) for word in words)
            out.append(LEAF_GAP)
        parts = path.split(".")
        paths.update(".".join(parts[: count + 1]) for count in range(len(parts)))
    out.extend(json_mark(path) for path in sorted(paths))
    return " ".join(out)


def json_word(path: str, word: str) -> str:
    """A word of a JSON value, spelled as in the index."""
    return _no_spaces(f"{path}{PATH_END}{word}")


def json_mark(path: str) -> str:
    """The entry that says a JSON path has a value."""
    return _no_spaces(f"{path}{PATH_MARK}")


def _no_spaces(text: str) -> str:
    return _SPACES.sub(lambda match: f"\x1c{ord(match[0]):x}\x1c", text)


def with_spaces(word: str) -> str:
    """A word of a JSON value as the value had it."""
    return _SPELLED_SPACE.sub(lambda match: chr(int(match[1], 16)), word)
