"""Which splits match a condition entirely, and which have to be opened to find out.

Counting, deleting and replacing rows all begin here: a split whose statistics prove that
every row matches is never read.
"""

from __future__ import annotations

import pyarrow as pa

from indextables.lazy import pc
from indextables.log.snapshot import AddPlan, FilePlan, Snapshot
from indextables.model import stats
from indextables.model.actions import AddAction
from indextables.predicate.prune.rule import prune_each, prune_table
from indextables.predicate.tree import (
    NULL,
    TRUE,
    Cast,
    Compare,
    Holds,
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


@dataclass(frozen=True, slots=True)
class SortedAdds:
    """The same, with how the splits were chosen."""

    plan: AddPlan
    sorted: MatchPlan


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """The same as rows of `files()`: no object is made for a split that is not opened."""

    plan: FilePlan
    whole: pa.Table
    doubtful: pa.Table


FILE_COLUMNS = frozenset(
    {"path", "num_records", "partition_values", "min", "max", "null_count", "num_deleted"}
)
"""The columns of `files()` that tell whether all rows of a file match, and how many they are."""


def live_lengths(files: pa.Table) -> pa.ChunkedArray:
    """How many rows of each file are not deleted; null where the log does not know."""
    return pc.subtract(files.column("num_records"), pc.fill_null(files.column("num_deleted"), 0))


def sort_files(snapshot: Snapshot, node: Node) -> SortedFiles:
    """Sort the files that may hold a match by whether all their rows must match."""
    plan = snapshot.plan(node, columns=FILE_COLUMNS)
    possible = prune_table(may_survive(node), plan.files, snapshot.schema, snapshot.partition_columns).mask
    return SortedFiles(plan, plan.files.filter(pc.invert(possible)), plan.files.filter(possible))


def sort_few(snapshot: Snapshot, node: Node) -> SortedAdds | None:
    """The same for a table of few files, which are looked at one by one; None for a larger one."""
    if snapshot.few_adds(node) is None:
        return None
    plan = snapshot.plan_adds(node)
    snapshot.note_filter(node, plan.metrics)
    files = [(stats.of_add(add), add.values) for add in plan.adds]
    survive, _ = prune_each(may_survive(node), files, snapshot.partition_columns)
    sides: tuple[list[AddAction], list[AddAction]] = ([], [])
    for add, doubtful in zip(plan.adds, survive, strict=True):
        sides[doubtful].append(add)
    return SortedAdds(plan, MatchPlan(tuple(sides[False]), tuple(sides[True])))


def plan_match(snapshot: Snapshot, node: Node) -> MatchPlan:
    """Sort the splits that may hold a match by whether all their rows must match."""
    few = sort_few(snapshot, node)
    if few is not None:
        return few.sorted
    files = sort_files(snapshot, node)
    doubtful = frozenset(files.doubtful.column("path").to_pylist())
    adds = snapshot.adds(files.plan.files.column("path").to_pylist())
    return MatchPlan(
        tuple(add for add in adds if add.path not in doubtful),
        tuple(add for add in adds if add.path in doubtful),
    )


def may_survive(node: Node) -> Node:
    """A condition that is true wherever `node` is false or null: it holds for the rows a delete must keep."""
    if any(_null_by_itself(part) for part in walk(node)):
        return TRUE
    columns = sorted(columns_of(node), key=lambda column: column.path)
    return any_of([Not(node), *(IsNull(column) for column in columns)])


def _null_by_itself(part: Node) -> bool:
    """Whether a part can be null for a row in which no column is null."""
    if isinstance(part, (Compare, In)) and isinstance(part.column, Cast):
        return True
    return isinstance(part, (Holds, Unknown)) or part == NULL or (isinstance(part, In) and part.has_null)
