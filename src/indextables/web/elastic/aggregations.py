"""Elasticsearch's aggregations: terms, histograms and metrics, one inside the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from indextables.log.snapshot import Snapshot
from indextables.model.plain import plain_value
from indextables.ops.counting import run
from indextables.ops.counting.buckets import Calendar, bucket_of
from indextables.ops.counting.question import Aggregate, Key, Question, column_of, key_of
from indextables.web.elastic.translate import Asked, Columns, refused

METRICS = {
    "min": "min", "max": "max", "sum": "sum", "avg": "avg", "value_count": "count", "cardinality": "count",
}  # fmt: skip
BUCKETS = ("terms", "date_histogram", "histogram")
_NESTED = ("aggs", "aggregations")
_TERMS = 10
_CALENDAR = {"1M": "1mon", "month": "1mon", "1q": "3mon", "quarter": "3mon", "1y": "1y", "year": "1y"}
_MOST_GAPS = 10_000

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

    def __init__(self, snapshot: Snapshot, columns: Columns, asked: Asked) -> None:
        self._snapshot = snapshot
        self._columns = columns
        self._asked = asked

    def answer(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The `aggregations` of a response."""
        return self._inside(_levels(given), ()).get((), {})

    def _inside(self, levels: list[Level], keys: tuple[Key, ...]) -> dict[Path, dict[str, Any]]:
        """What the aggregations of one level are in each of the groups around it."""
        found: dict[Path, dict[str, Any]] = {}
        metrics = [level for level in levels if level.kind in METRICS]
        if metrics:
            for path, _, values in self._counted(keys, metrics):
                found.setdefault(path, {}).update(values)
        for level in levels:
            if level.kind in BUCKETS:
                for path, buckets in self._buckets(level, keys).items():
                    found.setdefault(path, {})[level.name] = buckets
        return found

    def _buckets(self, level: Level, around: tuple[Key, ...]) -> dict[Path, dict[str, Any]]:
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
        key: Key,
        path: Path,
        pairs: list[tuple[Any, int]],
        inner: Mapping[Path, dict[str, Any]],
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        if level.kind == "terms":
            size = int(level.body.get("size", _TERMS))
            pairs = _ordered(pairs, level.body.get("order"))
            answer = {
                "doc_count_error_upper_bound": 0,
                "sum_other_doc_count": sum(rows for _, rows in pairs[size:]),
            }
            pairs = pairs[:size]
        elif level.body.get("min_doc_count", 0) == 0:
            pairs = _without_gaps(pairs, key)
        else:
            least = int(level.body["min_doc_count"])
            pairs = [pair for pair in pairs if pair[1] >= least]
        answer["buckets"] = [
            {**_key_shown(value), "doc_count": rows, **inner.get((*path, value), {})} for value, rows in pairs
        ]
        return answer

    def _key(self, level: Level, depth: int) -> Key:
        name = self._columns.field(str(level.body.get("field")))
        shown = f"key{depth}"
        if level.kind == "terms":
            return key_of(self._snapshot.schema, name, shown=shown)
        body = level.body
        interval = body.get("fixed_interval") or body.get("calendar_interval") or body.get("interval") or "1d"
        if level.kind == "date_histogram":
            interval = _CALENDAR.get(interval, interval)
        zone = body.get("time_zone", "UTC")
        kind = column_of(self._snapshot.schema, name).type
        bucket = bucket_of(kind, interval, offset=body.get("offset"), zone=zone)
        return key_of(self._snapshot.schema, name, bucket, shown=shown)

    def _counted(
        self, keys: tuple[Key, ...], metrics: Any
    ) -> list[tuple[Path, int, dict[str, dict[str, Any]]]]:
        """One entry per group: where it is, its rows, and its metrics."""
        wanted = [Aggregate("rows", "count")]
        for number, level in enumerate(metrics):
            column = column_of(self._snapshot.schema, self._columns.field(str(level.body.get("field"))))
            wanted.append(
                Aggregate(
                    f"metric{number}", METRICS[level.kind], column, distinct=level.kind == "cardinality"
                )
            )
        asked = self._asked
        table, _ = run.answer(self._snapshot, Question(keys, tuple(wanted)), asked.query, asked.where)
        found = []
        for row in table.to_pylist():
            path = tuple(row[key.name] for key in keys)
            values = {
                level.name: {"value": _number(row[f"metric{number}"])} for number, level in enumerate(metrics)
            }
            found.append((path, row["rows"], values))
        return found


def _levels(given: Mapping[str, Any]) -> list[Level]:
    found = []
    for name, body in given.items():
        kinds = [key for key in body if key not in (*_NESTED, "meta")]
        if len(kinds) != 1 or kinds[0] not in (*METRICS, *BUCKETS):
            raise refused(f"the aggregation [{name}] is none of {', '.join((*BUCKETS, *METRICS))}")
        inner = body.get("aggs") or body.get("aggregations") or {}
        found.append(Level(name, kinds[0], body[kinds[0]], inner))
    return found


def _ordered(pairs: list[tuple[Any, int]], order: Any) -> list[tuple[Any, int]]:
    first = order[0] if isinstance(order, list) and order else order
    ((by, way),) = (first or {"_count": "desc"}).items()
    if by not in ("_count", "_key", "_term"):
        raise refused(f"[terms] is ordered by _count or _key, not by [{by}]")
    place = 1 if by == "_count" else 0
    return sorted(pairs, key=lambda pair: pair[place], reverse=str(way).lower() == "desc")


def _without_gaps(pairs: list[tuple[Any, int]], key: Key) -> list[tuple[Any, int]]:
    """Buckets without rows between others, as Elasticsearch shows them."""
    if len(pairs) <= 1 or key.bucket is None:
        return pairs
    known = dict(pairs)
    found, at, last = [], min(known), max(known)
    while at <= last:
        found.append((at, known.get(at, 0)))
        if len(found) > _MOST_GAPS:
            raise refused(f"the histogram has more than {_MOST_GAPS} buckets; use a longer interval")
        at = _following(at, key)
    return found


def _following(at: Any, key: Key) -> Any:
    if not isinstance(key.bucket, Calendar):
        return at + key.bucket.size if key.bucket else at
    span = key.bucket.span
    step = timedelta(days=span.days + 31 * span.months, microseconds=span.microseconds)
    # A little beyond the end of the longest such bucket is inside the next, whatever the clocks do.
    later = at + step + (min(step / 2, timedelta(hours=2)) if isinstance(at, datetime) else timedelta())
    return key.bucket.of(pa.array([later], key.type))[0].as_py()


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
