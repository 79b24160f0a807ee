"""Names for our tables: temporary views over a loaded table, and ``indextables.`path` ``."""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from indextables.errors import Error
from indextables.model.column_mapping import all_stored_names
from indextables.model.names import quoted_name
from indextables.spark.load import load_table
from indextables.spark.options import is_connect
from indextables.spark.read.frame import LoadedTable, recall
from indextables.spark.read.version import resolve_read
from indextables.spark.requests import ReadRequest

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

_WRAPPERS = ("View", "SubqueryAlias")
_PATH_PARTS = 2

_lock = threading.Lock()
_named_views: WeakKeyDictionary[Any, dict[str, _NamedView]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _NamedView:
    """A view made by CREATE TEMPORARY VIEW, and the version it showed then."""

    request: ReadRequest
    uri: str
    version: int
    columns: tuple[str, Mapping[str, str]]
    """The schema, and the stored names of its columns."""
    shared: bool
    fixed: bool
    """Whether it has a fixed list of files and must be recreated for every version."""

    @property
    def follows(self) -> bool:
        """Whether it shows the newest version rather than a requested one."""
        return any(key.lower() == "refresh" for key in self.request.options)


@dataclass(frozen=True, slots=True)
class TableView:
    """The name of a temporary view, and how it is made."""

    name: str
    replace: bool = False
    shared: bool = False


def register_view(frame: Any, view: TableView, request: ReadRequest | None = None) -> None:
    """Register a DataFrame as a view in the session."""
    name = quoted_name(view.name) if not re.fullmatch(r"\w+", view.name) else view.name
    if view.shared:
        (frame.createOrReplaceGlobalTempView if view.replace else frame.createGlobalTempView)(name)
    else:
        (frame.createOrReplaceTempView if view.replace else frame.createTempView)(name)
    if request is not None:
        spark = frame.sparkSession
        _, snapshot = resolve_read(spark, request)
        whole = is_connect(spark) or table_of_frame(frame) is None
        named = _NamedView(
            request, snapshot.store.uri, snapshot.version, _columns_of(snapshot), view.shared, whole
        )
        with _lock:
            _named_views.setdefault(spark, {})[view.name.lower()] = named


def refresh_named(spark: Any, text: str) -> None:
    """Renew the views that a statement names, where what they hold is no longer the newest.

    A view over our file index finds new files by itself and is renewed when its columns have changed. On
    Connect, and of a Delta table with deletion vectors or mapped columns, it holds the files of one
    moment, and is renewed with every version.
    """
    for name, view in _mentioned(spark, text).items():
        if not view.follows:
            continue
        try:
            _, newest = resolve_read(spark, view.request)
        except Error:
            # The name may mean something else by now, or be a mere word in the statement. A view over our
            # file index says what is wrong when it is read; one on Connect would show what there was.
            if not _is_still(spark, name, view):
                _forget(spark, name, view)
            elif is_connect(spark):
                raise
            continue
        stale = view.version != newest.version if view.fixed else view.columns != _columns_of(newest)
        if stale and _is_still(spark, name, view):
            register_view(load_table(spark, view.request), TableView(name, True, view.shared), view.request)


def _columns_of(snapshot: Snapshot) -> tuple[str, Mapping[str, str]]:
    """What a view is made of: a column that is dropped and added again is another one."""
    return snapshot.metadata.schema_string, all_stored_names(snapshot.metadata)


def names_a_view(spark: Any, text: str) -> bool:
    """Whether a statement may name a view that CREATE TEMPORARY VIEW made in this session."""
    return bool(_mentioned(spark, text))


def _mentioned(spark: Any, text: str) -> dict[str, _NamedView]:
    with _lock:
        views = dict(_named_views.get(spark, {}))
    return {
        name: view
        for name, view in views.items()
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    }


def _forget(spark: Any, name: str, view: _NamedView) -> None:
    with _lock:
        if _named_views.get(spark, {}).get(name) is view:
            del _named_views[spark][name]


def _is_still(spark: Any, name: str, view: _NamedView) -> bool:
    """Whether the name still refers to the view we made: the user may have reused it."""
    full = quoted_name("global_temp", name) if view.shared else quoted_name(name)
    if not is_connect(spark):
        table = table_of_view(spark, full)
        if table is not None or not view.fixed:
            return table is not None and table.path == view.uri
        return _has_relation(spark, full, view.uri)
    from pyspark.errors import AnalysisException

    try:
        files = spark.table(full).inputFiles()
    except AnalysisException:
        return False
    root = view.uri.removeprefix("file://")
    return all(root in file and file.endswith(".split") for file in files)


def _has_relation(spark: Any, name: str, uri: str) -> bool:
    """Whether a view reads a table through our file index, among other things."""
    from pyspark.errors import AnalysisException

    try:
        leaves = spark.table(name)._jdf.queryExecution().analyzed().collectLeaves()
    except AnalysisException:
        return False
    identities = (_identity_of(leaves.apply(at)) for at in range(leaves.size()))
    return any(f" {uri} " in f"{identity} " for identity in identities)


def table_of_name(spark: Any, parts: Sequence[str]) -> LoadedTable | None:
    """The table a name in a statement means: a view over a whole table, or a path."""
    if len(parts) == _PATH_PARTS and parts[0].lower() == "indextables":
        return LoadedTable(parts[1], {}, pinned=False)
    if is_connect(spark):
        with _lock:
            view = _named_views.get(spark, {}).get(parts[-1].lower())
        return LoadedTable.of_request(view.request) if view and _is_still(spark, parts[-1], view) else None
    return _table_of_parts(spark, list(parts))


def table_of_view(spark: Any, name: str) -> LoadedTable | None:
    """The table that a temporary view shows whole; None for every other name."""
    if is_connect(spark):
        return table_of_name(spark, [part.strip("`") for part in name.split(".")])
    parser = spark._jsparkSession.sessionState().sqlParser()
    parsed = parser.parseMultipartIdentifier(name)
    return table_of_name(spark, [str(parsed.apply(at)) for at in range(parsed.size())])


def table_of_frame(frame: Any) -> LoadedTable | None:
    """The table a DataFrame shows whole; None for every other one."""
    if is_connect(frame.sparkSession):
        return None
    return _table_of_plan(frame._jdf.queryExecution().analyzed())


def tables_in_frame(frame: Any) -> list[LoadedTable]:
    """Every IndexTables table a DataFrame reads, as far as its plan shows."""
    if is_connect(frame.sparkSession):
        return []
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    tables = [_table_of_plan(leaves.apply(at)) for at in range(leaves.size())]
    return [table for table in tables if table is not None]


def _table_of_parts(spark: Any, parts: list[str]) -> LoadedTable | None:
    catalog = spark._jsparkSession.sessionState().catalog()
    if len(parts) == 1:
        view = catalog.getTempView(parts[0])
    elif len(parts) == _PATH_PARTS and parts[0].lower() == "global_temp":
        view = catalog.getGlobalTempView(parts[1])
    else:
        return None
    return _table_of_plan(view.get()) if view.isDefined() else None


def _table_of_plan(plan: Any) -> LoadedTable | None:
    while str(plan.getClass().getSimpleName()) in _WRAPPERS:
        plan = plan.children().apply(0)
    identity = _identity_of(plan)
    return None if identity is None else recall(identity)


def _identity_of(plan: Any) -> str | None:
    """What a relation over our file index reads; None for any other plan."""
    if str(plan.getClass().getSimpleName()) != "LogicalRelation":
        return None
    relation = plan.relation()
    if str(relation.getClass().getSimpleName()) != "HadoopFsRelation":
        return None
    location = relation.location()
    if str(location.getClass().getSimpleName()) != "LogFileIndex":
        return None
    return str(location.identity())
