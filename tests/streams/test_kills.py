"""Streams that are killed copy every row once; a sample of the stories that `streams.kills` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.kills import Finding, Tally, require_once, run_story


@pytest.mark.spark
@pytest.mark.slow
def test_a_stream_that_is_killed_copies_every_row_once(tmp_path: Path) -> None:
    tally = Tally()
    run_story(tmp_path, ["ours", "delta"], range(2), tally)
    assert tally.kills == {"ours": 2, "delta": 2}
    assert tally.rows >= 18


@pytest.mark.parametrize(
    ("copied", "expected"), [([0, 2], r"\[1\] are lost"), ([0, 1, 1, 2], r"\[1\] are there twice")]
)
def test_a_row_that_is_missing_or_there_twice_is_noticed(copied: list[int], expected: str) -> None:
    require_once(3, [2, 0, 1])
    with pytest.raises(Finding, match=expected):
        require_once(3, copied)
