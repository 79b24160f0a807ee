"""Reads splits into Spark rows without Spark's Parquet reader: each task opens its splits itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.model.arrays import integers
from indextables.model.fields import schema_from_json
from indextables.ops.read.splits import live_splits
from indextables.options import Options
from indextables.spark.workers import default_width, frame_of_tasks, shared_out, spark_schema
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_split
from indextables.split.read.rows import to_table_schema
from indextables.storage.store import open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.snapshot import Snapshot

FILE, ROW = "__indextables_file", "__indextables_row"
_TASKS_PER_CORE = 4


def arrow_frame(
    spark: Any, snapshot: Snapshot, options: Mapping[str, str], columns: Sequence[str] | None = None,
    *, numbered: bool = False, refs: Sequence[SplitRef] | None = None,
) -> Any:  # fmt: skip
    """A DataFrame over one version or some of its splits; `numbered` adds file and number of each row."""
    from pyspark.sql.types import LongType, StringType

    files = live_splits(snapshot) if refs is None else refs
    whole = spark_schema(snapshot.metadata.schema_string)
    names = list(columns) if columns is not None else whole.names
    schema = type(whole)([whole[name] for name in names])
    if numbered:
        schema = schema.add(FILE, StringType(), False).add(ROW, LongType(), False)
    root, table = snapshot.store.spec(), snapshot.metadata.schema_string
    tasks = shared_out(files, default_width(spark) * _TASKS_PER_CORE, lambda file: file.size or 0)

    def run(task: tuple[SplitRef, ...]) -> Iterator[pa.RecordBatch]:
        return read_files(task, table, options, root, names, numbered=numbered)

    return frame_of_tasks(spark, run, tasks, schema)


def read_files(
    files: Iterable[SplitRef], schema_json: str, options: Mapping[str, str], root: Any,
    columns: Sequence[str] | None = None, *, numbered: bool = False,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The rows of some splits, in the table's types; on an executor."""
    schema = schema_from_json(schema_json)
    names = list(columns) if columns is not None else schema.names
    store = open_store(root, Options.of(options).storage)
    for file in files:
        reader = open_split(store, file)
        present = [name for name in names if name in reader.columns]
        for numbers, rows in reader.scan(present):
            table = to_table_schema(_at_least_one(rows, len(numbers)), schema, names, file.partition_values)
            yield from (numbered_rows(table, file.path, numbers) if numbered else table).to_batches()


def _at_least_one(rows: pa.Table, count: int) -> pa.Table:
    return rows if rows.column_names else pa.table({"": pa.nulls(count)})


def numbered_rows(table: pa.Table, name: str, rows: np.ndarray) -> pa.Table:
    """Rows with the file they come from and their numbers in that file."""
    numbers = integers(rows)
    names = pa.array([name], pa.string()).take(pa.array([0] * len(rows), pa.int8()))
    return table.append_column(pa.field(FILE, pa.string(), nullable=False), names).append_column(
        pa.field(ROW, pa.int64(), nullable=False), numbers
    )
