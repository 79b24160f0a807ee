"""A query tree as queries to the index.

The index answers most queries exactly. Where it cannot (a phrase without stored
positions, an identifier known only by its bucket, a range inside JSON) there are
two answers: rows that surely match, and rows that may. Negation swaps the two.
Rows that only may match are then checked against their text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from indextables.index.query.tree import Between, Boolean, Boosted, Everything, Exists, Node, Words
from indextables.index.settings import FAST, JSON, IndexField
from indextables.index.tokens import ID_MARK, bucket, is_id, json_mark, json_word
from indextables.split.term_patterns import between, starting

LONGEST_TERM = 65_530
"""Bytes of the longest word the index can hold."""
LONGEST_PREFIX = 200
LONGEST_BOUND = 24
"""Longer prefixes and range bounds would make automata that the index refuses."""
MOST_PHRASES = 64
"""Phrases that one with gaps, or one that ends in a prefix, is spelled out into; beyond, rows are checked."""
MARKS = "marks"
"""Hidden marks on rows: `n<field>` for a null, `v<field>` for one to be checked, `r<row>` on some rows."""
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The rows that may match and the rows that surely do; `exact` when they are the same."""

    upper: Any
    lower: Any
    exact: bool


class Compiler:
    """Turns trees into queries for one index; a column it has no field for may hold anything."""

    def __init__(
        self,
        schema: Any,
        fields: Mapping[str, tuple[str, IndexField]],
        unsure: frozenset[str],
        begins: Callable[[str, str, int], Sequence[str]],
        several: frozenset[str] = frozenset(),
    ) -> None:
        import tantivy

        self.t = tantivy
        self.make = tantivy.Query
        self.schema = schema
        self.fields = fields
        self.unsure = unsure
        self.begins = begins
        """Some of a field's terms that begin with a text, as many as are asked for."""
        self.several = several
        """Columns that hold several texts per row."""

    def without(self, columns: frozenset[str]) -> Compiler:
        """The same, with nothing known about some columns."""
        fields = {name: field for name, field in self.fields.items() if name not in columns}
        return Compiler(self.schema, fields, self.unsure, self.begins, self.several)

    def with_several(self, columns: frozenset[str]) -> Compiler:
        """The same, knowing which columns hold several texts per row."""
        return Compiler(self.schema, self.fields, self.unsure, self.begins, columns)

    def compile(self, node: Node) -> Bounds:
        """The queries of a tree."""
        if isinstance(node, Boolean):
            return self._boolean(node)
        if isinstance(node, Boosted):
            inner = self.compile(node.node)
            upper = self.make.boost_query(inner.upper, node.factor)
            return Bounds(upper, upper if inner.exact else inner.lower, inner.exact)
        if isinstance(node, Everything):
            return self._exact(self.make.all_query())
        if node.column not in self.fields:
            return self._maybe(self.make.all_query())
        name, item = self.fields[node.column]
        if isinstance(node, Exists):
            return self._exact(self._exists(node, name))
        found = self._words(node, name, item) if isinstance(node, Words) else self._between(node, name, item)
        if node.column not in self.unsure:
            return found
        upper = self._either([found.upper, self._mark("v", name)])
        return Bounds(upper, found.lower, exact=False)

    def _exact(self, query: Any) -> Bounds:
        return Bounds(query, query, exact=True)

    def _maybe(self, upper: Any, lower: Any = None) -> Bounds:
        return Bounds(upper, self.make.empty_query() if lower is None else lower, exact=False)

    def _boolean(self, node: Boolean) -> Bounds:
        if not (node.must or node.should or node.must_not):
            return self._exact(self.make.empty_query())
        must, should, must_not = (
            [self.compile(part) for part in parts] for parts in (node.must, node.should, node.must_not)
        )
        upper = self._combine(
            [part.upper for part in must], [part.upper for part in should], [part.lower for part in must_not]
        )
        # Optional parts only move the score of a row, never whether it matches.
        deciding = [*must, *must_not, *(() if must else should)]
        if all(part.exact for part in deciding):
            return self._exact(upper)
        return self._maybe(
            upper,
            self._combine(
                [part.lower for part in must],
                [part.lower for part in should],
                [part.upper for part in must_not],
            ),
        )

    def _combine(self, must: Sequence[Any], should: Sequence[Any], must_not: Sequence[Any]) -> Any:
        occur = self.t.Occur
        clauses = [(occur.Must, query) for query in must]
        clauses += [(occur.Should, query) for query in should]
        clauses += [(occur.MustNot, query) for query in must_not]
        if not must and not should:
            clauses.append((occur.Must, self.make.all_query()))
        return self.make.boolean_query(clauses)

    def _either(self, queries: Sequence[Any]) -> Any:
        return queries[0] if len(queries) == 1 else self._combine([], queries, [])

    def _mark(self, kind: str, name: str) -> Any:
        return self.make.term_query(self.schema, MARKS, kind + name, "basic")

    def _exists(self, node: Exists, name: str) -> Any:
        if node.path:
            return self.make.term_query(self.schema, name, json_mark(node.path), "basic")
        return self._combine([], [], [self._mark("n", name)])

    def _words(self, node: Words, name: str, item: IndexField) -> Bounds:
        spelled = [json_word(node.path or "", word) if item.kind == JSON else word for word in node.words]
        if any(len(word.encode()) > LONGEST_TERM for word in spelled):
            return self._maybe(self.make.all_query())
        terms = [self._term(word, name, item) for word in spelled]
        if node.prefix is not None:
            return self._prefixed(node, name, item, terms, spelled)
        if len(terms) == 1:
            return terms[0]
        every = self._combine([term.upper for term in terms], [], [])
        if item.record != "position" or not all(term.exact for term in terms):
            return self._maybe(every)
        phrase = self.make.phrase_query(self.schema, name, spelled)
        if not node.slop:
            return self._exact(phrase)
        # Texts of one row, and leaves of one document, follow each other closely enough for a gap to span.
        apart = item.kind != JSON and node.column not in self.several
        ways = list(islice(_spreads(len(spelled), node.slop), MOST_PHRASES + 1))
        if len(ways) > MOST_PHRASES:
            return self._maybe(every, phrase)
        spread = self._either(
            [self.make.phrase_query(self.schema, name, list(zip(way, spelled, strict=True))) for way in ways]
        )
        return self._exact(spread) if apart else self._maybe(spread, phrase)

    def _term(self, word: str, name: str, item: IndexField) -> Bounds:
        term = self.make.term_query(self.schema, name, word, item.record)
        if item.tokenizer != "compact_ids":
            return self._exact(term)
        if is_id(word):
            hidden = self.make.term_query(self.schema, name, bucket(word), item.record)
            return self._maybe(self._either([hidden, term]))
        return self._maybe(term) if word.startswith(ID_MARK) else self._exact(term)

    def _prefixed(
        self, node: Words, name: str, item: IndexField, terms: Sequence[Bounds], spelled: Sequence[str]
    ) -> Bounds:
        start = json_word(node.path or "", node.prefix or "") if item.kind == JSON else node.prefix or ""
        choices = [self.make.regex_query(self.schema, name, starting(start[:LONGEST_PREFIX]))]
        if node.whole is not None:
            whole = json_word(node.path or "", node.whole) if item.kind == JSON else node.whole
            choices.append(self.make.term_query(self.schema, name, whole, item.record))
        last = self._either(choices)
        if terms and item.record == "position" and all(term.exact for term in terms):
            phrases = self._spelled_out(node, name, item, spelled, start)
            if phrases is not None:
                return phrases
        if terms:
            return self._maybe(self._combine([*(term.upper for term in terms), last], [], []))
        doubtful = item.tokenizer == "compact_ids" or len(start) > LONGEST_PREFIX
        return self._maybe(last) if doubtful else self._exact(last)

    def _spelled_out(
        self, node: Words, name: str, item: IndexField, spelled: Sequence[str], start: str
    ) -> Bounds | None:
        """A phrase that ends in a prefix as one phrase for every word it may end in; None for too many."""
        if item.tokenizer == "compact_ids":
            return None
        ends = list(self.begins(name, start, MOST_PHRASES + 1))
        if len(ends) > MOST_PHRASES:
            return None
        if node.whole is not None:
            whole = json_word(node.path or "", node.whole) if item.kind == JSON else node.whole
            ends = sorted({*ends, whole})
        if not ends:
            return self._exact(self.make.empty_query())
        phrases = [self.make.phrase_query(self.schema, name, [*spelled, end]) for end in ends]
        return self._exact(self._either(phrases))

    def _between(self, node: Between, name: str, item: IndexField) -> Bounds:
        if item.kind == FAST:
            return self._exact(self._typed_range(node, name))
        if item.kind == JSON:
            # Leaves of one path may hold numbers and text; the path narrows the rows, their values decide.
            return self._maybe(self._exists(Exists(node.column, node.path), name))
        lower, upper = (None if len(end or "") > LONGEST_BOUND else end for end in (node.lower, node.upper))
        pattern = between(lower, upper, include_lower=node.include_lower, include_upper=node.include_upper)
        if pattern is None:
            return self._exact(self.make.empty_query())
        found = self.make.regex_query(self.schema, name, pattern)
        doubtful = item.tokenizer == "compact_ids" or (lower, upper) != (node.lower, node.upper)
        return self._maybe(found) if doubtful else self._exact(found)

    def _typed_range(self, node: Between, name: str) -> Any:
        lower, upper = node.lower, node.upper
        if isinstance(lower if lower is not None else upper, int):
            if (lower is not None and lower > _LARGEST) or (upper is not None and upper < -_LARGEST - 1):
                return self.make.empty_query()
            lower = None if lower is not None and lower < -_LARGEST - 1 else lower
            upper = None if upper is not None and upper > _LARGEST else upper
            kind = self.t.FieldType.Integer
            if lower is None and upper is None:
                return self._exists(Exists(node.column), name)
        else:
            kind = self.t.FieldType.Float
        return self.make.range_query(
            self.schema,
            name,
            kind,
            lower_bound=lower,
            upper_bound=upper,
            include_lower=node.include_lower,
            include_upper=node.include_upper,
        )


def _spreads(words: int, slop: int) -> Iterator[tuple[int, ...]]:
    """The places of words in order, with up to `slop` others among them, from the first on."""
    return ((0, *places) for places in combinations(range(1, words + slop), words - 1))
