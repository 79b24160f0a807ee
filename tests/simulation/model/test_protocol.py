"""Every order of the steps of writers, cleaners, a checkpoint and a reader, tried out on the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.model.protocol import CLOCKED, LOCAL, MENDED, OLD, search
from support.sampled import first_of

LATE_WRITER = {"a": ("commit",), "b": ("commit", "commit", "truncate")}
"""One writer that may pause anywhere, and one that goes on and erases the history meanwhile."""
TWO_TRUNCATIONS = {"a": ("commit",), "b": ("commit", "truncate", "commit", "truncate")}
LATE_CHECKPOINT = {**LATE_WRITER, "c": ("checkpoint",)}
READER = {**LATE_WRITER, "r": ("read",)}
TWO_CLEANERS = {**LATE_WRITER, "t": ("truncate",)}
THREE_WRITERS = {**LATE_WRITER, "d": ("commit",)}
CALM = {"answers_get_lost": False, "store_settles": False, "echo": False, "looks_fail": False}
"""Surroundings without faults; pauses have any length all the same."""
LOST, TWICE = "a1 was acknowledged and is not in the history", "a1 is in the history twice"
FALSELY_DENIED = "a1 is in the history, and its writer was told that nothing was committed"


def test_the_old_rule_acknowledges_a_commit_that_nobody_will_ever_see():
    """A version number that TRUNCATE had freed is taken again."""
    found = search(LATE_WRITER, replace(OLD, **CALM))
    assert found.broken == LOST
    assert found.trace[-3:] == ("b: deletes version 1", "a: puts version 1", "a: acknowledges a1")


@pytest.mark.parametrize(
    ("programs", "surroundings", "broken"),
    [
        pytest.param(LATE_WRITER, {"looks_fail": True}, LOST, id="a failing look is believed"),
        pytest.param(LATE_WRITER, {"echo": True}, TWICE, id="our own file is believed"),
        pytest.param(READER, {}, "a reader got version 1 as", id="a late put is read"),
        pytest.param(
            THREE_WRITERS, {"answers_get_lost": True, "store_settles": True}, TWICE,
            id="a stranger is believed", marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_the_rule_that_believed_a_clock_breaks_in_four_ways(programs, surroundings, broken):
    found = search(programs, replace(CLOCKED, **{**CALM, **surroundings}))
    assert found.broken is not None
    assert broken in found.broken


@pytest.mark.parametrize("rules", [MENDED, LOCAL], ids=["listing", "local disk"])
@pytest.mark.parametrize(
    ("programs", "at_least"),
    [
        pytest.param(LATE_WRITER, 7_000, id="late writer"),
        pytest.param(TWO_TRUNCATIONS, 18_000, id="two truncations"),
        pytest.param(LATE_CHECKPOINT, 75_000, id="late checkpoint", marks=pytest.mark.slow),
        pytest.param(READER, 140_000, id="reader", marks=pytest.mark.slow),
    ],
)
def test_the_mended_rule_keeps_every_promise(programs, rules, at_least):
    found = search(programs, rules)
    assert found.broken is None, "\n".join(found.trace)
    assert found.worlds > at_least


@pytest.mark.long
def test_the_mended_rule_keeps_every_promise_beside_a_second_cleaner():
    found = search(TWO_CLEANERS, MENDED)
    assert found.broken is None, "\n".join(found.trace)
    assert found.worlds > 600_000


@pytest.mark.slow
@pytest.mark.parametrize("fault", first_of(3, [None, "echo", "looks_fail", "answers_get_lost"]))
def test_the_mended_rule_keeps_every_promise_among_three_writers(fault):
    """One kind of fault at a time: all of them at once take several minutes."""
    found = search(THREE_WRITERS, replace(MENDED, **{**CALM, **({fault: True} if fault else {})}))
    assert found.broken is None, "\n".join(found.trace)


@pytest.mark.parametrize(
    ("programs", "without", "broken"),
    [
        pytest.param(LATE_WRITER, {"look": False}, LOST, id="look"),
        pytest.param(LATE_WRITER, {"doubt_failed_looks": False}, LOST, id="doubt failed looks"),
        pytest.param(LATE_WRITER, {"doubt_lost_replies": False}, FALSELY_DENIED, id="doubt lost replies"),
        pytest.param(TWO_TRUNCATIONS, {"doubt_own_file": False, "window": 1}, TWICE, id="doubt own file"),
        pytest.param(TWO_TRUNCATIONS, {"admit_doubt": False}, FALSELY_DENIED, id="admit doubt"),
        pytest.param(LATE_WRITER, {"ask_floor": False}, TWICE, id="ask the floor"),
        pytest.param(LATE_WRITER, {"link": False, "window": 0}, LOST, id="link"),
        pytest.param(
            LATE_WRITER, {"floor_first": False}, "is offered and cannot be opened", id="floor first"
        ),
        pytest.param(LATE_WRITER, {"checkpoint_first": False}, "a reader finds None", id="checkpoint first"),
        pytest.param(LATE_WRITER, {"ascending": False, "probe": True}, LOST, id="oldest first, local disk"),
        pytest.param(
            READER,
            {"bound_reads": False},
            "a reader got version 1 as",
            id="bound reads",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            THREE_WRITERS, {"doubt_strangers": False}, TWICE, id="doubt strangers", marks=pytest.mark.slow
        ),
    ],
)
def test_without_this_rule_a_promise_breaks(programs, without, broken):
    found = search(programs, replace(MENDED, **without))
    assert found.broken is not None, "the rule serves nothing"
    assert broken in found.broken


@pytest.mark.parametrize("programs", [LATE_WRITER, TWO_TRUNCATIONS], ids=["late writer", "two truncations"])
def test_without_faults_a_writer_within_the_window_always_knows_the_outcome(programs):
    """However long it pauses: the checkpoint at the floor names its commit."""
    whole = replace(MENDED, **CALM, window=9)
    assert (search(programs, whole).broken, search(programs, whole).unknown) == (None, 0)
    assert search(programs, replace(whole, window=0)).unknown > 0
