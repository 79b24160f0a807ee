"""A version that is offered can be opened, whatever is damaged and whoever asks."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import CorruptLogError, LogError, VersionNotFoundError
from indextables.log.openable import openable
from indextables.storage.store import open_store
from support.builder import LogBuilder, checkpoint_path, commit_path
from support.deltarows import put_file
from support.deltatables import DeltaLog, schema_string


def versions_in(text):
    """The versions a message offers."""
    offered = re.search(r"(?:can be opened|available): ([0-9, -]+|none)\.", text)[1]
    spans = [span.split("-") for span in re.findall(r"\d+(?:-\d+)?", offered)]
    return [number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)]


@pytest.fixture
def torn(tmp_path):
    """A native table of versions 0 to 6, the last of them cut off in the middle."""
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    for number in range(6):
        table.append(pa.table({"id": [number], "name": [f"n{number}"]}))
    newest = tmp_path / "t" / commit_path(6)
    newest.write_bytes(newest.read_bytes()[:20])
    return tmp_path / "t"


def test_the_version_before_a_torn_one_opens_as_the_error_advises(torn):
    """A13: by number, with the rows it had."""
    with pytest.raises(
        CorruptLogError, match=r"can be opened: 0-5\. Open the table with version=5"
    ) as caught:
        it.Table.open(torn)
    assert caught.value.available == versions_in(str(caught.value)) == [0, 1, 2, 3, 4, 5]
    for version in caught.value.available:
        assert it.Table.open(torn, version=version).count() == version
    assert it.TransactionLog.open(torn).versions() == [0, 1, 2, 3, 4, 5]


def test_a_handle_below_a_torn_version_does_not_write(torn):
    with pytest.raises(it.Error, match="version 5"):
        it.Table.open(torn, version=5).append(pa.table({"id": [9], "name": ["x"]}))


def test_sql_reads_the_version_before_a_torn_one(torn):
    assert it.sql(f"SELECT count(*) AS n FROM '{torn}' VERSION AS OF 5").to_pylist() == [{"n": 5}]
    with pytest.raises(LogError) as caught:
        it.sql(f"SELECT * FROM '{torn}' VERSION AS OF 7")
    assert versions_in(str(caught.value)) == [0, 1, 2, 3, 4, 5]


def test_a_moment_before_a_torn_version_is_read(torn):
    log = it.TransactionLog.open(torn)
    moment = datetime.fromtimestamp(log.snapshot(version=4).timestamp_ms / 1000, UTC)
    assert it.Table.open(torn, as_of=moment).version == 4
    with pytest.raises(CorruptLogError, match="can be opened: 0-5"):
        it.Table.open(torn, as_of=datetime.fromtimestamp(time.time() + 3600, UTC))


def test_versions_that_rest_on_a_damaged_checkpoint_are_not_offered():
    builder = LogBuilder(options={"checkpoint.interval": 10}).create().appends(12)
    builder.damage(checkpoint_path(10))
    builder.lose(commit_path(3))
    with pytest.raises(CorruptLogError) as caught:
        builder.log().snapshot().files()
    assert versions_in(str(caught.value)) == builder.log().versions() == [0, 1, 2]
    with pytest.raises(LogError) as asked:
        builder.log().snapshot(version=11).files()
    assert versions_in(str(asked.value)) == [0, 1, 2]
    with pytest.raises(VersionNotFoundError) as absent:
        builder.log().snapshot(version=40)
    assert versions_in(str(absent.value)) == [0, 1, 2]
    for version in (0, 1, 2):
        assert builder.log().snapshot(version=version).files().num_rows == version


def test_a_damaged_commit_below_a_checkpoint_takes_only_its_own_versions_away():
    builder = LogBuilder(options={"checkpoint.interval": 10}).create().appends(12)
    builder.truncate(commit_path(6))
    assert builder.log().versions() == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    with pytest.raises(CorruptLogError, match=r"can be opened: 0-5, 10-12\. Open the table with version=5"):
        builder.log().snapshot(version=8)


@pytest.fixture
def delta(tmp_path):
    log = DeltaLog(open_store(tmp_path / "d"), schema_string(id="long"))
    for number in range(12):
        log.commit(put_file(log, f"f{number}", pa.table({"id": [number]})))
        if log.version == 10:
            log.checkpoint("classic")
    return log


def test_a_delta_table_is_read_below_a_torn_version(delta, tmp_path):
    delta.store.put(f"_delta_log/{13:020d}.json", b'{"add": {"path": "f')
    for version in range(14):
        os.utime(tmp_path / "d" / f"_delta_log/{version:020d}.json", (1_700_000_000 + version,) * 2)
    with pytest.raises(CorruptLogError) as caught:
        it.DeltaTable.open(delta.store.uri)
    assert versions_in(str(caught.value)) == list(range(13))
    for version in (5, 12):
        assert it.DeltaTable.open(delta.store.uri, version=version).count() == version
        sql = f"SELECT count(*) AS n FROM '{delta.store.uri}' VERSION AS OF {version}"
        assert it.sql(sql).to_pylist() == [{"n": version}]
        moment = datetime.fromtimestamp(1_700_000_000 + version, UTC)
        assert it.DeltaTable.open(delta.store.uri, as_of=moment).version == version
    with pytest.raises(CorruptLogError, match="can be opened: 0-12"):
        it.DeltaTable.open(delta.store.uri, as_of=datetime.fromtimestamp(1_700_000_013, UTC))


def test_a_delta_table_offers_no_version_that_rests_on_a_damaged_checkpoint(delta):
    delta.store.put(f"_delta_log/{10:020d}.checkpoint.parquet", b"PAR1 not really PAR1")
    delta.store.delete(f"_delta_log/{3:020d}.json")
    for ask in (it.DeltaTable.open, lambda uri: it.DeltaTable.open(uri, version=11)):
        with pytest.raises(CorruptLogError) as caught:
            ask(delta.store.uri)
        assert versions_in(str(caught.value)) == [0, 1, 2]
    with pytest.raises(VersionNotFoundError) as absent:
        it.DeltaTable.open(delta.store.uri, version=40)
    assert versions_in(str(absent.value)) == [0, 1, 2]
    source = it.DeltaTable.open(delta.store.uri, version=2)._snapshot.source
    assert openable(source) == [0, 1, 2]
