"""Which tables may be read and written (docs/behaviour.md, B)."""

from __future__ import annotations

import json

import pytest

from indextables.errors import ProtocolError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.format.protocol import (
    CURRENT,
    LEGACY,
    PARQUET_CHECKPOINT,
    READER_VERSION,
    WRITER_VERSION,
)
from indextables.model.actions import ProtocolAction, encode_action
from support.builder import LogBuilder, add, commit_path, paths_of


@pytest.fixture
def builder():
    return LogBuilder().create().append("a")


def with_protocol(builder, reader, writer, **features):
    protocol = ProtocolAction(min_reader_version=reader, min_writer_version=writer, **features)
    builder.store.put(commit_path(2), encode_action(protocol) + b"\n")
    return builder


def test_a_new_table_asks_for_two_and_two(builder):
    """B1."""
    assert builder.log().protocol() == CURRENT
    assert (CURRENT.min_reader_version, CURRENT.min_writer_version) == (2, 2)


def test_a_version_zero_without_protocol_is_a_legacy_table(builder):
    """B1."""
    metadata = builder.log().read_version(0)[1]
    builder.store.put(commit_path(0), encode_action(metadata))
    assert builder.log().protocol() == LEGACY
    assert builder.log().add_files([add("b")]) == 2


def test_a_log_of_the_jvm_systems_protocol_4_is_refused_by_name(builder):
    with_protocol(builder, 4, 4)
    with pytest.raises(ProtocolError, match=r"minReaderVersion = 4, which is V4 of the JVM system.*Avro"):
        builder.log().list_files()


def test_a_log_whose_state_is_in_avro_files_is_refused_by_name(builder):
    """Its version files begin after the state, so that the protocol in them is gone."""
    builder.store.delete(commit_path(0))
    hint = {"version": 0, "size": 1, "format": "avro-state", "stateDir": "state-v00000000000000000000"}
    builder.store.put("_transaction_log/_last_checkpoint", json.dumps(hint).encode())
    with pytest.raises(ProtocolError, match=r"V4 of the JVM system.*Avro"):
        builder.log().list_files()


@pytest.mark.parametrize("version", [READER_VERSION + 2, 999])
def test_a_table_for_newer_readers_is_refused_with_advice(builder, version):
    """B2."""
    with_protocol(builder, version, version)
    with pytest.raises(ProtocolError, match=f"minReaderVersion = {version} ") as error:
        builder.log().list_files()
    assert "Upgrade" in str(error.value)


@pytest.mark.parametrize("version", [WRITER_VERSION + 1, 999])
def test_a_table_for_newer_writers_is_read_but_never_written(builder, version):
    """B2."""
    with_protocol(builder, 2, version)
    assert paths_of(builder.log()) == ["a"]
    with pytest.raises(ProtocolError, match=f"minWriterVersion = {version} "):
        builder.log().add_files([add("b")])
    assert builder.log().latest_version() == 2


def test_a_table_of_the_newest_supported_protocol_is_read_and_written(builder):
    """B2."""
    with_protocol(builder, READER_VERSION, WRITER_VERSION)
    assert builder.log().add_files([add("b")]) == 3
    assert paths_of(builder.log()) == ["a", "b"]


def test_the_check_can_be_lifted_for_reading_only(builder):
    """B2."""
    with_protocol(builder, 999, 999)
    log = builder.log(spark__indextables__protocol__checkEnabled="false")
    assert [item.path for item in log.list_files()] == ["a"]
    with pytest.raises(ProtocolError, match="cannot be written"):
        log.add_files([add("b")])


def test_unknown_reader_features_are_refused(builder):
    """B3."""
    with_protocol(builder, 3, 3, reader_features=("timeLoops",), writer_features=("timeLoops",))
    with pytest.raises(ProtocolError, match="timeLoops"):
        builder.log().list_files()


def test_unknown_writer_features_stop_writers_only(builder):
    """B3."""
    with_protocol(builder, 2, 3, writer_features=("timeLoops",))
    assert paths_of(builder.log()) == ["a"]
    with pytest.raises(ProtocolError, match="timeLoops"):
        builder.log().add_files([add("b")])


def test_a_protocol_moves_upwards_only(builder):
    """B3: and features round-trip."""
    log = builder.log()
    assert log.upgrade_protocol(2, 2) == 1
    assert log.upgrade_protocol(3, 3, [PARQUET_CHECKPOINT]) == 2
    found = builder.log().protocol()
    assert (found.min_reader_version, found.reader_features, found.writer_features) == (
        3, (PARQUET_CHECKPOINT,), (PARQUET_CHECKPOINT,),
    )  # fmt: skip
    with pytest.raises(ProtocolError, match="can only be raised"):
        log.upgrade_protocol(2, 2)
    with pytest.raises(ProtocolError, match="can only be raised"):
        log.commit(CommitPlan("DOWNGRADE", Rule.EXCLUSIVE, lambda _: [CURRENT]))
    assert builder.log().latest_version() == 2


def test_the_protocol_survives_checkpoints_and_cleanup():
    """B3."""
    builder = LogBuilder(options={"logRetention.duration": 0, "checkpointRetention.duration": 0}).create()
    builder.log().upgrade_protocol(3, 3, [PARQUET_CHECKPOINT])
    builder.appends(3).wait(hours=1).checkpoint().cleanup()
    assert builder.log().versions() == [4]
    assert builder.log().protocol().reader_features == (PARQUET_CHECKPOINT,)
