"""DELETE FROM INDEXTABLES: remove the rows for which a condition is true, in one commit.

A split all of whose rows match, as its partition values and statistics prove,
only leaves the log. One that can hold a match is looked into, reading the
columns of the condition alone. With `deletionVectors.enabled` the log then names
its matching rows as deleted, unless most of them are by now; without, it is
written anew without them. A search beside the condition is answered by the index. Rows for
which the condition is null stay, as in SQL. Rows that others append meanwhile
stay too; a source that others remove is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from indextables.display.plain import counted
from indextables.errors import PredicateError
from indextables.index.query.tree import Query
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.outcomes import NO_ACTION, SUCCESS, DeleteResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.read.matching import MatchPlan, plan_match
from indextables.ops.read.word_filters import splits_to_search
from indextables.ops.rewrite.replace import change_metrics, commit_or_discard, live_records, replace_plan
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteOutcome,
    RewriteSetting,
    UniformSplit,
    delete_from,
    discard,
    require_read,
    require_writable,
    rewrite,
)
from indextables.ops.rewrite.vectors import (
    DeletedRows,
    VectorCommit,
    rows_to_delete,
    uses_vector,
    vector_metrics,
)
from indextables.ops.table_settings import query_of
from indextables.ops.write.after_write import after_write
from indextables.predicate.tree import TRUE, Node
from indextables.split.layout import SplitRef

Searched = Sequence[tuple[str | None, str]]
"""Searches that all have to find a row: a column, or None for all indexed ones, and a query."""


def run_delete(
    log: TransactionLog,
    where: Any,
    progress: Progress = silent,
    *,
    searches: Searched = (),
    operator: str | None = None,
    with_text: bool = False,
) -> DeleteResult:
    """Delete rows that match and that every search finds; nothing is committed unless all could be read.

    With `with_text` a search is null where its columns are, as in SQL, and such rows stay.
    """
    snapshot = log.snapshot(max_staleness_s=0)
    require_writable(snapshot)
    queries = [
        query_of(snapshot, query, None if column is None else (column,), operator, with_text=with_text)
        for column, query in searches
    ]
    node = TRUE if where is None and queries else snapshot.filter_of(where)
    if node is None:
        raise PredicateError("DELETE needs a condition; WHERE true deletes every row")
    plan = _plan(snapshot, node, queries)
    outcomes = list(_delete_from_splits(log, snapshot, node, plan, queries=queries, progress=progress))
    emptied = [item for item in outcomes if isinstance(item, UniformSplit) and item.all]
    rewritten = [item for item in outcomes if isinstance(item, RewriteOutcome)]
    marked = [item for item in outcomes if isinstance(item, DeletedRows)]
    vectors = VectorCommit(log, "DELETE", marked) if marked else None
    removed = [*plan.whole, *(item.source for item in emptied)]
    sources = [*removed, *(add for item in rewritten for add in item.sources)]
    adds = [add for item in rewritten for add in item.adds]
    if not sources and not marked:
        message = "no row matches the condition"
        return DeleteResult(log.uri, NO_ACTION, snapshot.version, 0, 0, 0, 0, 0, 0, message)
    rows = _rows_deleted(plan, emptied, rewritten, marked)
    conditions = [] if where is None else [str(where)]
    predicate = " AND ".join([*conditions, *(_search_text(*search) for search in searches)])
    plan_of_commit = replace_plan(
        snapshot, "DELETE", sources, adds, parameters={"predicate": predicate},
        metrics={
            **change_metrics(deleted=rows),
            **vector_metrics(marked),
        },
        truncated=(item.truncated for item in rewritten), vectors=vectors,
    )  # fmt: skip
    committed = commit_or_discard(log, plan_of_commit, adds, vectors)
    after_write(log)
    deleted = "some rows" if rows is None else counted(rows, "row")
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
        message=f"deleted {deleted} in version {committed.version}",
    )


def _search_text(column: str | None, query: str) -> str:
    return f"{column or '_indexall'} indexquery '{query}'"


def _plan(snapshot: Snapshot, node: Node, queries: Sequence[Query]) -> MatchPlan:
    """With a search, every split that may hold a match is opened: statistics say nothing about words."""
    if not queries:
        return plan_match(snapshot, node)
    paths = snapshot.plan(node, columns={"path"}).files.column("path").to_pylist()
    adds = snapshot.adds(paths)
    refs = [SplitRef.of(add) for add in adds]
    for query in queries:
        refs = splits_to_search(snapshot, query, refs)
    paths_to_search = {ref.path for ref in refs}
    return MatchPlan((), tuple(add for add in adds if add.path in paths_to_search))


def _delete_from_splits(
    log: TransactionLog,
    snapshot: Snapshot,
    node: Node,
    plan: MatchPlan,
    *,
    queries: Sequence[Query],
    progress: Progress,
) -> Iterator[UniformSplit | RewriteOutcome | DeletedRows]:
    setting = RewriteSetting.of(log, snapshot, drop=node, searches=queries)
    pieces = [RewriteGroup(setting, (add,)) for add in plan.doubtful]
    outcomes: list[UniformSplit | RewriteOutcome | DeletedRows] = []
    try:
        work = mark_in if snapshot.settings.vectors.enabled else delete_from
        for item in watched(log.runtime.workers.map(work, pieces), progress, "Deleting rows", len(pieces)):
            outcomes.append(item)
            if isinstance(item, RewriteOutcome):
                require_read(item, "DELETE")
    except BaseException:
        discard(
            log.store, [add for item in outcomes if isinstance(item, RewriteOutcome) for add in item.adds]
        )
        raise
    yield from outcomes


def mark_in(piece: RewriteGroup) -> UniformSplit | RewriteOutcome | DeletedRows:
    """The rows of one split that leave; it is written anew where too many of its rows have left by now."""
    deleted = rows_to_delete(piece)
    count = len(deleted.rows)
    if count in (0, deleted.of_rows):
        return UniformSplit(deleted.source, count, all=count == deleted.of_rows)
    return deleted if uses_vector(piece.setting, deleted) else rewrite(piece)


def _rows_deleted(
    plan: MatchPlan,
    emptied: Sequence[UniformSplit],
    rewritten: Sequence[RewriteOutcome],
    marked: Sequence[DeletedRows],
) -> int | None:
    in_whole_splits = live_records(plan.whole)
    if in_whole_splits is None:
        return None
    in_rewritten_splits = sum(item.rows_read - item.rows_written for item in rewritten)
    in_marked_splits = sum(len(item.rows) for item in marked)
    return in_whole_splits + sum(item.rows for item in emptied) + in_rewritten_splits + in_marked_splits
