"""What a user set on a Spark reader or writer, extracted from its builder.

Spark keeps the state of its builders in the JVM, in a plan of its own on Spark Connect,
and in private fields for streams. Only this module knows where; the rest works on plain
values.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import TableError
from indextables.spark.options import java_map
from indextables.spark.versions import builder_field, builder_state, converters, is_laid_out, writer_mode


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One `load`."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One `save`, or the settings of one stream into a table."""

    path: str
    mode: str = "error"
    """error, ignore, append or overwrite."""
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] | None = None
    """None where the caller did not say."""
    where: Any = None
    """The tree of the option `replaceWhere`, where Spark has read its text."""


_MODES = {"errorifexists": "error", "error": "error", "default": "error", "ignore": "ignore"}


def reader_source(reader: Any) -> str | None:
    """The format a reader (batch or stream) is set to."""
    if hasattr(reader, "_jreader"):
        return str(builder_state(reader._jreader, "source"))
    source: str | None = reader._format
    return source


def writer_source(writer: Any) -> str | None:
    """The format a batch writer is set to."""
    if hasattr(writer, "_jwrite"):
        return str(builder_state(writer._jwrite, "source"))
    source: str | None = writer._write.source
    return source


def stream_writer_source(writer: Any) -> str | None:
    """The format a stream writer is set to."""
    if hasattr(writer, "_jwrite"):
        return str(builder_state(writer._jwrite, "source"))
    return str(writer._write_proto.format)


def read_request(reader: Any, path: Any) -> ReadRequest:
    """The path and options of one `load`, of a batch or a stream."""
    if hasattr(reader, "_jreader"):
        spark = reader._spark
        options = _scala_options(spark, builder_state(reader._jreader, "extraOptions"))
        schema = builder_state(reader._jreader, "userSpecifiedSchema").isDefined()
    else:
        options, schema = dict(reader._options), bool(reader._schema)
    if schema:
        raise TableError(
            "an IndexTables table has its own schema: leave .schema(...) out, and select or cast after load()"
        )
    return ReadRequest(_one_path(path, options), options)


def write_request(writer: Any, path: Any) -> WriteRequest:
    """The path, mode, options and partition columns of one `save`."""
    if hasattr(writer, "_jwrite"):
        state = writer._jwrite
        options = _scala_options(writer._spark, builder_state(state, "extraOptions"))
        partition_by = _scala_names(writer._spark, builder_state(state, "partitioningColumns"))
        mode = writer_mode(state)
        layout = is_laid_out(state)
    else:
        state = writer._write
        options = {key: value for key, value in state.options.items() if value is not None}
        partition_by = tuple(state.partitioning_cols) or None
        mode = state.mode or "error"
        layout = state.num_buckets > 0 or bool(getattr(state, "clustering_cols", ()))
    if layout:
        raise TableError("bucketBy, sortBy and clusterBy do not exist for IndexTables; use partitionBy")
    mode = mode.lower()
    return WriteRequest(_one_path(path, options), _MODES.get(mode, mode), options, partition_by)


def stream_write_request(writer: Any, path: Any) -> WriteRequest:
    """The path, mode, options and partition columns of one stream into a table."""
    if hasattr(writer, "_jwrite"):
        spark = writer._spark
        options = _scala_options(spark, builder_state(writer._jwrite, "extraOptions"))
        partition_by = _scala_names(spark, builder_state(writer._jwrite, "partitioningColumns"))
        output_mode = str(builder_state(writer._jwrite, "outputMode")).lower()
    else:
        options = dict(writer._write_proto.options)
        partition_by = tuple(writer._write_proto.partitioning_column_names) or None
        output_mode = str(writer._write_proto.output_mode).lower() or "append"
    if output_mode not in ("append", "complete"):
        raise TableError(
            f"output mode {output_mode!r} is not possible: a stream into an IndexTables table appends "
            "(outputMode 'append') or replaces the whole table with each batch ('complete')"
        )
    mode = "append" if output_mode == "append" else "overwrite"
    return WriteRequest(_one_path(path, options), mode, options, partition_by)


def stream_partitioning(writer: Any) -> tuple[str, ...]:
    """The columns a stream writer partitions by."""
    if not hasattr(writer, "_jwrite"):
        return tuple(writer._write_proto.partitioning_column_names)
    return _scala_names(writer._spark, builder_state(writer._jwrite, "partitioningColumns")) or ()


def stream_written_frame(writer: Any) -> Any:
    """The streaming DataFrame a writer is about to write."""
    if hasattr(writer, "_jwrite"):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._write_stream._child, writer._session)


def without_partitioning(writer: Any) -> None:
    """Take the partition columns out of a stream writer: Spark refuses them beside foreachBatch."""
    if not hasattr(writer, "_jwrite"):
        del writer._write_proto.partitioning_column_names[:]
        return
    nothing = getattr(getattr(writer._spark.sparkContext._jvm.scala, "None$"), "MODULE$")
    builder_field(writer._jwrite, "partitioningColumns").set(writer._jwrite, nothing)


def written_frame(writer: Any) -> Any:
    """The DataFrame a batch writer is about to write."""
    if hasattr(writer, "_jwrite"):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._df, writer._spark)


def session_of(builder: Any) -> Any:
    """The session a reader or writer belongs to."""
    for name in ("_spark", "_client", "_session"):
        if hasattr(builder, name):
            return getattr(builder, name)
    raise TypeError(f"{type(builder).__name__} is not a reader or writer of Spark")


def _one_path(path: Any, options: Mapping[str, str]) -> str:
    chosen = path if path is not None else next((v for k, v in options.items() if k.lower() == "path"), None)
    if isinstance(chosen, (list, tuple)) and len(chosen) == 1:
        chosen = chosen[0]
    if not isinstance(chosen, str) or not chosen:
        what = "several paths" if isinstance(chosen, (list, tuple)) else repr(chosen)
        raise TableError(
            f"the path of one table is needed, not {what}: .load('/path') or .option('path', '/path')"
        )
    return chosen


def _scala_options(spark: Any, options: Any) -> dict[str, str]:
    """Options with their keys as they were written: a column's name keeps its case."""
    return java_map(spark, converters(spark).mapAsJavaMap(options.originalMap()))


def _scala_names(spark: Any, option: Any) -> tuple[str, ...] | None:
    if not option.isDefined():
        return None
    return tuple(str(name) for name in converters(spark).seqAsJavaList(option.get()))
