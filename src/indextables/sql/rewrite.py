"""Statements that read tables by path or search them, turned into SQL that Spark understands.

Three things are ours inside a query: ``indextables.`path` `` (also with
VERSION or TIMESTAMP AS OF), `column indexquery 'words'` and its function form.
The statement is parsed only to find out where they stand and what they refer
to; the result is the user's text with those places replaced and every other
character kept. Spark then reads hidden views in place of the tables.

A search becomes a hidden boolean column of its table's view, NULL where the
text is NULL, so it may stand in any boolean position. Where it has to be true
for a row to count (a conjunct of WHERE or of an inner join) the view holds
only matching rows instead, and splits without a match are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from indextables.errors import CommandError
from indextables.model.names import find_name
from indextables.sql.joins import is_nullable, is_required
from indextables.sql.mentions import (
    ALL_COLUMNS,
    HIGHLIGHT_CALL,
    NO_QUERY,
    SEARCH_CALL,
    Marked,
    PathMention,
    SearchMention,
    edited,
    mark,
    mark_paths,
    tokens_of,
    written_searches,
)
from indextables.sql.scores import NO_SEARCH, SCORE, best_wanted, mentions_score

ColumnsOf = Callable[["Reference"], Collection[str] | None]
"""The columns of a reference when it is a whole table of ours, else None."""

_SEARCHES = re.compile(r"indexquery|textsearch|fieldmatch", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATHS = re.compile(r"indextables\s*\.\s*`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a statement reads a table."""

    name: tuple[str, ...]
    """The parts of the name; the path alone when it is read by path."""
    by_path: bool = False
    version: int | None = None
    timestamp: str | None = None
    """A SQL expression, as written."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search, and the reference whose rows it is about."""

    reference: int
    column: str | None
    """None searches all indexed columns."""
    query: str
    required: bool
    """Whether rows without a match can be left out of the view."""
    hidden: str
    """The boolean column of the hidden view; empty where the search is required."""
    score: bool = False
    """Whether the view has a `_score` column, which no `*` shows."""
    best: int | None = None
    """How many of the best rows are enough; None: all of them."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A text with the matches of a query marked, as a column of the hidden view that no `*` shows."""

    reference: int
    column: str
    query: str
    hidden: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A statement for Spark, over hidden views that the caller provides."""

    text: str
    references: tuple[Reference, ...]
    searches: tuple[Search, ...]
    used_arguments: frozenset[int]
    """Positional arguments that were queries and are no longer in the text."""
    highlights: tuple[Highlight, ...] = ()
    columns: frozenset[str] | None = None
    """Every column name the statement mentions, in lower case; None where a `*` means all of them."""
    has_searches: bool = False
    """Whether the text still holds searches, as their author wrote them."""


def _name(alias: str) -> str:
    """An alias as it stands in a statement: plain where it can be, since DuckDB 1.4 knows no backticks."""
    return alias if _PLAIN.fullmatch(alias) else f"`{alias}`"


def mentions_us(text: str) -> bool:
    """Whether a statement may read by path or search; a cheap first look."""
    return mentions_search(text) or _PATHS.search(text) is not None


def mentions_search(text: str) -> bool:
    """Whether a statement may search; a cheap first look."""
    return _SEARCHES.search(text) is not None


def hidden_view(number: int) -> str:
    """The name that stands in the text for a reference."""
    return f"__indextables_{number}"


def rewrite_paths(text: str) -> Rewritten | None:
    """The statement with hidden views in place of paths, and its searches as they are; None without paths."""
    found = mark_paths(text)
    searched = bool(written_searches(text, tokens_of(text)))
    if not found and not searched:
        return None
    edits = [(item.start, item.end, hidden_view(at)) for at, item in enumerate(found)]
    return Rewritten(edited(text, edits), _references(found), (), frozenset(), has_searches=searched)


def _references(paths: Sequence[PathMention]) -> tuple[Reference, ...]:
    return tuple(
        Reference((item.path,), by_path=True, version=item.version, timestamp=item.timestamp)
        for item in paths
    )


def rewrite(
    text: str,
    columns_of: ColumnsOf,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    hiding: str = "EXCEPT",
) -> Rewritten | None:
    """The statement with its searches resolved; None when nothing in it is ours.

    `hiding` is the word with which the engine keeps columns out of `*`.
    """
    marked = mark(text)
    references = list(_references(marked.paths))
    if not marked.searches:
        if not references:
            return None
        edits = [(item.start, item.end, hidden_view(at)) for at, item in enumerate(marked.paths)]
        return Rewritten(edited(marked.text, edits), tuple(references), (), frozenset())
    return _Analysis(marked, references, columns_of, args, hiding).run()


class _Analysis:
    """One walk over the parsed statement: where the searches stand, and what their columns belong to."""

    def __init__(
        self, marked: Marked, references: list[Reference], columns_of: ColumnsOf, args: Any, hiding: str
    ) -> None:
        self._hiding = hiding
        self._text = marked.text
        self._paths: Sequence[PathMention] = marked.paths
        self._mentions: Sequence[SearchMention] = marked.searches
        self._highlights: Sequence[SearchMention] = marked.highlights
        self._references = references
        self._columns_of = columns_of
        self._args = args
        self._used: set[int] = set()
        self._edits: list[tuple[int, int, str]] = []
        self._numbers: dict[int, int] = {}
        self._known: dict[int, Collection[str] | None] = {}
        self._aliases: dict[int, str] = {}
        self._hidden: dict[tuple[int, str | None, str], str] = {}

    def run(self) -> Rewritten:
        from sqlglot import exp

        scopes = self._scopes()
        searches: list[Search] = []
        homes: dict[int, Any] = {}
        found = 0
        for scope in scopes:
            for call in scope.find_all(exp.Anonymous):
                number = call_number(call)
                if number is not None:
                    search, home = self._search(call, scope, self._mentions[number])
                    search = self._scored(search, call, home)
                    found += 1
                    homes[search.reference] = home
                    if search not in searches:
                        searches.append(search)
        if found != len(self._mentions):
            raise CommandError("indexquery can only be used in a query that reads a table")
        self._refuse_scores(searches, scopes)
        highlights = self._marked(scopes, homes)
        self._hide_columns(searches, highlights, homes)
        for at, mention in enumerate(self._paths):
            if at not in self._aliases:
                self._edits.append((mention.start, mention.end, hidden_view(at)))
        return Rewritten(
            edited(self._text, self._edits),
            tuple(self._references),
            tuple(searches),
            frozenset(self._used),
            highlights,
            _columns_mentioned(scopes),
        )

    def _scopes(self) -> list[Any]:
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.optimizer.scope import traverse_scope

        # Spans of paths are blanked to a name of the same length, so that every position stays.
        text = self._text
        for at, item in enumerate(self._paths):
            text = text[: item.start] + f"`{_path_name(at, item)}`" + text[item.end :]
        try:
            parsed = sqlglot.parse_one(text, read="spark")
        except SqlglotError as error:
            raise CommandError(f"a statement with indexquery could not be analysed: {error}") from error
        if "|>" in text and any(token.text == "|>" for token in sqlglot.tokenize(text, read="spark")):
            raise CommandError("indexquery does not work in the |> syntax; write SELECT ... WHERE instead")
        queries = [parsed] if isinstance(parsed, exp.Query) else []
        if not queries:
            inner = parsed.find(exp.Query)
            queries = [inner] if inner is not None else []
        return [scope for query in queries for scope in traverse_scope(query)]

    def _search(self, call: Any, scope: Any, mention: SearchMention) -> tuple[Search, Any]:
        column: Any = call.expressions[0] if call.expressions else None
        table, home = self._owner(column, scope)
        number = self._number(table)
        name = column.name
        required = is_required(call, table, home)
        alias = self._alias(table, number)
        query = self._query(call, mention)
        wanted = None if name.lower() == ALL_COLUMNS else self._spelled(number, name)
        # The same search twice is one column: Spark must see that GROUP BY and SELECT mean the same.
        hidden = self._hidden.setdefault((number, wanted, query), f"__indextables_hit_{len(self._hidden)}")
        self._edits.append((mention.start, mention.end, "true" if required else f"{_name(alias)}.{hidden}"))
        return Search(number, wanted, query, required, "" if required else hidden), home

    def _marked(self, scopes: Sequence[Any], homes: dict[int, Any]) -> tuple[Highlight, ...]:
        """The calls of `highlight`, each as a column of its table's view."""
        from sqlglot import exp

        found: list[Highlight] = []
        for scope in scopes:
            for call in scope.find_all(exp.Anonymous):
                at = call_number(call, HIGHLIGHT_CALL)
                if at is None:
                    continue
                mention = self._highlights[at]
                column: Any = call.expressions[0] if call.expressions else None
                table, home = self._owner(column, scope)
                number = self._number(table)
                alias = self._alias(table, number)
                query = self._query(call, mention)
                homes.setdefault(number, home)
                one = Highlight(number, self._spelled(number, column.name), query, f"__indextables_mark_{at}")
                self._edits.append((mention.start, mention.end, f"{_name(alias)}.{one.hidden}"))
                found.append(one)
        return tuple(found)

    def _scored(self, search: Search, call: Any, home: Any) -> Search:
        """The search with what the statement wants of its scores."""
        names = self._columns_of(self._references[search.reference]) or ()
        own = any(name.lower() == SCORE for name in names)
        if own or not search.required or not mentions_score(home.expression):
            return search
        return replace(search, score=True, best=best_wanted(call, home))

    def _refuse_scores(self, searches: Sequence[Search], scopes: Sequence[Any]) -> None:
        """A score that belongs to no search, or to several, is an error here and not Spark's."""
        scored = [search for search in searches if search.score]
        for search in scored:
            if sum(other.reference == search.reference for other in searches) > 1:
                raise CommandError(f"{NO_SEARCH}; this statement searches the same table more than once")
        own = any(name.lower() == SCORE for one in self._references for name in self._columns_of(one) or ())
        if not scored and not own and any(mentions_score(scope.expression) for scope in scopes):
            raise CommandError(NO_SEARCH)

    def _owner(self, column: Any, scope: Any) -> tuple[Any, Any]:
        """The table node a column belongs to, and the scope that reads it."""
        from sqlglot import exp

        if not isinstance(column, exp.Column):
            shown = column.sql("spark") if column is not None else "nothing"
            raise CommandError(f"indexquery needs a column of a table on its left, not {shown}")
        home = scope
        while home is not None:
            candidates = self._candidates(column, home)
            if len(candidates) > 1:
                raise CommandError(f"column {column.sql('spark')} is ambiguous here: name its table")
            if candidates:
                table = candidates[0]
                if not isinstance(table, exp.Table):
                    break
                self._check_not_nullable(column, table, home)
                return table, home
            home = home.parent
        raise CommandError(
            f"indexquery cannot search {column.sql('spark')}: it is not a column of an IndexTables table "
            "that this query reads directly. Move the search into the sub-query or view that reads the table."
        )

    def _candidates(self, column: Any, scope: Any) -> list[Any]:
        from sqlglot import exp

        selected = {name.lower(): source for name, (_, source) in scope.selected_sources.items()}
        if column.table:
            found = selected.get(column.table.lower())
            if found is None:
                return []
            if isinstance(found, exp.Table) and not self._has(found, column.name):
                return []
            return [found]
        tables = [source for source in selected.values() if isinstance(source, exp.Table)]
        return [table for table in tables if self._has(table, column.name)]

    def _has(self, table: Any, name: str) -> bool:
        columns = self._known.get(id(table))
        if id(table) not in self._known:
            columns = self._columns_of(self._reference(table))
            self._known[id(table)] = columns
        if columns is None:
            return False
        return name.lower() == ALL_COLUMNS or find_name(columns, name) is not None

    def _spelled(self, number: int, name: str) -> str:
        columns = self._columns_of(self._references[number]) or ()
        return find_name(columns, name) or name

    def _check_not_nullable(self, column: Any, table: Any, home: Any) -> None:
        if is_nullable(column, table, home):
            raise CommandError(
                f"indexquery cannot search {column.sql('spark')}: its table is on the optional side of an "
                "outer join. Search it in a sub-query, and join the result."
            )

    def _reference(self, table: Any) -> Reference:
        at = _path_number(table.name)
        if at is not None and len(table.parts) == 1:
            return self._references[at]
        return Reference(tuple(part.name for part in table.parts))

    def _number(self, table: Any) -> int:
        if id(table) not in self._numbers:
            at = _path_number(table.name) if len(table.parts) == 1 else None
            if at is None:
                self._references.append(self._reference(table))
                at = len(self._references) - 1
            self._numbers[id(table)] = at
        return self._numbers[id(table)]

    def _alias(self, table: Any, number: int) -> str:
        """Put the hidden view in the table's place, under the name its columns are known by."""
        if number in self._aliases:
            return self._aliases[number]
        start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
        by_path = self._references[number].by_path
        alias = table.alias or (f"__table_{number}" if by_path else table.name)
        if not table.alias and self._next_word(end) == "TABLESAMPLE":
            raise CommandError(
                f"give {table.name} an alias after TABLESAMPLE (...): it is searched with indexquery"
            )
        self._edits.append((start, end, hidden_view(number) + ("" if table.alias else f" AS {_name(alias)}")))
        self._aliases[number] = alias
        return alias

    def _next_word(self, at: int) -> str:
        found = re.match(r"\s*(\w+)", self._text[at:])
        return found.group(1).upper() if found else ""

    def _query(self, call: Any, mention: SearchMention) -> str:
        from sqlglot import exp

        operands: list[Any] = list(call.expressions)
        given = operands[-1] if operands[1:] and not operands[2:] else None
        if isinstance(given, exp.Literal) and given.is_string:
            return str(given.this)
        if isinstance(given, (exp.Placeholder, exp.Parameter)):
            return self._argument(given, mention)
        raise CommandError(NO_QUERY)

    def _argument(self, marker: Any, mention: SearchMention) -> str:
        if mention.argument is not None:
            value = self._args[mention.argument] if isinstance(self._args, Sequence) else None
            self._used.add(mention.argument)
        else:
            value = self._args.get(marker.name) if isinstance(self._args, Mapping) else None
        if not isinstance(value, str):
            raise CommandError(f"the query of indexquery has to be a string; the argument is {value!r}")
        return value

    def _hide_columns(
        self, searches: Sequence[Search], highlights: Sequence[Highlight], homes: Mapping[int, Any]
    ) -> None:
        """Keep the boolean columns, and scores, out of every `*` that would show them."""
        from sqlglot import exp

        by_scope: dict[int, tuple[Any, dict[str, list[str]]]] = {}
        columns = [
            (search.reference, SCORE if search.score else search.hidden)
            for search in searches
            if not search.required or search.score
        ]
        for reference, column in (*columns, *((one.reference, one.hidden) for one in highlights)):
            scope = homes[reference]
            shown = by_scope.setdefault(id(scope), (scope, {}))[1]
            shown.setdefault(self._aliases[reference].lower(), []).append(column)
        for scope, hidden in by_scope.values():
            for star in scope.find_all(exp.Star):
                owner = star.parent.table.lower() if isinstance(star.parent, exp.Column) else None
                names = [
                    name
                    for alias, all_names in hidden.items()
                    if owner in (None, alias)
                    for name in all_names
                ]
                if names and not isinstance(star.parent, exp.Count):
                    self._edits.append(self._except(star, names))

    def _except(self, star: Any, names: Sequence[str]) -> tuple[int, int, str]:
        end = star.meta["end"] + 1
        listed = re.compile(rf"\s*{self._hiding}\s*\(", re.IGNORECASE).match(self._text, end)
        if listed:
            return listed.end(), listed.end(), ", ".join(names) + ", "
        return end, end, f" {self._hiding} ({', '.join(names)})"


def _columns_mentioned(scopes: Sequence[Any]) -> frozenset[str] | None:
    from sqlglot import exp

    names: set[str] = set()
    for scope in scopes:
        query = scope.expression
        if any(not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)):
            return None
        if any(join.args.get("method") == "NATURAL" for join in query.find_all(exp.Join)):
            return None
        # A struct's field looks like a column of a table: every part of a name counts.
        names.update(part.name.lower() for part in query.find_all(exp.Identifier))
    return frozenset(names)


def call_number(call: Any, name: str = SEARCH_CALL) -> int | None:
    """Which search, or highlight, a call stands for; None when it is another function."""
    found = re.fullmatch(rf"{name}(\d+)_*", call.name)
    return int(found.group(1)) if found else None


def _path_name(at: int, mention: PathMention) -> str:
    """A name for a path that is exactly as long as what it stands for, back quotes included."""
    return f"__path_{at}_".ljust(mention.end - mention.start - 2, "_")


def _path_number(name: str) -> int | None:
    found = re.fullmatch(r"__path_(\d+)_+", name)
    return int(found.group(1)) if found else None
