"""Combines parts of a query: all, any or none of them, and parts with a boost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from indextables.index.codec.numbers import Array
from indextables.index.query.plan import Key, OneTerm, Plan, Scored, Session, Span, conjunction_lists
from indextables.index.read.lookup import Term
from indextables.index.read.rowset import Rows, difference, everything, intersection, nothing, union
from indextables.index.read.words import Word
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
        """See Plan."""
        return not self.parts or (len(self.parts) == 1 and self.parts[0].counts_by_dictionary)

    def keys(self) -> Sequence[Key]:
        """See Plan."""
        return self._keys

    @cached_property
    def _keys(self) -> Sequence[Key]:
        return tuple(chain.from_iterable(part.keys() for part in self.parts))

    @cached_property
    def only_words(self) -> Mapping[OneTerm, float]:
        """See Plan."""
        found: dict[OneTerm, float] = {}
        for part in self.should:
            some = part.only_words
            if not some or self.must or self.must_not:
                return {}
            for term, boost in some.items():
                found[term] = found.get(term, 0.0) + boost
        return found if len({term.field for term in found}) == 1 else {}

    @cached_property
    def _all_words(self) -> Sequence[Key]:
        """The words of a query that consists only of required words and is exact."""
        words = [part.key for part in self.must if isinstance(part, OneTerm) and part.exact]
        return words if len(words) == len(self.parts) else ()

    def spans(self) -> Sequence[Span]:
        """See Plan."""
        return [span for part in self.parts for span in part.spans()]

    def terms(self) -> Sequence[Term]:
        """See Plan."""
        return [term for part in (*self.must, *self.should) for term in part.terms()]

    def wanted(self, at: Session) -> Sequence[Word]:
        """See Plan."""
        single = [at.word(key) for key in self._all_words]
        if single:
            words = [word for word in single if word is not None]
            return conjunction_lists(words) if len(words) == len(single) else ()
        single = [at.word(part.key) for part in self.must if isinstance(part, OneTerm)]
        together = [word for word in single if word is not None]
        if len(together) < len(single):
            return ()
        deciding = (*self.must, *self.must_not) if self.must else (*self.should, *self.must_not)
        words = list(conjunction_lists(together))
        for place, part in enumerate(deciding):
            if place >= len(self.must) or not isinstance(part, OneTerm):
                words += part.wanted(at)
        return words

    def count(self, at: Session) -> int:
        """See Plan."""
        if not self.must and not self.should and len(self.must_not) == 1:
            return at.index.rows - self.must_not[0].count(at)
        if len(self.parts) == 1:
            return self.parts[0].count(at)
        return self.upper(at).count

    def upper(self, at: Session) -> Rows:
        """See Plan."""
        return self._rows(at, lambda part: part.upper(at), lambda part: part.lower(at))

    def lower(self, at: Session) -> Rows:
        """See Plan."""
        return self._rows(at, lambda part: part.lower(at), lambda part: part.upper(at))

    def _rows(self, at: Session, wanted: Callable[[Plan], Rows], unwanted: Callable[[Plan], Rows]) -> Rows:
        universe = at.index.rows
        if self._all_words:
            words = [word for key in self._all_words if (word := at.word(key)) is not None]
            return intersection(words, universe) if len(words) == len(self._all_words) else nothing(universe)
        if self.must:
            if any(isinstance(part, OneTerm) and not part.count(at) for part in self.must):
                return nothing(universe)
            found = intersection([wanted(part) for part in self.must], universe)
        elif self.should:
            found = union([wanted(part) for part in self.should], universe)
        elif self.must_not:
            found = everything(universe)
        else:
            return nothing(universe)
        for part in self.must_not:
            found = difference(found, unwanted(part), universe)
        return found

    def score(self, at: Session, rows: Array) -> Scored:
        """See Plan."""
        inside = np.ones(len(rows), bool) if self.parts else np.zeros(len(rows), bool)
        scores = np.zeros(len(rows), np.float32)
        for part in self.must:
            found, worth = part.score(at, rows)
            inside &= found
            scores += worth
        either = np.zeros(len(rows), bool)
        for part in self.should:
            found, worth = part.score(at, rows)
            either |= found
            scores += worth
        if self.should and not self.must:
            inside &= either
        for part in self.must_not:
            inside &= ~part.lower(at).test(rows)
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
        """See Plan."""
        return self.part.counts_by_dictionary

    @cached_property
    def only_words(self) -> Mapping[OneTerm, float]:
        """See Plan."""
        some = self.part.only_words if self.factor > 0 else {}
        return {term: boost * self.factor for term, boost in some.items()}

    def keys(self) -> Sequence[Key]:
        """See Plan."""
        return self.part.keys()

    def spans(self) -> Sequence[Span]:
        """See Plan."""
        return self.part.spans()

    def terms(self) -> Sequence[Term]:
        """See Plan."""
        return self.part.terms()

    def wanted(self, at: Session) -> Sequence[Word]:
        """See Plan."""
        return self.part.wanted(at)

    def count(self, at: Session) -> int:
        """See Plan."""
        return self.part.count(at)

    def upper(self, at: Session) -> Rows:
        """See Plan."""
        return self.part.upper(at)

    def lower(self, at: Session) -> Rows:
        """See Plan."""
        return self.part.lower(at)

    def score(self, at: Session, rows: Array) -> Scored:
        """See Plan."""
        inside, scores = self.part.score(at, rows)
        return inside, scores * np.float32(self.factor)
