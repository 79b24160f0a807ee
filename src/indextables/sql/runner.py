"""The runner: one command in, one Arrow table of rows out.

A command names its table as the user typed it. A path is used as it is; the
name of a view is looked up by the Runtime of a Spark session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indextables.companion.merge import merge_splits
from indextables.connection import options_and_runtime
from indextables.errors import CommandError, NotATableError, TableError
from indextables.lazy import later, pa
from indextables.log.table_kind import TableKind, read_only
from indextables.log.transaction_log import TransactionLog
from indextables.ops.maintain import describe
from indextables.ops.maintain.check.run import run_check
from indextables.ops.maintain.checkpoint import run_checkpoint
from indextables.ops.maintain.component_sizes import component_rows
from indextables.ops.maintain.describe import partition_rows, skipping_rows
from indextables.ops.maintain.invalidate_cache import run_invalidate
from indextables.ops.maintain.purge import PurgeRequest, run_purge
from indextables.ops.maintain.repair.repair import RepairRequest
from indextables.ops.maintain.repair.run import run_repair
from indextables.ops.maintain.suggest_statistics import SuggestionRequest, run_suggest_statistics
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.ops.outcomes import IndexDescription, NotNeededResult, rows_to_arrow
from indextables.ops.progress import Progress, in_notebook, silent
from indextables.ops.read.scan import files
from indextables.ops.rewrite.drop_partitions import run_drop_partitions
from indextables.ops.rewrite.merge import MergeRequest
from indextables.ops.rewrite.purge_rows import PurgeRowsRequest, run_purge_rows
from indextables.ops.rewrite.restore import run_restore
from indextables.ops.write.alter import run_set_not_null
from indextables.ops.write.constraints import run_add_constraint, run_drop_constraint
from indextables.ops.write.delete import run_delete
from indextables.options import Options
from indextables.runtime import LOCAL, Runtime
from indextables.sql.commands import (
    AddConstraint,
    AnalyzeSkipping,
    BuildCompanion,
    CheckTable,
    Command,
    CreateIndex,
    DeleteRows,
    Describe,
    DropConstraint,
    DropIndex,
    DropPartitions,
    IndexCommand,
    InvalidateCache,
    ListFiles,
    MergeSplits,
    Purge,
    PurgeRows,
    RefreshIndex,
    RepairLog,
    Restore,
    SetNotNull,
    ShowIndexes,
    ShowPartitions,
    ShowProperties,
    Subject,
    TableName,
    TruncateHistory,
    Unneeded,
    WriteCheckpoint,
)
from indextables.sql.commands.familiar import path_of_source
from indextables.sql.commands.grammar import is_command, parse_command
from indextables.sql.result_columns import result_columns
from indextables.sql.select.conditions import searched_condition
from indextables.sql.select.run import is_select, run_select

if TYPE_CHECKING:
    from indextables.companion import make as companion_build
    from indextables.companion import named_indexes
    from indextables.companion import settings as companion_settings
    from indextables.log.delta import snapshot as delta_snapshot
    from indextables.log.delta.snapshot import DeltaSnapshot
    from indextables.log.snapshot import Snapshot
    from indextables.ops.delta import describe as describe_delta
else:
    companion_build = later("indextables.companion.make")
    named_indexes = later("indextables.companion.named_indexes")
    companion_settings = later("indextables.companion.settings")
    delta_snapshot = later("indextables.log.delta.snapshot")
    describe_delta = later("indextables.ops.delta.describe")


def sql(text: str, spark: Any = None, options: Mapping[str, Any] | None = None) -> pa.Table:
    """Run one maintenance command, or a SELECT over tables named by path, and return its rows.

    A SELECT is run by DuckDB, without Spark and Java, and may search: ``FROM 'path'
    WHERE message indexquery 'words'``. Other statements are a CommandError here;
    `spark.sql` takes every kind after `connect`. With `spark`, views can be named in
    commands, the session's configuration counts and long work runs on its executors.
    """
    if not is_command(text) and is_select(text):
        if spark is not None:
            raise CommandError(
                "a SELECT with a session is for spark.sql; leave spark out to run it without Spark"
            )
        return run_select(text, options=options)
    command = parse_command(text)
    if isinstance(command, RepairLog):
        path: str | None = command.source
    elif isinstance(command, BuildCompanion):
        path = command.at
    else:
        path = None if command.table is None else command.table.path
    resolved, runtime = options_and_runtime(spark, options, path)
    return run(command, options=resolved, runtime=runtime, progress=in_notebook())


def columns(text: str, spark: Any = None) -> pa.Schema:
    """The columns of a maintenance command's rows, without running it.

    SHOW PARTITIONS has columns of the table; it only reads, and is run for them.
    """
    command = parse_command(text)
    schema = result_columns(command)
    if isinstance(command, ListFiles):
        options, runtime = options_and_runtime(spark, None, command.table.path)
        uri = _address(command.table, runtime)
        return _snapshot(TransactionLog.open(uri, options, runtime=runtime)).files_schema(command.columns)
    return sql(text, spark).schema if schema is None else schema


def run(
    command: Command,
    *,
    options: Mapping[str, Any] | Options | None = None,
    runtime: Runtime = LOCAL,
    progress: Progress = silent,
) -> pa.Table:
    """Carry a command out and return its rows."""
    resolved = Options.of(options)
    if isinstance(command, Unneeded):
        return NotNeededResult("NOT NEEDED", command.message).to_arrow()
    if isinstance(command, RepairLog):
        request = RepairRequest(
            command.source, command.target, command.from_splits, command.up_to_version, command.swap
        )
        return run_repair(request, resolved, runtime, progress).to_arrow()
    if isinstance(command, BuildCompanion):
        return _companion(command, resolved, runtime, progress)
    uri = None if command.table is None else _address(command.table, runtime)
    if isinstance(command, IndexCommand):
        return _index(command, str(uri), resolved, runtime, progress)
    if isinstance(command, InvalidateCache):
        return run_invalidate(uri).to_arrow()
    if isinstance(command, CheckTable):
        return run_check(str(uri), resolved, runtime, progress).to_arrow()
    if isinstance(command, Describe) and command.subject is Subject.DATA_SKIPPING_STATS:
        return skipping_rows(uri)
    assert uri is not None
    log = TransactionLog.open(uri, resolved, runtime=runtime)
    if isinstance(command, ListFiles):
        return files(_snapshot(log), command.where, columns=command.columns)[0]
    try:
        return _describe(command, log) if isinstance(command, Describe) else _change(command, log, progress)
    except NotATableError as other:
        if other.fields.get("kind") is not TableKind.DELTA:
            raise
    return _of_delta(command, _delta(log))


def _companion(command: BuildCompanion, options: Options, runtime: Runtime, progress: Progress) -> pa.Table:
    log = TransactionLog.open(command.at, options, runtime=runtime)
    named = command.columns or command.include or command.exclude
    columns = companion_settings.ColumnChoice(dict(command.columns), command.include, command.exclude)
    request = companion_build.BuildRequest(
        command.source,
        columns if named else None,
        command.where,
        format=command.format,
        version=command.from_version,
        dry_run=command.dry_run,
    )
    return companion_build.run_build(log, request, progress)[1].to_arrow()


def _index(
    command: IndexCommand, uri: str, options: Options, runtime: Runtime, progress: Progress
) -> pa.Table:
    indexes = named_indexes.NamedIndexes(uri, options, runtime, progress)
    match command:
        case CreateIndex():
            created = indexes.create(
                command.name, command.columns, dict(command.options), if_not_exists=command.if_not_exists
            )
            return created.to_arrow()
        case DropIndex():
            return indexes.drop(command.name, if_exists=command.if_exists).to_arrow()
        case RefreshIndex():
            return indexes.refresh(command.name).to_arrow()
        case ShowIndexes():
            return rows_to_arrow(IndexDescription, indexes.show())


def _snapshot(log: TransactionLog) -> Snapshot:
    """The newest version of a table of ours or of Delta."""
    try:
        return log.snapshot(max_staleness_s=0)
    except NotATableError as other:
        if other.fields.get("kind") is not TableKind.DELTA:
            raise
    return _delta(log)


def _delta(log: TransactionLog) -> DeltaSnapshot:
    return delta_snapshot.open_snapshot(log.uri, options=log.options, runtime=log.runtime)


def _of_delta(command: Command, snapshot: DeltaSnapshot) -> pa.Table:
    """The rows of a command that reads a Delta table; every other command is refused by its words."""
    match command:
        case Describe(subject=Subject.STATE):
            return describe_delta.state_rows(snapshot)
        case Describe(subject=Subject.HISTORY):
            return describe_delta.history_rows(snapshot, command.limit)
        case ShowPartitions():
            return describe_delta.partition_rows(snapshot)
        case ShowProperties():
            uri, properties = snapshot.store.uri, describe_delta.properties(snapshot)
            return describe.property_rows(properties, command.key, uri)
        case Describe():
            raise TableError(
                f"DESCRIBE INDEXTABLES {command.subject.value} is for tables of IndexTables, and "
                f"{snapshot.store.uri} is a Delta table: DESCRIBE HISTORY, DESCRIBE DETAIL, SHOW PARTITIONS, "
                "SHOW TBLPROPERTIES and DESCRIBE INDEXTABLES FILES describe it.",
                uri=snapshot.store.uri,
            )
    raise read_only(snapshot.store.uri, REFUSED[type(command)])


REFUSED: dict[type[Command], str] = {
    AddConstraint: "ALTER TABLE ADD CONSTRAINT",
    AnalyzeSkipping: "ANALYZE ... FOR SKIPPING",
    DeleteRows: "DELETE FROM INDEXTABLES",
    DropConstraint: "ALTER TABLE DROP CONSTRAINT",
    DropPartitions: "DROP INDEXTABLES PARTITIONS",
    MergeSplits: "MERGE SPLITS, or OPTIMIZE,",
    Purge: "PURGE INDEXTABLE, or VACUUM,",
    PurgeRows: "PURGE ROWS, or REORG TABLE,",
    Restore: "RESTORE",
    SetNotNull: "ALTER TABLE ALTER COLUMN SET NOT NULL",
    TruncateHistory: "TRUNCATE INDEXTABLES TIME TRAVEL",
    WriteCheckpoint: "CHECKPOINT INDEXTABLES",
}


def _address(name: TableName, runtime: Runtime) -> str:
    if name.path is not None:
        return name.path
    by_path = path_of_source(name.view)
    if by_path is not None:
        return by_path
    if runtime.address_of is None:
        raise CommandError(
            f"{name} is the name of a view, and there is no Spark session here to look it up in. "
            f"Write the path of the table in quotes instead: '/path/of/{name}'.",
            name=str(name),
        )
    address = runtime.address_of(name.view)
    if address is None:
        raise CommandError(
            f"{name} is not a view of an IndexTables table. Create one with CREATE TEMPORARY VIEW {name} "
            f"USING indextables OPTIONS (path '...'), or write the path of the table in quotes.",
            name=str(name),
        )
    return address


def _describe(command: Describe, log: TransactionLog) -> pa.Table:
    match command.subject:
        case Subject.TRANSACTION_LOG:
            return describe.log_rows(log, include_all=command.include_all)
        case Subject.STATE:
            return describe.describe_state(log).to_arrow()
        case Subject.HISTORY:
            return log.history(command.limit)
        case Subject.SKIPPED_FILES:
            return describe.skipped_rows(log)
        case Subject.COMPONENT_SIZES:
            return component_rows(log)
    raise AssertionError(command.subject)


def _change(command: Command, log: TransactionLog, progress: Progress) -> pa.Table:
    match command:
        case MergeSplits():
            merge = MergeRequest(
                command.where,
                command.target_bytes,
                command.max_dest_splits,
                command.max_source_splits,
                command.dry_run,
            )
            return merge_splits(log, merge, progress).to_arrow()
        case Purge():
            request = PurgeRequest(
                command.older_than_hours, command.log_retention_hours, command.dry_run,
                inventory=command.inventory, lite=command.lite,
            )  # fmt: skip
            return run_purge(log, request, progress).to_arrow()
        case PurgeRows():
            rows = PurgeRowsRequest(command.where, command.dry_run)
            return run_purge_rows(log, rows, progress).to_arrow()
        case DropPartitions():
            return run_drop_partitions(log, command.where).to_arrow()
        case WriteCheckpoint():
            return run_checkpoint(log).to_arrow()
        case AnalyzeSkipping():
            return run_suggest_statistics(
                log, SuggestionRequest(command.columns, store=command.store)
            ).to_arrow()
        case TruncateHistory():
            return run_truncate(log, dry_run=command.dry_run).to_arrow()
        case Restore():
            version = command.version
            if version is None:
                version = log.snapshot(as_of=command.as_of).version
            return run_restore(log, version, progress).to_arrow()
        case ShowPartitions():
            return partition_rows(log.snapshot(max_staleness_s=0))
        case ShowProperties():
            configuration = log.snapshot(max_staleness_s=0).metadata.configuration
            return describe.property_rows(configuration, command.key, log.uri)
        case AddConstraint():
            return run_add_constraint(log, command.name, command.condition).to_arrow()
        case DropConstraint():
            return run_drop_constraint(log, command.name, if_exists=command.if_exists).to_arrow()
        case SetNotNull():
            return run_set_not_null(log, command.column).to_arrow()
        case DeleteRows():
            condition = searched_condition(command.where)
            deleted = run_delete(log, condition.where, progress, searches=condition.searches, with_text=True)
            return deleted.to_arrow()
    raise AssertionError(command)
