"""Every maintenance statement with the columns it returns, and a table to run it on."""

from __future__ import annotations

import pyarrow as pa

import indextables as it

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
TEXTS = pa.map_(pa.string(), pa.string())
MOMENT = pa.timestamp("ms", tz="UTC")


def _columns(names: str, **types: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Columns in order; those not named otherwise are text when their name says so, and longs else."""
    text = {"table_path", "source_path", "target_path", "status", "message", "path", "reason", "operation"}
    return [(name, types.get(name, pa.string() if name in text else pa.int64())) for name in names.split()]


STATEMENTS: dict[str, list[tuple[str, pa.DataType]]] = {
    "REPAIR INDEXFILES TRANSACTION LOG '{t}/_transaction_log' AT LOCATION '{t}/_new'": _columns(
        "source_path target_path source_version total_splits valid_splits missing_splits status",
        total_splits=pa.int32(), valid_splits=pa.int32(), missing_splits=pa.int32(),
    ),
    "CHECK INDEXTABLES '{t}'": _columns(
        "severity subject finding consequence command",
        **dict.fromkeys(("severity", "subject", "finding", "consequence", "command"), pa.string()),
    ),
    "ANALYZE INDEXTABLES '{t}' FOR SKIPPING": _columns(
        "column suggested filters files files_skipped files_without_statistics reason",
        column=pa.string(), suggested=pa.bool_(),
    ),
    "MERGE SPLITS '{t}'": _columns(
        "table_path status merged_files merge_groups original_size_bytes merged_size_bytes skipped_files message"
    ),
    "PURGE ROWS '{t}'": _columns(
        "table_path status rows_purged files_rewritten original_size_bytes new_size_bytes skipped_files message"
    ),
    "PURGE INDEXTABLE '{t}'": _columns(
        "table_path status orphaned_files_found orphaned_files_deleted bytes_deleted retention_hours "
        "transaction_logs_deleted dry_run duration_ms message",
        dry_run=pa.bool_(),
    ),
    "DROP INDEXTABLES PARTITIONS FROM '{t}' WHERE day = '1'": _columns(
        "table_path status partitions_dropped splits_removed total_size_bytes message"
    ),
    "CHECKPOINT INDEXTABLES '{t}'": _columns("table_path status checkpoint_version num_files size_bytes message"),
    "COMPACT INDEXTABLES '{t}'": _columns("table_path status checkpoint_version num_files size_bytes message"),
    "TRUNCATE INDEXTABLES TIME TRAVEL '{t}'": _columns(
        "table_path status version versions_deleted checkpoints_deleted bytes_deleted dry_run message",
        dry_run=pa.bool_(),
    ),
    "DESCRIBE INDEXTABLES TRANSACTION LOG '{t}'": _columns(
        "version log_file action path partition_values size data_change num_records timestamp content",
        log_file=pa.string(), action=pa.string(), partition_values=TEXTS, data_change=pa.bool_(),
        timestamp=MOMENT, content=pa.string(),
    ),
    "DESCRIBE INDEXTABLES TRANSACTION LOG '{t}' INCLUDE ALL": _columns(
        "version log_file action path partition_values size data_change num_records timestamp content",
        log_file=pa.string(), action=pa.string(), partition_values=TEXTS, data_change=pa.bool_(),
        timestamp=MOMENT, content=pa.string(),
    ),
    "DESCRIBE INDEXTABLES STATE '{t}'": _columns(
        "table_path table_id version timestamp created num_files num_rows size_bytes index_size_bytes "
        "partition_columns protocol provider checkpoint_version versions_available log_files log_size_bytes "
        "skipped_files files_in_cooldown properties schema",
        table_id=pa.string(), timestamp=MOMENT, created=MOMENT, partition_columns=pa.list_(pa.string()),
        protocol=pa.string(), provider=pa.string(), versions_available=pa.string(), properties=TEXTS,
        schema=pa.string(),
    ),
    "DESCRIBE INDEXTABLES HISTORY '{t}'": _columns(
        "version timestamp operation operation_parameters operation_metrics user_metadata engine_info commit_id",
        timestamp=MOMENT, operation_parameters=TEXTS, operation_metrics=TEXTS, user_metadata=pa.string(),
        engine_info=pa.string(), commit_id=pa.string(),
    ),
    "DESCRIBE INDEXTABLES SKIPPED FILES '{t}'": _columns(
        "path reason operation skipped_at retry_after skip_count in_cooldown size partition_values",
        skipped_at=MOMENT, retry_after=MOMENT, skip_count=pa.int32(), in_cooldown=pa.bool_(),
        partition_values=TEXTS,
    ),
    "DESCRIBE INDEXTABLES COMPONENT SIZES '{t}'": _columns(
        "path num_rows component name size_bytes uncompressed_bytes", component=pa.string(), name=pa.string()
    ),
    "DESCRIBE INDEXTABLES DATA SKIPPING STATS": _columns(
        "table_path queries files_considered files_pruned_by_partition files_skipped_by_statistics files_kept "
        "skip_rate",
        skip_rate=pa.float64(),
    ),
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE FOR '{t}'": _columns("table_path status message"),
    "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE": _columns("table_path status message"),
    "RESTORE INDEXTABLES '{t}' TO VERSION 2": _columns(
        "table_path status restored_version version files_added files_removed message"
    ),
    "DELETE FROM INDEXTABLES '{t}' WHERE id = 3": _columns(
        "table_path status version rows_deleted files_removed files_rewritten files_added attempts conflicts message"
    ),
}  # fmt: skip

DRY_RUNS = [
    "MERGE SPLITS '{t}' DRY RUN",
    "MERGE SPLITS '{t}' WHERE day = '1' TARGET SIZE 10M MAX DEST SPLITS 1 MAX SOURCE SPLITS PER MERGE 2 DRY RUN",
    "PURGE ROWS '{t}' WHERE day = '1' DRY RUN",
    "PURGE INDEXTABLE '{t}' DRY RUN",
    "PURGE INDEXTABLE '{t}' OLDER THAN 0 HOURS TRANSACTION LOG RETENTION 0 HOURS DRY RUN",
    "TRUNCATE INDEXTABLES TIME TRAVEL '{t}' DRY RUN",
]
UNCHECKED = {"purge.retentionCheckEnabled": "false"}


def make_table(path: str) -> it.Table:
    """A partitioned table of four small splits in four versions, one of its columns indexed."""
    table = it.Table.create(path, SCHEMA, ["day"], options={"indexing.typemap.message": "text"})
    for n in range(4):
        ids = range(n * 5, n * 5 + 5)
        rows = {"id": ids, "day": [str(n % 2)] * 5, "message": [f"event {i} happened" for i in ids]}
        table.append(pa.table(rows, SCHEMA))
    return table
