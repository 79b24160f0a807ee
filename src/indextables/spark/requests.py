"""What a user set on a Spark reader or writer, extracted from its builder.

Spark keeps the state of its builders in the JVM, and in a plan of its own on Spark Connect. Only
this module knows where; the rest works on plain values.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import TableError
from indextables.spark.options import java_map
from indextables.spark.versions import builder_state, converters


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One `load`."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One `save`, or a batch of a stream into a table."""

    path: str
    mode: str = "error"
    """error, ignore, append or overwrite."""
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] | None = None
    """None where the caller did not say."""
    where: Any = None
    """The tree of the option `replaceWhere`, where Spark has read its text."""
    stream: bool = False
    """Whether it is one batch of many."""


OWN_SCHEMA = (
    "an IndexTables table has its own schema: leave .schema(...) out, and select or cast after load()"
)
NO_LAYOUT = "bucketBy, sortBy and clusterBy do not exist for IndexTables; use partitionBy"


def reader_source(reader: Any) -> str | None:
    """The format a reader is set to."""
    if hasattr(reader, "_jreader"):
        return str(builder_state(reader._jreader, "source"))
    source: str | None = reader._format
    return source


def read_request(reader: Any, path: Any) -> ReadRequest:
    """The path and options of one `load`."""
    if hasattr(reader, "_jreader"):
        spark = reader._spark
        options = _scala_options(spark, builder_state(reader._jreader, "extraOptions"))
        schema = builder_state(reader._jreader, "userSpecifiedSchema").isDefined()
    else:
        options, schema = dict(reader._options), bool(reader._schema)
    if schema:
        raise TableError(OWN_SCHEMA)
    return ReadRequest(_one_path(path, options), options)


def connect_write_request(writer: Any, path: Any) -> WriteRequest:
    """The path, mode, options and partition columns of one `save` on Spark Connect."""
    state = writer._write
    if state.num_buckets > 0 or getattr(state, "clustering_cols", ()):
        raise TableError(NO_LAYOUT)
    options = {key: value for key, value in state.options.items() if value is not None}
    partition_by = tuple(state.partitioning_cols) or None
    return WriteRequest(_one_path(path, options), save_mode(state.mode or "error"), options, partition_by)


def save_mode(name: str) -> str:
    """A save mode as a request has it, by any of Spark's names for it."""
    lower = name.lower()
    return "error" if lower in ("errorifexists", "default") else lower


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
