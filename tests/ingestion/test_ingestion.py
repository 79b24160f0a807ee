"""Lines and files arrive once, through rotations of the log and kills of the processes that bring them in."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harness.nursery import Nursery
from ingestion.rotation import Rotation
from ingestion.run import Run, Tally


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_what_is_written_arrives_once_though_processes_are_killed(tmp_path, seed):
    tally = Tally()
    with Nursery() as nursery:
        assert Run(seed, tmp_path, nursery, tally).go() == []
    assert tally.arrived
    assert tally.killed
    assert tally.loads_landed


@pytest.fixture
def rotation(tmp_path):
    """A log that was rotated several times, and read whole by nobody in particular."""
    written = []
    rotation = Rotation(tmp_path, random.Random(3), lambda: written)
    while len(rotation.generations) < 5:
        written[:] = [line for item in rotation.generations for line in item.lines]
        rotation.step()
    return rotation


@pytest.fixture
def arrived(rotation):
    """A table that has every line."""
    return Counter(line for item in rotation.generations for line in item.lines)


def test_a_table_with_every_line_is_right(rotation, arrived):
    assert rotation.findings(arrived) == []
    assert rotation.excused(arrived) == 0


def test_a_line_that_is_there_twice_is_found(rotation, arrived):
    arrived[next(iter(arrived))] += 1
    assert "is there 2 times" in rotation.findings(arrived)[0]


def test_a_line_that_was_cut_or_never_written_is_found(rotation, arrived):
    arrived["g0n0 cut"] += 1
    assert rotation.findings(arrived) == ["g0n0 cut was never written"]


def test_a_line_that_is_missing_from_a_file_that_is_still_there_is_found(rotation, arrived):
    known = next(item for item in rotation.generations if item.is_known and not item.gone)
    del arrived[known.lines[-1]]
    assert f"generation {known.number} lacks 1 lines" in rotation.findings(arrived)[0]


def test_a_file_that_was_read_in_part_must_arrive_whole_though_nobody_knew_it_when_it_was_rotated(
    rotation, arrived
):
    item = next(item for item in rotation.generations if not item.gone and len(item.lines) > 1)
    item.is_known = False
    for line in item.lines[1:]:
        del arrived[line]
    assert rotation.findings(arrived)


def test_what_was_gone_before_anybody_read_it_may_be_missing(rotation, arrived):
    item = rotation.generations[0]
    for line in item.lines:
        del arrived[line]
    item.is_known = False
    assert rotation.findings(arrived) == []
    item.is_known, item.gone = True, True
    assert rotation.findings(arrived) == []
    assert rotation.excused(arrived) == len(item.lines)


def test_the_files_hold_what_is_said_to_be_written(rotation, tmp_path):
    text = "".join(file.read_text() for file in tmp_path.iterdir() if not file.is_symlink())
    for item in rotation.generations:
        assert item.gone or all(text.count(f"{line}\n") == 1 for line in item.lines)
