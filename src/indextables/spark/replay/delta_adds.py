"""The adds of a Delta log as a DataFrame on the executors.

Columns are those of `files()`: paths decoded, partition values and statistics typed.
Spark reads the checkpoint with an explicit schema; partition values and statistics are
interpreted by the same code as on one machine (`log.delta.files`), called for whole
batches, and only for what a query needs. The raw fields are kept in further columns, for
the rows that are collected. `DeltaAdds` does the same for adds of commits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.delta.checkpoint.reader import AddRows
from indextables.log.delta.columns import DeltaColumns, SchemaLeaf
from indextables.log.delta.commits import key_of
from indextables.log.delta.files.file_table import (
    BOUNDS,
    COLUMNS,
    COUNTS_NAN,
    STATISTICS,
    FileProjection,
    form_columns,
    partitions_of,
    raw_table,
    statistics_of,
    unknown_to,
)
from indextables.log.delta.paths import HERE, LOCAL_SCHEME
from indextables.model.actions import AddAction, RemoveAction
from indextables.model.fields import schema_to_json
from indextables.spark.replay.form import in_micros
from indextables.spark.versions import ArrowColumn, with_arrow_columns
from indextables.storage.store import Store, resolve

ADD = "add"
_STATISTICS, _PARTITIONS = "__known", "__partitions"
Names = frozenset[str] | None
_STRINGS = T.MapType(T.StringType(), T.StringType())
_VECTOR = T.StructType(
    [
        T.StructField("storageType", T.StringType()),
        T.StructField("pathOrInlineDv", T.StringType()),
        T.StructField("offset", T.IntegerType()),
        T.StructField("sizeInBytes", T.IntegerType()),
        T.StructField("cardinality", T.LongType()),
    ]
)
ADD_FIELDS = (
    T.StructField("path", T.StringType()),
    T.StructField("partitionValues", _STRINGS),
    T.StructField("size", T.LongType()),
    T.StructField("modificationTime", T.LongType()),
    T.StructField("dataChange", T.BooleanType()),
    T.StructField("tags", _STRINGS),
    T.StructField("stats", T.StringType()),
    T.StructField("deletionVector", _VECTOR),
)
_VECTOR_NAMES = {
    "storageType": "storage_type",
    "pathOrInlineDv": "path_or_inline",
    "offset": "offset",
    "sizeInBytes": "size_bytes",
    "cardinality": "cardinality",
}
_REPLACED = "\ufffd"
_NO_ESCAPE = "%(?![0-9A-Fa-f]{2})"
_TYPED = STATISTICS | {"partition_values"}


def checkpoint_frame(
    spark: Any, store: Store, pieces: Sequence[AddRows], columns: DeltaColumns, statistics: Names = None
) -> DataFrame:
    """Every add of these files in the layout of `files()`, and its raw fields in further columns.

    Minima, maxima and null counts are those of the named columns, of all when None.
    """
    # Files of one checkpoint may differ in what they say of statistics: each kind is read as it was written.
    kinds: dict[tuple[pa.DataType | None, bool], list[str]] = {}
    for piece in pieces:
        at = piece.add.get_field_index("stats_parsed")
        kind = (None if at < 0 else piece.add.field(at).type, piece.is_typed)
        paths = kinds.setdefault(kind, [])
        if piece.path not in paths:
            paths.append(piece.path)
    frames = []
    for (typed, is_whole), paths in kinds.items():
        parsed = None if typed is None else _parsed_type(typed, columns)
        raw = _read(spark, [_spark_uri(store, path) for path in paths], parsed)
        lacks = typed is not None and bool(unknown_to(typed, leaves_of(columns, statistics)))
        frames.append(files_frame(raw, columns, statistics, text=lacks or not is_whole))
    if len(frames) > 1:
        frames = [frame.drop(raw_column("stats_parsed")) for frame in frames]
    adds = frames[0]
    for frame in frames[1:]:
        adds = adds.unionByName(frame, allowMissingColumns=True)
    return adds


def _read(spark: Any, uris: Sequence[str], parsed: T.StructType | None) -> DataFrame:
    fields = [*ADD_FIELDS, *([] if parsed is None else [T.StructField("stats_parsed", parsed)])]
    schema = T.StructType([T.StructField(ADD, T.StructType(fields))])
    reader = spark.read.schema(schema).options(
        ignoreMissingFiles="false", ignoreCorruptFiles="false", mergeSchema="false",
        recursiveFileLookup="true", datetimeRebaseMode="CORRECTED", int96RebaseMode="CORRECTED",
    )  # fmt: skip
    # Names of log files are plain, but the table's own directory may hold characters of a glob.
    raw: DataFrame = reader.option("__globPaths__", "false").parquet(*uris)
    return raw.where(F.col("add.path").isNotNull())


def files_frame(
    raw: DataFrame, columns: DeltaColumns, statistics: Names = None, *, text: bool = True
) -> DataFrame:
    """Lay a frame with a raw `add` column out in the files() form, its fields beside it.

    `text` says whether JSON statistics are looked at where typed ones are missing.
    """
    leaves = leaves_of(columns, statistics)
    # Columns of their own, not fields of a struct: what a query does not use is then not even read.
    names = _field_names(raw)
    add = {name: F.col(raw_column(name)) for name in names}
    flat = raw.select(*(F.col(ADD)[name].alias(raw_column(name)) for name in names))
    looked_at = ["path", *(["stats"] if text or "stats_parsed" not in names else [])]
    looked_at += [name for name in ("stats_parsed", COUNTS_NAN) if name in names]
    typed = [_statistics(leaves, looked_at)]
    if columns.partition_columns:
        typed.append(_partition_values(columns))
    source = with_arrow_columns(flat, typed)
    partitions = F.col(_PARTITIONS) if columns.partition_columns else F.lit(None).cast("struct<>")
    return source.select(
        decoded_path(add["path"]).alias("path"),
        vector_id(add["deletionVector"]).alias("dv"),
        add["size"].alias("size"),
        F.timestamp_millis(add["modificationTime"]).alias("modification_time"),
        F.col(_STATISTICS)["num_records"].alias("num_records"),
        partitions.alias("partition_values"),
        *(_of(name, leaves).alias(name) for name in BOUNDS),
        add["stats"].alias("stats"),
        add["dataChange"].alias("data_change"),
        add["tags"].alias("tags"),
        _vector(add["deletionVector"]).alias("deletion_vector"),
        *add.values(),
    )


def _of(name: str, leaves: Sequence[SchemaLeaf]) -> Column:
    bounded = _floating(leaves) if name == "max_number" else leaves
    return F.col(_STATISTICS)[name] if bounded else F.lit(None).cast("struct<>")


def _floating(leaves: Sequence[SchemaLeaf]) -> list[SchemaLeaf]:
    return [leaf for leaf in leaves if pa.types.is_floating(leaf.type)]


def _statistics(leaves: Sequence[SchemaLeaf], names: Sequence[str]) -> ArrowColumn:
    """The statistics of adds, read on executors as the local engine reads them."""
    projection = FileProjection(frozenset({"num_records", *(BOUNDS if leaves else ())}), tuple(leaves))
    inputs, bounds = tuple(names), _bounds_type(leaves)
    fields = {"num_records": T.LongType()}
    if leaves:
        counts = T.StructType([T.StructField(_name(leaf), T.LongType()) for leaf in leaves])
        fields |= {"min": bounds, "max": bounds, "null_count": counts}
        if numbers := _floating(leaves):
            fields["max_number"] = _bounds_type(numbers)
    shown = tuple(fields)

    def typed(*arrays: pa.Array) -> pa.Array:
        statistics = statistics_of(pa.table(dict(zip(inputs, arrays, strict=True))), projection)
        return pa.StructArray.from_arrays([statistics[name] for name in shown], list(shown))

    kind = T.StructType([T.StructField(name, kind) for name, kind in fields.items()])
    return ArrowColumn(_STATISTICS, kind, typed, tuple(map(raw_column, names)))


def _bounds_type(leaves: Sequence[SchemaLeaf]) -> T.StructType:
    return T.StructType([T.StructField(_name(leaf), spark_type(leaf.type)) for leaf in leaves])


def _partition_values(columns: DeltaColumns) -> ArrowColumn:
    """Typed partition values; no struct where one of them cannot be read, so nothing is concluded of it."""

    def typed(values: pa.Array) -> pa.Array:
        return partitions_of(pa.table({"partitionValues": values}), columns)

    fields = [
        T.StructField(name, spark_type(columns.schema.field(name).type)) for name in columns.partition_columns
    ]
    return ArrowColumn(_PARTITIONS, T.StructType(fields), typed, (raw_column("partitionValues"),))


def leaves_of(columns: DeltaColumns, names: Names) -> list[SchemaLeaf]:
    """Leaves of the named columns that are no partition columns and whose dotted name is theirs alone."""
    alike = Counter(_name(leaf).lower() for leaf in columns.leaves.values())
    return [
        leaf
        for leaf in columns.select_leaves(names)
        if leaf.logical[0] not in columns.partition_columns and alike[_name(leaf).lower()] == 1
    ]


def _name(leaf: SchemaLeaf) -> str:
    return ".".join(leaf.logical)


def raw_column(name: str) -> str:
    """The name of the column that holds a raw field of `add`."""
    return f"raw_{name}"


def _field_names(raw: DataFrame) -> list[str]:
    kind = raw.schema[ADD].dataType
    assert isinstance(kind, T.StructType)
    return list(kind.names)


def decoded_path(path: Column) -> Column:
    """Undo the percent-encoding once; a path that is not encoded stays as it is."""
    # A plus sign is itself in a path, while form encoding, which the function undoes, reads it as a space.
    # The function that returns null where this one fails exists since Spark 4.0.
    decoded = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    broken = F.contains(decoded, F.lit(_REPLACED))
    encoded = F.contains(path, F.lit("%")) & ~F.rlike(path, F.lit(_NO_ESCAPE))
    plain = F.when(encoded, F.when(broken, path).otherwise(decoded)).otherwise(path)
    return F.when(F.contains(plain, F.lit("./")), F.regexp_replace(plain, HERE.pattern, "$1")).otherwise(
        plain
    )


def key_path(path: Column) -> Column:
    """A decoded path as it is compared, see `delta_paths.key_path`."""
    return F.when(
        F.startswith(path, F.lit("file:")), F.regexp_replace(path, LOCAL_SCHEME.pattern, "/")
    ).otherwise(path)


def vector_id(vector: Column) -> Column:
    """Unique id of a deletion vector; null where there is none."""
    offset = F.coalesce(F.concat(F.lit("@"), vector["offset"].cast("string")), F.lit(""))
    return F.concat(vector["storageType"], vector["pathOrInlineDv"], offset)


def spark_type(kind: pa.DataType) -> T.DataType:
    """The Spark type of an Arrow type of a table."""
    document = json.loads(schema_to_json(pa.schema([pa.field("x", kind)])))
    return T.StructType.fromJson(document)["x"].dataType


def _nested(leaves: Sequence[tuple[Sequence[str], T.DataType]]) -> T.StructType:
    fields: dict[str, T.DataType] = {}
    for path, kind in leaves:
        if len(path) == 1:
            fields[path[0]] = kind
        elif path[0] not in fields:
            below = [(other[1:], inner) for other, inner in leaves if other[0] == path[0]]
            fields[path[0]] = _nested(below)
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


def _parsed_type(written: pa.StructType, columns: DeltaColumns) -> T.StructType:
    """The part of a `stats_parsed` type that is about columns of the table, to be read as it was written."""
    fields = [T.StructField("numRecords", T.LongType())]
    if written.get_field_index("tightBounds") >= 0:
        fields.append(T.StructField("tightBounds", T.BooleanType()))
    leaves = [leaf for leaf in columns.leaves.values() if leaf.logical[0] not in columns.partition_columns]
    for group in ("minValues", "maxValues", "nullCount"):
        stored = []
        for leaf in leaves:
            kind = _arrow_leaf(written, (group, *leaf.physical))
            if kind is not None and not pa.types.is_nested(kind):
                stored.append((leaf.physical, _stored_type(kind, leaf)))
        if stored:
            fields.append(T.StructField(group, _nested(stored)))
    return T.StructType(fields)


def _stored_type(written: pa.DataType, leaf: SchemaLeaf) -> T.DataType:
    """The type to read a typed statistic in: as it was written, instants as the table has them."""
    return spark_type(leaf.type if pa.types.is_timestamp(written) else written)


def _arrow_leaf(kind: pa.DataType, path: Sequence[str]) -> pa.DataType | None:
    for name in path:
        at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if at < 0:
            return None
        kind = kind.field(at).type
    return kind


def _vector(vector: Column) -> Column:
    fields = [vector[wire].alias(name) for wire, name in _VECTOR_NAMES.items()]
    return F.when(vector["storageType"].isNotNull(), F.struct(*fields))


def _spark_uri(store: Store, path: str) -> str:
    owner, inside = resolve(store, path)
    return owner.spark_uri(inside)


@dataclass(frozen=True, slots=True)
class DeltaAdds:
    """How executors lay adds of commits out: columns of the files() form, and raw fields of `add`."""

    names: DeltaColumns
    form: FileProjection
    """Columns of the files() form."""
    raw: frozenset[str]
    """Fields of `add` as the log has them."""

    @classmethod
    def whole(cls, names: DeltaColumns) -> DeltaAdds:
        """With every column of the form."""
        columns = frozenset(COLUMNS) - {"uri"}
        return cls(names, FileProjection(columns, tuple(leaves_of(names, None))), frozenset())

    @classmethod
    def needed(cls, names: DeltaColumns, columns: frozenset[str], statistics: Names) -> DeltaAdds:
        """With what a query shows or looks at.

        A query types what it shows by itself, but statistics and partition values are looked at here.
        """
        leaves = tuple(leaves_of(names, statistics))
        shown = FileProjection(columns - STATISTICS).sources(None)
        return cls(names, FileProjection((columns & _TYPED) | {"path"}, leaves), frozenset(shown))

    def key(self, action: AddAction | RemoveAction) -> tuple[str, str | None]:
        """Path and deletion vector."""
        return key_of(action)

    def columns(self, adds: Sequence[AddAction]) -> pa.StructArray:
        """The columns of the form and the raw fields; structs without fields are left out."""
        table = raw_table(adds, {*self.raw, *self.form.sources(None)})
        columns = form_columns(table, self.names, self.form)
        columns |= {raw_column(name): table.column(name).combine_chunks() for name in sorted(self.raw)}
        with_fields = {name: column for name, column in columns.items() if column.type != pa.struct([])}
        return in_micros(pa.RecordBatch.from_pydict(with_fields)).to_struct_array()
