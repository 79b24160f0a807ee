"""Which version of a table a read refers to, by its options."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from indextables.errors import NotATableError, OptionError
from indextables.log.delta.snapshot import open_snapshot
from indextables.log.history import moment_of
from indextables.log.table_kind import TableKind
from indextables.spark.open_logs import open_log
from indextables.spark.options import READ_KEYS, CallSettings, session_zone, settings_for
from indextables.spark.requests import ReadRequest

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot


def snapshot_asked_for(spark: Any, request: ReadRequest) -> Snapshot:
    """The version a read would see."""
    return asked_for(spark, request)[1]


def asked_for(spark: Any, request: ReadRequest) -> tuple[CallSettings, Snapshot]:
    """What a read is told, and the version it would see."""
    settings = settings_for(spark, request.options, READ_KEYS, request.path)
    return settings, snapshot_of(spark, request.path, settings)


def snapshot_of(spark: Any, path: str, settings: CallSettings) -> Snapshot:
    """The version that the options of a read refer to; the log shows whether it is ours or Delta's."""
    log = open_log(spark, path, settings.table)
    version, moment = settings.number("versionAsOf"), _as_of(spark, settings)
    try:
        # The newest version is planned from here on, so it has to be there: what was newest some seconds ago
        # may have been cleaned away by another process.
        return log.snapshot(version=version, as_of=moment, max_staleness_s=0)
    except NotATableError as other:
        if other.fields.get("kind") is not TableKind.DELTA:
            raise
    options = settings.options()
    moment_ms = None if moment is None else moment_of(moment, options.search.time_zone)
    return open_snapshot(log.uri, version=version, as_of_ms=moment_ms, options=options, runtime=log.runtime)


def _as_of(spark: Any, settings: CallSettings) -> dt.datetime | None:
    """The time of `timestampAsOf`; without an offset it is read in the session's zone, as Spark would."""
    text = settings.call.get("timestampAsOf")
    return None if text is None else parse_as_of(text, session_zone(spark))


def parse_as_of(text: str, zone: str) -> dt.datetime:
    """ISO text as an aware time."""
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError as bad:
        raise OptionError(
            f"option 'timestampAsOf' is {text!r}; expected ISO text such as 2026-01-31 12:00:00",
            key="timestampAsOf", value=text,
        ) from bad  # fmt: skip
    return found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone))
