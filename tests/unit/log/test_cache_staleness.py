"""What a handle remembers, for how long, and how it notices that things changed (docs/behaviour.md, F)."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from indextables.errors import NotATableError
from indextables.log.caches import NEWS
from indextables.storage.stores.local import LocalStore
from indextables.storage.stores.memory import MemoryStore
from support.builder import LogBuilder, add
from support.faults import CountingStore

NAMES = {"protocol", "metadata", "versions", "files", "version_list"}


@pytest.fixture
def counted():
    inner = LogBuilder().create().append("a").append("b")
    return inner, CountingStore(inner.store)


def handle(builder, store, **options):
    return LogBuilder(store, options, builder.clock).log()


class ElsewhereStore:
    """The same objects under another address: what another process sees and changes."""

    def __init__(self, inner):
        self.inner = inner
        self.uri = inner.uri + "#elsewhere"

    def __getattr__(self, name):
        return getattr(self.inner, name)


def elsewhere(builder):
    return LogBuilder(ElsewhereStore(builder.store), builder.options, builder.clock)


def test_caching_is_on_and_counts_five_caches(counted):
    """F1, F2: nothing asked is a rate of 0.0."""
    builder, store = counted
    stats = handle(builder, store).cache_stats()
    assert stats.keys() == NAMES
    assert {item.hit_rate for item in stats.values()} == {0.0}


def test_hits_and_misses_are_counted_by_cache(counted):
    """F2."""
    builder, store = counted
    log = handle(builder, store)
    for _ in range(3):
        log.protocol(), log.metadata(), log.list_files(), log.versions(), log.read_version(2)
    stats = log.cache_stats()
    for name in ("protocol", "metadata", "files", "version_list"):
        assert (stats[name].hits, stats[name].misses) == (2, 1), name
        assert stats[name].hit_rate == pytest.approx(2 / 3)
    assert stats["versions"].hits >= 3


def test_caching_can_be_switched_off(counted):
    """F1: no stats, and every read looks."""
    builder, store = counted
    log = handle(builder, store, **{"transaction.cache.enabled": "false"})
    assert log.cache_stats() is None
    assert len(log.list_files()) == 2
    elsewhere(builder).append("c")
    assert len(log.list_files()) == 3


def test_an_entry_expires_a_fixed_time_after_it_was_written(counted):
    """F1: 300 s from the write, however often it is read."""
    builder, store = counted
    log = handle(builder, store)
    log.protocol()
    for _ in range(2):
        builder.wait(s=140)
        log.protocol()
    assert log.cache_stats()["protocol"].hits == 2
    builder.wait(s=30)
    log.protocol()
    assert log.cache_stats()["protocol"].misses == 2


def test_the_expiration_is_an_option(counted):
    builder, store = counted
    log = handle(builder, store, **{"transaction.cache.expirationSeconds": 10})
    log.protocol()
    builder.wait(s=10)
    log.protocol()
    assert log.cache_stats()["protocol"].misses == 2


def test_own_writes_are_visible_at_once(counted):
    """F3: also those of another handle of this process."""
    builder, store = counted
    log, other = handle(builder, store), handle(builder, store)
    assert len(log.list_files()) == len(other.list_files()) == 2
    log.add_files([add("c")])
    assert len(log.list_files()) == 3
    assert len(other.list_files()) == 3


def test_foreign_commits_are_seen_when_the_staleness_is_over(counted):
    """F3."""
    builder, store = counted
    log = handle(builder, store)
    assert len(log.list_files()) == 2
    elsewhere(builder).append("c")
    assert len(log.list_files()) == 2
    builder.wait(s=4)
    assert len(log.list_files()) == 2
    builder.wait(s=1)
    assert len(log.list_files()) == 3


def test_a_staleness_of_zero_always_looks(counted):
    """F3: as an argument and as an option."""
    builder, store = counted
    log = handle(builder, store)
    never = handle(builder, store, **{"transaction.maxStalenessSeconds": 0})
    log.list_files(), never.list_files()
    elsewhere(builder).append("c")
    assert len(log.list_files(max_staleness_s=0)) == 3
    assert len(never.list_files()) == 3


def test_invalidating_forgets_everything(counted):
    """F3."""
    builder, store = counted
    log = handle(builder, store)
    log.list_files()
    elsewhere(builder).append("c")
    log.invalidate_cache()
    assert len(log.list_files()) == 3


def test_a_second_read_of_an_unchanged_table_is_one_listing(counted):
    """F4."""
    builder, store = counted
    log = handle(builder, store)
    log.list_files()
    store.clear()
    log.list_files()
    assert store.opens == []
    builder.wait(s=10)
    log.list_files(), log.metadata(), log.protocol()
    assert [operation for operation, _ in store.opens] == ["list_level"]


def test_a_read_after_new_commits_reads_just_those(counted):
    """F4: k commits, k files."""
    builder, store = counted
    log = handle(builder, store)
    log.list_files()
    elsewhere(builder).append("c").append("d").append("e")
    store.clear()
    assert len(log.list_files(max_staleness_s=0)) == 5
    assert len(store.reads) == 3


def test_refreshing_past_a_checkpoint_reads_only_the_new_commits(counted):
    """F4: the base stays, whatever others have checkpointed."""
    builder, store = counted
    builder.appends(9)
    log = handle(builder, store)
    assert len(log.list_files()) == 11
    elsewhere(builder).appends(10)
    store.clear()
    assert len(log.list_files(max_staleness_s=0)) == 21
    assert len(store.reads) == 10
    assert not any("checkpoint" in path for path in store.reads)


@pytest.mark.parametrize("appends", [0, 1, 2, 5])
def test_a_table_made_anew_at_the_same_path_never_shows_the_old_one(tmp_path, appends):
    """F4: fewer, as many or more versions than before."""
    other = pa.schema([("x", pa.string())])
    builder = LogBuilder(LocalStore(tmp_path / "t")).create().append("old1").append("old2")
    log = builder.log()
    assert len(log.list_files()) == 2
    assert log.snapshot(version=1).num_files == 1
    shutil.rmtree(tmp_path / "t")
    fresh = elsewhere(builder).create(other)
    for number in range(appends):
        fresh.append(f"new{number}")
    assert [item.path for item in log.list_files(max_staleness_s=0)] == [f"new{n}" for n in range(appends)]
    assert log.snapshot().schema.equals(other)
    assert log.metadata().id == fresh.log().metadata().id
    assert log.latest_version() == appends
    if appends:
        assert [item.path for item in log.snapshot(version=1).adds()] == ["new0"]
        assert log.read_version(1)[0].path == "new0"


def test_a_table_made_anew_by_this_process_is_seen_at_once(tmp_path):
    """F4: without waiting for the staleness."""
    builder = LogBuilder(LocalStore(tmp_path / "t")).create().append("old")
    log = builder.log()
    assert len(log.list_files()) == 1
    shutil.rmtree(tmp_path / "t")
    builder.log().initialize(pa.schema([("x", pa.string())]))
    assert log.list_files() == []


def test_a_deleted_table_is_no_table_any_more(tmp_path):
    """F4."""
    builder = LogBuilder(LocalStore(tmp_path / "t")).create().append("old")
    log = builder.log()
    log.list_files()
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(NotATableError):
        log.list_files(max_staleness_s=0)


def test_two_tables_never_mix():
    """F4: same names, same versions, other places."""
    one = LogBuilder(MemoryStore()).create().append("one")
    two = LogBuilder(MemoryStore()).create().append("two")
    logs = [one.log(), two.log()]
    for _ in range(2):
        assert [[item.path for item in log.list_files()] for log in logs] == [["one"], ["two"]]


def test_the_news_of_a_process_are_counted_by_place():
    mark, untouched = NEWS.mark("memory://somewhere"), NEWS.mark("memory://nowhere-else")
    NEWS.announce("memory://somewhere")
    assert NEWS.mark("memory://somewhere") == mark + 1
    assert NEWS.mark("memory://nowhere-else") == untouched


def test_a_pinned_version_is_kept_and_checked_with_one_head(counted):
    builder, store = counted
    log = handle(builder, store)
    first = log.snapshot(version=1)
    store.clear()
    assert log.snapshot(version=1) is first
    assert [operation for operation, _ in store.opens] == ["head"]


def test_a_handle_that_wrote_last_still_notices_what_another_wrote_meanwhile(counted):
    """F3: its own news do not hide those of its neighbour."""
    builder, store = counted
    other = handle(builder, store)

    class Overtaken(CountingStore):
        """Where another handle commits as soon as a commit of this one is durable."""

        def put_if_absent(self, path, data):
            made = super().put_if_absent(path, data)
            other.add_files([add("theirs")])
            return made

    log = handle(builder, Overtaken(builder.store))
    log.list_files()
    log.add_files([add("ours")])
    assert {item.path for item in log.list_files()} == {"a", "b", "ours", "theirs"}
