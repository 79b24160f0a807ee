"""The rows of a Delta table through Spark's own Parquet reader.

Files are chosen per query by the log, as for our own tables. Inside, columns
go by their physical names; the outermost projection gives them their logical
ones. Files with a deletion vector are read apart: each carries its number, and
an anti-join with the deleted (file, row) pairs, which executors decode from
the vectors, leaves the live rows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log import scans
from indextables.log.delta.columns import (
    FIELD_ID,
    PHYSICAL_NAME,
    DeltaColumns,
    columns_of,
    physical_name,
)
from indextables.log.delta.files.file_table import require_partition_values
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.replay.rule import LiveFiles, Sums
from indextables.model.names import quoted_name
from indextables.ops.delta.data_file import NAMES, DataFile, data_files, hidden_rows
from indextables.predicate.build.from_spark import from_typed
from indextables.predicate.tree import Node, all_of
from indextables.spark import errors
from indextables.spark.read.frame import LoadedTable, remember
from indextables.spark.read.planner import hadoop_paths, is_absolute
from indextables.spark.read.relation import RelationSpec, native_frame
from indextables.spark.read.wire import Answer
from indextables.spark.workers import default_width, frame_of_tasks, shared_out
from indextables.storage.store import StoreSpec, open_store

FILE, ROW = "__indextables_file", "__indextables_row"
_PARQUET_ID = "parquet.field.id"
_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
_COPIED_METADATA = ("__CHAR_VARCHAR_TYPE_STRING", "__COLLATIONS")


def scan(spark: Any, snapshot: DeltaSnapshot, where: Node | None) -> DataFrame:
    """The live rows, by logical names; `where` decides which deletion vectors are worth decoding."""
    text = snapshot.metadata.schema_string
    document = json.loads(text)
    physical = physical_fields(document["fields"], snapshot.columns.mode)
    # PySpark strips the provider off collations in place, so it gets a document of its own.
    table = T.StructType.fromJson({"type": "struct", "fields": _without_void(json.loads(text)["fields"])})
    columns = _physical_columns(snapshot, physical)
    vectors, has_others = _vectors(snapshot, where)
    common = _Planner(snapshot, columns, frozenset())
    frames = []
    if has_others:
        clean = replace(common, hidden=frozenset(map(_key, vectors)))
        frames.append(_relation(spark, snapshot, physical, columns, clean))
    if vectors or not frames:
        frames.append(_without_deleted(spark, snapshot, physical, columns, vectors))
    errors.watch(snapshot.version, snapshot.store.spark_uri("").rstrip("/"))
    frame = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    return frame.select(*(_logical(field, physical[at]) for at, field in enumerate(table.fields)))


@dataclass(frozen=True, slots=True)
class _Planner:
    """Chooses the files of one query by physical names; `hidden` or `only` restrict them."""

    snapshot: DeltaSnapshot
    columns: DeltaColumns
    hidden: frozenset[tuple[str, str | None]]
    only: Mapping[tuple[str, str | None], int] | None = None

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        nodes = [from_typed(tree, self.columns.schema) for tree in filters]
        names = {"path", "dv", "size", "modification_time", "partition_values"}
        planned = self._replay(all_of(nodes) if nodes else None, names)
        scans.record(self.snapshot.store.uri, self.snapshot.version, planned.metrics, planned.replay)
        files = planned.files
        numbers: list[int] = []
        if self.only is not None:
            keys = _keys(files)
            numbers = [self.only[key] for key in keys if key in self.only]
            files = files.filter(pa.array([key in self.only for key in keys], pa.bool_()))
        elif self.hidden:
            files = files.filter(pa.array([key not in self.hidden for key in _keys(files)], pa.bool_()))
        require_partition_values(files, self.snapshot.store.uri)
        values = files.column("partition_values").combine_chunks()
        partitions = [pc.struct_field(values, [at]) for at in range(len(self.columns.partition_columns))]
        if self.only is not None:
            partitions.append(pa.array(numbers, pa.int32()))
        paths = hadoop_paths(self.snapshot.store, files.column("path"))
        elsewhere = pc.unique(pc.filter(paths, is_absolute(files.column("path"))))
        errors.watch(self.snapshot.version, *elsewhere.to_pylist())
        return Answer(
            considered=planned.metrics.considered,
            paths=paths,
            sizes=files.column("size"),
            modified_ms=files.column("modification_time").cast(pa.int64()),
            partitions=tuple(partitions),
        )

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """Nothing: the log counts rows that vectors hide, and knows columns by other names."""
        del question
        return None

    def size_bytes(self) -> int:
        """Bytes of the whole version."""
        return max(1, self.snapshot.sums(("size",)).sums["size"])

    def _replay(self, node: Node | None, names: set[str]) -> LiveFiles:
        return self.snapshot.replay_by(self.columns, node, frozenset(names))


def _keys(files: pa.Table) -> list[tuple[str, str | None]]:
    return list(zip(files.column("path").to_pylist(), files.column("dv").to_pylist(), strict=True))


def num_vectors(snapshot: DeltaSnapshot) -> int:
    """How many files have a deletion vector.

    The log decides, not the features of the protocol: a vector that is there hides rows.
    """
    return _counted(snapshot).counts["dv"]


def _counted(snapshot: DeltaSnapshot) -> Sums:
    return snapshot.once("vectors", lambda: snapshot.sums(("dv",)))


def _vectors(snapshot: DeltaSnapshot, where: Node | None) -> tuple[list[DataFile], bool]:
    """The files a predicate leaves that have a deletion vector, and whether the table has others."""
    vectors = num_vectors(snapshot)
    if not vectors:
        return [], True
    files = list(data_files(snapshot.files_with_vectors(where, frozenset(NAMES)).files))
    return files, vectors < _counted(snapshot).num_files


def _without_deleted(
    spark: Any,
    snapshot: DeltaSnapshot,
    physical: Sequence[Mapping[str, Any]],
    columns: DeltaColumns,
    vectors: Sequence[DataFile],
) -> DataFrame:
    """Rows of the files with deletion vectors, the deleted ones left out."""
    only = {_key(file): number for number, file in enumerate(vectors)}
    number = {"name": FILE, "type": "integer", "nullable": False, "metadata": {}}
    planner = _Planner(snapshot, columns, frozenset(), only)
    rows = _relation(spark, snapshot, [*physical, number], columns, planner)
    rows = rows.select("*", F.col("_metadata.row_index").alias(ROW))
    tasks = shared_out(list(enumerate(vectors)), default_width(spark), _vector_bytes)
    deleted = frame_of_tasks(spark, _VectorDecoder(snapshot.store.spec()), tasks, "file int, row long")
    same = (rows[FILE] == deleted["file"]) & (rows[ROW] == deleted["row"])
    return rows.join(deleted, same, "left_anti").drop(FILE, ROW)


@dataclass(frozen=True, slots=True)
class _VectorDecoder:
    """What a task runs to decode deletion vectors."""

    spec: StoreSpec

    def __call__(self, files: Sequence[tuple[int, DataFile]]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.spec)
        for number, file in files:
            deleted = hidden_rows(store, file)
            assert deleted is not None
            numbers = pa.repeat(pa.scalar(number, pa.int32()), len(deleted))
            yield pa.record_batch({"file": numbers, "row": deleted.cast(pa.int64())})


def _vector_bytes(item: tuple[int, DataFile]) -> int:
    return 0 if item[1].vector is None else item[1].vector.size_bytes


def _key(file: DataFile) -> tuple[str, str | None]:
    return file.path, None if file.vector is None else file.vector.unique_id


def _relation(
    spark: Any,
    snapshot: DeltaSnapshot,
    fields: Sequence[Mapping[str, Any]],
    columns: DeltaColumns,
    planner: _Planner,
) -> DataFrame:
    uri, version = snapshot.store.uri, snapshot.version
    spec = RelationSpec(
        root=snapshot.store.spark_uri("").rstrip("/"),
        identity=f"delta {snapshot.metadata.id}@{version} {uri} {uuid.uuid4()}",
        label=f"{uri} version {version}",
        schema_json=json.dumps({"type": "struct", "fields": list(fields)}),
        partition_columns=(*columns.partition_columns, *(() if planner.only is None else (FILE,))),
        options=_BY_ID if snapshot.columns.mode == "id" else {},
    )
    # A search over it is refused by the name of its table.
    remember(spec.identity, LoadedTable(uri, dict(snapshot.opened_with().explicit), version, pinned=True))
    return native_frame(spark, spec, planner)


def _without_void(fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [field for field in fields if field["type"] != "void"]


def logical_schema(snapshot: DeltaSnapshot) -> str:
    """The columns of a DataFrame over the table, with their comments, as the JSON text of a StructType."""
    fields = [
        {
            **field,
            "type": _physical_type(field["type"], "none"),
            "nullable": True,
            "metadata": {
                key: value
                for key, value in (field.get("metadata") or {}).items()
                if key in {*_COPIED_METADATA, "comment"}
            },
        }
        for field in _without_void(json.loads(snapshot.metadata.schema_string)["fields"])
    ]
    return json.dumps({"type": "struct", "fields": fields})


def physical_fields(fields: Sequence[Mapping[str, Any]], mode: str) -> list[dict[str, Any]]:
    """Fields of a schema document as the files have them: physical names, ids if they decide, nullable."""
    return [
        {
            "name": physical_name(field, mode),
            "type": _physical_type(field["type"], mode),
            "nullable": True,
            "metadata": _metadata(field, mode),
        }
        for field in _without_void(fields)
    ]


def _physical_type(kind: Any, mode: str) -> Any:
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": physical_fields(kind["fields"], mode)}
    if kind["type"] == "array":
        return {**kind, "elementType": _physical_type(kind["elementType"], mode), "containsNull": True}
    value = _physical_type(kind["valueType"], mode)
    return {
        **kind,
        "keyType": _physical_type(kind["keyType"], mode),
        "valueType": value,
        "valueContainsNull": True,
    }


def _metadata(field: Mapping[str, Any], mode: str) -> dict[str, Any]:
    metadata = field.get("metadata") or {}
    copied = {name: metadata[name] for name in _COPIED_METADATA if name in metadata}
    return {**copied, _PARQUET_ID: metadata[FIELD_ID]} if mode == "id" and FIELD_ID in metadata else copied


def _physical_columns(snapshot: DeltaSnapshot, fields: Sequence[Mapping[str, Any]]) -> DeltaColumns:
    """The table's columns with physical names for logical ones."""
    names = snapshot.columns.physical_partitions()
    metadata = replace(
        snapshot.metadata,
        schema_string=json.dumps({"type": "struct", "fields": list(fields)}),
        partition_columns=tuple(names[name] for name in snapshot.columns.partition_columns),
        configuration={},
    )
    return columns_of(snapshot.protocol, metadata, no_nan=snapshot.settings.read.no_nan)


def _logical(field: T.StructField, physical: Mapping[str, Any]) -> Any:
    """A column under its logical name, fields inside it included; casting a struct renames by position."""
    metadata = {
        key: value for key, value in (field.metadata or {}).items() if key not in {FIELD_ID, PHYSICAL_NAME}
    }
    column = F.col(quoted_name(physical["name"]))
    if isinstance(field.dataType, (T.StructType, T.ArrayType, T.MapType)):
        column = column.cast(_nullable(field.dataType))
    return column.alias(field.name, metadata=metadata)


def _nullable(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nullable(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind
