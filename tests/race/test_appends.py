"""Processes that append to one table at the same time lose nothing (docs/behaviour.md, E2, E6)."""

from __future__ import annotations

import multiprocessing
from collections import Counter

import pytest

from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from support.builder import SCHEMA
from support.servers import azure_server, s3_server  # noqa: F401 - fixtures

PROCESSES = 8
APPENDS = 50


def append_many(uri, options, writer, count, results):
    """What each process runs; it reports the versions it was given."""
    log = TransactionLog.open(uri, options)
    results.put((writer, [log.add_files([AddAction(path=f"{writer}-{n}", size=1)]) for n in range(count)]))


def read_many(uri, options, stop, results):
    """A reader meanwhile: every state it sees is a committed one, and they only grow."""
    log = TransactionLog.open(uri, options)
    seen = []
    while not stop.is_set():
        snapshot = log.snapshot(max_staleness_s=0)
        seen.append((snapshot.version, len(snapshot.adds())))
    results.put(("reader", seen))


def run(uri, options, processes, appends, *, reader=False):
    """Start the writers, wait for them, and return what they report by name."""
    context = multiprocessing.get_context("spawn")
    results, stop = context.Queue(), context.Event()
    workers = [
        context.Process(target=append_many, args=(uri, options, writer, appends, results))
        for writer in range(processes)
    ]
    watcher = context.Process(target=read_many, args=(uri, options, stop, results))
    for worker in [*workers, *([watcher] if reader else [])]:
        worker.start()
    reported = dict(results.get(timeout=240) for _ in workers)
    stop.set()
    if reader:
        reported.update([results.get(timeout=60)])
        watcher.join(60)
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    return reported


def check(uri, options, reported, processes, appends):
    """Every number was given once, every file is there once, and each in the version it was told."""
    log = TransactionLog.open(uri, options)
    given = [version for writer in range(processes) for version in reported[writer]]
    assert sorted(given) == list(range(1, processes * appends + 1))
    assert log.latest_version() == processes * appends
    live = Counter(item.path for item in log.list_files())
    assert live == Counter(f"{writer}-{n}" for writer in range(processes) for n in range(appends))
    for writer in range(processes):
        assert log.read_version(reported[writer][-1])[0].path == f"{writer}-{appends - 1}"
    assert log.snapshot().files(engine="reference").equals(log.snapshot().files(engine="columnar"))


@pytest.mark.slow
def test_eight_processes_append_fifty_times_each_to_a_local_table(tmp_path):
    """E2: 400 versions, no gap, no duplicate, nothing lost; E6: a reader meanwhile sees whole versions only."""
    uri = str(tmp_path / "table")
    TransactionLog.open(uri).initialize(SCHEMA)
    reported = run(uri, {}, PROCESSES, APPENDS, reader=True)
    assert all(version == files for version, files in reported["reader"])
    versions = [version for version, _ in reported["reader"]]
    assert versions == sorted(versions)
    check(uri, {}, reported, PROCESSES, APPENDS)


@pytest.mark.long
@pytest.mark.sample
def test_processes_append_to_one_table_on_s3(s3_server):  # noqa: F811 - a fixture
    """E2: the same on an object store that knows put-if-absent."""
    uri, options = f"{s3_server.root}/appends", dict(s3_server.options)
    TransactionLog.open(uri, options).initialize(SCHEMA)
    reported = run(uri, options, PROCESSES, APPENDS)
    check(uri, options, reported, PROCESSES, APPENDS)


@pytest.mark.long
def test_processes_append_to_one_table_on_azure(azure_server):  # noqa: F811 - a fixture
    """E2: the same on Azure, where its emulator can run."""
    uri, options = f"{azure_server.root}/appends", dict(azure_server.options)
    TransactionLog.open(uri, options).initialize(SCHEMA)
    reported = run(uri, options, PROCESSES, APPENDS)
    check(uri, options, reported, PROCESSES, APPENDS)
