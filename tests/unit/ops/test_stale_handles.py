"""A handle that has not heard of others' commits writes what it would have written had it heard of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, NotATableError, SchemaError
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.storage.stores.memory import MemoryStore
from indextables.table import Table
from support.clock import FixedClock, runtime_at
from support.faults import CountingStore

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids: int, **more: list[str]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **more})


class Elsewhere:
    """The same objects under another address, so that news inside this process do not reach the handle."""

    def __init__(self, inner: MemoryStore) -> None:
        self.inner = inner
        self.uri = f"{inner.uri}-elsewhere"

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def stale(store: MemoryStore) -> Table:
    """A handle at version 1, which holds the row 1."""
    table = opened(store, create=True)
    table.append(rows(1))
    return table


@pytest.fixture
def other(stale: Table, store: MemoryStore) -> Table:
    return opened(Elsewhere(store))


def opened(store, *, create: bool = False) -> Table:
    log = TransactionLog.open(store.uri, store=store, runtime=runtime_at(FixedClock()))
    if create:
        log.initialize(SCHEMA)
    return Table(log, log.snapshot())


def ids(table: Table) -> list[int]:
    return sorted(table.scan().read_all()["id"].to_pylist())


def splits(store: MemoryStore) -> int:
    return sum(meta.path.endswith(".split") for meta in store.list())


def test_an_append_follows_what_others_committed(stale: Table, other: Table):
    other.append(rows(2))
    other.append(rows(3))
    result = stale.append(rows(4))
    assert (result.version, result.conflicts) == (4, 0)
    assert ids(stale) == [1, 2, 3, 4]


def test_an_overwrite_replaces_what_others_committed(stale: Table, other: Table):
    other.append(rows(2))
    stale.overwrite(rows(9))
    assert ids(stale) == [9]


def test_a_delete_reaches_what_others_committed(stale: Table, other: Table):
    other.append(rows(2, 3))
    stale.delete("id >= 2")
    assert ids(stale) == [1]


def test_a_batch_that_another_process_has_written_is_not_written_again(stale: Table, other, store):
    txn = TxnAction(app_id="nightly", version=1)
    other.append(rows(2), txn=txn)
    before = splits(store)
    assert stale.append(rows(2), txn=txn).version == 2
    assert splits(store) == before, "what was built for nothing is deleted"
    assert ids(other) == [1, 2]


def test_an_append_without_rows_says_which_version_is_newest(stale: Table, other: Table):
    other.append(rows(2))
    assert stale.append(rows()).version == 2


def test_a_change_that_others_made_is_a_conflict_where_a_version_was_expected(stale: Table, other: Table):
    other.append(rows(2))
    with pytest.raises(ConflictError, match="version 2 added"):
        stale.overwrite(rows(9), expected_version=1)


def test_an_append_takes_the_columns_that_another_process_added(stale: Table, other: Table, store):
    """Its plan was made for the old schema: it begins again on the new one."""
    other.append(rows(2, text=["two"]), merge_schema=True)
    before = splits(store)
    stale.append(rows(3, text=["three"]))
    assert sorted(stale.scan().read_all()["text"].to_pylist(), key=str) == [None, "three", "two"]
    assert splits(store) == before + 1


def test_an_append_that_no_longer_fits_is_refused_after_looking_again(stale: Table, other: Table, store):
    other.overwrite(pa.table({"name": ["x"]}), overwrite_schema=True)
    before = splits(store)
    with pytest.raises(SchemaError, match="id"):
        stale.append(rows(3))
    assert splits(store) == before


def test_rows_that_can_be_read_only_once_wait_for_the_newest_version(stale: Table, other: Table):
    other.append(rows(2, text=["two"]), merge_schema=True)
    later = rows(3, text=["three"])
    stale.append(pa.RecordBatchReader.from_batches(later.schema, later.to_batches()))
    assert ids(stale) == [1, 2, 3]


def test_an_append_to_a_table_that_was_deleted_leaves_nothing_behind(stale: Table, store: MemoryStore):
    for meta in list(store.list()):
        store.delete(meta.path)
    with pytest.raises(NotATableError):
        stale.append(rows(2))
    assert list(store.list()) == []


def test_an_append_with_further_options_does_not_look_twice_either(store: MemoryStore):
    counting = CountingStore(store)
    table = opened(counting, create=True)
    table.append(rows(1))
    counting.clear()
    table.append(rows(2), options={"checkpoint.interval": "50"})
    assert counting.count("list_level") == 2
