"""Statements that read tables by path or search them, turned into SQL that Spark or DuckDB understands.

Three things are ours inside a query: ``indextables.`path` `` (also with
VERSION or TIMESTAMP AS OF), `column indexquery 'words'` and its function form.
The statement is parsed only to find out where they stand and what they refer
to; the result is the user's text with those places replaced and every other
character kept. The engine then reads hidden views in place of the tables; for
DuckDB every table of ours is one.

A search becomes a hidden boolean column of its table's view, NULL where the
text is NULL, so it may stand in any boolean position. Where it has to be true
for a row to count (a conjunct of WHERE or of an inner join) the view holds
only matching rows instead, and splits without a match are not read. Other
conditions that have to be true are returned with the table they are about: the
engine evaluates them itself, and the view may leave out rows for which they
are not true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from indextables.duck import database
from indextables.errors import CommandError
from indextables.lazy import exp
from indextables.model.names import find_name, quoted_name
from indextables.sql.select.mentions import (
    ALL_COLUMNS,
    DUCKDB,
    HIGHLIGHT_CALL,
    NO_QUERY,
    SEARCH_CALL,
    SPARK,
    Marked,
    PathMention,
    WrittenSearch,
    edited,
    mark,
    mark_paths,
    words_of,
    written_searches,
)
from indextables.sql.select.rewritten import Highlight, Reference, ResolvedSearch, Rewritten
from indextables.sql.select.scopes import (
    NO_SEARCH,
    SCORE,
    CannotParseError,
    best_rows_needed,
    columns_mentioned,
    compared_texts,
    conjuncts,
    is_nullable,
    is_required,
    mentions_score,
    refuse_pipes,
    required_conditions,
    scopes_of,
)

ColumnsOf = Callable[["Reference"], Collection[str] | None]
"""The columns of a reference to a whole table of IndexTables; None for any other."""
InstantOf = Callable[["Sequence[Reference]", "Reference", str, str], str | None]
"""The time in UTC of a text that is compared with a column, given all references; None to leave it alone."""

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATH_NAME = re.compile(r"__path_(\d+)")
_HIDING = {SPARK: "EXCEPT", DUCKDB: "EXCLUDE"}
"""The word with which an engine keeps columns out of `*`."""


def hidden_view(number: int) -> str:
    """The name that stands in the text for a reference."""
    return f"__indextables_{number}"


def rewrite_paths(text: str) -> Rewritten | None:
    """The statement with hidden views in place of paths, and its searches as they are; None without paths."""
    paths = mark_paths(text)
    searched = bool(written_searches(text, words_of(text)))
    if not paths and not searched:
        return None
    edits = [(item.start, item.end, hidden_view(at)) for at, item in enumerate(paths)]
    return Rewritten(edited(text, edits), _references(paths), (), frozenset(), has_searches=searched)


def _references(paths: Sequence[PathMention]) -> tuple[Reference, ...]:
    return tuple(Reference((item.path,), True, item.version, item.timestamp, item.changes) for item in paths)


def rewrite(
    text: str,
    columns_of: ColumnsOf,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    engine: str = SPARK,
    instant_of: InstantOf = lambda *_: None,
) -> Rewritten | None:
    """The statement with its searches resolved; None when nothing in it is ours.

    For Spark, a statement without a search is not parsed. One for DuckDB is, and if that fails, only paths
    are replaced: DuckDB then says what is wrong with it.
    """
    marked = mark(text, engine)
    if marked.searches or engine == DUCKDB:
        try:
            return _Analysis(marked, columns_of, args, engine).run(instant_of)
        except CannotParseError:
            if marked.searches:
                raise
    if not marked.paths:
        return None
    edits = [(item.start, item.end, hidden_view(at)) for at, item in enumerate(marked.paths)]
    return Rewritten(edited(text, edits), _references(marked.paths), (), frozenset())


class _Analysis:
    """One walk over the parsed statement: where the searches stand, and what their columns belong to."""

    def __init__(self, marked: Marked, columns_of: ColumnsOf, args: Any, engine: str) -> None:
        self._engine = engine
        self._marked = marked
        self._references = list(_references(marked.paths))
        self._columns_of = columns_of
        self._args = args
        self._used: set[int] = set()
        self._edits: list[tuple[int, int, str]] = []
        self._numbers: dict[int, int] = {}
        self._columns_by_table: dict[int, Collection[str] | None] = {}
        self._aliases: dict[int, str] = {}
        self._hidden: dict[tuple[int, str | None, str], str] = {}

    def run(self, instant_of: InstantOf) -> Rewritten:
        refuse_pipes(self._marked.parsable, self._engine)
        scopes = scopes_of(self._marked.parsable, self._engine)
        if self._engine == DUCKDB:
            self._replace_tables(scopes)
            self._replace_times(scopes, instant_of)
        searches: list[ResolvedSearch] = []
        homes: dict[int, Any] = {}
        count = 0
        for scope in scopes:
            for call in scope.find_all(exp.Anonymous):
                number = call_number(call)
                if number is not None:
                    search, home = self._search(call, scope, self._marked.searches[number])
                    search = self._scored(search, call, home)
                    count += 1
                    homes[search.reference] = home
                    if search not in searches:
                        searches.append(search)
        if count != len(self._marked.searches):
            raise CommandError("indexquery can only be used in a query that reads a table")
        self._refuse_scores(searches, scopes)
        highlights = self._highlighted(scopes, homes)
        self._hide_columns(searches, highlights, homes)
        for at, mention in enumerate(self._marked.paths):
            if at not in self._aliases:
                self._edits.append((mention.start, mention.end, hidden_view(at)))
        return Rewritten(
            edited(self._marked.text, self._edits),
            tuple(self._references),
            tuple(searches),
            frozenset(self._used),
            highlights,
            self._mentioned(scopes),
            conditions=tuple(self._conditions(scopes)),
        )

    def _mentioned(self, scopes: Sequence[Any]) -> frozenset[str] | None:
        """The columns to read; all of them where a table stands in a part that was not understood."""
        unseen = len(self._aliases) < len(self._references)
        if unseen and self._engine == DUCKDB:
            return None
        return columns_mentioned(scopes, self._marked.parsable, self._engine)

    def _replace_tables(self, scopes: Sequence[Any]) -> None:
        """Replace every table of IndexTables by a hidden view."""
        for scope in scopes:
            for _, source in scope.selected_sources.values():
                if isinstance(source, exp.Table) and self._columns(source) is not None:
                    self._alias(source, self._number(source))

    def _replace_times(self, scopes: Sequence[Any], instant_of: InstantOf) -> None:
        """Write times in UTC that the engine would read in another way than the rest of the library."""
        for scope in scopes:
            for column, literal in compared_texts(scope):
                owners = self._candidates(column, scope)
                number = self._numbers.get(id(owners[0])) if len(owners) == 1 else None
                if number is None or "start" not in literal.meta:
                    continue
                instant = instant_of(self._references, self._references[number], column.name, literal.this)
                start, end = (self._marked.origin(literal.meta[side]) for side in ("start", "end"))
                local = re.search(r"\bTIMESTAMP\s*\Z", self._marked.text[:start], re.IGNORECASE)
                cast = literal.parent.args.get("to")
                if instant is None or (cast is not None and not local and cast.this.name != "TIMESTAMPTZ"):
                    continue
                new = f"'{instant}' AT TIME ZONE 'UTC'" if local else f"'{instant}+00'"
                self._edits.append((start, end + 1, new))

    def _conditions(self, scopes: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The conditions about one table alone without which a row of it counts for nothing."""
        for scope in scopes:
            for condition in required_conditions(scope):
                columns = list(condition.find_all(exp.Column))
                owners = [self._candidates(column, scope) for column in columns]
                tables = {id(table): table for candidates in owners for table in candidates}
                if (
                    len(tables) != 1
                    or any(len(candidates) != 1 for candidates in owners)
                    or condition.find(exp.Query)
                ):
                    continue
                (table,) = tables.values()
                number = self._numbers.get(id(table))
                if number is None or not is_required(condition, table, scope):
                    continue
                if not is_nullable(condition, table, scope):
                    yield number, condition

    def _search(self, call: Any, scope: Any, mention: WrittenSearch) -> tuple[ResolvedSearch, Any]:
        column: Any = call.expressions[0] if call.expressions else None
        table, home = self._owner(column, scope)
        number = self._number(table)
        name = column.name
        required = is_required(call, table, home)
        alias = self._alias(table, number)
        query = self._query(call, mention)
        searched = None if name.lower() == ALL_COLUMNS else self._spelled(number, name)
        # The same search twice is one column: Spark must see that GROUP BY and SELECT mean the same.
        hidden = self._hidden.setdefault((number, searched, query), f"__indextables_hit_{len(self._hidden)}")
        value = "true" if required else f"{self._name(alias)}.{hidden}"
        self._edits.append((mention.start, mention.end, f"{'NOT ' if mention.negated else ''}{value}"))
        return ResolvedSearch(number, searched, query, required, "" if required else hidden), home

    def _highlighted(self, scopes: Sequence[Any], homes: dict[int, Any]) -> tuple[Highlight, ...]:
        """The calls of `highlight`, each as a column of its table's view."""
        highlights: list[Highlight] = []
        for scope in scopes:
            for call in scope.find_all(exp.Anonymous):
                at = call_number(call, HIGHLIGHT_CALL)
                if at is None:
                    continue
                mention = self._marked.highlights[at]
                column: Any = call.expressions[0] if call.expressions else None
                table, home = self._owner(column, scope)
                number = self._number(table)
                alias = self._alias(table, number)
                query = self._query(call, mention)
                homes.setdefault(number, home)
                one = Highlight(number, self._spelled(number, column.name), query, f"__indextables_mark_{at}")
                self._edits.append((mention.start, mention.end, f"{self._name(alias)}.{one.hidden}"))
                highlights.append(one)
        return tuple(highlights)

    def _scored(self, search: ResolvedSearch, call: Any, home: Any) -> ResolvedSearch:
        """The search, with a score if the statement reads `_score`, and how many best rows it needs."""
        names = self._columns_of(self._references[search.reference]) or ()
        own = any(name.lower() == SCORE for name in names)
        if own or not search.required or not mentions_score(home.expression):
            return search
        best, others = best_rows_needed(home), list(conjuncts(home.expression.args["where"]))
        beside = sum(other is not call for other in others)
        # Spark decides what stands beside a search only when it has the rows.
        best = None if beside and self._engine == SPARK else best
        return replace(search, score=True, best=best, beside=beside)

    def _refuse_scores(self, searches: Sequence[ResolvedSearch], scopes: Sequence[Any]) -> None:
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
        selected = {name.lower(): source for name, (_, source) in scope.selected_sources.items()}
        if column.table:
            source = selected.get(column.table.lower())
            if source is None:
                return []
            if isinstance(source, exp.Table) and not self._has(source, column.name):
                return []
            return [source]
        tables = [source for source in selected.values() if isinstance(source, exp.Table)]
        return [table for table in tables if self._has(table, column.name)]

    def _columns(self, table: Any) -> Collection[str] | None:
        """The columns of a table of IndexTables, unless the statement gives them other names."""
        if id(table) not in self._columns_by_table:
            renamed = table.args.get("alias") is not None and table.args["alias"].columns
            self._columns_by_table[id(table)] = None if renamed else self._columns_of(self._reference(table))
        return self._columns_by_table[id(table)]

    def _has(self, table: Any, name: str) -> bool:
        columns = self._columns(table)
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
        at = _path_number(table)
        return Reference(tuple(part.name for part in table.parts)) if at is None else self._references[at]

    def _number(self, table: Any) -> int:
        if id(table) not in self._numbers:
            at = _path_number(table)
            if at is None:
                self._references.append(self._reference(table))
                at = len(self._references) - 1
            self._numbers[id(table)] = at
        return self._numbers[id(table)]

    def _alias(self, table: Any, number: int) -> str:
        """Put the hidden view in the table's place, under the name its columns are known by."""
        if number in self._aliases:
            return self._aliases[number]
        if self._references[number].by_path:
            mention = self._marked.paths[number]
            start, end, name = mention.start, mention.end, f"__table_{number}"
        else:
            start = self._marked.origin(table.parts[0].meta["start"])
            end, name = self._marked.origin(table.parts[-1].meta["end"]) + 1, table.name
        alias: str = table.alias or name
        sampled = re.match(r"\s*TABLESAMPLE\b", self._marked.text[end:], re.IGNORECASE)
        if not table.alias and sampled and self._engine == SPARK:
            raise CommandError(
                f"give {table.name} an alias after TABLESAMPLE (...): it is searched with indexquery"
            )
        shown = "" if table.alias else f" AS {self._name(alias)}"
        self._edits.append((start, end, hidden_view(number) + shown))
        self._aliases[number] = alias
        return alias

    def _name(self, alias: str) -> str:
        """An alias as it stands in a statement."""
        if _PLAIN.fullmatch(alias):
            return alias
        return database.quoted(alias) if self._engine == DUCKDB else quoted_name(alias)

    def _query(self, call: Any, mention: WrittenSearch) -> str:
        operands: list[Any] = list(call.expressions)
        query = operands[-1] if operands[1:] and not operands[2:] else None
        if isinstance(query, exp.Literal) and query.is_string:
            return str(query.this)
        if isinstance(query, (exp.Placeholder, exp.Parameter)):
            return self._argument(query, mention)
        raise CommandError(NO_QUERY)

    def _argument(self, marker: Any, mention: WrittenSearch) -> str:
        if mention.argument is not None:
            value = self._args[mention.argument] if isinstance(self._args, Sequence) else None
            self._used.add(mention.argument)
        else:
            value = self._args.get(marker.name) if isinstance(self._args, Mapping) else None
        if not isinstance(value, str):
            raise CommandError(f"the query of indexquery has to be a string; the argument is {value!r}")
        return value

    def _hide_columns(
        self, searches: Sequence[ResolvedSearch], highlights: Sequence[Highlight], homes: Mapping[int, Any]
    ) -> None:
        """Keep the boolean columns, and scores, out of every `*` that would show them."""
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
        end = self._marked.origin(star.meta["end"]) + 1
        hiding = _HIDING[self._engine]
        listed = re.compile(rf"\s*{hiding}\s*\(", re.IGNORECASE).match(self._marked.text, end)
        if listed:
            return listed.end(), listed.end(), ", ".join(names) + ", "
        return end, end, f" {hiding} ({', '.join(names)})"


def call_number(call: Any, name: str = SEARCH_CALL) -> int | None:
    """Which search, or highlight, a call stands for; None when it is another function."""
    match = re.fullmatch(rf"{name}(\d+)", call.name)
    return int(match.group(1)) if match else None


def _path_number(table: Any) -> int | None:
    """Which path a table stands for."""
    match = _PATH_NAME.fullmatch(table.name) if len(table.parts) == 1 else None
    return int(match.group(1)) if match else None
