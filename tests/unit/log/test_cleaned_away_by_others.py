"""What was newest a moment ago may be gone: whoever asks for the newest version gets it all the same."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from indextables.errors import VersionNotFoundError
from indextables.log.openable import openable
from indextables.ops.maintain.truncate_history import run_truncate
from support.builder import LogBuilder, checkpoint_path, commit_path
from support.faults import Around
from support.upkeep import StandIn

_OTHER_PROCESS = """
import sys
import indextables as it
from indextables.ops.maintain.truncate_history import run_truncate
log = it.TransactionLog.open(sys.argv[1], {"checkpoint.interval": 1000})
for n in range(30):
    log.add_files([it.AddAction(path=f"{n}.split", size=1)])
run_truncate(log)
"""


def test_files_are_listed_after_another_process_truncated_history(tmp_path):
    """F3: a handle may believe 'nothing newer' for some seconds, and never fails for it."""
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    table.log.checkpoint()
    reader = table.handle()
    assert reader.latest_version() == 1
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, str(table.root)], check=True)
    assert len(reader.list_files()) == 31


class CleanedWhileRead(Around):
    """Another writer's cleanup deletes an old checkpoint after it was listed and before it is read."""

    def _do(self, operation, path, call):
        if operation == "get" and path == checkpoint_path(3):
            self.inner.delete(path)
        return call()


def test_a_version_that_is_cleaned_away_while_it_is_opened_is_gone_and_not_damaged():
    keep = {"checkpointRetention.duration": 10**12, "checkpoint.interval": 1000}
    builder = LogBuilder(options=keep).create().appends(3).checkpoint().appends(2).checkpoint()
    for version in range(4):
        builder.store.delete(commit_path(version))
    reader = LogBuilder(CleanedWhileRead(builder.store), keep, builder.clock).log()
    with pytest.raises(VersionNotFoundError, match="has no version 3; available: 5"):
        reader.snapshot(3)


class RetiredMeanwhile(Around):
    """Another writer commits, writes its checkpoint and erases history while a checkpoint is being made."""

    def _do(self, operation, path, call):
        if operation == "get" and path == checkpoint_path(5):
            other = LogBuilder(self.inner, {"checkpoint.interval": 1000}).appends(1)
            other.checkpoint()
            run_truncate(other.log())
        return call()


def test_a_checkpoint_of_a_version_that_others_retired_meanwhile_is_made_of_the_newest():
    options = {"checkpoint.interval": 1000}
    builder = LogBuilder(options=options).create().appends(3).checkpoint().appends(2)
    assert LogBuilder(RetiredMeanwhile(builder.store), options, builder.clock).log().checkpoint() == 6
    assert builder.log().versions() == [6]


class TruncatedWhileRead(Around):
    """Another process truncates the history when a version is about to be read, once."""

    truncated = False

    def _do(self, operation, path, call):
        if operation == "get" and path in {commit_path(2), commit_path(3)} and not self.truncated:
            self.truncated = True
            run_truncate(LogBuilder(self.inner, {"checkpoint.interval": 1000}).log())
        return call()


@pytest.mark.parametrize("question", ["history", "as_of"])
def test_history_and_as_of_look_again_when_others_truncate_the_history_meanwhile(question):
    options = {"checkpoint.interval": 1000, "transaction.cache.enabled": "false"}
    builder = LogBuilder(options=options).create().appends(3)
    log = LogBuilder(TruncatedWhileRead(builder.store), options, builder.clock).log()
    if question == "history":
        assert log.history()["version"].to_pylist() == [3]
    else:
        assert log.snapshot(as_of=datetime.now(UTC) + timedelta(days=365 * 100)).version == 3


class ReplacedWhileRead(TruncatedWhileRead):
    """Another process commits once more and truncates the history when versions are about to be read."""

    def _do(self, operation, path, call):
        if operation == "get" and not self.truncated:
            self.truncated = True
            other = LogBuilder(self.inner, {"checkpoint.interval": 1000}).appends(1)
            run_truncate(other.log())
        return call()


def test_versions_that_came_while_older_ones_went_are_offered():
    options = {"checkpoint.interval": 1000, "transaction.cache.enabled": "false"}
    builder = LogBuilder(options=options).create().appends(3)
    log = LogBuilder(ReplacedWhileRead(builder.store), options, builder.clock).log()
    assert openable(log._source) == [4]
