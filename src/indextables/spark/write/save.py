"""`save`: the rows of a DataFrame become splits on the executors, then one commit names them.

Nothing is visible before the commit, and a task that runs twice builds files
that only one of its attempts reports. What is checked (schema, partitioning,
index settings, save mode) is checked before the job starts. A new table is
created after its first splits exist, so a failed job leaves no table behind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from indextables.errors import OptionError, SchemaError, TableError
from indextables.index.automatic import SAMPLE_ROWS
from indextables.log.snapshot import Snapshot
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import TxnAction
from indextables.model.names import find_name, quoted_name, require_name
from indextables.ops.results import WriteResult
from indextables.ops.write import save
from indextables.ops.write.commit import Order, commit_splits, planned
from indextables.ops.write.definition import Definition
from indextables.ops.write.replace_where import condition
from indextables.ops.write.rows import WritePlan, effective
from indextables.options import Options
from indextables.spark.open_logs import open_log
from indextables.spark.options import WRITE_KEYS, CallSettings, settings_for
from indextables.spark.read.views import tables_in_frame
from indextables.spark.requests import WriteRequest
from indextables.spark.versions import arrow_of_frame
from indextables.spark.workers import spark_schema
from indextables.spark.write.job import Job, run_job, schema_of, written
from indextables.split.write.build import BuiltSplit

if TYPE_CHECKING:
    from indextables.spark.read.frame import LoadedTable


def save_frame(spark: Any, frame: Any, request: WriteRequest) -> WriteResult | None:
    """Write a DataFrame to a table; None when the mode or the transaction says there is nothing to do."""
    settings = settings_for(spark, request.options, WRITE_KEYS, request.path)
    log = open_log(spark, request.path, settings.table)
    order = _order(spark, request, settings)
    snapshot = save.newest(log)
    if snapshot is None:
        return _save_new(frame, log, settings.options(), order, request)
    if not save.takes_rows(snapshot, request.mode) or _is_done(snapshot, order.txn):
        return None
    if order.expected_version is None:
        order = replace(order, expected_version=save.first_version(request.mode))
    frame = _without_void(frame, snapshot)
    options = effective(snapshot, settings.options())
    plan = planned(snapshot, schema_of(frame), options, order)
    where = None if order.where is None else condition(order.where, snapshot.schema, options)
    if order.overwrite and order.expected_version is None:
        order = replace(order, expected_version=_reads_version(frame, snapshot))
    built = run_job(frame, Job(plan, log.store.spec(), options, str(order.where), where))
    result = save.first_or_none(
        lambda: commit_splits(log, snapshot, plan, built, order, options), log.uri, request.mode
    )
    return None if result is None else written(log, result, options, stream=request.stream)


def insert_frame(
    spark: Any, frame: Any, table: LoadedTable, *, overwrite: bool, columns: Sequence[str] | None = None,
    by_name: bool = False, replace_where: str | None = None,
) -> WriteResult | None:  # fmt: skip
    """INSERT INTO and INSERT OVERWRITE of a view, by position as SQL has it, or by name."""
    if table.pinned:
        raise TableError(
            f"this view shows {table.path} as it was at version {table.version}; rows can only be inserted "
            "into the newest version. Load the table without versionAsOf and timestampAsOf."
        )
    log = open_log(spark, table.path, table.options)
    table_schema = spark_schema(log.snapshot(max_staleness_s=0).metadata.schema_string)
    if not by_name:
        names = list(columns) if columns is not None else table_schema.names
        if len(names) != len(frame.columns):
            raise SchemaError(
                f"INSERT has {len(frame.columns)} columns ({', '.join(frame.columns)}), but {len(names)} are "
                f"expected: {', '.join(names)}"
            )
        frame = frame.toDF(*names)
    for name in frame.columns:
        require_name(table_schema.names, name)
    options = dict(table.options)
    if replace_where is not None:
        options["replaceWhere"] = replace_where
        overwrite = True
    mode = "overwrite" if overwrite else "append"
    # Spark's own rules of store assignment decide what may be cast to what.
    return save_frame(spark, frame.to(_all_nullable(table_schema)), WriteRequest(table.path, mode, options))


def _order(spark: Any, request: WriteRequest, settings: CallSettings) -> Order:
    call = settings.call
    where = call.get("replaceWhere") if request.where is None else request.where
    save.check_mode(request.mode)
    overwrite_schema = settings.flag("overwriteSchema")
    if request.mode != "overwrite" and (where is not None or overwrite_schema):
        name = "replaceWhere" if where is not None else "overwriteSchema"
        raise OptionError(f"option {name!r} needs mode 'overwrite', not {request.mode!r}", key=name)
    of_call = call.get("partitionOverwriteMode")
    dynamic = of_call or spark.conf.get("spark.sql.sources.partitionOverwriteMode")
    if dynamic.lower() not in ("static", "dynamic"):
        raise OptionError(
            f"option 'partitionOverwriteMode' is {dynamic!r}; expected static or dynamic",
            key="partitionOverwriteMode",
        )
    overwrite = request.mode == "overwrite"
    # A session may be dynamic throughout; only a call that says so itself contradicts its own condition.
    applies = overwrite and (of_call is not None or (where is None and not overwrite_schema))
    return Order(
        overwrite,
        where,
        dynamic=applies and dynamic.lower() == "dynamic",
        overwrite_schema=overwrite_schema,
        partition_by=request.partition_by,
        merge_schema=settings.flag("mergeSchema"),
        expected_version=settings.number("expectedVersion"),
        txn=_txn(settings),
        user_metadata=call.get("userMetadata"),
    )


def _txn(settings: CallSettings) -> TxnAction | None:
    app_id, version = settings.call.get("txnAppId"), settings.number("txnVersion")
    if (app_id is None) != (version is None):
        raise OptionError(
            "options 'txnAppId' and 'txnVersion' belong together: set both or none", key="txnAppId"
        )
    return None if app_id is None or version is None else TxnAction(app_id=app_id, version=version)


def _is_done(snapshot: Snapshot, txn: TxnAction | None) -> bool:
    last = None if txn is None else snapshot.txns.get(txn.app_id)
    return last is not None and txn is not None and last.version >= txn.version


def _without_void(frame: Any, snapshot: Snapshot) -> Any:
    """Untyped NULL columns cast to the type of the table's column."""
    from pyspark.sql import functions

    table = spark_schema(snapshot.metadata.schema_string)
    for field in frame.schema:
        name = find_name(table.names, field.name)
        if field.dataType.typeName() == "void" and name is not None:
            frame = frame.withColumn(field.name, functions.lit(None).cast(table[name].dataType))
    return frame


def _save_new(
    frame: Any, log: TransactionLog, options: Options, order: Order, request: WriteRequest
) -> WriteResult | None:
    partition_by = request.partition_by or ()
    options = with_automatic_index(frame, options, partition_by)
    definition = Definition.of(schema_of(frame), partition_by, options=options)
    return first_write(frame, log, options, definition, order, mode=request.mode)


def with_automatic_index(frame: Any, options: Options, partition_by: Sequence[str]) -> Options:
    """The options of the write that makes a table; with `indexing.auto`, what its first rows ask for too."""
    if not options.indexing.auto:
        return options
    texts = [field.name for field in frame.schema if field.dataType.typeName() == "string"]
    if not texts:
        return options
    first_rows = arrow_of_frame(frame.select(*map(quoted_name, texts)).limit(SAMPLE_ROWS))
    return save.with_automatic_kinds(options, first_rows, partition_by)


def first_write(
    frame: Any, log: TransactionLog, options: Options, definition: Definition, order: Order, *, mode: str
) -> WriteResult | None:
    """The first write of a table: its splits, then version 0, then the commit."""
    where = None if order.where is None else condition(order.where, definition.schema, options)

    def built(plan: WritePlan) -> Sequence[BuiltSplit]:
        return run_job(frame, Job(plan, log.store.spec(), options, str(order.where), where))

    result = save.first_write(log, definition, built, order, options, mode=mode)
    return None if result is None else written(log, result, options)


def _reads_version(frame: Any, snapshot: Snapshot) -> int | None:
    """The version of this same table that a DataFrame reads, so that an overwrite loses no foreign commit."""
    tables = [table for table in tables_in_frame(frame) if table.path == snapshot.store.uri]
    return min((snapshot.version if t.version is None else t.version for t in tables), default=None)


def _all_nullable(schema: Any) -> Any:
    from pyspark.sql.types import StructType

    fields = json.loads(schema.json())
    for field in fields["fields"]:
        field["nullable"] = True
    return StructType.fromJson(fields)
