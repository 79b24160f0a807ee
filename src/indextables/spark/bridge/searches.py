"""Answers Spark's optimizer about the searches in a plan: the Python side of `SearchRule.java`.

A table with searches over it becomes one of two plans. If every search has to hold, the
plan fetches the rows that the index finds; otherwise it joins the table's rows with the
numbers of those that match. While planning, only searches that the driver can answer
almost for free are run; the others run with the plan.
"""

# ruff: noqa: SLF001
# because PySpark keeps its JVM objects private
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import CommandError, TableError
from indextables.log.delta.snapshot import DeltaSnapshot
from indextables.model.names import quoted_name
from indextables.model.types import VARIANT, type_from_sql
from indextables.predicate import search_function as searching
from indextables.predicate import tree
from indextables.predicate.searchable import WORD
from indextables.predicate.word_breaks import table_of_classes, words_of
from indextables.spark.bridge.request import JvmRequest
from indextables.spark.load import load_table
from indextables.spark.read.frame import LoadedTable, recall
from indextables.spark.read.planner import conjunction
from indextables.spark.read.version import resolve_read
from indextables.spark.search.comparing import comparison
from indextables.spark.search.dataframe import no_index, numbered_frame, required_frame
from indextables.spark.search.groups import grouped_frame
from indextables.sql.select.mentions import NO_QUERY
from indextables.sql.select.rewritten import ResolvedSearch
from indextables.sql.select.scopes import NO_SEARCH
from indextables.sql.select.spelling import spelled

if TYPE_CHECKING:
    from indextables.log.snapshot import Snapshot

_NAMES = {"indexscore": "_score", "indexhighlight": "highlight"}


def spell(request: JvmRequest) -> dict[str, Any]:
    """A text with searches, rewritten as SQL."""
    from pyspark.errors import AnalysisException

    def columns_of(parts: Sequence[str]) -> Sequence[str]:
        try:
            columns: list[str] = request.spark.table(quoted_name(*parts)).columns
        except AnalysisException:
            return ()
        return columns

    return {"text": spelled(str(request.arguments["text"]), columns_of)}


def pin(request: JvmRequest) -> dict[str, Any]:
    """The relation of a table, fixed at the version that is newest now."""
    table = _table(request)
    snapshot = _snapshot(request, table)
    frame = load_table(request.spark, replace(table, version=snapshot.version).request(), "native")
    request.objects["relation"] = frame._jdf.queryExecution().analyzed().relation()
    return {}


def search(request: JvmRequest) -> dict[str, Any]:
    """A table with the results of its searches: the matching rows, or hidden columns that mark them."""
    arguments = request.arguments
    table = _table(request)
    snapshot = _snapshot(request, table)
    searches = [_search(one) for one in arguments["searches"] if one["kind"] != "indexscore"]
    scored = bool(arguments["scored"])
    if scored and (len(searches) != 1 or not searches[0].required):
        raise CommandError(NO_SEARCH)
    where = conjunction(arguments["conditions"], snapshot)
    if not arguments["whole"] and not table.restricted and all(one.required for one in searches):
        best = int(arguments["best"])
        searched = required_frame(
            request.spark, snapshot, searches, list(arguments["columns"]), where=where,
            score=scored, best=best if best >= 0 else None,
        )  # fmt: skip
    elif scored:
        raise CommandError(f"{NO_SEARCH}; here the table is read in another way")
    else:
        rows = request.frame_of_plan("rows")
        numbered = numbered_frame(
            request.spark, snapshot, searches, rows, file=str(arguments["file"]), where=where
        )
        if numbered is None:
            return {}
        searched = numbered
    request.objects["plan"] = searched.frame._jdf.queryExecution().analyzed()
    return {"shown": searched.shown}


def search_groups(request: JvmRequest) -> dict[str, Any]:
    """The groups of an aggregate under searches; no plan where rows have to tell."""
    arguments = request.arguments
    table = _table(request)
    snapshot = _snapshot(request, table)
    if table.restricted or not snapshot.settings.read.aggregate_pushdown:
        return {}
    grouped = grouped_frame(
        request.spark, snapshot, [_search(one) for one in arguments["searches"]], arguments
    )
    if grouped is None:
        return {}
    request.objects["plan"] = grouped.frame._jdf.queryExecution().analyzed()
    return {"shown": grouped.shown, "merged": grouped.merged}


def compare(request: JvmRequest) -> dict[str, Any]:
    """A search or highlight as a function of the row's own columns, if no index can answer it."""
    arguments = request.arguments
    snapshot = _snapshot(request, _table(request))
    query = _words(arguments.get("query"))
    compared = comparison(snapshot, str(arguments["kind"]), list(arguments["columns"]), query)
    frame = request.frame_of_plan("rows")
    plan = frame.select(compared(*frame.columns).alias("found"))._jdf.queryExecution().analyzed()
    # Spark's optimizer is past the step in which functions that stand for others are replaced.
    optimizer = request.spark.sparkContext._jvm.org.apache.spark.sql.catalyst.optimizer
    request.objects["plan"] = optimizer.ReplaceExpressions.apply(plan)
    return {}


def search_function(request: JvmRequest) -> dict[str, Any]:
    """What a call of `search` or `isearch` looks for: its words and what a word is, if it looks for words.

    A call that is not right is an error here, in the same words as in a filter without Spark.
    """
    arguments = request.arguments
    mode, pattern = arguments.get("mode"), arguments.get("pattern")
    targets: list[tree.Value] = [
        tree.Column((shown,), _searched_type(json.loads(kind)), "collated" if collated else "binary")
        for shown, kind, collated in zip(
            arguments["targets"], arguments["types"], arguments["collated"], strict=True
        )
    ]
    if not arguments["constant"]:
        targets.append(tree.Column(("an expression",), pa.string()))
    elif targets:
        targets.append(tree.Literal(pattern, pa.string()))
    searching.search(
        str(arguments["name"]), targets, None if mode is None else tree.Literal(mode, pa.string())
    )
    if pattern is None or mode is None or mode.lower() != WORD:
        return {}
    return {"words": words_of(pattern), "classes": table_of_classes()}


def _searched_type(kind: Any) -> pa.DataType:
    """An Arrow type that is searchable where Spark's is; a type that a table cannot have is no text."""
    if isinstance(kind, Mapping):
        if kind["type"] == "struct":
            return pa.struct([(field["name"], _searched_type(field["type"])) for field in kind["fields"]])
        inner = {"array": "elementType", "map": "valueType"}.get(str(kind["type"]))
        return pa.int8() if inner is None else pa.list_(_searched_type(kind[inner]))
    if kind == "variant":
        return VARIANT
    is_text = kind.startswith(("string", "varchar", "char"))
    return pa.string() if is_text else pa.null() if kind == "void" else type_from_sql(kind) or pa.int8()


def refuse(request: JvmRequest) -> dict[str, Any]:
    """The error for a search in something that is not a column of a table."""
    _words(request.arguments.get("query"))
    name = _NAMES.get(str(request.arguments["kind"]), "indexquery")
    if name == "_score":
        raise CommandError(NO_SEARCH)
    raise CommandError(
        f"{name} cannot search {request.arguments['column']}: it is not a column of an IndexTables table "
        "that this query reads, but computed or from elsewhere. Move the search to where the table is read, "
        "as in SELECT ... FROM (SELECT ... FROM logs WHERE message indexquery 'error')."
    )


def _search(search: Mapping[str, Any]) -> ResolvedSearch:
    return ResolvedSearch(
        0,
        search.get("column"),
        _words(search.get("query")),
        bool(search["required"]),
        str(search.get("hidden", "")),
    )


def _words(query: str | None) -> str:
    if query is None:
        raise CommandError(NO_QUERY)
    return query


def _table(request: JvmRequest) -> LoadedTable:
    table = recall(str(request.arguments["identity"]))
    if table is None:
        raise TableError("this DataFrame was loaded long ago and its table is no longer known: load it again")
    return table


def _snapshot(request: JvmRequest, table: LoadedTable) -> Snapshot:
    snapshot = resolve_read(request.spark, table.request())[1]
    if isinstance(snapshot, DeltaSnapshot):
        raise CommandError(no_index(snapshot))
    return snapshot
