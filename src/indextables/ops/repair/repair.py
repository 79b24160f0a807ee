"""REPAIR INDEXFILES TRANSACTION LOG: write a clean log to a new place, from one that may be damaged.

The source is only ever read. The target must be empty, and becomes: version 0
with protocol and metadata, version 1 with every add that is still backed by a
file plus the skips of those files and the transactions, a checkpoint of version
1, and the hint. Version 1 is written before version 0, so that an interruption
leaves a directory that is no table, or a complete one. Putting the target in
the place of the source is left to the operator.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from indextables.errors import (
    CommandError,
    CorruptLogError,
    Error,
    NotATableError,
    OptionError,
    SchemaError,
    SplitError,
    TableError,
)
from indextables.log.commit.attempt import ENGINE
from indextables.log.delta.paths import LOG_DIR as DELTA_LOG
from indextables.log.format.dialect import NATIVE
from indextables.log.format.protocol import WITH_PARQUET, check_writable, merged
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
)
from indextables.model.stats import truncate_add
from indextables.model.truncation import Truncated
from indextables.ops.check.splits import inspect_splits
from indextables.ops.existence import sizes_found
from indextables.ops.outcomes import SUCCESS, RepairResult
from indextables.ops.progress import Progress, silent
from indextables.ops.repair.contents import LogContents
from indextables.ops.repair.relocated_log import LogDirectory
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime
from indextables.storage.envelope import pack
from indextables.storage.store import is_allowed
from indextables.storage.stores.put_if_absent import create_or_read

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
_STATE_VERSION = 1
_DELTA_ROWS = "parquet"
"""What Delta's metadata calls the format of the rows; ours has a name of its own there."""
_REFUSED = (TableError, OptionError, CommandError)


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """Which log to read, and the empty place to write the repaired one to."""

    source: str
    target: str
    from_splits: bool = False
    up_to_version: int | None = None
    """Read the source as it was at this version; what was committed after it is left out."""

    def __post_init__(self) -> None:
        if self.from_splits and self.up_to_version is not None:
            raise CommandError(
                "FROM SPLITS and UP TO VERSION cannot be used together: a split does not say in "
                "which version it was added"
            )


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The contents of the log to be written: version 0 holds protocol and metadata."""

    protocol: ProtocolAction
    metadata: MetadataAction
    state: tuple[Action, ...]
    """Version 1: everything else."""
    valid: int
    missing: tuple[str, ...]


def plan_repair(
    found: LogContents, present: Collection[str] | None, options: Options, now_ms: int
) -> RepairPlan:
    """Decide what the repaired log holds; `present` None trusts the log about which files exist.

    Every add says that it changes data, also one that a merge wrote: in the new log it is the first to
    bring its rows.
    """
    kept = [add for add in found.adds if present is None or add.path in present]
    missing = tuple(add.path for add in found.adds if present is not None and add.path not in present)
    schema = _schema(found.metadata)
    partitions = found.metadata.partition_columns
    short = [truncate_add(_statistics(add, options), schema, partitions, options) for add in kept]
    adds, truncated = [add for add, _ in short], Truncated.total(done for _, done in short)
    truncated.report()
    paths = {add.path for add in kept}
    # An expired skip comes along too: its count of failures goes on, as in checkpoints.
    skips = [skip for skip in found.skips if skip.path in paths]
    metadata = new_incarnation(found.metadata)
    info = CommitInfo(
        timestamp=now_ms,
        operation="REPAIR",
        operation_parameters={"sourceVersion": found.version},
        operation_metrics={
            "numAddedFiles": len(adds),
            "numMissingFiles": len(missing),
            **truncated.metrics(),
        },
        engine_info=ENGINE,
        table_id=metadata.id,
        version=_STATE_VERSION,
    )
    # A Parquet checkpoint needs its protocol from the beginning, or it would take a version of its own.
    parquet = options.checkpoint.prefers_parquet(len(adds))
    protocol = merged(found.protocol, WITH_PARQUET) if parquet else found.protocol
    state: tuple[Action, ...] = (*adds, *skips, *found.txns, info)
    return RepairPlan(protocol, metadata, state, len(adds), missing)


def _statistics(add: AddAction, options: Options) -> AddAction:
    """The add as the new log has it; without what is known of its values where they are not to be kept."""
    if options.repair.preserve_stats:
        return replace(add, data_change=True)
    return replace(add, data_change=True, min_values=None, max_values=None, stats=None)


def new_incarnation(metadata: MetadataAction) -> MetadataAction:
    """The metadata of the table under a new log: versions start anew, so nobody may take it for the old one.

    The splits keep the table id that they were written with.
    """
    return replace(metadata, id=str(uuid.uuid4()), split_table_id=metadata.split_table_id or metadata.id)


def _schema(metadata: MetadataAction) -> pa.Schema:
    from indextables.model.fields import schema_from_json

    try:
        return schema_from_json(metadata.schema_string)
    except SchemaError as bad:
        raise CorruptLogError(
            f"the schema in the log cannot be read: {bad.message}. REPAIR ... FROM SPLITS takes the columns "
            "from the splits."
        ) from bad


@dataclass(frozen=True, slots=True)
class RepairJob:
    """A repair between two log directories, with everything it needs to run."""

    request: RepairRequest
    source: LogDirectory
    target: LogDirectory
    options: Options
    runtime: Runtime = LOCAL
    progress: Progress = silent


def run_repair(
    request: RepairRequest, options: Options, runtime: Runtime = LOCAL, progress: Progress = silent
) -> RepairResult:
    """Read, check, and publish; what cannot be read is reported as a row, what would do harm raises."""
    source = LogDirectory.at(request.source, dict(options.storage))
    target = LogDirectory.at(request.target, dict(options.storage))
    return carry_out(RepairJob(request, source, target, options, runtime, progress))


def carry_out(job: RepairJob) -> RepairResult:
    """Repair between two log directories."""
    _require_apart(job.source, job.target)
    if job.source.name == DELTA_LOG:
        raise _of_delta(job.source)
    found = plan = None
    try:
        _require_empty(job.target)
        found = _read(job)
        # A table's properties say how its log is written, this one as well.
        job = replace(job, options=job.options.over(found.metadata.configuration, job.source.log_uri))
        plan = plan_repair(found, _present(job, found), job.options, job.runtime.clock.now_ms())
        _require_complete(plan, job.options)
        check_writable(plan.protocol, job.target.log_uri)
        _publish(job, plan)
    except _REFUSED:
        raise
    except Error as error:
        _log.error("REPAIR of %s failed: %s", job.request.source, error)
        return _result(job, found, plan, f"ERROR: {error.message}{_ways_out(job.request, error)}")
    return _result(job, found, plan, _all_missing(job, plan) or SUCCESS)


def _ways_out(request: RepairRequest, error: Error) -> str:
    """What REPAIR itself can still do where the log is damaged."""
    if request.from_splits or not isinstance(error, CorruptLogError):
        return ""
    return (
        " REPAIR ... UP TO VERSION n reads the log as it was before the damage; REPAIR ... FROM SPLITS makes "
        "a log from the split files alone."
    )


def _all_missing(job: RepairJob, plan: RepairPlan) -> str | None:
    """A warning where the repaired log is empty because no split is where the log says."""
    if plan.valid or not plan.missing:
        return None
    status = (
        f"WARNING: none of the {len(plan.missing)} splits that the log names exists below "
        f"{job.source.around.uri}, so the repaired log holds no rows. If the log was copied away from its "
        "table, repair it where it lies, beside its splits."
    )
    _log.warning("REPAIR of %s: %s", job.request.source, status)
    return status


def _result(job: RepairJob, found: LogContents | None, plan: RepairPlan | None, status: str) -> RepairResult:
    source, target = job.request.source, job.request.target
    if found is None or plan is None:
        return RepairResult(source, target, -1, 0, 0, 0, status)
    missing = len(plan.missing)
    return RepairResult(
        source, target, found.version, plan.valid + missing, plan.valid, missing, status, plan.missing
    )


def _of_delta(source: LogDirectory) -> TableError:
    return TableError(
        f"{source.log_uri} is the log of a Delta table, and REPAIR is for IndexTables tables; "
        "nothing was written",
        source=source.log_uri,
    )


def _require_complete(plan: RepairPlan, options: Options) -> None:
    if plan.missing and options.repair.fail_on_missing:
        raise SplitError(
            f"{len(plan.missing)} of {plan.valid + len(plan.missing)} splits are missing, the first is "
            f"{plan.missing[0]}, and repair.failOnMissing is set; nothing was written",
            missing=plan.missing,
        )


def _require_apart(source: LogDirectory, target: LogDirectory) -> None:
    inside, around = _real(target), _real(source)
    if inside == around or inside.startswith(f"{around}/"):
        raise TableError(
            f"the target {target.log_uri} lies inside the log {source.log_uri} that is to be repaired. "
            "Choose an empty directory beside it.",
            source=source.log_uri,
            target=target.log_uri,
        )


def _real(directory: LogDirectory) -> str:
    """Where a log directory lies once symbolic links are followed."""
    local = directory.around.local_path(directory.name)
    return directory.log_uri if local is None else os.path.realpath(local)


def _require_empty(target: LogDirectory) -> None:
    first = next(iter(target.around.list(target.name)), None)
    if first is not None:
        raise TableError(
            f"the target {target.log_uri} is not empty: it holds {first.path}. REPAIR never overwrites; "
            "choose another directory, or remove this one if it is left over from an interrupted repair.",
            target=target.log_uri,
        )


def _read(job: RepairJob) -> LogContents:
    if job.request.from_splits:
        from indextables.ops.repair.from_splits import salvage

        return salvage(job.source, job.options, job.runtime, job.progress)
    snapshot = _snapshot(job.source, job.options, job.request.up_to_version)
    if snapshot.metadata.format.get("provider") == _DELTA_ROWS:
        raise _of_delta(job.source)
    return LogContents(
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        tuple(snapshot.adds()),
        tuple(snapshot.skips.values()),
        tuple(snapshot.txns.values()),
    )


def _snapshot(source: LogDirectory, options: Options, version: int | None) -> Snapshot:
    try:
        return TransactionLog(source, options).snapshot(version)
    except NotATableError as nothing:
        is_table = source.around.list_level(f"{source.name}/{NATIVE.log_dir}")
        hint = f" Name the log directory: {source.log_uri}/{NATIVE.log_dir}." if is_table else ""
        raise NotATableError(
            f"{source.log_uri} is not a log: there is no version and no checkpoint in it.{hint}",
            uri=source.log_uri,
        ) from nothing


def _present(job: RepairJob, found: LogContents) -> Collection[str] | None:
    """The paths whose files are there, or there and whole; None when nothing is checked."""
    checked = job.options.repair.validate_splits
    if checked == "false":
        return None
    store, width = job.source.around, job.options.repair.parallelism
    # What lies outside the table is looked at only where the options allow it, and kept in any case.
    adds = [add for add in found.adds if is_allowed(store, add.path)]
    paths = [add.path for add in adds]
    sizes = sizes_found(store, paths, job.runtime, parallelism=width, progress=job.progress)
    deep = checked == "deep"
    found_wrong = inspect_splits(
        store, adds, sizes, job.runtime, deep=deep, parallelism=width, progress=job.progress
    )
    lost = {finding.path: finding.rows for finding in found_wrong if finding.rows is not None}
    for path, reason in lost.items():
        _log.warning("REPAIR leaves out %s: %s", path, reason)
    for finding in found_wrong:
        if finding.index is not None:
            _log.warning(
                "the index of %s cannot be used: %s; MERGE SPLITS writes it anew", finding.path, finding.index
            )
    return {add.path for add in found.adds if add.path not in lost}


def _publish(job: RepairJob, plan: RepairPlan) -> None:
    """Write version 1, then 0, then the checkpoint and its hint: a crash leaves no table, or a whole one."""
    for version, actions in ((_STATE_VERSION, plan.state), (0, (plan.protocol, plan.metadata))):
        data = pack(NATIVE.encode_commit(actions), job.options.compression)
        if not create_or_read(job.target, NATIVE.path(NATIVE.commit_name(version)), data):
            raise TableError(
                f"version {version} appeared in {job.target.log_uri} while it was being written; another "
                "repair is at work there. Choose another directory.",
                target=job.target.log_uri,
            )
    TransactionLog(job.target, job.options, job.runtime).checkpoint()
