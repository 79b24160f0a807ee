"""The changes of a table as a DataFrame: each task reads those of some commits, as `Table.changes` does.

The driver reads the commits, never rows. Files that only came or only left are shared out one by one;
a commit that does both is one task, which compares its rows on its local disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import OptionError, TableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.log.transaction_log import TransactionLog
from indextables.ops.read.changes import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangePlan,
    ChangeReader,
    ChangeRequest,
    CommitFiles,
    plan_changes,
)
from indextables.spark.open_logs import open_log
from indextables.spark.options import CallSettings
from indextables.spark.workers import default_width, frame_of_tasks, shared_out, spark_schema

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

READ_CHANGES = "readChangeFeed"
_RANGE = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp")
_TASKS_PER_CORE = 4


def reads_changes(settings: CallSettings) -> bool:
    """Whether a read asks for changes in the place of rows; the options that say which are for it alone."""
    if settings.flag(READ_CHANGES):
        return True
    key = next((key for key in _RANGE if key in settings.call), None)
    if key is not None:
        raise OptionError(
            f"option {key!r} says which changes are read; it needs the option {READ_CHANGES!r}", key=key
        )
    return False


def request_of(settings: CallSettings, columns: Sequence[str] | None = None) -> ChangeRequest:
    """The commits that the options of a read name."""
    call = settings.call
    for end in ("starting", "ending"):
        if f"{end}Version" in call and f"{end}Timestamp" in call:
            raise OptionError(
                f"options '{end}Version' and '{end}Timestamp' cannot be used together", key=f"{end}Timestamp"
            )
    if not {"startingVersion", "startingTimestamp"} & call.keys():
        raise OptionError(
            "changes begin with a version or at a time: set the option 'startingVersion' or "
            "'startingTimestamp'",
            key="startingVersion",
        )
    if "query" in call:
        raise OptionError(f"options 'query' and {READ_CHANGES!r} cannot be used together", key="query")
    return ChangeRequest(
        settings.number("startingVersion"),
        settings.number("endingVersion"),
        call.get("startingTimestamp"),
        columns=columns,
        to_time=call.get("endingTimestamp"),
    )


def changes_frame(spark: Any, snapshot: Snapshot, table: Mapping[str, str], request: ChangeRequest) -> Any:
    """A DataFrame over the changes of some commits, up to a version."""
    require_own(snapshot)
    log = open_log(spark, snapshot.store.uri, table)
    timeline = log.timeline()
    plan = plan_changes(log, snapshot, request, timeline)
    reader = ChangeReader(log, plan, timeline)
    commits = [reader.files(version) for version in range(plan.first, plan.last + 1)]
    return frame_of_commits(spark, snapshot, table, plan, commits)


def frame_of_commits(
    spark: Any, snapshot: Snapshot, table: Mapping[str, str], plan: ChangePlan, commits: Sequence[CommitFiles]
) -> Any:
    """A DataFrame over the changed rows of some commits."""
    uri, options = snapshot.store.uri, dict(table)
    parts = [part for commit in commits for part in commit.parts()]
    tasks = shared_out(parts, default_width(spark) * _TASKS_PER_CORE, lambda part: part.bytes)

    def run(task: tuple[CommitFiles, ...]) -> Iterator[pa.RecordBatch]:
        log = TransactionLog.open(uri, options)
        reader = ChangeReader(log, plan)
        for commit in task:
            yield from reader.rows(commit)

    return frame_of_tasks(spark, run, tasks, change_struct(snapshot, plan.shown.names))


def change_struct(snapshot: Snapshot, names: Sequence[str] | None = None) -> Any:
    """The columns of changes, or some of them, as Spark has them."""
    from pyspark.sql.types import LongType, StringType, StructType, TimestampType

    every = spark_schema(snapshot.metadata.schema_string)
    every = every.add(CHANGE_TYPE, StringType(), False).add(COMMIT_VERSION, LongType(), False)
    every = every.add(COMMIT_TIMESTAMP, TimestampType(), False)
    return every if names is None else StructType([every[name] for name in names])


def require_own(snapshot: Snapshot) -> None:
    """Raise for a Delta table, whose changes are not read."""
    if isinstance(snapshot, DeltaSnapshot):
        raise TableError(
            f"{snapshot.store.uri} is a Delta table; changes are read of tables of IndexTables",
            uri=snapshot.store.uri,
        )
