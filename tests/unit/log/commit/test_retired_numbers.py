"""A version number that was taken and retired meanwhile is never taken again unnoticed."""

from __future__ import annotations

import json
import os

import pytest

from indextables.errors import CommitError, ConflictError, StorageError, VersionNotFoundError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.log.format.dialect import NATIVE
from indextables.model.actions import TxnAction
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.storage.envelope import unpack
from indextables.storage.stores.local import LocalStore
from support.builder import LOG_DIR, SCHEMA, LogBuilder, add, checkpoint_path, commit_path, paths_of

SHORT = {"logRetention.duration": 0, "checkpointRetention.duration": 0, "checkpoint.enabled": "false"}
UNCHECKED = {"purge.retentionCheckEnabled": "false"}


class Pausing:
    """A store whose first put of a version file waits while others do something, before or after it."""

    def __init__(self, inner, meanwhile, *, after=False, lose_reply=False):
        self.inner, self.meanwhile, self.after, self.lose_reply = inner, meanwhile, after, lose_reply
        self.waiting = True

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def put_if_absent(self, path, data):
        if not (self.waiting and path.endswith(".json") and "checkpoint" not in path):
            return self.inner.put_if_absent(path, data)
        self.waiting = False
        if not self.after:
            self.meanwhile()
        created = self.inner.put_if_absent(path, data)
        if self.after:
            self.meanwhile()
        if self.lose_reply:
            raise StorageError("no answer")
        return created


def paused(builder, meanwhile, **how):
    return LogBuilder(Pausing(builder.store, meanwhile, **how), builder.options, builder.clock).log()


def commit_of(builder, version):
    """The commitInfo of a version file, whether it is history or a fence."""
    name = commit_path(version).rpartition("/")[2]
    return NATIVE.decode_info(builder.store.get(commit_path(version)), name=name)


@pytest.fixture
def builder():
    return LogBuilder(options=SHORT).create().append("a")


def truncate(builder):
    run_truncate(builder.log())


def purge(builder):
    builder.checkpoint()
    run_purge(builder.log(**UNCHECKED), PurgeRequest(older_than_hours=10**6, log_retention_hours=0))


def cleanup(builder):
    builder.checkpoint().cleanup()


@pytest.mark.parametrize("retire", [truncate, purge, cleanup])
@pytest.mark.parametrize("pause_hours", [0, 3])
def test_a_writer_that_paused_while_history_was_erased_loses_nothing(builder, retire, pause_hours):
    """After a short pause it meets a fence, after a long one a free number: its rows are there either way."""

    def meanwhile():
        builder.append("b").append("c").wait(hours=pause_hours).append("d")
        retire(builder)

    log = paused(builder, meanwhile)
    version = log.add_files([add("ours")])
    assert version == 5
    assert paths_of(builder.log()) == ["a", "b", "c", "d", "ours"]
    assert builder.log().versions()[-1] == 5
    assert log.last_commit.conflicts == 1


def test_on_a_local_disk_a_writer_that_paused_notices_that_its_number_was_freed(tmp_path):
    """There it does not list the log again, but looks whether the version before its own is still there."""
    builder = LogBuilder(LocalStore(tmp_path), SHORT).create().append("a")

    def meanwhile():
        builder.append("b").append("c").append("d")
        for file in (tmp_path / LOG_DIR).glob("*.json"):
            three_hours_ago_s = file.stat().st_mtime - 3 * 3600
            os.utime(file, (three_hours_ago_s, three_hours_ago_s))
        truncate(builder)
        assert not (tmp_path / commit_path(2)).exists()

    log = paused(builder, meanwhile)
    assert log.add_files([add("ours")]) == 5
    assert paths_of(builder.log()) == ["a", "b", "c", "d", "ours"]


def test_a_commit_whose_file_was_deleted_before_its_writer_looked_back_counts(builder):
    """The version that follows it says so."""

    def meanwhile():
        builder.wait(hours=3).append("b").append("c")
        truncate(builder)

    log = paused(builder, meanwhile, after=True)
    assert log.add_files([add("ours")]) == 2
    assert "00000000000000000002.json" not in builder.names()
    assert paths_of(builder.log()) == ["a", "b", "c", "ours"]
    assert builder.log().find_commit(commit_of(builder, 3).previous_commit_id) == 2


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_writer_that_paused_long_after_its_put_learns_from_the_checkpoint_that_its_commit_counts(form):
    """Its file and the one that followed it are gone; the checkpoint at the floor names both commits."""
    builder = LogBuilder(options={**SHORT, "checkpoint.format": form}).create().append("a")

    def meanwhile():
        builder.append("b").wait(hours=3).append("c")
        truncate(builder)

    log = paused(builder, meanwhile, after=True)
    version = log.add_files([add("ours")])
    assert commit_path(version) not in [f"{LOG_DIR}/{name}" for name in builder.names()]
    assert paths_of(builder.log()) == ["a", "b", "c", "ours"]
    assert log.last_commit.conflicts == 0


def without_commit_ids(builder):
    """Make the newest checkpoint one of 0.2.0, which named no commits."""
    path = checkpoint_path(builder.log().latest_version())
    document = json.loads(unpack(builder.store.get(path), name=path))
    assert document.pop("commitIds")
    builder.damage(path, json.dumps(document).encode()).hint(None)


def test_a_writer_that_paused_too_long_after_its_put_says_that_it_does_not_know(builder):
    """Its file, the one that followed it and its name are gone: nothing is left that could tell."""

    def meanwhile():
        builder.append("b").wait(hours=3).append("c")
        truncate(builder)
        without_commit_ids(builder)

    log = paused(builder, meanwhile, after=True)
    with pytest.raises(CommitError, match="moved on too far") as error:
        log.add_files([add("ours")])
    assert error.value.outcome == "unknown"
    assert paths_of(builder.log()) == ["a", "b", "c", "ours"]


def test_below_a_checkpoint_without_names_the_next_version_tells(builder):
    def meanwhile():
        builder.append("b").append("c")
        truncate(builder)
        without_commit_ids(builder)

    log = paused(builder, meanwhile, after=True)
    assert log.add_files([add("ours")]) == 2
    assert paths_of(builder.log()) == ["a", "b", "c", "ours"]


def test_a_checkpoint_names_the_last_256_commits_and_no_more(builder):
    """The ids of a checkpoint come from the one before and its tail."""
    builder.appends(100).checkpoint().appends(100).checkpoint().appends(100)
    truncate(builder)
    latest = builder.log().latest_version()
    document = json.loads(unpack(builder.store.get(checkpoint_path(latest)), name="checkpoint"))
    ids = document["commitIds"]
    assert len(ids) == len(set(ids)) == 256
    assert ids[-1] == builder.log().snapshot().info.commit_id
    found = [builder.log().find_commit(commit_id) for commit_id in (ids[0], ids[100], ids[-1])]
    assert found == [latest - 255, latest - 155, latest]


def test_a_writer_whose_number_the_checkpoint_does_not_reach_says_that_it_does_not_know(builder):
    def meanwhile():
        builder.appends(257).wait(hours=3).append("last")
        truncate(builder)

    log = paused(builder, meanwhile, after=True)
    with pytest.raises(CommitError) as error:
        log.add_files([add("ours")])
    assert error.value.outcome == "unknown"
    assert "ours" in paths_of(builder.log())


def test_a_checkpoint_that_goes_before_it_is_read_makes_the_writer_look_again(builder):
    """A second cleaner raises the floor once more, between the listing and the checkpoint at the first."""

    class Overtaken(Pausing):
        def get(self, path, *, etag=None):
            if path == checkpoint_path(4) and self.overtake:
                self.overtake = False
                builder.append("d")
                truncate(builder)
            return self.inner.get(path, etag=etag)

    def meanwhile():
        builder.append("b").wait(hours=3).append("c")
        truncate(builder)
        store.overtake = True

    store = Overtaken(builder.store, meanwhile, after=True)
    store.overtake = False
    log = LogBuilder(store, builder.options, builder.clock).log()
    assert log.add_files([add("ours")]) == 2
    assert not store.overtake
    assert checkpoint_path(4) not in [f"{LOG_DIR}/{name}" for name in builder.names()]
    assert paths_of(builder.log()) == ["a", "b", "c", "d", "ours"]


def test_of_two_cleaners_the_slower_one_with_the_lower_floor_changes_nothing(builder):
    """Its floor arrives after the higher one, and after the files above it went."""

    class Slow(Pausing):
        def put_if_absent(self, path, data):
            if path.endswith(".floor"):
                builder.append("c").wait(hours=3).append("d")
                truncate(builder)
            return self.inner.put_if_absent(path, data)

    builder.append("b")
    run_truncate(LogBuilder(Slow(builder.store, None), builder.options, builder.clock).log())
    assert {name for name in builder.names() if name.endswith(".floor")} == {
        "00000000000000000002.floor",
        "00000000000000000004.floor",
    }
    assert builder.log().versions() == [4]
    assert paths_of(builder.log()) == ["a", "b", "c", "d"]


def test_a_writer_on_a_table_that_was_deleted_meanwhile_names_the_file_that_is_gone(builder):
    def meanwhile():
        builder.lose(*(f"{LOG_DIR}/{name}" for name in builder.names()))

    log = paused(builder, meanwhile)
    with pytest.raises(CommitError, match=r"0001\.json, which was there a moment ago, is gone") as error:
        log.add_files([add("ours")])
    assert error.value.outcome == "unknown"


def test_a_commit_that_was_fenced_before_its_writer_looked_back_counts(builder):
    log = paused(builder, lambda: (builder.append("b").append("c"), truncate(builder)), after=True)
    assert log.add_files([add("ours")]) == 2
    assert paths_of(builder.log()) == ["a", "b", "c", "ours"]


def test_a_commit_whose_answer_was_lost_is_found_in_its_fence(builder):
    log = paused(builder, lambda: (builder.append("b"), truncate(builder)), after=True, lose_reply=True)
    assert log.add_files([add("ours")]) == 2
    assert paths_of(builder.log()) == ["a", "b", "ours"]


def test_a_file_that_came_too_late_is_no_version(builder):
    """It stays where it is until cleanup, offered to nobody."""
    stale = builder.log().snapshot()
    builder.append("b").append("c").wait(hours=3)
    truncate(builder)
    late = builder.store.get(commit_path(3)).replace(b"c", b"c")
    assert builder.store.put_if_absent(commit_path(stale.version + 1), late)
    log = builder.log()
    assert log.versions() == [3]
    with pytest.raises(VersionNotFoundError):
        log.snapshot(version=2)
    with pytest.raises(VersionNotFoundError):
        log.read_version(2)
    assert paths_of(log) == ["a", "b", "c"]
    builder.wait(hours=2).append("d")
    truncate(builder)
    assert commit_path(2) not in [f"{LOG_DIR}/{name}" for name in builder.names()]


def test_fences_hold_the_number_and_say_nothing_of_what_was_erased():
    builder = LogBuilder(options={**SHORT, "transaction.compression.enabled": "false"}).create()
    builder.log().commit(
        CommitPlan("WRITE", Rule.APPEND, lambda _: [add("secret.split")], parameters={"predicate": "ssn=1"})
    )
    builder.append("b")
    truncate(builder)
    assert builder.log().versions() == [2]
    left = builder.store.get(commit_path(1))
    assert b"retired" in left
    assert b"ssn" not in left
    assert b"secret.split" not in left
    builder.wait(hours=2).append("c")
    truncate(builder)
    assert "00000000000000000001.json" not in builder.names()


def test_fences_protect_no_split():
    """What only erased versions had is an orphan at once."""
    builder = LogBuilder(options={**SHORT, **UNCHECKED}).create().append("a.split")
    builder.store.put("a.split", b"rows")
    builder.store.put("b.split", b"rows")
    builder.overwrite("b.split").wait(ms=1)
    builder.checkpoint()
    result = run_purge(builder.log(), PurgeRequest(older_than_hours=0, log_retention_hours=0))
    assert result.orphaned_files_deleted == 1
    assert [meta.path for meta in builder.store.list() if meta.path.endswith(".split")] == ["b.split"]


def test_a_second_truncation_does_not_keep_fences_for_ever(builder):
    for _ in range(30):
        builder.append(1).wait(hours=0.5)
        truncate(builder)
    assert len([name for name in builder.names() if name.endswith(".json")]) <= 6
    assert len([name for name in builder.names() if name.endswith(".floor")]) <= 4


def test_a_batch_with_a_transaction_is_written_once_however_its_number_went(builder):
    txn = TxnAction(app_id="nightly", version=7)

    def meanwhile():
        builder.append("b").wait(hours=3)
        builder.log().add_files([add("theirs")], txn=txn)
        truncate(builder)

    log = paused(builder, meanwhile)
    log.add_files([add("ours")], txn=txn)
    assert not log.last_commit.written
    assert paths_of(builder.log()) == ["a", "b", "theirs"]


def test_a_commit_that_relies_on_its_version_refuses_when_a_late_file_hides_what_happened(builder):
    """What stands at a retired number is not what others committed there."""
    read = builder.log().latest_version()

    def meanwhile():
        builder.remove("a").wait(hours=3).append(add("b", data_change=False))
        truncate(builder)

    assert paused(builder, meanwhile).record_skipped_file("a", "odd", "merge") == 4
    mine = CommitPlan("OVERWRITE", Rule.OVERWRITE, lambda _: [add("ours")], read_version=read)
    with pytest.raises(ConflictError, match="cannot tell what changed since version 1: version 2"):
        builder.log().commit(mine)


def test_truncating_beside_a_commit_leaves_only_versions_that_open(builder):
    """The checkpoint is that of the other writer's version, and so is what stays."""

    class Beside:
        def __init__(self, inner):
            self.inner, self.first = inner, True

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def list_level(self, prefix="", start_after=None):
            found = self.inner.list_level(prefix, start_after)
            if self.first and prefix == LOG_DIR:
                self.first = False
                builder.append("beside")
            return found

    result = run_truncate(LogBuilder(Beside(builder.store), SHORT, builder.clock).log())
    offered = builder.log().versions()
    assert offered == [result.version] == [2]
    assert paths_of(builder.log(), offered[0]) == ["a", "beside"]


def test_a_damaged_checkpoint_stops_a_truncation_before_anything_goes(builder):
    class Corrupting:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            return self.inner.put_if_absent(path, data[:-5] if "checkpoint" in path else data)

        def put(self, path, data):
            return self.inner.put(path, data[:-5] if ".checkpoint" in path else data)

    before = builder.log().versions()
    with pytest.raises(Exception, match="could not be read back"):
        run_truncate(LogBuilder(Corrupting(builder.store), SHORT, builder.clock).log())
    builder.lose(checkpoint_path(1))
    assert builder.log().versions() == before


def test_a_merge_prepared_before_a_truncation_still_finds_its_sources(builder):
    builder.append("b")

    def build(base):
        return [*removals(base, base.adds({"a", "b"}), data_change=False), add("ab", data_change=False)]

    plan = CommitPlan("MERGE", Rule.MERGE, build, sources=frozenset({"a", "b"}))
    log = paused(builder, lambda: (builder.append("c").wait(hours=3).append("d"), truncate(builder)))
    assert log.commit(plan).version == 5
    assert paths_of(builder.log()) == ["ab", "c", "d"]


@pytest.mark.parametrize("pause_hours", [0, 3])
def test_a_creator_that_paused_while_the_table_was_made_and_truncated_takes_the_one_that_is_there(
    pause_hours,
):
    other = LogBuilder(options=SHORT)

    def meanwhile():
        other.create().append("a").wait(hours=pause_hours).append("b")
        truncate(other)

    log = paused(other, meanwhile)
    assert log.initialize(SCHEMA) == 2
    assert other.log().versions() == [2]
    assert log.metadata().id == other.log().metadata().id
    assert paths_of(other.log()) == ["a", "b"]
