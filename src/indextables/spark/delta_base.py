"""The adds of a Delta checkpoint as a DataFrame, read by Spark with an explicit schema.

Columns have the files() form: paths decoded, partition values and statistics
typed under logical names. Statistics come from `stats_parsed` where the
checkpoint has it, else from the JSON text; Spark computes only what a query
looks at. The raw fields stay beside them, for the rows that are collected.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.log.delta_checkpoint import AddRows
from indextables.log.delta_columns import DeltaColumns, Leaf
from indextables.model.fields import schema_to_json
from indextables.storage.store import Store, resolve

ADD = "add"
_DOCUMENT = "__stats"
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
_ADD_FIELDS = (
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
_ZONED = r"(Z|[+-]\d{2}:?\d{2})$"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Where the rows of a frame keep their statistics: typed (`stats_parsed`) or as text."""

    root: Column
    parsed: T.StructType | None

    def leaf(self, path: Sequence[str], kind: T.DataType) -> Column:
        """One statistic in a type; null where there is none."""
        if self.parsed is not None and not _has(self.parsed, path):
            return F.lit(None).cast(kind)
        found = self.root
        for name in path:
            found = found.getField(name)
        return found.cast(kind)


def checkpoint_frame(
    spark: Any, store: Store, pieces: Sequence[AddRows], columns: DeltaColumns, statistics: Names = None
) -> DataFrame:
    """Every add of these files, in the files() form, with its raw fields beside it.

    Minima, maxima and null counts are those of the named columns, of all when None.
    """
    kinds = {piece.path: piece.add for piece in pieces}
    parsed = _parsed_type(list(kinds.values()), columns)
    fields = [*_ADD_FIELDS, *([] if parsed is None else [T.StructField("stats_parsed", parsed)])]
    schema = T.StructType([T.StructField(ADD, T.StructType(fields))])
    reader = spark.read.schema(schema).options(
        ignoreMissingFiles="false", ignoreCorruptFiles="false", mergeSchema="false",
        recursiveFileLookup="true", datetimeRebaseMode="CORRECTED", int96RebaseMode="CORRECTED",
    )  # fmt: skip
    # Names of log files are plain, but the table's own directory may hold characters of a glob.
    raw = reader.option("__globPaths__", "false").parquet(*(_spark_uri(store, path) for path in kinds))
    return files_frame(raw.where(F.col("add.path").isNotNull()), columns, parsed, statistics)


def files_frame(
    raw: DataFrame, columns: DeltaColumns, parsed: T.StructType | None, statistics: Names = None
) -> DataFrame:
    """Lay a frame with a raw `add` column out in the files() form, its fields beside it."""
    leaves = _leaves(columns, statistics)
    # Columns of their own, not fields of a struct: what a query does not use is then not even read,
    # and a document is parsed once, for what the schema names in it.
    flat = [F.col(ADD)[name].alias(raw_column(name)) for name in _field_names(raw)]
    document = F.from_json(F.col(ADD)["stats"], text_schema(leaves), {"timeZone": "UTC"})
    source = raw.select(*flat) if parsed is not None else raw.select(*flat, document.alias(_DOCUMENT))
    known = Statistics(F.col(raw_column("stats_parsed") if parsed is not None else _DOCUMENT), parsed)
    add = {name: F.col(raw_column(name)) for name in _field_names(raw)}
    partitions = [
        typed_partition(add["partitionValues"].getItem(physical), columns.schema.field(name).type).alias(name)
        for name, physical in columns.physical_partitions().items()
    ]
    return source.select(
        decoded_path(add["path"]).alias("path"),
        vector_id(add["deletionVector"]).alias("dv"),
        add["size"].alias("size"),
        F.timestamp_millis(add["modificationTime"]).alias("modification_time"),
        known.leaf(("numRecords",), T.LongType()).alias("num_records"),
        _struct(partitions).alias("partition_values"),
        _struct([_bound(known, leaf, upper=False) for leaf in leaves]).alias("min"),
        _struct([_bound(known, leaf, upper=True) for leaf in leaves]).alias("max"),
        _struct([_null_count(known, leaf) for leaf in leaves]).alias("null_count"),
        add["stats"].alias("stats"),
        add["dataChange"].alias("data_change"),
        add["tags"].alias("tags"),
        _vector(add["deletionVector"]).alias("deletion_vector"),
        *add.values(),
    )


def raw_column(name: str) -> str:
    """Name of the column that holds a field of `add` as it was written."""
    return f"raw_{name}"


def _field_names(raw: DataFrame) -> list[str]:
    kind = raw.schema[ADD].dataType
    assert isinstance(kind, T.StructType)
    return list(kind.names)


def decoded_path(path: Column) -> Column:
    """Undo the percent-encoding once; a path that is not encoded stays as it is."""
    # A plus sign is itself in a path, while form encoding, which the function undoes, reads it as a space.
    decoded = F.try_url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    broken = decoded.isNull() | F.contains(decoded, F.lit(_REPLACED))
    return F.when(F.contains(path, F.lit("%")), F.when(broken, path).otherwise(decoded)).otherwise(path)


def vector_id(vector: Column) -> Column:
    """Unique id of a deletion vector; null where there is none."""
    offset = F.coalesce(F.concat(F.lit("@"), vector["offset"].cast("string")), F.lit(""))
    return F.concat(vector["storageType"], vector["pathOrInlineDv"], offset)


def typed_partition(text: Column, kind: pa.DataType) -> Column:
    """A partition value in the type of its column; the empty string is null."""
    present = F.when(text != F.lit(""), text)
    if pa.types.is_binary(kind):
        return present.cast("binary")
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        present = F.when(F.regexp_like(present, F.lit(_ZONED)), present).otherwise(
            F.concat(present, F.lit("Z"))
        )
    return present.try_cast(spark_type(kind))


def partitions_known(columns: DeltaColumns) -> Column | None:
    """Whether every partition value of a file could be read."""
    known = None
    for name, physical in columns.physical_partitions().items():
        text = F.col(raw_column("partitionValues")).getItem(physical)
        lost = F.coalesce(text != F.lit(""), F.lit(False)) & F.col("partition_values")[name].isNull()
        known = ~lost if known is None else known & ~lost
    return known


def spark_type(kind: pa.DataType) -> T.DataType:
    """The Spark type of an Arrow type of a table."""
    document = json.loads(schema_to_json(pa.schema([pa.field("x", kind)])))
    return T.StructType.fromJson(document)["x"].dataType


def text_schema(leaves: Sequence[Leaf]) -> T.StructType:
    """Shape of the JSON statistics of some columns, by physical names."""
    bounds = [(leaf.physical, spark_type(leaf.type)) for leaf in leaves if leaf.comparable]
    counts = [(leaf.physical, T.LongType()) for leaf in leaves]
    return T.StructType(
        [
            T.StructField("numRecords", T.LongType()),
            T.StructField("tightBounds", T.BooleanType()),
            T.StructField("minValues", _nested(bounds)),
            T.StructField("maxValues", _nested(bounds)),
            T.StructField("nullCount", _nested(counts)),
        ]
    )


def _leaves(columns: DeltaColumns, names: Names) -> list[Leaf]:
    return [leaf for leaf in columns.wanted(names) if leaf.logical[0] not in columns.partition_columns]


def _nested(leaves: Sequence[tuple[Sequence[str], T.DataType]]) -> T.StructType:
    fields: dict[str, T.DataType] = {}
    for path, kind in leaves:
        if len(path) == 1:
            fields[path[0]] = kind
        elif path[0] not in fields:
            below = [(other[1:], inner) for other, inner in leaves if other[0] == path[0]]
            fields[path[0]] = _nested(below)
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


def _parsed_type(adds: Sequence[pa.StructType], columns: DeltaColumns) -> T.StructType | None:
    """Type of `stats_parsed` where every file has it, with the leaves of the table; None without one."""
    kinds = []
    for add in adds:
        at = add.get_field_index("stats_parsed")
        if at < 0:
            return None
        kinds.append(add.field(at).type)
    if not kinds:
        return None
    fields = [T.StructField("numRecords", T.LongType())]
    if all(kind.get_field_index("tightBounds") >= 0 for kind in kinds):
        fields.append(T.StructField("tightBounds", T.BooleanType()))
    leaves = [leaf for leaf in columns.leaves.values() if leaf.logical[0] not in columns.partition_columns]
    for group in ("minValues", "maxValues", "nullCount"):
        found = []
        for leaf in leaves:
            written = {_arrow_leaf(kind, (group, *leaf.physical)) for kind in kinds} - {None}
            if len(written) == 1:
                found.append((leaf.physical, _stored_type(written.pop(), leaf)))
        if found:
            fields.append(T.StructField(group, _nested(found)))
    return T.StructType(fields)


def _stored_type(written: pa.DataType, leaf: Leaf) -> T.DataType:
    """The type to read a typed statistic in: as it was written, instants as the table has them."""
    return spark_type(leaf.type if pa.types.is_timestamp(written) else written)


def _arrow_leaf(kind: pa.DataType, path: Sequence[str]) -> pa.DataType | None:
    for name in path:
        at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if at < 0:
            return None
        kind = kind.field(at).type
    return kind


def _has(kind: T.DataType, path: Sequence[str]) -> bool:
    for name in path:
        if not isinstance(kind, T.StructType) or name not in kind.names:
            return False
        kind = kind[name].dataType
    return True


def _bound(known: Statistics, leaf: Leaf, *, upper: bool) -> Column:
    kind = spark_type(leaf.type)
    if not leaf.comparable:
        return F.lit(None).cast(kind).alias(".".join(leaf.logical))
    found = known.leaf(("maxValues" if upper else "minValues", *leaf.physical), kind)
    if upper and pa.types.is_timestamp(leaf.type):
        # Delta cuts timestamps in statistics to milliseconds; the real maximum may lie above.
        found = found + F.expr("INTERVAL '0.000999' SECOND")
    return found.alias(".".join(leaf.logical))


def _null_count(known: Statistics, leaf: Leaf) -> Column:
    """With wide bounds a null count says something only at its two ends."""
    nulls = known.leaf(("nullCount", *leaf.physical), T.LongType())
    tight = F.coalesce(known.leaf(("tightBounds",), T.BooleanType()), F.lit(True))
    end = (nulls == F.lit(0)) | (nulls == known.leaf(("numRecords",), T.LongType()))
    return F.when(tight | end, nulls).alias(".".join(leaf.logical))


def _struct(children: Sequence[Column]) -> Column:
    return F.struct(*children) if children else F.lit(None).cast("struct<>")


def _vector(vector: Column) -> Column:
    fields = [vector[wire].alias(name) for wire, name in _VECTOR_NAMES.items()]
    return F.when(vector["storageType"].isNotNull(), F.struct(*fields))


def _spark_uri(store: Store, path: str) -> str:
    owner, inside = resolve(store, path)
    return owner.spark_uri(inside)
