"""What differs between the versions of Spark that IndexTables runs on.

No other module asks which version runs, or imports a class of PySpark that has moved. What an older
version cannot do is refused here, by name.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from indextables.errors import TableError
from indextables.lazy import pd
from indextables.model.arrays import integers
from indextables.model.types import is_variant

Line = tuple[int, int]
"""The first two numbers of a version: what our Java classes are compiled for."""

OLDEST: Line = (3, 5)

_converters: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def line_of(version: str) -> Line:
    """The line of a version: (3, 5) of "3.5.9", and of "3.5.2-amzn-1"."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is not a version of Spark")
    return int(match[1]), int(match[2])


@cache
def installed() -> Line:
    """The line of the PySpark that is installed."""
    from pyspark import __version__

    return line_of(str(__version__))


def check_version(version: str) -> None:
    """Raise an error for a session of a Spark that is too old."""
    if line_of(version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise TableError(
            f"IndexTables needs Spark {oldest} or later and this session runs {version}: before {oldest} "
            "Spark has no UPDATE and MERGE INTO for the tables of a data source. "
            f"Upgrade with: pip install 'pyspark>={oldest}'",
            version=version,
        )


def check_machine(version: str, java: str, scala: str) -> None:
    """Raise an error for a session whose Java or Scala our classes for its Spark were not compiled for."""
    oldest = java_needed(line_of(version))
    release = re.match(r"(?:1\.)?(\d+)", java)
    if release is not None and int(release[1]) < oldest:
        raise TableError(
            f"IndexTables needs Java {oldest} or later with Spark {version}, and this session runs Java "
            f"{java}. Start its driver with a newer one.",
            java=java,
        )
    if line_of(version) < (4, 0) and not scala.startswith("2.12."):
        raise TableError(
            f"IndexTables needs a Spark {version} that was built with Scala 2.12, and this one was built "
            f"with Scala {scala}. Choose an image with Scala 2.12, or Spark 4.0 or later.",
            scala=scala,
        )


def check_retyped(column: Sequence[str]) -> None:
    """Refuse to change the type of a column where Spark could not read the rows that are there."""
    if installed() < (4, 0):
        raise TableError(
            f"the type of column {'.'.join(column)} cannot be changed with Spark 3.5: Spark 3.5 does not "
            "read int as bigint or float as double. Change it with Spark 4.0 or later.",
            column=".".join(column),
        )


def check_sql_functions() -> None:
    """Refuse the functions that are made of SQL where Spark has no such functions."""
    if installed() < (4, 0):
        raise TableError(
            "indextables_histogram, indextables_date_histogram and indextables_range are functions written "
            "in SQL, which Spark has since 4.0. With Spark 3.5 use date_trunc or floor in the statement, or "
            "Table.histogram in Python.",
        )


def java_needed(line: Line) -> int:
    """The oldest Java that a line of Spark runs our classes on."""
    return 17 if line >= (4, 0) else 11


# ---- Python classes, and the package of their JVM counterparts ----


def frame_class() -> type:
    """The DataFrame of a session that has a JVM."""
    if installed() >= (4, 0):
        from pyspark.sql.classic.dataframe import DataFrame
    else:
        from pyspark.sql.dataframe import DataFrame
    return DataFrame  # type: ignore[no-any-return]


def classic(jvm: Any) -> Any:
    """The JVM package of the sessions and Datasets that are not Spark Connect's."""
    sql = jvm.org.apache.spark.sql
    return sql.classic if installed() >= (4, 0) else sql


# ---- Scala's collections ----


def converters(spark: Any) -> Any:
    """The JVM's `mapAsJavaMap` and `seqAsJavaList`, under the one name that Scala 2.12 and 2.13 share."""
    context = spark.sparkContext
    # To find a class of the JVM takes a call per part of its name, and every statement gets here.
    converters = _converters.get(context._gateway)
    if converters is None:
        converters = _converters[context._gateway] = context._jvm.scala.collection.JavaConverters
    return converters


# ---- the private state of readers and writers ----


def builder_state(builder: Any, name: str) -> Any:
    """What a reader or writer of the JVM has in a private field."""
    return builder_field(builder, name).get(builder)


def builder_field(builder: Any, name: str) -> Any:
    """A private field of a reader or writer of the JVM."""
    kind = builder.getClass()
    while kind is not None:
        if name in [item.getName() for item in kind.getDeclaredFields()]:
            field = kind.getDeclaredField(name)
            field.setAccessible(True)
            return field
        kind = kind.getSuperclass()
    raise AttributeError(f"{builder} has no {name}: IndexTables does not know this version of Spark")


def writer_mode(writer: Any) -> str:
    """The save mode of a batch writer of the JVM."""
    return str(builder_state(writer, "curmode" if installed() >= (4, 0) else "mode").name())


# ---- DataFrames ----


def rebalanced(frame: Any, columns: Sequence[str]) -> Any:
    """The rows in partitions of even size, those that are equal in the columns together; names are quoted."""
    if installed() >= (4, 0):
        return frame.hint("rebalance", *columns)
    from pyspark.sql import functions

    # The hint takes columns by name since 4.0.
    if not hasattr(frame, "_jdf"):
        return frame.repartition(*columns) if columns else frame.hint("rebalance")
    hinted = frame._jdf.hint("rebalance", frame._jseq([functions.col(name)._jc.expr() for name in columns]))
    return frame_class()(hinted, frame.sparkSession)


# ---- Arrow ----


def frame_of_arrow(spark: Any, table: pa.Table, schema: Any = None) -> Any:
    """A DataFrame of the rows of an Arrow table.

    Batches without rows are left out: Spark takes one for the end, and the rows behind it would be lost.
    """
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    # A table made of no batches has columns without chunks, which PySpark cannot convert.
    table = pa.Table.from_batches(batches) if batches else table.schema.empty_table()
    if installed() >= (4, 0):
        return spark.createDataFrame(table, schema)
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    schema = schema or from_arrow_schema(table.schema)
    table = table.cast(to_arrow_schema(schema))
    if not hasattr(spark, "_jsparkSession"):
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import LocalRelation

        return DataFrame.withPlan(LocalRelation(table, schema.json()), spark)
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    jvm = spark._jvm
    batches = spark.sparkContext._serialize_to_jvm(
        table.to_batches(),
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    return frame_class()(jvm.PythonSQLUtils.toDataFrame(batches, schema.json(), spark._jsparkSession), spark)


def arrow_of_frame(frame: Any) -> pa.Table:
    """The rows of a DataFrame as an Arrow table."""
    table: pa.Table
    if installed() >= (4, 0):
        table = frame.toArrow()
        return table
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()
    table = pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
    return table


def with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch that the JVM has sent, with the offsets of lists that hold nothing.

    The Arrow of older JVMs leaves out the one offset of an empty list inside of others, and Arrow's own
    functions look for it without asking: the process ends.
    """
    nested = [at for at, field in enumerate(batch.schema) if _has_inner_lists(field.type)]
    if not nested:
        return batch
    every_row = integers(range(batch.num_rows))
    columns = [column.take(every_row) if at in nested else column for at, column in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _has_inner_lists(kind: pa.DataType, *, inside: bool = False) -> bool:
    """Whether a type has lists or maps inside of others."""
    repeats = pa.types.is_list(kind) or pa.types.is_map(kind)
    if repeats and inside:
        return True
    inner = [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return any(_has_inner_lists(one, inside=inside or repeats) for one in inner)


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """A column that Python computes of other columns of a frame, a batch of Arrow arrays at a time."""

    name: str
    kind: Any
    """Its type, as PySpark has it."""
    function: Callable[..., pa.Array]
    arguments: tuple[str, ...]
    """The plain names of the columns that the function takes."""


def with_arrow_columns(frame: Any, columns: Sequence[ArrowColumn]) -> Any:
    """A frame with further columns behind its own.

    Before Spark 4.1 they are computed whether a query uses them or not.
    """
    from pyspark.sql import functions

    if installed() >= (4, 1):
        computed = (functions.arrow_udf(one.function, one.kind)(*one.arguments) for one in columns)
        return frame.select("*", *(made.alias(one.name) for made, one in zip(computed, columns, strict=True)))
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructField, StructType

    schema = StructType([*frame.schema.fields, *(StructField(one.name, one.kind) for one in columns)])
    types = [to_arrow_type(one.kind) for one in columns]

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [one.function(*(batch.column(name) for name in one.arguments)) for one in columns]
            cast = [array.cast(kind) for array, kind in zip(arrays, types, strict=True)]
            names = [*batch.schema.names, *(one.name for one in columns)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *cast], names)

    return frame.mapInArrow(compute, schema)


def arrow_udf(
    function: Callable[..., pa.Array], kind: str, types: Sequence[pa.DataType]
) -> Callable[..., Any]:
    """A function of Spark columns, given by name, that computes with Arrow arrays of these types.

    Before Spark 4.1 it is a function of pandas, which has no nulls among numbers, nor times of every
    century: what is neither text nor bytes is sent as text.
    """
    from pyspark.sql import functions

    if installed() >= (4, 1):
        of_arrow: Callable[..., Any] = functions.arrow_udf(function, kind)
        return of_arrow
    for column_type in types:
        _check_sendable(column_type)

    def compute(*texts: Any) -> Any:
        arrays = [pa.array(text, from_pandas=True) for text in texts]
        return function(*map(_received, arrays, types)).to_pandas()

    # PySpark decides by these what kind of function it is.
    compute.__annotations__ = {"texts": pd.Series, "return": pd.Series}
    of_pandas = functions.pandas_udf(compute, kind)

    def of_columns(*names: str) -> Any:
        return of_pandas(
            *(_sent(functions.col(name), type_) for name, type_ in zip(names, types, strict=True))
        )

    return of_columns


_JSON_FORM = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

_JSON = json.JSONDecoder(parse_float=Decimal)


def _sent(column: Any, kind: pa.DataType) -> Any:
    """A column as text, from which `_received` makes the same values again; texts and bytes as they are."""
    from pyspark.sql import functions

    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return column
    if pa.types.is_nested(kind):
        return functions.to_json(column, _JSON_FORM)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = functions.unix_micros(column)
    return column.cast("string")


def _received(sent: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values that `_sent` made texts of."""
    if pa.types.is_nested(kind):
        documents = (None if text is None else _JSON.decode(text) for text in sent.to_pylist())
        return pa.array([_value(document, kind) for document in documents], kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return sent.cast(pa.string()).cast(pa.int64()).cast(kind)
    return sent.cast(kind)


def _value(document: Any, kind: pa.DataType) -> Any:
    """A value of JSON as Arrow takes it for a type."""
    if document is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _value(document.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        read_key = int if pa.types.is_integer(kind.key_type) else str
        return [(read_key(key), _value(one, kind.item_type)) for key, one in document.items()]
    if pa.types.is_list(kind):
        return [_value(one, kind.value_type) for one in document]
    if pa.types.is_date(kind):
        return date.fromisoformat(document)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(document)
    # JSON has texts for the floating-point numbers that it cannot write.
    return float(document) if pa.types.is_floating(kind) else document


def _check_sendable(kind: pa.DataType, *, inside: bool = False) -> None:
    """Refuse a column that a function of pandas cannot be given: variants, and bytes inside other values."""
    key = kind.key_type if pa.types.is_map(kind) else pa.string()
    if not (pa.types.is_string(key) or pa.types.is_integer(key)):
        unsendable = f"maps with keys of type {key}"
    elif is_variant(kind):
        unsendable = "variants"
    elif inside and pa.types.is_binary(kind):
        unsendable = "bytes in nested columns"
    else:
        inner = [kind.field(at).type for at in range(kind.num_fields)] if pa.types.is_nested(kind) else []
        for one in inner:
            _check_sendable(one, inside=True)
        return
    line = ".".join(map(str, installed()))
    raise TableError(
        f"Spark {line} cannot search {unsendable} without an index. Search the table itself, or use "
        "Spark 4.1 or later.",
        version=line,
    )
