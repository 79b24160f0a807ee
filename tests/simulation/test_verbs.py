"""The histories of tables use every verb of `Table`."""

from __future__ import annotations

import pytest

from simulation.run import run_seeds
from simulation.tables import READS, UPKEEP, WRITES, TableActor
from simulation.verbs import NOT_SIMULATED, READ_BY, WRITTEN_BY, public_verbs


def test_every_public_verb_of_a_table_is_simulated_or_says_why_not():
    assert public_verbs() == {*WRITTEN_BY, *READ_BY, *NOT_SIMULATED}
    assert not (WRITTEN_BY.keys() | READ_BY.keys()) & NOT_SIMULATED.keys()
    assert all(NOT_SIMULATED.values())


def test_every_step_of_the_registry_can_be_drawn_and_taken():
    drawn = {*WRITES, *UPKEEP, *READS}
    steps = {step for steps in (*WRITTEN_BY.values(), *READ_BY.values()) for step in steps}
    assert steps <= drawn
    assert all(step == "txn" or hasattr(TableActor, f"do_{step}") for step in drawn)


@pytest.mark.long
def test_every_step_succeeds_in_some_of_the_first_histories():
    told = set()
    for _, outcome in run_seeds("table", range(150)):
        told |= outcome.verbs.keys()
    silent = [step for step in {*WRITES, *UPKEEP, *READS} if f"{step} acknowledged" not in told]
    assert not silent
