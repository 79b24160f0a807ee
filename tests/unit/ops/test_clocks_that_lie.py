"""PURGE, cleanup and TRUNCATE by a process whose clock is wrong: ages are measured by the store's own time."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import MissingSplitError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.maintenance import check
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.runtime import LOCAL
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.clock import DAY_MS, FixedClock
from support.faults import Around, CountingStore

SCHEMA = pa.schema([("id", pa.int64())])
LOG = "_transaction_log"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, SCHEMA)


class WrongClock:
    """The clock of a process: it runs like the store's, but may be ahead; its monotonic clock stands still."""

    def __init__(self, time: FixedClock, ahead_ms: int) -> None:
        self.time = time
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return self.time.now_ms() + self.ahead_ms

    def monotonic_s(self) -> float:
        return 0.0

    def sleep_s(self, seconds: float) -> None:
        self.time.sleep_s(seconds)


class World:
    """A table in a store with a time of its own, and processes whose clocks differ from it."""

    def __init__(self) -> None:
        self.time = FixedClock()
        self.store = MemoryStore(f"memory://clocks-{uuid.uuid4().hex}", now_ms=self.time.now_ms)
        self.log().initialize(SCHEMA)

    def log(self, *, ahead_ms: int = 0, store=None) -> TransactionLog:
        """The log, opened by a process whose clock is so much ahead of the store's."""
        runtime = replace(LOCAL, clock=WrongClock(self.time, ahead_ms))
        options = {"checkpoint.enabled": "false"}
        return TransactionLog.open(self.store.uri, options, store=store or self.store, runtime=runtime)

    def table(self, *, ahead_ms: int = 0, store=None) -> Table:
        log = self.log(ahead_ms=ahead_ms, store=store)
        return Table(log, log.snapshot())

    def ids(self) -> list[int]:
        return sorted(self.table().scan().read_all()["id"].to_pylist())

    def splits(self) -> list[str]:
        return [meta.path for meta in self.store.list() if meta.path.endswith(".split")]

    def marks(self) -> list[str]:
        return [meta.path for meta in self.store.list_level(LOG) if "/_purge." in meta.path]


class Interrupted(Around):
    """A store in which something happens after a split was put."""

    def __init__(self, inner, meanwhile) -> None:
        super().__init__(inner)
        self.meanwhile = meanwhile

    def _do(self, operation, path, call):
        done = call()
        if operation.startswith("put") and path.endswith(".split"):
            self.meanwhile()
        return done


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("ahead_days", [9, 400, -1])
def test_a_purge_by_a_wrong_clock_leaves_the_split_of_a_running_write(world, ahead_days):
    def purge():
        world.table(ahead_ms=ahead_days * DAY_MS).purge()

    world.table(store=Interrupted(world.store, purge)).append(rows(1, 2))
    assert world.ids() == [1, 2]


def test_a_purge_by_a_clock_that_is_behind_deletes_what_is_old(world):
    with pytest.raises(MissingSplitError):
        world.table(store=Interrupted(world.store, lambda: _lost(world))).append(rows(1))
    world.store.put("part-orphan.split", b"nobody needs it")
    world.time.advance(days=8)
    assert world.table(ahead_ms=-400 * DAY_MS).purge().orphaned_files_deleted == 1


def _lost(world: World) -> None:
    world.time.advance(days=8)
    world.table().purge()


@pytest.mark.parametrize("verb", ["append", "overwrite", "update", "delete", "merge_splits"])
def test_a_write_whose_split_was_purged_says_so_and_commits_nothing(world, verb):
    for number in range(4):
        world.table().append(rows(number, number + 10))
    before, version = world.ids(), world.table().version
    table = world.table(store=Interrupted(world.store, lambda: _lost(world)))
    calls = {
        "append": lambda: table.append(rows(99)),
        "overwrite": lambda: table.overwrite(rows(99)),
        "update": lambda: table.update("id = 1", {"id": 99}),
        "delete": lambda: table.delete("id = 1"),
        "merge_splits": table.merge_splits,
    }
    with pytest.raises(MissingSplitError, match="was deleted before it was committed") as lost:
        calls[verb]()
    assert lost.value.path.endswith(".split")
    assert (world.ids(), world.table().version) == (before, version)


def test_splits_that_were_written_elsewhere_are_looked_for_once_a_table_was_purged(world):
    table = world.table()
    table.append(rows(1))
    (add,) = table.log.snapshot().adds()
    gone = replace(add, path="part-gone.split")
    world.store.put("part-old.split", b"nobody needs it")
    _lost(world)
    with pytest.raises(MissingSplitError, match=r"part-gone\.split"):
        world.table().log.add_files([gone])
    assert world.ids() == [1]


def test_one_mark_stays_however_often_a_table_is_purged(world):
    assert world.table().purge().orphaned_files_deleted == 0
    assert world.marks() == []
    marks = set()
    for number in range(3):
        world.store.put(f"part-{number}.split", b"nobody needs it")
        _lost(world)
        (mark,) = world.marks()
        marks.add(mark)
    assert len(marks) == 3


def test_check_finds_nothing_wrong_with_a_mark(tmp_path):
    table = Table.create(tmp_path / "t", SCHEMA)
    orphan = tmp_path / "t" / "part-old.split"
    orphan.write_bytes(b"nobody needs it")
    os.utime(orphan, (0, 0))
    assert table.purge().orphaned_files_deleted == 1
    assert list((tmp_path / "t" / LOG).glob("_purge.*"))
    assert check(str(tmp_path / "t")).findings == ()


def test_a_writer_finds_a_newer_mark_though_the_one_it_missed_was_replaced(world):
    def two_purges():
        for number in range(2):
            world.store.put(f"part-{number}.split", b"nobody needs it")
            _lost(world)

    with pytest.raises(MissingSplitError):
        world.table(store=Interrupted(world.store, two_purges)).append(rows(1))


def test_a_purge_costs_later_appends_no_request(world):
    def requests() -> list[str]:
        counted = CountingStore(world.store)
        table = world.table(store=counted)
        counted.clear()
        table.append(rows(1))
        return [operation for operation, _ in counted.opens]

    requests()
    before = requests()
    world.store.put("part-old.split", b"nobody needs it")
    _lost(world)
    assert world.marks()
    assert requests() == before


class Timeless(Around):
    """A store that does not say when an object was written."""

    def _do(self, operation, path, call):
        if operation == "head" and path.endswith(".tmp"):
            raise StorageError(f"no head of {path}", path=path)
        return call()


def test_where_the_store_tells_no_time_nothing_is_deleted_and_it_is_said(world):
    world.table().append(rows(1))
    world.store.put("part-old.split", b"nobody needs it")
    world.time.advance(days=400)
    table = world.table(store=Timeless(world.store))
    for dry_run in (True, False):
        done = run_purge(table.log, PurgeRequest(log_retention_hours=24, dry_run=dry_run))
        assert (done.orphaned_files_deleted, done.orphaned_files_found) == (0, 0)
        assert "did not tell its time" in done.message
    assert table.log.cleanup().versions_deleted == 0
    run_truncate(table.log)
    assert f"{LOG}/{0:020d}.json" in [meta.path for meta in world.store.list_level(LOG)]
    assert "part-old.split" in world.splits()
    assert world.ids() == [1]


@pytest.mark.parametrize("ahead_days", [400, -400])
def test_cleanup_by_a_wrong_clock_keeps_every_version_within_its_retention(world, ahead_days):
    for number in range(4):
        world.table().append(rows(number))
    world.table().checkpoint()
    assert world.table(ahead_ms=ahead_days * DAY_MS).log.cleanup().versions_deleted == 0
    assert world.table().log.versions() == [0, 1, 2, 3, 4]


def test_truncate_by_a_clock_ahead_keeps_the_numbers_of_recent_versions_reserved(world):
    for number in range(4):
        world.table().append(rows(number))
    run_truncate(world.table(ahead_ms=9 * DAY_MS).log)
    left = [meta.path for meta in world.store.list_level(LOG)]
    assert all(f"{LOG}/{number:020d}.json" in left for number in range(4))
    world.time.advance(hours=2)
    world.table().append(rows(4))
    run_truncate(world.table(ahead_ms=-9 * DAY_MS).log)
    left = [meta.path for meta in world.store.list_level(LOG)]
    assert not any(f"{LOG}/{number:020d}.json" in left for number in range(4))
    assert world.ids() == [0, 1, 2, 3, 4]
