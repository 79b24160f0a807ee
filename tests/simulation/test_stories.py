"""Known stories of lost rows do not happen here."""

from __future__ import annotations

import pytest

from simulation.history import run_plan
from simulation.mutants import planted
from simulation.seams import deterministic
from simulation.stories import STORIES, lost_reply, ten_writers

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
