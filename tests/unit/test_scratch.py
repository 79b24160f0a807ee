"""Scratch directories: they go with their process, and after a killed one with the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.split.index_cache import IndexCache
from indextables.split.source import Source
from indextables.storage import scratch as scratch_module
from indextables.storage.scratch import discard, scratch, sweep
from support.splits import build_split

HOLD = """
import sys
from indextables.storage.scratch import scratch
print(scratch("build"), scratch("index"), flush=True)
sys.stdin.read()
"""
SEARCH = """
import sys
import pyarrow as pa
from indextables.split.index_cache import cache_for
from indextables.table import Table
table = Table.create(sys.argv[1], pa.schema([("m", pa.string())]), options={"indexing.typemap.m": "text"})
if not table.count():
    table.append(pa.table({"m": ["red fox", "blue dog"]}))
assert table.count(query="fox") == 1
print(cache_for(None, 1 << 30).directory, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A directory for temporary files of this process and those it starts."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(scratch_module.tempfile, "tempdir", str(place))
    monkeypatch.setattr(scratch_module, "_swept", {})
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


def test_the_cache_of_a_killed_search_goes_with_the_next_search(root, tmp_path):
    """The whole way: a table searched by a process that never reaches its exit hooks."""
    first = started(SEARCH, str(tmp_path / "t"))
    left = Path(first.stdout.readline().strip())
    assert left.parent == root
    assert any(left.iterdir())
    killed(first)
    second = started(SEARCH, str(tmp_path / "t"))
    now = Path(second.stdout.readline().strip())
    assert list(root.iterdir()) == [now]
    second.communicate("")
    assert list(root.iterdir()) == []


def test_workers_of_one_spark_executor_share_one_cache(root, tmp_path):
    """Spark ends its workers by signal; their cache stays for the others and goes with Spark's own files."""
    blocks = tmp_path / "blockmgr-1f0c"
    blocks.mkdir()
    places = []
    for _ in range(2):
        worker = started(SEARCH, str(tmp_path / "t"), SPARK_LOCAL_DIRS=f"/nowhere/blockmgr-0,{blocks}")
        places.append(worker.stdout.readline().strip())
        killed(worker)
    assert places == [str(blocks / "indextables-index")] * 2
    (entry,) = (blocks / "indextables-index").iterdir()
    assert (entry / "manifest.json").exists()
    assert list(root.iterdir()) == []


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


def test_a_half_extracted_entry_of_a_killed_process_is_no_entry(tmp_path):
    """Survives a crash: an entry appears by renaming, so what a crash leaves is never taken for one."""
    built = build_split(tmp_path, pa.table({"message": ["red fox"]}), {"indexing.typemap.message": "text"})
    cache = tmp_path / "c"
    (cache / "making-0123").mkdir(parents=True)
    (cache / "making-0123" / "manifest.json").write_text("{}")
    index = IndexCache(str(cache), 1 << 30).index(Source(built.store, built.add.path), built.ref)
    assert index is not None
    assert index.rows == 1
