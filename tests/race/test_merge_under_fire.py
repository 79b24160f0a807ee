"""Merges while other processes append, overwrite and merge: no row is lost or doubled in any version."""

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

import indextables as it
from indextables.model.actions import AddAction, CommitInfo, RemoveAction
from indextables.ops.rewrite.rows import split_rows
from support.fire import append_many, create, merge_many, overwrite_many

pytestmark = pytest.mark.slow


def run_together(*jobs):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(jobs), mp_context=context) as pool:
        return [future.result(timeout=300) for future in [pool.submit(*job) for job in jobs]]


class Contents:
    """The rows of splits, each read once."""

    def __init__(self, log):
        self.log = log
        self.reading = log.snapshot().reading
        self.known = {}

    def of(self, adds):
        total = Counter()
        for add in adds:
            if add.path not in self.known:
                parts = split_rows(self.reading, add)
                self.known[add.path] = Counter(row for _, part in parts for row in part["id"].to_pylist())
            total += self.known[add.path]
        return total


def check_every_version(uri):
    """Each version holds what the one before held, changed by exactly what its commit says it did."""
    log = it.TransactionLog.open(uri)
    contents = Contents(log)
    before = Counter()
    operations = Counter()
    for version in range(1, log.latest_version() + 1):
        actions = log.read_version(version)
        (info,) = (action for action in actions if isinstance(action, CommitInfo))
        added = contents.of(action for action in actions if isinstance(action, AddAction))
        now = contents.of(log.snapshot(version=version).adds())
        if info.operation == "WRITE":
            expected = before + added
        elif info.operation == "OVERWRITE":
            expected = added
        else:
            assert info.operation == "MERGE SPLITS"
            assert not any(a.data_change for a in actions if isinstance(a, (AddAction, RemoveAction)))
            expected = before
        assert now == expected, f"version {version}, {info.operation}"
        assert max(now.values(), default=1) == 1, f"version {version} has a row twice"
        operations[info.operation] += 1
        before = now
    return operations, before


def test_appends_and_two_mergers(tmp_path):
    """E4: two merges sharing a source: exactly one succeeds; foreign appends are fine."""
    uri = str(tmp_path / "t")
    create(uri)
    append_many(uri, "first", 6)
    _, _, merged, merged_too = run_together(
        (append_many, uri, "a", 12),
        (append_many, uri, "b", 12),
        (merge_many, uri, "m", 8),
        (merge_many, uri, "n", 8),
    )
    operations, rows = check_every_version(uri)
    assert operations["WRITE"] == 30
    assert operations["MERGE SPLITS"] == merged + merged_too > 0
    assert len(rows) == 90
    table = it.Table.open(uri)
    assert table.count() == table.count(query="message:row") == 90


def test_overwrites_under_a_merger(tmp_path):
    """E4: a merge whose sources were overwritten meanwhile commits nothing."""
    uri = str(tmp_path / "t")
    create(uri)
    append_many(uri, "first", 4)
    run_together((append_many, uri, "a", 8), (overwrite_many, uri, "o", 5), (merge_many, uri, "m", 8))
    operations, rows = check_every_version(uri)
    assert (operations["WRITE"], operations["OVERWRITE"]) == (12, 5)
    table = it.Table.open(uri)
    assert table.count() == sum(rows.values())
    assert sorted(table.scan(columns=["id"]).read_all()["id"].to_pylist()) == sorted(rows)
