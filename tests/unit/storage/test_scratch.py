"""Scratch directories: they go with their process, and after a killed one with the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from indextables.storage import scratch as scratch_module
from indextables.storage.scratch import discard, scratch, sweep

HOLD = """
import sys
from indextables.storage.scratch import scratch
print(scratch("build"), scratch("index"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A directory for temporary files of this process and those it starts."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(scratch_module.tempfile, "tempdir", str(place))
    return place


def started(script, *arguments, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables},
    )  # fmt: skip


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_what_a_killed_process_left_goes_with_the_next_one(root):
    process = started(HOLD)
    left = [Path(name) for name in process.stdout.readline().split()]
    assert sweep(str(root)) == 0
    assert all(path.is_dir() for path in left)
    killed(process)
    assert all(path.is_dir() for path in left)
    mine = scratch("build")
    assert sorted(root.iterdir()) == [Path(mine)]
    discard(mine)


def test_local_directories_that_a_user_named_are_not_taken_for_an_executor(root, tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "disk"))
    made = Path(scratch("build"))
    assert made.parent == root
    discard(str(made))
    assert not made.exists()


def test_sweeping_leaves_what_is_not_ours(root):
    for name in ("indextables-index-a8hzi5ja", "indextables-demo-xyz", "other-build-12-abc"):
        (root / name).mkdir()
    (root / "indextables-build-12-file").write_text("a file")
    (root / "elsewhere").mkdir()
    (root / "indextables-build-12-link").symlink_to(root / "elsewhere")
    assert sweep(str(root)) == 0
    assert len(list(root.iterdir())) == 6


def test_a_directory_swept_before_it_was_locked_is_made_again(root, monkeypatch):
    real, swept = scratch_module.tempfile.mkdtemp, []

    def overtaken(**given):
        made = real(**given)
        if not swept:
            swept.append(made)
            assert sweep(str(root)) == 1
        return made

    monkeypatch.setattr(scratch_module.tempfile, "mkdtemp", overtaken)
    made = scratch("index")
    assert made not in swept
    assert Path(made).is_dir()
    discard(made)
