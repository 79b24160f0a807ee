"""MERGE SPLITS: put small splits together into larger ones, without changing a row.

All groups of a run are one commit that says no data changed. A source that
cannot be read becomes a skip with a cooldown and the rest goes on; one whose
index is damaged, or was built by other settings than the table has now, is
indexed anew. If another writer takes a source away meanwhile, the commit is a
conflict, nothing changes and the new files are deleted again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from indextables.display.plain import counted
from indextables.errors import ConflictError, OptionError
from indextables.index.settings import IndexSpec
from indextables.log.commit.conflicts import CHANGED_ROWS, CommitPlan, Rule
from indextables.log.skips import in_cooldown, next_skip, report_cooldown
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, SkipAction
from indextables.ops.maintain.check.splits import damaged_indexes
from indextables.ops.outcomes import DRY_RUN, NO_ACTION, SUCCESS, MergeResult
from indextables.ops.progress import Progress, silent, watched
from indextables.ops.read.word_filters import keep_filters
from indextables.ops.rewrite.drop_partitions import matching_paths, require_partition_condition
from indextables.ops.rewrite.merge_plan import MergeGroup, MergePlan, MergeSettings, plan_merge
from indextables.ops.rewrite.replace import commit_or_discard, replace_plan
from indextables.ops.rewrite.rows import (
    RewriteGroup,
    RewriteOutcome,
    RewriteSetting,
    discard,
    require_writable,
    rewrite,
)
from indextables.ops.table_settings import settings_of
from indextables.split.layout import index_tags

Outcome = TypeVar("Outcome")
_log = logging.getLogger(__name__)

OPERATION = "MERGE SPLITS"
SKIPPED_BY = "merge"
"""The word of the specification for the operation that skipped a file; 0.2.0 wrote `MERGE SPLITS`."""
_SHOWN = 5
_MOST_RUNS = 3
"""How often a merge is done before a conflict with other writers is its caller's."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What the command asks for; None takes the option."""

    where: Any = None
    target_bytes: int | None = None
    max_dest_splits: int | None = None
    max_source_splits: int | None = None
    dry_run: bool = False
    by_levels: bool = False
    """Merge only levels that are full, as after every write; no split is opened to plan that."""

    def __post_init__(self) -> None:
        limits = {
            "target_size": (self.target_bytes, 1),
            "max_dest_splits": (self.max_dest_splits, 1),
            "max_source_splits": (self.max_source_splits, 2),
        }
        for name, (value, least) in limits.items():
            if value is not None and value < least:
                raise OptionError(f"{name} is {value}; expected {least} or more", key=name)


def plan_by_log(snapshot: Snapshot, request: MergeRequest, now_ms: int) -> MergePlan:
    """What a merge of this version would do, judged by the log alone: no split is opened."""
    adds, cooling = snapshot.adds(chosen_paths(snapshot, request.where)), in_cooldown(snapshot.skips, now_ms)
    settings = _settings(snapshot, request)
    if request.by_levels:
        return plan_merge(adds, settings, cooling=cooling)
    return plan_merge(adds, settings, cooling=cooling, outdated=partial(is_outdated, settings_of(snapshot)))


def chosen_paths(snapshot: Snapshot, where: Any) -> Collection[str] | None:
    """The splits of the partitions that a condition chooses; None for all of them."""
    if where is None:
        return None
    return matching_paths(snapshot, require_partition_condition(where, snapshot))


def _settings(snapshot: Snapshot, request: MergeRequest) -> MergeSettings:
    options = snapshot.settings.merge
    return MergeSettings(
        target_bytes=request.target_bytes or options.target_bytes,
        threshold=options.skip_split_threshold,
        max_sources=request.max_source_splits or options.max_source_splits,
        max_groups=request.max_dest_splits,
        indexed=bool(settings_of(snapshot).fields),
        fan_in=snapshot.settings.write.merge_fan_in if request.by_levels else None,
    )


def plan_for(snapshot: Snapshot, request: MergeRequest, now_ms: int) -> MergePlan:
    """What a merge of this version would do; indexes of the other splits are checked for damage."""
    spec = settings_of(snapshot)
    plan = plan_by_log(snapshot, request, now_ms)
    settings, cooling = _settings(snapshot, request), in_cooldown(snapshot.skips, now_ms)
    adds = snapshot.adds(chosen_paths(snapshot, request.where))
    unplanned = [add for add in adds if add.path not in plan.sources and add.path not in cooling]
    damaged = damaged_indexes(snapshot.store, unplanned, snapshot.runtime) if spec.fields else set()
    if not damaged:
        return plan
    return plan_merge(
        adds,
        settings,
        cooling=cooling,
        outdated=lambda add: add.path in damaged or is_outdated(spec, add),
    )


def is_outdated(spec: IndexSpec, add: AddAction) -> bool:
    """Whether a split has deleted rows, or was indexed with other settings than the table has now."""
    return add.deletion_vector is not None or is_indexed_otherwise(spec, add)


def is_indexed_otherwise(spec: IndexSpec, add: AddAction) -> bool:
    """Whether a split was indexed with other settings than the table has now."""
    current = index_tags(spec)
    written = add.tags or {}
    return "splitFormat" in written and any(
        written.get(key) != current.get(key) for key in ("indexedFields", "indexSettings")
    )


def run_merge(
    log: TransactionLog, request: MergeRequest, progress: Progress = silent, newest: Snapshot | None = None
) -> MergeResult:
    """Merge what the plan says, in one commit; failures are recorded in another.

    If another writer deletes or changes rows of a source meanwhile, the merge is planned and done again.
    `newest` is the version to plan on, from a caller who has just looked.
    """
    return until_committed(log, lambda snapshot: _merge_once(log, request, progress, snapshot), newest)


def until_committed(
    log: TransactionLog, run: Callable[[Snapshot], Outcome], newest: Snapshot | None = None
) -> Outcome:
    """Write splits of the newest version anew, once more where rows of them were changed meanwhile."""
    for _ in range(_MOST_RUNS - 1):
        try:
            return run(newest or log.snapshot(max_staleness_s=0))
        except ConflictError as lost:
            if not lost.fields.get(CHANGED_ROWS):
                raise
            _log.info("%s: %s; trying again", log.uri, lost)
            newest = None
    return run(log.snapshot(max_staleness_s=0))


def _merge_once(
    log: TransactionLog, request: MergeRequest, progress: Progress, snapshot: Snapshot
) -> MergeResult:
    require_writable(snapshot)
    plan_of = plan_by_log if request.by_levels else plan_for
    plan = plan_of(snapshot, request, log.runtime.clock.now_ms())
    report_cooldown(plan.cooling)
    if request.dry_run:
        return _result(log, DRY_RUN, plan, len(plan.cooling), _dry_message(plan))
    if not plan.groups:
        return _result(log, NO_ACTION, plan, len(plan.cooling), "there is nothing to merge")
    done = merge_and_commit(log, snapshot, plan.groups, progress, OPERATION)
    merged, skipped = done.merged, len(plan.cooling) + done.failures
    if done.version is None:
        nothing = MergePlan((), plan.cooling, plan.considered)
        return _result(log, NO_ACTION, nothing, skipped, "no group could be merged")
    written = sum(len(item.adds) for item in merged)
    return MergeResult(
        table_path=log.uri,
        status=SUCCESS,
        merged_files=sum(len(item.sources) for item in merged),
        merge_groups=len(merged),
        original_size_bytes=sum(add.size for item in merged for add in item.sources),
        merged_size_bytes=sum(add.size for item in merged for add in item.adds),
        skipped_files=skipped,
        message=f"merged into {counted(written, 'split')} in version {done.version}",
    )


@dataclass(frozen=True, slots=True)
class MergedGroups:
    """The groups that were written anew, and what became of them."""

    merged: tuple[RewriteOutcome, ...]
    version: int | None
    """The version that names the new splits; None if no group could be read."""
    failures: int
    """The sources that could not be read."""


def merge_and_commit(
    log: TransactionLog,
    snapshot: Snapshot,
    groups: Sequence[MergeGroup],
    progress: Progress,
    operation: str,
) -> MergedGroups:
    """Write groups of splits anew in one commit; sources that cannot be read are recorded in another."""
    outcomes = _rewritten(log, snapshot, groups, progress)
    failures = [Failure(add, reason) for item in outcomes for add, reason in item.unreadable]
    record_failures(log, failures, SKIPPED_BY)
    merged = tuple(item for item in outcomes if item.adds)
    if not merged:
        return MergedGroups(merged, None, len(failures))
    version = commit_merge(log, merged, snapshot, operation)
    keep_filters(log)
    return MergedGroups(merged, version, len(failures))


def _rewritten(
    log: TransactionLog, snapshot: Snapshot, groups: Sequence[MergeGroup], progress: Progress
) -> list[RewriteOutcome]:
    settings = snapshot.settings
    adapted = replace(settings, stats=settings.stats.adapted())
    setting = RewriteSetting.of(log, snapshot, options=adapted)
    pieces = [RewriteGroup(setting, group.sources) for group in groups]
    outcomes: list[RewriteOutcome] = []
    try:
        outcomes.extend(
            watched(log.runtime.workers.map(rewrite_group, pieces), progress, "Merging splits", len(pieces))
        )
    except BaseException:
        discard(log.store, [add for item in outcomes for add in item.adds])
        raise
    return outcomes


def rewrite_group(piece: RewriteGroup) -> RewriteOutcome:
    """Merge one group; if sources fail, the rest is merged only if that is still worthwhile."""
    return rewrite(piece, least=min(2, len(piece.sources)))


@dataclass(frozen=True, slots=True)
class Failure:
    """A split that could not be handled, and why."""

    add: AddAction
    reason: str


def record_failures(log: TransactionLog, failures: Sequence[Failure], operation: str) -> int | None:
    """Record every failure of a run as a skip with a cooldown, in one commit; returns its version, or None.

    The files stay live and readable: a skip never removes a row from the table.
    """
    if not failures:
        return None
    for failure in failures:
        _log.warning("%s leaves %s alone: %s", operation, failure.add.path, failure.reason)

    def build(current: Snapshot) -> list[SkipAction]:
        earlier_skips, now_ms = current.skips, log.runtime.clock.now_ms()
        return [
            next_skip(
                earlier_skips.get(failure.add.path),
                failure.add.path,
                failure.reason,
                operation,
                now_ms=now_ms,
                cooldown_hours=current.settings.stats.skip_cooldown_hours,
                partition_values=failure.add.partition_values,
                size=failure.add.size,
            )
            for failure in failures
        ]

    plan = CommitPlan(operation="SKIP", rule=Rule.APPEND, build=build, parameters={"operation": operation})
    return log.commit(plan).version


def commit_merge(
    log: TransactionLog, merged: Sequence[RewriteOutcome], planned_on: Snapshot, operation: str = OPERATION
) -> int:
    """Commit groups that were rewritten, and return the version."""
    replaced = [add for item in merged for add in item.sources]
    adds = [add for item in merged for add in item.adds]
    metrics = {"numMergeGroups": len(merged)}
    plan = replace_plan(
        planned_on, operation, replaced, adds, data_change=False, metrics=metrics,
        truncated=(item.truncated for item in merged),
    )  # fmt: skip
    return commit_or_discard(log, plan, adds).version


def _result(log: TransactionLog, status: str, plan: MergePlan, skipped: int, message: str) -> MergeResult:
    """The result of a run that merged nothing."""
    files, size = len(plan.sources), plan.size_bytes
    merged = None if status == DRY_RUN else 0
    return MergeResult(log.uri, status, files, len(plan.groups), size, merged, skipped, message)


def _dry_message(plan: MergePlan) -> str:
    shown = "; ".join(
        f"{', '.join(f'{key}={value}' for key, value in group.partition_values.items()) or 'table'}: "
        f"{counted(len(group.sources), 'split')} of {group.size_bytes} bytes"
        for group in plan.groups[:_SHOWN]
    )
    more = f"; and {counted(len(plan.groups) - _SHOWN, 'more group')}" if len(plan.groups) > _SHOWN else ""
    head = f"would merge {counted(len(plan.sources), 'split')} in {counted(len(plan.groups), 'group')}"
    return f"{head}: {shown}{more}" if shown else head
