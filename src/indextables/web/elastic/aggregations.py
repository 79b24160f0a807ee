"""Elasticsearch's aggregations: terms, histograms and metrics, one inside the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.display.plain import plain_value
from indextables.errors import QueryError
from indextables.log.snapshot import Snapshot
from indextables.model.names import quoted_name
from indextables.ops.counting import run
from indextables.ops.counting.aggregation import (
    Aggregate,
    Aggregation,
    GroupKey,
    aggregate_of,
    column_of,
    key_of,
)
from indextables.ops.counting.buckets import Calendar, bucket_of
from indextables.web.elastic.shapes import (
    flag_at,
    list_at,
    object_at,
    object_or_value,
    refused,
    text_at,
    value_at,
    whole_at,
)
from indextables.web.elastic.translate import Criteria, TableFields, bound

METRICS = {
    "min": "min", "max": "max", "sum": "sum", "avg": "avg", "value_count": "count", "cardinality": "count",
}  # fmt: skip
BUCKETS = {
    "terms": ("field", "size", "order", "min_doc_count", "shard_size", "show_term_doc_count_error"),
    "date_histogram": (
        "field", "fixed_interval", "calendar_interval", "interval", "time_zone", "offset", "min_doc_count",
        "extended_bounds", "format", "keyed",
    ),
    "histogram": ("field", "interval", "offset", "min_doc_count", "extended_bounds", "keyed"),
}  # fmt: skip
"""The kinds of buckets, each with what may stand in it."""
_OF_METRICS = ("field", "precision_threshold")
_NESTED = ("aggs", "aggregations")
_TERMS = 10
_CALENDAR = {"1M": "1mon", "month": "1mon", "1q": "3mon", "quarter": "3mon", "1y": "1y", "year": "1y"}
_FORMATS = (None, "strict_date_optional_time", "date_optional_time", "epoch_millis")
_MOST_BUCKETS = 10_000
_MOST_TERMS = 65_536

Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregation with what is inside it."""

    name: str
    kind: str
    body: Mapping[str, Any]
    inner: Mapping[str, Any]


class Aggregations:
    """All aggregations of one request over the same rows."""

    def __init__(self, snapshot: Snapshot, columns: TableFields, criteria: Criteria) -> None:
        self._snapshot = snapshot
        self._columns = columns
        self._criteria = criteria

    def answer(self, aggregations: Any) -> dict[str, Any]:
        """The `aggregations` of a response."""
        return self._inside(_levels(aggregations), ()).get((), {})

    def _inside(self, levels: list[Level], keys: tuple[GroupKey, ...]) -> dict[Path, dict[str, Any]]:
        """For each group of the outer levels, the results of the aggregations inside it, by name."""
        answers: dict[Path, dict[str, Any]] = {}
        metrics = [level for level in levels if level.kind in METRICS]
        if metrics:
            for path, _, values in self._counted(keys, metrics):
                answers.setdefault(path, {}).update(values)
        for level in levels:
            if level.kind in BUCKETS:
                for path, buckets in self._buckets(level, keys).items():
                    answers.setdefault(path, {})[level.name] = buckets
        return answers

    def _buckets(self, level: Level, around: tuple[GroupKey, ...]) -> dict[Path, dict[str, Any]]:
        key = self._key(level, len(around))
        inner = self._inside(_levels(level.inner), (*around, key)) if level.inner else {}
        groups: dict[Path, list[tuple[Any, int]]] = {}
        for path, rows, _ in self._counted((*around, key), ()):
            if path[-1] is not None:
                groups.setdefault(path[:-1], []).append((path[-1], rows))
        if not around:
            groups.setdefault((), [])
        return {path: self._shaped(level, key, path, pairs, inner) for path, pairs in groups.items()}

    def _shaped(
        self,
        level: Level,
        key: GroupKey,
        path: Path,
        pairs: list[tuple[Any, int]],
        inner: Mapping[Path, dict[str, Any]],
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        body = level.body
        least = whole_at(body.get("min_doc_count", 1 if level.kind == "terms" else 0), "min_doc_count")
        pairs = [pair for pair in pairs if pair[1] >= least]
        if level.kind == "terms":
            size = whole_at(body.get("size", _TERMS), "terms.size")
            if not 0 < size <= _MOST_TERMS or least < 1:
                raise refused(f"[terms] has a size from 1 to {_MOST_TERMS} and a min_doc_count above 0")
            pairs = _ordered(pairs, body.get("order"))
            answer = {
                "doc_count_error_upper_bound": 0,
                "sum_other_doc_count": sum(rows for _, rows in pairs[size:]),
            }
            pairs = pairs[:size]
        elif least == 0:
            pairs = _without_gaps(pairs, key, self._edges(body, key))
        answer["buckets"] = [
            {**_key_shown(value), "doc_count": rows, **inner.get((*path, value), {})} for value, rows in pairs
        ]
        return answer

    def _edges(self, body: Mapping[str, Any], key: GroupKey) -> list[Any]:
        """The buckets that `extended_bounds` adds at both ends."""
        bounds = object_at(body.get("extended_bounds"), "extended_bounds")
        if set(bounds) - {"min", "max"}:
            raise refused("[extended_bounds] has min and max")
        kind = key.column.type
        ends = [value_at(value, "extended_bounds") for value in bounds.values()]
        try:
            values = pa.array([bound(value, kind, self._columns.now) for value in ends], kind)
            return key.bucket.of(values).to_pylist() if key.bucket and ends else []
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            raise refused(f"[extended_bounds] {ends!r:.60} are not values of {key.column}") from None

    def _key(self, level: Level, depth: int) -> GroupKey:
        body = level.body
        name = self._columns.column(body.get("field"), f"{level.kind}.field")
        shown = f"key{depth}"
        if level.kind == "terms":
            return key_of(self._snapshot.schema, quoted_name(name), shown=shown)
        if flag_at(body.get("keyed", False), "keyed") or body.get("format") not in _FORMATS:
            raise refused(f"[{level.kind}] gives its buckets as a list, with dates as ISO text")
        names = ("fixed_interval", "calendar_interval", "interval")
        intervals = [body[key] for key in names if body.get(key) is not None]
        if len(intervals) != 1:
            raise refused(f"[{level.kind}] has exactly one interval")
        interval = value_at(intervals[0], "interval")
        if level.kind == "date_histogram":
            interval = _CALENDAR.get(text_at(interval, "interval"), interval)
            if interval.endswith("M"):
                raise refused(f"[{interval}] is no interval; months are counted one or three at a time")
        offset = body.get("offset")
        bucket = bucket_of(
            column_of(self._snapshot.schema, quoted_name(name)).type,
            interval,
            offset=None if offset is None else value_at(offset, "offset"),
            zone=text_at(body.get("time_zone", "UTC"), "time_zone"),
        )
        return key_of(self._snapshot.schema, quoted_name(name), bucket, shown=shown)

    def _counted(
        self, keys: tuple[GroupKey, ...], metrics: Any
    ) -> list[tuple[Path, int, dict[str, dict[str, Any]]]]:
        """One entry per group: its keys, its number of rows, and its metrics."""
        aggregates = [Aggregate("rows", "count")]
        for number, level in enumerate(metrics):
            name = quoted_name(self._columns.column(level.body.get("field"), f"{level.kind}.field"))
            distinct = level.kind == "cardinality"
            schema, function = self._snapshot.schema, METRICS[level.kind]
            aggregates.append(aggregate_of(schema, f"metric{number}", function, name, distinct=distinct))
        question = Aggregation(keys, tuple(aggregates))
        table, _ = run.answer(self._snapshot, question, self._criteria.query, self._criteria.where)
        groups = []
        for row in table.to_pylist():
            path = tuple(row[key.name] for key in keys)
            values = {
                level.name: {"value": _number(row[f"metric{number}"])} for number, level in enumerate(metrics)
            }
            groups.append((path, row["rows"], values))
        return groups


def _levels(aggregations: Any) -> list[Level]:
    levels = []
    for name, value in object_at(aggregations, "aggs").items():
        body = object_at(value, f"aggs.{name}")
        kinds = [key for key in body if key not in (*_NESTED, "meta")]
        if len(kinds) != 1 or kinds[0] not in (*METRICS, *BUCKETS):
            raise refused(f"the aggregation [{name}] is none of {', '.join((*BUCKETS, *METRICS))}")
        kind = kinds[0]
        inside = object_at(body[kind], f"aggs.{name}.{kind}")
        unknown = sorted(set(inside) - set(BUCKETS.get(kind, _OF_METRICS)))
        inner = {**object_at(body.get("aggs"), "aggs"), **object_at(body.get("aggregations"), "aggregations")}
        if unknown or (inner and kind in METRICS):
            raise refused(f"[{kind}] does not support {unknown or 'aggregations inside it'}")
        levels.append(Level(name, kind, inside, inner))
    return levels


def _ordered(pairs: list[tuple[Any, int]], order: Any) -> list[tuple[Any, int]]:
    # Equal counts come in the order of their keys.
    for item in reversed([*(list_at(order, "order") or [{"_count": "desc"}]), {"_key": "asc"}]):
        entry = object_at(object_or_value(item, "order"), "order")
        if len(entry) != 1 or set(entry) - {"_count", "_key", "_term"}:
            raise refused(f"[terms] is ordered by _count or _key, not by {sorted(entry)}")
        ((by, way),) = entry.items()
        if way not in ("asc", "desc"):
            raise refused(f"[order] is asc or desc, not {way!r:.60}")
        place = 1 if by == "_count" else 0
        pairs = sorted(pairs, key=lambda pair: pair[place], reverse=way == "desc")
    return pairs


def _without_gaps(pairs: list[tuple[Any, int]], key: GroupKey, edges: list[Any]) -> list[tuple[Any, int]]:
    """Buckets without rows between others, as Elasticsearch shows them."""
    rows = {**dict.fromkeys(edges, 0), **dict(pairs)}
    finite = [value for value in rows if not isinstance(value, float) or math.isfinite(value)]
    if len(finite) <= 1 or key.bucket is None:
        return sorted(rows.items())
    for value in _between(min(finite), max(finite), key):
        rows.setdefault(value, 0)
        if len(rows) > _MOST_BUCKETS:
            raise _too_many()
    return sorted(rows.items())


def _between(first: Any, last: Any, key: GroupKey) -> Iterator[Any]:
    """The bucket after the first one, and so on up to the last."""
    if isinstance(key.bucket, Calendar):
        if (last - first) / (_length(key.bucket) + timedelta(hours=2)) > _MOST_BUCKETS:
            raise _too_many()
        while first < last:
            first = _following(first, key.bucket, key.type)
            yield first
    elif key.bucket is not None:
        size, offset = (type(first)(value) for value in (key.bucket.size, key.bucket.offset))
        # A bucket begins at a multiple of the size: adding sizes up would miss it by a rounding.
        for step in range(round((first - offset) / size) + 1, round((last - offset) / size)):
            yield step * size + offset


def _too_many() -> QueryError:
    return refused(f"the histogram has more than {_MOST_BUCKETS} buckets; use a longer interval")


def _length(bucket: Calendar) -> timedelta:
    """How long a bucket is at most, by the calendar."""
    return timedelta(microseconds=bucket.span.longest_us)


def _following(at: Any, bucket: Calendar, kind: pa.DataType) -> Any:
    step = _length(bucket)
    # A little beyond the end of the longest such bucket is inside the next, whatever the clocks do.
    later = at + step + (min(step / 2, timedelta(hours=2)) if isinstance(at, datetime) else timedelta())
    return bucket.of(pa.array([later], kind))[0].as_py()


def _key_shown(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": int(value), "key_as_string": str(value).lower()}
    if isinstance(value, (datetime, date)):
        moment = (
            value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
        )
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return {"key": round(aware.timestamp() * 1000), "key_as_string": plain_value(aware.astimezone(UTC))}
    return {"key": _number(value)}


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (datetime, date)):
        return _key_shown(value)["key"]
    return plain_value(value)
