"""Delta tables of any number of files, made column by column: one classic checkpoint and a short tail.

Every table has the same columns and ten commits after its checkpoint, which
remove some files and add others, so that a replay has something to reconcile.
"""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (
            ("day", "date"),
            ("id", "long"),
            ("name", "string"),
            ("price", "double"),
            ("at", "timestamp"),
        )
    ],
}
ROWS_PER_FILE = 1000
DAYS = 100
TAIL = 10
STRINGS = pa.map_(pa.string(), pa.string())


def one_percent(files: int) -> str:
    """A predicate that keeps about one file in a hundred, by statistics alone."""
    low = files * ROWS_PER_FILE // 2
    return f"id >= {low} AND id < {low + files * ROWS_PER_FILE // 100}"


def make(path: Path, files: int) -> Path:
    """Write a table of so many live files, unless it is there already."""
    done = path / "done"
    if done.exists():
        return path
    shutil.rmtree(path, ignore_errors=True)
    (path / "_delta_log").mkdir(parents=True)
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "bench",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(SCHEMA),
                "partitionColumns": ["day"],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]
    _commit(path, 0, head)
    _checkpoint(path, files, head)
    for number in range(1, TAIL + 1):
        _commit(path, 10 + number, [_remove(number), _add(files + number)])
    done.touch()
    return path


def _commit(path: Path, version: int, actions: list[dict]) -> None:
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020d}.json").write_text(lines)


def _checkpoint(path: Path, files: int, head: list[dict]) -> None:
    name = path / "_delta_log" / f"{10:020d}.checkpoint.parquet"
    schema = _schema()
    with pq.ParquetWriter(name, schema, compression="snappy") as writer:
        writer.write_table(_head(head, schema))
        for start in range(0, files, 100_000):
            writer.write_table(_adds(start, min(files, start + 100_000), schema))
    hint = {"version": 10, "size": files + 2, "numOfAddFiles": files}
    (path / "_delta_log" / "_last_checkpoint").write_text(json.dumps(hint))


def _schema() -> pa.Schema:
    add = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", STRINGS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ]
    )
    form = pa.struct([("provider", pa.string()), ("options", STRINGS)])
    metadata = pa.struct(
        [
            ("id", pa.string()),
            ("format", form),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", STRINGS),
            ("createdTime", pa.int64()),
        ]
    )
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    remove = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
    txn = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    return pa.schema(
        [("txn", txn), ("add", add), ("remove", remove), ("metaData", metadata), ("protocol", protocol)]
    )


def _head(head: list[dict], schema: pa.Schema) -> pa.Table:
    metadata = dict(head[1]["metaData"])
    metadata["format"] = {"provider": "parquet", "options": []}
    metadata["configuration"] = []
    rows = {"protocol": [head[0]["protocol"], None], "metaData": [None, metadata]}
    arrays = [pa.array(rows.get(field.name, [None, None]), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _adds(start: int, stop: int, schema: pa.Schema) -> pa.Table:
    number = pa.array(range(start, stop), pa.int64())
    text = number.cast(pa.string())
    count = len(number)
    day = pc.strftime(
        pc.add(
            pa.scalar(0, pa.timestamp("s")), pc.multiply(_modulo(number, DAYS), 86_400).cast(pa.duration("s"))
        ),
        format="%Y-%m-%d",
    )
    path = pc.binary_join_element_wise(
        "day=", day, "/part-", pc.utf8_lpad(text, 12, "0"), "-c000.snappy.parquet", ""
    )
    low = pc.multiply(number, ROWS_PER_FILE).cast(pa.string())
    high = pc.add(pc.multiply(number, ROWS_PER_FILE), ROWS_PER_FILE - 1).cast(pa.string())
    stats = pc.binary_join_element_wise(
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{"id":', low, ',"name":"customer-', text,
        '-aaaaaaaaaa","price":0.5,"at":"2024-01-01T00:00:00.000Z"},"maxValues":{"id":', high,
        ',"name":"customer-', text, '-zzzzzzzzzz","price":999.5,"at":"2024-12-31T00:00:00.000Z"},"nullCount":'
        '{"id":0,"name":0,"price":0,"at":0}}', "",
    )  # fmt: skip
    offsets = pa.array(range(count + 1), pa.int32())
    values = pa.MapArray.from_arrays(offsets, pa.array(["day"]).take(pa.repeat(0, count)), day)
    children = [
        path, values, pc.add(_modulo(number, 1000), 1_000_000), pa.repeat(1_700_000_000_000, count),
        pa.repeat(True, count), stats,
    ]  # fmt: skip
    add_type = schema.field("add").type
    add = pa.StructArray.from_arrays(
        [child.cast(field.type) for child, field in zip(children, add_type)], fields=list(add_type)
    )
    arrays = [add if field.name == "add" else pa.nulls(count, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _modulo(number: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(number, pc.multiply(pc.divide(number, divisor), divisor))


def _path(number: int) -> str:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=number % DAYS)
    return f"day={day}/part-{number:012d}-c000.snappy.parquet"


def _remove(number: int) -> dict:
    return {"remove": {"path": _path(number), "deletionTimestamp": 1, "dataChange": True}}


def _add(number: int) -> dict:
    low = number * ROWS_PER_FILE
    stats = {
        "numRecords": ROWS_PER_FILE,
        "minValues": {"id": low},
        "maxValues": {"id": low + 999},
        "nullCount": {"id": 0},
    }
    return {
        "add": {
            "path": _path(number),
            "partitionValues": {"day": _path(number)[4:14]},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
    }
