"""A lost executor and a speculative twin, on a standalone cluster of two workers: nothing is visible twice or half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="finds its executor through /proc")
def test_a_lost_executor_and_a_speculative_twin_leave_every_row_once(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(tests), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", "support.spark_losses", str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    for found in said.values():
        assert (found["rows"], found["distinct"], found["last"]) == (200_000, 200_000, 199_999)
        assert found["version"] == 1
    assert said["executor"]["marks"] == ["died", "over"]
    assert said["straggler"]["marks"] == ["over", "straggler", "twin"]
