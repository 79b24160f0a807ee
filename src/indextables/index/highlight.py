"""Where a query matches inside texts: the words themselves, as the tokenizer cut them.

    highlighter = Highlighter(query, "message")
    highlighter.spans(["Connection reset by peer"])      [[(11, 16)]]  for `reset`

It goes by the same words and patterns as the search, so a stem, a wildcard or a phrase marks what
it matched. What a query excludes, and parts about other columns, mark nothing. It is for the rows
that are shown: a text is looked at character by character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from indextables.index.letters import clusters, folded, pieces_of
from indextables.index.query.tree import Between, Boolean, Boosted, Matching, Node, Query, Words
from indextables.index.settings import STRING, TEXT, IndexField
from indextables.index.tokens import Tokenizer, analyzer, cut_of, id_spans, is_id, tokenizer_of, words_of
from indextables.records import dataclass

Span = tuple[int, int]
SNIPPET_LENGTH = 150
ELLIPSIS = "\u2026"


@dataclass(frozen=True, slots=True)
class Token:
    """A word and its start and end in the text; of a pair of characters also the end of the first."""

    word: str
    start: int
    end: int
    middle: int | None = None


def tokens_at(text: str, tokenizer: str) -> list[Token]:
    """The words of a text, as `words_of` returns them, with their offsets."""
    parts = tokenizer_of(tokenizer)
    if parts.base == "raw":
        return [Token(text, 0, len(text))]
    if parts.base == "whitespace":
        return [Token(match[0], *match.span()) for match in re.finditer("[^ \t\n\r\x0c]+", text)]
    if parts.base == "compact_ids":
        tokens: list[Token] = []
        at = 0
        for start, end in id_spans(text):
            tokens += _words(text, at, start, parts)
            tokens.append(Token(text[start:end].lower(), start, end))
            at = end
        return tokens + _words(text, at, len(text), parts)
    return _words(text, 0, len(text), parts)


def _words(text: str, start: int, end: int, tokenizer: Tokenizer) -> list[Token]:
    """The words between identifiers."""
    if tokenizer.version > 1:
        return _by_letters(text[start:end], start, tokenizer)
    tokens = []
    begin = None
    for at in range(start, end + 1):
        inside = at < end and _in_word(text[at])
        if inside and begin is None:
            begin = at
        elif not inside and begin is not None:
            tokens += [Token(word, begin, at) for word in _spelled(text[begin:at], tokenizer.base)]
            begin = None
    return tokens


def _by_letters(text: str, start: int, tokenizer: Tokenizer) -> list[Token]:
    """The words by the rules of `letters`: each folded character has the place of those it was made of."""
    spelled, starts, ends = [], [], []
    for begin, end in clusters(text):
        plain = folded(text[begin:end], accents=not tokenizer.accents)
        spelled.append(plain)
        starts += [start + begin] * len(plain)
        ends += [start + end] * len(plain)
    plain_text = "".join(spelled)
    tokens = []
    for piece in pieces_of(plain_text, cut_of(tokenizer)):
        word = plain_text[piece.start : piece.end]
        if tokenizer.base == "en_stem":
            (word,) = analyzer("stems").analyze(word)
        middle = ends[piece.middle - 1] if piece.middle < piece.end else None
        tokens.append(Token(word, starts[piece.start], ends[piece.end - 1], middle))
    return tokens


@lru_cache(maxsize=65_536)
def _in_word(char: str) -> bool:
    return char.isalnum() if char.isascii() else bool(words_of("default")(char))


@lru_cache(maxsize=65_536)
def _spelled(run: str, tokenizer: str) -> tuple[str, ...]:
    return tuple(words_of(tokenizer)(run))


class Highlighter:
    """Finds the matches of a query in the texts of one column; picklable."""

    def __init__(self, query: Query, column: str) -> None:
        item = query.spec.get(column)
        if item is None or item.kind not in (TEXT, STRING):
            raise ValueError(f"column {column!r} has no words to mark")
        self.item: IndexField = item
        self.parts = tuple(_parts(query.node, column))

    def spans(self, texts: Sequence[str | None]) -> list[list[Span]]:
        """For every text the (start, end) of the words that match, ascending; empty for null."""
        tokenised = [[] if text is None else tokens_at(text, self.item.tokenizer) for text in texts]
        distinct = sorted({token.word for tokens in tokenised for token in tokens})
        marks = [_marker(part, self.item, distinct) for part in self.parts]
        spans_by_text = []
        for tokens in tokenised:
            words = [token.word for token in tokens]
            matching = sorted({at for mark in marks for at in mark(words)})
            spans_by_text.append(_joined(_span(tokens[at], self.parts) for at in matching))
        return spans_by_text


def _span(token: Token, parts: Sequence[Words | Matching | Between]) -> Span:
    """The place of a word; of a pair that was found by its first character, the place of that."""
    if token.middle is not None and not any(_names_pair(part, token.word) for part in parts):
        return token.start, token.middle
    return token.start, token.end


def _names_pair(part: Words | Matching | Between, pair: str) -> bool:
    """Whether a part asks for a pair of characters, not only for one that begins with some."""
    return not isinstance(part, Words) or pair in part.words or pair == part.prefix


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Ascending spans, those that overlap or are equal as one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _parts(node: Node, column: str) -> Iterator[Words | Matching | Between]:
    if isinstance(node, Boolean):
        for part in (*node.must, *node.should):
            yield from _parts(part, column)
    elif isinstance(node, Boosted):
        yield from _parts(node.node, column)
    elif isinstance(node, (Words, Matching, Between)) and node.column == column:
        yield node


Marker = Callable[[list[str]], Iterator[int]]
"""Which words of a text match, by their number."""


def _marker(part: Words | Matching | Between, item: IndexField, distinct: list[str]) -> Marker:
    if isinstance(part, Words) and (part.prefix is None or part.words):
        return lambda words: _phrase(words, part, _last_words(part, item, distinct))
    matching = _matching_words(part, item, distinct)
    return lambda words: (at for at, word in enumerate(words) if word in matching)


def _matching_words(
    part: Words | Matching | Between, item: IndexField, distinct: list[str]
) -> frozenset[str]:
    """The words that match a pattern, a prefix or a range."""
    if isinstance(part, Words):
        return _last_words(part, item, distinct)
    if item.compact_ids:
        distinct = [word for word in distinct if not is_id(word)]
    if isinstance(part, Matching):
        fits = part.pattern.matches(pa.array(distinct, pa.string()))
        return frozenset(word for word, inside in zip(distinct, fits, strict=True) if inside)
    return frozenset(word for word in distinct if _within(word, part))


def _within(word: str, part: Between) -> bool:
    low, high = part.lower, part.upper
    if low is not None and (word < low or (word == low and not part.include_lower)):
        return False
    return high is None or word < high or (word == high and part.include_upper)


def _last_words(part: Words, item: IndexField, distinct: list[str]) -> frozenset[str]:
    if part.prefix is None:
        return frozenset()
    ids = item.compact_ids
    return frozenset(
        word
        for word in distinct
        if (word.startswith(part.prefix) or word == part.whole) and not (ids and is_id(word))
    )


def _phrase(words: list[str], part: Words, last: frozenset[str]) -> Iterator[int]:
    """All words of every occurrence of the phrase."""
    phrase, slop = part.words, part.slop if part.prefix is None else 0
    for start, word in enumerate(words):
        if word != phrase[0]:
            continue
        numbers, at = [start], start
        end = start + len(phrase) + slop
        for other in phrase[1:]:
            at = next((k for k in range(at + 1, min(end, len(words))) if words[k] == other), -1)
            if at < 0:
                break
            numbers.append(at)
        if at < 0:
            continue
        if part.prefix is not None:
            if at + 1 >= len(words) or words[at + 1] not in last:
                continue
            numbers.append(at + 1)
        yield from numbers


def marked(text: str, spans: Sequence[Span], before: str = "<em>", after: str = "</em>") -> str:
    """The text with `before` and `after` around every span."""
    out, at = [], 0
    for start, end in spans:
        out += [text[at:start], before, text[start:end], after]
        at = end
    return "".join([*out, text[at:]])


def snippets(
    text: str,
    spans: Sequence[Span],
    count: int,
    before: str = "<em>",
    after: str = "</em>",
    *,
    length: int = SNIPPET_LENGTH,
) -> list[str]:
    """The parts of a text with the most matches: at most `count`, of limited length, in order."""
    groups: list[list[Span]] = []
    for span in spans:
        if groups and span[1] - groups[-1][0][0] <= length:
            groups[-1].append(span)
        else:
            groups.append([span])
    best = sorted(sorted(groups, key=len, reverse=True)[:count])
    texts = []
    for group in best:
        room = max(0, length - (group[-1][1] - group[0][0])) // 2
        start, end = _between_words(
            text, max(0, group[0][0] - room), min(len(text), group[-1][1] + room), group
        )
        moved = [(a - start, b - start) for a, b in group]
        piece = marked(text[start:end], moved, before, after)
        texts.append((ELLIPSIS if start else "") + piece.strip() + (ELLIPSIS if end < len(text) else ""))
    return texts


def _between_words(text: str, start: int, end: int, group: Sequence[Span]) -> tuple[int, int]:
    """The bounds of a snippet, moved inwards to word boundaries."""
    if start:
        space = re.compile(r"\s").search(text, start, group[0][0])
        start = space.end() if space else group[0][0]
    if end < len(text):
        cut = text.rfind(" ", group[-1][1], end)
        end = cut if cut > 0 else group[-1][1]
    return start, end
