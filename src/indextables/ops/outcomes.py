"""What the maintenance verbs return: one frozen value each, and the columns SQL shows of it.

The order of the fields is the order of the columns. An `int` is a long unless
its type says otherwise.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from indextables.lazy import later, pa
from indextables.records import dataclass

if TYPE_CHECKING:
    from indextables.display import notebook
else:
    notebook = later("indextables.display.notebook")

SUCCESS = "SUCCESS"
DRY_RUN = "DRY RUN"
NO_ACTION = "NO ACTION"


Int = Annotated[int, "int32"]
"""A number that SQL shows as an int rather than a long."""


NOT_A_COLUMN = {"column": False}
"""Marks a field that Python shows and SQL does not."""


class Reported:
    """A result that can be shown as one row."""

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """The row that the SQL command returns."""
        return rows_to_arrow(type(self), [self])

    def _repr_html_(self) -> str:
        return notebook.result_html(self)


def arrow_schema(kind: type[Any]) -> pa.Schema:
    """The columns of a result type."""
    types = {int: pa.int64(), Int: pa.int32(), str: pa.string(), bool: pa.bool_()}
    hints = typing.get_type_hints(kind, include_extras=True)
    columns = []
    for item in dataclasses.fields(kind):
        if not item.metadata.get("column", True):
            continue
        hint = hints[item.name]
        optional = next((part for part in typing.get_args(hint) if part in types), hint)
        columns.append((item.name, types[hint if hint in types else optional]))
    return pa.schema(columns)


def rows_to_arrow(kind: type[Any], rows: Sequence[Any]) -> pa.Table:
    """Rows of one result type as a table."""
    schema = arrow_schema(kind)
    columns = [
        pa.array([getattr(row, name) for row in rows], schema.field(name).type) for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class RepairResult(Reported):
    """What REPAIR found and wrote."""

    source_path: str
    target_path: str
    source_version: int
    total_splits: Int
    valid_splits: Int
    missing_splits: Int
    status: str
    missing: tuple[str, ...] = field(default=(), metadata=NOT_A_COLUMN)
    """The paths of the splits that are left out, because they are not there or not whole."""
    kept_log: str | None = field(default=None, metadata=NOT_A_COLUMN)
    """With SWAP, where the old log is kept."""


@dataclass(frozen=True, slots=True)
class MergeResult(Reported):
    """What MERGE SPLITS did, or would do."""

    table_path: str
    status: str
    merged_files: int
    merge_groups: int
    original_size_bytes: int
    merged_size_bytes: int | None
    skipped_files: int
    message: str


@dataclass(frozen=True, slots=True)
class PurgeRowsResult(Reported):
    """What PURGE ROWS wrote anew, or would write anew."""

    table_path: str
    status: str
    rows_purged: int
    """Deleted rows that the files of the newest version no longer hold."""
    files_rewritten: int
    original_size_bytes: int
    new_size_bytes: int | None
    skipped_files: int
    """Files that cannot be read: they still have deleted rows."""
    message: str


@dataclass(frozen=True, slots=True)
class RefreshResult(Reported):
    """What a refresh of a companion index did, or would do."""

    table_path: str
    source_path: str
    status: str
    """`success`, `no_action` or `dry_run`."""
    source_version: int | None
    """The version of the source that is indexed now; None for files without a log."""
    splits_created: int
    splits_invalidated: int
    parquet_files_indexed: int
    parquet_bytes_downloaded: int | None
    """The size of the files that were read; None where nothing was."""
    split_bytes_uploaded: int | None
    duration_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class CompanionStatus(Reported):
    """How far a companion index is up to date with its source."""

    table_path: str
    source_path: str
    source_version: int | None
    """The newest version of the source; None for files without a log."""
    indexed_version: int | None
    """The version of the source that the last refresh indexed."""
    files_indexed: int
    files_stale: int
    """Live files that are not indexed yet: a search reads their rows."""
    files_left_out: int
    """Live files of partitions that are not to be indexed: a search reads their rows."""
    files_gone: int
    """Files that are indexed and gone: a search leaves their rows out."""
    splits: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class IndexResult(Reported):
    """What CREATE, DROP or REFRESH INDEX did."""

    index_name: str
    table_path: str
    index_path: str | None
    """The companion, or the table itself if it is one of ours."""
    status: str
    waiting: int | None
    """Files or splits that are not indexed yet: a search reads their rows."""
    message: str


@dataclass(frozen=True, slots=True)
class IndexDescription(Reported):
    """An index of a table, as SHOW INDEXES lists it."""

    index_name: str | None
    """None for columns of a table of ours that are indexed without a name."""
    table_path: str
    index_path: str
    columns: str
    """The columns and how each is indexed."""
    state: str
    """`CURRENT`, `STALE` if something is not indexed yet, or `BROKEN`."""
    waiting: int | None
    message: str


@dataclass(frozen=True, slots=True)
class ColumnSuggestion(Reported):
    """Whether statistics of one column pay, and what speaks for it."""

    column: str
    suggested: bool
    filters: int
    """How many of the filters use the column."""
    files: int
    """The live files."""
    files_skipped: int
    """Files that its statistics rule out, summed over the filters."""
    files_without_statistics: int
    """Live files without a minimum and a maximum of it; with them, they might be skipped too."""
    reason: str


@dataclass(frozen=True, slots=True)
class StatisticsSuggestion:
    """For which columns statistics pay; ANALYZE ... FOR SKIPPING shows a row for each column."""

    version: int
    """The version that was looked at, or the one that holds the suggestion where it was stored."""
    columns: tuple[ColumnSuggestion, ...]
    stored: bool = False

    @property
    def suggested(self) -> tuple[str, ...]:
        """The columns for which statistics pay."""
        return tuple(column.column for column in self.columns if column.suggested)

    def to_arrow(self) -> pa.Table:
        """One row for each column that can have statistics."""
        return rows_to_arrow(ColumnSuggestion, self.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return notebook.result_html(self)


@dataclass(frozen=True, slots=True)
class PurgeResult(Reported):
    """What PURGE INDEXTABLE deleted, or would delete."""

    table_path: str
    status: str
    orphaned_files_found: int
    orphaned_files_deleted: int
    bytes_deleted: int
    retention_hours: int
    transaction_logs_deleted: int
    dry_run: bool
    duration_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class DropPartitionsResult(Reported):
    """What DROP INDEXTABLES PARTITIONS removed from the log."""

    table_path: str
    status: str
    partitions_dropped: int
    splits_removed: int
    total_size_bytes: int
    message: str


@dataclass(frozen=True, slots=True)
class CheckpointResult(Reported):
    """The checkpoint that CHECKPOINT INDEXTABLES wrote."""

    table_path: str
    status: str
    checkpoint_version: int
    num_files: int
    size_bytes: int
    message: str


@dataclass(frozen=True, slots=True)
class TruncateHistoryResult(Reported):
    """What TRUNCATE INDEXTABLES TIME TRAVEL deleted, or would delete."""

    table_path: str
    status: str
    version: int
    versions_deleted: int
    checkpoints_deleted: int
    bytes_deleted: int
    dry_run: bool
    message: str


@dataclass(frozen=True, slots=True)
class RestoreResult(Reported):
    """What RESTORE INDEXTABLES committed."""

    table_path: str
    status: str
    restored_version: int
    version: int
    files_added: int
    files_removed: int
    message: str


@dataclass(frozen=True, slots=True)
class DeleteResult(Reported):
    """What DELETE FROM INDEXTABLES removed and rewrote."""

    table_path: str
    status: str
    version: int
    rows_deleted: int | None
    files_removed: int
    files_rewritten: int
    files_added: int
    attempts: int
    conflicts: int
    message: str


@dataclass(frozen=True, slots=True)
class UpdateResult(Reported):
    """What UPDATE changed."""

    table_path: str
    status: str
    version: int
    rows_updated: int
    files_removed: int
    files_added: int
    attempts: int
    conflicts: int
    message: str


@dataclass(frozen=True, slots=True)
class UpsertResult(Reported):
    """What MERGE updated, deleted and inserted."""

    table_path: str
    status: str
    version: int
    rows_updated: int
    rows_deleted: int
    rows_inserted: int
    files_removed: int
    files_added: int
    attempts: int
    conflicts: int
    message: str


@dataclass(frozen=True, slots=True)
class ConstraintResult(Reported):
    """What ADD CONSTRAINT, DROP CONSTRAINT or SET NOT NULL committed."""

    table_path: str
    status: str
    version: int
    message: str


@dataclass(frozen=True, slots=True)
class NotNeededResult(Reported):
    """The answer to a statement of another system whose purpose is fulfilled here without it."""

    status: str
    message: str


@dataclass(frozen=True, slots=True)
class InvalidateResult(Reported):
    """Which caches INVALIDATE INDEXTABLES TRANSACTION LOG CACHE emptied."""

    table_path: str | None
    status: str
    message: str
