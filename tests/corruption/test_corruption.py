"""One damaged file: every question gives the truth or an error of ours, never a third thing."""

from __future__ import annotations

import random

import pytest

from corruption.damage import KINDS, inflict, kind_of
from corruption.page import render
from corruption.run import run_seeds
from corruption.tables import make
from simulation.page import PAGE
from support.sampled import first_of

SEEDS = [range(150), range(150, 1000)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", first_of(1, SEEDS), ids=str)
def test_a_damaged_file_gives_the_truth_or_an_error_and_never_a_third_thing(seeds):
    tally = run_seeds(seeds)
    assert [str(violation) for violation in tally.violations] == []
    assert tally.seeds == len(seeds)
    assert min(tally.questions["truth"], tally.questions["error"]) > len(seeds) / 4


def test_the_same_seeds_are_the_same_corruptions():
    assert run_seeds(range(5, 10)) == run_seeds(range(5, 10))


def test_every_kind_of_file_suffers_every_kind_of_damage():
    template, other = make("parts"), make("parts", 500)
    done = set()
    for seed in range(2000):
        changed, damage = inflict(template.files, other.files, random.Random(seed))
        done.add((damage.file_kind, damage.kind))
        assert changed != template.files or damage.file_kind in {"version 0", "hint"}
    kinds = {kind_of(path) for path in template.files}
    assert kinds == {"version 0", "version", "checkpoint", "part", "hint", "split"}
    assert done == {(file, kind) for file in kinds for kind in KINDS}


def test_the_harness_notices_a_reader_that_does_not_check(monkeypatch):
    """Without the binding of commits to their version, a copied version gives other rows."""
    import indextables.log.format.dialect as dialect

    monkeypatch.setattr(dialect, "check_version", lambda *_: None)
    assert run_seeds(range(120)).violations


def test_the_page_holds_the_figures_of_the_last_run():
    page = PAGE.read_text()
    assert page == render(page), "run `python -m corruption.page` from tests"
