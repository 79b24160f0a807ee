"""Small batches from processes that are killed: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.small_batches import run

pytestmark = pytest.mark.long


def test_batches_of_killed_processes_are_there_whole_and_once(tmp_path: Path) -> None:
    figures = run(25, tmp_path)
    assert figures["failures"] == []
    assert (figures["lost"], figures["doubled"], figures["torn"]) == (0, 0, 0)
    assert figures["kills"] > 3
    assert figures["acknowledged"] > 0
    assert figures["openings"] > 0
