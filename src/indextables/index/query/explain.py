"""Explains the score of a row: every part of the query that contributes, with its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from indextables.index.codec.lengths import LENGTHS
from indextables.index.codec.numbers import Array
from indextables.index.query.combine import Boost, Combined
from indextables.index.query.evaluate import IndexSearch
from indextables.index.query.plan import OneTerm, Plan, Session
from indextables.index.query.ranges import Phrase
from indextables.index.read.ranking import Statistics
from indextables.index.tokens import PATH_END
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one part of a query adds to the score of a row."""

    part: str
    """`word`, `phrase`, or `constant` for parts that contribute the same wherever they match."""
    column: str | None
    words: str | None
    score: float
    boost: float
    idf: float | None = None
    """Inverse document frequency; for a phrase, the sum over its words."""
    document_frequency: int | None = None
    """Rows of the table with the word; for a phrase, with its rarest word."""
    documents: int | None = None
    occurrences: int | None = None
    length: int | None = None
    """Number of words in the row, rounded as ranking does."""
    mean_length: float | None = None


def explain_score(search: IndexSearch, row: int, statistics: Statistics | None) -> list[ScorePart] | None:
    """The parts of a row's score; None when the row does not match."""
    session, plan = search.prepared(statistics)
    rows = search.stored(np.array([row], np.uint32))
    if not plan.score(session, rows)[0][0]:
        return None
    return list(_score_parts(plan, session, rows, 1.0))


def _score_parts(plan: Plan, session: Session, rows: Array, boost: float) -> Iterator[ScorePart]:
    if isinstance(plan, Boost):
        yield from _score_parts(plan.part, session, rows, boost * plan.factor)
        return
    if isinstance(plan, Combined) and (plan.must or plan.should):
        for part in (*plan.must, *plan.should):
            yield from _score_parts(part, session, rows, boost)
        return
    inside, scores = plan.score(session, rows)
    if not inside[0]:
        return
    score = float(scores[0]) * boost
    if not isinstance(plan, (OneTerm, Phrase)) or (isinstance(plan, OneTerm) and plan.constant):
        yield ScorePart("constant", None, None, score, boost)
        return
    statistics = session.statistics_for(plan.terms())
    words = plan.words if isinstance(plan, Phrase) else (plan.word,)
    yield ScorePart(
        "word" if len(words) == 1 else "phrase",
        plan.column,
        " ".join(word.decode("utf-8", "replace").rpartition(PATH_END)[2] for word in words),
        score,
        boost,
        sum(statistics.idf(term) for term in plan.terms()),
        min(statistics.frequencies.get(term, 0) for term in plan.terms()),
        statistics.rows,
        _occurrences(plan, session, rows),
        int(LENGTHS[session.index.classes(plan.field, rows)[0]]),
        statistics.mean_length(plan.column),
    )


def _occurrences(plan: OneTerm | Phrase, session: Session, rows: Array) -> int:
    if isinstance(plan, Phrase):
        phrase = plan.phrase_rows(session)
        return int(phrase.counts[phrase.rows.searchsorted(rows[0])])
    word = session.word(plan.key)
    assert word is not None
    counts = word.counts()
    return 1 if counts is None else int(counts[word.array().searchsorted(rows[0])])
