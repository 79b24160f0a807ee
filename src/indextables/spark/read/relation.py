"""A table version as a native Spark relation.

A split is a Parquet file, so Spark's own Parquet reader reads it; what is ours
is the choice of files. `LogFileIndex.java` is that choice as Spark wants to
see it. Janino, which Spark carries for its own code generation, compiles it
when a session connects: no jar, no javac.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from indextables.spark.errors import remember
from indextables.spark.read.wire import Answer, encode_failure, encode_plan, encode_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_lock = threading.Lock()
_compiled: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

# Never fewer rows than the log promises, whatever the session says, and dates as Arrow wrote them.
_READ_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


class FilePlanner(Protocol):
    """Chooses the files of one table version for one query."""

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The files that may hold rows for all these typed filters."""
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
    """Equal exactly when two relations read the same: table id, root, version, read options."""
    label: str
    """What explain shows."""
    schema_json: str
    partition_columns: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the Parquet reader beyond those every read has, and Hadoop settings of this relation."""


class PlannerCallback:
    """The planner as the JVM calls it: a request in JSON, an answer in bytes, never an exception.

    The callback server listens on a port of this machine and calls any method of an object that it is
    asked for. So this object has no other method to call, and answers only those who know its token.
    """

    __slots__ = ("_planner", "_token")
    _planner: FilePlanner
    _token: str

    class Java:
        """Tells py4j which Java interface this object stands for."""

        implements = ("java.util.function.Function",)

    def __init__(self, planner: FilePlanner, token: str) -> None:
        object.__setattr__(self, "_planner", planner)
        object.__setattr__(self, "_token", token)

    def __getattribute__(self, name: str) -> Any:
        # py4j itself looks at the class, before the object crosses.
        if name not in {"apply", "Java", "__class__"}:
            raise AttributeError(f"the planner of a relation has no {name!r}")
        return object.__getattribute__(self, name)

    def apply(self, request: str) -> bytearray:
        """Answer one request; a failure travels as a message that finds its way back to the exception."""
        planner: FilePlanner = object.__getattribute__(self, "_planner")
        token: str = object.__getattribute__(self, "_token")
        try:
            asked = json.loads(request)
            if not compare_digest(str(asked.get("token", "")).encode(), token.encode()):
                return encode_failure("a caller that is not the relation asked its planner")
            if asked["call"] == "size":
                return encode_size(planner.size_bytes())
            return encode_plan(planner.plan(asked["filters"]))
        except Exception as error:  # noqa: BLE001  (an exception would reach the JVM as text and lose its type)
            return encode_failure(remember(error))


def index_class(spark: SparkSession) -> Any:
    """The compiled LogFileIndex of this session's JVM."""
    context = spark.sparkContext
    gateway = context._gateway
    with _lock:
        found = _compiled.get(gateway)
        if found is None:
            found = _compile(context._jvm)
            _compiled[gateway] = found
    return found


def _compile(jvm: Any) -> Any:
    from pyspark import SparkContext
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(SparkContext._gateway)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(files("indextables.spark").joinpath("LogFileIndex.java").read_text("utf-8"))
    return compiler.getClassLoader().loadClass("io.indextables.LogFileIndex")


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
    arguments["planner"] = PlannerCallback(planner, token)
    boxed = gateway.new_array(jvm.java.lang.Object, 1)
    boxed[0] = arguments
    datasources = jvm.org.apache.spark.sql.execution.datasources
    relation = datasources.HadoopFsRelation.apply(
        index_type.getConstructors()[0].newInstance(boxed),
        partitions,
        schema,
        getattr(getattr(jvm.scala, "None$"), "MODULE$"),
        datasources.parquet.ParquetFileFormat(),
        jvm.PythonUtils.toScalaMap({**_READ_OPTIONS, **spec.options}),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _schema(jvm: Any, session: Any, text: str) -> Any:
    """A schema as a relation holds it: char(n) and varchar(n) are strings that remember their type."""
    parsed = session.parseDataType(text)
    return jvm.org.apache.spark.sql.catalyst.util.CharVarcharUtils.replaceCharVarcharWithStringInSchema(
        parsed
    )


def _partition_json(spec: RelationSpec) -> str:
    by_name = {field["name"]: field for field in json.loads(spec.schema_json)["fields"]}
    return json.dumps({"type": "struct", "fields": [by_name[name] for name in spec.partition_columns]})
