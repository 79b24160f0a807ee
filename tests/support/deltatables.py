"""Delta logs made to order: commits, and checkpoints of every kind the protocol knows.

log = DeltaLog(store, schema, partition_columns=("p",))
log.commit(add("a", stats={...}), remove("b"))
log.checkpoint("v2-json")
log.live                  # {(path, deletion vector id): add} as the protocol defines it
"""

from __future__ import annotations

import io
import json
import uuid
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

KINDS = ("classic", "multipart", "v2-classic", "v2-json", "v2-parquet", "v2-inline")
LOG = "_delta_log"
STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD = [
    ("path", pa.string()),
    ("partitionValues", STRINGS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("tags", STRINGS),
    ("deletionVector", VECTOR),
    ("stats", pa.string()),
]
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("deletionVector", VECTOR),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", STRINGS),
        ("createdTime", pa.int64()),
    ]
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
SIDECAR = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])


def schema_string(**columns: Any) -> str:
    """The schema document of columns given as name=type."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def vector(number: int, offset: int | None = 1) -> dict[str, Any]:
    """A deletion vector descriptor; it points nowhere."""
    body = {"storageType": "u", "pathOrInlineDv": f"{number:020d}", "sizeInBytes": 34, "cardinality": 1}
    return body if offset is None else {**body, "offset": offset}


def add(
    path: str, *, stats: dict[str, Any] | None = None, dv: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """An add action; the path is the real one and is written percent-encoded."""
    body = {
        "path": quote(path, safe="/=:+"),
        "partitionValues": {},
        "size": 100,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        **more,
    }
    if stats is not None:
        body["stats"] = json.dumps(stats)
    if dv is not None:
        body["deletionVector"] = dv
    return {"add": body}


def remove(path: str, *, dv: dict[str, Any] | None = None) -> dict[str, Any]:
    """A remove action."""
    body: dict[str, Any] = {"path": quote(path, safe="/=:+"), "deletionTimestamp": 1, "dataChange": True}
    return {"remove": body if dv is None else {**body, "deletionVector": dv}}


def key_of(body: dict[str, Any]) -> tuple[str, str | None]:
    """Decoded path and deletion vector id."""
    dv = body.get("deletionVector")
    suffix = "" if not dv or dv.get("offset") is None else f"@{dv['offset']}"
    return unquote(body["path"]), dv and f"{dv['storageType']}{dv['pathOrInlineDv']}{suffix}"


class DeltaLog:
    """A log that grows commit by commit and knows what is live in it."""

    def __init__(
        self,
        store: Any,
        schema: str,
        partition_columns: tuple[str, ...] = (),
        features: tuple[str, ...] = ("deletionVectors", "v2Checkpoint", "columnMapping", "timestampNtz"),
        configuration: dict[str, str] | None = None,
    ) -> None:
        self.store = store
        self.version = -1
        self.live: dict[tuple[str, str | None], dict[str, Any]] = {}
        self.history: dict[int, dict[tuple[str, str | None], dict[str, Any]]] = {}
        self.tombstones: list[dict[str, Any]] = []
        self.protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": list(features),
            "writerFeatures": list(features),
        }
        self.metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": list(partition_columns),
            "configuration": configuration or {},
            "createdTime": 1,
        }
        self.commit({"protocol": self.protocol}, {"metaData": self.metadata})

    def commit(self, *actions: dict[str, Any]) -> int:
        """Write the next version."""
        self.version += 1
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        self.store.put(f"{LOG}/{self.version:020d}.json", lines.encode())
        for action in actions:
            if "add" in action:
                self.live[key_of(action["add"])] = action["add"]
            elif "remove" in action:
                self.live.pop(key_of(action["remove"]), None)
                self.tombstones.append(action["remove"])
            elif "metaData" in action:
                self.metadata = action["metaData"]
            elif "protocol" in action:
                self.protocol = action["protocol"]
        self.history[self.version] = dict(self.live)
        return self.version

    def checkpoint(
        self,
        kind: str = "classic",
        *,
        parsed: pa.StructType | None = None,
        text: bool = True,
        hint: bool = True,
    ) -> None:
        """Write a checkpoint of the newest version; `parsed` adds typed statistics, `text` keeps the JSON ones."""
        adds = [_add_row(body, parsed, text) for body in self.live.values()]
        head = [
            {"protocol": self.protocol},
            {"metaData": _pairs(self.metadata)},
            {"txn": {"appId": "app", "version": 7}},
        ]
        removes = [{"remove": body} for body in self.tombstones]
        name = f"{LOG}/{self.version:020d}.checkpoint"
        add_type = pa.struct([*ADD, *([("stats_parsed", parsed)] if parsed else [])])
        if kind == "classic":
            self._put(f"{name}.parquet", [*head, *adds, *removes], add_type)
        elif kind == "multipart":
            rows = [*adds, *head, *removes]
            for part in (1, 2, 3):
                self._put(f"{name}.{part:010d}.{3:010d}.parquet", rows[part - 1 :: 3], add_type)
        else:
            self._v2(kind, name, head, [*adds, *removes], add_type)
        if hint:
            pointer = {"version": self.version, "size": len(adds) + len(head), "numOfAddFiles": len(adds)}
            self.store.put(f"{LOG}/_last_checkpoint", json.dumps(pointer).encode())

    def _v2(self, kind: str, name: str, head: list[Any], files: list[Any], add_type: pa.StructType) -> None:
        head = [*head, {"checkpointMetadata": {"version": self.version}}]
        if kind == "v2-inline":
            rows = [{key: _plain(value) for key, value in row.items()} for row in [*head, *files]]
            body = "".join(json.dumps(row) + "\n" for row in rows)
            self.store.put(f"{name}.{uuid.uuid4()}.json", body.encode())
            return
        for rows in (files[::2], files[1::2]):
            sidecar = f"{uuid.uuid4()}.parquet"
            size = self._put(f"{LOG}/_sidecars/{sidecar}", rows, add_type, only=("add", "remove"))
            head.append({"sidecar": {"path": sidecar, "sizeInBytes": size, "modificationTime": 1}})
        if kind == "v2-json":
            body = "".join(
                json.dumps({key: _plain(value) for key, value in row.items()}) + "\n" for row in head
            )
            self.store.put(f"{name}.{uuid.uuid4()}.json", body.encode())
        else:
            stem = name if kind == "v2-classic" else f"{name}.{uuid.uuid4()}"
            self._put(f"{stem}.parquet", head, add_type)

    def _put(
        self, path: str, rows: list[Any], add_type: pa.StructType, only: tuple[str, ...] | None = None
    ) -> int:
        types = {
            "txn": TXN,
            "add": add_type,
            "remove": REMOVE,
            "metaData": METADATA,
            "protocol": PROTOCOL,
            "checkpointMetadata": pa.struct([("version", pa.int64())]),
            "sidecar": SIDECAR,
        }
        names = only or tuple(types)
        table = pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, row_group_size=max(7, len(rows) // 8))
        self.store.put(path, buffer.getvalue())
        return len(buffer.getvalue())

    def drop_commits(self, upto: int) -> None:
        """Delete the commit files at or below a version, as log cleanup does."""
        for number in range(upto + 1):
            self.store.delete(f"{LOG}/{number:020d}.json")


def _add_row(body: dict[str, Any], parsed: pa.StructType | None, text: bool) -> dict[str, Any]:
    row = _pairs(body)
    if parsed is not None and body.get("stats") is not None:
        row["stats_parsed"] = json.loads(body["stats"])
    if not text:
        row.pop("stats", None)
    return {"add": row}


def _pairs(body: dict[str, Any]) -> dict[str, Any]:
    """Objects that Parquet stores as maps, as pairs."""
    row = dict(body)
    for name in ("partitionValues", "tags", "configuration"):
        if isinstance(row.get(name), dict):
            row[name] = list(row[name].items())
    if "format" in row:
        row["format"] = {**row["format"], "options": []}
    return row


def _plain(value: Any) -> Any:
    row = dict(value)
    for name in ("partitionValues", "tags", "configuration"):
        if isinstance(row.get(name), list):
            row[name] = dict(row[name])
    if "format" in row:
        row["format"] = {**row["format"], "options": {}}
    row.pop("stats_parsed", None)
    return row
