"""Which rows of a split a caller wants: those that match a query and a filter, and what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indextables.index.query.tree import Query
from indextables.records import dataclass

if TYPE_CHECKING:
    from indextables.index.read.ranking import Statistics
    from indextables.predicate.tree import Node

Keys = tuple[tuple[str, bool], ...]
"""Columns to sort by, each with whether it descends."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that match a query and a filter, in row order unless `score` or `keys` give another."""

    query: Query
    where: Node | None = None
    columns: tuple[str, ...] = ()
    limit: int | None = None
    score: bool = False
    """Whether the best rows by BM25 come first, each with its `_score`."""
    statistics: Statistics | None = None
    """The statistics of all rows that are ranked together; by default those of the split alone."""
    keys: Keys = ()
    """The order of rows; rows with equal keys keep the order of the table."""
    summed: bool = False
    """Whether the rows are summed up and not returned: `search.maxHits` does not limit them then."""
