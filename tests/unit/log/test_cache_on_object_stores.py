"""A handle recognises its own commits on object stores, where a head and a listing differ in detail (docs/behaviour.md, F4)."""

from __future__ import annotations

import pytest

from indextables.log.transaction_log import TransactionLog
from indextables.storage.store import open_store
from support.builder import SCHEMA, add
from support.faults import CountingStore
from support.servers import azure_server, s3_server  # noqa: F401 - fixtures


@pytest.mark.parametrize("server", ["s3_server", "azure_server"])
def test_after_an_own_commit_the_next_look_is_one_listing(server, request):
    """F4: what the head request said of our file is what the listing says of it."""
    running = request.getfixturevalue(server)
    uri = f"{running.root}/recognised"
    store = CountingStore(open_store(uri, running.options))
    log = TransactionLog.open(uri, dict(running.options), store=store)
    log.initialize(SCHEMA)
    log.add_files([add("a")])
    log.add_files([add("b")])
    store.clear()
    assert [item.path for item in log.list_files(max_staleness_s=0)] == ["a", "b"]
    assert [operation for operation, _ in store.opens] == ["list_level"]
    TransactionLog.open(uri, dict(running.options)).add_files([add("c")])
    store.clear()
    assert len(log.list_files(max_staleness_s=0)) == 3
    assert [operation for operation, _ in store.opens] == ["list_level", "get"]
