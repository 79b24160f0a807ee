"""The simulation notices every planted bug within the number of histories that it names."""

from __future__ import annotations

import pytest

from simulation.mutants import MUTANTS
from simulation.run import run_seeds

pytestmark = pytest.mark.slow


LONG = {"checkpoint_met_itself", "update_discards_when_unknown"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in MUTANTS]
)
def test_the_planted_bug_is_caught(name):
    found = MUTANTS[name]
    seeds = run_seeds(found.level, range(found.within), name)
    caught = next((seed for seed, outcome in seeds if outcome.violations), None)
    assert caught is not None, f"not caught within {found.within} histories: {found.what}"


def test_there_are_at_least_twenty_planted_bugs_and_each_is_told_in_words():
    assert len(MUTANTS) >= 20
    assert all(found.what for found in MUTANTS.values())
