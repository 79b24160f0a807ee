"""One `_search`: its body is read, the table searched, and the answer put into Elasticsearch's shape."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.display.plain import plain_value
from indextables.errors import OptionError
from indextables.ops.read.count import count
from indextables.ops.read.record import Record
from indextables.ops.read.scan import scan
from indextables.ops.read.search import search as search_rows
from indextables.predicate.tree import Node, all_of
from indextables.table import Table
from indextables.web.answers import sort_text
from indextables.web.elastic.aggregations import Aggregations
from indextables.web.elastic.shapes import (
    flag_at,
    list_at,
    object_at,
    object_or_value,
    refused,
    text_at,
    texts_at,
    whole_at,
)
from indextables.web.elastic.translate import Criteria, TableFields, translate
from indextables.web.row_request import quoted
from indextables.web.tables import ServedTable

if TYPE_CHECKING:
    from indextables.delta import DeltaTable

_SUPPORTED = {
    "query", "size", "from", "sort", "_source", "aggs", "aggregations", "track_total_hits", "timeout",
    "version", "script_fields", "docvalue_fields", "stored_fields", "fields", "track_scores",
}  # fmt: skip
_EMPTY = {"script_fields", "docvalue_fields", "stored_fields", "fields", "track_scores"}
"""Sent by dashboards as a matter of form; accepted only where they ask for nothing."""
_DEFAULT_SIZE = 10
_DEEPEST = 10_000
_OF_SORT = {"order", "unmapped_type", "missing"}
_UNSORTED = ("_doc", "_shard_doc")


@dataclass(frozen=True, slots=True)
class SortField:
    """A field to sort by, and where the rows without a value come."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class SearchBody:
    """The body of a request after all its entries were checked."""

    criteria: Criteria
    size: int
    start: int
    sort: SortField | None
    scored: bool
    columns: tuple[str, ...]
    aggregations: Mapping[str, Any]
    total: bool
    version: bool


NOTES = "_notes"
"""The entry of an answer with what the author of its query should know; it is sent as a header."""
_NO_ROWS = pa.table({"none": pa.nulls(0)})
"""With a column: Arrow gives a slice of a table without columns the number of rows it was sliced to."""


class SearchRequest:
    """One search of one version of a table; its body is read and checked when it is made."""

    def __init__(self, served: ServedTable, body: Mapping[str, Any], *, scroll: bool = False) -> None:
        self._began = time.perf_counter()
        self._index = served.name
        self._columns = fields_of(served.open())
        self._snapshot = self._columns.snapshot
        self._body = read_body(body, self._columns)
        self._records: list[Record] = []
        if scroll and (self._body.start or not self._body.size):
            raise refused("a scroll begins with the first row, and its pages have rows: leave [from] out")

    def answer(self) -> dict[str, Any]:
        """The response, with the hits of one page."""
        body = self._body
        batches = list(self._rows(body.start + body.size)) if body.size else []
        rows = pa.Table.from_batches(batches) if batches else _NO_ROWS
        hits = self._hits(rows.slice(body.start, body.size), body.start)
        return self._response(hits, self._total(), with_aggregations=True)

    def pages(self) -> Iterator[dict[str, Any]]:
        """The responses of a scroll: pages until no row is left, and empty ones from then on."""
        size, start, total = self._body.size, 0, self._total()
        batches = self._rows(None)
        pending = _NO_ROWS
        while True:
            while pending.num_rows < size and (batch := next(batches, None)) is not None:
                more = pa.Table.from_batches([batch])
                pending = pa.concat_tables([pending, more]) if pending.num_rows else more
            yield self._response(
                self._hits(pending.slice(0, size), start), total, with_aggregations=not start
            )
            start += min(size, pending.num_rows)
            pending = pending.slice(size)
            self._began = time.perf_counter()

    def _total(self) -> int | None:
        if not self._body.total:
            return None
        criteria = self._body.criteria
        total, record = count(self._snapshot, criteria.where, criteria.query)
        self._records.append(record)
        return total

    def _notes(self) -> list[str]:
        query = self._body.criteria.query
        noted = (note for record in self._records for note in record.metrics.notes)
        return list(dict.fromkeys((*(() if query is None else query.notes), *noted)))

    def _response(
        self, hits: list[dict[str, Any]], total: int | None, *, with_aggregations: bool
    ) -> dict[str, Any]:
        body = self._body
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
        if body.aggregations and with_aggregations:
            counted = Aggregations(self._snapshot, self._columns, body.criteria)
            answer["aggregations"] = counted.answer(body.aggregations)
        if notes := self._notes():
            answer[NOTES] = notes
        answer["took"] = round((time.perf_counter() - self._began) * 1000)
        return answer

    def _hits(self, page: pa.Table, start: int) -> list[dict[str, Any]]:
        body = self._body
        hits = []
        for number, row in enumerate(page.to_pylist(maps_as_pydicts="lossy"), start):
            hit: dict[str, Any] = {
                "_index": self._index,
                "_id": f"{self._snapshot.version}-{number}",
                "_score": row.pop("_score", None) if body.scored else None,
                "_source": {name: plain_value(row[name]) for name in body.columns},
            }
            if body.version:
                # A row is never changed in place.
                hit["_version"] = 1
            if body.sort is not None:
                hit["sort"] = [plain_value(row[body.sort.column])]
            hits.append(hit)
        return hits

    def _rows(self, limit: int | None) -> Iterator[pa.RecordBatch]:
        """The rows in order; those without a value of the sort field come first or last, as the body says."""
        body, criteria = self._body, self._body.criteria
        if body.sort is None:
            yield from self._read(criteria.where, limit)
            return
        by = quoted(body.sort.column)
        if body.sort.nulls_first != body.sort.descending:
            yield from self._read(criteria.where, limit, sort_text(body.sort.column, body.sort.descending))
            return
        # The table itself would put nulls at the other end.
        has, lacks = (self._columns.node(part) for part in (by.is_not_null(), by.is_null()))
        left = limit
        for node in (lacks, has) if body.sort.nulls_first else (has, lacks):
            where = node if criteria.where is None else all_of([criteria.where, node])
            for batch in self._read(where, left, sort_text(body.sort.column, body.sort.descending)):
                left = None if left is None else left - batch.num_rows
                yield batch

    def _read(
        self, where: Node | None, limit: int | None, sort: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        body, query = self._body, self._body.criteria.query
        columns = list(dict.fromkeys([*body.columns, *([body.sort.column] if body.sort else [])]))
        columns = columns or self._columns.schema.names[:1]
        if query is None:
            reader, record = scan(self._snapshot, where, columns, limit, sort=sort)
        else:
            more: dict[str, Any] = {"score": body.scored, "sort": sort}
            reader, record = search_rows(self._snapshot, query, where, columns, limit, **more)
        self._records.append(record)
        with reader:
            yield from reader


def fields_of(table: Table | DeltaTable) -> TableFields:
    """The fields of a table, at this moment."""
    if not isinstance(table, Table):
        raise OptionError("a Delta table cannot be queried this way")
    return TableFields(table.snapshot, datetime.now(UTC))


def read_body(entries: Mapping[str, Any], columns: TableFields) -> SearchBody:
    """Read and check a body; what cannot be done is refused by name."""
    unknown = set(entries) - _SUPPORTED or {name for name in _EMPTY if entries.get(name)}
    if unknown:
        raise refused(f"the parameters {sorted(unknown)} are not supported")
    size, start = (
        whole_at(entries.get("size", _DEFAULT_SIZE), "size"),
        whole_at(entries.get("from", 0), "from"),
    )
    if size < 0 or start < 0 or size + start > _DEEPEST:
        raise refused(
            f"from is {start} and size {size}; at most {_DEEPEST} rows are reached, or all by scroll"
        )
    sort, scored = _sort(entries.get("sort"), columns)
    criteria = translate(entries.get("query"), columns)
    inner = (object_at(entries.get(name), name) for name in ("aggs", "aggregations"))
    total = entries.get("track_total_hits", True)
    return SearchBody(
        criteria=criteria,
        size=size,
        start=start,
        sort=sort,
        scored=criteria.query is not None and scored,
        columns=_source(entries.get("_source", True), columns),
        aggregations={name: body for some in inner for name, body in some.items()},
        # A number asks for a total that is exact up to there; this one is exact beyond it too.
        total=flag_at(total, "track_total_hits")
        if isinstance(total, (bool, str))
        else whole_at(total, "track_total_hits") >= 0,
        version=flag_at(entries.get("version", False), "version"),
    )


def _sort(sort: Any, columns: TableFields) -> tuple[SortField | None, bool]:
    """The field to sort by, and whether the best matches come first instead."""
    keys: list[SortField] = []
    items = list_at(sort, "sort")
    for item in items:
        entry = item if isinstance(item, Mapping) else {text_at(item, "sort"): {}}
        if len(entry) != 1:
            raise refused("each entry of [sort] names exactly one field")
        ((name, direction),) = entry.items()
        descending, nulls_first = _direction(name, direction)
        if name == "_score":
            if len(items) > 1 or not descending:
                raise refused("[_score] is the only entry of [sort], and descends")
            return None, True
        if name not in _UNSORTED:
            keys.append(SortField(columns.column(name, "sort"), descending, nulls_first))
    if len(keys) > 1:
        raise refused("rows are sorted by one field")
    return keys[0] if keys else None, sort is None


def _direction(name: str, direction: Any) -> tuple[bool, bool]:
    """Whether a field descends, and whether the rows without a value come first."""
    settings = (
        direction if isinstance(direction, Mapping) else {"order": object_or_value(direction, f"sort.{name}")}
    )
    if set(settings) - _OF_SORT:
        raise refused(f"[sort] does not support {sorted(set(settings) - _OF_SORT)}")
    missing = settings.get("missing", "_last")
    if missing not in ("_first", "_last"):
        raise refused(f"[missing] of [{name}] is _first or _last, not {missing!r:.60}")
    order = settings.get("order", "desc" if name == "_score" else "asc")
    if order not in ("asc", "desc"):
        raise refused(f"[order] of [{name}] is asc or desc, not {order!r:.60}")
    return order == "desc", missing == "_first"


def _source(source: Any, columns: TableFields) -> tuple[str, ...]:
    names: Sequence[str] = columns.schema.names
    if isinstance(source, bool):
        return tuple(names) if source else ()
    keys = {"includes": ["*"], "include": [], "excludes": [], "exclude": []}
    settings = source if isinstance(source, Mapping) else {"includes": source}
    if set(settings) - set(keys):
        raise refused(f"[_source] does not support {sorted(set(settings) - set(keys))}")
    if "include" in settings:
        keys["includes"] = []
    include, exclude = (
        [text.lower() for key in some for text in texts_at(settings.get(key, keys[key]), "_source")]
        for some in (("includes", "include"), ("excludes", "exclude"))
    )
    return tuple(
        name
        for name in names
        if any(fnmatchcase(name.lower(), pattern) for pattern in include)
        and not any(fnmatchcase(name.lower(), pattern) for pattern in exclude)
    )
