"""Which version of which rows a log is read at: its own table's or, for a companion, those of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indextables.errors import TableError, VersionNotFoundError
from indextables.lazy import later
from indextables.log.snapshot import Snapshot
from indextables.ops.foreign_rows import is_companion
from indextables.storage.store import open_store

if TYPE_CHECKING:
    from indextables.companion import settings, snapshot, source
    from indextables.companion.snapshot import CompanionSnapshot
    from indextables.log.history import Moment
    from indextables.log.transaction_log import TransactionLog
else:
    settings = later("indextables.companion.settings")
    snapshot = later("indextables.companion.snapshot")
    source = later("indextables.companion.source")


def open_version(
    log: TransactionLog,
    version: int | None = None,
    as_of: Moment | None = None,
    max_staleness_s: float | None = None,
) -> Snapshot:
    """A version of a table; for a companion index one of its source, with the newest index of it."""
    try:
        own = log.snapshot(version, as_of, max_staleness_s)
    except VersionNotFoundError:
        # A companion has other versions than its source.
        own = log.snapshot(max_staleness_s=max_staleness_s)
        if not is_companion(own):
            raise
    if not is_companion(own):
        return own
    if version is None and as_of is None:
        return rows_at(own)
    return rows_at(log.snapshot(max_staleness_s=max_staleness_s), version, as_of)


def require_companion_of(log: TransactionLog, source: str) -> Snapshot:
    """The newest version of a companion index of a source; what is anything else is an error."""
    own = log.snapshot(max_staleness_s=0)
    indexed, root = settings.CompanionSettings.of(own).source, open_store(source, log.options.storage).uri
    if indexed != root:
        raise TableError(f"{log.uri} is a companion of {indexed}, not an index of {root}", uri=log.uri)
    return own


def rows_at(own: Snapshot, version: int | None = None, as_of: Moment | None = None) -> CompanionSnapshot:
    """The rows of a companion's source, at its newest version, at a version, or as they were at a moment."""
    described = settings.CompanionSettings.of(own)
    if described.format == source.PARQUET and version == own.version:
        # Files without a log have one version, which is shown under this number.
        version = None
    return snapshot.CompanionSnapshot(own, described.open(own, version, as_of))
