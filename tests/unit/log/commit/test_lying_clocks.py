"""Clocks that stand still or run ahead, lost answers and late puts lose no acknowledged row and double none."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from indextables.errors import CommitError, StorageError
from indextables.log.transaction_log import TransactionLog
from indextables.runtime import Runtime
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.builder import commit_path
from support.clock import HOUR_MS, START_MS
from support.faults import Around

SCHEMA = pa.schema([("id", pa.int64())])


class Time:
    """The time of one world."""

    def __init__(self) -> None:
        self.now_ms = START_MS


class Clock:
    """The clock of one machine: ahead of the time by some hours, and standing still while it sleeps."""

    def __init__(self, time: Time, ahead_hours: int = 0) -> None:
        self.time, self.ahead_ms, self.asleep_ms = time, ahead_hours * HOUR_MS, 0

    def now_ms(self) -> int:
        return self.time.now_ms + self.ahead_ms

    def monotonic_s(self) -> float:
        return (self.time.now_ms - self.asleep_ms) / 1000

    def sleep_s(self, seconds: float) -> None:
        self.time.now_ms += round(seconds * 1000)


class Hooked(Around):
    """A store as one process sees it: `before` and `after` are called around every operation."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.before: Callable[[str, str], None] = lambda _operation, _path: None
        self.after: Callable[[str, str], None] = lambda _operation, _path: None

    def _do(self, operation, path, call):
        self.before(operation, path)
        done = call()
        self.after(operation, path)
        return done


class World:
    """One table, whose cleaner's clock is two hours ahead."""

    def __init__(self) -> None:
        self.time = Time()
        self.stored = MemoryStore(now_ms=lambda: self.time.now_ms)
        self.log(self.stored).initialize(SCHEMA)
        self.cleaner = self.table(self.stored, Clock(self.time, ahead_hours=2))

    def log(self, store, clock: Clock | None = None) -> TransactionLog:
        return TransactionLog.open(store.uri, store=store, runtime=Runtime(clock=clock or Clock(self.time)))

    def table(self, store, clock: Clock | None = None) -> Table:
        log = self.log(store, clock)
        return Table(log, log.snapshot())

    def process(self, clock: Clock | None = None) -> tuple[Hooked, Table]:
        """Another process, with hooks in its way to the store."""
        store = Hooked(self.stored)
        return store, self.table(store, clock)

    def rows(self) -> list[int]:
        return ids(self.table(self.stored))

    def erase_history(self) -> None:
        """Truncate, and let the fences go as well, oldest first: no clock can promise that they stay."""
        self.cleaner.truncate_history()
        for version in range(self.cleaner.version):
            self.stored.delete(commit_path(version))


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().read_all()["id"].to_pylist())


def once(operation: str, path: str, action: Callable[[], None]) -> Callable[[str, str], None]:
    """Do something at the first operation of a kind on a path."""
    done = False

    def hook(what: str, where: str) -> None:
        nonlocal done
        if not done and (what, where) == (operation, path):
            done = True
            action()

    return hook


@pytest.mark.parametrize("lie", ["the writer's clock stood still", "the cleaner's clock is ahead"])
@pytest.mark.parametrize("failures", [1, 100])
def test_a_commit_under_a_freed_number_is_not_acknowledged_because_a_clock_says_so(lie, failures):
    """The writer sleeps before its put, history goes meanwhile, and the listing after the put fails."""
    world = World()
    mine = Clock(world.time)
    store, table = world.process(mine)
    world.cleaner.append(rows(1))
    left = failures

    def sleep() -> None:
        for value in (2, 3, 4):
            world.cleaner.append(rows(value))
        if lie == "the writer's clock stood still":
            world.time.now_ms += 2 * HOUR_MS
            mine.asleep_ms += 2 * HOUR_MS
        world.cleaner.truncate_history()
        store.after = fail_looks

    def fail_looks(operation: str, _path: str) -> None:
        nonlocal left
        if operation == "list_level" and left:
            left -= 1
            raise StorageError("503 slow down")

    store.before = once("put_if_absent", commit_path(2), sleep)
    if failures == 1:
        assert table.append(rows(99)).version == 5
        assert world.rows() == [1, 2, 3, 4, 99]
    else:
        with pytest.raises(CommitError) as error:
            table.append(rows(99))
        assert error.value.outcome == "unknown"
        assert world.rows() == [1, 2, 3, 4]
        assert world.log(world.stored).find_commit(error.value.commit_id) is None


@pytest.mark.parametrize("answer", ["lost", "exists"])
def test_a_strangers_file_under_our_number_does_not_make_a_commit_twice(answer):
    """Ours was history, was merged and retired; a stranger's late put has its number when we look.

    A proxy that repeats a request says "exists" of a file that the first one created.
    """
    world = World()
    store, table = world.process()
    put = store.put_if_absent

    def put_if_absent(path: str, data: bytes) -> bool:
        created = put(path, data)
        if path == commit_path(1):
            world.cleaner.append(rows(2))
            assert world.cleaner.merge_splits().status == "SUCCESS"
            world.cleaner.append(rows(3))
            world.erase_history()
            assert world.stored.put_if_absent(path, b'{"commitInfo":{"commitId":"stranger"}}\n')
            if answer == "lost":
                raise StorageError("the answer got lost")
            return False
        return created

    store.put_if_absent = put_if_absent
    assert table.append(rows(99)).version == 1
    assert world.rows() == [2, 3, 99]


def test_a_put_that_a_proxy_repeats_after_its_number_was_freed_does_not_make_a_commit_twice():
    """Our own file is there, although ours was history before: that it is there proves nothing."""
    world = World()
    store, table = world.process()
    put = store.put_if_absent

    def put_if_absent(path: str, data: bytes) -> bool:
        created = put(path, data)
        if path == commit_path(1):
            world.cleaner.append(rows(2))
            assert world.cleaner.merge_splits().status == "SUCCESS"
            world.cleaner.append(rows(3))
            world.erase_history()
            assert world.stored.put_if_absent(path, data), "the proxy's second try"
        return created

    store.put_if_absent = put_if_absent
    assert table.append(rows(99)).version == 1
    assert world.rows() == [2, 3, 99]


@pytest.mark.parametrize("handle", ["fresh", "open"])
def test_a_reader_between_its_listing_and_its_read_does_not_take_a_late_put_for_what_it_listed(handle):
    world = World()
    late_store, late = world.process()
    pending = []

    def lose_request(operation, path, call):
        if (operation, path) == ("put_if_absent", commit_path(1)):
            pending.append(call)
            raise StorageError("no answer")
        return call()

    late_store._do = lose_request
    reader_store = Hooked(world.stored)
    reader = world.log(reader_store)
    if handle == "open":
        assert reader.snapshot().version == 0
    with pytest.raises(CommitError):
        late.append(rows(99))
    world.cleaner.append(rows(1))

    def others_go_on() -> None:
        world.cleaner.append(rows(2))
        world.erase_history()
        assert pending[0](), "the late put creates the number that was freed"

    reader_store.before = once("get", commit_path(1), others_go_on)
    snapshot = reader.snapshot(max_staleness_s=0)
    assert snapshot.version == 2
    assert ids(Table(reader, snapshot)) == [1, 2]
