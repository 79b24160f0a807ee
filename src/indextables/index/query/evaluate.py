"""Evaluates a query tree on an index; returns row numbers, counts and scores.

    search = IndexSearch(index, query)
    search.count()                  how many rows match
    search.rows()                   which, ascending
    search.best(10)                 the best by BM25, with their scores

If the index alone cannot decide, `exact` is False: then the caller compares `candidates` with
their text, and `scores` gives the scores of those that match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.index.codec.root import FieldRoot
from indextables.index.query.combine import Boost, Combined
from indextables.index.query.plan import (
    AllRows,
    ColumnValues,
    ComparedRows,
    NotNull,
    OneTerm,
    Plan,
    Session,
    ValueRange,
)
from indextables.index.query.ranges import MatchingWords, Phrase, WordRange
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
from indextables.index.read.live_rows import LiveRows
from indextables.index.read.lookup import Fields, Index, Term, fields_of
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

_NONE = IndexSpec()
_PLANS = 16
"""Number of query plans an index remembers."""
_ID_FIRST, _ID_END = ID_MARK.encode(), ID_MARK.encode() + b"\xff"


class IndexSearch:
    """One query on one index.

    `values` returns the whole column of a typed field, for ranges its bounds do not decide. Columns in
    `unknown`, like those without a field in this index, may match in any row.
    """

    def __init__(
        self,
        index: Index,
        query: Query | Node,
        *,
        values: ColumnValues | None = None,
        unknown: frozenset[str] = frozenset(),
    ) -> None:
        node, compared = (query.node, query.compared) if isinstance(query, Query) else (query, _NONE)
        self.index = index
        self._live = index.live
        if self._live is not None and values is not None:
            values = _spread(index, self._live, values)
        self._plan = _plan_of(index, node, unknown, compared, has_values=values is not None)
        self._session = Session(index, values)
        self._ready = False
        self._rows: Array | None = None

    @property
    def exact(self) -> bool:
        """Whether the index alone decides."""
        return self._plan.exact

    def _prepare(self) -> None:
        """Look up every word, then read every list that is needed: at most two round trips."""
        if isinstance(self._plan, OneTerm):
            return  # It is read when its rows are needed.
        if not self._ready:
            plan, session = self._plan, self._session
            keys, spans = plan.keys(), plan.spans()
            if spans or not session.use_cached_words(keys):
                session.look_up(keys, spans)
                read_lists(self.index, [(word, None) for word in plan.lists_to_read(session)])
            self._ready = True

    def count(self) -> int:
        """How many rows match, or may match if the index is not exact."""
        plan = self._plan
        if self._live is not None:
            return len(self.candidates())
        if isinstance(plan, OneTerm):
            return plan.count(self._session)
        if plan.counts_by_dictionary:
            self._session.look_up(plan.keys(), plan.spans())
            return plan.count(self._session)
        self._prepare()
        count = plan.count(self._session)
        self._session.cache_words()
        return count

    def candidates(self) -> Array:
        """The rows that may match, ascending; callers must not modify the array."""
        if self._rows is None:
            self._prepare()
            self._rows = self._live_numbers(self._plan.candidates(self._session).array())
            self._session.cache_words()
        return self._rows

    def rows(self, limit: int | None = None) -> Array:
        """The rows that match, ascending; callers must not modify the array."""
        assert self.exact, "rows that only may match are candidates"
        return self.candidates() if limit is None else self.candidates()[:limit]

    def certain(self) -> Array:
        """The rows that certainly match, ascending."""
        if self.exact:
            return self.candidates()
        self._prepare()
        rows = self._live_numbers(self._plan.certain(self._session).array())
        self._session.cache_words()
        return rows

    def stored(self, rows: Array) -> Array:
        """The rows of the index that have these numbers among the live ones."""
        numbers = rows.astype(np.uint32, copy=False)
        return numbers if self._live is None else self._live.stored(numbers)

    def _live_numbers(self, rows: Array) -> Array:
        return rows if self._live is None else self._live.numbers(rows)

    def scores(self, rows: Array, statistics: Statistics | None = None) -> Array:
        """The BM25 scores of matching rows, given in ascending order."""
        self._rank_by(statistics)
        scores = self._plan.score(self._session, self.stored(rows))[1]
        self._session.cache_words()
        return scores

    def best(self, limit: int, statistics: Statistics | None = None) -> tuple[Array, Array]:
        """The best rows: scores and row numbers, best first, ties in row order."""
        assert self.exact, "score the candidates that passed instead"
        if limit < 1 or not self.index.rows:
            return np.zeros(0, np.float32), NO_ROWS
        if self._live is not None:
            rows = self.candidates()
            scores = self.scores(rows, statistics)
            at = top_indexes(scores, limit)
            return scores[at], rows[at]
        self._rank_by(statistics)
        words = self._plan.only_words
        if words:
            best = self._best_of_words(words, limit)
        else:
            rows = self._plan.candidates(self._session).array()
            scores = self._plan.score(self._session, rows)[1]
            at = top_indexes(scores, limit)
            best = scores[at], rows[at]
        self._session.cache_words()
        return best

    def prepared(self, statistics: Statistics | None) -> tuple[Session, Plan]:
        """The plan and what was read for it, to explain a score."""
        self._rank_by(statistics)
        return self._session, self._plan

    def _rank_by(self, statistics: Statistics | None) -> None:
        self._prepare()
        if statistics is None and self._live is not None:
            statistics = statistics_of_terms(self.index, tuple(self._plan.terms()))
        self._session.statistics = statistics or self._session.own_statistics(self._plan.terms())

    def _best_of_words(self, words: Mapping[OneTerm, float], limit: int) -> tuple[Array, Array]:
        statistics = self._session.statistics_for(())
        field, column = next((term.field, term.column) for term in words)
        weighted = []
        for term, boost in words.items():
            word = self._session.word((term.field, term.word))
            if word is not None:
                weighted.append(WeightedWord(word, weight_of(statistics.idf((column, term.word)), boost)))
        if not weighted:
            return np.zeros(0, np.float32), NO_ROWS
        return top_rows(self.index, field, weighted, limit, statistics.mean_length(column))


def _spread(index: Index, live: LiveRows, values: ColumnValues) -> ColumnValues:
    """Columns with a value for every row of the index, of ones that have the live rows alone."""
    return lambda column: live.spread(values(column), index.rows)


def _plan_of(
    index: Index, node: Node, unknown: frozenset[str], compared: IndexSpec, *, has_values: bool
) -> Plan:
    """The plan of a tree; an index remembers those of its last queries."""
    key = node, unknown, compared, has_values
    plan: Plan | None = index.plans.get(key)
    if plan is None:
        fields = index.fields
        if unknown:
            fields = {key: field for key, field in fields.items() if key[0] not in unknown}
        plan = Compiler(fields, compared, has_values=has_values).plan(node)
        if index.cache.max_bytes:
            if len(index.plans) >= _PLANS:
                # A new dict, since other threads may be reading the old one.
                index.plans = {}
            index.plans[key] = plan
    return plan


def lacks_words(index: Index, node: Node, compared: IndexSpec = _NONE) -> bool:
    """Whether no row can match because words that the query needs are not in the index."""
    if isinstance(node, Words) and compared.get(node.column) is None:
        alone = (replace(node, words=(word,), slop=0, prefix=None, whole=None) for word in node.words)
        return any(IndexSearch(index, one).count() == 0 for one in alone)
    if isinstance(node, Boosted):
        return lacks_words(index, node.node, compared)
    if isinstance(node, Boolean):
        if node.must:
            return any(lacks_words(index, part, compared) for part in node.must)
        return bool(node.should) and all(lacks_words(index, part, compared) for part in node.should)
    return False


def scored_terms(node: Node | Query, spec: IndexSpec) -> tuple[Term, ...]:
    """The words whose frequencies a score of the query needs, spelled as in an index with these settings."""
    fields = fields_of(spec, [FieldRoot(blocks=0, gaps=True)] * len(spec.fields))
    tree, compared = (node.node, node.compared) if isinstance(node, Query) else (node, _NONE)
    plan = Compiler(fields, compared, has_values=True).plan(tree)
    return tuple(dict.fromkeys(plan.terms()))


def statistics_of(index: Index, node: Node | Query) -> Statistics:
    """What one index contributes to the ranking statistics of a query."""
    return statistics_of_terms(index, scored_terms(node, index.spec))


class Compiler:
    """Turns trees into plans for fields, and for columns whose values are compared."""

    def __init__(
        self,
        fields: Fields,
        compared: IndexSpec = _NONE,
        *,
        has_values: bool,
    ) -> None:
        self.fields = fields
        self.compared = compared
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
        if (compared := self.compared.get(node.column)) is not None:
            return ComparedRows(node, exact=self.has_values and compared.kind != JSON)
        kind = node.kind if isinstance(node, Words) else None
        if (node.column, kind) not in self.fields:
            return AllRows(exact=False)
        field, item, root = self.fields[node.column, kind]
        if isinstance(node, Exists):
            if node.path:
                return OneTerm(field, node.column, _bytes(json_mark(node.path)), constant=True)
            return NotNull(field)
        if isinstance(node, Words):
            return self._words(node, field, item, root)
        if isinstance(node, Matching):
            return self._matching(node, field, item)
        return self._between(node, field, item, root)

    def _words(self, node: Words, field: int, item: IndexField, root: FieldRoot) -> Plan:
        spelled = [_bytes(_spelled(word, node, item)) for word in node.words]
        terms = [self._term(word, text, field, item) for word, text in zip(node.words, spelled, strict=True)]
        last = None if node.prefix is None else self._prefix(node, field, item)
        parts = [*terms, *([] if last is None else [last])]
        if len(parts) == 1:
            return parts[0]
        exact = item.record == "position" and all(part.exact for part in parts)
        if not exact:
            return _Unverified((Combined(must=tuple(parts)),))
        return Phrase(field, item.column, tuple(spelled), node.slop if last is None else 0, last, root.gaps)

    def _term(self, word: str, spelled: bytes, field: int, item: IndexField) -> Plan:
        if not item.compact_ids:
            return OneTerm(field, item.column, spelled)
        if is_id(word):
            return _Unverified(
                (OneTerm(field, item.column, _bytes(bucket(word))), OneTerm(field, item.column, spelled))
            )
        return OneTerm(field, item.column, spelled, exact=not word.startswith(ID_MARK))

    def _matching(self, node: Matching, field: int, item: IndexField) -> Plan:
        before = _bytes(json_word(node.path or "", "")) if item.kind == JSON else b""
        low = _bytes(_spelled(node.pattern.prefix, node, item))
        return MatchingWords(field, low, _after(low), node.pattern, before, ids=item.compact_ids)

    def _prefix(self, node: Words, field: int, item: IndexField) -> WordRange:
        low = _bytes(_spelled(node.prefix or "", node, item))
        whole = None if node.whole is None else _bytes(_spelled(node.whole, node, item))
        return self._range(field, item, low, _after(low), whole)

    def _range(
        self, field: int, item: IndexField, low: bytes, high: bytes | None, whole: bytes | None = None
    ) -> WordRange:
        # Buckets of identifiers are not words of the text.
        buckets = item.compact_ids and low < _ID_END and (high is None or high > _ID_FIRST)
        return WordRange(field, low, high, not buckets, whole)

    def _between(self, node: Between, field: int, item: IndexField, root: FieldRoot) -> Plan:
        if item.kind == FAST:
            inside = _within(node, root)
            return ValueRange(field, node, inside, exact=inside is not None or self.has_values)
        if item.kind == JSON:
            # Values below one JSON path may be numbers or text: the path narrows the rows, their values
            # decide.
            return _Unverified((self.plan(Exists(node.column, node.path)),))
        low = b"" if node.lower is None else _bytes(node.lower) + (b"" if node.include_lower else b"\0")
        high = None if node.upper is None else _bytes(node.upper) + (b"\0" if node.include_upper else b"")
        if high is not None and high <= low:
            return Combined()
        return self._range(field, item, low, high)


class _Unverified(Combined):
    """Any of some parts, to be checked against the text."""

    exact = False

    def __init__(self, should: tuple[Plan, ...]) -> None:
        super().__init__(should=should)

    def certain(self, session: Session) -> Any:
        return Plan.certain(self, session)


def _bytes(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def _spelled(word: str, node: Words | Matching, item: IndexField) -> str:
    return json_word(node.path or "", word) if item.kind == JSON else word


def _after(prefix: bytes) -> bytes | None:
    """The first text above all that begin with `prefix`; words never contain byte 255."""
    return prefix + b"\xff" if prefix else None


def _within(node: Between, root: FieldRoot) -> bool | None:
    """Whether the bounds of a column put all of its values in a range, none, or leave it open (None)."""
    if root.least is None or root.most is None:
        return False
    low, high = node.lower, node.upper
    if low is not None and (root.most < low or (root.most == low and not node.include_lower)):
        return False
    if high is not None and (root.least > high or (root.least == high and not node.include_upper)):
        return False
    covers_low = low is None or root.least > low or (root.least == low and node.include_lower)
    covers_high = high is None or root.most < high or (root.most == high and node.include_upper)
    # NaN is not covered by the bounds: what holds for them need not hold for every row.
    whole = isinstance(root.least, int) and isinstance(root.most, int)
    return True if covers_low and covers_high and whole else None


__all__ = ["IndexSearch", "lacks_words", "scored_terms", "statistics_of"]
