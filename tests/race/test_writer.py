"""A writer that threads share, and writers that are killed: what a ticket acknowledged is in the table."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

import pyarrow as pa
import pytest

import indextables as it

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string())])
OPTIONS = {"indexing.typemap.message": "text", "mergeOnWrite.fanIn": "4"}


def batch(*numbers):
    return pa.table({"id": list(numbers), "message": [f"event number{at}" for at in numbers]}, SCHEMA)


def ids(uri):
    return sorted(it.Table.open(uri).scan(columns=["id"]).read_all().column("id").to_pylist())


def test_threads_share_a_writer_and_each_row_is_there_once(tmp_path):
    table = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    acknowledged, lock = {}, threading.Lock()

    def work(writer, name):
        for number in range(25):
            at = name * 1_000 + number
            version = writer.write(batch(at)).wait(120)
            with lock:
                acknowledged[at] = version

    with table.writer(flush_rows=8, flush_seconds=0.01, max_pending_bytes=2_000) as writer:
        threads = [threading.Thread(target=work, args=(writer, name)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ids(table.uri) == sorted(acknowledged)
    assert len(acknowledged) == 150
    history = it.Table.open(table.uri).history().to_pylist()
    writes = [row for row in history if row["operation"] == "WRITE"]
    assert {row["version"] for row in writes} == set(acknowledged.values())
    assert len(writes) < 150
    # Every ticket names the version that brought its row.
    for at, version in list(acknowledged.items())[::15]:
        assert it.Table.open(table.uri, version=version).count(f"id = {at}") == 1
        assert it.Table.open(table.uri, version=version - 1).count(f"id = {at}") == 0


def write_until_killed(uri, options, acknowledged):
    """What the process runs that is killed: it tells every row once its ticket was acknowledged."""
    table = it.Table.open(uri, options=options)
    writer = table.writer(flush_rows=3, flush_seconds=0.01)
    for at in range(100_000):
        ticket = writer.write(batch(at))
        if at % 3 == 2:
            ticket.wait()
            acknowledged.put(at)


@pytest.mark.slow
@pytest.mark.parametrize("rows_before", [2, 30, 90])
def test_what_a_killed_writer_acknowledged_is_in_the_table(tmp_path, rows_before):
    uri = str(tmp_path / "t")
    it.Table.create(uri, SCHEMA, options=OPTIONS)
    context = multiprocessing.get_context("spawn")
    acknowledged = context.Queue()
    process = context.Process(target=write_until_killed, args=(uri, OPTIONS, acknowledged))
    process.start()
    last = -1
    while last < rows_before:
        last = acknowledged.get(timeout=120)
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    while not acknowledged.empty():
        last = acknowledged.get()
    present = ids(uri)
    assert present == list(range(len(present))), "no row twice, and none missing before the last"
    assert len(present) > last
    table = it.Table.open(uri)
    assert table.count(query="event") == len(present)
    table.append(batch(10**6))
    assert table.count() == len(present) + 1
