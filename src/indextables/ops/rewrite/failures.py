"""Records splits that an operation could not handle, so that it leaves them alone for a while.

All failures of a run go into one commit. The files stay live and readable: a skip never
removes a row from the table.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.skips import next_skip
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, SkipAction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A split that could not be handled, and why."""

    add: AddAction
    reason: str


def record_failures(log: TransactionLog, failures: Sequence[Failure], operation: str) -> int | None:
    """Record all failures of a run in one commit; returns its version, or None when there were none."""
    if not failures:
        return None
    for failure in failures:
        _log.warning("%s leaves %s alone: %s", operation, failure.add.path, failure.reason)

    def build(current: Snapshot) -> list[SkipAction]:
        known, now_ms = current.skips, log.runtime.clock.now_ms()
        return [
            next_skip(
                known.get(failure.add.path),
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
