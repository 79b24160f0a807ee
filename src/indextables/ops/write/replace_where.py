"""Overwriting the rows for which a condition is true with other rows, in one commit.

The new rows must satisfy the condition, or a second overwrite would not find
them again. Files that hold only matching rows leave the log; files that hold
others as well are rewritten without the matching ones. When another writer gets
in first, what it added, and files of which it deleted rows, are looked into before the next attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from indextables.errors import PredicateError
from indextables.lazy import pc
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.model.fields import cast_table
from indextables.model.truncation import NOTHING_TRUNCATED, Truncated
from indextables.ops.read.matching import plan_match
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteOutcome,
    RewriteSetting,
    UniformSplit,
    delete_from,
    require_read,
)
from indextables.options import Options
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.evaluate.rows import mask, require_exact
from indextables.predicate.tree import Node
from indextables.storage.deletion_vectors import unique_id


def condition(where: Any, schema: pa.Schema, options: Options) -> Node:
    """The condition of an overwrite, exactly representable."""
    node = as_node(where, schema, options.search.time_zone)
    if node is None:
        raise PredicateError("the condition of the overwrite is empty; leave it out to replace every row")
    require_exact(node)
    return node


def checked(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, node: Node, where: Any, options: Options
) -> Iterator[pa.RecordBatch]:
    """Rows as the table holds them, refused where the condition is not true for them."""
    for batch in batches:
        rows = cast_table(batch, schema, timestamps=options.write.timestamps)
        inside = mask(node, rows, schema, options.search.time_zone)
        if not pc.all(inside, min_count=0).as_py():
            bad = pc.index(inside, False).as_py()
            raise PredicateError(
                f"the data to write has rows outside the condition {str(where)!r}, for example "
                f"{rows.slice(bad, 1).to_pylist()[0]}. Filter the data, or widen the condition."
            )
        yield rows


class MatchingRowsRemoved:
    """The live files without the matching rows, worked out once per file and kept between attempts.

    A file of which others have deleted rows meanwhile is looked into again.
    """

    def __init__(self, log: TransactionLog, node: Node, options: Options) -> None:
        self.log = log
        self.node = node
        self.options = options
        self.rewritten: list[AddAction] = []
        self.truncated = NOTHING_TRUNCATED
        """What was left out of the statistics of the rewritten files of the last version asked about."""
        self._outcomes: dict[tuple[str, str | None], UniformSplit | RewriteOutcome] = {}

    def on(self, base: Snapshot) -> tuple[list[AddAction], list[AddAction]]:
        """The files to remove from a version, and the rewritten ones to put in their place."""
        plan = plan_match(base, self.node)
        setting = RewriteSetting.of(self.log, base, drop=self.node, options=self.options)
        removed = list(plan.whole)
        rewritten: list[RewriteOutcome] = []
        for add in plan.doubtful:
            rows = add.path, unique_id(add.deletion_vector)
            outcome = self._outcomes.get(rows)
            if outcome is None:
                outcome = self._outcomes[rows] = self._look(RewriteGroup(setting, (add,)))
            if isinstance(outcome, RewriteOutcome):
                removed.append(add)
                rewritten.append(outcome)
            elif outcome.all:
                removed.append(add)
        self.truncated = Truncated.total(outcome.truncated for outcome in rewritten)
        return removed, [add for outcome in rewritten for add in outcome.adds]

    def _look(self, piece: RewriteGroup) -> UniformSplit | RewriteOutcome:
        outcome = delete_from(piece)
        if isinstance(outcome, RewriteOutcome):
            self.rewritten.extend(outcome.adds)
            require_read(outcome, "OVERWRITE")
        return outcome
