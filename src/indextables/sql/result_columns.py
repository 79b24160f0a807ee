"""The columns of the rows that a maintenance command returns, known before it runs.

Spark asks for them when it parses a statement, and for the rows when it runs it.
"""

from __future__ import annotations

from indextables.lazy import pa
from indextables.log.history import history_columns
from indextables.ops import outcomes
from indextables.ops.maintain import describe
from indextables.ops.maintain.check.findings import Finding
from indextables.ops.maintain.component_sizes import Component
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
    InvalidateCache,
    MergeSplits,
    Purge,
    PurgeRows,
    RefreshIndex,
    RepairLog,
    Restore,
    SetNotNull,
    ShowIndexes,
    ShowProperties,
    Subject,
    TruncateHistory,
    Unneeded,
    WriteCheckpoint,
)


def result_columns(command: Command) -> pa.Schema | None:
    """The columns of a command's rows; None where they depend on those of the table."""
    if isinstance(command, Describe):
        return _described(command.subject)
    if isinstance(command, ShowProperties):
        return describe.property_columns()
    kinds: dict[type[Command], type] = {
        AddConstraint: outcomes.ConstraintResult,
        DropConstraint: outcomes.ConstraintResult,
        SetNotNull: outcomes.ConstraintResult,
        CreateIndex: outcomes.IndexResult,
        DropIndex: outcomes.IndexResult,
        RefreshIndex: outcomes.IndexResult,
        ShowIndexes: outcomes.IndexDescription,
        AnalyzeSkipping: outcomes.ColumnSuggestion,
        BuildCompanion: outcomes.RefreshResult,
        CheckTable: Finding,
        DeleteRows: outcomes.DeleteResult,
        DropPartitions: outcomes.DropPartitionsResult,
        InvalidateCache: outcomes.InvalidateResult,
        MergeSplits: outcomes.MergeResult,
        Purge: outcomes.PurgeResult,
        PurgeRows: outcomes.PurgeRowsResult,
        RepairLog: outcomes.RepairResult,
        Restore: outcomes.RestoreResult,
        TruncateHistory: outcomes.TruncateHistoryResult,
        Unneeded: outcomes.NotNeededResult,
        WriteCheckpoint: outcomes.CheckpointResult,
    }
    kind = kinds.get(type(command))
    return None if kind is None else outcomes.arrow_schema(kind)


def _described(subject: Subject) -> pa.Schema:
    match subject:
        case Subject.TRANSACTION_LOG:
            return describe.log_columns()
        case Subject.STATE:
            return describe.state_columns()
        case Subject.HISTORY:
            return history_columns()
        case Subject.SKIPPED_FILES:
            return describe.skipped_columns()
        case Subject.COMPONENT_SIZES:
            return outcomes.arrow_schema(Component)
        case Subject.DATA_SKIPPING_STATS:
            return describe.skipping_columns()
