"""Once a commit is durable its caller hears so, whatever fails afterwards; and what is unknown is called so."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import CommitError, StorageError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.builder import LogBuilder, add, paths_of
from support.faults import Around

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
CARE = {
    "checkpoint.interval": "1",
    "mergeOnWrite.enabled": "true",
    "purgeOnWrite.enabled": "true",
    "purge.retentionCheckEnabled": "false",
}


def rows(*ids, day="mon"):
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [day] * len(ids)})


class Down(Around):
    """A store that answers nothing any more once a version file has been put, while it is `armed`."""

    def __init__(self, inner):
        super().__init__(inner)
        self.armed = self.down = False

    def _do(self, operation, path, call):
        if self.down:
            raise StorageError(f"{operation} {path}: the store is down")
        done = call()
        is_version = path.endswith(".json") and "checkpoint" not in path
        self.down = self.armed and operation == "put_if_absent" and done and is_version
        return done


VERBS = {
    "append": (lambda table: table.append(rows(9)), 9),
    "overwrite": (lambda table: table.overwrite(rows(7)), 1),
    "overwrite where": (lambda table: table.overwrite(rows(7), "day = 'mon'"), 5),
    "delete": (lambda table: table.delete("id = 1"), 7),
    "restore": (lambda table: table.restore(1), 2),
    "merge": (lambda table: table.merge_splits(), 8),
    "drop partitions": (lambda table: table.drop_partitions("day = 'tue'"), 4),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_commit_is_durable_returns_its_result_though_the_store_is_gone(verb, caplog):
    call, rows_after = VERBS[verb]
    store = Down(MemoryStore())
    log = TransactionLog.open(store.uri, CARE, store=store)
    log.initialize(SCHEMA, ["day"])
    table = Table(log, log.snapshot())
    plain = {"mergeOnWrite.enabled": "false"}
    for at in range(4):
        table.append(rows(2 * at, 2 * at + 1, day="mon" if at % 2 else "tue"), options=plain)
    before = table.version
    store.armed = True
    with caplog.at_level(logging.WARNING):
        call(table)
    assert store.down
    assert table.version == before + 1
    store.armed = store.down = False
    fresh = Table(*_reopened(store))
    assert (fresh.version, fresh.count()) == (before + 1, rows_after)
    assert table.count() == rows_after


def _reopened(store):
    log = TransactionLog.open(store.uri, store=store)
    return log, log.snapshot()


def test_a_log_commit_returns_its_version_though_the_store_is_gone():
    builder = LogBuilder().create()
    store = Down(builder.store)
    log = LogBuilder(store, {"checkpoint.interval": 1}, builder.clock).log()
    store.armed = True
    assert log.add_files([add("a")]) == 1
    store.down = store.armed = False
    assert paths_of(builder.log()) == ["a"]


def test_a_bad_property_does_not_make_a_durable_commit_look_failed(caplog):
    """What is asked after the commit may be nonsense; the commit stands."""
    builder = LogBuilder().create()
    metadata = builder.log().metadata()
    builder.log().commit(_raw_properties(metadata, {"spark.indextables.checkpoint.interval": "never"}))
    with caplog.at_level(logging.WARNING):
        assert builder.log().add_files([add("a")]) == 2
    assert paths_of(builder.log()) == ["a"]


def _raw_properties(metadata, configuration):
    changed = replace(metadata, configuration=configuration)
    return CommitPlan("SET PROPERTIES", Rule.APPEND, lambda _: [changed])


class Late(Around):
    """A store that gives up on a put of a version file and carries it out later."""

    def __init__(self, inner):
        super().__init__(inner)
        self.pending = None
        self.first = True

    def _do(self, operation, path, call):
        if self.first and operation == "put_if_absent" and "checkpoint" not in path:
            self.first = False
            self.pending = call
            raise StorageError("timed out")
        return call()


@pytest.fixture
def builder():
    return LogBuilder().create().append("a")


def test_a_put_that_timed_out_is_unknown_and_can_be_found_when_it_arrives(builder):
    store = Late(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    with pytest.raises(CommitError, match="find_commit") as error:
        log.add_files([add("b")])
    assert (error.value.outcome, error.value.version) == ("unknown", 2)
    assert "nothing was committed" not in str(error.value)
    assert log.find_commit(error.value.commit_id) is None
    assert store.pending()
    assert log.find_commit(error.value.commit_id) == 2
    assert paths_of(builder.log()) == ["a", "b"]


def test_a_put_that_timed_out_and_lost_its_number_never_arrives(builder):
    store = Late(builder.store)
    with pytest.raises(CommitError) as error:
        LogBuilder(store, clock=builder.clock).log().add_files([add("b")])
    builder.append("c")
    assert not store.pending()
    assert builder.log().find_commit(error.value.commit_id) is None
    assert paths_of(builder.log()) == ["a", "c"]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_batch_with_a_transaction_can_be_repeated_whatever_became_of_it(builder, arrives):
    store = Late(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    txn = TxnAction(app_id="nightly", version=1)
    with pytest.raises(CommitError):
        log.add_files([add("b")], txn=txn)
    if arrives:
        store.pending()
    log.add_files([add("b again")], txn=txn)
    store.pending()
    assert paths_of(builder.log()) == (["a", "b"] if arrives else ["a", "b again"])


def test_a_store_that_refused_the_put_is_not_called_unknown(tmp_path):
    """A full disk said no by itself: nothing is on its way."""

    class Full(Around):
        def _do(self, operation, path, call):
            if operation == "put_if_absent":
                raise StorageError("no space", final=True)
            return call()

    builder = LogBuilder().create()
    with pytest.raises(CommitError, match="nothing was committed") as error:
        LogBuilder(Full(builder.store), clock=builder.clock).log().add_files([add("a")])
    assert error.value.outcome == "absent"


def test_a_commit_is_found_by_its_id_after_it_became_history(builder):
    info = builder.append("b").log().snapshot().info
    builder.appends(15)
    assert builder.log().find_commit(info.commit_id) == 2
    assert builder.log().find_commit("no such commit") is None
