"""Writers that are killed lose nothing that was acknowledged and leave nothing half done."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.inquest import Finding, require_one_of
from harness.kills import Death, Scene, run_kills
from harness.verbs import BESIDE, VERBS

SEEDS = range(50)


@pytest.mark.long
@pytest.mark.sample
def test_fifty_writers_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    """Append, overwrite, delete, restore, merge, checkpoint, purge, truncate and repair, at chosen moments."""
    tally = run_kills(SEEDS, tmp_path)
    assert tally.broken == {}
    assert tally.killed >= len(SEEDS) // 2
    assert set(tally.verbs) == set(VERBS)


def test_a_seed_is_a_plan_and_the_plans_are_of_every_kind() -> None:
    plans = [Death.of(seed) for seed in range(1000)]
    assert plans == [Death.of(seed) for seed in range(1000)]
    assert {plan.verb for plan in plans} == set(VERBS)
    assert {plan.verb for plan in plans if plan.beside} == set(BESIDE)
    assert {plan.kill_at is None for plan in plans} == {True, False}


def test_the_inquest_finds_a_row_that_is_missing_and_one_that_is_there_twice(tmp_path: Path) -> None:
    """A harness that finds nothing has to show that it could."""
    scene = Scene(tmp_path)
    assert require_one_of(scene.template, [scene.base]) == scene.base
    row = next(iter(scene.base))
    for change in (1, -1):
        other = scene.base.copy()
        other[row] += change
        with pytest.raises(Finding, match=row):
            require_one_of(scene.template, [+other])
