"""Answers Spark about `table_changes('t', first[, last])`: the Python side of `ChangesFunction.java`."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indextables.errors import CommandError
from indextables.spark.bridge.request import JvmRequest
from indextables.spark.named_tables import location_of
from indextables.spark.options import READ_KEYS, CallSettings, settings_for
from indextables.spark.read.changes import changes_frame, request_of
from indextables.spark.read.frame import LoadedTable
from indextables.spark.read.version import snapshot_of
from indextables.spark.read.views import table_of_view


def changes(request: JvmRequest) -> dict[str, Any]:
    """The plan that reads the changes which a call names."""
    name, commits = _named(request.arguments["arguments"])
    table = _table(request.spark, name)
    settings = settings_for(request.spark, table.options, READ_KEYS, table.path)
    snapshot = snapshot_of(request.spark, table.path, settings)
    frame = changes_frame(request.spark, snapshot, settings.table, request_of(commits))
    request.objects["plan"] = frame._jdf.queryExecution().analyzed()
    return {}


def _named(arguments: Sequence[Any]) -> tuple[str, CallSettings]:
    """The table, and its commits as options of a read: numbers are versions, texts are times."""
    table, *ends = arguments or [None]
    valid = all(isinstance(end, (int, str)) for end in ends) and len(ends) in (1, 2)
    if not valid or not isinstance(table, str):
        raise CommandError(
            "table_changes takes a table in quotes, the first version or a time in quotes, and perhaps the "
            "last version or a time in quotes: table_changes('events', 5, 9)"
        )
    sides = zip(("starting", "ending"), ends, strict=False)
    commits = {f"{side}{'Timestamp' if isinstance(end, str) else 'Version'}": str(end) for side, end in sides}
    return table, CallSettings(commits)


def _table(spark: Any, name: str) -> LoadedTable:
    """A view, a named table, or else what is at a path."""
    from pyspark.errors import ParseException

    try:
        view = table_of_view(spark, name)
    except ParseException:
        return LoadedTable(name, {})
    return view or LoadedTable(location_of(spark, name) or name, {})
