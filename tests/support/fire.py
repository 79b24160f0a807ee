"""Writers and mergers that run in processes of their own, for tests of what happens between them."""

from __future__ import annotations

import pyarrow as pa

import indextables as it
from indextables.errors import ConflictError
from indextables.ops.rewrite.merge import MergeRequest, run_merge

SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("message", pa.string())])
OPTIONS = {
    "transaction.retry.maxAttempts": "100",
    "transaction.retry.baseDelayMs": "5",
    "checkpoint.interval": "7",
}
DAYS = ("1", "2")


def rows(writer: str, batch: int, count: int) -> pa.Table:
    """Rows that no other batch has."""
    ids = [f"{writer}-{batch}-{n}" for n in range(count)]
    days = [DAYS[n % len(DAYS)] for n in range(count)]
    return pa.table({"id": ids, "day": days, "message": [f"row {name} of {writer}" for name in ids]}, SCHEMA)


def create(uri: str) -> None:
    it.Table.create(uri, SCHEMA, ["day"], options={**OPTIONS, "indexing.typemap.message": "text"})


def append_many(uri: str, writer: str, batches: int) -> int:
    table = it.Table.open(uri, options=OPTIONS)
    for batch in range(batches):
        table.append(rows(writer, batch, 3))
    return batches


def overwrite_many(uri: str, writer: str, batches: int) -> int:
    table = it.Table.open(uri, options=OPTIONS)
    for batch in range(batches):
        table.overwrite(rows(writer, batch, 4))
    return batches


def merge_many(uri: str, _writer: str, runs: int) -> int:
    """How many merges came through; the others met somebody who was faster."""
    done = 0
    for _ in range(runs):
        try:
            result = run_merge(it.TransactionLog.open(uri, OPTIONS), MergeRequest(max_source_splits=4))
        except ConflictError:
            continue
        done += result.status == "SUCCESS"
    return done
