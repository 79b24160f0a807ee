"""The workloads as data, and the generators that write them.

A replay workload is a table of so many live files in a checkpoint, and twenty
commits after it. Every file is a pure function of its number, so the native log
and the Delta log hold the same state.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

COLUMNS = (
    ("date", "date"), ("id", "long"), ("ts", "timestamp"), ("level", "string"), ("host", "string"), ("price", "double"),
)  # fmt: skip
SCHEMA_JSON = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in COLUMNS],
    }
)
ROWS_PER_FILE = 1000
DAYS = tuple((date(2024, 1, 1) + timedelta(days=day)).isoformat() for day in range(365))
CHECKPOINT_VERSION = 11
FILES_PER_COMMIT = 1000


@dataclass(frozen=True, slots=True)
class ReplayWorkload:
    """A checkpoint of `files` adds and the commits after it."""

    files: int
    commits: int = 20
    adds: int = 500
    removes: int = 200
    readds: int = 20
    """Of the adds of a commit, those that bring back a file removed before."""

    @property
    def prune(self) -> str:
        """A predicate that one file in a hundred can match."""
        first = self.files // 3
        last = first + max(self.files // 100, 1) - 1
        return f"id >= {first * ROWS_PER_FILE} AND id <= {last * ROWS_PER_FILE + ROWS_PER_FILE - 1}"


@dataclass(frozen=True, slots=True)
class File:
    """The facts of one file."""

    number: int

    @property
    def day(self) -> str:
        return DAYS[self.number % len(DAYS)]

    @property
    def path(self) -> str:
        """Random names, as writers make them, below the directory of the day."""
        name = hashlib.md5(str(self.number).encode(), usedforsecurity=False).hexdigest()
        return f"date={self.day}/{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}.split"

    @property
    def size(self) -> int:
        return 100_000_000 + self.number * 7919 % 9_999_991

    @property
    def modified(self) -> int:
        return 1_704_067_200_000 + self.number

    def native(self) -> dict[str, Any]:
        """The add of the native log, with the field names it has there."""
        n = self.number
        micros = 1_704_067_200_000_000 + n * 1_000_000
        counts = {"id": 0, "ts": 0, "level": n % 7, "host": 0, "price": n % 3}
        return {
            "path": self.path,
            "partitionValues": {"date": self.day},
            "size": self.size,
            "modificationTime": self.modified,
            "dataChange": True,
            "stats": _line({"nullCount": counts}).decode(),
            "minValues": {
                "id": str(n * ROWS_PER_FILE), "ts": str(micros), "level": "DEBUG",
                "host": f"host-{n % 1000:05d}", "price": str(n % 100 / 4),
            },
            "maxValues": {
                "id": str(n * ROWS_PER_FILE + ROWS_PER_FILE - 1), "ts": str(micros + 999_000), "level": "WARN",
                "host": f"host-{n % 1000 + 500:05d}", "price": str(n % 100 / 4 + 1000),
            },
            "numRecords": ROWS_PER_FILE,
            "footerStartOffset": self.size - 4000,
            "footerEndOffset": self.size,
            "hotcacheStartOffset": self.size - 20_000,
            "hotcacheLength": 16_000,
            "hasFooterOffsets": True,
        }  # fmt: skip

    def delta(self) -> dict[str, Any]:
        """The add of the Delta log."""
        n = self.number
        begin = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=n)
        stats = {
            "numRecords": ROWS_PER_FILE,
            "minValues": {
                "id": n * ROWS_PER_FILE, "ts": _instant(begin), "level": "DEBUG",
                "host": f"host-{n % 1000:05d}", "price": n % 100 / 4,
            },
            "maxValues": {
                "id": n * ROWS_PER_FILE + ROWS_PER_FILE - 1, "ts": _instant(begin + timedelta(milliseconds=999)),
                "level": "WARN", "host": f"host-{n % 1000 + 500:05d}", "price": n % 100 / 4 + 1000,
            },
            "nullCount": {"id": 0, "ts": 0, "level": n % 7, "host": 0, "price": n % 3},
        }  # fmt: skip
        return {
            "path": self.path,
            "partitionValues": {"date": self.day},
            "size": self.size,
            "modificationTime": self.modified,
            "dataChange": True,
            "stats": _line(stats).decode(),
        }


def _instant(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def commits(workload: ReplayWorkload) -> Iterator[tuple[list[File], list[File]]]:
    """The added and the removed files of each commit after the checkpoint."""
    chance = random.Random(workload.files)
    live = list(range(workload.files))
    gone: list[int] = []
    fresh = workload.files
    for _ in range(workload.commits):
        back = [gone.pop(chance.randrange(len(gone))) for _ in range(min(workload.readds, len(gone)))]
        new = [*back, *range(fresh, fresh + workload.adds - len(back))]
        fresh += workload.adds - len(back)
        removed = []
        for _ in range(workload.removes):
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            removed.append(live.pop())
        live += new
        gone += removed
        yield [File(number) for number in new], [File(number) for number in removed]


_NUMBERED = """SELECT n, 100000000 + n * 7919 % 9999991 AS size, 'date=' || strftime(date '2024-01-01' + (n % 365)::int, '%Y-%m-%d')
    || '/' || h[1:8] || '-' || h[9:12] || '-' || h[13:16] || '-' || h[17:20] || '-' || h[21:] || '.split' AS path
    FROM (SELECT n, md5(n::varchar) AS h FROM range({files}) AS r(n)) ORDER BY path"""
_PRICE = "(n % 100 / 4)::double"
ADD = """'{"path":"' || path || '","partitionValues":{"date":"' || path[6:15] || '"},"size":' || size
    || ',"modificationTime":' || (1704067200000 + n) || ',"dataChange":true,"stats":"{\\"nullCount\\":{\\"id\\":0,\\"ts\\":0,'
    || '\\"level\\":' || (n % 7) || ',\\"host\\":0,\\"price\\":' || (n % 3) || '}}","minValues":{"id":"' || (n * 1000)
    || '","ts":"' || (1704067200000000 + n * 1000000) || '","level":"DEBUG","host":"host-' || lpad((n % 1000)::varchar, 5, '0')
    || '","price":"' || {price} || '"},"maxValues":{"id":"' || (n * 1000 + 999)
    || '","ts":"' || (1704067200999000 + n * 1000000) || '","level":"WARN","host":"host-' || lpad((n % 1000 + 500)::varchar, 5, '0')
    || '","price":"' || ({price} + 1000) || '"},"numRecords":1000,"footerStartOffset":' || (size - 4000)
    || ',"footerEndOffset":' || size || ',"hotcacheStartOffset":' || (size - 20000)
    || ',"hotcacheLength":16000,"hasFooterOffsets":true}'""".replace("{price}", _PRICE)
_DELTA_STATS = """'{"numRecords":1000,"minValues":{"id":' || (n * 1000) || ',"ts":"' || strftime(begins, '%Y-%m-%dT%H:%M:%S')
    || '.000Z","level":"DEBUG","host":"host-' || lpad((n % 1000)::varchar, 5, '0') || '","price":' || {price}
    || '},"maxValues":{"id":' || (n * 1000 + 999) || ',"ts":"' || strftime(begins, '%Y-%m-%dT%H:%M:%S')
    || '.999Z","level":"WARN","host":"host-' || lpad((n % 1000 + 500)::varchar, 5, '0') || '","price":' || ({price} + 1000)
    || '},"nullCount":{"id":0,"ts":0,"level":' || (n % 7) || ',"host":0,"price":' || (n % 3) || '}}'""".replace(
    "{price}", _PRICE
)
DELTA_ADD = f"""{{'path': path, 'partitionValues': MAP {{'date': path[6:15]}}, 'size': size,
    'modificationTime': 1704067200000 + n, 'dataChange': true, 'stats': {_DELTA_STATS}}}"""
_GENERATED_AT_ONCE = 1 << 16


def generated(files: int, add: str) -> Iterator[Any]:
    """What SQL makes of the number, size and path of every file, in the order of paths; 100,000 of them in half a second.

    It says the same as `File`, which would take minutes for ten million.
    """
    import duckdb

    with duckdb.connect() as database:
        database.execute("SET memory_limit = '3GB'")
        query = f"SELECT {add} AS add FROM (SELECT *, timestamp '2024-01-01' + to_seconds(n) AS begins FROM ({_NUMBERED.format(files=files)}))"  # noqa: S608
        yield from database.sql(query).to_arrow_reader(_GENERATED_AT_ONCE)


def write_seed(path: Path, workload: ReplayWorkload) -> None:
    """The adds of the checkpoint as a document of the JSON form, without its head."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from indextables.log.adds.lines import LINE_END
    from indextables.log.checkpoint.json_document import PART_OPENING
    from indextables.log.checkpoint.parts import JsonParts
    from indextables.options import CompressionOptions
    from indextables.storage.envelope import pack

    def lines(batch: Any) -> Any:
        return pc.binary_join_element_wise(batch.column(0).cast(pa.binary()), b"", LINE_END)

    parts = JsonParts(path.parent, workload.files, {}, CompressionOptions())
    parts.write_all(pa.record_batch([lines(batch)], ["line"]) for batch in generated(workload.files, ADD))
    body = parts.files[0].path
    with path.open("wb") as seed, body.open("rb") as adds:
        seed.write(pack(PART_OPENING, CompressionOptions()))
        shutil.copyfileobj(adds, seed)
    body.unlink()


def write_native(directory: Path, seed: Path, workload: ReplayWorkload, form: str) -> None:
    """A native table: its checkpoint is written by the library itself, from one that has the seed as its part."""
    import indextables as it
    from indextables.log.checkpoint.json_document import encode_manifest
    from indextables.options import CompressionOptions
    from indextables.storage.envelope import pack

    log_dir = directory / "_transaction_log"
    options = {"checkpoint.enabled": "false", "checkpoint.format": form}
    log = it.TransactionLog.open(str(directory), options)
    log.initialize(SCHEMA_JSON, ["date"])
    version = 0
    while version < CHECKPOINT_VERSION - 1:
        version = log.update_properties({"note": f"version {version + 1}"})
    part = {
        "path": f"{version:020d}.checkpoint.seed.00001of00001.json", "sha256": _sha256(seed),
        "actions": workload.files, "sizeInBytes": seed.stat().st_size,
    }  # fmt: skip
    head = {"manifest": 1, "version": version, "parts": [part]}
    head |= {"protocol": _fields(log.protocol()), "metaData": _fields(log.metadata())}
    manifest = log_dir / f"{version:020d}.checkpoint.json"
    shutil.copy(seed, log_dir / part["path"])
    manifest.write_bytes(encode_manifest(head))
    log = it.TransactionLog.open(str(directory), options)
    log.update_properties({"note": "checkpoint follows"})
    base = log.checkpoint()
    for name in (manifest.name, part["path"], *(f"{number:020d}.json" for number in range(version + 1))):
        (log_dir / name).unlink()
    for number, (added, removed) in enumerate(commits(workload), start=base + 1):
        lines = [_line({"remove": _removal(file)}) for file in removed]
        lines += [_line({"add": file.native()}) for file in added]
        lines.append(_line({"commitInfo": {"timestamp": 1_800_000_000_000 + number, "operation": "WRITE"}}))
        text = b"\n".join(lines) + b"\n"
        (log_dir / f"{number:020d}.json").write_bytes(pack(text, CompressionOptions()))


def write_native_commits(directory: Path, workload: ReplayWorkload) -> None:
    """The same files as native commits alone, a thousand files each."""
    import indextables as it
    from indextables.options import CompressionOptions
    from indextables.storage.envelope import pack

    log = it.TransactionLog.open(str(directory), {"checkpoint.enabled": "false"})
    log.initialize(SCHEMA_JSON, ["date"])
    first = (
        ([File(number) for number in range(begin, min(begin + FILES_PER_COMMIT, workload.files))], [])
        for begin in range(0, workload.files, FILES_PER_COMMIT)
    )
    for version, (added, removed) in enumerate(chain(first, commits(workload)), start=1):
        lines = [_line({"remove": _removal(file)}) for file in removed]
        lines += [_line({"add": file.native()}) for file in added]
        lines.append(_line({"commitInfo": {"timestamp": 1_800_000_000_000 + version, "operation": "WRITE"}}))
        path = directory / "_transaction_log" / f"{version:020d}.json"
        path.write_bytes(pack(b"\n".join(lines) + b"\n", CompressionOptions()))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def next_native_commit(directory: Path, workload: ReplayWorkload) -> None:
    """One more commit of the same kind as a writer elsewhere would make it."""
    from indextables.options import CompressionOptions
    from indextables.storage.envelope import pack

    version = CHECKPOINT_VERSION + workload.commits + 1
    fresh = workload.files + 10_000_000
    lines = [_line({"add": File(fresh + number).native()}) for number in range(workload.adds)]
    lines += [_line({"remove": _removal(File(number))}) for number in range(0, workload.removes * 3, 3)]
    text = b"\n".join(lines) + b"\n"
    path = directory / "_transaction_log" / f"{version:020d}.json"
    path.write_bytes(pack(text, CompressionOptions()))


def _removal(file: File) -> dict[str, Any]:
    return {"path": file.path, "deletionTimestamp": 1_800_000_000_000, "dataChange": True}


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _fields(action: Any) -> dict[str, Any]:
    from indextables.model.actions import action_to_wire

    return action_to_wire(action)[1]


def write_delta(directory: Path, workload: ReplayWorkload) -> None:
    """The same state as a Delta table: a Parquet checkpoint and the same commits."""
    log_dir = directory / "_delta_log"
    log_dir.mkdir(parents=True, exist_ok=True)
    checkpoint = log_dir / f"{CHECKPOINT_VERSION:020d}.checkpoint.parquet"
    delta_checkpoint(checkpoint, generated(workload.files, DELTA_ADD), delta_head([]))
    hint = {"version": CHECKPOINT_VERSION, "size": workload.files + 2}
    (log_dir / "_last_checkpoint").write_text(json.dumps(hint))
    for version, (added, removed) in enumerate(commits(workload), start=CHECKPOINT_VERSION + 1):
        lines = [_line({"remove": _removal(file)}) for file in removed]
        lines += [_line({"add": file.delta()}) for file in added]
        lines.append(_line({"commitInfo": {"timestamp": 1_800_000_000_000 + version, "operation": "WRITE"}}))
        (log_dir / f"{version:020d}.json").write_bytes(b"\n".join(lines) + b"\n")


def delta_checkpoint(file: Path, batches: Iterable[Any], head: Sequence[Mapping[str, Any]]) -> None:
    """A Parquet file of a Delta checkpoint: the actions of its head, and adds as `generated` gives them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole = pa.string(), pa.int64()
    texts = pa.map_(text, text)
    add = pa.struct([
        ("path", text), ("partitionValues", texts), ("size", whole), ("modificationTime", whole),
        ("dataChange", pa.bool_()), ("stats", text),
    ])  # fmt: skip
    metadata = pa.struct([
        ("id", text), ("format", pa.struct([("provider", text), ("options", texts)])), ("schemaString", text),
        ("partitionColumns", pa.list_(text)), ("configuration", texts), ("createdTime", whole),
    ])  # fmt: skip
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    schema = pa.schema([("protocol", protocol), ("metaData", metadata), ("add", add)])
    with pq.ParquetWriter(file, schema) as writer:
        if head:
            writer.write_table(pa.Table.from_pylist(list(head), schema=schema))
        for batch in batches:
            others = [pa.nulls(len(batch), field.type) for field in (schema[0], schema[1])]
            writer.write_table(pa.table([*others, batch.column(0).cast(add)], schema=schema))


def write_delta_commits(directory: Path, workload: ReplayWorkload) -> None:
    """The files of the checkpoint and of the commits after it as commits alone, a thousand files each."""
    log_dir = directory / "_delta_log"
    log_dir.mkdir(parents=True, exist_ok=True)
    lines = [_line(action) for action in delta_head({})]
    (log_dir / f"{0:020d}.json").write_bytes(b"\n".join(lines) + b"\n")
    version = 0
    for begin in range(0, workload.files, FILES_PER_COMMIT):
        version += 1
        numbers = range(begin, min(begin + FILES_PER_COMMIT, workload.files))
        lines = [_line({"add": File(number).delta()}) for number in numbers]
        (log_dir / f"{version:020d}.json").write_bytes(b"\n".join(lines) + b"\n")
    for number, (added, removed) in enumerate(commits(workload), start=version + 1):
        lines = [_line({"remove": _removal(file)}) for file in removed]
        lines += [_line({"add": file.delta()}) for file in added]
        (log_dir / f"{number:020d}.json").write_bytes(b"\n".join(lines) + b"\n")


def write_delta_rows(directory: Path, rows: int) -> None:
    """A Delta table with so many rows in sixteen files of several row groups each, written by delta-rs."""
    import numpy as np
    import pyarrow as pa
    from deltalake import write_deltalake

    chance = np.random.default_rng(rows)
    per_file = max(1, rows // 16)
    levels = np.array(["DEBUG", "INFO", "WARN", "ERROR"])
    for begin in range(0, rows, per_file):
        count = min(per_file, rows - begin)
        table = pa.table(
            {
                "id": np.arange(begin, begin + count, dtype=np.int64),
                "ts": pa.array(np.arange(begin, begin + count) * 1_000_000, pa.timestamp("us", tz="UTC")),
                "level": levels[chance.integers(0, 4, count)],
                "host": pa.array([f"host-{number:05d}" for number in chance.integers(0, 1000, count)]),
                "price": chance.random(count) * 1000,
                "message": pa.array(
                    [f"request {number:x} took" for number in chance.integers(0, 1 << 40, count)]
                ),
            }
        )
        write_deltalake(str(directory), table, mode="append")


def delta_head(nothing: Any) -> list[dict[str, Any]]:
    """Protocol and metadata; `nothing` is an empty map, which Parquet and JSON write differently."""
    metadata = {
        "id": "00000000-0000-4000-8000-000000000001", "format": {"provider": "parquet", "options": nothing},
        "schemaString": SCHEMA_JSON, "partitionColumns": ["date"], "configuration": nothing,
        "createdTime": 1_704_067_200_000,
    }  # fmt: skip
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
