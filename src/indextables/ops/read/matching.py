"""Which splits a condition matches wholly, and which have to be opened to know.

Counting, deleting and replacing rows all begin here: a split whose statistics
prove that every row matches is never read.
"""

from __future__ import annotations

from indextables.log.snapshot import Snapshot
from indextables.model.actions import AddAction
from indextables.predicate.prune.rule import prune_table
from indextables.predicate.tree import (
    NULL,
    TRUE,
    Cast,
    Compare,
    In,
    IsNull,
    Node,
    Not,
    Unknown,
    any_of,
    columns_of,
    walk,
)
from indextables.records import dataclass


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """The splits that may hold a matching row, as the statistics sort them."""

    whole: tuple[AddAction, ...]
    """Every row of these matches."""
    doubtful: tuple[AddAction, ...]
    """These may hold rows that match and rows that do not."""


def plan_match(snapshot: Snapshot, node: Node) -> MatchPlan:
    """Sort the splits that may hold a match by whether all their rows must match."""
    files = snapshot.plan(node).files
    survives = prune_table(may_survive(node), files, snapshot.schema, snapshot.partition_columns).mask
    adds = {add.path: add for add in snapshot.adds(files.column("path").to_pylist())}
    whole: list[AddAction] = []
    doubtful: list[AddAction] = []
    for path, possible in zip(files.column("path").to_pylist(), survives.to_pylist(), strict=True):
        (doubtful if possible else whole).append(adds[path])
    return MatchPlan(tuple(whole), tuple(doubtful))


def may_survive(node: Node) -> Node:
    """A condition that is true wherever `node` is false or can be null: for the rows a delete must keep."""
    if any(_null_by_itself(part) for part in walk(node)):
        return TRUE
    columns = sorted(columns_of(node), key=lambda column: column.path)
    return any_of([Not(node), *(IsNull(column) for column in columns)])


def _null_by_itself(part: Node) -> bool:
    """Whether a part can be null for a row none of whose columns is."""
    if isinstance(part, (Compare, In)) and isinstance(part.column, Cast):
        return True
    return isinstance(part, Unknown) or part == NULL or (isinstance(part, In) and part.has_null)
