"""Elasticsearch's query clauses as a full-text query and a filter that both have to hold.

Words are looked for by the query language, values and ranges by the filter. Each
clause becomes a tree of its own and trees are combine_queries, so that no text of a request
can reach beyond its clause. A clause under `should` or `must_not` has to be one or
the other: a choice between words and values cannot be asked in one question, and is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from indextables.index.query.tree import Query, combine_queries
from indextables.log.snapshot import Snapshot
from indextables.model.names import find_name
from indextables.ops.table_settings import query_of, settings_of
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.expr import Expr
from indextables.predicate.tree import FALSE, IsTrue, Node, Not, all_of, any_of
from indextables.web.elastic.shapes import (
    list_at,
    object_at,
    refused,
    text_at,
    texts_at,
    value_at,
    whole_at,
)
from indextables.web.row_request import moment, quoted

_WORDS = ("text", "json", "ip")
_MATH = re.compile(r"now(?:([+-])(\d{1,9})([smhdw]))?\Z")
_MILLISECONDS = re.compile(r"-?\d{10,}", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Criteria:
    """A full-text query and a filter that both have to hold; None holds for every row."""

    query: Query | None = None
    where: Node | None = None

    @property
    def is_all(self) -> bool:
        """Whether every row satisfies it."""
        return self.query is None and self.where is None


@dataclass(frozen=True, slots=True)
class TableFields:
    """The columns of one version of a table as fields, and the moment that `now` means."""

    snapshot: Snapshot
    now: datetime

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self.snapshot.schema

    @property
    def indexed(self) -> Mapping[str, str]:
        """The kind of index that queries search in each indexed column."""
        return {item.column: item.kind for item in settings_of(self.snapshot).searchable().fields}

    def has_values(self, column: str) -> bool:
        """Whether a column of words has its whole values in the index as well, as the field `x.keyword`."""
        return "string" in settings_of(self.snapshot).kinds(column) and self.has_words(column)

    def field(self, value: Any, place: str) -> str:
        """The column a clause names; `level.keyword` is the column `level`, as dashboards write it."""
        name = text_at(value, place)
        for spelled in (name, name.removesuffix(".keyword")):
            column = find_name(self.schema.names, spelled)
            if column is not None:
                return column
        head, dot, path = name.partition(".")
        column = find_name(self.schema.names, head)
        if dot and column is not None and self._has_paths(column):
            return f"{column}.{path}"
        raise refused(f"there is no field [{name}]")

    def _has_paths(self, column: str) -> bool:
        """Whether values inside a column are found by their path: as JSON, or compared without an index."""
        index = self.indexed.get(column)
        return index == "json" or (index is None and pa.types.is_nested(self.schema.field(column).type))

    def column(self, value: Any, place: str) -> str:
        """A column by itself, not a path inside one."""
        name = self.field(value, place)
        if name not in self.schema.names:
            raise refused(f"[{place}] takes a column, not the path [{name}] inside one")
        return name

    def has_words(self, name: str, field: Any = "") -> bool:
        """Whether a column is searched by its words; not so where the clause names its whole values."""
        if str(field).endswith(".keyword") and self.has_values(name):
            return False
        head = name if name in self.schema.names else name.partition(".")[0]
        return self.indexed.get(head) in _WORDS

    def node(self, expr: Expr) -> Node:
        """A condition, typed."""
        condition = as_node(expr, self.schema, "UTC")
        assert condition is not None
        return condition

    def query(self, text: str, columns: Sequence[str] | None = None, operator: str = "or") -> Criteria:
        """The rows that a text of the query language finds, as a tree of its own."""
        return Criteria(query_of(self.snapshot, text, columns, operator))

    def words(self, text: str, column: str, slop: int = 0) -> Criteria:
        """The rows in which the words of a text follow each other in a column."""
        quoted_text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return self.query(f"{quoted_text}~{slop}" if slop else quoted_text, [column])


def translate(clause: Any, columns: TableFields, place: str = "query") -> Criteria:
    """Read one clause."""
    entries = object_at(clause, place)
    if not entries:
        return Criteria()
    name, body = _only_entry(entries, place)
    if name not in _CLAUSES:
        raise refused(f"the query clause [{name}] is not supported")
    return _CLAUSES[name](object_at(body, name), columns)


def _only_entry(entries: Mapping[str, Any], place: str) -> tuple[str, Any]:
    """The one entry of an object."""
    if len(entries) != 1:
        raise refused(f"[{place}] has exactly one name in it, not {len(entries)}")
    ((name, body),) = entries.items()
    return name, body


def _refuse_others(body: Mapping[str, Any], names: Iterable[str], place: str) -> None:
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise refused(f"[{place}] does not support {unknown}")


def _bool(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    _refuse_others(body, ("must", "filter", "should", "must_not", "minimum_should_match", "boost"), "bool")

    def parts(key: str) -> list[Criteria]:
        return [translate(item, columns, f"bool.{key}") for item in list_at(body.get(key), f"bool.{key}")]

    needed = parts("must") + parts("filter")
    should = parts("should")
    least = whole_at(body.get("minimum_should_match", 0 if needed else 1), "minimum_should_match")
    if should and least not in (0, 1):
        raise refused("[minimum_should_match] is 0 or 1 here")
    if should and least == 1:
        needed.append(_any_of(should))
    needed += [_none_of(item) for item in parts("must_not")]
    return _all_of(needed)


def _all_of(parts: Sequence[Criteria]) -> Criteria:
    queries = [part.query for part in parts if part.query is not None]
    wheres = [part.where for part in parts if part.where is not None]
    return Criteria(combine_queries(must=queries) if queries else None, all_of(wheres) if wheres else None)


def _any_of(parts: Sequence[Criteria]) -> Criteria:
    if any(part.is_all for part in parts):
        return Criteria()
    queries = [part.query for part in parts if part.query is not None]
    wheres = [part.where for part in parts if part.where is not None]
    if not wheres:
        return Criteria(combine_queries(should=queries)) if queries else Criteria(where=FALSE)
    if not queries:
        return Criteria(where=any_of(wheres))
    raise refused("a [should] between words and values cannot be answered in one question")


def _none_of(part: Criteria) -> Criteria:
    if part.is_all:
        return Criteria(where=FALSE)
    if part.query is None:
        # A row without the value does not have it, as in Elasticsearch.
        return Criteria(where=Not(IsTrue(part.where))) if part.where is not None else Criteria()
    if part.where is None:
        return Criteria(combine_queries(must_not=[part.query]))
    raise refused("a [must_not] of words and values together cannot be answered in one question")


def _field_and_value(body: Mapping[str, Any], key: str, place: str) -> tuple[str, Any, dict[str, Any]]:
    """The field of a clause, the value under `key` or given directly, and the other settings."""
    field, value = _only_entry(body, place)
    if isinstance(value, Mapping):
        rest = {name: item for name, item in value.items() if name not in (key, "boost")}
        return field, value_at(value.get(key), f"{place}.{field}.{key}"), rest
    return field, value_at(value, f"{place}.{field}"), {}


def _match(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, text, rest = _field_and_value(body, "query", "match")
    way = text_at(rest.pop("operator", "or"), "match.operator").lower()
    _refuse_others(rest, (), "match")
    if way not in ("or", "and"):
        raise refused(f"[match] has the operators or and and, not [{way}]")
    name = columns.field(field, "match")
    if not columns.has_words(name, field):
        return _equal(name, text, columns)
    words = [columns.words(word, name) for word in str(text).split()]
    return (_all_of if way == "and" else _any_of)(words) if words else Criteria(where=FALSE)


def _match_phrase(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, text, rest = _field_and_value(body, "query", "match_phrase")
    slop = whole_at(rest.pop("slop", 0), "match_phrase.slop")
    _refuse_others(rest, (), "match_phrase")
    if not 0 <= slop <= _MOST_SLOP:
        raise refused(f"[match_phrase] takes a slop from 0 to {_MOST_SLOP}, not {slop}")
    name = columns.field(field, "match_phrase")
    return (
        columns.words(str(text), name, slop)
        if columns.has_words(name, field)
        else _equal(name, text, columns)
    )


def _multi_match(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    _refuse_others(body, ("query", "fields", "type", "operator"), "multi_match")
    fields = _fields(body.get("fields"), "multi_match.fields")
    kind = body.get("type", "best_fields")
    if kind not in ("best_fields", "phrase"):
        raise refused("[multi_match] supports the types best_fields and phrase")
    clause = _match_phrase if kind == "phrase" else _match
    settings = {"operator": body["operator"]} if "operator" in body else {}
    every = fields or [name for name, index in columns.indexed.items() if index in _WORDS]
    return _any_of([clause({field: {"query": body.get("query"), **settings}}, columns) for field in every])


def _fields(value: Any, place: str) -> list[str]:
    """Names of fields without their boosts."""
    return [field.partition("^")[0] for field in texts_at(value, place)]


def _query_string(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    harmless = ("analyze_wildcard", "lenient", "boost", "allow_leading_wildcard")
    _refuse_others(body, ("query", "default_field", "fields", "default_operator", *harmless), "query_string")
    operator = text_at(body.get("default_operator", "or"), "query_string.default_operator").lower()
    if operator not in ("or", "and"):
        raise refused(f"[query_string] has the default operators or and and, not [{operator}]")
    text = text_at(body.get("query", ""), "query_string.query").strip()
    if text in ("", "*", "*:*"):
        return Criteria()
    fields = _fields(body.get("fields") or body.get("default_field"), "query_string.fields")
    names = None if fields in ([], ["*"]) else [columns.field(one, "query_string.fields") for one in fields]
    return columns.query(text, names, operator)


def _term(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, value, rest = _field_and_value(body, "value", "term")
    _refuse_others(rest, (), "term")
    name = columns.field(field, "term")
    return (
        columns.words(_spelled(value), name)
        if columns.has_words(name, field)
        else _equal(name, value, columns)
    )


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _terms(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, values = _only_entry({key: item for key, item in body.items() if key != "boost"}, "terms")
    if not isinstance(values, list):
        raise refused("[terms] takes a list of values")
    if not values:
        return Criteria(where=FALSE)
    return _any_of([_term({field: value_at(value, f"terms.{field}")}, columns) for value in values])


def _range(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, entry = _only_entry(body, "range")
    bounds = object_at(entry, f"range.{field}")
    name = columns.column(field, "range")
    column, kind = quoted(name), columns.schema.field(name).type
    compare: dict[str, Callable[[Any], Expr]] = {
        "gte": lambda value: column >= value,
        "gt": lambda value: column > value,
        "lte": lambda value: column <= value,
        "lt": lambda value: column < value,
    }
    _refuse_others(bounds, (*compare, "format", "boost", "time_zone"), "range")
    if bounds.get("time_zone") not in (None, "UTC", "Z", "+00:00"):
        raise refused("[range] takes times in UTC")
    seconds = _is_seconds(bounds.get("format"))
    parts = [
        columns.node(compare[key](bound(value_at(value, f"range.{field}.{key}"), kind, columns.now, seconds)))
        for key, value in bounds.items()
        if key in compare and value is not None
    ]
    return Criteria(where=all_of(parts)) if parts else _exists({"field": field}, columns)


def _is_seconds(value: Any) -> bool:
    """Whether a format says that numbers are seconds; formats that would change a value are refused."""
    formats = [] if value is None else text_at(value, "range.format").split("||")
    unknown = [one for one in formats if one not in _FORMATS]
    if unknown or ("epoch_second" in formats and "epoch_millis" in formats):
        raise refused(f"[range] reads times in the formats {', '.join(_FORMATS)}, not in [{value}]")
    return "epoch_second" in formats


def bound(value: Any, kind: pa.DataType, now: datetime, seconds: bool = False) -> Any:
    """A bound as the column compares it: a number since 1970, ISO text or `now-1h` for times."""
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return value
    relative = _MATH.match(str(value))
    try:
        if relative is not None:
            sign, number, unit = relative.groups()
            shift = timedelta(**{_UNITS[unit]: int(number)}) if unit else timedelta()
            return moment((now - shift if sign == "-" else now + shift).isoformat(), kind)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number or _MILLISECONDS.fullmatch(str(value)):
            since = _EPOCH + (
                timedelta(seconds=float(value)) if seconds else timedelta(milliseconds=float(value))
            )
            return moment(since.isoformat(), kind)
    except (OverflowError, ValueError):
        raise refused(f"{value!r:.60} is not a time between the years 1 and 9999") from None
    return moment(str(value), kind)


def _exists(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    _refuse_others(body, ("field", "boost"), "exists")
    name = columns.column(body.get("field"), "exists.field")
    return Criteria(where=columns.node(quoted(name).is_not_null()))


def _prefix(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, text, rest = _field_and_value(body, "value", "prefix")
    _refuse_others(rest, (), "prefix")
    return Criteria(where=columns.node(_whole(field, "prefix", columns).startswith(str(text))))


def _wildcard(body: Mapping[str, Any], columns: TableFields) -> Criteria:
    field, entry = _only_entry(body, "wildcard")
    key = "wildcard" if isinstance(entry, Mapping) and "wildcard" in entry else "value"
    _, text, rest = _field_and_value(body, key, "wildcard")
    _refuse_others(rest, (), "wildcard")
    escaped = re.sub(r"([\\%_])", r"\\\1", str(text)).replace("*", "%").replace("?", "_")
    return Criteria(where=columns.node(_whole(field, "wildcard", columns).like(escaped)))


def _whole(field: str, place: str, columns: TableFields) -> Expr:
    """A column of texts that are compared as a whole."""
    name = columns.column(field, place)
    if columns.has_words(name, field) or not pa.types.is_string(columns.schema.field(name).type):
        raise refused(f"[{place}] works on fields of whole texts; for words use [query_string] with word*")
    return quoted(name)


def _equal(field: str, value: Any, columns: TableFields) -> Criteria:
    name = columns.column(field, "field")
    kind = columns.schema.field(name).type
    if not pa.types.is_string(kind):
        value = bound(value, kind, columns.now)
    return Criteria(where=columns.node(quoted(name) == value))


_FORMATS = ("strict_date_optional_time", "date_optional_time", "epoch_millis", "epoch_second")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SLOP = 1000
_CLAUSES: dict[str, Callable[[Mapping[str, Any], TableFields], Criteria]] = {
    "bool": _bool,
    "match_all": lambda _body, _columns: Criteria(),
    "match_none": lambda _body, _columns: Criteria(where=FALSE),
    "match": _match,
    "match_phrase": _match_phrase,
    "multi_match": _multi_match,
    "query_string": _query_string,
    "term": _term,
    "terms": _terms,
    "range": _range,
    "exists": _exists,
    "prefix": _prefix,
    "wildcard": _wildcard,
}
