"""A relation whose files are chosen when a statement runs, not when it is planned.

DELETE, UPDATE and MERGE read the files that they replace. Which those are takes
a query to find out, and a plan may only be looked at (EXPLAIN) or be made twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from indextables.spark.hadoop import hadoop_settings
from indextables.spark.read.frame import LoadedTable, remember
from indextables.spark.read.planner import TablePlanner
from indextables.spark.read.relation import RelationSpec, native_frame

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot
    from indextables.spark.options import CallSettings
    from indextables.spark.read.wire import Answer

_KEPT = 256

_lock = threading.Lock()
_planners: OrderedDict[str, LatePlanner] = OrderedDict()


@dataclass(slots=True)
class LatePlanner:
    """The planner of one version, restricted to some files once they are known."""

    whole: TablePlanner
    only: frozenset[str] | None = None

    def plan(self, filters: Sequence[Mapping[str, Any]]) -> Answer:
        """The chosen files that may hold rows for all these filters."""
        return replace(self.whole, only=self.only).plan(filters)

    def size_bytes(self) -> int:
        """Bytes of rows in the whole version."""
        return self.whole.size_bytes()


def frame(spark: Any, snapshot: Snapshot, settings: CallSettings, key: str) -> Any:
    """A DataFrame over the files that `choose` names under the same key; all of them until then."""
    uri = snapshot.store.uri
    whole = TablePlanner(spark, uri, snapshot.table_id, snapshot.version, settings.table)
    with _lock:
        # One for all reads of a statement, which may ask for the table several times.
        planner = _planners.setdefault(key, LatePlanner(whole))
        while len(_planners) > _KEPT:
            _planners.popitem(last=False)
    spec = RelationSpec(
        root=snapshot.store.spark_uri("").rstrip("/"),
        identity=f"{snapshot.table_id}@{snapshot.version} {uri} {key}",
        label=f"{uri} version {snapshot.version}, files to replace",
        schema_json=snapshot.metadata.schema_string,
        partition_columns=snapshot.partition_columns,
        options=hadoop_settings(uri, settings.table),
    )
    remember(spec.identity, LoadedTable(uri, settings.table, snapshot.version, late=True))
    return native_frame(spark, spec, planner)


def choose(key: str, paths: frozenset[str]) -> None:
    """Set the files that the relation of a key reads."""
    with _lock:
        planner = _planners.get(key)
    if planner is not None:
        planner.only = paths


def forget(key: str) -> None:
    """Drop the entry of a finished statement."""
    with _lock:
        _planners.pop(key, None)
