"""One `_search`: its body read, asked of the table, and the answer in Elasticsearch's shape."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import OptionError
from indextables.model.plain import plain_value
from indextables.table import Table
from indextables.web.elastic.aggregations import Aggregations
from indextables.web.elastic.translate import Asked, Columns, refused, translate
from indextables.web.ordered import ordered
from indextables.web.tables import Served

if TYPE_CHECKING:
    from indextables.delta import DeltaTable

_KNOWN = {
    "query", "size", "from", "sort", "_source", "aggs", "aggregations", "track_total_hits", "timeout",
    "version", "script_fields", "docvalue_fields", "stored_fields", "fields", "track_scores",
}  # fmt: skip
_EMPTY = {"version", "script_fields", "docvalue_fields", "stored_fields", "fields", "track_scores"}
"""Sent by dashboards as a matter of form; accepted only where they ask for nothing."""
_DEFAULT_SIZE = 10
_DEEPEST = 10_000


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, read."""

    asked: Asked
    size: int
    start: int
    sort: tuple[str, bool] | None
    scored: bool
    columns: tuple[str, ...]
    aggregations: Mapping[str, Any]
    total: bool


def columns_of(table: Table | DeltaTable) -> Columns:
    """What a translation needs of a table."""
    indexed = {item.name: item.index for item in table.describe().columns if item.index}
    return Columns(table.schema, indexed, datetime.now(UTC))


def search(served: Served, given: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    began = time.perf_counter()
    table = served.open()
    if not isinstance(table, Table):
        raise OptionError("a Delta table is not asked this way")
    columns = columns_of(table)
    body = read_body(given, columns)
    hits = _hits(table, served.name, body) if body.size else []
    total = table.count(body.asked.where, query=body.asked.query) if body.total else None
    scores = [hit["_score"] for hit in hits if hit["_score"] is not None]
    answer: dict[str, Any] = {
        "took": 0,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            **({} if total is None else {"total": {"value": total, "relation": "eq"}}),
            "max_score": max(scores, default=None),
            "hits": hits,
        },
    }
    if body.aggregations:
        snapshot = table.log.snapshot(table.version)
        answer["aggregations"] = Aggregations(snapshot, columns, body.asked).answer(body.aggregations)
    answer["took"] = round((time.perf_counter() - began) * 1000)
    return answer


def read_body(given: Mapping[str, Any], columns: Columns) -> Body:
    """Read and check a body; what cannot be done is refused by name."""
    unknown = set(given) - _KNOWN or {name for name in _EMPTY if given.get(name)} - {"version"}
    if unknown:
        raise refused(f"the parameter {sorted(unknown)} is not supported")
    size, start = int(given.get("size", _DEFAULT_SIZE)), int(given.get("from", 0))
    if size < 0 or start < 0 or size + start > _DEEPEST:
        raise refused(f"from + size is {size + start}; at most {_DEEPEST} rows are reached this way")
    sort, scored = _sort(given.get("sort"), columns)
    asked = translate(given.get("query"), columns)
    return Body(
        asked=asked,
        size=size,
        start=start,
        sort=sort,
        scored=asked.query is not None and scored,
        columns=_source(given.get("_source", True), columns),
        aggregations=given.get("aggs") or given.get("aggregations") or {},
        total=given.get("track_total_hits", True) is not False,
    )


def _sort(given: Any, columns: Columns) -> tuple[tuple[str, bool] | None, bool]:
    """The column to sort by, and whether the best matches come first instead."""
    items = given if isinstance(given, list) else [given] if given else []
    found: list[tuple[str, bool]] = []
    for item in items:
        ((name, body),) = item.items() if isinstance(item, Mapping) else [(item, {})]
        way = str(body.get("order", "") if isinstance(body, Mapping) else body).lower()
        if name not in ("_doc", "_shard_doc"):
            found.append((name, way == "desc" if way else name == "_score"))
    if not found or found[0][0] == "_score":
        return None, True
    if len(found) > 1:
        raise refused("rows are sorted by one field")
    return (columns.field(found[0][0]), found[0][1]), False


def _source(given: Any, columns: Columns) -> tuple[str, ...]:
    names: Sequence[str] = columns.schema.names
    if given is True:
        return tuple(names)
    if given is False:
        return ()
    include: Any = given.get("includes", ["*"]) if isinstance(given, Mapping) else given
    exclude: Any = given.get("excludes", []) if isinstance(given, Mapping) else []
    wanted, left = ([item] if isinstance(item, str) else item for item in (include, exclude))
    return tuple(
        name
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in wanted)
        and not any(fnmatchcase(name, pattern) for pattern in left)
    )


def _hits(table: Table, index: str, body: Body) -> list[dict[str, Any]]:
    page = _rows(table, body).slice(body.start, body.size)
    found = []
    for number, row in enumerate(page.to_pylist(maps_as_pydicts="lossy"), body.start):
        score = row.pop("_score", None) if body.scored else None
        source = {name: plain_value(row[name]) for name in body.columns}
        hit: dict[str, Any] = {
            "_index": index,
            "_id": f"{table.version}-{number}",
            "_score": score,
            "_source": source,
        }
        if body.sort is not None:
            hit["sort"] = [plain_value(row[body.sort[0]])]
        found.append(hit)
    return found


def _rows(table: Table, body: Body) -> pa.Table:
    asked, count = body.asked, body.start + body.size
    columns = list(body.columns)
    if body.sort is not None:
        columns += [] if body.sort[0] in columns else [body.sort[0]]
        by, descending = body.sort
        return ordered(table, asked.query, asked.where, columns, by, descending=descending, limit=count)
    if asked.query is not None:
        return table.search(asked.query, asked.where, columns, count, score=body.scored).read_all()
    with table.scan(asked.where, columns) as rows:
        return rows.head(count)
