"""A batch committed twice is there once (docs/behaviour.md, E10)."""

from __future__ import annotations

import pytest

from indextables.model.actions import TxnAction
from indextables.ops.maintain.truncate_history import run_truncate
from support.builder import LogBuilder, add, paths_of


def txn(version, app="stream"):
    return TxnAction(app_id=app, version=version)


@pytest.fixture
def builder():
    built = LogBuilder().create()
    built.log().add_files([add("batch1")], txn=txn(1))
    return built


def test_the_same_batch_or_an_older_one_writes_nothing(builder):
    """E10: and returns the current version."""
    builder.append("other")
    for number in (1, 0):
        log = builder.log()
        assert log.add_files([add("again")], txn=txn(number)) == 2
        assert not log.last_commit.written
    assert builder.log().add_files([add("batch2")], txn=txn(2)) == 3
    assert paths_of(builder.log()) == ["batch1", "batch2", "other"]


def test_applications_do_not_know_each_other(builder):
    assert builder.log().add_files([add("elsewhere")], txn=txn(1, "other")) == 2
    assert builder.log().snapshot().txns.keys() == {"stream", "other"}


def test_it_holds_before_and_after_a_checkpoint_and_cleanup():
    """E10: a checkpoint carries the newest batch of each application."""
    builder = LogBuilder(options={"logRetention.duration": 0, "checkpointRetention.duration": 0}).create()
    builder.log().add_files([add("batch1")], txn=txn(1))
    builder.appends(3).wait(hours=1).checkpoint().cleanup()
    assert builder.log().versions() == [4]
    assert builder.log().add_files([add("again")], txn=txn(1)) == 4
    assert builder.log().add_files([add("batch2")], txn=txn(2)) == 5


def test_of_two_racing_writers_of_one_batch_one_writes(builder):
    """E10: the transaction is checked again on every rebase."""

    class Overtaken:
        def __init__(self, inner):
            self.inner, self.first = inner, True

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            if self.first:
                self.first = False
                builder.log().add_files([add("theirs")], txn=txn(2))
            return self.inner.put_if_absent(path, data)

    log = LogBuilder(Overtaken(builder.store), clock=builder.clock).log()
    assert log.add_files([add("ours")], txn=txn(2)) == 2
    assert not log.last_commit.written
    assert paths_of(builder.log()) == ["batch1", "theirs"]


def test_a_commit_is_not_repeated_when_its_version_was_retired_before_its_writer_looked():
    """The store repeats the put, finds its own file and says so; then hours pass, and cleanup comes first."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append("a")

    class Echo:
        def __init__(self, inner):
            self.inner, self.first = inner, True

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            done = self.inner.put_if_absent(path, data)
            if not self.first:
                return done
            self.first = False
            builder.wait(hours=3).append("b").checkpoint().wait(hours=3)
            run_truncate(builder.log())
            return False

    log = LogBuilder(Echo(builder.store), builder.options, builder.clock).log()
    assert log.overwrite_files([add("mine")]) == 2
    assert paths_of(builder.log()) == ["b", "mine"]
