"""A history replays exactly, and one that breaks a promise is cut down and shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.run import explain, plan_of, run_seeds, shrink, smaller
from simulation.seams import deterministic

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]


def test_a_seed_replays_byte_for_byte_in_another_process():
    script = (
        "from simulation.run import run_seeds\n"
        "print(*[outcome.digest for level in ('log', 'table', 'lists')"
        " for _, outcome in run_seeds(level, range(3, 9))])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=TESTS,
            env={**os.environ, "PYTHONHASHSEED": number},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(digests) == 1


def test_a_failing_seed_is_shrunk_to_a_plan_of_which_nothing_can_be_left_out():
    from simulation.history import run_plan
    from simulation.mutants import planted

    with deterministic() as chance, planted("no_condition"):
        seed, promise = next(
            (seed, outcome.violations[0].promise)
            for seed in range(100)
            if (outcome := run_plan(plan_of("log", seed), chance)).violations
        )
        whole = plan_of("log", seed)
        least = shrink(whole, promise, chance)
        assert sum(len(part.steps) for part in least.parts) < sum(len(part.steps) for part in whole.parts)
        for plan in smaller(least):
            outcome = run_plan(plan, chance)
            assert promise not in {violation.promise for violation in outcome.violations}


def test_a_failing_seed_is_shown_with_its_trace_and_the_command_that_runs_it_again():
    shown = next(
        explain("log", seed, "no_condition")
        for seed, outcome in run_seeds("log", range(100), "no_condition")
        if outcome.violations
    )
    assert "make simulate SEEDS=" in shown
    assert "MUTANT=no_condition" in shown
    assert "put _transaction_log/" in shown
    assert "broken: " in shown
