"""Which log files may go, and in which order (docs/behaviour.md, D)."""

from __future__ import annotations

import contextlib
import logging

import pytest

from indextables.errors import StorageError
from indextables.log.format.dialect import NATIVE
from indextables.log.retention import plan_cleanup
from indextables.log.segment import Listing, list_log
from indextables.options import RetentionOptions
from indextables.storage.store import ObjectMeta
from support.builder import LOG_DIR, LogBuilder, add, checkpoint_path, commit_path, paths_of
from support.clock import DAY_MS, HOUR_MS
from support.faults import Crash, FaultyStore

NOW = 1_700_000_000_000
KEEP = RetentionOptions()
NOTHING = RetentionOptions(log_ms=0, checkpoint_ms=0)


def plan(ages, checkpoints, **more):
    """Which versions and checkpoints go, given the age in ms of each and the versions with a checkpoint."""
    planned = planned_for(ages, checkpoints, **more)
    return [file.version for file in planned.versions], [file.name for file in planned.checkpoints]


def planned_for(ages, checkpoints, *, current=None, retention=KEEP, parts=None, checkpoint_age=DAY_MS):
    names = {NATIVE.commit_name(version): age for version, age in ages.items()}
    names |= {NATIVE.checkpoint_name(version): checkpoint_age for version in checkpoints}
    for name in parts or ():
        names[name] = checkpoint_age
    metas = {name: ObjectMeta(name, 1, NOW - age) for name, age in names.items()}
    listing = Listing(tuple(NATIVE.parse_name(name, metas[name]) for name in sorted(metas)))
    referred = {NATIVE.checkpoint_name(version): () for version in checkpoints} | (
        {NATIVE.checkpoint_name(max(checkpoints)): tuple(n for n in parts if "kept" in n)} if parts else {}
    )
    return plan_cleanup(
        listing, NATIVE.checkpoints(listing.files), referred,
        current=max(ages) if current is None else current, now_ms=NOW, retention=retention,
    )  # fmt: skip


OLD = 31 * DAY_MS


def test_old_versions_below_the_checkpoint_go():
    """D1."""
    assert plan(dict.fromkeys(range(13), OLD), [10])[0] == list(range(10))


def test_age_alone_keeps_a_version():
    """D1: also at exactly the limit, and with a clock that went back."""
    for age in (29 * DAY_MS, 30 * DAY_MS, -5 * DAY_MS):
        assert plan(dict.fromkeys(range(13), age), [10])[0] == []
    assert plan(dict.fromkeys(range(13), 30 * DAY_MS + 1), [10])[0] == list(range(10))


def test_a_version_at_or_above_the_checkpoint_stays():
    """D1."""
    assert plan(dict.fromkeys(range(13), OLD), [])[0] == []
    assert plan(dict.fromkeys(range(13), OLD), [0])[0] == []
    assert 10 not in plan(dict.fromkeys(range(13), OLD), [10])[0]


def test_the_current_version_stays():
    """D1."""
    assert plan(dict.fromkeys(range(11), OLD), [10], current=3)[0] == []
    assert plan(dict.fromkeys(range(11), OLD), [4, 10], current=3)[0] == []


@pytest.mark.parametrize(("hours", "cover"), [(11, None), (12, None), (13, 1)])
def test_a_version_half_a_day_beyond_the_retention_asks_for_a_checkpoint_at_the_cut(hours, cover):
    ages = {0: 30 * DAY_MS + hours * HOUR_MS} | dict.fromkeys(range(1, 6), DAY_MS)
    assert planned_for(ages, [5]).cover == cover


def test_deletion_stops_at_the_first_version_that_must_stay():
    """D2: what goes is a contiguous prefix."""
    ages = dict.fromkeys(range(25), OLD) | {14: DAY_MS}
    gone, _ = plan(ages, [10, 20])
    assert gone == list(range(10))


def test_every_version_that_stays_can_be_rebuilt():
    """D3: the cut is moved down to a checkpoint, and that checkpoint stays whatever its age."""
    ages = dict.fromkeys(range(15), OLD) | dict.fromkeys(range(15, 25), DAY_MS)
    gone, checkpoints = plan(ages, [5, 10, 20])
    assert gone == list(range(10))
    assert checkpoints == [NATIVE.checkpoint_name(5)]


def test_old_versions_stay_when_no_checkpoint_lies_among_them():
    """D3: deleting 0 to 4 would make 5 to 9 unreadable."""
    ages = dict.fromkeys(range(5), OLD) | dict.fromkeys(range(5, 13), DAY_MS)
    assert plan(ages, [10])[0] == []


def test_older_checkpoints_go_and_the_newest_never():
    """D3."""
    assert plan(dict.fromkeys(range(25), 0), [10, 20])[1] == [NATIVE.checkpoint_name(10)]
    assert plan(dict.fromkeys(range(25), 0), [20])[1] == []
    assert plan(dict.fromkeys(range(25), 0), [10, 20], checkpoint_age=2 * HOUR_MS)[1] == []


def test_parts_that_no_checkpoint_names_go_when_history_lets_go_of_their_version():
    """However old they are, their writer may have yet to put the main file."""
    named = NATIVE.part_name(10, "kept", 1, 1)
    loose = [NATIVE.part_name(10, "lost", 1, 2), NATIVE.part_name(7, "lost", 1, 1)]
    assert plan(dict.fromkeys(range(12), 0), [10], parts=[named, *loose])[1] == []
    assert plan(dict.fromkeys(range(12), OLD), [10], parts=[named, *loose])[1] == loose[1:]


@pytest.fixture
def builder():
    """25 versions with checkpoints at 10 and 20, all older than a month."""
    return LogBuilder().create(partition_by=["day"]).appends(25).wait(days=31)


def test_a_table_without_its_version_zero_is_whole(builder):
    """D4: schema, protocol, partition columns and all files are known; appends work."""
    before = builder.log().snapshot()
    expected = paths_of(builder.log())
    builder.cleanup()
    log = builder.log()
    assert log.versions() == [20, 21, 22, 23, 24, 25]
    assert log.snapshot().schema.equals(before.schema)
    assert log.snapshot().partition_columns == ("day",)
    assert log.protocol() == before.protocol
    assert paths_of(log) == expected
    assert log.add_files([]) == 25
    builder.append("more")
    assert paths_of(builder.log())[-1] == "more"
    for version in builder.log().versions():
        assert builder.log().snapshot(version=version).num_files == version


def test_cleanup_follows_a_checkpoint_by_itself(builder):
    builder.appends(5)
    assert builder.log().versions() == list(range(26, 31))


def test_cleanup_can_be_switched_off(builder):
    """D5."""
    before = builder.names()
    builder.log(cleanup__enabled="false").cleanup()
    assert builder.names() == before


class Undeletable:
    def __init__(self, inner, path):
        self.inner, self.path, self.deleted = inner, path, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def delete(self, path):
        if path == self.path:
            raise StorageError("locked")
        self.deleted.append(path)
        self.inner.delete(path)


def test_a_deletion_that_fails_is_a_warning_or_an_error_as_the_policy_says(builder, caplog):
    """D5: and what is left over is no version any more."""
    store = Undeletable(builder.store, commit_path(4))
    with caplog.at_level(logging.WARNING):
        result = LogBuilder(store, clock=builder.clock).log().cleanup()
    assert (result.versions_deleted, result.failures) == (4, 1)
    assert "locked" in caplog.text
    assert builder.log().versions() == list(range(20, 26))
    with pytest.raises(StorageError, match="locked"):
        LogBuilder(store, {"cleanup.failurePolicy": "fail"}, builder.clock).log().cleanup()


def test_a_failing_cleanup_never_fails_the_commit_before_it(builder, caplog):
    """C9, D5: whatever the policy."""
    store = Undeletable(builder.store, commit_path(0))
    writer = LogBuilder(store, {"cleanup.failurePolicy": "fail"}, builder.clock)
    with caplog.at_level(logging.WARNING):
        writer.appends(5)
    assert builder.log().latest_version() == 30
    assert "the commit itself is durable" in caplog.text


def test_a_damaged_checkpoint_covers_nothing(builder):
    """Nothing is deleted on the word of a checkpoint that cannot be read to its end."""
    builder.truncate(checkpoint_path(20), 0.9).cleanup()
    assert builder.log().versions() == list(range(10, 26))
    assert len(paths_of(builder.log())) == 25


def test_versions_go_in_ascending_order(builder):
    """D2: a writer whose file is still there knows that no later one has gone."""
    store = Undeletable(builder.store, "nothing")
    LogBuilder(store, clock=builder.clock).log().cleanup()
    expired = [path for path in store.deleted if not path.endswith(".tmp")]
    assert expired == [checkpoint_path(10), *(commit_path(n) for n in range(20))]


@pytest.mark.parametrize("mode", ["crash", "crash_after"])
def test_every_version_that_is_offered_opens_after_a_crash_inside_cleanup(mode):
    for moment in range(1, 200):
        builder = LogBuilder().create().appends(25).wait(days=31)
        store = FaultyStore(builder.store, moment, mode)
        with contextlib.suppress(Crash):
            LogBuilder(store, clock=builder.clock).log().cleanup()
        offered = builder.log().versions()
        assert offered[-1] == 25
        for version in offered:
            assert builder.log().snapshot(version=version).num_files == version
        if not store.fired:
            break
    assert moment > 20


def test_strangers_in_the_log_directory_are_left_alone(builder):
    builder.store.put(f"{LOG_DIR}/notes.txt", b"mine")
    builder.cleanup()
    assert "notes.txt" in builder.names()
    assert "_last_checkpoint" in builder.names()


def test_a_table_without_checkpoint_loses_nothing():
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(12).wait(days=90).cleanup()
    assert builder.log().versions() == list(range(13))
    assert plan(dict.fromkeys(range(3), OLD), [], retention=NOTHING)[0] == []


def test_with_default_settings_old_versions_go_and_young_ones_open_on_a_table_written_steadily():
    """D3: a commit every six hours for 120 days."""
    builder = LogBuilder().create()
    most = 0
    for _ in range(120 * 4):
        builder.wait(hours=6).append(1)
        files = list_log(builder.store, NATIVE)
        most = max(most, len(builder.names()))
        oldest = min(file.modified_ms for file in (*files.files, *files.retired) if file.kind == "commit")
        assert builder.clock.now_ms() - oldest <= 31 * DAY_MS
    offered = builder.log().versions()
    assert offered == list(range(offered[0], 481))
    assert len(offered) >= 30 * 4
    for version in offered:
        assert builder.log().snapshot(version=version).num_files == version
    assert most < 220


@pytest.mark.parametrize("hours", [4, 30, 24 * 9])
def test_however_often_a_table_is_written_nothing_is_kept_much_longer_than_asked(hours):
    """D3: one checkpoint a day stays, and where none lies near the cut one is written."""
    builder = LogBuilder(options={"checkpoint.interval": 50}).create()
    for _ in range(90 * 24 // hours):
        builder.wait(hours=hours).append(1)
    offered = builder.log().versions()
    assert offered[-1] == 90 * 24 // hours
    oldest = builder.store.head(commit_path(offered[0])).modified_ms
    assert builder.clock.now_ms() - oldest <= 31 * DAY_MS + hours * HOUR_MS
    for version in (offered[0], offered[len(offered) // 2], offered[-1]):
        assert builder.log().snapshot(version=version).num_files == version


def test_of_the_checkpoints_past_their_retention_the_newest_of_each_day_stays():
    """D3."""
    builder = LogBuilder().create()
    for _ in range(24 * 5):
        builder.wait(hours=1).append(1)
    kept = [name for name in builder.names() if "checkpoint" in name and name[0].isdigit()]
    assert 5 <= len(kept) <= 8


def test_a_stray_floor_does_not_hide_the_table(builder):
    builder.store.put(f"{LOG_DIR}/{10**18:020d}.floor", b"")
    assert builder.log().versions() == list(range(26))
    assert len(paths_of(builder.log())) == 25


def test_where_no_checkpoint_lies_near_the_cut_one_is_written():
    """D3: for months nobody wrote checkpoints."""
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create()
    for _ in range(90):
        builder.wait(days=1).append(1)
    builder.log(checkpoint__enabled="true").add_files([add("x")])
    offered = builder.log().versions()
    assert offered == list(range(60, 92))
    assert builder.log().snapshot(version=60).num_files == 60


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_a_cleanup_without_anything_to_do_counts_nothing(enabled):
    result = LogBuilder(options={"cleanup.enabled": enabled}).create().log().cleanup()
    assert (result.versions_deleted, result.checkpoints_deleted, result.failures) == (0, 0, 0)
