"""Every order of the steps of three writers, a checkpoint and a truncation, tried out on the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.model.protocol import MENDED, OLD, search

LATE_WRITER = {"a": ("commit",), "b": ("commit", "commit", "truncate")}
"""One writer that may pause anywhere, and one that goes on and erases the history meanwhile."""
LATE_CHECKPOINT = {**LATE_WRITER, "c": ("commit", "checkpoint")}
TWO_CLEANERS = {**LATE_WRITER, "c": ("truncate",)}


def test_the_old_rule_acknowledges_a_commit_that_nobody_will_ever_see():
    """A version number that TRUNCATE had freed is taken again."""
    found = search(LATE_WRITER, replace(OLD, answers_get_lost=False))
    assert found.broken == "a1 was acknowledged and is not in the history"
    assert found.trace[-3:] == ("b: deletes version 1", "a: puts version 1", "a: acknowledges a1")


@pytest.mark.parametrize("programs", [LATE_WRITER, TWO_CLEANERS], ids=["late writer", "two cleaners"])
def test_the_mended_rule_keeps_every_promise(programs):
    found = search(programs, MENDED)
    assert found.broken is None, "\n".join(found.trace)
    assert found.worlds > 1000


@pytest.mark.slow
def test_the_mended_rule_keeps_every_promise_beside_a_late_checkpoint():
    found = search(LATE_CHECKPOINT, MENDED)
    assert found.broken is None, "\n".join(found.trace)
    assert found.worlds > 100_000


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("look_back", "a1 was acknowledged and is not in the history"),
        ("link", "a1 was acknowledged and is not in the history"),
        ("doubt_lost_replies", "a1 is in the history, and its writer was told that nothing was committed"),
        ("checkpoint_first", "a reader finds None and the history is"),
        ("admit_doubt", "a1 is in the history, and its writer was told that nothing was committed"),
        pytest.param("floor", "is in the history twice", marks=pytest.mark.slow),
        pytest.param("follower_first", "a1 is in the history twice", marks=pytest.mark.slow),
        pytest.param("ascending", "a1 is in the history twice", marks=pytest.mark.slow),
        pytest.param("doubt_strangers", "a1 is in the history twice", marks=pytest.mark.slow),
        pytest.param("keep_own", "is in the history twice", marks=pytest.mark.slow),
    ],
)
def test_without_this_rule_a_promise_breaks(rule, broken):
    found = search(LATE_CHECKPOINT, replace(MENDED, **{rule: False}))
    assert found.broken is not None, "the rule serves nothing"
    assert broken in found.broken


def test_a_writer_whose_pause_ends_before_its_fence_goes_always_knows_the_outcome():
    """And one whose pause is longer knows it too, unless it pauses again after its put."""
    calm = replace(MENDED, answers_get_lost=False)
    assert search(LATE_WRITER, calm).unknown > 0
    fenced = search(LATE_WRITER, replace(calm, pauses_outlast_fences=False))
    assert (fenced.broken, fenced.unknown) == (None, 0)
