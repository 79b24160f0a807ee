"""Elasticsearch's query clauses as a full-text query and a filter that both have to hold.

Words are looked for by the query language, values and ranges by the filter. A
clause under `should` or `must_not` has to be one or the other: a choice between
words and values cannot be asked in one question, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from indextables.errors import QueryError
from indextables.predicate.build.from_sql import as_node
from indextables.predicate.expr import Expr
from indextables.predicate.tree import FALSE, IsTrue, Node, Not, all_of, any_of
from indextables.web.questions import moment, quoted

_WORDS = ("text", "json", "ip")
_MATH = re.compile(r"now(?:([+-])(\d+)([smhdw]))?\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and a filter; None asks nothing."""

    query: str | None = None
    where: Node | None = None

    @property
    def is_all(self) -> bool:
        """Whether every row is meant."""
        return self.query is None and self.where is None


@dataclass(frozen=True, slots=True)
class Columns:
    """What the translation has to know of a table."""

    schema: pa.Schema
    indexed: Mapping[str, str]
    """The kind of index of each indexed column."""
    now: datetime

    def field(self, name: str) -> str:
        """The column a clause names; `level.keyword` is the column `level`, as dashboards write it."""
        plain = name if name in self.schema.names else name.removesuffix(".keyword")
        if plain not in self.schema.names and not self._is_path(plain):
            raise refused(f"there is no field [{name}]")
        return plain

    def _is_path(self, name: str) -> bool:
        return self.indexed.get(name.partition(".")[0]) == "json"

    def has_words(self, name: str) -> bool:
        """Whether a column is searched by its words."""
        return self.indexed.get(name.partition(".")[0]) in _WORDS

    def node(self, expr: Expr) -> Node:
        """A condition, typed."""
        found = as_node(expr, self.schema, "UTC")
        assert found is not None
        return found


def refused(reason: str) -> QueryError:
    """The error for what cannot be answered exactly."""
    return QueryError(f"{reason}; what is supported stands in docs/serve.md", elastic=True)


def translate(clause: Mapping[str, Any] | None, columns: Columns) -> Asked:
    """Read one clause."""
    if not clause:
        return Asked()
    if len(clause) != 1:
        raise refused("a query clause has exactly one name")
    ((name, body),) = clause.items()
    if name == "bool":
        return _bool(body, columns)
    if name not in _CLAUSES:
        raise refused(f"the query clause [{name}] is not supported")
    return _CLAUSES[name](body, columns)


def _bool(body: Mapping[str, Any], columns: Columns) -> Asked:
    known = {"must", "filter", "should", "must_not", "minimum_should_match", "boost"}
    if set(body) - known:
        raise refused(f"[bool] does not support {sorted(set(body) - known)}")

    def parts(key: str) -> list[Asked]:
        given = body.get(key) or []
        return [translate(item, columns) for item in (given if isinstance(given, list) else [given])]

    needed = parts("must") + parts("filter")
    should = parts("should")
    least = body.get("minimum_should_match", 0 if needed else 1)
    if should and least not in (0, 1, "0", "1"):
        raise refused("[minimum_should_match] is 0 or 1 here")
    if should and int(least) == 1:
        needed.append(_any(should))
    needed += [_none(item) for item in parts("must_not")]
    return _every(needed)


def _every(parts: Sequence[Asked]) -> Asked:
    queries = [part.query for part in parts if part.query is not None]
    wheres = [part.where for part in parts if part.where is not None]
    query = queries[0] if len(queries) == 1 else " AND ".join(f"({text})" for text in queries) or None
    return Asked(query, all_of(wheres) if wheres else None)


def _any(parts: Sequence[Asked]) -> Asked:
    if any(part.is_all for part in parts):
        return Asked()
    if all(part.where is None for part in parts):
        return Asked(query=" OR ".join(f"({part.query})" for part in parts))
    if all(part.query is None for part in parts):
        return Asked(where=any_of([part.where for part in parts if part.where is not None]))
    raise refused("a [should] between words and values cannot be answered in one question")


def _none(part: Asked) -> Asked:
    if part.is_all:
        return Asked(where=FALSE)
    if part.where is None:
        return Asked(query=f"* AND NOT ({part.query})")
    if part.query is None:
        # A row without the value does not have it, as in Elasticsearch.
        return Asked(where=Not(IsTrue(part.where)))
    raise refused("a [must_not] of words and values together cannot be answered in one question")


def _one(body: Mapping[str, Any], key: str) -> tuple[str, Any, dict[str, Any]]:
    """The field of a clause, the value under `key` or given directly, and the other settings."""
    if len(body) != 1:
        raise refused("a clause names exactly one field")
    ((field, given),) = body.items()
    if isinstance(given, Mapping):
        return (
            field,
            given.get(key),
            {name: item for name, item in given.items() if name not in (key, "boost")},
        )
    return field, given, {}


def _match(body: Mapping[str, Any], columns: Columns) -> Asked:
    field, text, rest = _one(body, "query")
    way = str(rest.pop("operator", "or")).upper()
    if rest or way not in ("OR", "AND"):
        raise refused(f"[match] does not support {sorted(rest) or way}")
    name = columns.field(field)
    if not columns.has_words(name):
        return _equal(name, text, columns)
    words = [f"{_name(name)}:{_phrase(word)}" for word in str(text).split()]
    return Asked(query=f" {way} ".join(words)) if words else Asked(where=FALSE)


def _match_phrase(body: Mapping[str, Any], columns: Columns) -> Asked:
    field, text, rest = _one(body, "query")
    slop = rest.get("slop", 0)
    if set(rest) - {"slop"} or not isinstance(slop, int):
        raise refused(f"[match_phrase] does not support {sorted(set(rest) - {'slop'})}")
    name = columns.field(field)
    if not columns.has_words(name):
        return _equal(name, text, columns)
    return Asked(query=f"{_name(name)}:{_phrase(str(text))}{f'~{slop}' if slop else ''}")


def _multi_match(body: Mapping[str, Any], columns: Columns) -> Asked:
    fields = [str(field).partition("^")[0] for field in body.get("fields") or _searchable(columns)]
    kind = body.get("type", "best_fields")
    clause = _match_phrase if kind == "phrase" else _match
    if set(body) - {"query", "fields", "type", "operator"} or kind not in ("best_fields", "phrase"):
        raise refused("[multi_match] supports query, fields, operator and the types best_fields and phrase")
    settings = {"operator": body["operator"]} if "operator" in body else {}
    return _any([clause({field: {"query": body.get("query"), **settings}}, columns) for field in fields])


def _query_string(body: Mapping[str, Any], columns: Columns) -> Asked:
    ignored = {"analyze_wildcard", "lenient", "boost", "allow_leading_wildcard"}
    way = str(body.get("default_operator", "OR")).upper()
    extra = set(body) - {"query", "default_field", "fields", "default_operator"} - ignored
    if extra or way != "OR":
        raise refused(f"[query_string] does not support {sorted(extra) or 'default_operator AND'}")
    text = str(body.get("query", "")).strip()
    if text in ("", "*", "*:*"):
        return Asked()
    fields = body.get("fields") or ([body["default_field"]] if body.get("default_field") else [])
    if not fields or fields == ["*"]:
        return Asked(query=text)
    names = [columns.field(str(field).partition("^")[0]) for field in fields]
    return Asked(query=" OR ".join(f"{_name(name)}:({text})" for name in names))


def _term(body: Mapping[str, Any], columns: Columns) -> Asked:
    field, value, rest = _one(body, "value")
    if rest:
        raise refused(f"[term] does not support {sorted(rest)}")
    name = columns.field(field)
    return (
        Asked(query=f"{_name(name)}:{_phrase(str(value))}")
        if columns.has_words(name)
        else _equal(name, value, columns)
    )


def _terms(body: Mapping[str, Any], columns: Columns) -> Asked:
    ((field, values),) = ((key, item) for key, item in body.items() if key != "boost")
    if not isinstance(values, list):
        raise refused("[terms] takes a list of values")
    if not values:
        return Asked(where=FALSE)
    return _any([_term({field: value}, columns) for value in values])


def _range(body: Mapping[str, Any], columns: Columns) -> Asked:
    if len(body) != 1:
        raise refused("[range] names exactly one field")
    ((field, bounds),) = body.items()
    name = columns.field(field)
    column, kind = quoted(name), columns.schema.field(name).type
    compare: dict[str, Callable[[Any], Expr]] = {
        "gte": lambda value: column >= value,
        "gt": lambda value: column > value,
        "lte": lambda value: column <= value,
        "lt": lambda value: column < value,
    }
    parts = []
    for key, value in bounds.items():
        if key in compare and value is not None:
            parts.append(columns.node(compare[key](_bound(value, kind, columns.now))))
        elif key not in (*compare, "format", "boost", "time_zone"):
            raise refused(f"[range] does not support [{key}]")
    if bounds.get("time_zone") not in (None, "UTC", "Z", "+00:00"):
        raise refused("[range] takes times in UTC")
    return Asked(where=all_of(parts)) if parts else _exists({"field": field}, columns)


def _bound(value: Any, kind: pa.DataType, now: datetime) -> Any:
    """A bound as the column compares it: milliseconds since 1970, ISO text or `now-1h` for times."""
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return value
    if isinstance(value, (int, float)) or re.fullmatch(r"-?\d{10,}", str(value)):
        when = datetime.fromtimestamp(float(value) / 1000, UTC)
        return moment(when.isoformat(), kind)
    relative = _MATH.match(str(value))
    if relative is None:
        return moment(str(value), kind)
    sign, number, unit = relative.groups()
    shift = timedelta(**{_UNITS[unit]: int(number)}) if unit else timedelta()
    return moment((now - shift if sign == "-" else now + shift).isoformat(), kind)


def _exists(body: Mapping[str, Any], columns: Columns) -> Asked:
    return Asked(where=columns.node(quoted(columns.field(str(body.get("field")))).is_not_null()))


def _prefix(body: Mapping[str, Any], columns: Columns) -> Asked:
    field, text, rest = _one(body, "value")
    name = columns.field(field)
    if rest or columns.has_words(name):
        raise refused("[prefix] works on fields of whole values; use [query_string] with word*")
    return Asked(where=columns.node(quoted(name).startswith(str(text))))


def _wildcard(body: Mapping[str, Any], columns: Columns) -> Asked:
    field, text, rest = _one(body, "value")
    name = columns.field(field)
    if set(rest) - {"wildcard"} or columns.has_words(name):
        raise refused("[wildcard] works on fields of whole values; use [query_string] with word*")
    escaped = re.sub(r"([\\%_])", r"\\\1", str(text if text is not None else rest.get("wildcard")))
    return Asked(where=columns.node(quoted(name).like(escaped.replace("*", "%").replace("?", "_"))))


def _equal(name: str, value: Any, columns: Columns) -> Asked:
    kind = columns.schema.field(name).type
    if isinstance(value, str) and not pa.types.is_string(kind):
        value = _bound(value, kind, columns.now)
    return Asked(where=columns.node(quoted(name) == value))


def _searchable(columns: Columns) -> Iterable[str]:
    return [name for name, kind in columns.indexed.items() if kind in _WORDS]


def _name(name: str) -> str:
    if not _PLAIN_NAME.match(name):
        raise refused(f"the field [{name}] has a name that a query of words cannot spell")
    return name


def _phrase(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_CLAUSES: dict[str, Callable[[Any, Columns], Asked]] = {
    "match_all": lambda _body, _columns: Asked(),
    "match_none": lambda _body, _columns: Asked(where=FALSE),
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
