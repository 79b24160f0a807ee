"""Numbers that no writer writes, in every field of every action: damage that is named, or a value that is taken."""

from __future__ import annotations

import contextlib
import re

import pytest

import indextables as it
from indextables.errors import CorruptLogError, Error
from indextables.log.transaction_log import TransactionLog
from indextables.storage.envelope import unpack
from indextables.storage.stores.local import LocalStore
from support.builder import HINT, LogBuilder, checkpoint_path, commit_path
from support.deltatables import DeltaLog, schema_string
from support.deltatables import add as delta_add

NUMBERS = ("1e400", "-1e400", "1" * 400, "-1", "1.5", "1e19", "NaN", "true", "[]")
FIELDS = {
    "add": (
        "path", "size", "modificationTime", "numRecords", "footerStartOffset", "hotcacheStartOffset",
        "hotcacheLength", "minValues", "partitionValues", "tags", "other",
    ),
    "remove": ("path", "deletionTimestamp", "size", "other"),
    "mergeskip": ("skipTimestamp", "retryAfter", "skipCount", "size"),
    "txn": ("version", "lastUpdated"),
    "protocol": ("minReaderVersion", "minWriterVersion"),
    "commitInfo": ("timestamp", "version", "readVersion", "operationMetrics"),
}  # fmt: skip
BODIES = {
    "add": '"path":"a","size":1,"modificationTime":1,"dataChange":true,"partitionValues":{}',
    "remove": '"path":"a","deletionTimestamp":1,"dataChange":true',
    "mergeskip": '"path":"a","skipTimestamp":1,"reason":"r","operation":"merge","skipCount":1',
    "txn": '"appId":"x","version":1',
    "protocol": '"minReaderVersion":2,"minWriterVersion":2',
    "commitInfo": '"operation":"WRITE"',
}


def questions(log: TransactionLog):
    yield lambda: log.snapshot().files()
    yield lambda: log.snapshot().files(engine="reference")
    yield lambda: log.snapshot().plan("id > 3")
    yield lambda: [item.size for item in log.list_files()]
    yield log.metadata
    yield log.history
    yield log.versions
    yield log.files_in_cooldown
    yield lambda: log.snapshot().totals
    yield log.checkpoint


@pytest.mark.parametrize("kind", FIELDS)
def test_an_odd_number_never_raises_anything_but_our_own_errors(kind):
    for field in FIELDS[kind]:
        for number in NUMBERS:
            builder = LogBuilder(options={"checkpoint.enabled": "false"}).create().append(1)
            line = f'{{"{kind}":{{{BODIES[kind]},"{field}":{number}}}}}\n'
            builder.store.put(commit_path(2), line.encode())
            for question in questions(builder.log()):
                with contextlib.suppress(Error):
                    question()


@pytest.mark.parametrize("engine", ["columnar", "reference"])
def test_a_size_beyond_every_number_names_the_file_and_the_version(engine):
    builder = LogBuilder(options={"checkpoint.enabled": "false"}).create()
    builder.store.put(commit_path(1), b'{"add":{"path":"a","size":1e400,"modificationTime":1}}\n')
    with pytest.raises(CorruptLogError, match=r"line 1 of 0+1\.json \(version 1\) cannot be read") as error:
        builder.log().snapshot().files(engine=engine)
    assert error.value.version == 1


@pytest.mark.parametrize("field", ["size", "modificationTime", "stats", "deletionVector"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_delta_table_with_an_odd_number_raises_nothing_but_our_own_errors(tmp_path, field, number):
    schema = r"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}"
    value = {
        "stats": f'"{{\\"numRecords\\":{number},\\"minValues\\":{{\\"id\\":{number}}}}}"',
        "deletionVector": f'{{"storageType":"u","pathOrInlineDv":"x","sizeInBytes":{number},"cardinality":1}}',
    }.get(field, number)
    own = '"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true'
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text(
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
        f'{{"metaData":{{"id":"x","format":{{"provider":"parquet","options":{{}}}},"schemaString":"{schema}",'
        f'"partitionColumns":[],"configuration":{{}}}}}}\n{{"add":{{{own},"{field}":{value}}}}}\n'
    )
    for question in (
        lambda table: table.files(),
        lambda table: table.files(where="id > 3"),
        lambda table: table.describe(),
        lambda table: table.history(),
    ):
        with contextlib.suppress(Error):
            question(it.DeltaTable.open(tmp_path))


@pytest.mark.parametrize("compression", ["true", "false"])
@pytest.mark.parametrize("field", FIELDS["add"])
def test_a_checkpoint_with_an_odd_number_raises_nothing_but_our_own_errors(field, compression):
    """The commits before it are gone, so that the checkpoint has to answer."""
    for number in NUMBERS:
        options = {"checkpoint.enabled": "false", "transaction.compression.enabled": compression}
        builder = LogBuilder(options=options).create().append("a").append("b")
        builder.log().checkpoint()
        path = checkpoint_path(2)
        text = unpack(builder.store.get(path), name=path)
        odd = text.replace(b'"path":"a"', f'"path":"a","{field}":{number}'.encode(), 1)
        assert odd != text
        # Its checksums would name the damage at once; without them the number itself has to be noticed.
        builder.store.put(path, re.sub(rb'"crc32":"[0-9a-f]{8}",', b"", odd, count=1))
        builder.store.delete(HINT)
        for version in range(2):
            builder.store.delete(commit_path(version))
        for question in questions(builder.log()):
            with contextlib.suppress(Error):
                question()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_delta_checkpoint_with_odd_statistics_raises_nothing_but_our_own_errors(tmp_path, number):
    """The statistics of a checkpoint are parsed by DuckDB, those of commits are not."""
    log = DeltaLog(LocalStore(tmp_path), schema_string(id="long"))
    for name in ("a", "b"):
        log.commit(delta_add(name))
    stats = f'{{"numRecords":{number},"minValues":{{"id":{number}}},"maxValues":{{"id":{number}}}}}'
    log.commit({"add": {**delta_add("odd")["add"], "stats": stats}})
    log.checkpoint()
    table = it.DeltaTable.open(tmp_path)
    for question in (
        table.files,
        lambda: table.files(where="id > 3"),
        lambda: table.files(where="id IS NULL"),
        table.describe,
    ):
        with contextlib.suppress(Error):
            question()
    assert {"a", "b"} <= set(table.files()["path"].to_pylist())
