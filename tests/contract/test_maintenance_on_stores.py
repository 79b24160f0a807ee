"""The maintenance verbs over every kind of storage: the same table, the same answers."""

import uuid

import pyarrow as pa
import pytest

import indextables as it
from indextables.storage.store import open_store
from support.servers import s3_server  # noqa: F401 - fixture

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])


@pytest.fixture(params=["local", "memory", "s3"])
def place(request, tmp_path):
    """An address no other test uses, and the options that reach it."""
    if request.param == "local":
        return str(tmp_path / "t"), {}
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}/t", {}
    server = request.getfixturevalue("s3_server")
    return f"{server.root}/{uuid.uuid4().hex}/t", dict(server.options)


def make(uri, options):
    table = it.Table.create(uri, SCHEMA, ["day"], options={**options, "indexing.typemap.message": "text"})
    for n in range(4):
        ids = range(n * 5, n * 5 + 5)
        rows = {"id": ids, "day": [str(n % 2)] * 5, "message": [f"event {i} happened" for i in ids]}
        table.append(pa.table(rows, SCHEMA))
    return table


def ids(table):
    return sorted(table.scan(columns=["id"]).read_all()["id"].to_pylist())


def move(store, source, target):
    """What an operator does with the tools of the storage."""
    for meta in [*store.list(source)]:
        store.put(target + meta.path[len(source) :], store.get(meta.path))
        store.delete(meta.path)


def test_a_table_lives_through_every_verb(place):
    uri, options = place
    table = make(uri, options)
    assert table.merge_splits().merged_files == 4
    assert table.count(query="message:happened") == 20
    assert table.delete("id IN (3, 12)").rows_deleted == 2
    purged = table.purge_rows()
    assert (purged.rows_purged, purged.files_rewritten) == (2, 1)
    assert table.drop_partitions("day = '1'").splits_removed == 1
    assert table.restore(4).status == "SUCCESS"
    assert ids(table) == list(range(20))
    assert table.checkpoint().num_files == 4
    unchecked = {**options, "purge.retentionCheckEnabled": "false"}
    assert it.Table.open(uri, options=unchecked).purge(older_than_hours=0).orphaned_files_found == 0
    assert table.truncate_history().status == "SUCCESS"
    gone = it.Table.open(uri, options=unchecked).purge(older_than_hours=0)
    assert gone.orphaned_files_deleted == 3, "two merged splits and one written anew"
    assert ids(it.Table.open(uri, options=options)) == list(range(20))


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("from_splits", [False, True])
def test_a_log_is_repaired_and_swapped_in(place, from_splits, by_hand):
    uri, options = place
    table = make(uri, options)
    table.merge_splits()
    before, found = ids(table), table.count(query="message:happened")
    store = open_store(uri, options)
    if from_splits:
        for meta in store.list_level("_transaction_log"):
            store.put(meta.path, b"lost")
    else:
        store.delete(table.files()["path"][0].as_py())
    statement = f"REPAIR INDEXFILES TRANSACTION LOG '{uri}/_transaction_log' AT LOCATION '{uri}/_new'"
    statement += (" FROM SPLITS" if from_splits else "") + ("" if by_hand else " SWAP")
    (row,) = it.sql(statement, options=options).to_pylist()
    assert row["status"] == "SUCCESS"
    if by_hand:
        move(store, "_transaction_log", "_old")
        move(store, "_new", "_transaction_log")
    repaired = it.Table.open(uri, options=options)
    if from_splits:
        assert (ids(repaired), repaired.count(query="message:happened")) == (before, found)
    else:
        assert (row["valid_splits"], row["missing_splits"]) == (1, 1)
        assert len(ids(repaired)) == 10
    repaired.append(pa.table({"id": [99], "day": ["0"], "message": ["event 99 happened"]}, SCHEMA))
    assert 99 in ids(it.Table.open(uri, options=options))
