"""Statements people bring from Delta Lake, Spark and the JVM system, with what each gives here.

`{t}` is the table: its quoted path, or a name. The table has the partitions mon
and tue, four splits of one row each in each of them, and the versions 0 to 4.
"""

from __future__ import annotations

import pyarrow as pa

import indextables as it

DAYS = ("mon", "tue")


def make_familiar_table(path: str) -> it.Table:
    """A partitioned table of five versions."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
    table = it.Table.create(path, schema, partition_by=["day"])
    for n in range(4):
        rows = {"id": [2 * n, 2 * n + 1], "day": list(DAYS), "message": ["disk full", "all quiet"]}
        table.append(pa.table(rows, schema))
    return table


WORKING = {
    "SHOW PARTITIONS {t}": {"day": "mon", "num_files": 4, "num_rows": 4},
    "DESCRIBE HISTORY {t} LIMIT 1": {"version": 4, "operation": "WRITE"},
    "DESC DETAIL {t}": {"version": 4, "num_rows": 8, "num_files": 8},
    "VACUUM {t} RETAIN 168 HOURS DRY RUN": {"status": "DRY RUN", "retention_hours": 168},
    "RESTORE {t} TO TIMESTAMP AS OF '2999-01-01'": {"status": "NO ACTION", "restored_version": 4},
    "OPTIMIZE {t} WHERE day = 'mon'": {"status": "SUCCESS", "merged_files": 4, "merge_groups": 1},
    "RESTORE TABLE {t} TO VERSION AS OF 2": {"status": "SUCCESS", "restored_version": 2},
}
"""The first row that each statement returns, as far as it is fixed; those that change the table stand last."""

UNNEEDED = {
    "ANALYZE TABLE {t} COMPUTE STATISTICS": "DESCRIBE INDEXTABLES STATE",
    "PREWARM INDEXTABLES CACHE {t} FOR SEGMENTS (TERM_DICT, FAST_FIELD) ON FIELDS (message)": "indexCache.dir",
    "WAIT FOR INDEXTABLES PREWARM JOBS": "indexCache.dir",
    "DESCRIBE INDEXTABLES MERGE JOBS": "DESCRIBE INDEXTABLES HISTORY",
    "FLUSH INDEXTABLES SEARCHER CACHE": "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE",
    "FLUSH INDEXTABLES DISK CACHE": "INVALIDATE INDEXTABLES TRANSACTION LOG CACHE",
    "ENABLE INDEXTABLES PROFILER": "table.last_scan",
    "RESET INDEXTABLES PROFILER": "table.last_scan",
}
"""Statements that succeed without doing anything, and words of the sentence they return."""

REFUSED = {
    "OPTIMIZE {t} ZORDER BY (id)": "sort the rows before",
    "FSCK REPAIR TABLE {t}": "CHECK INDEXTABLES",
    "DESCRIBE INDEXTABLES PROFILER": "table.last_scan",
    "DESCRIBE INDEXTABLES DISK CACHE": "indexCache.dir",
    "DESCRIBE INDEXTABLES STORAGE STATS": "DATA SKIPPING STATS",
    "DESCRIBE INDEXTABLES ENVIRONMENT": "SET in spark.sql",
}
"""Statements that have no counterpart, and words of the sentence that says what to type."""
