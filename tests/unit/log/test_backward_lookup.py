"""What a single question about the newest version reads: a listing, or commits from the newest back."""

from __future__ import annotations

import pytest

from indextables.errors import CorruptLogError, NotATableError, ProtocolError
from indextables.log.transaction_log import TransactionLog
from indextables.storage.stores.memory import MemoryStore
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path
from support.faults import CountingStore

NEVER = {"checkpoint.enabled": "false"}


def handle(builder: LogBuilder) -> tuple[TransactionLog, CountingStore]:
    store = CountingStore(builder.store)
    return LogBuilder(store, NEVER, builder.clock).log(), store


def version_reads(store: CountingStore) -> list[str]:
    return [path for path in store.reads if path != HINT]


def test_the_newest_version_and_whether_there_is_a_table_take_a_listing_only():
    builder = LogBuilder(options=NEVER).create().appends(30)
    for question, answer in ((TransactionLog.latest_version, 30), (TransactionLog.exists, True)):
        log, store = handle(builder)
        assert question(log) == answer
        assert version_reads(store) == []
        assert store.count("list_level") == 1


def test_a_directory_without_a_log_is_no_table():
    log = LogBuilder(MemoryStore()).log()
    assert log.exists() is False
    with pytest.raises(NotATableError):
        log.latest_version()


def test_metadata_in_the_newest_commit_takes_one_read():
    builder = LogBuilder(options=NEVER).create().appends(30)
    builder.log().update_properties({"checkpoint.interval": "7"})
    log, store = handle(builder)
    assert log.metadata().configuration["checkpoint.interval"] == "7"
    assert version_reads(store) == [commit_path(31)]
    assert log.metadata().configuration["checkpoint.interval"] == "7"
    assert version_reads(store) == [commit_path(31)]


def test_a_protocol_in_the_newest_commit_takes_one_read():
    builder = LogBuilder(options=NEVER).create().appends(30)
    builder.log().upgrade_protocol(3, 3)
    log, store = handle(builder)
    assert log.protocol().min_reader_version == 3
    assert version_reads(store) == [commit_path(31)]


def test_older_commits_are_not_read_once_the_answer_was_met():
    builder = LogBuilder(options=NEVER).create().appends(20)
    builder.log().update_properties({"checkpoint.interval": "7"})
    builder.appends(2)
    store = CountingStore(builder.store)
    log = LogBuilder(store, {**NEVER, "checkpoint.parallelism": "4"}, builder.clock).log()
    assert log.metadata().configuration["checkpoint.interval"] == "7"
    assert commit_path(0) not in version_reads(store)
    assert len(version_reads(store)) <= 1 + 4


def test_where_no_commit_holds_the_answer_the_head_of_the_checkpoint_does():
    builder = LogBuilder(options=NEVER).create().appends(5).checkpoint().appends(3)
    log, store = handle(builder)
    assert log.metadata() == builder.log().snapshot().metadata
    assert sorted(version_reads(store)) == sorted(
        [checkpoint_path(5), commit_path(6), commit_path(7), commit_path(8)]
    )


def test_a_newer_commit_of_another_handle_is_seen():
    builder = LogBuilder(options=NEVER).create().appends(3)
    log, _ = handle(builder)
    assert log.latest_version() == 3
    builder.appends(1)
    assert log.latest_version() == 4


def test_a_protocol_that_needs_a_newer_reader_is_refused_on_the_way():
    builder = LogBuilder(options=NEVER).create().appends(3)
    path = commit_path(4)
    builder.store.put(path, b'{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}\n')
    for question in (TransactionLog.metadata, TransactionLog.protocol):
        with pytest.raises(ProtocolError):
            question(builder.log())


def test_a_damaged_commit_on_the_way_is_an_error_and_no_older_answer():
    builder = LogBuilder(options=NEVER).create().appends(3)
    builder.store.put(commit_path(3), b"{torn")
    with pytest.raises(CorruptLogError, match="Versions that can be opened: 0-2"):
        builder.log().metadata()
