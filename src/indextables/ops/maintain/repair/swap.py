"""REPAIR ... SWAP: the repaired log takes the place of the old one, beside writers that know nothing of it.

1. Close. One more version of the old log raises its protocol to the feature `closed`. It is committed
   like any other, so a writer lands before it, and is read, or is refused. Readers go on.
2. Publish the repaired log at the target, as REPAIR does. From here on, what it holds decides.
3. Copy the old log to a directory beside it, `_transaction_log.<date>-<repair>`.
4. Switch. A checkpoint of the repaired log is put into the old directory, under the number after the
   closing version. Readers begin with the newest checkpoint, so this one object is the moment of the swap.
5. Put the version file of that number, raise the floor to it, and delete what lies below, as TRUNCATE does.
6. Delete the target.

The directory is not renamed, because that would free version numbers without a floor above them: a writer
that paused would create its number in the new log and leave a gap there. With the floor, the commit
protocol tells such a writer that its number belongs to another commit.

Every step can be repeated. An interruption leaves the old log, closed, or the new one; the same command
finishes the repair.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from indextables.errors import (
    AttemptsExhaustedError,
    CommandError,
    CorruptLogError,
    Error,
    NotATableError,
    NotFoundError,
    TableError,
)
from indextables.log.caches import NEWS
from indextables.log.checkpoint.head import KEPT_COMMIT_IDS
from indextables.log.commit.attempt import ENGINE, CommitPlan, Rule, run_commit
from indextables.log.commit.placement import Attempt, place
from indextables.log.format.dialect import NATIVE, LogFile
from indextables.log.format.protocol import CURRENT, closed, closed_by
from indextables.log.history import read_info
from indextables.log.native import native_source, write_native_checkpoint
from indextables.log.replay.rule import reduce_tail
from indextables.log.retention import plan_floor, readable, run_cleanup
from indextables.log.segment import Segment, list_log
from indextables.log.snapshot import Snapshot
from indextables.log.state import LogSource, State
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import Action, CommitInfo, ProtocolAction
from indextables.model.names import quoted_text
from indextables.ops.maintain.repair.from_splits import remnants
from indextables.ops.maintain.repair.repair import (
    CLOSED_VERSION,
    COMMAND,
    STATE_VERSION,
    Closing,
    RepairJob,
    RepairPlan,
    Survey,
    all_missing,
    check_plan,
    publish,
    require_empty,
    survey_log,
)
from indextables.ops.outcomes import SUCCESS, RepairResult
from indextables.storage.envelope import pack
from indextables.storage.stores.put_if_absent import create_or_read

_log = logging.getLogger(__name__)

_OPERATION = "CLOSE"
_SHORT_ID = 8


def swap(job: RepairJob) -> RepairResult:
    """Repair a table's log and put the result in its place; or finish a swap that was interrupted."""
    if job.source.name != NATIVE.log_dir:
        raise CommandError(
            f"SWAP replaces the log that a table is using, and {job.source.log_uri} is not one: its name is "
            f"not {NATIVE.log_dir}. Repair it without SWAP."
        )
    source = native_source(job.source.around, job.options, job.runtime)
    command = command_of(job)
    closing, staged = _closed_before(source, command), _staged(job)
    missing: tuple[str, ...] = ()
    if staged is None and closing is None and job.request.up_to_version is not None:
        done = _done_before(source, command)
        if done is not None:
            return _result(source, job, done)
    if staged is None or not (
        _is_swapped(source, staged.closing) or (staged.whole and staged.closing == closing)
    ):
        survey = None
        if closing is None:
            closing, survey = _close_log(source, job, command)
        try:
            survey = _survey_closed(survey, job, closing)
            plan = survey.plan(closing)
            check_plan(survey.job, plan)
            publish(survey.job, plan)
            missing, staged = plan.missing, _staged(job) or _left_by_another(source, closing, plan)
        except Error as failed:
            raise _unfinished(job, failed, command) from failed
    try:
        return replace(_put_in_place(source, job, staged), missing=missing)
    except Error as failed:
        raise _unfinished(job, failed, command) from failed


def command_of(job: RepairJob) -> str:
    """The statement that does this repair, and finishes it."""
    request = job.request
    clause = " FROM SPLITS" if request.from_splits else ""
    if request.up_to_version is not None:
        clause = f" UP TO VERSION {request.up_to_version}"
    return (
        f"REPAIR INDEXFILES TRANSACTION LOG {quoted_text(job.source.log_uri)} "
        f"AT LOCATION {quoted_text(job.target.log_uri)}{clause} SWAP"
    )


def _unfinished(job: RepairJob, failed: Error, command: str) -> TableError:
    return TableError(
        f"the repair of {job.source.log_uri} was interrupted: {failed.message} One whole log is there, and "
        f"the old one is closed for writing until the repair is finished. Run it once more: {command}",
        source=job.source.log_uri, target=job.target.log_uri, command=command,
    )  # fmt: skip


# Closing


def _close_log(source: LogSource, job: RepairJob, command: str) -> tuple[Closing, Survey]:
    """Close the log, once the repair is known to work."""
    require_empty(job.target)
    survey = survey_log(job)
    plan = survey.plan()
    check_plan(survey.job, plan)
    empty = all_missing(job, plan)
    if empty is not None:
        raise TableError(f"{empty.removeprefix('WARNING: ')} Nothing was swapped.", source=job.source.log_uri)
    repair = str(uuid.uuid4())
    try:
        version = _close(source, repair, command)
    except (CorruptLogError, NotATableError):
        version = _close_damaged(source, repair, command)
    NEWS.announce(source.store.uri)
    return Closing(repair, version, command), survey


def _closed_before(source: LogSource, command: str) -> Closing | None:
    """The closing version of this repair, if it is the newest; another repair has to be finished first."""
    commits = list_log(source.store, NATIVE).commits
    if not commits:
        return None
    newest = commits[max(commits)]
    try:
        actions = source.read_commit(newest)
    except CorruptLogError:
        return None
    by = next((closed_by(action) for action in actions if isinstance(action, ProtocolAction)), {})
    if not by:
        return None
    if by.get("command") != command:
        raise TableError(
            f"{source.store.uri}/{NATIVE.log_dir} was closed by the repair {by.get('repair')}, which has to "
            f"be finished first: {by.get('command')}",
            uri=source.store.uri, repair=by.get("repair"), command=by.get("command"),
        )  # fmt: skip
    return Closing(by.get("repair", ""), newest.version, command)


def _close(source: LogSource, repair: str, command: str) -> int:
    """Commit the closing version on top of whatever is newest."""
    plan = CommitPlan(
        _OPERATION,
        Rule.APPEND,
        lambda base: [closed(base.protocol, repair, command)],
        parameters={"repair": repair},
    )
    log = TransactionLog(source.store, source.options, source.runtime)
    done, _ = run_commit(plan, lambda: log.snapshot(max_staleness_s=0))
    return done.version


def _close_damaged(source: LogSource, repair: str, command: str) -> int:
    """Put the closing version behind the last number in use, where the newest version cannot be rebuilt.

    A handle that was opened before the damage may still commit: it gets its number first, or finds the log
    closed.
    """
    commit_id = uuid.uuid4().hex
    attempts = source.options.transaction.max_attempts
    for _ in range(attempts):
        left, listing = remnants(source), list_log(source.store, NATIVE)
        last = max((file.version for file in listing.files), default=-1)
        info = CommitInfo(
            timestamp=source.runtime.clock.now_ms(),
            operation=_OPERATION,
            operation_parameters={"repair": repair},
            engine_info=ENGINE,
            commit_id=commit_id,
            previous_commit_id=_commit_ids(source).get(last),
            table_id=None if left.metadata is None else left.metadata.id,
            version=last + 1,
        )
        lines = (closed(left.protocol or CURRENT, repair, command), info)
        data = pack(NATIVE.encode_commit(lines), source.options.compression)
        if place(Attempt(source, last + 1, data, commit_id, listing.commits.get(last))) is not None:
            return last + 1
    raise AttemptsExhaustedError(
        f"{source.store.uri}: other writers were faster {attempts} times, and the log was not closed. Try "
        "again.",
        uri=source.store.uri, attempts=attempts,
    )  # fmt: skip


def _survey_closed(survey: Survey | None, job: RepairJob, closing: Closing) -> Survey:
    """What the closed log says; what was read before it was closed, if nobody committed in between."""
    last = closing.version - 1
    if survey is None or (
        survey.contents.version != last and (job.request.up_to_version is None or job.request.from_splits)
    ):
        request = job.request
        if not request.from_splits and request.up_to_version is None:
            request = replace(request, up_to_version=last)
        survey = survey_log(replace(job, request=request))
    return replace(survey, contents=replace(survey.contents, version=min(survey.contents.version, last)))


# Putting it in place


@dataclass(frozen=True, slots=True)
class Staged:
    """The repaired log at the target, as its version files have it."""

    actions: tuple[Action, ...]
    """Protocol, metadata, and everything else but commitInfo."""
    info: CommitInfo
    closing: Closing
    whole: bool
    """Whether it has both its versions. It has not while it is being published, and while it is deleted."""


def _staged(job: RepairJob) -> Staged | None:
    """The repaired log at the target, if a swap has put one there."""
    target = native_source(job.target, job.options, job.runtime)
    try:
        state = target.read_commit(target.commit_file(STATE_VERSION))
    except NotFoundError:
        return None
    info = next((action for action in state if isinstance(action, CommitInfo)), CommitInfo())
    closing = _closing_of(info)
    if closing is None:
        return None
    try:
        first = target.read_commit(target.commit_file(0))
    except NotFoundError:
        first = ()
    actions = tuple(action for action in (*first, *state) if action is not info)
    return Staged(actions, info, closing, whole=bool(first))


def _closing_of(info: CommitInfo) -> Closing | None:
    """What the first commit of a repaired log says of the log it was made to replace."""
    stated = info.operation_parameters
    version, command = stated.get(CLOSED_VERSION), stated.get(COMMAND)
    if info.table_id is None or not isinstance(version, int) or not isinstance(command, str):
        return None
    return Closing(info.table_id, version, command)


def _done_before(source: LogSource, command: str) -> CommitInfo | None:
    """What a finished repair with UP TO VERSION says: the version it read is not there to be read again."""
    commits = list_log(source.store, NATIVE).commits
    if not commits:
        return None
    try:
        info = read_info(source, commits[min(commits)])
    except (CorruptLogError, NotFoundError):
        return None
    closing = None if info is None else _closing_of(info)
    return info if closing is not None and closing.command == command else None


def _kept_name(info: CommitInfo) -> str:
    """The directory beside a repaired log in which the old one is kept."""
    day = datetime.fromtimestamp((info.timestamp or 0) / 1000, UTC).strftime("%Y%m%d")
    return f"{NATIVE.log_dir}.{day}-{(info.table_id or '')[:_SHORT_ID]}"


def _left_by_another(source: LogSource, closing: Closing, plan: RepairPlan) -> Staged:
    """What is left to do where another run of the same command has finished and cleared the target."""
    if not _is_swapped(source, closing):
        raise NotFoundError("The repaired log has gone from the target.", uri=source.store.uri)
    return Staged((), plan.info, closing, whole=False)


def _is_swapped(source: LogSource, closing: Closing) -> bool:
    """Whether the repaired log is the table's log already."""
    try:
        newest = TransactionLog(source.store, source.options, source.runtime).metadata()
    except (CorruptLogError, NotATableError):
        return False
    return newest.id == closing.repair


def _put_in_place(source: LogSource, job: RepairJob, staged: Staged) -> RepairResult:
    """Keep the old log, switch to the repaired one, and clear away what neither needs; all of it again."""
    if staged.whole and list_log(source.store, NATIVE).floor <= staged.closing.version + 1:
        if not _is_swapped(source, staged.closing):
            _keep_old(source, staged)
        _switch(source, staged)
        _retire_old(source, staged)
        NEWS.announce(source.store.uri)
    _clear(job)
    result = _result(source, job, staged.info)
    _log.info(
        "REPAIR of %s: the repaired log is in place, the old one in %s", job.source.log_uri, result.kept_log
    )
    return result


def _result(source: LogSource, job: RepairJob, info: CommitInfo) -> RepairResult:
    valid, missing = info.operation_metrics["numAddedFiles"], info.operation_metrics["numMissingFiles"]
    return RepairResult(
        job.request.source, job.request.target, info.operation_parameters["sourceVersion"],
        valid + missing, valid, missing, SUCCESS, kept_log=f"{source.store.uri}/{_kept_name(info)}",
    )  # fmt: skip


def _keep_old(source: LogSource, staged: Staged) -> None:
    """Copy every file of the old log to a directory of its own; one that is there is not touched."""
    store = source.store
    for meta in store.list(NATIVE.log_dir):
        name = meta.path.removeprefix(f"{NATIVE.log_dir}/")
        file = NATIVE.parse_name(name, meta)
        if name.startswith(".") or (file is not None and file.version > staged.closing.version):
            continue
        try:
            data = store.get(meta.path, etag=meta.etag)
        except NotFoundError:
            continue  # a cleanup that began before the log was closed
        create_or_read(store, f"{_kept_name(staged.info)}/{name}", data)


def _switch(source: LogSource, staged: Staged) -> None:
    """Put the repaired log behind the closing version: a checkpoint, which decides, then its version file."""
    version = staged.closing.version + 1
    ids = _commit_ids(source)
    info = replace(
        staged.info,
        commit_id=uuid.UUID(staged.closing.repair).hex,
        previous_commit_id=ids.get(version - 1),
        version=version,
    )
    lines = (*staged.actions, info)
    tail = reduce_tail([(version, lines)], NATIVE)
    tail = replace(tail, commit_ids={**ids, **tail.commit_ids})
    file = LogFile(NATIVE.commit_name(version), version, "commit")
    write_native_checkpoint(Snapshot(source, State(Segment(version, None, (file,), file), None, tail)))
    data = pack(NATIVE.encode_commit(lines), source.options.compression)
    create_or_read(source.store, source.path(file.name), data)


def _retire_old(source: LogSource, staged: Staged) -> None:
    """Raise the floor to the first version of the repaired log, and delete what lies below."""
    version, listing = staged.closing.version + 1, list_log(source.store, NATIVE)
    switched = [item for item in NATIVE.checkpoints(listing.files) if item.version == version]
    if not any(readable(source, item) for item in switched):
        raise CorruptLogError(
            f"{source.store.uri}: the checkpoint of version {version} cannot be read back, so the old log "
            "was left alone.",
            uri=source.store.uri, version=version,
        )  # fmt: skip
    # Where the store does not tell its time, every version number counts as recent and stays reserved.
    plan = plan_floor(listing, version, source.time_ms() or 0)
    run_cleanup(source, plan, source.options.retention)


def _commit_ids(source: LogSource) -> dict[int, str]:
    """The ids of the last commits, by version, as far as their files can be read."""
    ids: dict[int, str] = {}
    for version, file in sorted(list_log(source.store, NATIVE).commits.items())[-KEPT_COMMIT_IDS:]:
        try:
            info = read_info(source, file)
        except (CorruptLogError, NotFoundError):
            continue
        if info is not None and info.commit_id is not None:
            ids[version] = info.commit_id
    return ids


def _clear(job: RepairJob) -> None:
    """Delete the target, version 0 and then version 1 last: until then it says which repair it is of."""
    paths = [meta.path for meta in job.target.list(NATIVE.log_dir)]
    last = [NATIVE.path(NATIVE.commit_name(version)) for version in (0, STATE_VERSION)]
    for path in (*(path for path in paths if path not in last), *last):
        job.target.delete(path)
