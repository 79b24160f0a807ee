"""The rows of a Delta table read in Python on the executors.

For sessions that Spark's own reader cannot serve: Spark Connect, a store
without a Hadoop file system, and columns widened in a way Spark's Parquet
reader does not follow. The files are fixed when the DataFrame is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.errors import TableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.ops.delta.data_file import NAMES, DataFile, RowReader, data_files
from indextables.predicate.tree import Node
from indextables.spark.workers import default_width, frame_of_tasks, shared_out
from indextables.storage.store import StoreSpec, open_store, require_allowed


def rows_frame(spark: Any, snapshot: DeltaSnapshot, where: Node | None) -> DataFrame:
    """The live rows of the files a predicate leaves."""
    document = json.loads(snapshot.metadata.schema_string)
    fields = [{**field, "nullable": True} for field in document["fields"] if field["type"] != "void"]
    variants = [field["name"] for field in fields if '"variant"' in json.dumps(field["type"])]
    if variants:
        raise TableError(
            f"column {variants[0]!r} is of type variant, which only Spark's own reader in a classic session "
            "can read",
            column=variants[0],
        )
    files = list(data_files(snapshot.plan(where, columns=NAMES).files))
    require_allowed(snapshot.store, (file.path for file in files))
    tasks = shared_out(files, default_width(spark), lambda file: file.size)
    reader = RowReader(snapshot.columns, tuple(field["name"] for field in fields))
    task = _Task(snapshot.store.spec(), reader)
    return frame_of_tasks(spark, task, tasks, T.StructType.fromJson({"type": "struct", "fields": fields}))


@dataclass(frozen=True, slots=True)
class _Task:
    """What a task runs."""

    spec: StoreSpec
    reader: RowReader

    def __call__(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.spec)
        for file in files:
            for table in self.reader.rows(store, file):
                yield from table.to_batches()
