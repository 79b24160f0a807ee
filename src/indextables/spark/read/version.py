"""Which version of a table a read refers to, by its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from indextables.companion.opening import open_version, require_companion_of
from indextables.errors import NotATableError
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.history import moment_of
from indextables.log.table_kind import TableKind
from indextables.options import PREFIX
from indextables.spark.open_logs import open_log
from indextables.spark.options import COMPANION_KEY, READ_KEYS, CallSettings, settings_for
from indextables.spark.requests import ReadRequest

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot


def resolve_read(spark: Any, request: ReadRequest) -> tuple[CallSettings, Snapshot]:
    """The settings of a read, and the version it would see."""
    request = by_companion(spark, request)
    settings = settings_for(spark, request.options, READ_KEYS, request.path)
    return settings, snapshot_of(spark, request.path, settings)


def snapshot_of(spark: Any, path: str, settings: CallSettings) -> Snapshot:
    """The version that the options of a read refer to; the log shows whether it is ours or Delta's.

    For a companion index it is one of its source.

    A time without an offset is taken in the zone of the option `timeZone`, by default the session's.
    """
    log = open_log(spark, path, settings.table)
    version, moment = settings.number("versionAsOf"), settings.call.get("timestampAsOf")
    try:
        # The newest version is planned from here on, so it has to be there: what was newest some seconds ago
        # may have been cleaned away by another process.
        return open_version(log, version, moment, max_staleness_s=0)
    except NotATableError as other:
        if other.fields.get("kind") is not TableKind.DELTA:
            raise
    options = settings.options()
    moment_ms = None if moment is None else moment_of(moment, lambda: options.search.time_zone)
    return open_snapshot(log.uri, version=version, as_of_ms=moment_ms, options=options, runtime=log.runtime)


def by_companion(spark: Any, request: ReadRequest) -> ReadRequest:
    """The read of a source that names its companion index, as a read of that index."""
    keys = (key for key in request.options if key.lower().removeprefix(PREFIX) == COMPANION_KEY)
    key = next(keys, None)
    if key is None:
        return request
    others = {name: value for name, value in request.options.items() if name not in (key, "path")}
    at = request.options[key]
    settings = settings_for(spark, others, READ_KEYS, at)
    require_companion_of(open_log(spark, at, settings.table), request.path)
    return ReadRequest(at, others)
