"""One file that does not belong into a log costs at most a warning, or an error in bounded time and memory."""

from __future__ import annotations

import logging

import msgspec
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CorruptLogError, MissingVersionError, SchemaError, StorageError
from indextables.log.segment import gaps, spans
from indextables.storage.stores.memory import MemoryStore
from support.builder import HINT, LOG_DIR, SCHEMA, LogBuilder, commit_path, paths_of
from support.faults import Around

HUGE = 10**18


@pytest.mark.parametrize("name", ["99999999999999999999.json", "99999999999999999999.checkpoint.json"])
def test_a_version_number_beyond_64_bits_is_a_stranger(name, caplog):
    builder = LogBuilder().create().append("a").append("b")
    builder.store.put(f"{LOG_DIR}/{name}", b"{}")
    with caplog.at_level(logging.WARNING):
        assert paths_of(builder.log()) == ["a", "b"]
    builder.append("c")
    assert paths_of(builder.log()) == ["a", "b", "c"]


def test_a_gap_of_any_size_is_named_and_not_counted_out():
    """Neither by a fresh handle nor by one that knows the table already."""
    builder = LogBuilder().create().append("a")
    known = builder.log()
    known.snapshot()
    builder.store.put(commit_path(HUGE), builder.store.get(commit_path(1)))
    for log in (builder.log(), known):
        with pytest.raises(MissingVersionError, match=f"version 2-{HUGE - 1} is missing"):
            log.snapshot(max_staleness_s=0)
        assert log.versions() == [0, 1]
    assert paths_of(builder.log(), 1) == ["a"]


def test_gaps_are_runs_between_what_is_there():
    assert spans(gaps({0, 1, 5, 6, 9}, 1, 9)) == "2-4, 7-8"
    assert spans(gaps({0}, 0, HUGE)) == f"1-{HUGE}"
    assert gaps({3, 4}, 3, 4) == []
    assert gaps({8}, 3, 4) == [range(3, 5)]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_with_an_add_and_a_remove_is_an_error_however_the_file_ends(end):
    builder = LogBuilder().create().append("a")
    line = {"add": {"path": "b", "size": 1}, "remove": {"path": "a"}}
    builder.store.put(commit_path(2), msgspec.json.encode(line) + end)
    with pytest.raises(CorruptLogError, match=r"line 1 .*holds 2 actions"):
        builder.log().snapshot()


@pytest.mark.parametrize(
    "info",
    [
        {"timestamp": "yesterday", "operation": 5, "operationParameters": "none", "commitId": ["x"]},
        {"timestamp": 10**30, "tableId": 7, "version": {"a": 1}, "userMetadata": {"any": "thing"}},
        {"operation": "WRITE", "operationMetrics": None, "isolationLevel": "Serializable"},
        "a text",
        [],
        7,
    ],
)
def test_a_commit_info_of_any_form_leaves_the_table_readable(info):
    builder = LogBuilder().create().append("a")
    lines = [{"add": {"path": "b", "size": 1}}, {"commitInfo": info}]
    builder.store.put(commit_path(2), b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    log = builder.log()
    assert paths_of(log) == ["a", "b"]
    assert log.history()["version"].to_pylist() == [2, 1, 0]
    builder.append("c")
    assert paths_of(builder.log()) == ["a", "b", "c"]


class _SealedHint(Around):
    """A store in which the hint is there and cannot be read."""

    def _do(self, operation, path, call):
        if path == HINT and operation in {"get", "head"}:
            raise StorageError(f"Could not read {path}: permission denied.")
        return call()


def test_a_hint_that_cannot_be_read_is_left_aside(caplog):
    inner = MemoryStore()
    LogBuilder(inner).create().append("a").checkpoint().append("b")
    with caplog.at_level(logging.WARNING):
        assert paths_of(LogBuilder(_SealedHint(inner)).log()) == ["a", "b"]
    assert "cannot be read and is ignored" in caplog.text


def test_columns_with_one_name_are_refused_before_anything_is_written(tmp_path):
    twins = pa.schema([("a", pa.int64()), ("a", pa.string())])
    json = '{"type":"struct","fields":[%s,%s]}' % (('{"name":"a","type":"long","nullable":true}',) * 2)
    nested = '{"type":"struct","fields":[{"name":"s","nullable":true,"type":%s}]}' % json
    for schema in (twins, json, nested):
        with pytest.raises(SchemaError):
            it.Table.create(str(tmp_path / "t"), schema)
        assert not (tmp_path / "t").exists()


def test_a_log_whose_schema_names_a_column_twice_is_an_error_that_says_so():
    builder = LogBuilder().create(SCHEMA)
    twice = '{"type":"struct","fields":[%s,%s]}' % (('{"name":"a","type":"long","nullable":true}',) * 2)
    metadata = {"metaData": {"id": builder.log().metadata().id, "schemaString": twice}}
    builder.store.put(commit_path(1), msgspec.json.encode(metadata) + b"\n")
    with pytest.raises(SchemaError, match="'a'"):
        _ = builder.log().snapshot().schema


def test_an_empty_version_file_says_what_it_may_be_and_how_to_go_on():
    """Without hard links a version is created under its name: a writer killed then leaves it empty."""
    builder = LogBuilder().create().append("a")
    builder.store.put(commit_path(2), b"")
    with pytest.raises(CorruptLogError, match=r"version 2\) is empty.*without hard links.*deleting the file"):
        builder.log().snapshot()
    assert paths_of(builder.log(), 1) == ["a"]
    builder.lose(commit_path(2)).append("b")
    assert paths_of(builder.log()) == ["a", "b"]
