"""A short soak: rows stay, and what the process holds does not grow with the number of commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.soak import run_soak

pytestmark = pytest.mark.long
MOST_THREADS = 150


def test_readers_and_writers_side_by_side_lose_nothing_and_hold_on_to_nothing(tmp_path: Path) -> None:
    figures = run_soak(str(tmp_path / "t"), 20)
    assert (figures["failures"], figures["lost"], figures["doubled"]) == ([], 0, 0)
    assert figures["commits"] > 10
    assert figures["most_threads"] < MOST_THREADS
    assert max(figures["open_files"]) < 2 * min(figures["open_files"])
