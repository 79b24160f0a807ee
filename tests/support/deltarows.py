"""Delta tables with real data files: rows, deletion vectors, renamed and widened columns."""

from __future__ import annotations

import base64
import io
import struct
import uuid
import zlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from indextables.storage.deletion_vectors import _B85, _Z85
from support.deltatables import DeltaLog, add


def bitmap(rows: Sequence[int]) -> bytes:
    """Row positions below 65,536 as a deletion vector's bitmap."""
    body = struct.pack("<IIHH", 12346, 1, 0, len(rows) - 1) + struct.pack("<I", 0)
    return struct.pack("<iqI", 1681511377, 1, 0) + body + struct.pack(f"<{len(rows)}H", *rows)


def z85(data: bytes) -> str:
    """Text in the alphabet of inline vectors and file ids."""
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(str.maketrans(_B85, _Z85))


def inline_vector(rows: Sequence[int]) -> dict[str, Any]:
    """A deletion vector that lies in the log."""
    data = bitmap(rows)
    return {
        "storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(rows),
    }  # fmt: skip


def stored_vector(store: Any, rows: list[int], prefix: str = "") -> dict[str, Any]:
    """A deletion vector in a file below the table."""
    data, name = bitmap(rows), uuid.uuid4()
    frame = b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    directory = f"{prefix}/" if prefix else ""
    store.put(f"{directory}deletion_vector_{name}.bin", frame)
    return {
        "storageType": "u", "pathOrInlineDv": prefix + z85(name.bytes), "offset": 1,
        "sizeInBytes": len(data), "cardinality": len(rows),
    }  # fmt: skip


def put_file(log: DeltaLog, path: str, rows: pa.Table, **more: Any) -> dict[str, Any]:
    """Write a data file and return its add; `statistics=False` leaves its statistics out."""
    statistics, group_rows = more.pop("statistics", True), more.pop("group_rows", None)
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, row_group_size=group_rows)
    data = buffer.getvalue()
    log.store.put(path, data)
    stats = None
    if statistics:
        stats = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
        for name in rows.column_names:
            kind = rows.column(name).type
            stats["nullCount"][name] = rows.column(name).null_count
            if pa.types.is_integer(kind) or pa.types.is_string(kind):
                found = pc.min_max(rows.column(name)).as_py()
                stats["minValues"][name], stats["maxValues"][name] = found["min"], found["max"]
        if more.get("dv"):
            stats["tightBounds"] = False
    return add(path, stats=stats, size=len(data), **more)
