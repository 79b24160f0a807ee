"""What a commit says in the log of the process once it is history: truncated statistics and skipped files."""

from __future__ import annotations

import logging

from indextables.log.commit.conflicts import CommitPlan
from indextables.log.skips import iso
from indextables.model.actions import Action, AddAction, SkipAction
from indextables.model.truncation import warn_of_strategies
from indextables.options import StatsOptions

_log = logging.getLogger(__name__)


def report(plan: CommitPlan, actions: tuple[Action, ...], settings: StatsOptions) -> None:
    """Report one commit, once."""
    plan.all_truncated().report()
    if any(isinstance(action, AddAction) for action in actions):
        warn_of_strategies(settings)
    for action in actions:
        if isinstance(action, SkipAction):
            _log.info(
                "Recorded skipped file: %s (skip count: %d, retry after: %s)",
                action.path, action.skip_count, iso(action.retry_after),
            )  # fmt: skip
