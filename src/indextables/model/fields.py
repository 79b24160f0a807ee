"""The columns of a table: its schema as Spark writes it, as Arrow holds it, and data cast to it.

`schema_from_json` and `schema_to_json` are inverse to each other; `normalise_schema`
accepts whatever a user has at hand; `cast_table` brings a batch to the table's
types before anything is written. The codecs of single values (`encode_partition`,
`encode_stat` and their inverses) and the directory form of partition values are
offered from here as well, since a field is where one looks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from indextables.errors import ConstraintError, SchemaError
from indextables.lazy import pc
from indextables.model.casting import cast_column
from indextables.model.names import find_name, require_name
from indextables.model.partitions import check_partition_columns, parse_directory, partition_directory
from indextables.model.types import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    field_metadata,
    field_to_json,
    fields_from_json,
    is_variant,
    refuse_twins,
    spark_field,
)
from indextables.model.values import (
    decode_partition,
    decode_partition_array,
    decode_stat,
    decode_stat_array,
    encode_partition,
    encode_stat,
)

__all__ = [
    "cast_table",
    "check_partition_columns",
    "decode_partition",
    "decode_partition_array",
    "decode_stat",
    "decode_stat_array",
    "encode_partition",
    "encode_stat",
    "find_field",
    "leaf_fields",
    "normalise_schema",
    "parse_directory",
    "partition_directory",
    "schema_from_json",
    "schema_to_json",
    "string_order",
]

_MOST_LEVELS = 96
"""Parquet readers refuse schemas of more than a hundred levels; the file itself takes some of them."""


def schema_from_json(text: str | bytes) -> pa.Schema:
    """Read a Spark StructType document into an Arrow schema."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise SchemaError(f"the schema is not JSON: {bad}") from bad
    if not isinstance(document, dict) or document.get("type") != "struct":
        raise SchemaError('the schema is not a Spark struct: expected {"type": "struct", "fields": [...]}')
    return pa.schema(fields_from_json(document.get("fields")))


def schema_to_json(schema: Any) -> str:
    """Write a schema (Arrow, Spark StructType or JSON text) as a Spark StructType document."""
    fields = [field_to_json(field) for field in normalise_schema(schema)]
    return msgspec.json.encode({"type": "struct", "fields": fields}).decode()


def normalise_schema(schema: Any) -> pa.Schema:
    """Return the Arrow form of a table schema given as pyarrow.Schema, Spark StructType or JSON text.

    Every type becomes the one Arrow type of its Spark type; SchemaError names
    the first column that Spark could not store.
    """
    document = getattr(schema, "json", None)
    if isinstance(schema, (str, bytes)):
        columns = schema_from_json(schema)
    elif isinstance(schema, pa.Schema):
        refuse_twins(schema.names)
        columns = pa.schema([spark_field(field) for field in schema])
    elif callable(document):
        columns = schema_from_json(document())
    else:
        raise SchemaError(
            f"a schema is a pyarrow.Schema, a Spark StructType or its JSON text, not {type(schema).__name__}"
        )
    for field in columns:
        if _parquet_levels(field.type) > _MOST_LEVELS:
            raise SchemaError(
                f"column {field.name!r} is nested too deeply for Parquet readers, which stop at 100 levels; "
                "flatten it, or store its inner part as JSON text",
                column=field.name,
            )
    return columns


def _parquet_levels(kind: pa.DataType) -> int:
    """Return how deep a type lies in a Parquet schema, where a list or map takes two levels."""
    if not pa.types.is_nested(kind):
        return 1
    inner = max((_parquet_levels(kind.field(at).type) for at in range(kind.num_fields)), default=0)
    return inner + (1 if pa.types.is_struct(kind) else 2)


def find_field(fields: Any, name: str) -> pa.Field | None:
    """Return the field of a schema or struct type by its name, found as `find_name` does."""
    spelling = find_name(fields.names, name)
    return None if spelling is None else fields.field(spelling)


def leaf_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the leaves of the schema, named by their dotted path.

    Struct fields are leaves by themselves; arrays, maps and variants are one leaf each. If two leaves would
    share a dotted name (a column `a.b` and a struct `a` with a field `b`), neither is returned, so that a
    dotted name always means one leaf.
    """
    leaves = list(_leaves(schema, ""))
    times = Counter(leaf.name.lower() for leaf in leaves)
    return [leaf for leaf in leaves if times[leaf.name.lower()] == 1]


def _leaves(fields: Any, prefix: str) -> Iterator[pa.Field]:
    for field in fields:
        if pa.types.is_struct(field.type) and not is_variant(field.type):
            yield from _leaves(field.type, f"{prefix}{field.name}.")
        else:
            yield field.with_name(prefix + field.name)


def string_order(field: pa.Field) -> str:
    """Say how Spark compares a string column: `binary`, `char(n)` (padded) or `collated`."""
    metadata = field_metadata(field)
    if COLLATIONS_KEY in metadata and not _is_binary_collation(metadata[COLLATIONS_KEY]):
        return "collated"
    sized = str(metadata.get(CHAR_VARCHAR_KEY, ""))
    return sized.replace("character", "char") if sized.startswith("char") else "binary"


def _is_binary_collation(collations: Any) -> bool:
    names = collations.values() if isinstance(collations, dict) else [collations]
    return all(str(name).upper().rsplit(".", 1)[-1] == "UTF8_BINARY" for name in names)


def cast_table(batch: Any, schema: pa.Schema, *, timestamps: str = "error") -> Any:
    """Return the batch or table with exactly the columns and Arrow types of `schema`.

    Columns are matched by name, regardless of case. A column the batch lacks is
    filled with nulls where the schema allows them; a column the schema lacks is
    an error, as is a value the table's type cannot hold. `timestamps="truncate"`
    lets nanoseconds be cut to microseconds.
    """
    positions = _positions(batch.schema.names, schema)
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            column = _absent(field, batch)
        elif not field.nullable and batch.column(at).null_count:
            raise missing_value(field, batch, batch.column(at))
        else:
            column = cast_column(batch.column(at), field, timestamps=timestamps)
        columns.append(column)
    build = pa.RecordBatch if isinstance(batch, pa.RecordBatch) else pa.Table
    return build.from_arrays(columns, schema=schema)


def missing_value(field: pa.Field, batch: Any, column: Any) -> ConstraintError:
    """The error for nulls of a column that is NOT NULL, with the first row of a batch that has one."""
    at = pc.index(pc.is_null(column), True).as_py()
    row = batch.slice(at, 1).to_pylist()[0]
    return ConstraintError(
        f"column {field.name!r} is NOT NULL, and the data has {column.null_count} nulls, for example in the "
        f"row {row}. Nothing was committed.",
        constraint="NOT NULL", column=field.name, row=row,
    )  # fmt: skip


def _positions(names: list[str], schema: pa.Schema) -> dict[str, int]:
    refuse_twins(names)
    return {require_name(schema.names, name): position for position, name in enumerate(names)}


def _absent(field: pa.Field, batch: Any) -> Any:
    if not field.nullable and batch.num_rows:
        raise SchemaError(
            f"column {field.name!r} is NOT NULL, and the data has no such column", column=field.name
        )
    nulls = pa.nulls(batch.num_rows, field.type)
    return nulls if isinstance(batch, pa.RecordBatch) else pa.chunked_array([nulls], type=field.type)


def struct_leaf(column: Any, steps: tuple[str, ...]) -> Any:
    """Return the leaf of a struct column by its exact field names; null where any parent is null."""
    for step in steps:
        column = pc.struct_field(column, column.type.get_field_index(step))
    return column
