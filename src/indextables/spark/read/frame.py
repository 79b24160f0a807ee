"""One version of a table as a DataFrame.

There are three ways. `native` is Spark's Parquet reader with our file index. `arrow`
reads the planned files in Python on the executors, for stores for which the session has
no Hadoop file system. `planned` is a Parquet scan of the live files, for Spark Connect,
where there is no JVM to put a file index into.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import hashlib
import json
import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from indextables.companion.snapshot import CompanionSnapshot
from indextables.companion.source import Source
from indextables.errors import TableError
from indextables.log.format.dialect import NATIVE
from indextables.log.format.protocol import DELETION_VECTORS, has_feature
from indextables.model.column_mapping import all_stored_names
from indextables.model.names import quoted_name
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.read.arguments import column_names
from indextables.ops.table_settings import require_parquet
from indextables.spark.hadoop import hadoop_settings, package_of
from indextables.spark.options import READ_KEYS, CallSettings, is_connect, split
from indextables.spark.read.arrow_scan import arrow_frame
from indextables.spark.read.filters import filtered
from indextables.spark.read.planner import TablePlanner, chosen_of, hadoop_paths
from indextables.spark.read.relation import RelationSpec, native_frame, read_options
from indextables.spark.read.source_planner import SourcePlanner
from indextables.spark.requests import ReadRequest

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

_REMEMBERED = 4096
BATCH = " #"
"""What follows it in the identity of a relation tells the batches of a stream apart."""
_CLOUDS = {"s3": "s3", "abfss": "azure", "abfs": "azure", "az": "azure", "gs": "gcs"}

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_loaded: OrderedDict[str, LoadedTable] = OrderedDict()
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """The table behind a DataFrame or a view."""

    path: str
    options: Mapping[str, str]
    """Table options, without those of one read."""
    version: int | None = None
    """The version the relation reads; None is the newest."""
    pinned: bool = False
    """Whether the user named that version."""
    restricted: bool = False
    """Whether a statement restricts the relation to some files when it runs."""

    @classmethod
    def of_request(cls, request: ReadRequest) -> LoadedTable:
        """The table a read asks for."""
        call, table = split(request.options, READ_KEYS)
        version = call.get("versionAsOf")
        pinned = "versionAsOf" in call or "timestampAsOf" in call
        return cls(request.path, table, None if version is None else int(version), pinned)

    def request(self) -> ReadRequest:
        """A read of the same version."""
        version = {} if self.version is None else {"versionAsOf": str(self.version)}
        return ReadRequest(self.path, {**self.options, **version})


def frame_of_snapshot(
    spark: Any, snapshot: Snapshot, where: Any = None, columns: Sequence[str] | None = None
) -> Any:
    """A DataFrame over a version that is open already."""
    settings = CallSettings({}, dict(snapshot.opened_with().explicit))
    require_parquet(snapshot)
    frame = version_frame(spark, snapshot, settings, reading_way(spark, snapshot), None)
    rows = filtered(frame, where, snapshot.schema, snapshot.time_zone)
    return rows if columns is None else rows.select(*map(quoted_name, column_names(snapshot, columns)))


def version_frame(
    spark: Any, snapshot: Snapshot, settings: CallSettings, way: str, columns: Sequence[str] | None
) -> Any:
    """A DataFrame over one version, read the given way."""
    names = None if columns is None else column_names(snapshot, columns)
    if way == "arrow":
        if not is_connect(spark) and not isinstance(snapshot, ForeignRows):
            _warn_slow(snapshot.store.uri)
        return arrow_frame(spark, snapshot, settings.table, names)
    frame = _planned(spark, snapshot) if way == "planned" else _native(spark, snapshot, settings)
    return frame if names is None else frame.select(*map(quoted_name, names))


def restricted_frame(
    spark: Any, snapshot: Snapshot, settings: CallSettings, only: frozenset[str] | None
) -> Any:
    """A DataFrame of Spark's reader over some files of one version."""
    if is_connect(spark):
        return _planned(spark, snapshot, only)
    return _native(spark, snapshot, settings, only)


def reading_way(spark: Any, snapshot: Snapshot) -> str:
    """How the rows of a table are read in this session: native, arrow or planned."""
    if isinstance(snapshot, CompanionSnapshot) and (
        is_connect(spark) or not _is_spark_like(snapshot.rows_of)
    ):
        return "arrow"
    if is_connect(spark):
        # There Spark's reader is given the names of files alone, and would return deleted rows too, and
        # columns by the names in the files.
        as_stored = snapshot.names is None and not (
            snapshot.dialect.name == "native" and snapshot.has_vectors
        )
        return "planned" if as_stored else "arrow"
    root = (snapshot.rows_of if isinstance(snapshot, CompanionSnapshot) else snapshot).store.spark_uri("")
    scheme = root.partition(":")[0]
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    from py4j.protocol import Py4JJavaError

    try:
        spark.sparkContext._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except Py4JJavaError:
        return "arrow"
    return "native"


def nullable_schema(schema_json: str) -> str:
    """The columns of a source as its files have them, where each may be missing."""
    fields = json.loads(schema_json)["fields"]
    return json.dumps({"type": "struct", "fields": [{**field, "nullable": True} for field in fields]})


def _is_spark_like(source: Source) -> bool:
    """Whether Spark's reader has the columns of a source: under their own names, of types that it widens."""
    columns = source.columns
    changed = '"delta.typeChanges"' in columns.schema_string and "decimal" in columns.schema_string
    return columns.mode == "none" and not changed and '"void"' not in columns.schema_string


def _warn_slow(uri: str) -> None:
    scheme = uri.partition(":")[0]
    if scheme in _warned:
        return
    _warned.add(scheme)
    cloud = _CLOUDS.get(scheme)
    advice = (
        f" Add {package_of(cloud)} to spark.jars.packages (configure(builder, cloud={cloud!r}) does)"
        if cloud
        else ""
    )
    _log.warning(
        "This session has no Hadoop file system for %s: rows are read in Python, "
        "with filters and columns fixed at load().%s", uri, advice,
    )  # fmt: skip


def statement_frame(spark: Any, snapshot: Snapshot, settings: CallSettings, statement: str) -> Any:
    """A DataFrame over a version, for a statement that replaces rows.

    Its relation is equal to no other, and reads every file until `LogFileIndex.restrict` names some.
    """
    uri, version = snapshot.store.uri, snapshot.version
    identity = f"{snapshot.table_id}@{version} {uri} {statement}"
    remember(identity, LoadedTable(uri, settings.table, version, restricted=True))
    spec = _relation_spec(snapshot, settings, identity, f"version {version}, files to replace")
    # Of files that lose rows by a vector, the rows that change are read alone.
    spec = replace(spec, may_have_deleted=spec.may_have_deleted or snapshot.settings.vectors.enabled)
    return native_frame(spark, spec, TablePlanner(spark, uri, snapshot.table_id, version, settings.table))


def relation_of(spark: Any, snapshot: Snapshot, settings: CallSettings) -> Any:
    """A DataFrame over a snapshot that is no version of the log: the files of a stream's batch."""
    uri, table_id = snapshot.store.uri, snapshot.table_id
    identity = f"{table_id}@stream {uri} {_digest(settings)}{BATCH}{uuid.uuid4()}"
    # A search in the stream is compared with its rows as the newest version says.
    remember(identity, LoadedTable(uri, settings.table))
    spec = _relation_spec(snapshot, settings, identity, f"a batch at version {snapshot.version}")
    planner = TablePlanner(spark, uri, table_id, snapshot.version, settings.table, "local", fixed=snapshot)
    return native_frame(spark, spec, planner)


def _relation_spec(snapshot: Snapshot, settings: CallSettings, identity: str, shown: str) -> RelationSpec:
    uri = snapshot.store.uri
    return RelationSpec(
        root=snapshot.store.spark_uri("").rstrip("/"),
        identity=identity,
        label=f"{uri} {shown}",
        schema_json=snapshot.metadata.schema_string,
        partition_columns=snapshot.partition_columns,
        may_have_deleted=settings.flag("refresh") or has_feature(snapshot.protocol, DELETION_VECTORS),
        names=snapshot.names,
        options=hadoop_settings(uri, settings.table),
    )


def _native(
    spark: Any, snapshot: Snapshot, settings: CallSettings, only: frozenset[str] | None = None
) -> Any:
    if isinstance(snapshot, CompanionSnapshot):
        return _of_source(spark, snapshot, settings)
    refresh = settings.flag("refresh")
    version = None if refresh else snapshot.version
    uri = snapshot.store.uri
    identity = _identity(snapshot, version, settings)
    shown = "newest version" if refresh else f"version {version}"
    spec = _relation_spec(snapshot, settings, identity, shown)
    engine = settings.call.get("engine", "auto")
    files = None if only is None else dict.fromkeys(only)
    stored_names = all_stored_names(snapshot.metadata) if refresh else {}
    planner = TablePlanner(
        spark, uri, snapshot.table_id, version, settings.table, engine, files, stored_names=stored_names
    )
    if only is not None:
        spec = replace(spec, identity=f"{identity} {uuid.uuid4()}")
        return native_frame(spark, spec, planner)
    pinned = "versionAsOf" in settings.call or "timestampAsOf" in settings.call
    remember(identity, LoadedTable(uri, settings.table, version, pinned))
    return native_frame(spark, spec, planner)


def _of_source(spark: Any, snapshot: CompanionSnapshot, settings: CallSettings) -> Any:
    """The rows of a companion's source, in its own files."""
    source, uri = snapshot.rows_of, snapshot.store.uri
    # Files without a log have no version that could be read again: they are listed for every query.
    follows = settings.flag("refresh") or source.version is None
    version = None if follows else source.version
    identity = f"companion {_identity(snapshot, version, settings)}"
    pinned = "versionAsOf" in settings.call or "timestampAsOf" in settings.call
    remember(identity, LoadedTable(uri, settings.table, version, pinned))
    spec = RelationSpec(
        root=source.store.spark_uri("").rstrip("/"),
        identity=identity,
        label=f"{source.uri} {'newest version' if follows else f'version {version}'}, indexed by {uri}",
        schema_json=nullable_schema(source.columns.schema_string),
        partition_columns=source.columns.partition_columns,
        may_have_deleted=True,
        options=hadoop_settings(source.uri, settings.table),
    )
    return native_frame(spark, spec, SourcePlanner(spark, snapshot, settings.table, follows))


def _identity(snapshot: Snapshot, version: int | None, settings: CallSettings) -> str:
    """Equal for two relations exactly if they read the same; contains no option values, some are secrets."""
    which = "newest" if version is None else version
    return f"{snapshot.table_id}@{which} {snapshot.store.uri} {_digest(settings)}"


def _digest(settings: CallSettings) -> str:
    options = json.dumps([dict(settings.table), settings.call.get("engine", "auto")], sort_keys=True)
    return hashlib.sha256(options.encode()).hexdigest()[:16]


def _planned(spark: Any, snapshot: Snapshot, only: frozenset[str] | None = None) -> Any:
    """A Parquet scan of the live files; never of one path alone, which Spark would take for writable."""
    if snapshot.has_vectors or snapshot.names is not None:
        raise TableError(
            f"the names of files alone would bring deleted rows back, or columns under other names: "
            f"{snapshot.store.uri} is read in Python here (`reading_way`)",
            uri=snapshot.store.uri,
        )
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(snapshot.metadata.schema_string))
    live = snapshot.plan(columns={"path"}).files.column("path")
    paths = hadoop_paths(snapshot.store, live if only is None else chosen_of(live, only)).to_pylist()
    if not paths:
        return spark.createDataFrame([], schema)
    if len(paths) == 1:
        paths.append(snapshot.store.spark_uri(NATIVE.log_dir))
    reader = spark.read.schema(schema).options(**read_options(snapshot.metadata.schema_string))
    reader = reader.options(recursiveFileLookup="true", pathGlobFilter="*.split", __globPaths__="false")
    return reader.parquet(*paths)


def remember(identity: str, table: LoadedTable) -> None:
    """Record the table of a relation, so that a view over it finds the table again."""
    key = identity.partition(BATCH)[0]
    with _lock:
        _loaded[key] = table
        _loaded.move_to_end(key)
        while len(_loaded) > _REMEMBERED:
            _loaded.popitem(last=False)


def recall(identity: str) -> LoadedTable | None:
    """The table behind a relation."""
    with _lock:
        return _loaded.get(identity.partition(BATCH)[0])
