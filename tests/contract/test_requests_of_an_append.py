"""What an append on an open handle asks of its store, request by request, on every kind of store."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from indextables.log.transaction_log import TransactionLog
from indextables.storage.store import Store, open_store
from indextables.table import Table
from support.builder import commit_path
from support.faults import CountingStore
from support.servers import azure_server, lossy_proxy, s3_options, s3_server  # noqa: F401

SCHEMA = pa.schema([("id", pa.int64())])
QUIET = {"checkpoint.enabled": "false"}


@pytest.fixture(params=["memory", "local", "s3", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountingStore:
    if request.param == "memory":
        return CountingStore(open_store(f"memory://{uuid.uuid4().hex}/t"))
    if request.param == "local":
        return CountingStore(open_store(tmp_path / "t"))
    server = request.getfixturevalue(f"{request.param}_server")
    return CountingStore(open_store(f"{server.root}/{uuid.uuid4().hex}", server.options))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def opened(store: Store) -> Table:
    log = TransactionLog.open(store.uri, QUIET, store=store)
    log.initialize(SCHEMA)
    return Table(log, log.snapshot())


def asked(store: CountingStore) -> list[str]:
    """The operations that reach the store, in order; a split is named as such."""
    return [
        f"{operation} {'split' if path.endswith('.split') else path.rpartition('/')[2]}"
        for operation, path in store.opens
        if operation != "local_path"
    ]


LIST = "list_level _transaction_log"


def test_an_append_puts_its_split_beside_a_listing_then_its_version_then_looks_once(store: CountingStore):
    table = opened(store)
    for number in range(1, 4):
        store.clear()
        assert table.append(rows(number)).version == number
        version, base = commit_path(number)[-25:], commit_path(number - 1)[-25:]
        if store.local_path("") is None:
            look = [LIST]
        else:
            look = [f"head {version}", f"get_range {base}"]
        found = asked(store)
        assert sorted(found[:2]) == sorted([LIST, "put_file split"]), "in either order, at the same time"
        assert found[2:] == [f"put_if_absent {version}", *look]
    assert sorted(table.scan().read_all()["id"].to_pylist()) == [1, 2, 3]


def test_an_append_that_was_overtaken_reads_what_it_missed_and_lists_once_more(store: CountingStore):
    table, other = opened(store), opened(store)
    table.append(rows(1))
    other.refresh()
    put = store.put_if_absent

    def overtaken(path: str, data: bytes) -> bool:
        store.put_if_absent = put
        other.append(rows(2))
        store.clear()
        return put(path, data)

    store.put_if_absent = overtaken
    assert table.append(rows(3)).version == 3
    second, third = commit_path(2)[-25:], commit_path(3)[-25:]
    found = asked(store)
    assert found[: found.index(f"put_if_absent {third}")] == [
        f"put_if_absent {second}",
        f"get {second}",
        LIST,
        LIST,
        f"get {second}",
    ]


def test_opening_a_table_reads_each_log_file_once(store: CountingStore):
    """That a file is the one that was listed costs no request of its own."""
    table = opened(store)
    for number in range(3):
        table.append(rows(number))
    fresh = TransactionLog.open(store.uri, QUIET, store=store)
    store.clear()
    assert fresh.snapshot().version == 3
    names = [commit_path(number)[-25:] for number in range(4)]
    assert sorted(asked(store)) == sorted(["get _last_checkpoint", LIST, *(f"get {name}" for name in names)])


def test_an_append_on_s3_sends_two_puts_and_two_listings(s3_server):  # noqa: F811
    """Counted at the network: a put is not asked about afterwards."""
    sent: list[tuple[str, str]] = []

    def note(method: str, path: str) -> None:
        sent.append((method, path.rpartition("/")[2].partition("?")[0][-6:]))

    with lossy_proxy(s3_server.endpoint, note) as endpoint:
        store = open_store(f"{s3_server.root}/{uuid.uuid4().hex}", s3_options(endpoint))
        table = opened(store)
        table.append(rows(1))
        sent.clear()
        table.append(rows(2))
    methods = [method for method, _ in sent]
    assert sorted(methods[:2]) == ["GET", "PUT"], "the split beside the listing"
    assert methods[2:] == ["PUT", "GET"], "the version, then the look"
