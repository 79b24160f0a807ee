"""Once a commit is durable its caller hears so, whatever fails afterwards; and what is unknown is called so."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import CommitError, StorageError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.patience import MOST_LOOKS
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.builder import LogBuilder, add, paths_of
from support.clock import FixedClock, runtime_at
from support.faults import Around

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
CARE = {
    "checkpoint.interval": "1",
    "mergeOnWrite.enabled": "true",
    "mergeOnWrite.fanIn": "2",
    "purgeOnWrite.enabled": "true",
    "purge.retentionCheckEnabled": "false",
}


def rows(*ids, day="mon"):
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [day] * len(ids)})


class Down(Around):
    """A store that answers nothing any more after a version file was put, or after the look that follows.

    `failures` limits how many operations go without an answer.
    """

    def __init__(self, inner):
        super().__init__(inner)
        self.goes_down_after = None
        self.put = self.down = False
        self.failures = 10**6

    def _do(self, operation, path, call):
        if self.down and self.failures:
            self.failures -= 1
            raise StorageError(f"{operation} {path}: the store is down")
        done = call()
        looked = self.put and operation == "list_level"
        if operation == "put_if_absent" and done and path.endswith(".json") and "checkpoint" not in path:
            self.put = True
        if self.goes_down_after == "put" and self.put:
            self.down = True
        if self.goes_down_after == "look" and looked:
            self.down = True
        return done

    def comes_back(self):
        self.goes_down_after, self.put, self.down = None, False, False

    def goes_down(self, after):
        self.comes_back()
        self.goes_down_after = after


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
def test_a_verb_whose_commit_was_seen_to_be_history_returns_its_result_though_the_store_is_gone(verb, caplog):
    call, rows_after = VERBS[verb]
    store, table = _table_of_four_appends()
    before = table.version
    store.goes_down(after="look")
    with caplog.at_level(logging.WARNING):
        call(table)
    assert store.down
    assert table.version == before + 1
    store.comes_back()
    fresh = Table(*_reopened(store))
    assert (fresh.version, fresh.count()) == (before + 1, rows_after)
    assert table.count() == rows_after


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_commit_could_not_be_looked_at_does_not_know_and_its_commit_is_found(verb):
    """The put was confirmed; but a confirmed put may have taken a number that had been used before."""
    call, rows_after = VERBS[verb]
    store, table = _table_of_four_appends()
    before = table.version
    store.goes_down(after="put")
    with pytest.raises(CommitError, match="is unknown") as error:
        call(table)
    assert error.value.outcome == "unknown"
    store.comes_back()
    fresh = Table(*_reopened(store))
    assert fresh.log.find_commit(error.value.commit_id) == before + 1
    assert fresh.count() == rows_after, "the splits of an unknown commit stay"


def _table_of_four_appends():
    store = Down(MemoryStore())
    log = TransactionLog.open(store.uri, CARE, store=store, runtime=runtime_at(FixedClock()))
    log.initialize(SCHEMA, ["day"])
    table = Table(log, log.snapshot())
    plain = {"mergeOnWrite.enabled": "false"}
    for at in range(4):
        table.append(rows(2 * at, 2 * at + 1, day="mon" if at % 2 else "tue"), options=plain)
    return store, table


def _reopened(store):
    log = TransactionLog.open(store.uri, store=store)
    return log, log.snapshot()


def test_a_log_commit_returns_its_version_though_the_store_is_gone_after_the_look():
    builder = LogBuilder().create()
    store = Down(builder.store)
    log = LogBuilder(store, {"checkpoint.interval": 1}, builder.clock).log()
    store.goes_down(after="look")
    assert log.add_files([add("a")]) == 1
    store.comes_back()
    assert paths_of(builder.log()) == ["a"]


def test_a_table_whose_creation_could_not_be_looked_at_is_unknown_and_created_again_without_harm():
    builder = LogBuilder()
    store = Down(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    store.goes_down(after="put")
    with pytest.raises(CommitError, match="creating it again does no harm") as error:
        log.initialize(SCHEMA)
    assert (error.value.outcome, error.value.version) == ("unknown", 0)
    store.comes_back()
    assert log.initialize(SCHEMA) == 0


def test_a_look_that_fails_is_repeated_after_pauses():
    builder = LogBuilder().create()
    store = Down(builder.store)
    log = LogBuilder(store, {"checkpoint.interval": 100}, builder.clock).log()
    store.goes_down(after="put")
    store.failures = MOST_LOOKS - 1
    assert log.add_files([add("a")]) == 1
    pauses = builder.clock.slept_s
    assert len(pauses) == MOST_LOOKS - 1
    assert pauses == sorted(pauses)


def test_a_batch_whose_commit_could_not_be_looked_at_is_not_written_again():
    builder = LogBuilder().create()
    store = Down(builder.store)
    log = LogBuilder(store, clock=builder.clock).log()
    txn = TxnAction(app_id="nightly", version=1)
    store.goes_down(after="put")
    with pytest.raises(CommitError) as error:
        log.add_files([add("a")], txn=txn)
    assert (error.value.outcome, error.value.version) == ("unknown", 1)
    store.comes_back()
    log.add_files([add("a again")], txn=txn)
    assert not log.last_commit.written
    assert log.find_commit(error.value.commit_id) == 1
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
