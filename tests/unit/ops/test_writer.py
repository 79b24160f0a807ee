"""A writer for small batches: what a ticket says, when rows are committed, and what a failure does."""

from __future__ import annotations

import asyncio
import threading

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import (
    CommitError,
    ConstraintError,
    OptionError,
    SchemaError,
    StorageError,
    TableError,
)
from indextables.log.transaction_log import TransactionLog
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.faults import Around

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string())])
OPTIONS = {"indexing.typemap.message": "text"}
NEVER = {"flush_rows": 10**9, "flush_bytes": "1G", "flush_seconds": 3600.0}


def rows(*numbers):
    return pa.table({"id": list(numbers), "message": [f"event number{at}" for at in numbers]}, SCHEMA)


@pytest.fixture
def table(tmp_path):
    return it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)


def newest(table):
    return it.Table.open(table.uri)


def ids(table):
    return sorted(table.scan(columns=["id"]).read_all().column("id").to_pylist())


def test_the_end_of_the_block_commits_all_batches_as_one_version_and_one_split(table):
    with table.writer(**NEVER) as writer:
        tickets = [writer.write(rows(number)) for number in range(20)]
        assert newest(table).version == 0
    assert {ticket.wait(0) for ticket in tickets} == {1}
    assert (newest(table).version, newest(table).files().num_rows) == (1, 1)
    assert ids(newest(table)) == list(range(20))
    assert newest(table).count(query="number7") == 1


def test_a_batch_is_anything_that_append_takes(table):
    with table.writer(**NEVER) as writer:
        writer.write([{"id": 1, "message": "a"}])
        writer.write({"id": [2], "message": ["b"]})
        writer.write(rows(3).to_reader())
        writer.write(rows(4).to_batches()[0])
        writer.write(rows())
    assert ids(newest(table)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "limits",
    [{"flush_rows": 3}, {"flush_bytes": 1}, {"flush_seconds": 0.0}],
    ids=["rows", "bytes", "seconds"],
)
def test_enough_rows_bytes_or_seconds_make_a_commit_without_anybody_asking(table, limits):
    with table.writer(**{**NEVER, **limits}) as writer:
        tickets = [writer.write(rows(number)) for number in range(3)]
        versions = [ticket.wait(60) for ticket in tickets]
    assert versions == sorted(versions)
    assert ids(newest(table)) == [0, 1, 2]


def test_a_flush_waits_for_what_is_pending(table):
    with table.writer(**NEVER) as writer:
        ticket = writer.write(rows(1))
        with pytest.raises(TimeoutError, match="still on its way"):
            ticket.wait(0.01)
        writer.flush()
        assert ticket.wait(0) == 1
        writer.flush()
    assert newest(table).version == 1


def test_a_writer_without_rows_commits_nothing(table):
    with table.writer():
        pass
    assert newest(table).version == 0


def test_rows_that_do_not_fit_are_refused_where_they_are_given(table):
    table.add_constraint("positive", "id > 0")
    with table.refresh().writer(**NEVER) as writer:
        good = writer.write(rows(1))
        with pytest.raises(SchemaError):
            writer.write({"id": ["one"], "message": ["x"]})
        with pytest.raises(SchemaError):
            writer.write({"id": [1], "other": ["x"]})
        with pytest.raises(ConstraintError):
            writer.write(rows(-1))
    assert good.wait(0) == 2
    assert ids(newest(table)) == [1]


def test_a_column_that_another_writer_adds_meanwhile_is_null_in_earlier_batches(table):
    with table.writer(**NEVER) as writer:
        writer.write(rows(1))
        writer.flush()
        it.Table.open(table.uri).append(
            pa.table({"id": [2], "message": ["m"], "more": [7]}), merge_schema=True
        )
        writer.write(rows(3))
    assert ids(newest(table)) == [1, 2, 3]
    assert newest(table).count("more is null") == 2


def test_a_closed_writer_takes_nothing(table):
    writer = table.writer()
    writer.close()
    writer.close()
    with pytest.raises(TableError, match="is closed"):
        writer.write(rows(1))


def test_an_old_version_has_no_writer(table):
    table.append(rows(1))
    with pytest.raises(TableError, match="older version"):
        it.Table.open(table.uri, version=0).writer()


@pytest.mark.parametrize(
    "limits", [{"flush_rows": 0}, {"flush_bytes": 0}, {"flush_seconds": -1}, {"max_pending_bytes": 0}]
)
def test_limits_must_make_sense(table, limits):
    with pytest.raises(OptionError, match=next(iter(limits))):
        table.writer(**limits)


def test_async_with_commits_the_rest(table):
    async def main():
        async with table.writer(**NEVER) as writer:
            return writer.write(rows(1, 2))

    assert asyncio.run(main()).wait(0) == 1
    assert ids(newest(table)) == [1, 2]


class Full(Around):
    """A store whose disk is full while `is_full`."""

    is_full = False

    def _do(self, operation, path, call):
        if self.is_full and operation == "put_if_absent":
            raise StorageError("no space left", final=True)
        return call()


@pytest.fixture
def full_disk():
    store = Full(MemoryStore())
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    log.initialize(SCHEMA)
    return store, Table(log, log.snapshot())


def test_a_flush_that_fails_raises_in_each_of_its_tickets_and_later_ones_go_on(full_disk):
    store, table = full_disk
    writer = table.writer(**NEVER)
    lost = [writer.write(rows(number)) for number in range(3)]
    store.is_full = True
    with pytest.raises(CommitError, match="nothing was committed"):
        writer.flush()
    for ticket in lost:
        with pytest.raises(CommitError, match="nothing was committed"):
            ticket.wait(0)
    store.is_full = False
    later = writer.write(rows(9))
    writer.close()
    assert later.wait(0) == 1
    assert ids(table.refresh()) == [9]
    assert table.files().num_rows == 1


def test_the_end_of_the_block_raises_what_no_ticket_told(full_disk):
    store, table = full_disk
    store.is_full = True
    with pytest.raises(CommitError, match="nothing was committed"), table.writer(**NEVER) as writer:
        writer.write(rows(1))


def test_an_error_that_a_ticket_told_is_not_raised_again(full_disk):
    store, table = full_disk
    with table.writer(**NEVER, max_pending_bytes=1) as writer:
        store.is_full = True
        first, second = writer.write(rows(1)), None
        second = threading.Thread(target=lambda: writer.write(rows(2)))
        second.start()
        with pytest.raises(CommitError):
            first.wait(60)
        second.join(60)
        store.is_full = False
    assert ids(table.refresh()) == [2]


def test_the_error_of_the_block_is_the_one_that_leaves_it(full_disk, caplog):
    store, table = full_disk
    with pytest.raises(ZeroDivisionError), table.writer(**NEVER) as writer:
        writer.write(rows(1))
        store.is_full = True
        raise ZeroDivisionError
    assert "could not be written" in caplog.text


class Slow(Around):
    """A store in which a commit waits for permission."""

    def __init__(self, inner):
        super().__init__(inner)
        self.may_go_on, self.begun = threading.Event(), threading.Event()

    def _do(self, operation, path, call):
        if operation == "put_if_absent" and path.endswith("1.json"):
            self.begun.set()
            assert self.may_go_on.wait(60)
        return call()


def test_write_waits_while_too_much_is_pending():
    store = Slow(MemoryStore())
    log = TransactionLog.open(store.uri, OPTIONS, store=store)
    log.initialize(SCHEMA)
    table, more = Table(log, log.snapshot()), rows(*range(100))
    with table.writer(**{**NEVER, "flush_rows": 100}, max_pending_bytes=int(1.5 * more.nbytes)) as writer:
        writer.write(more)
        assert store.begun.wait(60)
        taken = threading.Event()
        waiting = threading.Thread(target=lambda: (writer.write(more), taken.set()))
        waiting.start()
        assert not taken.wait(0.2)
        store.may_go_on.set()
        assert taken.wait(60)
        waiting.join()
    assert table.refresh().count() == 200


def test_small_splits_of_a_writer_are_merged_by_levels(table):
    with table.writer(**{**NEVER, "flush_rows": 1}) as writer:
        for number in range(40):
            writer.write(rows(number)).wait(60)
    newest_table = newest(table)
    assert ids(newest_table) == list(range(40))
    assert newest_table.files().num_rows < 25
    assert "MERGE SPLITS" in newest_table.history()["operation"].to_pylist()


def test_merging_can_be_switched_off(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options={**OPTIONS, "mergeOnWrite.enabled": "false"})
    with made.writer(**{**NEVER, "flush_rows": 1}) as writer:
        for number in range(20):
            writer.write(rows(number)).wait(60)
    assert newest(made).files().num_rows == 20
