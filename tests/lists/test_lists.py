"""Appends to lists are serializable, in simulated histories and among processes that are killed."""

from __future__ import annotations

import pytest

from harness.nursery import Nursery
from lists.processes import Tally, run_seed
from lists.workload import FORMS
from simulation.run import explain, run_seeds

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seeds", [range(60), range(60, 120)], ids=["0-59", "60-119"])
def test_no_simulated_history_of_lists_has_an_anomaly(seeds):
    for seed, outcome in run_seeds("lists", seeds):
        assert not outcome.violations, explain("lists", seed)


@pytest.mark.parametrize(
    ("mutant", "anomaly"),
    [
        ("no_condition", "lost append"),
        ("lost_reply_is_failure", "G1a"),
        ("update_without_sources", "duplicate element"),
        ("expected_version_ignored", "incompatible orders"),
        ("cache_trusted_at_commit", "G-single-realtime"),
        ("hint_without_listing", "lost append"),
    ],
)
def test_a_planted_bug_shows_as_the_anomaly_that_it_is(mutant, anomaly):
    promises = {
        violation.promise
        for _, outcome in run_seeds("lists", range(12), mutant)
        for violation in outcome.violations
    }
    assert f"lists: {anomaly}" in promises


@pytest.mark.parametrize("seed", range(len(FORMS)), ids=FORMS)
def test_processes_of_which_some_are_killed_show_no_anomaly(tmp_path, seed):
    tally = Tally()
    with Nursery() as nursery:
        assert run_seed(nursery, tmp_path, seed, tally) == []
    assert tally.appends > 10
    assert tally.reads > 10


def test_what_is_taken_away_behind_the_back_of_the_processes_is_found(tmp_path):
    with Nursery() as nursery:
        broken = run_seed(nursery, tmp_path, 0, Tally(), lambda table: table.delete("n = 1"))
    assert any(found.startswith("lost append") for found in broken)
