"""Evaluates a query tree on an index; returns row numbers, counts and scores.

    search = Search(index, query)
    search.count()                  how many rows match
    search.rows()                   which, ascending
    search.best(10)                 the best by BM25, with their scores

If the index alone cannot decide, `exact` is False: then `candidates` have to be checked
against their text, and `scores` gives the scores of those that passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.index.codec.root import FieldRoot
from indextables.index.query.combine import Boost, Combined
from indextables.index.query.plan import AllRows, NotNull, OfValues, OneTerm, Plan, Session, Values
from indextables.index.query.ranges import FittingWords, InOrder, WordRange
from indextables.index.query.tree import (
    Between,
    Boolean,
    Boosted,
    Everything,
    Exists,
    Matching,
    Node,
    Query,
    Words,
)
from indextables.index.read.lookup import Index, Term
from indextables.index.read.ranking import (
    Statistics,
    WeightedWord,
    statistics_of_terms,
    top_indexes,
    weight_of,
)
from indextables.index.read.rowset import NO_ROWS
from indextables.index.read.top_k import top_rows
from indextables.index.read.words import read_lists
from indextables.index.settings import FAST, JSON, IndexField, IndexSpec
from indextables.index.tokens import ID_MARK, bucket, is_id, json_mark, json_word

_PLANS = 16
"""Number of query plans an index remembers."""
_ID_FIRST, _ID_END = ID_MARK.encode(), ID_MARK.encode() + b"\xff"


class Search:
    """One query on one index.

    `values` returns the whole column of a typed field, for ranges its bounds do not decide. Columns in
    `unknown`, like those without a field in this index, may match in any row.
    """

    def __init__(
        self,
        index: Index,
        query: Query | Node,
        *,
        values: Values | None = None,
        unknown: frozenset[str] = frozenset(),
    ) -> None:
        node = query.node if isinstance(query, Query) else query
        self.index = index
        self._plan = _plan_of(index, node, unknown, has_values=values is not None)
        self._at = Session(index, values)
        self._ready = False
        self._found: Array | None = None

    @property
    def exact(self) -> bool:
        """Whether the index alone decides."""
        return self._plan.exact

    def _prepare(self) -> None:
        """Look up every word, then read every list that is needed: at most two round trips."""
        if isinstance(self._plan, OneTerm):
            return  # It is read when it is asked for.
        if not self._ready:
            plan, at = self._plan, self._at
            keys, spans = plan.keys(), plan.spans()
            if spans or not at.recall(keys):
                at.look_up(keys, spans)
                read_lists(self.index, [(word, None) for word in plan.wanted(at)])
            self._ready = True

    def count(self) -> int:
        """How many rows match, or may match if the index is not exact."""
        plan = self._plan
        if isinstance(plan, OneTerm):
            return plan.count(self._at)
        if plan.counts_by_dictionary:
            self._at.look_up(plan.keys(), plan.spans())
            return plan.count(self._at)
        self._prepare()
        found = plan.count(self._at)
        self._at.settle()
        return found

    @property
    def _upper(self) -> Array:
        if self._found is None:
            self._prepare()
            self._found = self._plan.upper(self._at).array()
            self._at.settle()
        return self._found

    def rows(self, limit: int | None = None) -> Array:
        """The rows that match, ascending; callers must not modify the array."""
        assert self.exact, "rows that only may match are candidates"
        return self._upper if limit is None else self._upper[:limit]

    def candidates(self) -> Array:
        """The rows that may match, ascending."""
        return self._upper

    def certain(self) -> Array:
        """The rows that certainly match, ascending."""
        if self.exact:
            return self._upper
        self._prepare()
        found = self._plan.lower(self._at).array()
        self._at.settle()
        return found

    def scores(self, rows: Array, statistics: Statistics | None = None) -> Array:
        """The BM25 scores of matching rows, given in ascending order."""
        self._rank_by(statistics)
        found = self._plan.score(self._at, rows.astype(np.uint32, copy=False))[1]
        self._at.settle()
        return found

    def best(self, limit: int, statistics: Statistics | None = None) -> tuple[Array, Array]:
        """The best rows: scores and row numbers, best first, ties in row order."""
        assert self.exact, "score the candidates that passed instead"
        if limit < 1 or not self.index.rows:
            return np.zeros(0, np.float32), NO_ROWS
        self._rank_by(statistics)
        words = self._plan.only_words
        if words:
            found = self._best_of_words(words, limit)
        else:
            rows = self._plan.upper(self._at).array()
            scores = self._plan.score(self._at, rows)[1]
            at = top_indexes(scores, limit)
            found = scores[at], rows[at]
        self._at.settle()
        return found

    def prepared(self, statistics: Statistics | None) -> tuple[Session, Plan]:
        """The plan and what was read for it, to explain a score."""
        self._rank_by(statistics)
        return self._at, self._plan

    def _rank_by(self, statistics: Statistics | None) -> None:
        self._prepare()
        self._at.statistics = statistics or self._at.own_statistics(self._plan.terms())

    def _best_of_words(self, words: Mapping[OneTerm, float], limit: int) -> tuple[Array, Array]:
        statistics = self._at.known_statistics(())
        field, column = next((term.field, term.column) for term in words)
        weighted = []
        for term, boost in words.items():
            word = self._at.word((term.field, term.word))
            if word is not None:
                weighted.append(WeightedWord(word, weight_of(statistics.idf((column, term.word)), boost)))
        if not weighted:
            return np.zeros(0, np.float32), NO_ROWS
        return top_rows(self.index, field, weighted, limit, statistics.mean_length(column))


def _plan_of(index: Index, node: Node, unknown: frozenset[str], *, has_values: bool) -> Plan:
    """The plan of a tree; an index remembers those of its last queries."""
    key = node, unknown, has_values
    found: Plan | None = index.plans.get(key)
    if found is None:
        fields = index.fields if not unknown else {k: v for k, v in index.fields.items() if k not in unknown}
        found = Compiler(fields, has_values=has_values).plan(node)
        if index.cache.max_bytes:
            if len(index.plans) >= _PLANS:
                # A new dict, since other threads may be reading the old one.
                index.plans = {}
            index.plans[key] = found
    return found


def lacks_words(index: Index, node: Node) -> bool:
    """Whether no row can match because words that the query needs are not in the index."""
    if isinstance(node, Words):
        alone = (replace(node, words=(word,), slop=0, prefix=None, whole=None) for word in node.words)
        return any(Search(index, one).count() == 0 for one in alone)
    if isinstance(node, Boosted):
        return lacks_words(index, node.node)
    if isinstance(node, Boolean):
        if node.must:
            return any(lacks_words(index, part) for part in node.must)
        return bool(node.should) and all(lacks_words(index, part) for part in node.should)
    return False


def scored_terms(node: Node | Query, spec: IndexSpec) -> tuple[Term, ...]:
    """The words whose frequencies a score of the query needs, spelled as in an index with these settings."""
    fields = {item.column: (at, item, FieldRoot(blocks=0, gaps=True)) for at, item in enumerate(spec.fields)}
    plan = Compiler(fields, has_values=True).plan(node.node if isinstance(node, Query) else node)
    return tuple(dict.fromkeys(plan.terms()))


def statistics_of(index: Index, node: Node | Query) -> Statistics:
    """What one index contributes to the ranking statistics of a query."""
    return statistics_of_terms(index, scored_terms(node, index.spec))


class Compiler:
    """Turns trees into plans for fields that are known by column."""

    def __init__(self, fields: dict[str, tuple[int, IndexField, FieldRoot]], *, has_values: bool) -> None:
        self.fields = fields
        self.has_values = has_values

    def plan(self, node: Node) -> Plan:
        """The plan of a tree."""
        if isinstance(node, Boolean):
            must, should, must_not = (
                tuple(map(self.plan, parts)) for parts in (node.must, node.should, node.must_not)
            )
            return Combined(must, should, must_not)
        if isinstance(node, Boosted):
            return Boost(self.plan(node.node), node.factor)
        if isinstance(node, Everything):
            return AllRows()
        if node.column not in self.fields:
            return AllRows(exact=False)
        at, item, known = self.fields[node.column]
        if isinstance(node, Exists):
            if node.path:
                return OneTerm(at, node.column, _bytes(json_mark(node.path)), constant=True)
            return NotNull(at)
        if isinstance(node, Words):
            return self._words(node, at, item, known)
        if isinstance(node, Matching):
            return self._matching(node, at, item)
        return self._between(node, at, item, known)

    def _words(self, node: Words, at: int, item: IndexField, known: FieldRoot) -> Plan:
        spelled = [_bytes(_spelled(word, node, item)) for word in node.words]
        terms = [self._term(word, spelt, at, item) for word, spelt in zip(node.words, spelled, strict=True)]
        last = None if node.prefix is None else self._prefix(node, at, item)
        parts = [*terms, *([] if last is None else [last])]
        if len(parts) == 1:
            return parts[0]
        exact = item.record == "position" and all(part.exact for part in parts)
        if not exact:
            return _Unsure((Combined(must=tuple(parts)),))
        return InOrder(at, item.column, tuple(spelled), node.slop if last is None else 0, last, known.gaps)

    def _term(self, word: str, spelled: bytes, at: int, item: IndexField) -> Plan:
        if item.tokenizer != "compact_ids":
            return OneTerm(at, item.column, spelled)
        if is_id(word):
            return _Unsure(
                (OneTerm(at, item.column, _bytes(bucket(word))), OneTerm(at, item.column, spelled))
            )
        return OneTerm(at, item.column, spelled, exact=not word.startswith(ID_MARK))

    def _matching(self, node: Matching, at: int, item: IndexField) -> Plan:
        before = _bytes(json_word(node.path or "", "")) if item.kind == JSON else b""
        low = _bytes(_spelled(node.pattern.prefix, node, item))
        return FittingWords(at, low, _after(low), node.pattern, before, ids=item.tokenizer == "compact_ids")

    def _prefix(self, node: Words, at: int, item: IndexField) -> WordRange:
        low = _bytes(_spelled(node.prefix or "", node, item))
        whole = None if node.whole is None else _bytes(_spelled(node.whole, node, item))
        return self._range(at, item, low, _after(low), whole)

    def _range(
        self, at: int, item: IndexField, low: bytes, high: bytes | None, whole: bytes | None = None
    ) -> WordRange:
        # Buckets of identifiers are not words of the text.
        buckets = item.tokenizer == "compact_ids" and low < _ID_END and (high is None or high > _ID_FIRST)
        return WordRange(at, low, high, not buckets, whole)

    def _between(self, node: Between, at: int, item: IndexField, known: FieldRoot) -> Plan:
        if item.kind == FAST:
            inside = _within(node, known)
            return OfValues(at, node, inside, exact=inside is not None or self.has_values)
        if item.kind == JSON:
            # Values below one JSON path may be numbers or text: the path narrows the rows, their values
            # decide.
            return _Unsure((self.plan(Exists(node.column, node.path)),))
        low = b"" if node.lower is None else _bytes(node.lower) + (b"" if node.include_lower else b"\0")
        high = None if node.upper is None else _bytes(node.upper) + (b"\0" if node.include_upper else b"")
        if high is not None and high <= low:
            return Combined()
        return self._range(at, item, low, high)


class _Unsure(Combined):
    """Any of some parts, to be checked against the text."""

    exact = False

    def __init__(self, should: tuple[Plan, ...]) -> None:
        super().__init__(should=should)

    def lower(self, at: Session) -> Any:
        """See Plan."""
        return Plan.lower(self, at)


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def _spelled(word: str, node: Words | Matching, item: IndexField) -> str:
    return json_word(node.path or "", word) if item.kind == JSON else word


def _after(prefix: bytes) -> bytes | None:
    """The first text above all that begin with `prefix`; words never contain byte 255."""
    return prefix + b"\xff" if prefix else None


def _within(node: Between, known: FieldRoot) -> bool | None:
    """Whether the bounds of a column put all of its values in a range, none, or leave it open (None)."""
    if known.least is None or known.most is None:
        return False
    low, high = node.lower, node.upper
    if low is not None and (known.most < low or (known.most == low and not node.include_lower)):
        return False
    if high is not None and (known.least > high or (known.least == high and not node.include_upper)):
        return False
    covers_low = low is None or known.least > low or (known.least == low and node.include_lower)
    covers_high = high is None or known.most < high or (known.most == high and node.include_upper)
    # NaN is not covered by the bounds: what holds for them need not hold for every row.
    whole = isinstance(known.least, int) and isinstance(known.most, int)
    return True if covers_low and covers_high and whole else None


__all__ = ["Search", "lacks_words", "scored_terms", "statistics_of"]
