"""What a log holds after creating, appending, removing and overwriting (docs/behaviour.md, A)."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from indextables.errors import (
    ConflictError,
    CorruptLogError,
    MissingVersionError,
    NotATableError,
    SchemaError,
    StorageError,
)
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction, CommitInfo, MetadataAction, ProtocolAction
from indextables.storage.stores.local import LocalStore
from indextables.storage.stores.memory import MemoryStore
from support.builder import LOG_DIR, SCHEMA, LogBuilder, add, commit_path, paths_of
from support.faults import FaultyStore


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path / "table")


@pytest.fixture
def builder(store):
    return LogBuilder(store)


def test_creating_writes_version_zero_with_protocol_then_metadata(builder):
    """A1: exactly these two actions, and the partition columns keep their order."""
    builder.create(partition_by=["day", "name"])
    assert builder.names() == ["00000000000000000000.json"]
    first, second = builder.log().read_version(0)
    assert isinstance(first, ProtocolAction)
    assert isinstance(second, MetadataAction)
    assert second.format["provider"] == "indextables"
    assert second.partition_columns == ("day", "name")
    assert builder.log().snapshot().schema.equals(SCHEMA)


def test_a_partition_column_outside_the_schema_creates_nothing(builder):
    """A2: the error names the column and the ones there are; a correct create works afterwards."""
    with pytest.raises(SchemaError, match="nope") as error:
        builder.create(partition_by=["nope"])
    assert "id" in str(error.value)
    assert builder.names() == []
    assert builder.create().log().latest_version() == 0


def test_creating_returns_version_0_and_creating_again_the_newest_version():
    builder = LogBuilder()
    assert builder.log().initialize(SCHEMA, ["day"]) == 0
    builder.append("a")
    assert builder.log().initialize(SCHEMA, ["day"]) == 1


def test_creating_again_is_nothing_when_it_agrees_and_an_error_when_not(builder):
    """A3: version 0 is never rewritten."""
    builder.create(partition_by=["day"])
    before = builder.store.get(commit_path(0))
    assert builder.log().initialize(SCHEMA, ["day"]) == 0
    with pytest.raises(SchemaError, match="partitioned by day"):
        builder.log().initialize(SCHEMA, [])
    with pytest.raises(SchemaError, match="schema"):
        builder.log().initialize(pa.schema([("other", pa.string()), ("day", pa.date32())]), ["day"])
    assert builder.store.get(commit_path(0)) == before


def test_of_two_racing_creates_the_loser_verifies_and_goes_on(store):
    """A3: the second put finds the name taken by an agreeing table."""
    winner = LogBuilder(store)

    class Raced:
        """Another process creates the table between our look and our put."""

        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_if_absent(self, path, data):
            winner.create()
            return self.inner.put_if_absent(path, data)

    loser = TransactionLog.open(store.uri, store=Raced(store))
    assert loser.initialize(SCHEMA, []) == 0
    assert loser.add_files([add("a")]) == 1


def test_five_appends_give_five_versions_with_every_field_equal(builder):
    """A4."""
    whole = AddAction(
        path="day=2024-01-01/x.split", partition_values={"day": "2024-01-01"}, size=7, modification_time=8,
        data_change=False, stats='{"nullCount":{"id":1}}', tags={"k": "v"}, min_values={"id": "1"},
        max_values={"id": "9"}, num_records=3, footer_start_offset=1, footer_end_offset=2,
        hotcache_start_offset=3, hotcache_length=4, has_footer_offsets=True, time_range_start="a",
        time_range_end="b", split_tags=("s",), delete_opstamp=5, num_merge_ops=6, doc_mapping_json="{}",
        uncompressed_size_bytes=9, extra={"later": {"x": [1]}},
    )  # fmt: skip
    builder.create(partition_by=["day"]).append(whole).append("b").append("c").append("d").append("e")
    log = builder.log()
    assert log.versions() == [0, 1, 2, 3, 4, 5]
    assert len(log.list_files()) == 5
    assert next(item for item in log.list_files() if item.path == whole.path) == whole


@pytest.mark.parametrize("count", [1, 101, 10_000])
def test_a_batch_is_one_version_with_one_line_per_add_then_commit_info(builder, count):
    """A5."""
    builder.create().append(count)
    assert builder.log().versions() == [0, 1]
    actions = builder.log().read_version(1)
    assert len(actions) == count + 1
    assert all(isinstance(action, AddAction) for action in actions[:-1])
    assert isinstance(actions[-1], CommitInfo)
    assert len(builder.log().list_files()) == count


def test_an_empty_batch_writes_nothing_and_returns_the_current_version(builder):
    """A5: and on a log that does not exist it is an error."""
    with pytest.raises(NotATableError):
        builder.log().add_files([])
    builder.create().append("a")
    assert builder.log().add_files([]) == 1
    assert builder.log().versions() == [0, 1]


def test_names_that_are_no_versions_are_ignored_with_one_warning_for_other_widths(builder, caplog):
    """A6."""
    builder.create().append("a")
    odd = [
        "abc.json", ".00000000000000000005.json.tmp", "2_000.json", "00000000000000000005.crc", "_SUCCESS",
        "000000000000000005.json", "000000000000000006.json", "sub/00000000000000000007.json",
        "00000000000000000008.json.bak", "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٩.json",
    ]  # fmt: skip
    for name in odd:
        builder.store.put(f"{LOG_DIR}/{name}", b"not a version")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert builder.log().latest_version() == 1
    assert len([record for record in caplog.records if "20 digits" in record.message]) == 1
    assert builder.log().versions() == [0, 1]
    builder.append("b")
    assert paths_of(builder.log()) == ["a", "b"]


def test_a_path_without_a_log_is_not_a_table_and_stays_empty(builder):
    """A7."""
    log = builder.log()
    for read in (log.snapshot, log.list_files, log.latest_version, log.metadata, log.protocol, log.history):
        with pytest.raises(NotATableError, match="is not an IndexTables table"):
            read()
    assert not log.exists()
    assert log.versions() == []
    assert list(builder.store.list()) == []


def test_a_listing_that_fails_is_never_an_empty_table(builder):
    """A7: the store's error comes through; only the hint, which is read first, may fail."""
    builder.create().append("a")
    for moment in range(2, 5):
        log = TransactionLog.open(builder.store.uri, store=FaultyStore(builder.store, moment))
        with pytest.raises(StorageError):
            log.list_files()


def test_the_newest_action_of_a_path_decides(builder):
    """A8."""
    builder.create().append("a", "b").remove("a")
    assert paths_of(builder.log()) == ["b"]
    builder.append(add("a", size=3))
    assert [item.size for item in builder.log().list_files()] == [3, 100]
    builder.append(add("a", size=4))
    assert [(item.path, item.size) for item in builder.log().list_files()] == [("a", 4), ("b", 100)]


def test_removing_and_adding_a_path_in_one_commit_leaves_it_live(builder):
    """A8."""
    builder.create().append("a", "b").overwrite("a")
    assert paths_of(builder.log()) == ["a"]


def test_a_remove_of_an_unknown_path_changes_nothing_in_replay(builder):
    """A8."""
    builder.create().append("a")
    builder.store.put(commit_path(2), b'{"remove":{"path":"ghost","dataChange":true}}\n')
    assert paths_of(builder.log()) == ["a"]


def test_removing_a_path_that_is_not_live_is_an_error(builder):
    """A8."""
    builder.create().append("a")
    with pytest.raises(ConflictError, match="ghost"):
        builder.log().remove_files(["a", "ghost"])
    assert builder.log().latest_version() == 1


def test_overwrite_replaces_everything_in_one_commit(builder):
    """A9."""
    builder.create().append("a", "b").overwrite("c")
    kinds = [type(action).__name__ for action in builder.log().read_version(2)]
    assert kinds == ["RemoveAction", "RemoveAction", "AddAction", "CommitInfo"]
    builder.append("d")
    assert paths_of(builder.log()) == ["c", "d"]
    builder.overwrite()
    assert builder.log().list_files() == []
    assert builder.log().snapshot().num_files == 0


def test_blank_lines_crlf_and_a_byte_order_mark_are_fine(builder):
    """A10."""
    builder.create()
    text = '\ufeff{"add":{"path":"a"}}\r\n\r\n{"add":{"path":"b"}}\n\n{"cdc":{"path":"c"}}\n'
    builder.store.put(commit_path(1), text.encode())
    assert paths_of(builder.log()) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    ['{"add":{"path":"b"', "nonsense", "[]", '{"add":[]}', '{"add":{"size":1}}', "\x00", '{"add":null}'],
)
def test_a_malformed_line_is_an_error_naming_file_version_and_line(builder, line):
    """A10."""
    builder.create()
    builder.store.put(commit_path(1), f'{{"add":{{"path":"a"}}}}\n{line}\n'.encode())
    with pytest.raises(CorruptLogError) as error:
        builder.log().list_files()
    text = str(error.value)
    assert "00000000000000000001.json" in text
    assert "version 1" in text
    assert "line 2" in text


def test_a_missing_version_is_named(builder):
    """A11."""
    builder.create().append("a").append("b").append("c").lose(commit_path(2))
    with pytest.raises(MissingVersionError, match="version 2 is missing"):
        builder.log().list_files()
    builder.lose(commit_path(0))
    with pytest.raises(MissingVersionError, match="0, 2"):
        builder.log().list_files()


def test_numbers_of_rows_come_in_many_spellings_and_add_up(builder):
    """A12."""
    builder.create()
    lines = [
        '{"add":{"path":"a","numRecords":5}}',
        '{"add":{"path":"b","numRecords":6.0}}',
        '{"add":{"path":"c","numRecords":"7"}}',
    ]
    builder.store.put(commit_path(1), "\n".join(lines).encode())
    assert [item.num_records for item in builder.log().list_files()] == [5, 6, 7]
    assert builder.log().snapshot().num_records == 18


def test_a_total_is_unknown_when_one_file_does_not_say(builder):
    """A12: an unknown count is never taken for zero."""
    builder.create().append("a", add("b", num_records=None))
    snapshot = builder.log().snapshot()
    assert (snapshot.num_files, snapshot.size_bytes, snapshot.num_records) == (2, 200, None)
