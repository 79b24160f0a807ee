"""The files() form as Spark has it: its schema, and times in microseconds."""

from __future__ import annotations

import json
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - its usual name

from indextables.model.fields import schema_to_json

_MICROS = pa.timestamp("us", tz="UTC")
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def spark_schema(form: pa.Schema) -> T.StructType:
    """The Spark schema of a files() form: times are microseconds, and structs without fields are left out.

    No column of Spark's can be made of them, as of the partition values of a table without partitions.
    """
    fields = []
    for field in form:
        kind = _MICROS if pa.types.is_timestamp(field.type) else field.type
        if pa.types.is_struct(kind) and kind.num_fields == 0:
            continue
        document = json.loads(schema_to_json(pa.schema([pa.field(field.name, kind)])))
        fields.append(T.StructType.fromJson(document)[field.name])
    return T.StructType(fields)


def in_micros(rows: Rows) -> Rows:
    """The same rows with times in microseconds, as Spark has them."""
    fields = [
        pa.field(field.name, _MICROS) if pa.types.is_timestamp(field.type) else field for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))
