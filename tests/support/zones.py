"""A table whose times are read differently in New York, Tokyo and UTC, with the right rows for each."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables as it
from indextables.storage.store import open_store
from support.deltarows import put_file
from support.deltatables import DeltaLog, schema_string

NEW_YORK, TOKYO = "America/New_York", "Asia/Tokyo"
LOCAL = [datetime(2024, 1, 1, hour) for hour in (0, 3, 12, 20)]
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "local": pa.array(LOCAL, pa.timestamp("us")),
        "moment": pa.array([at.replace(tzinfo=UTC) for at in LOCAL], pa.timestamp("us", "UTC")),
        "text": ["word one", "word two", "word three", "word four"],
    }
)
# 06:00Z is 01:00 in New York and 15:00 in Tokyo; 06:00 there is 11:00Z and 21:00Z of the day before.
BY_LOCAL = "local >= TIMESTAMP'2024-01-01 06:00:00Z'"
BY_MOMENT = "moment >= TIMESTAMP'2024-01-01 06:00:00'"
ANSWERS = {
    BY_LOCAL: {"UTC": [3, 4], NEW_YORK: [2, 3, 4], TOKYO: [4]},
    BY_MOMENT: {"UTC": [3, 4], NEW_YORK: [3, 4], TOKYO: [1, 2, 3, 4]},
}


def ids(rows: Any) -> list[int]:
    """The ids of a stream of rows."""
    return sorted(rows.read_all()["id"].to_pylist())


def made(uri: str, prop: str | None) -> str:
    """A table of ours with the zone as its property."""
    table = it.Table.create(uri, ROWS.schema, options={"indexing.typemap.text": "text"})
    table.append(ROWS)
    if prop is not None:
        table.update_properties({"timeZone": prop})
    return uri


def given(option: str | None) -> dict[str, str]:
    """The zone as an option."""
    return {} if option is None else {"timeZone": option}


def delta_copy(directory: Path, prop: str | None, **properties: str) -> str:
    """The same rows as a Delta table."""
    schema = schema_string(id="long", local="timestamp_ntz", moment="timestamp", text="string")
    if prop is not None:
        properties["spark.indextables.timeZone"] = prop
    log = DeltaLog(open_store(directory / "delta"), schema, configuration=properties)
    log.commit(put_file(log, "one.parquet", ROWS))
    return log.store.uri
