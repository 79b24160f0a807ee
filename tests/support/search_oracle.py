"""What a full-text query means, written a second time: tokenise in Python, match word by word.

Nothing here uses the code under test. Queries are built as small objects that
know both their text and which rows they find.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_LONG = re.compile(rf"(?<![0-9A-Za-z])(?:{UUID}|[0-9A-Za-z]{{16,}})(?![0-9A-Za-z])")


def is_identifier(word: str) -> bool:
    if re.fullmatch(UUID, word):
        return True
    if not re.fullmatch("[0-9A-Za-z]+", word) or not re.search("[0-9]", word):
        return False
    return len(word) >= 20 or (len(word) >= 16 and re.fullmatch("[0-9A-Fa-f]+", word) is not None)


def _simple(text: str) -> list[str]:
    words, word = [], ""
    for char in text:
        if char.isalnum():
            word += "".join(part for part in char.lower())
        elif word:
            words.append(word)
            word = ""
    return [*words, word] if word else words


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    import tantivy

    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(tantivy.Filter.stemmer("english"))
    return analyzer.build().analyze(word)[0]


def _with_identifiers(text: str) -> list[str]:
    words, at = [], 0
    for match in _LONG.finditer(text):
        if not is_identifier(match[0]):
            continue
        words += _simple(text[at : match.start()]) + [match[0].lower()]
        at = match.end()
    return words + _simple(text[at:])


def tokenise(text: str, tokenizer: str) -> list[str]:
    if tokenizer == "raw":
        return [text]
    if tokenizer == "whitespace":
        return [word for word in re.split("[ \t\n\r\x0c]", text) if word]
    if tokenizer == "en_stem":
        return [_stem(word) for word in _simple(text)]
    if tokenizer == "compact_ids":
        return _with_identifiers(text)
    return _simple(text)


@dataclass(frozen=True)
class Column:
    """A column of texts: None, one text, or several per row."""

    name: str
    tokenizer: str
    rows: tuple[Any, ...]

    def words(self, row: int) -> list[list[str]]:
        value = self.rows[row]
        texts = [] if value is None else [value] if isinstance(value, str) else list(value)
        return [tokenise(text, self.tokenizer) for text in texts if text is not None]


def quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class Phrase:
    """Words in a row, perhaps with others among them, perhaps ending in a prefix."""

    column: Column
    text: str
    slop: int = 0
    prefix: bool = False

    def __str__(self) -> str:
        return f"{self.column.name}:{quote(self.text)}" + (
            f"~{self.slop}" if self.slop else "*" if self.prefix else ""
        )

    def finds(self, row: int) -> bool:
        tokenizer = self.column.tokenizer
        wanted = tokenise(self.text, tokenizer)
        if not wanted:
            return False
        plain = tokenise(self.text, "default" if tokenizer == "en_stem" else tokenizer)
        prefixed = self.prefix and not (tokenizer == "compact_ids" and is_identifier(wanted[-1]))
        for text in self.column.words(row):
            for start in range(len(text)):
                if prefixed:
                    tail = text[start : start + len(wanted)]
                    if (
                        len(tail) == len(wanted)
                        and tail[:-1] == wanted[:-1]
                        and self._begins(tail[-1], plain[-1], wanted[-1])
                    ):
                        return True
                elif _follows(text, start, wanted, self.slop):
                    return True
        return False

    def _begins(self, word: str, plain: str, stem: str) -> bool:
        if self.column.tokenizer == "compact_ids":
            return word.startswith(plain) and not is_identifier(word)
        return word.startswith(plain) or (self.column.tokenizer == "en_stem" and word == stem)


def _follows(text: Sequence[str], start: int, wanted: Sequence[str], slop: int) -> bool:
    """Whether the wanted words stand in order from `start`, spread over at most `slop` more places."""
    if not wanted:
        return True
    reach = text[start : start + len(wanted) + slop]
    if not reach or reach[0] != wanted[0]:
        return False

    def rest(at: int, left: Sequence[str]) -> bool:
        return not left or any(reach[k] == left[0] and rest(k + 1, left[1:]) for k in range(at, len(reach)))

    return rest(1, wanted[1:])


@dataclass(frozen=True)
class Span:
    """Any word within bounds."""

    column: Column
    lower: str | None
    upper: str | None
    brackets: str = "[]"

    def __str__(self) -> str:
        return f"{self.column.name}:{self.brackets[0]}{self.lower or '*'} TO {self.upper or '*'}{self.brackets[1]}"

    def finds(self, row: int) -> bool:
        if self.lower is None and self.upper is None:
            return self.column.rows[row] is not None
        fold = self.column.tokenizer in ("default", "en_stem", "compact_ids")
        lower, upper = (bound and bound.lower() if fold else bound for bound in (self.lower, self.upper))
        for text in self.column.words(row):
            for word in text:
                if self.column.tokenizer == "compact_ids" and is_identifier(word):
                    continue
                if lower is not None and (word < lower or (word == lower and self.brackets[0] == "{")):
                    continue
                if upper is not None and (word > upper or (word == upper and self.brackets[1] == "}")):
                    continue
                return True
        return False


@dataclass(frozen=True)
class Present:
    column: Column

    def __str__(self) -> str:
        return f"{self.column.name}:*"

    def finds(self, row: int) -> bool:
        return self.column.rows[row] is not None


@dataclass(frozen=True)
class Both:
    parts: tuple[Any, ...]

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.parts)) + ")"

    def finds(self, row: int) -> bool:
        return all(part.finds(row) for part in self.parts)


@dataclass(frozen=True)
class Either:
    parts: tuple[Any, ...]

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.parts)) + ")"

    def finds(self, row: int) -> bool:
        return any(part.finds(row) for part in self.parts)


@dataclass(frozen=True)
class Without:
    """Rows that one query finds and another does not."""

    wanted: Any
    unwanted: Any

    def __str__(self) -> str:
        return f"(+{self.wanted} -{self.unwanted})"

    def finds(self, row: int) -> bool:
        return self.wanted.finds(row) and not self.unwanted.finds(row)


@dataclass(frozen=True)
class Neither:
    unwanted: Any

    def __str__(self) -> str:
        return f"(NOT {self.unwanted})"

    def finds(self, row: int) -> bool:
        return not self.unwanted.finds(row)


def found(query: Any, rows: int) -> list[int]:
    """The rows a query finds."""
    return [row for row in range(rows) if query.finds(row)]
