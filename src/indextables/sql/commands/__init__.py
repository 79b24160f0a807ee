"""The maintenance commands as values: what a statement says, with nothing of how it was typed.

The grammar makes them from text, the runner carries them out. A command knows
its table only as the user named it; the runner turns the name into a place.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class TableName(Struct, frozen=True):
    """A table as a statement names it: a path, or the parts of a view's name."""

    path: str | None = None
    view: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.path if self.path is not None else ".".join(self.view)


class RepairLog(Struct, frozen=True):
    """REPAIR INDEXFILES TRANSACTION LOG: write a clean log beside a broken one, and put it in its place."""

    source: str
    target: str
    from_splits: bool = False
    up_to_version: int | None = None
    swap: bool = False


class BuildCompanion(Struct, frozen=True):
    """BUILD INDEXTABLES COMPANION: index Delta or Parquet where it lies, or what is new there."""

    source: str
    format: str
    at: str
    columns: tuple[tuple[str, str], ...] = ()
    """Columns and how each is indexed; none for a companion that is there."""
    include: tuple[str, ...] | None = None
    """Index these columns and no others."""
    exclude: tuple[str, ...] | None = None
    """Index every column of text but these."""
    where: str | None = None
    """Index the files of these partitions alone."""
    from_version: int | None = None
    dry_run: bool = False


class CheckTable(Struct, frozen=True):
    """CHECK INDEXTABLES: say what is wrong with a table, and change nothing."""

    table: TableName


class MergeSplits(Struct, frozen=True):
    """MERGE SPLITS: turn small splits into larger ones."""

    table: TableName
    where: str | None = None
    target_bytes: int | None = None
    max_dest_splits: int | None = None
    max_source_splits: int | None = None
    dry_run: bool = False


class PurgeRows(Struct, frozen=True):
    """PURGE ROWS, also spelt REORG TABLE ... APPLY (PURGE): write files that have deleted rows anew."""

    table: TableName
    where: str | None = None
    dry_run: bool = False


class Purge(Struct, frozen=True):
    """PURGE INDEXTABLE: delete split files that no version needs any more."""

    table: TableName
    older_than_hours: int | None = None
    log_retention_hours: int | None = None
    dry_run: bool = False
    inventory: str | None = None
    lite: bool = False


class DropPartitions(Struct, frozen=True):
    """DROP INDEXTABLES PARTITIONS: remove whole partitions from the log."""

    table: TableName
    where: str


class WriteCheckpoint(Struct, frozen=True):
    """CHECKPOINT INDEXTABLES, also spelt COMPACT: write a checkpoint of the newest version."""

    table: TableName


class AnalyzeSkipping(Struct, frozen=True):
    """ANALYZE ... FOR SKIPPING: suggest for which columns statistics pay, and store that if it says STORE."""

    table: TableName
    columns: tuple[str, ...] | None = None
    store: bool = False


class TruncateHistory(Struct, frozen=True):
    """TRUNCATE INDEXTABLES TIME TRAVEL: keep the newest version only."""

    table: TableName
    dry_run: bool = False


class Subject(Enum):
    """The subject of DESCRIBE INDEXTABLES."""

    TRANSACTION_LOG = "TRANSACTION LOG"
    STATE = "STATE"
    HISTORY = "HISTORY"
    SKIPPED_FILES = "SKIPPED FILES"
    COMPONENT_SIZES = "COMPONENT SIZES"
    DATA_SKIPPING_STATS = "DATA SKIPPING STATS"


class Describe(Struct, frozen=True):
    """DESCRIBE INDEXTABLES: read facts about a table, or about skipping in this process."""

    subject: Subject
    table: TableName | None = None
    include_all: bool = False
    limit: int | None = None
    """How many versions of a history, the newest first; None: all of them."""


class InvalidateCache(Struct, frozen=True):
    """INVALIDATE INDEXTABLES TRANSACTION LOG CACHE: forget what was read, of one table or of all."""

    table: TableName | None = None


class Restore(Struct, frozen=True):
    """RESTORE INDEXTABLES: make an older version the newest again, named by its number or by a moment."""

    table: TableName
    version: int | None = None
    as_of: str | None = None


class DeleteRows(Struct, frozen=True):
    """DELETE FROM INDEXTABLES: remove the rows that match."""

    table: TableName
    where: str


class ShowPartitions(Struct, frozen=True):
    """SHOW PARTITIONS: the partitions of a table, with what is in each."""

    table: TableName


class ShowProperties(Struct, frozen=True):
    """SHOW TBLPROPERTIES: the properties of a table, or the one of a key."""

    table: TableName
    key: str | None = None


class ListFiles(Struct, frozen=True):
    """DESCRIBE INDEXTABLES FILES: the live files, or those that can hold a matching row."""

    table: TableName
    columns: tuple[str, ...] | None = None
    where: str | None = None


class AddConstraint(Struct, frozen=True):
    """ALTER TABLE ... ADD CONSTRAINT ... CHECK: refuse rows for which the condition is false."""

    table: TableName
    name: str
    condition: str


class DropConstraint(Struct, frozen=True):
    """ALTER TABLE ... DROP CONSTRAINT."""

    table: TableName
    name: str
    if_exists: bool = False


class SetNotNull(Struct, frozen=True):
    """ALTER TABLE ... ALTER COLUMN ... SET NOT NULL, which Spark itself refuses."""

    table: TableName
    column: str


class CreateIndex(Struct, frozen=True):
    """CREATE INDEX: index columns of a table, where it is or in a companion beside it."""

    table: TableName
    name: str
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    if_not_exists: bool = False


class DropIndex(Struct, frozen=True):
    """DROP INDEX: remove a companion, or the settings of some columns."""

    table: TableName
    name: str
    if_exists: bool = False


class RefreshIndex(Struct, frozen=True):
    """REFRESH INDEX: index what is not indexed yet."""

    table: TableName
    name: str


class ShowIndexes(Struct, frozen=True):
    """SHOW INDEXES: the indexes of a table, and how far each is."""

    table: TableName


IndexCommand = CreateIndex | DropIndex | RefreshIndex | ShowIndexes
"""The statements about an index of a table, which may be one of ours, Delta's or of Parquet files."""


class Unneeded(Struct, frozen=True):
    """A statement of another system whose purpose is fulfilled here without it."""

    message: str
    table: None = None


Command = (
    RepairLog
    | BuildCompanion
    | CheckTable
    | MergeSplits
    | Purge
    | PurgeRows
    | DropPartitions
    | WriteCheckpoint
    | AnalyzeSkipping
    | TruncateHistory
    | Describe
    | InvalidateCache
    | Restore
    | DeleteRows
    | ShowPartitions
    | ShowProperties
    | ListFiles
    | AddConstraint
    | DropConstraint
    | SetNotNull
    | CreateIndex
    | DropIndex
    | RefreshIndex
    | ShowIndexes
    | Unneeded
)
