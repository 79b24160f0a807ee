"""Whatever a log or a directory holds, the answer is the truth or an error of our own, in bounded time."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import (
    CorruptLogError,
    Error,
    MissingSplitError,
    NotFoundError,
    SplitError,
    StorageError,
)
from indextables.storage.stores.local import LocalStore
from support.builder import LogBuilder, commit_path

PLAIN = {"transaction.compression.enabled": "false"}
SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])


def with_field(builder: LogBuilder, kind: str, field: str, value: object) -> None:
    """Give every action of a kind another value of a field, behind the log's back."""
    for version in builder.log().versions():
        lines = [msgspec.json.decode(line) for line in builder.store.get(commit_path(version)).splitlines()]
        for line in lines:
            # The checksum of the file would say that it was changed, and this is about what is in it.
            next(iter(line.values())).pop("crc32", None)
            if kind in line:
                line[kind][field] = value
        builder.damage(commit_path(version), b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


@pytest.mark.parametrize("engine", ["columnar", "reference"])
@pytest.mark.parametrize("checkpoint", [False, True], ids=["commits", "checkpoint"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("numRecords", -5),
        ("numRecords", 2**64 - 1),
        ("numRecords", "9" * 30),
        ("size", -1),
        ("size", 2**63),
        ("modificationTime", 10**17),
        ("modificationTime", -(10**17)),
        ("hotcacheLength", -1),
    ],
)
def test_a_number_that_no_file_can_have_is_an_error_naming_the_field(field, value, checkpoint, engine):
    builder = LogBuilder(options=PLAIN).create().append("a").append("b")
    if checkpoint:
        builder.checkpoint().hint(None)
        path = f"_transaction_log/{2:020d}.checkpoint.json"
        head, _, adds = builder.store.get(path).partition(b'"add":[\n')
        head = re.sub(rb'"crc32":"[0-9a-f]{8}",', b"", head)
        lines = adds.removesuffix(b"]}\n").rstrip().split(b",\n")
        changed = [msgspec.json.encode({**msgspec.json.decode(line), field: value}) for line in lines]
        builder.damage(path, head + b'"add":[\n' + b",\n".join(changed) + b"\n]}\n")
        builder.lose(commit_path(0))
    else:
        with_field(builder, "add", field, value)
    with pytest.raises(CorruptLogError):
        builder.log().snapshot().files(engine=engine)
    with pytest.raises(CorruptLogError):
        _ = builder.log().snapshot().totals, builder.log().snapshot().files()


@pytest.mark.parametrize("timestamp", [10**17, -(10**17), 10**40, "soon"])
def test_a_commit_time_that_is_none_gives_way_to_the_file_s_own(timestamp):
    builder = LogBuilder(options=PLAIN).create().append("a").append("b")
    with_field(builder, "commitInfo", "timestamp", timestamp)
    log = builder.log()
    assert [str(item) for item in log.history()["timestamp"].to_pylist()]
    assert log.snapshot(as_of="9998-01-01").version == 2
    builder.append("c")
    assert builder.log().latest_version() == 3


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", '"', "a'b", "a;b", "a{b"])
def test_any_column_name_can_be_filtered_by(tmp_path, name):
    schema = pa.schema([(name, pa.string()), ("z", pa.int64())])
    table = it.Table.create(str(tmp_path / "t"), schema)
    for number in range(3):
        table.append(pa.table({name: [f"v{number}", f"v{number}x"], "z": [number, number]}, schema))
    for step in (lambda: None, table.checkpoint):
        step()
        again = it.Table.open(str(tmp_path / "t"))
        assert again.count(f"`{name}` = 'v1'") == 1
        assert again.files(f"`{name}` = 'v1'").num_rows == 1
    table.delete(f"`{name}` = 'v1'")
    assert table.count() == 5


def test_a_pipe_in_the_place_of_a_file_is_no_file(tmp_path):
    """Opening one would wait for a writer for ever."""
    os.mkfifo(tmp_path / "pipe")
    store = LocalStore(tmp_path)
    for question in (
        lambda: store.get("pipe"),
        lambda: store.get_range("pipe", 0, 1),
        lambda: store.head("pipe"),
    ):
        with pytest.raises(NotFoundError):
            question()


@pytest.mark.parametrize("what", ["pipe", "directory"])
def test_a_split_that_is_no_file_is_missing(tmp_path, what):
    table = it.Table.create(str(tmp_path / "t"), SCHEMA)
    table.append(pa.table({"n": [1], "t": ["x"]}, SCHEMA))
    split = next(Path(tmp_path / "t").glob("*.split"))
    split.unlink()
    os.mkfifo(split) if what == "pipe" else split.mkdir()
    with pytest.raises(MissingSplitError):
        it.Table.open(str(tmp_path / "t")).scan().read_all()


@pytest.mark.parametrize("field", ["size", "hotcacheStartOffset", "hotcacheLength"])
def test_offsets_beyond_the_file_are_not_read_into_memory(tmp_path, field):
    options = {**PLAIN, "indexing.typemap.t": "text"}
    table = it.Table.create(str(tmp_path / "t"), SCHEMA, options=options)
    table.append(pa.table({"n": [1], "t": ["x"]}, SCHEMA))
    path = tmp_path / "t" / commit_path(1)
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    lines[0]["add"][field] = 10**18
    del lines[-1]["commitInfo"]["crc32"]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    again = it.Table.open(str(tmp_path / "t"))
    for question in (lambda: again.scan().read_all(), lambda: again.search("t:x").read_all()):
        try:
            assert question().num_rows == 1
        except Error as error:
            assert isinstance(error, SplitError | StorageError)
