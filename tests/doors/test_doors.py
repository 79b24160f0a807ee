"""The same question through every door has the same answer, which plain Python gives too."""

from __future__ import annotations

from pathlib import Path

import pytest

from doors.doors import DOORS
from doors.run import ask_table
from support.sampled import first_of

TABLES, QUESTIONS = 25, 20
RARE = {"delete", "serve, span of time", "elasticsearch, in the address"}


@pytest.mark.slow
@pytest.mark.parametrize("first", first_of(1, range(0, TABLES, 5)))
def test_every_door_answers_as_plain_python_does(tmp_path: Path, first: int) -> None:
    answered: set[str] = set()
    for number in range(first, first + 5):
        tally = ask_table(number, range(QUESTIONS), tmp_path)
        assert not tally.differences, "\n".join(tally.differences[:3])
        answered |= set(tally.answers)
    assert answered >= set(DOORS) - RARE, "a door was never asked"
