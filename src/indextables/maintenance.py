"""Verbs on a path instead of a Table, for tables that may be too damaged to open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indextables.connection import options_and_runtime
from indextables.ops.progress import in_notebook

if TYPE_CHECKING:
    from indextables.ops.maintain.check.findings import CheckResult
    from indextables.ops.outcomes import RepairResult
    from indextables.options import Options


def check(uri: str, options: Mapping[str, Any] | Options | None = None, spark: Any = None) -> CheckResult:
    """Say what is wrong with the table at a path, what follows from it, and which command helps.

    Nothing is changed, and the table need not be one that can be opened. `repair.validateSplits`
    says how closely splits are looked at: not at all (`false`), by existence and size (`true`, the
    default), or also by footer, row count and index checksums (`deep`).
    """
    from indextables.ops.maintain.check.run import run_check

    return run_check(uri, *options_and_runtime(spark, options, uri), in_notebook())


def repair_log(
    source: str,
    target: str,
    options: Mapping[str, Any] | Options | None = None,
    spark: Any = None,
    *,
    from_splits: bool = False,
    up_to_version: int | None = None,
    swap: bool = False,
) -> RepairResult:
    """Write a clean copy of the log directory `source` to the empty directory `target`.

    The source is not changed without `swap`, which puts the clean log in the place of `source`: no
    writer can commit meanwhile, the old log is kept beside it (`result.kept_log`), and if anything
    interrupts it, the same call finishes it. A source that cannot be read gives a result whose status begins
    with "ERROR"; a target that is not empty raises. `from_splits` makes the log anew from the
    footers of the splits, `up_to_version` leaves out everything committed after that version. With
    `spark`, its configuration counts and large tables are checked on its executors.
    """
    from indextables.ops.maintain.repair.repair import RepairRequest
    from indextables.ops.maintain.repair.run import run_repair

    request = RepairRequest(source, target, from_splits, up_to_version, swap)
    return run_repair(request, *options_and_runtime(spark, options, source), in_notebook())
