"""DELETE FROM INDEXTABLES: remove the rows for which a condition is true, in one commit.

A split all of whose rows match, as its partition values and statistics prove,
only leaves the log. One that can hold a match is looked into, reading the
columns of the condition alone, and rewritten without the matching rows if
there are any. Rows for which the condition is null stay, as in SQL. Rows that
others append meanwhile stay too; a source that others remove is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indextables.errors import ConflictError, DamagedSplitError, PredicateError
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction
from indextables.ops.outcomes import NO_ACTION, SUCCESS, DeleteResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.read.matching import MatchPlan, plan_match
from indextables.ops.rewrite.drop_partitions import removal
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteSetting,
    Rewritten,
    discard,
    require_writable,
    rewrite,
    rows_matching,
)
from indextables.ops.table_settings import settings_of
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.tree import (
    Node,
)

OPERATION = "DELETE"


@dataclass(frozen=True, slots=True)
class Emptied:
    """A split that turned out to consist of matching rows only, or to have none; decided by looking."""

    source: AddAction
    rows: int
    all: bool


def run_delete(log: TransactionLog, where: Any, progress: Progress = silent) -> DeleteResult:
    """Delete matching rows; nothing is committed unless everything could be read."""
    snapshot = log.snapshot(max_staleness_s=0)
    require_writable(snapshot)
    zone = log.options.search.time_zone
    node = as_node(where, snapshot.schema, zone)
    if node is None:
        raise PredicateError("DELETE needs a condition; WHERE true deletes every row")
    plan = plan_match(snapshot, node)
    done = list(_looked_into(log, snapshot, node, plan, progress))
    emptied = [item for item in done if isinstance(item, Emptied) and item.all]
    rewritten = [item for item in done if isinstance(item, Rewritten)]
    removed = [*plan.whole, *(item.source for item in emptied)]
    sources = [*removed, *(add for item in rewritten for add in item.sources)]
    adds = [add for item in rewritten for add in item.adds]
    if not sources:
        message = "no row matches the condition"
        return DeleteResult(log.uri, NO_ACTION, snapshot.version, 0, 0, 0, 0, 0, 0, message)
    rows = _rows_deleted(plan, emptied, rewritten)
    committed = _commit(log, snapshot, sources, adds, where=where, rows=rows)
    return DeleteResult(
        table_path=log.uri,
        status=SUCCESS,
        version=committed.version,
        rows_deleted=rows,
        files_removed=len(removed),
        files_rewritten=len(sources) - len(removed),
        files_added=len(adds),
        attempts=committed.attempts,
        conflicts=committed.conflicts,
        message=f"deleted {'some' if rows is None else rows} rows in version {committed.version}",
    )


def _looked_into(
    log: TransactionLog, snapshot: Snapshot, node: Node, plan: MatchPlan, progress: Progress
) -> Iterator[Emptied | Rewritten]:
    setting = RewriteSetting.of(log, snapshot, settings_of(snapshot), drop=node)
    pieces = [RewriteGroup(setting, (add,)) for add in plan.doubtful]
    done: list[Emptied | Rewritten] = []
    try:
        for item in watched(
            log.runtime.workers.map(delete_from, pieces), progress, "Deleting rows", len(pieces)
        ):
            done.append(item)
            _require_read(item)
    except BaseException:
        discard(log.store, [add for item in done if isinstance(item, Rewritten) for add in item.adds])
        raise
    yield from done


def _require_read(item: Emptied | Rewritten) -> None:
    if isinstance(item, Rewritten) and item.unreadable:
        add, reason = item.unreadable[0]
        raise DamagedSplitError(
            f"DELETE cannot tell which rows of {add.path} match: {reason} Nothing was committed.",
            path=add.path,
        )


def delete_from(piece: RewriteGroup) -> Emptied | Rewritten:
    """Take the matching rows out of one split; one without any, or with nothing else, is not rewritten."""
    (source,) = piece.sources
    matching, total = rows_matching(piece)
    if matching in (0, total):
        return Emptied(source, matching, all=matching == total)
    return rewrite(piece)


def _rows_deleted(plan: MatchPlan, emptied: Sequence[Emptied], rewritten: Sequence[Rewritten]) -> int | None:
    counts = [add.num_records for add in plan.whole]
    if any(count is None for count in counts):
        return None
    known = sum(count for count in counts if count is not None)
    inside = sum(item.rows_read - item.rows_written for item in rewritten)
    return known + sum(item.rows for item in emptied) + inside


def _commit(
    log: TransactionLog,
    planned_on: Snapshot,
    sources: Sequence[AddAction],
    adds: Sequence[AddAction],
    *,
    where: Any,
    rows: int | None,
) -> Any:
    def build(_current: Snapshot) -> Sequence[Action]:
        now_ms = log.runtime.clock.now_ms()
        return [*(removal(add, now_ms) for add in sources), *adds]

    plan = CommitPlan(
        operation=OPERATION,
        rule=Rule.DELETE,
        build=build,
        sources=frozenset(add.path for add in sources),
        written_for=planned_on.metadata,
        parameters={"predicate": str(where)},
        metrics={} if rows is None else {"numDeletedRows": rows},
    )
    try:
        return log.commit(plan)
    except ConflictError:
        # Certain not to have been committed, so nobody can need these files.
        discard(log.store, adds)
        raise
