"""Making a companion, or opening the one that is there: one request for Python and SQL."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from indextables.companion.refresh import planned_build, run_refresh
from indextables.companion.settings import ColumnChoice, CompanionSettings, own_schema, settings_for
from indextables.companion.source import open_source
from indextables.errors import NotATableError, OptionError, TableError
from indextables.ops.foreign_rows import COMPANION, container_of
from indextables.ops.progress import Progress, silent
from indextables.records import dataclass
from indextables.storage.store import open_store

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.log.transaction_log import TransactionLog
    from indextables.ops.outcomes import RefreshResult


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A companion to be made, or to be opened if it is there."""

    source: str
    columns: ColumnChoice | None = None
    """Which columns are indexed, and how; None for those of the companion that is there."""
    where: str | None = None
    """Which partitions are indexed; None for all, or for those of the companion that is there."""
    format: str | None = None
    """`delta` or `parquet`; None for what lies there."""
    version: int | None = None
    dry_run: bool = False


def run_build(
    log: TransactionLog, request: BuildRequest, progress: Progress = silent
) -> tuple[CompanionSettings, RefreshResult]:
    """Make a companion if there is none, and bring it up to date; with `dry_run` nothing is written."""
    known, asked = _described(log, request)
    if known is None:
        assert asked is not None
        settings, schema = asked
        if request.dry_run:
            return settings, planned_build(log, settings, request.version)
        log.initialize(schema, properties=settings.properties(), container=COMPANION)
        known = CompanionSettings.of(log.snapshot(max_staleness_s=0))
    return known, run_refresh(log, version=request.version, dry_run=request.dry_run, progress=progress)


def opened(log: TransactionLog, request: BuildRequest) -> CompanionSettings | None:
    """The companion that is there, if it is the requested one; None where there is none."""
    return _described(log, request)[0]


def _described(
    log: TransactionLog, request: BuildRequest
) -> tuple[CompanionSettings | None, tuple[CompanionSettings, pa.Schema] | None]:
    """The settings of the companion that is there, and the requested ones with the columns of its log."""
    try:
        own: Snapshot | None = log.snapshot(max_staleness_s=0)
    except NotATableError:
        own = None
    if own is not None and container_of(own) != COMPANION:
        raise TableError(f"{log.uri} is a table with rows of its own, not a companion index", uri=log.uri)
    root = open_store(request.source, log.options.storage).uri
    _require_apart(log.uri, root)
    known = None if own is None else CompanionSettings.of(own)
    if known is not None and (known.source != root or request.format not in (None, known.format)):
        raise TableError(
            f"{log.uri} is a companion of {known.source} ({known.format}), not of {root}. Choose another "
            "place.",
            uri=log.uri,
        )
    if known is not None and request.where not in (None, known.where):
        partitions = "all partitions" if known.where is None else f"partitions WHERE {known.where}"
        raise TableError(
            f"{log.uri} is a companion that indexes {partitions}, and WHERE {request.where} is given now. "
            "Leave the condition out, or make another companion elsewhere.",
            uri=log.uri,
        )
    if known is not None and request.columns is None:
        return known, None
    source = open_source(
        root,
        request.format if known is None else known.format,
        options=log.options,
        runtime=log.runtime,
        source_id=uuid.uuid4().hex if known is None else known.source_id,
        schema=None if known is None else known.schema,
    )
    among = None if known is None else known.on(source).spec.columns
    asked = settings_for(source, request.columns, log.options, where=request.where, among=among)
    if known is not None and known.spec != asked.spec:
        there = ", ".join(f"{item.column} as {item.kind}" for item in known.spec.fields)
        raise TableError(
            f"{log.uri} is a companion that indexes {there}; other columns or settings are given now. Open "
            "it without columns, or make another one elsewhere.",
            uri=log.uri,
        )
    return known, (asked, own_schema(asked.spec, source))


def _require_apart(at: str, source: str) -> None:
    """Refuse an index inside its source, which is never written, and a source inside its index."""
    one, other = at.rstrip("/") + "/", source.rstrip("/") + "/"
    if one.startswith(other) or other.startswith(one):
        raise OptionError(
            f"a companion lies beside its source, not inside it: {at} and {source} share a directory. Choose "
            f"another place, such as {source.rstrip('/')}_index."
        )
