"""Files that are left alone for a while (docs/behaviour.md, E8, E9)."""

from __future__ import annotations

import pytest

from indextables.log.transaction_log import TransactionLog
from support.builder import LogBuilder, add, paths_of
from support.clock import HOUR_MS


@pytest.fixture
def builder():
    return LogBuilder().create().append("bad", "good")


def test_a_skip_is_one_action_with_count_and_time_to_retry(builder):
    """E8."""
    log = builder.log()
    log.record_skipped_file("bad", "footer", "merge", {"day": "2024-01-01"}, 100)
    action = log.read_version(2)[0]
    assert (action.path, action.reason, action.operation) == ("bad", "footer", "merge")
    assert (action.partition_values, action.size, action.skip_count) == ({"day": "2024-01-01"}, 100, 1)
    assert action.retry_after == action.skip_timestamp + 24 * HOUR_MS
    assert action.skip_timestamp == builder.clock.now_ms()


def test_skipping_again_counts_on(builder):
    """E8."""
    for _ in range(3):
        builder.log().record_skipped_file("bad", "footer", "merge")
    assert [skip.skip_count for skip in builder.log().skipped_files()] == [3]


def test_a_file_is_left_alone_until_its_cooldown_is_over(builder):
    """E8."""
    log = builder.log()
    log.record_skipped_file("bad", "footer", "merge", cooldown_hours=2)
    assert log.is_in_cooldown("bad")
    assert not log.is_in_cooldown("good")
    assert log.files_in_cooldown() == {"bad": builder.clock.now_ms() + 2 * HOUR_MS}
    assert [item.path for item in log.filter_files_in_cooldown(log.list_files())] == ["good"]
    builder.wait(hours=2)
    assert log.files_in_cooldown() == {}
    assert [item.path for item in log.filter_files_in_cooldown(log.list_files())] == ["bad", "good"]


def test_a_cooldown_of_zero_is_over_at_once(builder):
    """E8."""
    builder.log().record_skipped_file("bad", "footer", "merge", cooldown_hours=0)
    assert builder.log().files_in_cooldown() == {}
    assert builder.log().skipped_files()[0].skip_count == 1


def test_the_default_cooldown_is_an_option(builder):
    log = builder.log(skippedFiles__cooldownHours="1")
    log.record_skipped_file("bad", "footer", "merge")
    assert log.files_in_cooldown() == {"bad": builder.clock.now_ms() + HOUR_MS}


def test_a_skipped_file_stays_live(builder):
    """E9."""
    builder.log().record_skipped_file("bad", "footer", "merge")
    assert paths_of(builder.log()) == ["bad", "good"]


def test_cooldown_and_count_survive_checkpoint_and_cleanup():
    """E9."""
    builder = LogBuilder(options={"logRetention.duration": 0, "checkpointRetention.duration": 0}).create()
    builder.append("bad")
    builder.log().record_skipped_file("bad", "footer", "merge")
    builder.log().record_skipped_file("bad", "footer", "merge")
    builder.wait(hours=1).checkpoint().cleanup()
    log: TransactionLog = builder.log()
    assert log.versions() == [3]
    assert log.is_in_cooldown("bad")
    log.record_skipped_file("bad", "footer", "merge")
    assert log.skipped_files()[0].skip_count == 3
    assert log.filter_files_in_cooldown([add("bad"), add("other")]) == [add("other")]


def test_the_count_goes_on_though_the_cooldown_ended_before_a_checkpoint():
    """E9: a file that fails every week is told apart from one that failed once."""
    builder = LogBuilder().create().append("bad", "gone")
    for path in ("bad", "gone"):
        builder.log().record_skipped_file(path, "footer", "merge")
    builder.remove("gone").wait(hours=48).checkpoint().append("more")
    log = builder.log()
    assert not log.is_in_cooldown("bad")
    assert [skip.path for skip in log.skipped_files()] == ["bad"]
    log.record_skipped_file("bad", "footer", "merge")
    assert log.skipped_files()[0].skip_count == 2


def test_a_shorter_second_skip_does_not_shorten_the_cooldown(builder):
    log = builder.log()
    log.record_skipped_file("bad", "footer", "merge", cooldown_hours=48)
    until = log.files_in_cooldown()["bad"]
    log.record_skipped_file("bad", "footer", "merge", cooldown_hours=1)
    assert log.files_in_cooldown()["bad"] == until
    log.record_skipped_file("bad", "footer", "merge", cooldown_hours=100)
    assert log.files_in_cooldown()["bad"] > until
