"""Answers Spark about a named table: its definition, how it is read, and changes of the definition."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from indextables.errors import CommandError, TableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.table_kind import TableKind, read_only
from indextables.ops.delta.describe import properties as delta_properties
from indextables.ops.delta.scan import require_schema
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.rewrite.drop_partitions import run_drop_partitions
from indextables.ops.rewrite.replace import commit_or_discard
from indextables.ops.table_settings import require_parquet
from indextables.ops.write.alter import TableChange, run_alter
from indextables.ops.write.commit import Order, outcome
from indextables.ops.write.definition import Definition, property_key
from indextables.ops.write.delete import run_delete
from indextables.ops.write.save import newest
from indextables.predicate.tree import TRUE
from indextables.spark.bridge.request import JvmRequest, row_counts
from indextables.spark.delta.load import is_plain, listed_delta
from indextables.spark.delta.scan import logical_schema
from indextables.spark.hadoop import package_of
from indextables.spark.load import load_table
from indextables.spark.options import READ_KEYS, WRITE_KEYS, settings_for
from indextables.spark.read.changes import change_struct, reads_changes, require_own
from indextables.spark.read.frame import nullable_schema, reading_way, statement_frame
from indextables.spark.read.planner import conjunction
from indextables.spark.read.version import snapshot_of
from indextables.spark.requests import ReadRequest
from indextables.spark.search.dataframe import no_index
from indextables.spark.versions import check_retyped
from indextables.spark.write.job import Job, run_job, written
from indextables.spark.write.save import first_write, with_automatic_index

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

_CLOUDS = {"s3": "s3", "abfss": "azure", "abfs": "azure", "az": "azure", "gs": "gcs"}


def describe(request: JvmRequest) -> dict[str, Any]:
    """The columns, partitions and properties of the newest version, or of the one that the request names."""
    snapshot = snapshot_of(request.spark, request.path, request.settings)
    if isinstance(snapshot, DeltaSnapshot):
        require_schema(snapshot)
        schema, properties = logical_schema(snapshot), delta_properties(snapshot)
        more = {"readOnly": True, "derived": not is_plain(request.spark, snapshot)}
    else:
        require_parquet(snapshot)
        schema, more = snapshot.metadata.schema_string, {}
        if isinstance(snapshot, ForeignRows):
            schema = nullable_schema(schema)
            more = {"readOnly": True, "derived": reading_way(request.spark, snapshot) != "native"}
        configuration = snapshot.metadata.configuration
        properties = {key: value for key, value in configuration.items() if value is not None}
    comment = snapshot.metadata.description
    partitions = list(snapshot.partition_columns)
    if reads_changes(request.settings):
        require_own(snapshot)
        partitions, schema = [], change_struct(snapshot).json()
        more = {"readOnly": True, "derived": True}
    return {
        "path": request.path,
        "schema": schema,
        "partitions": partitions,
        "version": snapshot.version,
        "id": snapshot.table_id,
        "properties": {**properties, **({} if comment is None else {"comment": comment})},
        **more,
    }


def refuse_change(request: JvmRequest) -> dict[str, Any]:
    """The error for a statement that would change a Delta table, or the rows of a companion index."""
    snapshot = snapshot_of(request.spark, request.path, request.settings)
    if isinstance(snapshot, ForeignRows):
        require_parquet(snapshot.own)
    if reads_changes(request.settings):
        raise CommandError(f"{request.arguments['statement']}: changes of a table can be read, not written")
    raise read_only(request.path, str(request.arguments["statement"]))


def refuse_search(request: JvmRequest) -> dict[str, Any]:
    """The error for a search in a Delta table, or in a companion index whose columns Spark does not read."""
    snapshot = _version(request)
    if isinstance(snapshot, ForeignRows):
        raise CommandError(
            f"a search by the name of a table is not possible in {snapshot.store.uri}: its source has mapped "
            f"or widened columns, or lies where this session has no file system. Write indextables."
            f"`{snapshot.store.uri}` in its place, or search it with Table.open."
        )
    assert isinstance(snapshot, DeltaSnapshot)
    raise CommandError(no_index(snapshot))


def exists(request: JvmRequest) -> dict[str, Any]:
    """Whether there is a table."""
    return {"exists": newest(request.log()) is not None}


def relation(request: JvmRequest) -> dict[str, Any]:
    """The relation that reads a version; that of a statement which replaces rows is equal to no other."""
    snapshot = _version(request)
    if reading_way(request.spark, snapshot) != "native":
        cloud = _CLOUDS.get(request.path.partition(":")[0])
        advice = "" if cloud is None else f" Add {package_of(cloud)} to spark.jars.packages."
        raise TableError(
            f"this session has no Hadoop file system for {request.path}, which a named table is read "
            f"through.{advice}"
        )
    statement = request.arguments.get("id")
    if statement is None:
        frame = _frame(request, snapshot)
    else:
        frame = statement_frame(request.spark, snapshot, request.settings, str(statement))
    request.objects["relation"] = _relation_of(frame)
    return {}


def _relation_of(frame: Any) -> Any:
    """The relation that a DataFrame reads; Spark may pad columns of char(n) above it."""
    return frame._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation()


def partitions(request: JvmRequest) -> dict[str, Any]:
    """The relation from which SHOW PARTITIONS takes its values."""
    snapshot = _version(request)
    if not isinstance(snapshot, DeltaSnapshot):
        return relation(request)
    frame = listed_delta(request.spark, snapshot, request.settings)
    request.objects["relation"] = _relation_of(frame)
    return {}


def rows(request: JvmRequest) -> dict[str, Any]:
    """The plan that makes the rows of a version of a Delta table with deletion vectors or mapped columns."""
    frame = _frame(request, _version(request))
    request.objects["plan"] = frame._jdf.queryExecution().optimizedPlan()
    return {}


def _version(request: JvmRequest) -> Snapshot:
    when = {"versionAsOf": str(request.arguments["version"])}
    settings = settings_for(request.spark, {**request.options, **when}, READ_KEYS, request.path)
    return snapshot_of(request.spark, request.path, settings)


def _frame(request: JvmRequest, snapshot: Snapshot) -> Any:
    version = {"versionAsOf": str(snapshot.version)}
    return load_table(request.spark, ReadRequest(request.path, {**request.options, **version}), "native")


def create(request: JvmRequest) -> dict[str, Any]:
    """CREATE TABLE and REPLACE TABLE, with or without the rows of a query."""
    arguments = request.arguments
    options_of_call = {**request.options, **(arguments.get("given") or {})}
    settings = settings_for(request.spark, options_of_call, WRITE_KEYS, request.path)
    log, frame = request.log(), request.frame("data")
    properties = dict(arguments.get("properties") or {})
    try:
        current = newest(log)
    except TableError as other:
        if other.fields.get("kind") is not TableKind.DELTA:
            raise
        return _adopted_delta(request, properties)
    checks = dict(arguments.get("checks") or {})
    if checks and (current is not None or frame is not None):
        raise TableError(
            f"{request.path}: constraints are part of a new table without rows. Leave them out here, and add "
            "them with ALTER TABLE ... ADD CONSTRAINT name CHECK (condition).",
            uri=request.path,
        )
    if current is not None and arguments["kind"] == "create":
        return _adopted(request, current, properties)
    rows = None if frame is None else _as_declared(frame, arguments["schema"])
    partition_by, options = tuple(arguments["partitions"]), settings.options()
    if rows is not None:
        defined = {property_key(key): value for key, value in properties.items()}
        options = with_automatic_index(rows, options.over(defined, log.uri), partition_by)
    definition = Definition.of(
        arguments["schema"],
        partition_by,
        properties=properties,
        options=options,
        comment=arguments.get("comment"),
        checks=checks,
    )
    if current is None:
        if rows is None:
            definition.create(log)
        else:
            order = Order(user_metadata=settings.call.get("userMetadata"))
            first_write(rows, log, options, definition, order, mode="error")
        return {}
    plan = definition.first_plan(current.split_table_id, current)
    options = options.over(definition.properties, log.uri)
    built = [] if rows is None else run_job(rows, Job(plan, log.store.spec(), options))
    adds = [split.add for split in built]
    operation = "REPLACE TABLE" if rows is None else "REPLACE TABLE AS SELECT"
    done = commit_or_discard(log, definition.replacing(current, built, operation), adds)
    written(log, outcome(done, built), options)
    return {}


def _adopted(request: JvmRequest, current: Snapshot, properties: dict[str, str]) -> dict[str, Any]:
    """Give an existing table a name; the statement's definition has to agree with it."""
    if request.objects.get("data") is not None or request.arguments.get("managed"):
        raise TableError(
            f"{current.store.uri} is a table already. Name it with CREATE TABLE ... USING indextables "
            f"LOCATION '{current.store.uri}', or replace it with CREATE OR REPLACE TABLE.",
            uri=current.store.uri,
        )
    document = str(request.arguments["schema"])
    if '"fields":[]' in document and not request.arguments["partitions"]:
        if properties:
            raise TableError(
                f"{current.store.uri} is a table already and keeps its properties: leave TBLPROPERTIES out, "
                "and change them with ALTER TABLE",
                uri=current.store.uri,
            )
        return {}
    Definition.of(document, tuple(request.arguments["partitions"]), properties=properties).create(
        request.log()
    )
    return {}


def _adopted_delta(request: JvmRequest, properties: dict[str, str]) -> dict[str, Any]:
    """Give a Delta table a name, by which it is read; it keeps its own definition."""
    arguments = request.arguments
    if arguments["kind"] != "create" or arguments.get("managed") or request.objects.get("data") is not None:
        words = "CREATE TABLE" if arguments["kind"] == "create" else "REPLACE TABLE"
        raise read_only(request.path, words)
    defines = '"fields":[]' not in str(arguments["schema"]) or arguments["partitions"] or properties
    if defines or arguments.get("comment"):
        raise TableError(
            f"{request.path} is a Delta table, which keeps its columns, partitions, properties and comment: "
            f"name it with CREATE TABLE ... USING indextables LOCATION '{request.path}' alone",
            uri=request.path,
        )
    snapshot_of(request.spark, request.path, request.settings)
    return {}


def _as_declared(frame: Any, document: str) -> Any:
    """The rows of a query cast to the columns of the definition, whose types may be wider."""
    from pyspark.sql.types import StructType

    declared = StructType.fromJson(json.loads(document))
    return frame.toDF(*declared.names).to(declared) if declared.fields else frame


def alter(request: JvmRequest) -> dict[str, Any]:
    """ALTER TABLE."""
    changes = []
    for change in request.arguments["changes"]:
        fields = dict(change)
        if "type" in fields:
            fields["type"] = json.loads(fields["type"])
        fields["column"] = tuple(fields.get("column") or ())
        if fields["kind"] == "UpdateColumnType":
            check_retyped(fields["column"])
        changes.append(TableChange(**fields))
    return {"version": run_alter(request.log(), changes)}


def truncate(request: JvmRequest) -> dict[str, Any]:
    """TRUNCATE TABLE, and DELETE without a condition."""
    return row_counts(deleted=run_delete(request.log(), TRUE).rows_deleted)


def drop_partitions(request: JvmRequest) -> dict[str, Any]:
    """ALTER TABLE DROP PARTITION."""
    log = request.log()
    condition = conjunction(request.arguments["conditions"], log.snapshot(max_staleness_s=0))
    return {"files": run_drop_partitions(log, condition).splits_removed}
