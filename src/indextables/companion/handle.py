"""A companion index as its owner sees it: make it, bring it up to date, ask how far it is.

Rows are read by opening it like any table: `Table.open(at)` answers with the rows of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.companion.make import BuildRequest, opened, run_build
from indextables.companion.refresh import run_refresh, status_of
from indextables.companion.settings import ColumnChoice
from indextables.connection import open_log
from indextables.ops.progress import in_notebook

if TYPE_CHECKING:
    from indextables.companion.settings import CompanionSettings
    from indextables.log.transaction_log import TransactionLog
    from indextables.ops.outcomes import CompanionStatus, RefreshResult


class Companion:
    """A search index over a Delta table or over Parquet files, which stay where they are."""

    def __init__(self, log: TransactionLog, settings: CompanionSettings) -> None:
        self._log = log
        self._settings = settings

    def __repr__(self) -> str:
        return f"Companion({self.uri!r}, source={self.source!r})"

    @property
    def uri(self) -> str:
        """Where the index is; `Table.open` of it reads the rows of the source."""
        return self._log.uri

    @property
    def source(self) -> str:
        """The table whose rows it indexes."""
        return self._settings.source

    def refresh(self, *, version: int | None = None, dry_run: bool = False) -> RefreshResult:
        """Index the files that are new in the source, and forget those that are gone.

        With `version` the index is brought to that version of the source. With `dry_run` nothing is
        written, and the result says what would be.
        """
        return run_refresh(self._log, version=version, dry_run=dry_run, progress=in_notebook())

    def status(self) -> CompanionStatus:
        """How many files of the source are indexed, are not yet, or are gone; two logs are read."""
        return status_of(self._log)


def companion(
    source: Any,
    at: Any,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    spark: Any = None,
    *,
    exclude: Sequence[str] | None = None,
    where: str | None = None,
) -> Companion:
    """Open the companion index at a place, or make it and build it.

    `source` is a Delta table or a directory of Parquet files; it is only ever read. `columns` says how its
    columns are indexed, as `{"message": "text", "code": "string"}`; a list names columns of text, and with
    `exclude` every column of text but some is indexed. `where` is a condition on partition columns: other
    partitions are searched by reading them. An index that is there has to be of the same source and columns,
    and is opened as it is: `refresh` brings it up to date.
    """
    log = open_log(at, options, spark)
    request = BuildRequest(str(source), ColumnChoice.of(columns, exclude), where)
    settings = opened(log, request)
    if settings is None:
        settings, _ = run_build(log, request, in_notebook())
    return Companion(log, settings)
