"""The rows of a Delta table read in Python on the executors.

For sessions that Spark's own reader cannot serve: Spark Connect, a store
without a Hadoop file system, and columns widened in a way Spark's Parquet
reader does not follow. The files are fixed when the DataFrame is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.errors import MissingSplitError, NotFoundError, TableError
from indextables.log.delta_columns import FIELD_ID, physical_name
from indextables.log.delta_snapshot import DeltaSnapshot
from indextables.log.delta_vectors import DeletionVector, deleted_rows
from indextables.model.fields import schema_from_json
from indextables.predicate.tree import Node
from indextables.spark.arrow_scan import frame_of_tasks, shared_out
from indextables.spark.workers import default_width
from indextables.storage.store import Store, StoreSpec, open_store, resolve

_BATCH_ROWS = 65_536
_FILE_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class FileToRead:
    """One data file for a task."""

    path: str
    size: int
    partition_values: Mapping[str, Any]
    vector: DeletionVector | None


def rows_frame(spark: Any, snapshot: DeltaSnapshot, where: Node | None) -> DataFrame:
    """The live rows of the files a predicate leaves."""
    document = json.loads(snapshot.metadata.schema_string)
    fields = [_nullable(field) for field in document["fields"] if field["type"] != "void"]
    names = ("path", "size", "partition_values", "deletion_vector")
    files = [
        FileToRead(
            row["path"], row["size"], row["partition_values"] or {},
            DeletionVector(**row["deletion_vector"]) if row["deletion_vector"] else None,
        )
        for row in snapshot.plan(where, columns=names).files.to_pylist()
    ]  # fmt: skip
    tasks = shared_out(files, default_width(spark), lambda file: file.size)
    reader = _Reader(snapshot.store.spec(), json.dumps(fields), snapshot.columns.mode)
    return frame_of_tasks(spark, reader, tasks, T.StructType.fromJson({"type": "struct", "fields": fields}))


@dataclass(frozen=True, slots=True)
class _Reader:
    """What a task runs."""

    spec: StoreSpec
    fields_json: str
    mode: str

    def __call__(self, files: Sequence[FileToRead]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.spec)
        fields = json.loads(self.fields_json)
        schema = schema_from_json(json.dumps({"type": "struct", "fields": fields}))
        for file in files:
            gone = None if file.vector is None else deleted_rows(store, file.vector)
            start = 0
            for batch in self._batches(store, file, fields):
                rows = batch.num_rows
                table = pa.Table.from_arrays(
                    [self._column(batch, field, schema.field(field["name"]), file) for field in fields],
                    schema=schema,
                )
                if gone is not None:
                    numbers = pa.array(range(start, start + rows), pa.uint64())
                    table = table.filter(pc.invert(pc.is_in(numbers, value_set=gone)))
                start += rows
                yield from table.to_batches()

    def _batches(
        self, store: Store, file: FileToRead, fields: Sequence[Mapping[str, Any]]
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        try:
            owner, name = resolve(store, file.path)
            local = owner.local_path(name)
            source = pa.BufferReader(owner.get(name)) if local is None else pa.memory_map(local)
            opened = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        except (NotFoundError, FileNotFoundError) as error:
            raise MissingSplitError(f"data file {file.path} of the table is gone", path=file.path) from error
        wanted = [_find(opened.schema_arrow, field, self.mode) for field in fields]
        columns = [item.name for item in wanted if item is not None]
        if columns:
            yield from opened.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False)
        elif opened.metadata.num_rows:
            # Partition columns alone: only the number of rows matters.
            yield pa.record_batch([pa.nulls(opened.metadata.num_rows)], names=["_"])

    def _column(
        self, batch: pa.RecordBatch, field: Mapping[str, Any], target: pa.Field, file: FileToRead
    ) -> pa.Array:
        if field["name"] in file.partition_values:
            value = pa.scalar(file.partition_values[field["name"]], target.type)
            return pa.repeat(value, batch.num_rows)
        found = _find(batch.schema, field, self.mode)
        if found is None:
            return pa.nulls(batch.num_rows, target.type)
        return conform(batch.column(found.name), field["type"], target.type, self.mode)


def conform(array: pa.Array, document: Any, target: pa.DataType, mode: str) -> pa.Array:
    """Bring an array of a file to the table's type: fields renamed, absent ones null, values widened."""
    if pa.types.is_struct(target) and isinstance(document, dict):
        children = []
        for at, field in enumerate(document["fields"]):
            kind = target.field(at).type
            found = _find(array.type, field, mode)
            children.append(
                pa.nulls(len(array), kind)
                if found is None
                else conform(pc.struct_field(array, found.name), field["type"], kind, mode)
            )
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if pa.types.is_list(target):
        values = conform(array.flatten(), document["elementType"], target.value_type, mode)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())
    if pa.types.is_map(target):
        plain = pa.concat_arrays([array])
        keys = conform(plain.keys, document["keyType"], target.key_type, mode)
        items = conform(plain.items, document["valueType"], target.item_type, mode)
        return pa.MapArray.from_arrays(plain.offsets, keys, items, type=target, mask=plain.is_null())
    if document == "variant":
        raise TableError(
            "a column of type variant can only be read by Spark's own reader in a classic session"
        )
    return _widened(array, target)


def _widened(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target) and pa.types.is_integer(array.type):
        # Arrow wants room for every value of the integer type; the log promises that these fit.
        return array.cast(pa.decimal128(38, 0)).cast(target)
    return array.cast(target)


def _offsets(array: pa.ListArray) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths.cast(pa.int64()))]).cast(
        pa.int32()
    )


def _find(parent: Any, field: Mapping[str, Any], mode: str) -> pa.Field | None:
    """The field of a file that holds a column of the table: by id where ids decide, else by name."""
    number = (field.get("metadata") or {}).get(FIELD_ID)
    if mode == "id" and number is not None:
        wanted = str(number).encode()
        return next((item for item in parent if (item.metadata or {}).get(_FILE_ID) == wanted), None)
    name = physical_name(field, mode)
    return next((item for item in parent if item.name == name), None)


def _nullable(field: Mapping[str, Any]) -> dict[str, Any]:
    return {**field, "nullable": True}
