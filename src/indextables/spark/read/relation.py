"""A table version as a native Spark relation.

A split is a Parquet file, so Spark's own Parquet reader reads it; what is ours
is the choice of files. `LogFileIndex.java` is that choice as Spark wants to
see it; `jar.py` says how its class gets into the JVM.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from indextables.model.column_names import ColumnNames
from indextables.spark.errors import remember
from indextables.spark.jvm.callback import Callback
from indextables.spark.jvm.jar import put_on_class_path
from indextables.spark.read.planner import TablePlanner
from indextables.spark.read.wire import (
    Answer,
    decode_files,
    encode_counts,
    encode_failure,
    encode_plan,
    encode_size,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_lock = threading.Lock()
_classes: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

# Never fewer rows than the log promises, whatever the session says, and dates as Arrow wrote them.
_READ_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


_MAPPED, _STORED = "indextables.mapped", "indextables.stored."


def read_options(schema_json: str) -> dict[str, str]:
    """The options of Spark's Parquet reader with which it returns every row of a table of this schema.

    Where a dictionary of a floating-point column holds -0.0 alone, the reader would pass over its rows for
    a filter on 0.0, which is equal to it.
    """
    if '"double"' in schema_json or '"float"' in schema_json:
        return {**_READ_OPTIONS, "parquet.filter.dictionary.enabled": "false"}
    return _READ_OPTIONS


class FilePlanner(Protocol):
    """Chooses the files of one table version for one query."""

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
        ...

    def count(self, question: Mapping[str, Any]) -> pa.Table | None:
        """The keys and aggregates that `CountingRule.java` asks for; None if the log alone cannot tell."""
        ...

    def size_bytes(self) -> int:
        """Bytes of rows in the whole version."""
        ...


@dataclass(frozen=True, slots=True)
class RelationSpec:
    """Everything Spark has to know about a table version before it plans."""

    root: str
    """The table's directory as a Hadoop path."""
    identity: str
    """Equal for two relations exactly if they read the same: table id, root, version, read options."""
    label: str
    """The text that EXPLAIN shows."""
    schema_json: str
    partition_columns: tuple[str, ...]
    may_have_deleted: bool = False
    """Whether files of it may have rows that are deleted."""
    names: ColumnNames | None = None
    """The names of the columns in the files, where they differ."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the Parquet reader beyond those every read has, and Hadoop settings of this relation."""


def planner_callback(planner: FilePlanner, token: str) -> Callback:
    """The planner as the JVM calls it: takes a request in JSON, returns bytes."""

    def answer(request: Mapping[str, Any]) -> bytearray:
        if request["call"] == "size":
            return encode_size(planner.size_bytes())
        if request["call"] == "count":
            return encode_counts(planner.count(request))
        chosen = planner
        if "limit" in request and isinstance(planner, TablePlanner):
            chosen = replace(planner, limit=int(request["limit"]))
        if "only" in request:
            assert isinstance(planner, TablePlanner)
            chosen = replace(planner, only=decode_files(request["only"]))
        return encode_plan(chosen.plan(request["filters"]))

    def failed(error: Exception | str) -> bytearray:
        return encode_failure(error if isinstance(error, str) else remember(error))

    return Callback(answer, failed, token)


def index_class(spark: SparkSession) -> Any:
    """LogFileIndex, in this session's JVM."""
    context = spark.sparkContext
    gateway = context._gateway
    with _lock:
        index_type = _classes.get(gateway)
        if index_type is None:
            from pyspark.java_gateway import ensure_callback_server_started

            ensure_callback_server_started(gateway)
            put_on_class_path(spark)
            loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
            index_type = _classes[gateway] = loader.loadClass("io.indextables.LogFileIndex")
    return index_type


def native_frame(spark: SparkSession, spec: RelationSpec, planner: FilePlanner) -> DataFrame:
    """A DataFrame over the table version whose files the planner chooses per query."""
    from pyspark.sql import DataFrame

    index_type = index_class(spark)
    gateway, jvm, session = spark.sparkContext._gateway, spark.sparkContext._jvm, spark._jsparkSession
    schema = _schema(jvm, session, spec.schema_json)
    partitions = _schema(jvm, session, _partition_json(spec))
    arguments = jvm.java.util.HashMap()
    arguments["root"] = spec.root
    arguments["identity"] = spec.identity
    arguments["label"] = spec.label
    arguments["partitions"] = partitions
    arguments["token"] = token = secrets.token_hex(16)
    arguments["planner"] = planner_callback(planner, token)
    boxed = gateway.new_array(jvm.java.lang.Object, 1)
    boxed[0] = arguments
    datasources = jvm.org.apache.spark.sql.execution.datasources
    relation = datasources.HadoopFsRelation.apply(
        index_type.getConstructors()[0].newInstance(boxed),
        partitions,
        schema,
        getattr(getattr(jvm.scala, "None$"), "MODULE$"),
        _format(gateway, index_type)
        if spec.may_have_deleted or spec.names
        else datasources.parquet.ParquetFileFormat(),
        jvm.PythonUtils.toScalaMap({**read_options(spec.schema_json), **spec.options, **_stored(spec.names)}),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _stored(names: ColumnNames | None) -> dict[str, str]:
    """The options by which `SplitFormat.java` knows the names of columns in the files."""
    if names is None:
        return {}
    return {_MAPPED: "true", **{f"{_STORED}{name}": stored for name, stored in names.pairs}}


def _format(gateway: Any, index_type: Any) -> Any:
    """Spark's Parquet reader, without the rows that are deleted and with the table's names for columns."""
    kind = index_type.getClassLoader().loadClass("io.indextables.SplitFormat")
    return kind.getConstructors()[0].newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))


def _schema(jvm: Any, session: Any, text: str) -> Any:
    """A schema as a relation holds it: char(n) and varchar(n) are strings that remember their type."""
    parsed = session.parseDataType(text)
    return jvm.org.apache.spark.sql.catalyst.util.CharVarcharUtils.replaceCharVarcharWithStringInSchema(
        parsed
    )


def _partition_json(spec: RelationSpec) -> str:
    by_name = {field["name"]: field for field in json.loads(spec.schema_json)["fields"]}
    return json.dumps({"type": "struct", "fields": [by_name[name] for name in spec.partition_columns]})
