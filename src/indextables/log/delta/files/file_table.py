"""Turns `add` rows of a Delta log into the `files()` table: paths decoded, values typed, logical names.

Rows come from Parquet checkpoints or from commits. Both are first arranged alike, one
column per field of `add`, and then typed by the same code. Only what a query asks for is
read and typed. Null means unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import CorruptLogError
from indextables.lazy import pc
from indextables.log.adds.file_table import file_uris
from indextables.log.delta.columns import DeltaColumns, SchemaLeaf
from indextables.log.delta.commits import DeltaAdd, counts_nan
from indextables.log.delta.files.bounds import lower_bound, number_bound, upper_bound
from indextables.log.delta.files.text import (
    json_values,
    map_values,
    record_counts,
    text_column,
    typed,
    typed_partition,
)
from indextables.model.actions import AddAction
from indextables.model.arrays import from_values, integers, scalar, whole
from indextables.storage.store import Store

COLUMNS = (
    "path", "uri", "dv", "size", "modification_time", "num_records", "partition_values",
    "min", "max", "max_number", "null_count", "stats", "data_change", "tags", "deletion_vector",
)  # fmt: skip
# Typing every statistic of every file costs more than finding the files, so it is done on request.
DEFAULT_COLUMNS = (
    "path", "dv", "size", "modification_time", "num_records", "partition_values", "stats", "deletion_vector",
)  # fmt: skip

# Not part of the log: whether the commit of an add was written by an engine whose maxima cover NaN.
COUNTS_NAN = "countsNan"
_STRINGS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        pa.field("storageType", pa.string()),
        pa.field("pathOrInlineDv", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("sizeInBytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)
_VECTOR_NAMES = ("storage_type", "path_or_inline", "offset", "size_bytes", "cardinality")
DELETION_VECTOR = pa.struct([pa.field(name, VECTOR.field(at).type) for at, name in enumerate(_VECTOR_NAMES)])
RAW = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("partitionValues", _STRINGS),
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("dataChange", pa.bool_()),
        pa.field("stats", pa.string()),
        pa.field("tags", _STRINGS),
        pa.field("deletionVector", VECTOR),
        pa.field(COUNTS_NAN, pa.bool_()),
    ]
)
_SOURCES = {
    "dv": "deletionVector",
    "deletion_vector": "deletionVector",
    "size": "size",
    "modification_time": "modificationTime",
    "partition_values": "partitionValues",
    "stats": "stats",
    "data_change": "dataChange",
    "tags": "tags",
}
BOUNDS = ("min", "max", "max_number", "null_count")
"""The structs with a field per column; `max_number` has one only for floating-point columns."""
STATISTICS = frozenset({"num_records", *BOUNDS})
# Only Delta on Spark writes a dot before the number in a file name; other writers use a dash as well.
_NAMED_BY_SPARK = r"\.c\d{3}\.[^/]*$"


@dataclass(frozen=True, slots=True)
class FileProjection:
    """The columns of `files()` that a query reads."""

    columns: frozenset[str]
    leaves: tuple[SchemaLeaf, ...] = ()
    """The table columns whose minimum, maximum and null count are read."""

    @classmethod
    def of(
        cls, columns: Iterable[str], schema: DeltaColumns, statistics: Iterable[str] | None
    ) -> FileProjection:
        """A projection on some columns of `files()`, with bounds of some table columns (None: all)."""
        names = frozenset(columns) | {"path"}
        bounded = names & set(BOUNDS)
        return cls(names, tuple(schema.select_leaves(statistics)) if bounded else ())

    def sources(self, add: pa.StructType | None) -> set[str]:
        """The dotted paths below `add` to read; `add` is its type in a checkpoint, None for commits."""
        names = {_SOURCES[name] for name in self.columns if name in _SOURCES}
        if self.columns & STATISTICS:
            names |= {"stats"} if add is None or not _has_parsed(add) else set(self._parsed())
            if add is not None and _has_parsed(add) and unknown_to(_field(add, "stats_parsed"), self.leaves):
                names.add("stats")
        if add is None and any(pa.types.is_floating(leaf.type) for leaf in self.leaves):
            names.add(COUNTS_NAN)
        return names

    def _parsed(self) -> list[str]:
        paths = ["stats_parsed.numRecords"]
        for leaf in self.leaves:
            below = ".".join(leaf.physical)
            paths += [f"stats_parsed.{name}.{below}" for name in ("minValues", "maxValues", "nullCount")]
        return [*paths, "stats_parsed.tightBounds"] if self.leaves else paths


def files_form(raw: pa.Table, columns: DeltaColumns, projection: FileProjection, store: Store) -> pa.Table:
    """The `files()` table for some `add` rows, in the order given; partition values and statistics typed."""
    arrays = form_columns(raw, columns, projection)
    if "uri" in projection.columns:
        arrays["uri"] = file_uris(store, arrays["path"])
    return pa.table({name: arrays[name] for name in COLUMNS if name in arrays})


def form_columns(raw: pa.Table, columns: DeltaColumns, projection: FileProjection) -> dict[str, Any]:
    """The columns of the `files()` table by name, but for `uri`, which only the table's own address makes."""
    arrays: dict[str, Any] = {"path": whole(raw.column("path")), **statistics_of(raw, projection)}
    for name in projection.columns - arrays.keys() - {"uri"}:
        arrays[name] = partitions_of(raw, columns) if name == "partition_values" else _plain(raw, name)
    return {name: arrays[name] for name in COLUMNS if name in arrays and name in projection.columns}


def raw_table(adds: Sequence[AddAction], names: AbstractSet[str] | None = None) -> pa.Table:
    """Arrange adds of commits as `read_adds` arranges those of a checkpoint: all fields, or only `names`."""
    fields = [field for field in RAW if names is None or field.name == "path" or field.name in names]
    # An action copies all fields of its line when one is read, so fields are read from the decoded lines.
    from_lines = all(issubclass(kind, DeltaAdd) for kind in set(map(type, adds)))
    value_of = _FIELDS_OF_LINES if from_lines else _FIELDS
    arrays = [_column_of(list(map(value_of[field.name], adds)), field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of one field as an array."""
    if not pa.types.is_map(kind):
        return from_values(values, kind)
    if None in values:
        return from_values([None if pairs is None else list(pairs.items()) for pairs in values], kind)
    ends = integers([0, *accumulate(map(len, values))]).cast(pa.int32())
    keys, items = list(chain.from_iterable(values)), [item for pairs in values for item in pairs.values()]
    return pa.MapArray.from_arrays(ends, from_values(keys, pa.string()), from_values(items, pa.string()))


def vector_ids(vectors: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Unique ids of an array of `deletionVector` objects, null where there is none."""
    array = whole(vectors)
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.string())
    kind, place, offset = (_child(array, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    at = pc.fill_null(pc.binary_join_element_wise("@", offset.cast(pa.string()), ""), "")
    return pc.binary_join_element_wise(kind, place, at, "")


def _stats_text(add: AddAction) -> str | None:
    if add.stats is not None:
        return add.stats
    parsed = add.extra.get("stats_parsed")
    return None if parsed is None else msgspec.json.encode(parsed, enc_hook=str).decode()


_FIELDS: Mapping[str, Callable[[AddAction], Any]] = {
    "path": lambda add: add.path,
    "partitionValues": attrgetter("partition_values"),
    "size": lambda add: add.size,
    "modificationTime": lambda add: add.modification_time,
    "dataChange": lambda add: add.data_change,
    "stats": _stats_text,
    "tags": attrgetter("tags"),
    "deletionVector": attrgetter("deletion_vector"),
    COUNTS_NAN: counts_nan,
}


_FIELDS_OF_LINES: Mapping[str, Callable[[Any], Any]] = {
    "path": attrgetter("path"),
    "partitionValues": attrgetter("source.partitionValues"),
    "size": attrgetter("source.size"),
    "modificationTime": attrgetter("source.modificationTime"),
    "dataChange": attrgetter("source.dataChange"),
    "stats": attrgetter("source.stats"),
    "tags": attrgetter("source.tags"),
    "deletionVector": lambda add: vector.wire() if (vector := add.source.deletionVector) else None,
    COUNTS_NAN: attrgetter("counts_nan"),
}


def _plain(raw: pa.Table, name: str) -> Any:
    if name in {"dv", "deletion_vector"}:
        vectors = _column(raw, "deletionVector", VECTOR)
        return vector_ids(vectors) if name == "dv" else _vectors(vectors)
    if name == "modification_time":
        return _column(raw, "modificationTime", pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    source = _SOURCES[name]
    return _column(raw, source, RAW.field(source).type)


def _vectors(vectors: pa.Array) -> pa.Array:
    children = [
        _child(vectors, field.name).cast(field.type)
        for field in (VECTOR.field(at) for at in range(VECTOR.num_fields))
    ]
    absent = pc.is_null(children[0])
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=absent)


def partitions_of(raw: pa.Table, columns: DeltaColumns) -> pa.Array:
    """Typed partition values; a row with an unreadable one gets a null struct and is never pruned by it."""
    if not columns.partition_columns:
        return pa.array([{}] * min(raw.num_rows, 1), pa.struct([])).take(pa.repeat(0, raw.num_rows))
    values = _column(raw, "partitionValues", _STRINGS)
    children, fields = [], []
    unreadable = pa.repeat(scalar(False, pa.bool_()), raw.num_rows)
    for name, physical in columns.physical_partitions().items():
        field = pa.field(name, columns.schema.field(name).type)
        text = map_values(values, physical)
        child = typed_partition(text, field.type)
        if child.null_count != text.null_count:
            lost = pc.and_(pc.is_null(child), pc.fill_null(pc.not_equal(text, ""), fill_value=False))
            unreadable = pc.or_(unreadable, lost)
        children.append(child)
        fields.append(field)
    return pa.StructArray.from_arrays(children, fields=fields, mask=unreadable)


def require_partition_values(files: pa.Table, uri: str) -> None:
    """Raise if a file to be read has a partition value that is not of its column's type.

    Such a file is never pruned, since nothing is known of it, and its rows cannot be returned correctly.
    """
    values = whole(files.column("partition_values"))
    if not values.null_count:
        return
    path = files.column("path").filter(values.is_null())[0].as_py()
    raise CorruptLogError(
        f"the log of {uri} gives {path} a partition value that is not of its column's type, so its rows "
        "cannot be read; have the writer correct the entry, or exclude the file by other columns",
        path=path, uri=uri,
    )  # fmt: skip


def statistics_of(raw: pa.Table, projection: FileProjection) -> dict[str, pa.Array]:
    """num_records, min, max and null_count, as far as the projection has them."""
    if not projection.columns & STATISTICS:
        return {}
    if "stats_parsed" not in raw.column_names:
        statistics = _from_text(raw, projection.leaves).bounding(projection.leaves, raw, is_text=True)
    else:
        statistics = _from_struct(whole(raw.column("stats_parsed")), projection.leaves)
        statistics = statistics.bounding(projection.leaves, raw, is_text=False)
        unknown = unknown_to(raw.schema.field("stats_parsed").type, projection.leaves)
        if "stats" in raw.column_names and (unknown or statistics.num_records.null_count):
            text = _from_text(raw, projection.leaves).bounding(projection.leaves, raw, is_text=True)
            statistics = statistics.or_else(text, [leaf in unknown for leaf in projection.leaves])
    columns = {"num_records": statistics.num_records}
    if projection.leaves:
        names = [".".join(leaf.logical) for leaf in projection.leaves]
        columns["min"] = pa.StructArray.from_arrays(statistics.minima, names)
        columns["max"] = pa.StructArray.from_arrays(statistics.maxima, names)
        columns["null_count"] = pa.StructArray.from_arrays(statistics.null_counts, names)
    numbers = {
        ".".join(leaf.logical): bounds
        for leaf, bounds in zip(projection.leaves, statistics.numbers, strict=True)
        if pa.types.is_floating(leaf.type)
    }
    if numbers:
        columns["max_number"] = pa.StructArray.from_arrays(list(numbers.values()), list(numbers))
    if projection.columns & set(BOUNDS):
        empty = pa.StructArray.from_buffers(pa.struct([]), raw.num_rows, [None])
        columns = {**dict.fromkeys(BOUNDS, empty), **columns}
    return columns


@dataclass(frozen=True, slots=True)
class _Statistics:
    num_records: pa.Array
    minima: list[pa.Array]
    maxima: list[pa.Array]
    null_counts: list[pa.Array]
    numbers: list[pa.Array]
    """Upper bounds of the numbers of a column; the maxima for columns that cannot hold NaN."""

    def bounding(self, leaves: Sequence[SchemaLeaf], raw: pa.Table, *, is_text: bool) -> _Statistics:
        """The same statistics, with minima and maxima made bounds that no value of the file exceeds."""
        floats = any(pa.types.is_floating(leaf.type) for leaf in leaves)
        sure = _maxima_count_nan(raw) if floats else None
        pairs = zip(self.minima, self.maxima, leaves, strict=True)
        bounds = [
            (lower_bound(least, leaf, is_text=is_text), upper_bound(greatest, leaf, sure, is_text=is_text))
            for least, greatest, leaf in pairs
        ]
        minima, maxima = [low for low, _ in bounds], [high for _, high in bounds]
        numbers = [
            number_bound(written, leaf) if pa.types.is_floating(leaf.type) else high
            for written, high, leaf in zip(self.maxima, maxima, leaves, strict=True)
        ]
        return _Statistics(self.num_records, minima, maxima, self.null_counts, numbers)

    def or_else(self, other: _Statistics, absent: Sequence[bool]) -> _Statistics:
        """These statistics, with missing rows and the `absent` columns filled in from `other`."""
        has_statistics = pc.is_valid(self.num_records)

        def either(mine: list[pa.Array], theirs: list[pa.Array]) -> list[pa.Array]:
            pairs = zip(mine, theirs, absent, strict=True)
            return [
                two if is_absent else pc.if_else(has_statistics, one, two) for one, two, is_absent in pairs
            ]

        counts = pc.coalesce(self.num_records, other.num_records)
        bounds = either(self.minima, other.minima), either(self.maxima, other.maxima)
        nulls, numbers = either(self.null_counts, other.null_counts), either(self.numbers, other.numbers)
        return _Statistics(counts, *bounds, nulls, numbers)


def unknown_to(parsed: pa.StructType, leaves: Iterable[SchemaLeaf]) -> set[SchemaLeaf]:
    """Columns that typed statistics lack, though the JSON statistics may have them."""
    groups = ("minValues", "maxValues", "nullCount")
    return {
        leaf for leaf in leaves if all(_leaf_type(parsed, (name, *leaf.physical)) is None for name in groups)
    }


def _leaf_type(kind: pa.DataType, path: Sequence[str]) -> pa.DataType | None:
    for name in path:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = _field(kind, name)
    return kind


def _field(kind: pa.StructType, name: str) -> pa.DataType:
    return kind.field(kind.get_field_index(name)).type


def statistics_paths(leaves: Sequence[SchemaLeaf], *, nulls: bool = True) -> list[tuple[str, ...]]:
    """The paths in a statistics document that are needed for some columns, with or without null counts."""
    paths: list[tuple[str, ...]] = [("numRecords",), *([("tightBounds",)] if nulls else [])]
    for leaf in leaves:
        paths += [("minValues", *leaf.physical), ("maxValues", *leaf.physical)]
        paths += [("nullCount", *leaf.physical)] if nulls else []
    return paths


def decimal_digits(leaves: Sequence[SchemaLeaf]) -> int:
    """The largest precision among decimal columns; 0 without any."""
    return max((leaf.type.precision for leaf in leaves if pa.types.is_decimal(leaf.type)), default=0)


def _from_text(raw: pa.Table, leaves: Sequence[SchemaLeaf]) -> _Statistics:
    paths = statistics_paths(leaves)
    kinds = [
        pa.int64(),
        pa.bool_(),
        *(kind for leaf in leaves for kind in (leaf.type, leaf.type, pa.int64())),
    ]
    if text_column(paths[0]) in raw.column_names:
        texts = [_column(raw, text_column(path), pa.string()) for path in paths]
        values = [typed(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    elif not leaves:
        return _Statistics(record_counts(_column(raw, "stats", pa.string())), [], [], [], [])
    else:
        stats = _column(raw, "stats", pa.string())
        values = json_values(stats, list(zip(paths, kinds, strict=True)))
    count, tight = values[:2]
    minima, maxima = values[2::3], values[3::3]
    nulls = [_count(values[4 + 3 * at], count, tight) for at in range(len(leaves))]
    return _Statistics(count, minima, maxima, nulls, maxima)


def _from_struct(parsed: pa.StructArray, leaves: Sequence[SchemaLeaf]) -> _Statistics:
    count = _typed_leaf(parsed, ("numRecords",), pa.int64())
    tight = _typed_leaf(parsed, ("tightBounds",), pa.bool_())
    bounds = [
        [_typed_leaf(parsed, (name, *leaf.physical), leaf.type) for leaf in leaves]
        for name in ("minValues", "maxValues")
    ]
    nulls = [
        _count(_typed_leaf(parsed, ("nullCount", *leaf.physical), pa.int64()), count, tight)
        for leaf in leaves
    ]
    return _Statistics(count, bounds[0], bounds[1], nulls, bounds[1])


def _maxima_count_nan(raw: pa.Table) -> pa.Array:
    """For each file, whether its maximum covers NaN, which sorts above every number."""
    by_name = pc.match_substring_regex(whole(raw.column("path")), _NAMED_BY_SPARK)
    return pc.or_(by_name, pc.fill_null(_column(raw, COUNTS_NAN, pa.bool_()), fill_value=False))


def _count(nulls: pa.Array, count: pa.Array, tight: pa.Array) -> pa.Array:
    """Null counts; with wide bounds a count is used only if it is zero or the number of records."""
    if tight.null_count == len(tight):
        return nulls
    end = pc.or_(pc.equal(nulls, scalar(0, pa.int64())), pc.equal(nulls, count))
    is_tight = pc.fill_null(tight, scalar(True, pa.bool_()))
    return pc.if_else(pc.or_(is_tight, end), nulls, scalar(None, pa.int64()))


def _typed_leaf(parsed: pa.StructArray, path: Sequence[str], kind: pa.DataType) -> pa.Array:
    array: pa.Array = parsed
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return pa.nulls(len(parsed), kind)
        array = _child(array, name)
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(parsed), kind)


def _child(array: pa.StructArray, name: str) -> pa.Array:
    return pc.struct_field(array, array.type.get_field_index(name))


def _column(raw: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in raw.column_names:
        return pa.nulls(raw.num_rows, kind)
    column = whole(raw.column(name))
    return column if pa.types.is_nested(column.type) else column.cast(kind)


def _has_parsed(add: pa.StructType) -> bool:
    return int(add.get_field_index("stats_parsed")) >= 0
