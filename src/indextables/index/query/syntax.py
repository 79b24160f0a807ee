"""A full-text query: tantivy's syntax, read into a small tree that does not depend on any file.

    error timeout          either word          "connection reset"     the words in a row
    error AND timeout      both                 "connection reset"~3   up to three words between them
    +error -debug          with, without        conn* , "conn res"*    words that begin so
    level:error            in one column        status:[500 TO 599]    a range; {} excludes, * is open
    level: IN [a b]        any of these         level:*                a value is there
    (a OR b)^2             counts double        *                      every row

The tree is checked against the table's index settings before any file is opened.
It drives both the index and the scan of rows, with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from indextables.errors import QueryError
from indextables.index.query.tree import (
    NOTHING,
    Between,
    Boolean,
    Boosted,
    Everything,
    Exists,
    Node,
    Query,
    Words,
)
from indextables.index.query.values import address_bounds, number_text, numeric, typed_value
from indextables.index.settings import FAST, IP, JSON, STRING, IndexField, IndexSpec, is_list_of_text
from indextables.index.tokens import is_id, words_of

LONGEST_QUERY = 100_000
DEEPEST_QUERY = 200


def parse_query(
    text: str,
    spec: IndexSpec,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    time_zone: str = "UTC",
) -> Query:
    """Read a query; words without a column are looked for in `columns`, by default in all indexed ones."""
    reader = _QueryParser(text, spec, schema, time_zone)
    reader.defaults = (
        [reader.field(name)[0] for name in columns] if columns is not None else list(spec.fields)
    )
    if not spec.fields:
        raise QueryError(
            "the table has no column indexed for search; write with option "
            "indexing.typemap.<column> = text, or set it with update_properties and merge",
            query=text,
        )
    several = frozenset(name for name in spec.columns if is_list_of_text(schema.field(name).type))
    return Query(text, reader.node(_syntax(text)), spec, several)


def _syntax(text: str) -> dict[str, Any]:
    import tantivy

    if len(text) > LONGEST_QUERY:
        raise QueryError(f"the query is {len(text)} characters long; at most {LONGEST_QUERY} are read")
    # The parser is recursive and runs on the native stack.
    if text.count("(") > DEEPEST_QUERY:
        raise QueryError(f"the query has more than {DEEPEST_QUERY} opening brackets", query=text)
    try:
        found: dict[str, Any] = tantivy.parse_query(text)
    except ValueError:
        raise QueryError(f"cannot read the query {text!r}: {_problem(text)}", query=text) from None
    if found.get("type") == "bool" and not found["clauses"]:
        raise QueryError("the query is empty; '*' finds every row", query=text)
    return found


def _problem(text: str) -> str:
    import tantivy

    problems = tantivy.parse_query_lenient(text)[1]
    advice = 'put text with special characters in double quotes, for example "it\'s 12:30"'
    if not problems:
        return f"an operator lacks its operand, or a quote is not closed; {advice}"
    first = problems[0]
    if "possible invalid field" in first["message"]:
        return f"a colon after {text[: first['pos']]!r} does not follow a column name; {advice}"
    return f"{first['message']} at character {first['pos'] + 1}; {advice}"


class _QueryParser:
    def __init__(self, text: str, spec: IndexSpec, schema: pa.Schema, time_zone: str) -> None:
        self.text = text
        self.spec = spec
        self.schema = schema
        self.time_zone = time_zone
        self.defaults: list[IndexField] = []

    def bad(self, message: str) -> QueryError:
        return QueryError(f"{message} (query: {self.text!r})", query=self.text)

    def field(self, name: str) -> tuple[IndexField, str | None]:
        """The settings of a named column; for a JSON column also the path inside it."""
        name = name.replace("\\", "")
        for column, path in _readings(name):
            found = self.spec.get(column)
            if found is None:
                folded = [item for item in self.spec.fields if item.column.lower() == column.lower()]
                found = folded[0] if len(folded) == 1 else None
            if found is not None and (path is None or found.kind == JSON):
                return found, (path or "") if found.kind == JSON else None
        if name in self.schema.names:
            raise self.bad(
                f"column {name!r} is not indexed for search; set indexing.typemap.{name} (or list it in "
                "indexing.fastfields) with update_properties and merge, or filter it with where="
            )
        raise self.bad(f"there is no column {name!r}; searchable are {', '.join(self.spec.columns)}")

    def node(self, tree: dict[str, Any]) -> Node:
        kind = tree["type"]
        if kind == "bool":
            return self.boolean(tree["clauses"])
        if kind == "boost":
            return Boosted(self.node(tree["underlying"]), float(tree["boost"]))
        if kind == "literal":
            return self.literal(tree)
        if kind == "range":
            return self.between(tree)
        if kind == "set":
            return _any(
                self.words(item, value, quoted=True, path=path)
                for item, path in self.named(tree["field"])
                for value in tree["elements"]
            )
        if kind == "exists":
            return _any(Exists(item.column, path) for item, path in self.named(tree["field"]))
        if kind == "all":
            return Everything()
        raise self.bad(f"{kind} queries are not supported")

    def boolean(self, clauses: Sequence[Sequence[Any]]) -> Node:
        parts: dict[str, list[Node]] = {"must": [], "should": [], "must_not": []}
        for occur, tree in clauses:
            parts[occur or "should"].append(self.node(tree))
        return Boolean(*(tuple(parts[name]) for name in ("must", "should", "must_not")))

    def named(self, name: str | None) -> list[tuple[IndexField, str | None]]:
        if name is not None:
            return [self.field(name)]
        return [(item, "" if item.kind == JSON else None) for item in self.defaults]

    def literal(self, tree: dict[str, Any]) -> Node:
        text, quoted = tree["phrase"], tree["delimiter"] != "none"
        prefix = bool(tree["prefix"])
        if not quoted and "*" in text:
            if text.index("*") != len(text) - 1:
                raise self.bad(f"'*' may stand only at the end of a word, not as in {text!r}")
            text, prefix = text[:-1], True
        found = []
        for item, path in self.named(tree["field_name"]):
            try:
                found.append(
                    self.words(item, text, quoted=quoted, prefix=prefix, slop=tree["slop"], path=path)
                )
            except QueryError:
                # A word meant for all columns simply does not occur in one of numbers or addresses.
                if tree["field_name"] is not None or (self.defaults and len(self.defaults) == 1):
                    raise
        return _any(found)

    def words(
        self,
        item: IndexField,
        text: str,
        *,
        quoted: bool,
        path: str | None,
        prefix: bool = False,
        slop: int = 0,
    ) -> Node:
        if item.kind in (FAST, IP):
            if prefix:
                raise self.bad(f"column {item.column!r} holds values, not words: it has no prefix search")
            lower, upper = self.value_bounds(item, text)
            return Between(item.column, lower, upper)
        if prefix:
            return self.prefixed(item, text, path)
        words = tuple(words_of(item.tokenizer)(text))
        found: Node = Words(item.column, words, slop, path=path) if words else NOTHING
        if item.kind == JSON and not quoted and (number := number_text(text)) is not None:
            return _any([found, Words(item.column, (number,), path=path)])
        return found

    def prefixed(self, item: IndexField, text: str, path: str | None) -> Node:
        if item.tokenizer != "en_stem":
            words = words_of(item.tokenizer)(text)
            if words and item.tokenizer == "compact_ids" and is_id(words[-1]):
                return Words(item.column, tuple(words), path=path)
            return Words(item.column, tuple(words[:-1]), 0, words[-1], path=path) if words else NOTHING
        stems, plain = words_of("en_stem")(text), words_of("default")(text)
        return Words(item.column, tuple(stems[:-1]), 0, plain[-1], stems[-1], path) if plain else NOTHING

    def value_bounds(self, item: IndexField, text: str) -> tuple[Any, Any]:
        if item.kind == IP:
            found = address_bounds(text)
            if found is None:
                raise self.bad(f"{text!r} is neither an IP address nor a network for column {item.column!r}")
            return found
        value = self.typed(item, text)
        return value, value

    def typed(self, item: IndexField, text: str) -> Any:
        kind = self.schema.field(item.column).type
        try:
            return typed_value(text, kind, self.time_zone)
        except ValueError as bad:
            raise self.bad(f"{text!r} is not a value for column {item.column!r} of type {kind}") from bad

    def between(self, tree: dict[str, Any]) -> Node:
        found: list[Node] = []
        for item, path in self.named(tree["field"]):
            lower, upper = (tree[side].get("value") for side in ("lower", "upper"))
            if lower is None and upper is None:
                found.append(Exists(item.column, path))
                continue
            found.append(
                Between(
                    item.column,
                    *self.bounds(item, lower, upper),
                    tree["lower"]["type"] != "exclusive",
                    tree["upper"]["type"] != "exclusive",
                    path,
                )
            )
        return _any(found)

    def bounds(self, item: IndexField, lower: str | None, upper: str | None) -> tuple[Any, Any]:
        given = (lower, upper)
        if item.kind == IP:
            ends = [None if text is None else self.value_bounds(item, text) for text in given]
            return (ends[0] and ends[0][0], ends[1] and ends[1][1])
        if item.kind == FAST:
            low, high = (None if text is None else self.typed(item, text) for text in given)
            return low, high
        if item.kind == JSON:
            numbers = [None if text is None else numeric(text) for text in given]
            if all(text is None or number is not None for text, number in zip(given, numbers, strict=True)):
                return numbers[0], numbers[1]
        low, high = (None if text is None else self.one_word(item, text) for text in given)
        return low, high

    def one_word(self, item: IndexField, text: str) -> str:
        if item.kind == STRING:
            return text
        plain = "default" if item.tokenizer in ("en_stem", "compact_ids") else item.tokenizer
        words = words_of(plain)(text)
        if len(words) != 1:
            raise self.bad(f"{text!r} is not one word; a range over column {item.column!r} goes by words")
        return words[0]


def _readings(name: str) -> Iterable[tuple[str, str | None]]:
    """A name as a column, then as ever shorter columns with a path behind them."""
    yield name, None
    at = len(name)
    while (at := name.rfind(".", 0, at)) > 0:
        yield name[:at], name[at + 1 :]


def _any(nodes: Iterable[Node]) -> Node:
    parts = tuple(node for node in nodes if node != NOTHING)
    return parts[0] if len(parts) == 1 else Boolean(should=parts)
