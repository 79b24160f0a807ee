"""Combines parts of a query: all, any or none of them, and parts with a boost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.index.query.plan import (
    OneTerm,
    Plan,
    Scored,
    Session,
    TermKey,
    WordBounds,
    conjunction_lists,
)
from indextables.index.read.lookup import Term
from indextables.index.read.rowset import RowSetLike, difference, everything, intersection, nothing, union
from indextables.index.read.words import WordPostings
from indextables.records import dataclass


@dataclass(frozen=True)
class Combined(Plan):
    """All of `must`, none of `must_not`, and one of `should` unless there is a `must`."""

    must: tuple[Plan, ...] = ()
    should: tuple[Plan, ...] = ()
    must_not: tuple[Plan, ...] = ()

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Optional parts change only the score of a row, never whether it matches."""
        deciding = (*self.must, *self.must_not, *(() if self.must else self.should))
        return all(part.exact for part in deciding)

    @cached_property
    def parts(self) -> tuple[Plan, ...]:
        """All parts."""
        return (*self.must, *self.should, *self.must_not)

    @cached_property
    def counts_by_dictionary(self) -> bool:  # type: ignore[override]
        return not self.parts or (len(self.parts) == 1 and self.parts[0].counts_by_dictionary)

    def keys(self) -> Sequence[TermKey]:
        return self._keys

    @cached_property
    def _keys(self) -> Sequence[TermKey]:
        return tuple(chain.from_iterable(part.keys() for part in self.parts))

    @cached_property
    def only_words(self) -> Mapping[OneTerm, float]:
        boosts: dict[OneTerm, float] = {}
        for part in self.should:
            if not part.only_words or self.must or self.must_not:
                return {}
            for term, boost in part.only_words.items():
                boosts[term] = boosts.get(term, 0.0) + boost
        return boosts if len({term.field for term in boosts}) == 1 else {}

    @cached_property
    def _all_words(self) -> Sequence[TermKey]:
        """The words of a query that consists only of required words and is exact."""
        words = [part.key for part in self.must if isinstance(part, OneTerm) and part.exact]
        return words if len(words) == len(self.parts) else ()

    def spans(self) -> Sequence[WordBounds]:
        return [span for part in self.parts for span in part.spans()]

    def terms(self) -> Sequence[Term]:
        return [term for part in (*self.must, *self.should) for term in part.terms()]

    def lists_to_read(self, session: Session) -> Sequence[WordPostings]:
        single = [session.word(key) for key in self._all_words]
        if single:
            words = [word for word in single if word is not None]
            return conjunction_lists(words) if len(words) == len(single) else ()
        single = [session.word(part.key) for part in self.must if isinstance(part, OneTerm)]
        required = [word for word in single if word is not None]
        if len(required) < len(single):
            return ()
        deciding = (*self.must, *self.must_not) if self.must else (*self.should, *self.must_not)
        words = list(conjunction_lists(required))
        for number, part in enumerate(deciding):
            if number >= len(self.must) or not isinstance(part, OneTerm):
                words += part.lists_to_read(session)
        return words

    def count(self, session: Session) -> int:
        if not self.must and not self.should and len(self.must_not) == 1:
            return session.index.rows - self.must_not[0].count(session)
        if len(self.parts) == 1:
            return self.parts[0].count(session)
        return self.candidates(session).count

    def candidates(self, session: Session) -> RowSetLike:
        return self._rows(session, lambda part: part.candidates(session), lambda part: part.certain(session))

    def certain(self, session: Session) -> RowSetLike:
        return self._rows(session, lambda part: part.certain(session), lambda part: part.candidates(session))

    def _rows(
        self, session: Session, included: Callable[[Plan], RowSetLike], excluded: Callable[[Plan], RowSetLike]
    ) -> RowSetLike:
        """Combine the rows that `included` gives for must and should, and `excluded` for must_not."""
        universe = session.index.rows
        if self._all_words:
            words = [word for key in self._all_words if (word := session.word(key)) is not None]
            return intersection(words, universe) if len(words) == len(self._all_words) else nothing(universe)
        if self.must:
            if any(isinstance(part, OneTerm) and not part.count(session) for part in self.must):
                return nothing(universe)
            rows = intersection([included(part) for part in self.must], universe)
        elif self.should:
            rows = union([included(part) for part in self.should], universe)
        elif self.must_not:
            rows = everything(universe)
        else:
            return nothing(universe)
        for part in self.must_not:
            rows = difference(rows, excluded(part), universe)
        return rows

    def score(self, session: Session, rows: Array) -> Scored:
        inside = np.ones(len(rows), bool) if self.parts else np.zeros(len(rows), bool)
        scores = np.zeros(len(rows), np.float32)
        for part in self.must:
            matches, contribution = part.score(session, rows)
            inside &= matches
            scores += contribution
        either = np.zeros(len(rows), bool)
        for part in self.should:
            matches, contribution = part.score(session, rows)
            either |= matches
            scores += contribution
        if self.should and not self.must:
            inside &= either
        for part in self.must_not:
            inside &= ~part.certain(session).test(rows)
        if not self.must and not self.should:
            scores[:] = 1
        return inside, np.where(inside, scores, np.float32(0))


@dataclass(frozen=True)
class Boost(Plan):
    """A part whose score is multiplied by a factor."""

    part: Plan
    factor: float

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Exact if the part is."""
        return self.part.exact

    @property
    def counts_by_dictionary(self) -> bool:  # type: ignore[override]
        return self.part.counts_by_dictionary

    @cached_property
    def only_words(self) -> Mapping[OneTerm, float]:
        boosts = self.part.only_words if self.factor > 0 else {}
        return {term: boost * self.factor for term, boost in boosts.items()}

    def keys(self) -> Sequence[TermKey]:
        return self.part.keys()

    def spans(self) -> Sequence[WordBounds]:
        return self.part.spans()

    def terms(self) -> Sequence[Term]:
        return self.part.terms()

    def lists_to_read(self, session: Session) -> Sequence[WordPostings]:
        return self.part.lists_to_read(session)

    def count(self, session: Session) -> int:
        return self.part.count(session)

    def candidates(self, session: Session) -> RowSetLike:
        return self.part.candidates(session)

    def certain(self, session: Session) -> RowSetLike:
        return self.part.certain(session)

    def score(self, session: Session, rows: Array) -> Scored:
        inside, scores = self.part.score(session, rows)
        return inside, scores * np.float32(self.factor)
