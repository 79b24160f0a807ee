"""Known stories of lost rows do not happen here."""

from __future__ import annotations

import pytest

from indextables.errors import VersionNotFoundError
from simulation.history import run_plan
from simulation.intents import FAILED, Intent
from simulation.mutants import planted
from simulation.oracle import Truth
from simulation.seams import deterministic
from simulation.stories import STORIES, erased_while_planned, lost_reply, ten_writers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "seeds"), [("ten_writers", 2), ("retried_delete", 20), ("lost_reply", 40), ("freed_number", 100)]
)
def test_the_story_loses_nothing(name, seeds):
    with deterministic() as chance:
        for seed in range(seeds):
            outcome = run_plan(STORIES[name](seed), chance)
            assert not outcome.violations, f"{name} {seed}: {outcome.violations}"
            assert outcome.commits > 1


def test_ten_writers_who_are_told_of_success_have_each_made_a_version():
    with deterministic() as chance:
        outcome = run_plan(ten_writers(0), chance)
    assert outcome.verbs["append acknowledged"] >= 90
    assert outcome.commits == outcome.verbs["append acknowledged"] + 1


@pytest.mark.parametrize("name", ["no_condition", "lost_reply_is_failure", "lost_reply_is_conflict"])
def test_the_story_of_lost_replies_is_not_told_in_vain(name):
    with deterministic() as chance, planted(name):
        assert any(run_plan(lost_reply(seed), chance).violations for seed in range(40))


def test_a_change_whose_version_is_erased_while_it_reads_fails_and_commits_nothing():
    with deterministic() as chance:
        outcomes = [run_plan(erased_while_planned(seed), chance) for seed in range(30)]
    assert not [outcome.violations for outcome in outcomes if outcome.violations]
    assert any(
        {"update failed", "delete failed", "upsert failed"} & outcome.verbs.keys() for outcome in outcomes
    )


@pytest.mark.parametrize(
    ("verb", "erased_ms", "broken"),
    [
        ("update", 15, []),
        ("update", 5, ["nothing fails without a cause"]),
        ("append", 15, ["nothing fails without a cause"]),
    ],
)
def test_a_version_that_is_gone_is_a_cause_only_for_who_read_while_it_was_erased(verb, erased_ms, broken):
    intent = Intent(0, "a", verb, began_ms=10, outcome=FAILED, ended_ms=20)
    intent.error = VersionNotFoundError("gone")
    truth = Truth(lambda _path, _data: (), erased_ms=[erased_ms])
    truth.check_told([intent])
    assert [violation.promise for violation in truth.violations] == broken
