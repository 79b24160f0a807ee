"""REPAIR INDEXFILES TRANSACTION LOG: write a clean log to a new place, from one that may be damaged.

The source is only ever read, unless SWAP is asked for. The target must be empty, and becomes: version 0
with protocol and metadata, version 1 with every add that is still backed by a
file plus the skips of those files and the transactions, a checkpoint of version
1, and the hint. Version 1 is written before version 0, so that an interruption
leaves a directory that is no table, or a complete one. Putting the target in
the place of the source is left to the operator, or done by `swap`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from indextables.errors import (
    CommandError,
    CorruptLogError,
    NotATableError,
    SchemaError,
    SplitError,
    TableError,
)
from indextables.log.commit.attempt import ENGINE
from indextables.log.format.binding import ids_of
from indextables.log.format.checksum import sealed_chunks
from indextables.log.format.dialect import NATIVE
from indextables.log.format.protocol import (
    COLUMN_MAPPING,
    WITH_PARQUET,
    check_writable,
    merged,
    reopened,
    with_feature,
)
from indextables.log.native import native_source
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import (
    Action,
    AddAction,
    CommitInfo,
    MetadataAction,
    ProtocolAction,
    encode_action,
)
from indextables.model.column_mapping import names_of
from indextables.model.fields import schema_from_json
from indextables.model.stats import truncate_add
from indextables.model.truncation import NOTHING_TRUNCATED, Truncated
from indextables.ops.existence import existing_sizes
from indextables.ops.maintain.check.splits import inspect_splits
from indextables.ops.maintain.repair.contents import LogContents, read_contents
from indextables.ops.maintain.repair.from_splits import salvage
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.progress import Progress, silent
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime
from indextables.storage.envelope import pack
from indextables.storage.store import is_allowed
from indextables.storage.stores.put_if_absent import create_or_read

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)
T = TypeVar("T")
STATE_VERSION = 1
CLOSED_VERSION = "closedVersion"
"""With SWAP, the version that closed the old log; the repaired one goes on with the next."""
COMMAND = "command"
_SHOWN = 10
"""Splits that are named in warnings; of the others there is a count."""
_ADDS_AT_ONCE = 10_000
_DELTA_ROWS = "parquet"
"""What Delta's metadata calls the format of the rows; ours has a name of its own there."""


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """Which log to read, and the empty place to write the repaired one to."""

    source: str
    target: str
    from_splits: bool = False
    up_to_version: int | None = None
    """Read the source as it was at this version; what was committed after it is left out."""
    swap: bool = False
    """Put the repaired log in the place of the source."""

    def __post_init__(self) -> None:
        if self.from_splits and self.up_to_version is not None:
            raise CommandError(
                "FROM SPLITS and UP TO VERSION cannot be used together: a split does not say in "
                "which version it was added"
            )


@dataclass(frozen=True, slots=True)
class Closing:
    """The last version of a log that SWAP replaces."""

    repair: str
    """The id of the repair, which becomes the id of the log that follows."""
    version: int
    command: str
    """The statement that does the repair, and finishes it."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The contents of the log to be written: version 0 holds protocol and metadata."""

    protocol: ProtocolAction
    metadata: MetadataAction
    schema: pa.Schema
    """The columns under their stored names, by which the adds know them."""
    partition_columns: tuple[str, ...]
    contents: LogContents
    """What was read: version 1 holds its adds without the missing ones, their skips, and the transactions."""
    info: CommitInfo
    """Of version 1; what was truncated is added as it is written."""
    valid: int
    missing: tuple[str, ...]

    def state(self, options: Options) -> Iterator[Action]:
        """The actions of version 1, made one at a time.

        Every add says that it changes data, also one that a merge wrote: in the new log it is the first to
        bring its rows.
        """
        missing = frozenset(self.missing)
        skipped, live_skips = {skip.path for skip in self.contents.skips}, set()
        truncated = NOTHING_TRUNCATED
        for add in self.contents.adds:
            if add.path in missing:
                continue
            if add.path in skipped:
                live_skips.add(add.path)
            short, cut = truncate_add(_statistics(add, options), self.schema, self.partition_columns, options)
            if cut.columns:
                truncated = Truncated.total((truncated, cut))
            yield short
        truncated.report()
        # An expired skip comes along too: its count of failures goes on, as in checkpoints.
        yield from (skip for skip in self.contents.skips if skip.path in live_skips)
        yield from self.contents.txns
        yield replace(self.info, operation_metrics={**self.info.operation_metrics, **truncated.metrics()})


def plan_repair(
    contents: LogContents,
    missing: tuple[str, ...],
    options: Options,
    now_ms: int,
    closing: Closing | None = None,
) -> RepairPlan:
    """Decide what the repaired log holds: everything but the splits that are missing.

    `closing` is given for a log that is to take the place of the one that was read.
    """
    schema, partitions = _schema(contents.metadata), contents.metadata.partition_columns
    names = names_of(contents.metadata)
    if names is not None:
        schema, partitions = names.stored_schema(schema), tuple(names.stored(partitions))
        options = replace(options, stats=options.stats.with_columns(names.stored_leaf))
    valid = contents.num_adds - len(missing)
    metadata = new_incarnation(contents.metadata, None if closing is None else closing.repair)
    info = CommitInfo(
        timestamp=now_ms,
        operation="REPAIR",
        operation_parameters={
            "sourceVersion": contents.version,
            **({} if closing is None else {CLOSED_VERSION: closing.version, COMMAND: closing.command}),
        },
        operation_metrics={"numAddedFiles": valid, "numMissingFiles": len(missing)},
        engine_info=ENGINE,
        table_id=metadata.id,
        version=STATE_VERSION,
    )
    # A Parquet checkpoint needs its protocol from the beginning, or it would take a version of its own.
    parquet = options.checkpoint.prefers_parquet(valid)
    protocol = reopened(contents.protocol)
    if metadata.column_mapping is not None:
        protocol = with_feature(protocol, COLUMN_MAPPING)
    protocol = merged(protocol, WITH_PARQUET) if parquet else protocol
    return RepairPlan(protocol, metadata, schema, partitions, contents, info, valid, missing)


def _statistics(add: AddAction, options: Options) -> AddAction:
    """The add as the new log has it; without what is known of its values where they are not to be kept."""
    if options.repair.preserve_stats:
        return replace(add, data_change=True)
    return replace(add, data_change=True, min_values=None, max_values=None, stats=None)


def new_incarnation(metadata: MetadataAction, log_id: str | None = None) -> MetadataAction:
    """The metadata of the table under a new log: versions start anew, so nobody may take it for the old one.

    The splits keep the table id that they were written with.
    """
    return replace(
        metadata, id=log_id or str(uuid.uuid4()), split_table_id=metadata.split_table_id or metadata.id
    )


def _schema(metadata: MetadataAction) -> pa.Schema:
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


@dataclass(frozen=True, slots=True)
class Survey:
    """What a repair has to go by: what the log says, and which of its splits are not there."""

    job: RepairJob
    """With the options of the table itself."""
    contents: LogContents
    missing: tuple[str, ...]

    def plan(self, closing: Closing | None = None) -> RepairPlan:
        """The log to be written."""
        now_ms = self.job.runtime.clock.now_ms()
        return plan_repair(self.contents, self.missing, self.job.options, now_ms, closing)


def survey_log(job: RepairJob) -> Survey:
    """Read the source, and look for the splits it names."""
    contents = _read(job)
    # A table's properties say how its log is written, this one as well.
    job = replace(job, options=job.options.over(contents.metadata.configuration, job.source.log_uri))
    return Survey(job, contents, _missing(job, contents))


def all_missing(job: RepairJob, plan: RepairPlan) -> str | None:
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


def of_delta(source: LogDirectory) -> TableError:
    """The error for a log that is not ours."""
    return TableError(
        f"{source.log_uri} is the log of a Delta table, and REPAIR is for IndexTables tables; "
        "nothing was written",
        source=source.log_uri,
    )


def check_plan(job: RepairJob, plan: RepairPlan) -> None:
    """Raise where the log may not be written: its protocol is newer, or a split must not be missing."""
    check_writable(plan.protocol, job.target.log_uri)
    if plan.missing and job.options.repair.fail_on_missing:
        raise SplitError(
            f"{len(plan.missing)} of {plan.valid + len(plan.missing)} splits are missing, the first is "
            f"{plan.missing[0]}, and repair.failOnMissing is set; nothing was written",
            missing=plan.missing,
        )


def require_empty(target: LogDirectory) -> None:
    """Raise if anything lies at the target."""
    first = next(iter(target.around.list(target.name)), None)
    if first is not None:
        raise TableError(
            f"the target {target.log_uri} is not empty: it holds {first.path}. REPAIR never overwrites; "
            "choose another directory, or remove this one if it is left over from an interrupted repair.",
            target=target.log_uri,
        )


def _read(job: RepairJob) -> LogContents:
    if job.request.from_splits:
        return salvage(job.source, job.options, job.runtime, job.progress)
    snapshot = _snapshot(job.source, job.options, job.request.up_to_version)
    if snapshot.metadata.format.get("provider") == _DELTA_ROWS:
        raise of_delta(job.source)
    return read_contents(snapshot)


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


def _missing(job: RepairJob, contents: LogContents) -> tuple[str, ...]:
    """The paths whose files are not there, or not whole; none when nothing is checked."""
    checked = job.options.repair.validate_splits
    if checked == "false":
        return ()
    store, width = job.source.around, job.options.repair.parallelism

    def allowed() -> Iterator[AddAction]:
        # What lies outside the table is looked at only where the options allow it, and kept in any case.
        return (add for add in contents.adds if is_allowed(store, add.path))

    paths = (add.path for add in allowed())
    sizes = existing_sizes(store, paths, job.runtime, parallelism=width, progress=job.progress)
    missing: list[str] = []
    unusable_indexes = 0
    inspected = 0
    for adds in _batches(allowed(), _ADDS_AT_ONCE):
        # Executors are sent the sizes that they need.
        sizes_of_these = {add.path: sizes[add.path] for add in adds if add.path in sizes}
        findings = inspect_splits(
            store, adds, sizes_of_these, job.runtime, deep=checked == "deep", parallelism=width,
            progress=_after(inspected, contents.num_adds, job.progress),
        )  # fmt: skip
        inspected += len(adds)
        reasons = {finding.path: finding.rows for finding in findings if finding.rows is not None}
        for add in adds:
            if add.path in reasons:
                missing.append(add.path)
                if len(missing) <= _SHOWN:
                    _log.warning("REPAIR leaves out %s: %s", add.path, reasons[add.path])
        for finding in findings:
            if finding.index is not None:
                unusable_indexes += 1
                if unusable_indexes <= _SHOWN:
                    _log.warning(
                        "the index of %s cannot be used: %s; MERGE SPLITS builds it again",
                        finding.path, finding.index,
                    )  # fmt: skip
    if len(missing) > _SHOWN:
        _log.warning("REPAIR leaves out %d splits; the first %d are named above", len(missing), _SHOWN)
    if unusable_indexes > _SHOWN:
        _log.warning(
            "the indexes of %d splits cannot be used; the first %d are named above", unusable_indexes, _SHOWN
        )
    return tuple(missing)


def _after(done_before: int, total: int, progress: Progress) -> Progress:
    """The progress of a batch as part of the whole."""
    return lambda stage, done, _: progress(stage, done_before + done, total)


def publish(job: RepairJob, plan: RepairPlan) -> None:
    """Write version 1, then 0, then the checkpoint and its hint: a crash leaves no table, or a whole one."""
    first: tuple[Action, ...] = (plan.protocol, plan.metadata)
    for version, actions in ((STATE_VERSION, plan.state(job.options)), (0, first)):
        data = _encode(actions, job.options)
        path = NATIVE.path(NATIVE.commit_name(version))
        if not create_or_read(job.target, path, data) and not _is_of(job, version, plan.metadata.id):
            raise TableError(
                f"version {version} appeared in {job.target.log_uri} while it was being written; another "
                "repair is at work there. Choose another directory.",
                target=job.target.log_uri,
            )
    TransactionLog(job.target, job.options, job.runtime).checkpoint()


def _is_of(job: RepairJob, version: int, log_id: str) -> bool:
    """Whether a version in the target is of the same repair, which was interrupted there."""
    source = native_source(job.target, job.options, job.runtime)
    return log_id in ids_of(source.read_commit(source.commit_file(version)))


def _batches(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    iterator = iter(items)
    while batch := tuple(islice(iterator, size)):
        yield batch


def _encode(actions: Iterable[Action], options: Options) -> bytes:
    """A version file; the text of a large one is compressed in chunks and never whole in memory."""
    texts = sealed_chunks(
        b"".join(encode_action(action) + b"\n" for action in some)
        for some in _batches(actions, _ADDS_AT_ONCE)
    )
    return b"".join(pack(text, options.compression, first=at == 0) for at, text in enumerate(texts))
