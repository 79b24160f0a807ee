"""Options in the properties of a table, and who wins over them."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import OptionError, ProtocolError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.transaction_log import TransactionLog
from indextables.table import Table
from support.builder import LogBuilder, commit_path


def set_unchecked(log, key, value):
    """Set a property as another writer may: without a look at its value."""

    def build(base):
        return [replace(base.metadata, configuration={**base.metadata.configuration, key: value})]

    log.commit(CommitPlan("SET PROPERTIES", Rule.APPEND, build))


@pytest.fixture
def builder():
    built = LogBuilder().create()
    built.log().update_properties(
        {
            "spark.indextables.checkpoint.interval": "3",
            "transaction.compression.enabled": "false",
            "mine": "x",
        }
    )
    return built


def test_a_property_counts_where_nobody_else_says_anything(builder):
    builder.append("a").append("b")
    assert "00000000000000000003.checkpoint.json" in builder.names()
    assert builder.store.get(commit_path(2)).startswith(b"{")


def test_an_option_wins_over_a_property(builder):
    """Also one that says what the default would be."""
    log = builder.log(checkpoint__interval=10, transaction__compression__enabled="true")
    settings = log.snapshot().settings
    assert (settings.checkpoint.interval, settings.compression.enabled) == (10, True)
    assert builder.log().snapshot().settings.checkpoint.interval == 3


def test_a_property_with_a_bad_value_is_a_warning(builder, caplog):
    set_unchecked(builder.log(), "spark.indextables.checkpoint.interval", "often")
    with caplog.at_level(logging.WARNING):
        assert builder.log().snapshot().settings.checkpoint.interval is None
    assert "often" in caplog.text
    builder.append("still works")


def test_a_property_whose_value_nobody_could_use_is_refused_when_it_is_set():
    """Refused, it cannot surprise whoever writes next; other keys may hold anything."""
    log = LogBuilder().create().log()
    with pytest.raises(OptionError, match=r"checkpoint\.interval is 'abc'"):
        log.update_properties({"checkpoint.interval": "abc"})
    assert log.latest_version() == 0
    assert log.update_properties({"owner": "abc", "checkpoint.interval": "7"}) == 1


def test_a_bad_property_of_another_writer_keeps_nobody_from_reading_and_searching(tmp_path):
    rows = pa.table({"message": ["hello world", "good bye"]})
    table = Table.create(tmp_path / "t", rows.schema, options={"indexing.typemap.message": "text"})
    table.append(rows)
    set_unchecked(TransactionLog.open(tmp_path / "t"), "spark.indextables.checkpoint.interval", "abc")
    assert Table.open(tmp_path / "t").search("hello").read_all().num_rows == 1
    assert Table.open(tmp_path / "t").count("message LIKE 'good%'") == 1


def test_where_a_log_is_replayed_follows_the_property_too(builder):
    builder.log().update_properties({"distributedLogReplay.enabled": "false"})
    assert builder.log().snapshot().plan().replay.why == "distributed replay is switched off"
    asked = builder.log(**{"distributedLogReplay.enabled": "true"}).snapshot().plan()
    assert asked.replay.why != "distributed replay is switched off"


def test_no_property_spares_readers_the_check_of_the_protocol(builder):
    log = builder.log()
    log.update_properties({"protocol.checkEnabled": "false"})

    def build(base):
        return [replace(base.protocol, min_reader_version=99)]

    log.commit(CommitPlan("RAISE", Rule.APPEND, build))
    with pytest.raises(ProtocolError, match="minReaderVersion = 99"):
        builder.log().snapshot()
