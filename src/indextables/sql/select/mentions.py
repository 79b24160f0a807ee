"""Where a statement mentions us, found in its words before anything is parsed.

`column indexquery 'words'` is no SQL. For the parser it becomes a call of a
function with a name of its own, `__indexquery_0(column, 'words')`;
``indextables.`path` ``, or ``FROM 'path'`` in DuckDB, is found with its VERSION or
TIMESTAMP AS OF. Strings and comments that merely contain those words are left
alone. The statement itself stays as it is: positions in what was parsed lead
back to positions in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from indextables.errors import CommandError
from indextables.lazy import sqlglot

SPARK, DUCKDB = "spark", "duckdb"
"""The engines whose SQL is read here."""
OPERATOR = "indexquery"
_OPERATORS = (OPERATOR, "textsearch", "fieldmatch")
_CALL_FOR_ALL = "indexqueryall"
ALL_COLUMNS = "_indexall"
_HIGHLIGHT = "highlight"
CHANGES = "table_changes"
SEARCH_CALL, HIGHLIGHT_CALL = "__indexquery_", "__highlight_"
_SCHEMA = "indextables"
_CLAUSES = frozenset(
    {"SELECT", "FROM", "JOIN", "WHERE", "GROUP", "ORDER", "HAVING", "ON", "USING", "WINDOW", "LATERAL",
     "QUALIFY", "VALUES", "SET", "LIMIT", "TABLE", "INTO", "CLUSTER", "DISTRIBUTE", "SORT"}
)  # fmt: skip
_TABLE_CLAUSES = frozenset({"FROM", "JOIN"})
_QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "("})
_NOT_COLUMNS = frozenset(
    {"select", "where", "and", "or", "not", "on", "when", "then", "else", "having", "case", "by", "in", "is",
     "filter", "distinct", "all", "between", "like", "qualify", "as"}
)  # fmt: skip
_AS_OF = re.compile(r"(?:FOR )?(VERSION|SYSTEM_VERSION|TIMESTAMP|SYSTEM_TIME) AS OF(?= |\Z)")

NO_QUERY = "indexquery needs its query as a string or a parameter: message indexquery 'error AND timeout'"


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A word or sign of a statement."""

    raw: str
    """As it is written; a string or a quoted name with its quotes."""
    value: str
    """What it means, without quotes."""
    start: int
    end: int
    is_name: bool
    """Whether it is a name in quotes."""

    @property
    def upper(self) -> str:
        """As it is written, in capitals."""
        return self.raw.upper()


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The commits whose changes are read."""

    first: int | str
    """A version, or a time as text."""
    last: int | None = None


@dataclass(frozen=True, slots=True)
class PathMention:
    """A table read by its path."""

    start: int
    end: int
    path: str
    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None
    """Of `table_changes('t', ...)`: which commits are meant."""


@dataclass(frozen=True, slots=True)
class WrittenSearch:
    """A search as its author wrote it: an operator, or a call. A highlight is one as well."""

    start: int
    end: int
    column: str | None
    """The column as written; `_indexall`, with its table if it has one, for all of them."""
    query: str | None
    """The query as written; None where something is missing, of which `column` is then the rest."""
    negated: bool = False
    argument: int | None = None
    """Which positional argument is its query, when it is one."""

    def called(self, name: str) -> str:
        """A call of a function with the same column and query."""
        arguments = ", ".join(part for part in (self.column, self.query) if part is not None)
        return f"{'NOT ' if self.negated else ''}{name}({arguments})"


@dataclass(frozen=True, slots=True)
class Marked:
    """What is ours in a statement, and a text that parsers understand."""

    text: str
    """The statement, as it was written."""
    parsable: str
    """The statement with names in place of paths, and calls in place of searches."""
    paths: tuple[PathMention, ...]
    searches: tuple[WrittenSearch, ...]
    highlights: tuple[WrittenSearch, ...]
    """Calls of `highlight(column, 'words')`; in Spark they are ours only beside a search."""
    edits: tuple[tuple[int, int, str], ...]

    def origin(self, position: int) -> int:
        """Where a character of the parsable text that was not replaced stands in the statement."""
        shift = 0
        for start, end, new in self.edits:
            if position < start + shift + len(new):
                break
            shift += len(new) - (end - start)
        return position - shift


def mark(text: str, engine: str = SPARK) -> Marked:
    """Find the mentions of a statement."""
    words = words_of(text, engine)
    searches = _with_arguments(written_searches(text, words), words)
    named = written_highlights(words) if searches or engine == DUCKDB else []
    highlights = _with_arguments([_call(text, words, at, for_all=False) for at in named], words)
    paths = _paths(text, words, engine)
    edits = [
        *((one.start, one.end, one.called(f"{SEARCH_CALL}{at}")) for at, one in enumerate(searches)),
        *((one.start, one.end, one.called(f"{HIGHLIGHT_CALL}{at}")) for at, one in enumerate(highlights)),
        *((one.start, one.end, path_name(at)) for at, one in enumerate(paths)),
    ]
    parsable = edited(text, edits)
    return Marked(text, parsable, tuple(paths), tuple(searches), tuple(highlights), tuple(sorted(edits)))


def path_name(number: int) -> str:
    """The name that stands for a path in a text to parse."""
    return f"__path_{number}"


def mark_paths(text: str) -> tuple[PathMention, ...]:
    """The tables that a statement of Spark reads by path, alone."""
    return tuple(_paths(text, words_of(text), SPARK))


def words_of(text: str, engine: str = SPARK) -> list[SqlToken]:
    """The words and signs of a statement."""
    try:
        tokens = sqlglot.tokenize(text, read=dialect_of(engine))
    except sqlglot.errors.SqlglotError as error:
        raise CommandError(f"the statement could not be read: {error}") from error
    return [
        SqlToken(
            text[token.start : token.end + 1],
            token.text,
            token.start,
            token.end + 1,
            token.token_type == sqlglot.TokenType.IDENTIFIER,
        )
        for token in tokens
    ]


@lru_cache(maxsize=2)
def dialect_of(engine: str) -> Any:
    """The SQL of an engine; that of DuckDB with names in backticks too, since paths are written so."""
    if engine != DUCKDB:
        return engine
    base: Any = sqlglot.Dialect[DUCKDB]

    class WithPaths(base):  # type: ignore[misc]
        class Tokenizer(base.Tokenizer):  # type: ignore[misc]
            IDENTIFIERS = ['"', "`"]

    return WithPaths


def edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """A text with some spans replaced."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def written_searches(text: str, words: Sequence[SqlToken]) -> list[WrittenSearch]:
    """Every search of a text, in its order."""
    searches = []
    for at, word in enumerate(words):
        name = word.raw.lower()
        for_all = name == _CALL_FOR_ALL
        if not for_all and name not in _OPERATORS:
            continue
        following = words[at + 1] if at + 1 < len(words) else None
        called = following is not None and following.raw == "("
        if called and (for_all or not _follows_column(words, at)):
            searches.append(_call(text, words, at, for_all=for_all))
        elif for_all or (name != OPERATOR and not _follows_column(words, at)):
            # A name like any other.
            continue
        elif following is None:
            raise CommandError(
                "indexquery needs a query on its right: message indexquery 'error AND timeout'"
            )
        else:
            searches.append(_infix(text, words, at))
    return searches


def written_highlights(words: Sequence[SqlToken]) -> list[int]:
    """Which words are the names of calls of `highlight`."""
    return [
        at
        for at, word in enumerate(words[:-1])
        if word.raw.lower() == _HIGHLIGHT
        and words[at + 1].raw == "("
        and not (at and words[at - 1].raw == ".")
    ]


def _with_arguments(written: Sequence[WrittenSearch], words: Sequence[SqlToken]) -> list[WrittenSearch]:
    """The searches, each with the positional argument that it takes."""
    markers = [word.start for word in words if word.raw == "?"]
    searches = []
    for one in written:
        inside = [number for number, position in enumerate(markers) if one.start <= position < one.end]
        searches.append(replace(one, argument=inside[-1]) if inside else one)
    return searches


def _call(text: str, words: Sequence[SqlToken], at: int, *, for_all: bool) -> WrittenSearch:
    end = _closing(words, at + 1)
    depth, comma = 0, None
    for at_word in range(at + 1, end):
        depth += {"(": 1, ")": -1}.get(words[at_word].raw, 0)
        if words[at_word].raw == "," and depth == 1:
            comma = at_word
    first, span = words[at + 1].end, (words[at].start, words[end].end)
    inside = text[first : words[end].start].strip()
    if comma is None:
        return WrittenSearch(*span, ALL_COLUMNS if for_all else inside, inside if for_all else None)
    column = text[first : words[comma].start].strip()
    query = text[words[comma].end : words[end].start].strip()
    return WrittenSearch(*span, ALL_COLUMNS if column == "*" else column, query)


def _infix(text: str, words: Sequence[SqlToken], at: int) -> WrittenSearch:
    negated = at > 0 and words[at - 1].upper == "NOT"
    last = at - 2 if negated else at - 1
    star = last >= 0 and words[last].raw == "*"
    first = last if star else _column_start(words, last)
    if first is None:
        raise CommandError("indexquery needs a column on its left: message indexquery 'error AND timeout'")
    column = ALL_COLUMNS if star else text[words[first].start : words[last].end]
    end = _operand_end(words, at + 1)
    query = text[words[at + 1].start : words[end].end]
    return WrittenSearch(words[first].start, words[end].end, column, query, negated)


def _operand_end(words: Sequence[SqlToken], at: int) -> int:
    """The last word of the query: a literal, `?`, `:name`, or a call, which has to be a constant."""
    follows = at + 1 < len(words)
    if words[at].raw == ":" and follows:
        return at + 1
    if follows and words[at].raw.isidentifier() and words[at + 1].raw == "(":
        return _closing(words, at + 1)
    if words[at].raw != "?" and (words[at].is_name or words[at].raw[-1] not in "'\""):
        raise CommandError(NO_QUERY)
    return at


def _follows_column(words: Sequence[SqlToken], at: int) -> bool:
    if at and words[at - 1].raw == "*":
        return True
    return _column_start(words, at - 1) is not None and words[at - 1].upper != "NOT"


def _column_start(words: Sequence[SqlToken], last: int) -> int | None:
    """The first word of the dotted name that ends at `last`."""
    at = last
    while at >= 0:
        word = words[at]
        plain = word.raw.replace("_", "a").isalnum() and not word.raw[0].isdigit()
        if not word.is_name and (not plain or word.raw.lower() in _NOT_COLUMNS):
            return None
        if at == 0 or words[at - 1].raw != ".":
            return at
        at -= 2
    return None


def _closing(words: Sequence[SqlToken], at: int) -> int:
    depth = 0
    for end in range(at, len(words)):
        depth += {"(": 1, ")": -1}.get(words[end].raw, 0)
        if depth == 0:
            return end
    raise CommandError("a parenthesis is not closed")


def _paths(text: str, words: Sequence[SqlToken], engine: str) -> list[PathMention]:
    """The tables named by path where a table may stand; FROM also stands in `extract(year FROM ...)`."""
    paths: list[PathMention] = []
    clauses, queries = [""], [True]
    for at, word in enumerate(words):
        before = words[at - 1].upper if at else ""
        if word.raw == "(":
            in_tables = clauses[-1] in _TABLE_CLAUSES
            clauses.append(clauses[-1] if in_tables else "")
            queries.append(in_tables or (at + 1 < len(words) and words[at + 1].upper in _QUERY_STARTS))
        elif word.raw == ")" and len(clauses) > 1:
            clauses.pop()
            queries.pop()
        elif word.upper in _CLAUSES and queries[-1] and before != "DISTINCT":
            clauses[-1] = word.upper
        elif clauses[-1] in _TABLE_CLAUSES and queries[-1]:
            name = _path_at(words, at, by_string=engine == DUCKDB and before in _TABLE_CLAUSES)
            if name is not None:
                paths.append(_as_of(text, words, at, name))
            elif engine == DUCKDB and _is_call_of_changes(words, at):
                paths.append(_changes_at(words, at))
    return paths


def _is_call_of_changes(words: Sequence[SqlToken], at: int) -> bool:
    called = at + 1 < len(words) and words[at + 1].raw == "("
    return called and words[at].raw.lower() == CHANGES and not (at and words[at - 1].raw == ".")


def _changes_at(words: Sequence[SqlToken], at: int) -> PathMention:
    """`table_changes('t', first)` or `table_changes('t', first, last)`: versions, or a time as first."""
    end = _closing(words, at + 1)
    arguments = [word for word in words[at + 2 : end] if word.raw != ","]
    path, *ends = [word.value for word in arguments] or [""]
    is_text = [word.raw[0] == "'" for word in arguments]
    plain = len(arguments) in (2, 3) and len(words[at + 2 : end]) == 2 * len(arguments) - 1 and is_text[0]
    if not plain or not (is_text[1] or ends[0].isdigit()) or not all(value.isdigit() for value in ends[1:]):
        raise CommandError(
            "table_changes takes a table in quotes, the first version or a time in quotes, and perhaps the "
            "last version: table_changes('events', 5, 9)"
        )
    first = ends[0] if is_text[1] else int(ends[0])
    changes = ChangeRange(first, int(ends[1]) if ends[1:] else None)
    return PathMention(words[at].start, words[end].end, path, changes=changes)


def _path_at(words: Sequence[SqlToken], at: int, *, by_string: bool) -> int | None:
    """The last word of a path that begins here: ``indextables.`path` ``, or a string."""
    if by_string and words[at].raw[0] == "'":
        return at
    if words[at].raw.lower() != _SCHEMA or at + 2 >= len(words) or (at and words[at - 1].raw == "."):
        return None
    return at + 2 if words[at + 1].raw == "." and words[at + 2].raw[0] == "`" else None


def _as_of(text: str, words: Sequence[SqlToken], first: int, last: int) -> PathMention:
    """A reference with its time travel."""
    start, path, at = words[first].start, words[last].value, last + 1
    # The tokenizer takes VERSION AS OF for one word in some dialects.
    phrase = _AS_OF.match(" ".join(" ".join(word.upper.split()) for word in words[at : at + 5]))
    if phrase is None:
        return PathMention(start, words[last].end, path)
    left = phrase[0]
    while left:
        left = left[len(" ".join(words[at].upper.split())) :].lstrip()
        at += 1
    if at >= len(words):
        raise CommandError("AS OF needs a version or a timestamp on its right")
    if "VERSION" in phrase[1]:
        number = words[at].value
        if not number.isdigit():
            raise CommandError(f"VERSION AS OF needs a version number, not {number!r}")
        return PathMention(start, words[at].end, path, version=int(number))
    end = at
    if at + 1 < len(words) and words[at].upper in ("TIMESTAMP", "DATE"):
        end = at + 1
    elif words[at].raw == "(":
        end = _closing(words, at)
    elif at + 1 < len(words) and words[at + 1].raw == "(":
        end = _closing(words, at + 1)
    return PathMention(start, words[end].end, path, timestamp=text[words[at].start : words[end].end])
