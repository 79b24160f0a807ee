"""The commit of UPDATE, MERGE and DELETE: some files leave, and their rows come back changed in others.

Rows that others append meanwhile stay as they are. A file that others have
taken out or rewritten is a conflict, and the loser can repeat its statement. A
MERGE that inserts also relies on nobody else having inserted what it looked for
in vain: a foreign commit that wrote rows in its scope by reading the table
first, another MERGE above all, is a conflict too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indextables.log.commit.changes import removals
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.model.actions import Action, AddAction
from indextables.model.stats import of_add
from indextables.predicate.tree import Node


def replace_plan(
    planned_on: Snapshot,
    operation: str,
    gone: Sequence[AddAction],
    adds: Sequence[AddAction],
    *,
    node: Node | None = None,
    inserts: bool = False,
    parameters: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> CommitPlan:
    """Replace files by others; `node` bounds the rows that a commit which `inserts` has looked for."""

    def actions(base: Snapshot) -> Sequence[Action]:
        return [*removals(base, gone), *adds]

    return CommitPlan(
        operation,
        Rule.UPSERT if inserts else Rule.DELETE,
        actions,
        sources=frozenset(add.path for add in gone),
        scope=node if inserts else None,
        read_version=planned_on.version if inserts else None,
        written_for=planned_on.metadata,
        parameters=parameters or {},
        metrics=_metrics(gone, adds) if metrics is None else metrics,
    )


def _metrics(gone: Sequence[AddAction], adds: Sequence[AddAction]) -> dict[str, int]:
    written = sum(add.num_records or 0 for add in adds)
    counts = [of_add(add, null_counts=False).num_records for add in gone]
    known = [count for count in counts if count is not None]
    read = {"numReadRows": sum(known)} if len(known) == len(gone) else {}
    return {**read, "numOutputRows": written}
