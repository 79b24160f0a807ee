"""A query as a small tree that does not depend on any file.

It drives both the index and the scan of rows, with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from indextables.index.query.patterns import Pattern
from indextables.index.settings import IndexField, IndexSpec
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Consecutive words, with at most `slop` others between them; then a word that begins with `prefix`.

    `whole` is one more word that may take the place of the prefix. `path` is a JSON path. `kind` names one of
    several fields of the column; None is the one that queries search.
    """

    column: str
    words: tuple[str, ...]
    slop: int = 0
    prefix: str | None = None
    whole: str | None = None
    path: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Matching:
    """A word that matches a pattern."""

    column: str
    pattern: Pattern
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Between:
    """A value within bounds; None is an open end."""

    column: str
    lower: Any
    upper: Any
    include_lower: bool = True
    include_upper: bool = True
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """A value that is not null."""

    column: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Everything:
    """Every row."""


@dataclass(frozen=True, slots=True)
class Boolean:
    """All of `must`, none of `must_not`, and one of `should` unless there is a `must`."""

    must: tuple[Node, ...] = ()
    should: tuple[Node, ...] = ()
    must_not: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Boosted:
    """A part whose score is multiplied by a factor."""

    node: Node
    factor: float


Node: TypeAlias = Words | Matching | Between | Exists | Everything | Boolean | Boosted
NOTHING = Boolean()


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query: its text, its tree, and the settings of the columns it searches."""

    text: str
    node: Node
    spec: IndexSpec
    several: frozenset[str] = frozenset()
    """Columns that hold several texts per row."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Notes for the query's author."""
    compared: IndexSpec = IndexSpec()
    """Columns without a search field: their values are compared, and add nothing to a score."""
    pieces: tuple[tuple[str, Node], ...] = field(default=(), repr=False, compare=False)
    """The pieces of a plain text and their trees, all of which have to match."""
    columns: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The columns the query looks into, in table order."""

    def __post_init__(self) -> None:
        named = set(columns_of(self.node))
        columns = (column for column in (*self.spec.columns, *self.compared.columns) if column in named)
        object.__setattr__(self, "columns", tuple(dict.fromkeys(columns)))

    def field(self, column: str) -> IndexField | None:
        """How a column is searched or compared."""
        return self.compared.get(column) or self.spec.get(column)

    def fields_named(self) -> list[str]:
        """The fields that it searches, as they are shown to people: `message as text`."""
        fields = [
            self.spec.get(leaf.column, leaf.kind if isinstance(leaf, Words) else None)
            for leaf in _leaves_of(self.node)
        ]
        return list(dict.fromkeys(f"{item.column} as {item.kind}" for item in fields if item is not None))


def combine_queries(
    must: Sequence[Query] = (), should: Sequence[Query] = (), must_not: Sequence[Query] = ()
) -> Query:
    """One query of several about the same table: their trees are combined, never their texts."""
    every = (*must, *should, *must_not)
    if len(every) == 1 and not must_not:
        return every[0]
    node = Boolean(*(tuple(query.node for query in queries) for queries in (must, should, must_not)))
    signed = [
        f"{sign}({query.text})"
        for sign, queries in zip(("+", "", "-"), (must, should, must_not), strict=True)
        for query in queries
    ]
    notes = tuple(dict.fromkeys(note for query in every for note in query.notes))
    return replace(_joined(every), text=" ".join(signed), node=node, notes=notes, pieces=())


def require_any_text(query: Query, columns: Sequence[str] | None) -> Query:
    """The query, restricted to rows in which at least one of the columns (default: all indexed) is not null.

    This changes the result only of a query that excludes something or matches every row; no score changes.
    """
    if not _finds_without_words(query.node):
        return query
    names = query.spec.columns if columns is None else columns
    by_lower_name = {column.lower(): column for column in query.spec.columns}
    empty = Boolean(
        must_not=tuple(Exists(by_lower_name[name.lower()]) for name in names if name.lower() in by_lower_name)
    )
    return replace(query, node=Boolean(must=(query.node,), must_not=(empty,)))


def all_of(queries: Sequence[Query]) -> Query:
    """One query that finds the rows that all of the given ones find."""
    first = queries[0]
    if len(queries) == 1:
        return first
    text = "' and '".join(query.text for query in queries)
    node = Boolean(must=tuple(one.node for one in queries))
    return replace(_joined(queries), text=text, node=node, pieces=())


def _joined(queries: Sequence[Query]) -> Query:
    """The first query with what all of them say about columns."""
    several = frozenset[str]().union(*(query.several for query in queries))
    compared = IndexSpec(tuple(dict.fromkeys(item for query in queries for item in query.compared.fields)))
    return replace(queries[0], several=several, compared=compared)


def _finds_without_words(node: Node) -> bool:
    if isinstance(node, Boosted):
        return _finds_without_words(node.node)
    if isinstance(node, Boolean):
        if node.must:
            return all(map(_finds_without_words, node.must))
        return any(map(_finds_without_words, node.should)) if node.should else bool(node.must_not)
    return isinstance(node, Everything)


def columns_of(node: Node) -> Iterable[str]:
    """Every column a tree names."""
    return (leaf.column for leaf in _leaves_of(node))


def _leaves_of(node: Node) -> Iterable[Words | Matching | Between | Exists]:
    """Every part of a tree that looks into a column."""
    if isinstance(node, (Words, Matching, Between, Exists)):
        yield node
    elif isinstance(node, Boosted):
        yield from _leaves_of(node.node)
    elif isinstance(node, Boolean):
        for part in (*node.must, *node.should, *node.must_not):
            yield from _leaves_of(part)


def restrict_to_columns(node: Node, present: frozenset[str]) -> Node:
    """The tree with every part that searches a column that is not `present` replaced by "nothing"."""
    if isinstance(node, Boolean):
        return Boolean(
            tuple(restrict_to_columns(part, present) for part in node.must),
            tuple(restrict_to_columns(part, present) for part in node.should),
            tuple(restrict_to_columns(part, present) for part in node.must_not),
        )
    if isinstance(node, Boosted):
        return Boosted(restrict_to_columns(node.node, present), node.factor)
    if isinstance(node, Everything) or node.column in present:
        return node
    return NOTHING
