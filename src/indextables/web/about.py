"""What the page shows of a table besides its rows: the facts of its report, its files, its versions."""

from __future__ import annotations

from typing import Any

from indextables.display.plain import plain_value
from indextables.lazy import pc
from indextables.ops.maintain.describe import metrics_text
from indextables.report import facts_of
from indextables.web.answers import filter_of
from indextables.web.row_request import RowRequest
from indextables.web.tables import ServedTable, summary

_VERSIONS = 200
_OF_A_FILE = ("path", "size", "num_records", "partition_values")


def overview(served: ServedTable, version: int | None) -> dict[str, Any]:
    """The report's facts and advice."""
    facts = facts_of(served.open(version))
    state = facts.state
    return {
        **summary(served, version),
        "index_bytes": state.index_bytes,
        "log_files": state.log_files,
        "log_bytes": state.log_bytes,
        "checkpoint_version": state.checkpoint_version,
        "versions_available": state.versions_available,
        "protocol": state.protocol,
        "table_id": state.table_id,
        "partition_columns": list(state.partition_columns),
        "properties": dict(state.properties),
        "advice": [
            {"text": item.text, "effect": item.effect, "statement": item.statement} for item in facts.advice
        ],
        "partitions": [[bar.label, bar.value, bar.text] for bar in facts.partitions],
        "file_sizes": [[bar.label, bar.value, bar.text] for bar in facts.file_sizes],
    }


def files(served: ServedTable, row_request: RowRequest) -> dict[str, Any]:
    """The live files that may hold a row of the filter, largest first."""
    table = served.open(row_request.version)
    live = table.files(filter_of(table, row_request), columns=_OF_A_FILE)
    order = pc.sort_indices(live.column("size"), [("size", "descending")]) if live.num_rows else None
    page = live if order is None else live.take(order)
    page = page.slice(row_request.offset, row_request.limit)
    return {
        "version": table.version,
        "total": live.num_rows,
        "bytes": pc.sum(live.column("size")).as_py() or 0,
        "considered": table.last_scan.files.considered if table.last_scan else live.num_rows,
        "offset": row_request.offset,
        "files": [plain_value(row) for row in page.to_pylist()],
    }


def versions(served: ServedTable) -> dict[str, Any]:
    """The newest versions and what made them."""
    table = served.open()
    newest = table.history(_VERSIONS).to_pylist()
    return {
        "version": table.version,
        "versions": [
            {
                "version": row["version"],
                "timestamp": plain_value(row["timestamp"]),
                "operation": row["operation"],
                "change": metrics_text(row["operation_metrics"] or ()),
            }
            for row in newest
        ],
    }
