"""`load`: a DataFrame over one version of a table, or over a search in it."""

from __future__ import annotations

import re
from typing import Any

from indextables.errors import OptionError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.names import quoted_name, unquoted_name
from indextables.ops.foreign_rows import ForeignRows
from indextables.ops.table_settings import require_parquet
from indextables.spark.delta.load import load_delta
from indextables.spark.options import READ_KEYS, CallSettings, settings_for
from indextables.spark.read.changes import changes_frame, reads_changes, request_of
from indextables.spark.read.frame import reading_way, version_frame
from indextables.spark.read.version import by_companion, snapshot_of
from indextables.spark.requests import ReadRequest
from indextables.spark.search.dataframe import search_frame

_NAME = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
"""A name of a list: a comma inside backticks belongs to it."""


def load_table(spark: Any, request: ReadRequest, way: str = "auto") -> Any:
    """A DataFrame over the table; `way` is chosen by the session and the store unless forced."""
    request = by_companion(spark, request)
    settings = settings_for(spark, request.options, READ_KEYS, request.path)
    _check_combination(settings)
    snapshot = snapshot_of(spark, request.path, settings)
    if reads_changes(settings):
        return changes_frame(spark, snapshot, settings.table, request_of(settings, _columns(settings)))
    if isinstance(snapshot, DeltaSnapshot):
        frame = load_delta(spark, snapshot, settings)
        columns = _columns(settings)
        return frame if columns is None else frame.select(*map(quoted_name, columns))
    require_parquet(snapshot)
    if "query" in settings.call:
        query, columns = settings.call["query"], _columns(settings)
        return search_frame(spark, snapshot, query, columns=columns)
    chosen = reading_way(spark, snapshot) if way == "auto" or isinstance(snapshot, ForeignRows) else way
    return version_frame(spark, snapshot, settings, chosen, _columns(settings))


def _columns(settings: CallSettings) -> list[str] | None:
    text = settings.call.get("columns")
    if text is None:
        return None
    return [unquoted_name(name) for name in _NAME.findall(text) if name.strip()]


def _check_combination(settings: CallSettings) -> None:
    call = settings.call
    if "versionAsOf" in call and "timestampAsOf" in call:
        raise OptionError(
            "options 'versionAsOf' and 'timestampAsOf' cannot be used together", key="versionAsOf"
        )
    if settings.flag("refresh") and ("versionAsOf" in call or "timestampAsOf" in call):
        raise OptionError(
            "option 'refresh' reads the newest version: leave versionAsOf and timestampAsOf out",
            key="refresh",
        )
