"""Histories of tables under several writers, readers and faults: no promise is broken in any of them."""

from __future__ import annotations

import pytest

from simulation.history import TOPICS
from simulation.run import explain, run_seeds

pytestmark = pytest.mark.slow

LOG_CHUNKS = [range(at, at + 200) for at in range(0, 1600, 200)]
TABLE_CHUNKS = [range(at, at + 50) for at in range(0, 150, 50)]


def run_all(level, seeds):
    for seed, outcome in run_seeds(level, seeds):
        assert not outcome.violations, explain(level, seed)


def name_of(seeds):
    return f"{seeds.start}-{seeds.stop - 1}"


@pytest.mark.parametrize("seeds", LOG_CHUNKS, ids=name_of)
def test_no_history_of_a_log_breaks_a_promise(seeds):
    run_all("log", seeds)


@pytest.mark.parametrize("seeds", TABLE_CHUNKS, ids=name_of)
def test_no_history_of_a_table_breaks_a_promise(seeds):
    run_all("table", seeds)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_history_about_what_is_rare_breaks_a_promise(topic):
    run_all(topic, range(100))
