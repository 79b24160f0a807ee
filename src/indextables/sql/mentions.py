"""Where a statement mentions us, found in its tokens before anything is parsed.

`column indexquery 'words'` is no SQL. Here it becomes a call of a function
with a name of its own, `__indexquery_0(column, 'words')`, which every SQL
parser accepts; ``indextables.`path` `` is found with its VERSION or TIMESTAMP
AS OF. Strings and comments that merely contain those words are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from indextables.errors import CommandError

OPERATOR = "indexquery"
_OPERATORS = (OPERATOR, "textsearch", "fieldmatch")
_CALL_FOR_ALL = "indexqueryall"
ALL_COLUMNS = "_indexall"
_HIGHLIGHT = "highlight"
SEARCH_CALL, HIGHLIGHT_CALL = "__indexquery_", "__highlight_"
_SCHEMA = "indextables"
_CLAUSES = frozenset(
    {"SELECT", "FROM", "JOIN", "WHERE", "GROUP", "ORDER", "HAVING", "ON", "USING", "WINDOW", "LATERAL",
     "QUALIFY", "VALUES", "SET", "LIMIT", "TABLE", "INTO", "CLUSTER", "DISTRIBUTE", "SORT"}
)  # fmt: skip
_TABLE_CLAUSES = frozenset({"FROM", "JOIN"})

NO_QUERY = "indexquery needs its query as a string or a parameter: message indexquery 'error AND timeout'"


@dataclass(frozen=True, slots=True)
class PathMention:
    """A table read by its path."""

    start: int
    end: int
    path: str
    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class SearchMention:
    """A search; the span is that of the whole call."""

    number: int
    start: int
    end: int
    argument: int | None = None
    """Which positional argument is its query, when it is one."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A statement with searches as calls, and where they and the paths stand in it."""

    text: str
    paths: tuple[PathMention, ...]
    searches: tuple[SearchMention, ...]
    highlights: tuple[SearchMention, ...] = ()
    """Calls of `highlight(column, 'words')`, which are ours only beside a search."""


def mark(text: str) -> Marked:
    """Find the mentions of a statement."""
    called = _searches_as_calls(text)
    tokens = tokens_of(called)
    searches = _calls(tokens, SEARCH_CALL)
    highlights = _calls(tokens, HIGHLIGHT_CALL)
    return Marked(called, tuple(_paths(called, tokens)), tuple(searches), tuple(highlights))


def quoted_paths_as_names(text: str) -> str:
    """A statement in which ``FROM 'path'``, as DuckDB writes it, is ``FROM indextables.`path` ``.

    Strings elsewhere stay as they are.
    """
    tokens = tokens_of(text)
    found = [
        token
        for before, token in pairwise(tokens)
        if before.text.upper() in _TABLE_CLAUSES and text[token.start] == "'" and "`" not in token.text
    ]
    for token in reversed(found):
        text = f"{text[: token.start]}{_SCHEMA}.`{token.text}`{text[token.end + 1 :]}"
    return text


def mark_paths(text: str) -> tuple[PathMention, ...]:
    """The tables that a statement reads by path, alone."""
    return tuple(_paths(text, tokens_of(text)))


def tokens_of(text: str) -> list[Any]:
    """The words and signs of a statement."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return list(sqlglot.tokenize(text, read="spark"))
    except SqlglotError as error:
        raise CommandError(f"the statement could not be read: {error}") from error


def _is_word(token: Any, word: str, text: str) -> bool:
    return bool(token.text.lower() == word and text[token.start] not in "'\"`")


def _searches_as_calls(text: str) -> str:
    """Every search as `__indexquery_<n>(column, query)`."""
    tokens = tokens_of(text)
    found = written_searches(text, tokens)
    edits = [
        (one.start, one.end, f"{'NOT ' if one.negated else ''}{SEARCH_CALL}{number}({one.arguments})")
        for number, one in enumerate(found)
    ]
    if found:
        edits += [
            (token.start, token.end + 1, f"{HIGHLIGHT_CALL}{number}")
            for number, token in enumerate(written_highlights(text, tokens))
        ]
    return edited(text, edits)


def edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """A text with some spans replaced."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


@dataclass(frozen=True, slots=True)
class WrittenSearch:
    """A search as its author wrote it: an operator, or a call."""

    start: int
    end: int
    column: str | None
    """The column as written; `_indexall`, with its table if it has one, for all of them."""
    query: str | None
    """The query as written; None where something is missing, of which `column` is then the rest."""
    negated: bool = False

    @property
    def arguments(self) -> str:
        """What a call is given."""
        return ", ".join(part for part in (self.column, self.query) if part is not None)


def written_searches(text: str, tokens: Sequence[Any]) -> list[WrittenSearch]:
    """Every search of a text, in its order."""
    found = []
    for at, token in enumerate(tokens):
        for_all = _is_word(token, _CALL_FOR_ALL, text)
        if not for_all and not any(_is_word(token, word, text) for word in _OPERATORS):
            continue
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        called = following is not None and following.text == "("
        if called and (for_all or not _follows_column(tokens, at, text)):
            found.append(_call(text, tokens, at, for_all=for_all))
        elif for_all or (not _is_word(token, OPERATOR, text) and not _follows_column(tokens, at, text)):
            # A name like any other.
            continue
        elif following is None:
            raise CommandError(
                "indexquery needs a query on its right: message indexquery 'error AND timeout'"
            )
        else:
            found.append(_infix(text, tokens, at))
    return found


def written_highlights(text: str, tokens: Sequence[Any]) -> list[Any]:
    """The names of the calls of `highlight`."""
    return [
        token
        for at, token in enumerate(tokens[:-1])
        if _is_word(token, _HIGHLIGHT, text)
        and tokens[at + 1].text == "("
        and not (at and tokens[at - 1].text == ".")
    ]


def _call(text: str, tokens: Sequence[Any], at: int, *, for_all: bool) -> WrittenSearch:
    end = _closing(tokens, at + 1)
    depth, comma = 0, None
    for place in range(at + 1, end):
        depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
        if tokens[place].text == "," and depth == 1:
            comma = place
    inside = text[tokens[at + 1].end + 1 : tokens[end].start].strip()
    span = (tokens[at].start, tokens[end].end + 1)
    if for_all and comma is None:
        return WrittenSearch(*span, ALL_COLUMNS, inside)
    if comma is None:
        return WrittenSearch(*span, inside, None)
    column = text[tokens[at + 1].end + 1 : tokens[comma].start].strip()
    query = text[tokens[comma].end + 1 : tokens[end].start].strip()
    return WrittenSearch(*span, ALL_COLUMNS if column == "*" else column, query)


def _infix(text: str, tokens: Sequence[Any], at: int) -> WrittenSearch:
    negated = at > 0 and _is_word(tokens[at - 1], "not", text)
    last = at - 2 if negated else at - 1
    star = last >= 0 and tokens[last].text == "*"
    first = last if star else _column_start(tokens, last, text)
    if first is None:
        raise CommandError("indexquery needs a column on its left: message indexquery 'error AND timeout'")
    column = ALL_COLUMNS if star else text[tokens[first].start : tokens[last].end + 1]
    end = _operand_end(tokens, at + 1, text)
    query = text[tokens[at + 1].start : tokens[end].end + 1]
    return WrittenSearch(tokens[first].start, tokens[end].end + 1, column, query, negated)


def _operand_end(tokens: Sequence[Any], at: int, text: str) -> int:
    """The last token of the query: a literal, `?` or `:name`."""
    if tokens[at].text == ":" and at + 1 < len(tokens):
        return at + 1
    if tokens[at].text != "?" and text[tokens[at].end] not in "'\"":
        raise CommandError(NO_QUERY)
    return at


def _follows_column(tokens: Sequence[Any], at: int, text: str) -> bool:
    if at and tokens[at - 1].text == "*":
        return True
    return _column_start(tokens, at - 1, text) is not None and not _is_word(tokens[at - 1], "not", text)


_NOT_COLUMNS = frozenset(
    {"select", "where", "and", "or", "not", "on", "when", "then", "else", "having", "case", "by", "in", "is",
     "filter", "distinct", "all", "between", "like", "qualify", "as"}
)  # fmt: skip


def _column_start(tokens: Sequence[Any], last: int, text: str) -> int | None:
    """The first token of the dotted name that ends at `last`."""
    at = last
    while at >= 0:
        token = tokens[at]
        quoted = text[token.start] == "`"
        named = quoted or (token.text.replace("_", "a").isalnum() and not token.text[0].isdigit())
        if text[token.start] in "'\"" or not named or (not quoted and token.text.lower() in _NOT_COLUMNS):
            return None
        if at == 0 or tokens[at - 1].text != ".":
            return at
        at -= 2
    return None


def _calls(tokens: Sequence[Any], name: str) -> list[SearchMention]:
    """The calls with their spans, and which of the positional arguments they take."""
    found = []
    markers = [at for at, token in enumerate(tokens) if token.text == "?"]
    for at, token in enumerate(tokens):
        if not token.text.startswith(name):
            continue
        end = _closing(tokens, at + 1)
        inside = [number for number, marker in enumerate(markers) if at < marker < end]
        number = int(token.text.removeprefix(name))
        found.append(SearchMention(number, token.start, tokens[end].end + 1, inside[-1] if inside else None))
    return sorted(found, key=lambda mention: mention.number)


def _closing(tokens: Sequence[Any], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
        if depth == 0:
            return place
    raise CommandError("a parenthesis after indexquery is not closed")


def _paths(text: str, tokens: Sequence[Any]) -> list[PathMention]:
    found: list[PathMention] = []
    clauses = [""]
    for at, token in enumerate(tokens):
        word = token.text.upper()
        if word == "(":
            clauses.append(clauses[-1] if clauses[-1] in _TABLE_CLAUSES else "")
        elif word == ")" and len(clauses) > 1:
            clauses.pop()
        elif word in _CLAUSES and text[token.start] not in "`'\"":
            clauses[-1] = word
        elif _names_path(text, tokens, at) and clauses[-1] in _TABLE_CLAUSES:
            end, version, timestamp = _as_of(text, tokens, at + 3)
            found.append(PathMention(token.start, end, tokens[at + 2].text, version, timestamp))
    return found


def _names_path(text: str, tokens: Sequence[Any], at: int) -> bool:
    if not _is_word(tokens[at], _SCHEMA, text) or at + 2 >= len(tokens):
        return False
    after = tokens[at - 1].text if at else ""
    return tokens[at + 1].text == "." and text[tokens[at + 2].start] == "`" and after != "."


def _as_of(text: str, tokens: Sequence[Any], at: int) -> tuple[int, int | None, str | None]:
    """The end of a reference with its time travel, and what that says."""
    plain = tokens[at - 1].end + 1
    words = [token.text.upper() for token in tokens[at : at + 4]]
    skipped = 1 if words[:1] == ["FOR"] else 0
    kind = words[skipped : skipped + 1]
    start = at + skipped + 1
    if kind not in (["VERSION"], ["SYSTEM_VERSION"], ["TIMESTAMP"], ["SYSTEM_TIME"]):
        return _joined_snapshot(text, tokens, at, plain)
    if [token.text.upper() for token in tokens[start : start + 2]] != ["AS", "OF"]:
        return _joined_snapshot(text, tokens, at, plain)
    return _time_travel(text, tokens, start + 2, is_version="VERSION" in kind[0])


def _joined_snapshot(
    text: str, tokens: Sequence[Any], at: int, plain: int
) -> tuple[int, int | None, str | None]:
    """The tokenizer takes VERSION AS OF and TIMESTAMP AS OF as one token when they stand together."""
    if at >= len(tokens):
        return plain, None, None
    words = " ".join(tokens[at].text.upper().split())
    if words == "FOR" and at + 1 < len(tokens):
        at += 1
        words = " ".join(tokens[at].text.upper().split())
    if words in ("VERSION AS OF", "SYSTEM_VERSION AS OF"):
        return _time_travel(text, tokens, at + 1, is_version=True)
    if words in ("TIMESTAMP AS OF", "SYSTEM_TIME AS OF"):
        return _time_travel(text, tokens, at + 1, is_version=False)
    return plain, None, None


def _time_travel(
    text: str, tokens: Sequence[Any], at: int, *, is_version: bool
) -> tuple[int, int | None, str | None]:
    if at >= len(tokens):
        raise CommandError("AS OF needs a version or a timestamp on its right")
    if is_version:
        if not tokens[at].text.isdigit():
            raise CommandError(f"VERSION AS OF needs a version number, not {tokens[at].text!r}")
        return tokens[at].end + 1, int(tokens[at].text), None
    last = at
    if at + 1 < len(tokens) and tokens[at].text.upper() in ("TIMESTAMP", "DATE"):
        last = at + 1
    elif tokens[at].text == "(":
        last = _closing(tokens, at)
    elif at + 1 < len(tokens) and tokens[at + 1].text == "(":
        last = _closing(tokens, at + 1)
    return tokens[last].end + 1, None, text[tokens[at].start : tokens[last].end + 1]
