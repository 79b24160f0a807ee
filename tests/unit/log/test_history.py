"""The time of versions, travelling to one, and the history (docs/behaviour.md, A13)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from indextables.errors import OptionError, VersionNotFoundError
from indextables.log.history import moment_of
from indextables.model.actions import TxnAction
from support.builder import LogBuilder, add, commit_path, paths_of
from support.clock import DAY_MS, START_MS
from support.faults import CountingStore


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.fixture
def hourly():
    """Versions 0 to 25, an hour apart, with checkpoints at 10 and 20."""
    builder = LogBuilder(options={"checkpointRetention.duration": 10 * DAY_MS}).create()
    for number in range(1, 26):
        builder.wait(hours=1).append(f"f{number:02d}")
    return builder


def test_every_version_equals_what_its_writer_saw(hourly):
    """A13: by number and by time, before and after checkpoints."""
    for version in range(26):
        expected = [f"f{number:02d}" for number in range(1, version + 1)]
        assert paths_of(hourly.log(), version) == expected
        moment = at(START_MS + version * 3_600_000 + 1)
        snapshot = hourly.log().snapshot(as_of=moment)
        assert snapshot.version == version
        assert [item.path for item in snapshot.adds()] == expected


def test_a_moment_falls_into_the_newest_version_at_or_before_it(hourly):
    log = hourly.log()
    exact = log.snapshot(version=7).timestamp_ms
    assert log.snapshot(as_of=at(exact)).version == 7
    assert log.snapshot(as_of=at(exact - 1)).version == 6
    assert log.snapshot(as_of=datetime(2100, 1, 1, tzinfo=UTC)).version == 25


def test_a_moment_before_the_first_version_is_an_error_with_the_range(hourly):
    with pytest.raises(VersionNotFoundError, match=r"versions 0 to 25 date from 2023-11-14"):
        hourly.log().snapshot(as_of="2020-01-01")


def test_a_version_that_is_not_there_says_which_are(hourly):
    """A13."""
    with pytest.raises(VersionNotFoundError, match="available: 0-25"):
        hourly.log().snapshot(version=26)
    with pytest.raises(VersionNotFoundError, match="no version -1"):
        hourly.log().snapshot(version=-1)


def test_versions_lost_to_cleanup_are_named_unreconstructible():
    """A13."""
    builder = LogBuilder(options={"logRetention.duration": 0, "checkpointRetention.duration": 0}).create()
    builder.appends(25).wait(hours=1).append(1).cleanup()
    with pytest.raises(VersionNotFoundError, match="available: 20-26"):
        builder.log().snapshot(version=7)
    with pytest.raises(VersionNotFoundError):
        builder.log().snapshot(as_of=at(START_MS))


def test_moments_may_be_written_in_several_ways():
    """Aware datetimes, dates and ISO text; what has no zone is in the option's zone."""
    expected = datetime(2024, 5, 1, 10, 0, tzinfo=UTC)
    plus_two = timezone(timedelta(hours=2))
    for moment, zone in [
        (expected, "UTC"),
        (datetime(2024, 5, 1, 12, 0, tzinfo=plus_two), "UTC"),
        ("2024-05-01T10:00:00Z", "UTC"),
        ("2024-05-01 12:00:00+02:00", "America/New_York"),
        ("2024-05-01T10:00:00", "UTC"),
        ("2024-05-01T12:00:00", "Europe/Berlin"),
    ]:
        assert at(moment_of(moment, lambda zone=zone: zone)) == expected
    assert at(moment_of(date(2024, 5, 1), lambda: "UTC")) == datetime(2024, 5, 1, tzinfo=UTC)
    assert at(moment_of("2024-05-01", lambda: "Europe/Berlin")) == datetime(2024, 4, 30, 22, tzinfo=UTC)


@pytest.mark.parametrize("moment", [datetime(2024, 5, 1), "yesterday", 17, b"2024-05-01"])
def test_a_moment_that_names_no_moment_is_an_error(hourly, moment):
    """Above all a datetime without a zone."""
    with pytest.raises(OptionError, match="as_of"):
        hourly.log().snapshot(as_of=moment)


def test_version_and_moment_together_are_refused(hourly):
    with pytest.raises(OptionError, match="not both"):
        hourly.log().snapshot(version=1, as_of="2024-01-01")


def test_file_times_stand_in_for_versions_without_a_commit_time():
    """Forced to grow, and never against the commit times around them."""
    builder = LogBuilder().create().wait(hours=1).append("a")
    for number, path in ((2, "b"), (3, "c")):
        builder.store.put(commit_path(number), f'{{"add":{{"path":"{path}"}}}}'.encode())
    builder.wait(hours=1).append("d")
    times = builder.log().history().column("timestamp").to_pylist()[::-1]
    assert times == sorted(set(times))
    assert builder.log().snapshot(as_of=times[2]).version == 2


def test_a_copied_log_keeps_the_time_of_its_commits(hourly):
    """Copying resets file times, commitInfo wins, even for version 0, which has none."""
    copy = LogBuilder(clock=hourly.clock)
    for meta in hourly.store.list():
        copy.store.put(meta.path, hourly.store.get(meta.path))
    moments = hourly.log().history().column("timestamp").to_pylist()[::-1]
    for version, moment in enumerate(moments[1:], start=1):
        assert copy.log().snapshot(as_of=moment).version == version


def test_history_shows_what_each_version_was(hourly):
    hourly.log().add_files([add("z")], txn=TxnAction(app_id="s", version=1), user_metadata="the last batch")
    rows = hourly.log().history(2).to_pylist()
    assert [row["version"] for row in rows] == [26, 25]
    assert rows[0]["operation"] == "WRITE"
    assert rows[0]["user_metadata"] == "the last batch"
    assert dict(rows[0]["operation_metrics"])["numAddedFiles"] == "1"
    assert hourly.log().history().column("operation").to_pylist()[-1] == "CREATE TABLE"
    assert hourly.log().history().num_rows == 27


def test_history_and_travel_open_few_files(hourly):
    """Only the versions shown are read; a moment is found by halving."""
    store = CountingStore(hourly.store)
    log = LogBuilder(store, clock=hourly.clock).log()
    log.history(5)
    assert len(store.reads) == 5
    store.clear()
    LogBuilder(store, clock=hourly.clock).log().snapshot(as_of=at(START_MS + 12 * 3_600_000))
    assert len([path for path in store.reads if path.endswith(".json") and "checkpoint" not in path]) <= 8


def test_versions_without_a_file_have_a_row_and_a_warning(caplog):
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(4).checkpoint().appends(2)
    for version in (2, 3, 4):
        builder.store.delete(commit_path(version))
    with caplog.at_level("WARNING"):
        rows = builder.log().history().to_pylist()
    assert [(row["version"], row["operation"]) for row in rows] == [
        (6, "WRITE"), (5, "WRITE"), (4, "MISSING 2-4"), (1, "WRITE"), (0, "CREATE TABLE"),
    ]  # fmt: skip
    assert (rows[2]["timestamp"], dict(rows[2]["operation_parameters"])) == (None, {"versions": "2-4"})
    assert "version(s) 2-4 have no file in the log" in caplog.text


def test_a_version_that_has_a_file_is_not_called_missing_though_it_cannot_be_rebuilt():
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(4).checkpoint()
    builder.store.delete(commit_path(1))
    rows = builder.log().history().to_pylist()
    assert [(row["version"], row["operation"]) for row in rows] == [
        (4, "WRITE"), (3, "WRITE"), (2, "WRITE"), (1, "MISSING 1"), (0, "CREATE TABLE"),
    ]  # fmt: skip
    assert all(row["timestamp"] is not None for row in rows if row["version"] != 1)


def test_versions_before_the_oldest_are_history_that_was_cleaned_up_and_no_hole(caplog):
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(4).checkpoint().appends(1)
    for version in range(5):
        builder.store.delete(commit_path(version))
    rows = builder.log().history().to_pylist()
    assert [row["operation"] for row in rows] == ["WRITE"]
    assert "no file" not in caplog.text


def test_a_hole_counts_as_one_row_of_the_limit():
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().appends(3).checkpoint().appends(1)
    builder.store.delete(commit_path(3))
    assert builder.log().history(2)["operation"].to_pylist() == ["WRITE", "MISSING 3"]
