"""Running a repair: the checks before it, the repair itself, and what it reports.

What cannot be read is reported as a row whose status begins with ERROR; what would do harm raises.
"""

from __future__ import annotations

import logging
import os

from indextables.errors import CommandError, CorruptLogError, Error, OptionError, TableError
from indextables.log.delta.paths import LOG_DIR as DELTA_LOG
from indextables.ops.maintain.repair.contents import LogContents
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import (
    RepairJob,
    RepairPlan,
    RepairRequest,
    all_missing,
    check_plan,
    of_delta,
    publish,
    require_empty,
    survey_log,
)
from indextables.ops.maintain.repair.swap import swap
from indextables.ops.outcomes import SUCCESS, RepairResult
from indextables.ops.progress import Progress, silent
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime

_log = logging.getLogger(__name__)
_REFUSED = (TableError, OptionError, CommandError)


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
        raise of_delta(job.source)
    contents = plan = None
    try:
        if job.request.swap:
            return swap(job)
        require_empty(job.target)
        survey = survey_log(job)
        contents = survey.contents
        plan = survey.plan()
        check_plan(survey.job, plan)
        publish(survey.job, plan)
    except _REFUSED:
        raise
    except Error as error:
        _log.error("REPAIR of %s failed: %s", job.request.source, error)
        return _result(job, contents, plan, f"ERROR: {error.message}{_ways_out(job.request, error)}")
    return _result(job, contents, plan, all_missing(job, plan) or SUCCESS)


def _ways_out(request: RepairRequest, error: Error) -> str:
    """What REPAIR itself can still do where the log is damaged."""
    if request.from_splits or not isinstance(error, CorruptLogError):
        return ""
    return (
        " REPAIR ... UP TO VERSION n reads the log as it was before the damage; REPAIR ... FROM SPLITS makes "
        "a log from the split files alone."
    )


def _result(
    job: RepairJob, contents: LogContents | None, plan: RepairPlan | None, status: str
) -> RepairResult:
    source, target = job.request.source, job.request.target
    if contents is None or plan is None:
        return RepairResult(source, target, -1, 0, 0, 0, status)
    missing = len(plan.missing)
    return RepairResult(
        source, target, contents.version, plan.valid + missing, plan.valid, missing, status, plan.missing
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
