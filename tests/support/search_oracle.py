"""What a full-text query means, written a second time: tokenise in Python, match word by word.

Nothing here uses the code under test. Queries are built as small objects that
know both their text and which rows they find.
"""

from __future__ import annotations

import re
import unicodedata
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


@lru_cache(maxsize=10_000)
def _simple(text: str) -> list[str]:
    """Words by version 1, which are tantivy's."""
    import tantivy

    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    return analyzer.build().analyze(text)


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


_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")


def _runs(text: str, tokenizer: str) -> list[str | list[str]]:
    """The runs of a text by version 2: a word, or the characters of a script without spaces."""
    if tokenizer == "compact_ids@2":
        for match in _LONG.finditer(text):
            if is_identifier(match[0]):
                before, after = text[: match.start()], text[match.end() :]
                return [*_runs(before, "default@2"), match[0].lower(), *_runs(after, tokenizer)]
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if "+fold" in tokenizer:
        letters = (char for char in unicodedata.normalize("NFKD", plain) if not "\u0300" <= char <= "\u036f")
        plain = unicodedata.normalize("NFKC", "".join(letters))
    runs: list[str | list[str]] = []
    inside = False
    for char in plain:
        if unicodedata.category(char).startswith("M"):
            if inside and isinstance(runs[-1], str):
                runs[-1] += char
            elif inside:
                runs[-1][-1] += char
            continue
        if char.isalnum() and unicodedata.name(char, "").startswith(_SPACELESS):
            if inside and isinstance(runs[-1], list):
                runs[-1].append(char)
            else:
                runs.append([char])
            inside = True
        elif char.isalnum():
            if inside and isinstance(runs[-1], str):
                runs[-1] += char
            else:
                runs.append(char)
            inside = True
        else:
            inside = False
            if unicodedata.category(char) == "So":
                runs.append(char)
    return runs


def _in_pairs(runs: list[str | list[str]], *, open_end: bool = False) -> list[str]:
    """Words and overlapping pairs; with `open_end` the last run may go on."""
    words: list[str] = []
    for number, run in enumerate(runs, start=1):
        if isinstance(run, str):
            words.append(run)
        else:
            words += [one + other for one, other in zip(run, run[1:], strict=False)]
            if not (open_end and number == len(runs) and len(run) > 1):
                words.append(run[-1])
    return words


def asked_words(text: str, tokenizer: str) -> tuple[list[str], bool]:
    """The words that a query asks for, and whether the last is a single character that begins a pair."""
    if not tokenizer.endswith("@2"):
        return tokenise(text, tokenizer), False
    runs = _runs(text, tokenizer)
    return _in_pairs(runs, open_end=True), bool(runs) and isinstance(runs[-1], list) and len(runs[-1]) == 1


def tokenise(text: str, tokenizer: str) -> list[str]:
    if tokenizer.endswith("@2"):
        words = _in_pairs(_runs(text, tokenizer))
        return [_stem(word) for word in words] if tokenizer.startswith("en_stem") else words
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


def parts_of(text: str, column: Column) -> list[str]:
    """The parts of a text that count one by one: words, and runs of scripts without spaces."""
    if column.tokenizer.endswith("@2"):
        return ["".join(run) for run in _runs(text, column.tokenizer)]
    return tokenise(text, "default" if column.tokenizer == "en_stem" else column.tokenizer)


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
        plain, begins = asked_words(self.text, tokenizer.replace("en_stem", "default"))
        if not plain:
            return False
        wanted = [_stem(word) for word in plain] if "en_stem" in tokenizer else plain
        prefixed = begins or (
            self.prefix and not (tokenizer.startswith("compact_ids") and is_identifier(wanted[-1]))
        )
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
        if self.column.tokenizer.startswith("compact_ids"):
            return word.startswith(plain) and not is_identifier(word)
        return word.startswith(plain) or ("en_stem" in self.column.tokenizer and word == stem)


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
        fold = self.column.tokenizer not in ("raw", "whitespace")
        lower, upper = (bound and bound.lower() if fold else bound for bound in (self.lower, self.upper))
        for text in self.column.words(row):
            for word in text:
                if self.column.tokenizer.startswith("compact_ids") and is_identifier(word):
                    continue
                if lower is not None and (word < lower or (word == lower and self.brackets[0] == "{")):
                    continue
                if upper is not None and (word > upper or (word == upper and self.brackets[1] == "}")):
                    continue
                return True
        return False


@dataclass(frozen=True)
class Wild:
    """Any word of a shape: `?` is one character, `*` any number."""

    column: Column
    shape: str

    def __str__(self) -> str:
        return f"{self.column.name}:{self.shape}"

    def finds(self, row: int) -> bool:
        tokenizer = self.column.tokenizer
        shape = self.shape if tokenizer in ("raw", "whitespace") else self.shape.lower()
        return any(_fits(word, shape) for word in _plain_words(self.column, row))


def _fits(word: str, shape: str) -> bool:
    if not shape:
        return not word
    if shape[0] == "*":
        return any(_fits(word[cut:], shape[1:]) for cut in range(len(word) + 1))
    return bool(word) and shape[0] in ("?", word[0]) and _fits(word[1:], shape[1:])


def _plain_words(column: Column, row: int) -> list[str]:
    """The words that patterns are compared with: identifiers are none."""
    ids = column.tokenizer.startswith("compact_ids")
    return [word for text in column.words(row) for word in text if not (ids and is_identifier(word))]


@dataclass(frozen=True)
class Fuzzy:
    """Any word that is a few edits away."""

    column: Column
    word: str
    edits: int

    def __str__(self) -> str:
        return f"{self.column.name}:{self.word}~{self.edits}"

    def finds(self, row: int) -> bool:
        (wanted,) = tokenise(self.word, self.column.tokenizer)
        return any(_edits(word, wanted) <= self.edits for word in _plain_words(self.column, row))


@lru_cache(maxsize=100_000)
def _edits(one: str, other: str) -> int:
    """The least edits between two words: a letter more, less or another, or two neighbours swapped."""
    if not one or not other:
        return len(one) + len(other)
    if one[-1] == other[-1]:
        return _edits(one[:-1], other[:-1])
    fewest = 1 + min(_edits(one[:-1], other), _edits(one, other[:-1]), _edits(one[:-1], other[:-1]))
    if len(one) > 1 and len(other) > 1 and one[-1] == other[-2] and one[-2] == other[-1]:
        fewest = min(fewest, 1 + _edits(one[:-2], other[:-2]))
    return fewest


@dataclass(frozen=True)
class Expression:
    """Any word that a regular expression describes as a whole."""

    column: Column
    expression: str

    def __str__(self) -> str:
        return f"{self.column.name}:/{self.expression}/"

    def finds(self, row: int) -> bool:
        return any(re.fullmatch(self.expression, word, re.DOTALL) for word in _plain_words(self.column, row))


@dataclass(frozen=True)
class Grouped:
    """Parts of one column in a bracket behind its name."""

    column: Column
    words: tuple[str, ...]
    join: str

    def __str__(self) -> str:
        return f"{self.column.name}:({self.join.join(self.words)})"

    def finds(self, row: int) -> bool:
        parts = [Phrase(self.column, word).finds(row) for word in self.words]
        return all(parts) if "AND" in self.join or "&&" in self.join else any(parts)


@dataclass(frozen=True)
class Boosted:
    """A part that counts more; which rows match does not change."""

    part: Any

    def __str__(self) -> str:
        return f"{self.part}^2.5"

    def finds(self, row: int) -> bool:
        return self.part.finds(row)


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
    join: str = " AND "

    def __str__(self) -> str:
        return "(" + self.join.join(map(str, self.parts)) + ")"

    def finds(self, row: int) -> bool:
        return all(part.finds(row) for part in self.parts)


@dataclass(frozen=True)
class Either:
    parts: tuple[Any, ...]
    join: str = " OR "

    def __str__(self) -> str:
        return "(" + self.join.join(map(str, self.parts)) + ")"

    def finds(self, row: int) -> bool:
        return any(part.finds(row) for part in self.parts)


@dataclass(frozen=True)
class Without:
    """Rows that one query finds and another does not."""

    wanted: Any
    unwanted: Any
    form: str = "(+{} -{})"

    def __str__(self) -> str:
        return self.form.format(self.wanted, self.unwanted)

    def finds(self, row: int) -> bool:
        return self.wanted.finds(row) and not self.unwanted.finds(row)


@dataclass(frozen=True)
class Neither:
    unwanted: Any
    sign: str = "NOT "

    def __str__(self) -> str:
        return f"({self.sign}{self.unwanted})"

    def finds(self, row: int) -> bool:
        return not self.unwanted.finds(row)


def found(query: Any, rows: int) -> list[int]:
    """The rows a query finds."""
    return [row for row in range(rows) if query.finds(row)]
