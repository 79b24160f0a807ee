"""A companion index as its owner sees it: make it, bring it up to date, ask how far it is.

Rows are read by opening it like any table: `Table.open(at)` answers with the rows of the source.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indextables.companion.refresh import run_refresh, status_of
from indextables.companion.settings import CompanionSettings, own_schema, settings_for
from indextables.companion.source import open_source
from indextables.connection import open_log, options_and_runtime
from indextables.errors import NotATableError, OptionError, TableError
from indextables.ops.foreign_rows import COMPANION, container_of
from indextables.ops.progress import in_notebook
from indextables.storage.store import open_store

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
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
) -> Companion:
    """Open the companion index at a place, or make it and build it.

    `source` is a Delta table or a directory of Parquet files; it is only ever read. `columns` says how its
    columns are indexed, as `{"message": "text", "code": "string"}`; a list names columns of text. An index
    that is there has to be of the same source and columns, and is opened as it is: `refresh` brings it up
    to date.
    """
    resolved, runtime = options_and_runtime(spark, options, at)
    log = open_log(at, options, spark)
    try:
        own: Snapshot | None = log.snapshot(max_staleness_s=0)
    except NotATableError:
        own = None
    if own is not None and container_of(own) != COMPANION:
        raise TableError(f"{log.uri} is a table with rows of its own, not a companion index", uri=log.uri)
    root = open_store(source, resolved.storage).uri
    _require_apart(log.uri, root)
    known = None if own is None else CompanionSettings.of(own)
    if known is not None and known.source != root:
        raise TableError(
            f"{log.uri} is a companion of {known.source}, not of {root}. Choose another place.", uri=log.uri
        )
    if known is not None and columns is None:
        return Companion(log, known)
    opened = open_source(
        root,
        None if known is None else known.format,
        options=resolved,
        runtime=runtime,
        source_id=uuid.uuid4().hex if known is None else known.source_id,
        schema=None if known is None else known.schema,
    )
    settings = settings_for(opened, columns, resolved)
    if known is not None:
        _require_same(log.uri, known, settings)
        return Companion(log, known)
    log.initialize(own_schema(settings.spec, opened), properties=settings.properties(), container=COMPANION)
    made = Companion(log, CompanionSettings.of(log.snapshot(max_staleness_s=0)))
    made.refresh()
    return made


def _require_apart(at: str, source: str) -> None:
    """Refuse an index inside its source, which is never written, and a source inside its index."""
    one, other = at.rstrip("/") + "/", source.rstrip("/") + "/"
    if one.startswith(other) or other.startswith(one):
        raise OptionError(
            f"a companion lies beside its source, not inside it: {at} and {source} share a directory. Choose "
            f"another place, such as {source.rstrip('/')}_index."
        )


def _require_same(uri: str, known: CompanionSettings, asked: CompanionSettings) -> None:
    if known.spec != asked.spec:
        there = ", ".join(f"{item.column} as {item.kind}" for item in known.spec.fields)
        raise TableError(
            f"{uri} is a companion that indexes {there}; other columns or settings are given now. Open it "
            "without columns, or make another one elsewhere.",
            uri=uri,
        )
