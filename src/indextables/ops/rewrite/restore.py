"""RESTORE INDEXTABLES: make an older version the newest again, by one commit on top.

Nothing is rewound: the versions in between stay, and restoring can itself be
undone by restoring. Files that the old version needs are checked to exist
first; if PURGE took one, nothing is committed. What applications have recorded
about their batches is kept, so that a batch is not written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from indextables.errors import MissingSplitError
from indextables.log.commit.changes import removals
from indextables.log.commit.conflicts import RESTORED, CommitPlan, Rule
from indextables.log.purge_mark import files_of_vectors
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, AddAction, MetadataAction
from indextables.model.column_mapping import completed, own_names
from indextables.ops.existence import existing_sizes
from indextables.ops.outcomes import NO_ACTION, SUCCESS, RestoreResult
from indextables.ops.progress import Progress, silent
from indextables.storage.deletion_vectors import unique_id

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The difference between the newest version and the one to restore."""

    added: tuple[AddAction, ...]
    removed: tuple[AddAction, ...]
    metadata: MetadataAction | None
    """The old metadata, where it differs."""

    @property
    def empty(self) -> bool:
        """Whether both versions are the same."""
        return not (self.added or self.removed or self.metadata)


def plan_restore(
    current: Sequence[AddAction], target: Sequence[AddAction]
) -> tuple[list[AddAction], list[AddAction]]:
    """The adds to write and the adds to remove to turn one set of live files into another.

    A file that both have with other deleted rows is removed and added, since its rows change.
    """
    # Restored files change data, even if a merge first wrote them and said that it does not.
    returning = [replace(add, data_change=True) for add in target]
    current_adds = {add.path: replace(add, data_change=True) for add in current}
    added = [add for add in returning if current_adds.get(add.path) != add]
    vectors = {add.path: unique_id(add.deletion_vector) for add in target}
    removed = [
        add
        for add in current
        if add.path not in vectors or unique_id(add.deletion_vector) != vectors[add.path]
    ]
    return added, removed


def run_restore(log: TransactionLog, version: int, progress: Progress = silent) -> RestoreResult:
    """Commit the difference; any foreign change of files or metadata meanwhile is a conflict."""
    current = log.snapshot(max_staleness_s=0)
    target = log.snapshot(version=version)
    files = target.adds()
    plan = _difference(current, target, files)
    if plan.empty:
        message = f"version {current.version} already equals version {version}"
        return RestoreResult(log.uri, NO_ACTION, version, current.version, 0, 0, message)
    _require_present(log, plan.added, version, progress)

    def build(base: Snapshot) -> Sequence[Action]:
        now = _difference(base, target, files)
        head: list[Action] = [now.metadata] if now.metadata else []
        return [*head, *removals(base, now.removed), *now.added]

    committed = log.commit(
        CommitPlan(
            operation=RESTORED,
            rule=Rule.EXCLUSIVE,
            build=build,
            read_version=current.version,
            purges=current.segment.purges,
            parameters={"version": version},
            metrics={"numRestoredFiles": len(plan.added), "numRemovedFiles": len(plan.removed)},
        )
    )
    message = f"version {committed.version} equals version {version}"
    return RestoreResult(
        log.uri, SUCCESS, version, committed.version, len(plan.added), len(plan.removed), message
    )


def _difference(base: Snapshot, target: Snapshot, files: Sequence[AddAction]) -> RestorePlan:
    added, removed = plan_restore(base.adds(), files)
    metadata = target.metadata
    if metadata.column_mapping is None and base.metadata.column_mapping is not None:
        metadata = replace(metadata, column_mapping=own_names(target.schema.names))
    metadata = completed(metadata, base.metadata)
    return RestorePlan(tuple(added), tuple(removed), None if metadata == base.metadata else metadata)


def _require_present(
    log: TransactionLog, adds: Sequence[AddAction], version: int, progress: Progress
) -> None:
    paths = [*(add.path for add in adds), *files_of_vectors(adds)]
    sizes = existing_sizes(
        log.store, paths, log.runtime, parallelism=log.options.repair.parallelism, progress=progress
    )
    missing = [path for path in paths if path not in sizes]
    if missing:
        shown = ", ".join(missing[:_SHOWN])
        raise MissingSplitError(
            f"version {version} cannot be restored: {len(missing)} of its files are gone ({shown}). "
            "Nothing was committed; choose a version whose files PURGE has not deleted.",
            version=version,
            missing=missing,
        )
