"""Options: every key once, typed, with errors that help."""

from __future__ import annotations

import logging
import pickle

import pytest

from indextables.errors import OptionError
from indextables.options import KEYS, Options


def test_the_defaults_are_those_of_the_documentation():
    options = Options.of()
    assert (options.checkpoint.interval, options.checkpoint.usual_interval) == (None, 10)
    assert options.retention.log_ms == 30 * 24 * 3600 * 1000
    assert options.transaction.max_attempts == 10
    assert options.stats.max_length == 1024
    assert options.write.target_split_bytes == 128 << 20
    assert options.replay.file_threshold is None


@pytest.mark.parametrize(
    "key",
    ["checkpoint.interval", "spark.indextables.checkpoint.interval", "SPARK.INDEXTABLES.CHECKPOINT.INTERVAL"],
)
def test_a_key_may_carry_the_prefix_and_any_case(key):
    assert Options.of({key: "3"}).checkpoint.interval == 3


def test_an_option_beats_the_session_then_hadoop_then_the_table():
    key = "spark.indextables.checkpoint.interval"
    layers = {"hadoop": {key: "3"}, "session": {key: "4"}}

    def interval(given=None):
        return Options.of(given, **layers).over({key: "2"}, "t").checkpoint.interval

    assert interval({key: "5"}) == 5
    assert interval() == 4
    del layers["session"]
    assert interval() == 3
    del layers["hadoop"]
    assert interval() == 2


def test_an_option_that_says_the_default_beats_the_table():
    key = "spark.indextables.timeZone"
    assert Options.of(None, session={key: "UTC"}).over({key: "Asia/Kolkata"}, "t").search.time_zone == "UTC"


def test_a_property_that_cannot_be_is_ignored_by_itself(caplog):
    properties = {"checkpoint.interval": "often", "stats.truncation.maxLength": "7"}
    resolved = Options.of({"write.maxRowsPerSplit": 5}).over(properties, "s3://bucket/t")
    assert (resolved.checkpoint.interval, resolved.stats.max_length, resolved.write.max_rows_per_split) == (
        None,
        7,
        5,
    )
    assert "s3://bucket/t" in caplog.text
    assert "often" in caplog.text


def test_where_files_may_lie_is_not_the_decision_of_a_table():
    properties = {"read.allowedRoots": "s3://elsewhere", "aws_endpoint": "http://elsewhere"}
    resolved = Options.of({"aws_region": "eu"}).over(properties, "t")
    assert resolved.read.allowed_roots is None
    assert resolved.storage == {"aws_region": "eu"}


def test_an_unknown_option_is_an_error_that_names_the_nearest_key():
    with pytest.raises(OptionError, match=r"checkpoint\.intervall.*did you mean 'checkpoint\.interval'"):
        Options.of({"checkpoint.intervall": "3"})


def test_an_unknown_session_key_is_one_warning(caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            Options.of(None, session={"spark.indextables.checkpoint.intrval": "3", "spark.app.name": "x"})
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert "checkpoint.interval" in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("checkpoint.interval", "0", ">= 1"),
        ("checkpoint.enabled", "yes", "true or false"),
        ("transaction.compression.gzip.level", "10", "from 1 to 9"),
        ("transaction.compression.codec", "zstd", "one of gzip"),
        ("write.targetSplitBytes", "big", "a size such as"),
        ("cleanup.failurePolicy", "ignore", "continue, fail"),
    ],
)
def test_a_bad_value_says_the_key_the_value_and_what_is_expected(key, value, expected):
    """C1, G3: the error comes before anything is written."""
    with pytest.raises(OptionError) as caught:
        Options.of({key: value})
    message = str(caught.value)
    assert key in message
    assert repr(value) in message
    assert expected in message


@pytest.mark.parametrize(
    ("text", "size"), [("100M", 100 << 20), ("1g", 1 << 30), ("64 MiB", 64 << 20), ("12", 12)]
)
def test_sizes_are_read_with_and_without_units(text, size):
    assert Options.of({"write.targetSplitBytes": text}).write.target_split_bytes == size


def test_the_delta_names_of_the_replay_options_are_understood():
    options = Options.of(
        None, session={"spark.databricks.delta.v2.distributedLogReplay.fileThreshold": "10000"}
    )
    assert options.replay.file_threshold == 10000


def test_settings_by_column_keep_the_case_of_the_column():
    options = Options.of(
        {"spark.indextables.indexing.typemap.Message": "text", "indexing.tokenizer.Message": "raw"}
    )
    assert options.indexing.typemap == {"Message": "text"}
    assert options.indexing.tokenizer == {"Message": "raw"}


def test_an_unknown_truncation_strategy_is_left_for_the_write_to_warn_of(caplog):
    """H1: options are resolved many times for one write, which warns once."""
    options = Options.of({"stats.truncation.strategy": "Sideways"}).stats
    assert options.unknown_strategies() == ("Sideways",)
    assert options.cut_to("text") == 0
    assert not caplog.text


def test_credentials_pass_through_and_never_show():
    options = Options.of({"aws_secret_access_key": "s3cret"})
    assert options.storage == {"aws_secret_access_key": "s3cret"}
    assert "s3cret" not in repr(options)


def test_options_survive_pickling():
    options = Options.of({"checkpoint.interval": 3, "indexing.typemap.m": "text"})
    assert pickle.loads(pickle.dumps(options)) == options


def test_no_key_is_declared_twice():
    assert len(KEYS) == len({key.lower() for key in KEYS})
