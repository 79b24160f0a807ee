"""The index cache: entries appear and vanish whole, the size is kept, and nothing survives that should not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.errors import OptionError
from indextables.index.query.syntax import parse_query
from indextables.split import index_cache
from indextables.split.index_cache import IndexCache, cache_for, entry_key
from indextables.split.reader import forget_readers
from indextables.split.source import Source
from indextables.split.tantivy_index import IndexUnusableError
from indextables.table import Table
from support.splits import build_split

TEXT = {"indexing.typemap.message": "text"}


def split(directory, words=200):
    rows = pa.table({"message": [f"word{at} common" for at in range(words)]})
    return build_split(directory, rows, TEXT)


def opened(cache, built):
    return cache.index(Source(built.store, built.add.path), built.ref)


def size_of(directory):
    return sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())


def test_an_index_is_extracted_once(tmp_path):
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    first = opened(cache, built)
    assert opened(cache, built) is first
    built.path.unlink()
    fresh = IndexCache(str(tmp_path / "c"), 1 << 30)
    assert opened(fresh, built).rows == 200


def test_the_least_recently_used_entries_go_when_space_is_short(tmp_path):
    made = [split(tmp_path / str(at)) for at in range(4)]
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    opened(cache, made[0])
    one = size_of(tmp_path / "c")
    cache.max_bytes = int(one * 2.5)
    keys = [entry_key(Source(b.store, b.add.path), b.ref) for b in made]
    for at, built in enumerate(made[1:], 1):
        for older, key in enumerate(keys[:at]):
            manifest = tmp_path / "c" / key / "manifest.json"
            if manifest.exists():
                os.utime(manifest, (older, older))
        opened(cache, built)
    left = {path.name for path in (tmp_path / "c").iterdir()}
    assert left == set(keys[2:])
    assert size_of(tmp_path / "c") <= cache.max_bytes


def test_an_open_index_outlives_its_entry(tmp_path):
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    index = opened(cache, built)
    bounds = index.bounds(parse_query("word7", built.spec, built.schema))
    IndexCache(str(tmp_path / "c"), 1 << 30).clear()
    assert list((tmp_path / "c").iterdir()) == []
    assert index.hits(bounds.upper, 10) == [7]
    assert opened(IndexCache(str(tmp_path / "c"), 1 << 30), built).rows == 200


def test_many_threads_share_one_extraction(tmp_path, monkeypatch):
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    fetched = []
    fetch = index_cache._fetch
    monkeypatch.setattr(index_cache, "_fetch", lambda *args: fetched.append(1) or fetch(*args))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: opened(cache, built).rows, range(32)))
    assert found == [200] * 32
    assert len(fetched) == 1


_WORKER = """
import sys, pyarrow as pa
from indextables.split.index_cache import IndexCache
from indextables.split.layout import SplitRef
from indextables.split.source import Source
from indextables.storage.store import open_store
store = open_store(sys.argv[1])
for turn in range(20):
    cache = IndexCache(sys.argv[2], int(sys.argv[3]))
    for name in sys.argv[4:]:
        path, size = name.rsplit("|", 1)
        index = cache.index(Source(store, path), SplitRef(path, int(size)))
        assert index.rows == 300
print("fine")
"""


def test_many_processes_share_a_cache_that_is_too_small(tmp_path):
    """Entries are made, used and removed under each other; nobody sees half of one."""
    rows = pa.table({"message": [f"word{at}" for at in range(300)], "p": [0] * 300})
    made = [build_split(tmp_path / "t", rows, TEXT) for _ in range(5)]
    names = [f"{b.add.path}|{b.add.size}" for b in made]
    store = str(tmp_path / "t" / "table")
    command = [sys.executable, "-c", _WORKER, store, str(tmp_path / "shared"), "20000", *names]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert out.strip() == "fine", err


def test_an_entry_that_others_always_remove_is_used_all_the_same(tmp_path, monkeypatch):
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    entry, removed = cache.entry, []

    def gone(*given):
        found = entry(*given)
        shutil.rmtree(found.directory)
        removed.append(found.directory)
        return found

    monkeypatch.setattr(cache, "entry", gone)
    index = opened(cache, built)
    assert index.rows == 200
    assert len(removed) == index_cache._TRIES
    assert list((tmp_path / "c").iterdir()) == []
    bounds = index.bounds(parse_query("word7", built.spec, built.schema))
    assert index.hits(bounds.upper, 10) == [7]


def test_a_damaged_bundle_leaves_no_entry(tmp_path):
    from support.splits import flip, index_bytes

    built = split(tmp_path)
    offset, length = index_bytes(built)[0]
    flip(built.path, offset + length // 2)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    for _ in range(2):
        with pytest.raises(IndexUnusableError, match="is not what was written"):
            opened(cache, built)
    assert list((tmp_path / "c").iterdir()) == []


def test_a_half_written_entry_is_made_again(tmp_path, caplog):
    """After a crash: a file of the wrong size, or another boot and wrong bytes."""
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    opened(cache, built)
    (entry,) = (tmp_path / "c").iterdir()
    victim = next(path for path in entry.iterdir() if path.suffix == ".idx")
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-3])
    assert opened(IndexCache(str(tmp_path / "c"), 1 << 30), built).rows == 200
    assert victim.read_bytes() == whole
    (entry / "boot_id").write_text("another boot")
    victim.write_bytes(bytes(len(whole)))
    assert opened(IndexCache(str(tmp_path / "c"), 1 << 30), built).rows == 200
    assert victim.read_bytes() == whole
    assert "extracted again" in caplog.text


def test_what_dead_processes_left_is_taken_away(tmp_path):
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    abandoned = tmp_path / "c" / "making-0"
    abandoned.mkdir()
    (abandoned / "x").write_text("x")
    recent = tmp_path / "c" / "making-1"
    recent.mkdir()
    long_ago = time.time() - 2 * index_cache.ABANDONED_S
    os.utime(abandoned, (long_ago, long_ago))
    opened(cache, split(tmp_path))
    assert not abandoned.exists()
    assert recent.exists()


def test_a_temporary_cache_goes_with_its_process():
    script = "from indextables.split.index_cache import cache_for\nprint(cache_for(None, 1).directory)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert not Path(done.stdout.strip()).exists()


def test_a_process_has_one_cache_per_directory(tmp_path):
    assert cache_for(str(tmp_path), 5) is cache_for(str(tmp_path), 6)
    assert cache_for(str(tmp_path), 6).max_bytes == 6


def test_a_directory_that_was_cleaned_meanwhile_is_made_again(tmp_path):
    """What cleans temporary directories does not know that a process still uses them."""
    built, later = split(tmp_path / "a"), split(tmp_path / "b")
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    opened(cache, built)
    shutil.rmtree(tmp_path / "c")
    assert opened(cache, later).rows == 200
    assert cache.entry(Source(built.store, built.add.path), built.ref).manifest.rows == 200


def test_an_index_that_cannot_be_extracted_is_unusable_for_now_only(tmp_path):
    built = split(tmp_path)
    cache = IndexCache(str(tmp_path / "c"), 1 << 30)
    shutil.rmtree(tmp_path / "c")
    (tmp_path / "c").write_text("in the way")
    with pytest.raises(IndexUnusableError, match=r"cannot be extracted to .*indexCache\.dir"):
        opened(cache, built)
    (tmp_path / "c").unlink()
    assert opened(cache, built).rows == 200


def test_a_directory_that_cannot_be_made_is_an_error_of_the_option(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OptionError, match=r"indexCache\.dir"):
        IndexCache(str(tmp_path / "file" / "c"), 1 << 30)


def test_a_search_goes_on_by_scanning_when_the_cache_is_lost_under_it(tmp_path):
    """The index is derived data: without it the rows themselves answer."""
    words = pa.table({"id": range(300), "message": [f"word{at} common" for at in range(300)]})
    cache = tmp_path / "c"
    options = {**TEXT, "indexCache.dir": str(cache)}
    table = Table.create(tmp_path / "t", words.schema, options=options)
    table.append(words)
    wanted = {"id": [7], "message": ["word7 common"]}
    assert table.search("word7").read_all().to_pydict() == wanted
    shutil.rmtree(cache)
    cache.write_text("in the way")
    forget_readers()
    assert table.search("word7").read_all().to_pydict() == wanted
    table.append(pa.table({"id": [300], "message": ["word7 again"]}))
    assert sorted(table.search("word7").read_all()["id"].to_pylist()) == [7, 300]
