"""The doors: each takes a question about a table and gives its answer in one plain form.

rows and score: the ids, ascending; order: the ids in order; groups: key -> (count, min, max, sum
of n); facets: value -> count; histogram: beginning -> count. A door that cannot be asked a question
raises NotOffered, which is counted; every other error is a difference.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pyarrow as pa

import indextables as it
from doors import reference
from doors.questions import Question, Writer
from doors.worlds import World

TOKEN = "a-token-for-the-doors"
CAST = {"d": "DATE", "tn": "TIMESTAMP"}
"""The bucket function of SQL gives instants, also of columns without a zone."""


class NotOffered(Exception):
    """The door has no way to ask this."""


class Asking:
    """One question to one table, as text."""

    def __init__(self, world: World, question: Question) -> None:
        self.world = world
        self.question = question

    @property
    def options(self) -> dict[str, str]:
        """The options of the call."""
        given = {"timeZone": self.question.zone, "search.defaultOperator": self.question.operator}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def operator(self) -> str:
        """How words side by side are joined: as the option says, else the property, else by or."""
        return self.question.operator or self.world.property_operator or "or"

    @property
    def zone(self) -> str:
        """The zone that counts: the option's, else the property's, else UTC."""
        return self.question.zone or self._property_zone() or "UTC"

    def _property_zone(self) -> str | None:
        first_with_it = self.world.versions[0][0]
        at = self.question.version
        return None if at is not None and at < first_with_it else self.world.property_zone

    def writer(self, dialect: str = "spark") -> Writer:
        """Text in a dialect."""
        return Writer(self.world, dialect, self.question.seed)

    def where(self, dialect: str = "spark") -> str | None:
        """The condition as text."""
        return None if self.question.where is None else self.writer(dialect).condition(self.question.where)

    def query(self) -> str | None:
        """The query as text."""
        return None if self.question.query is None else self.writer().query(self.question.query)

    def sort(self) -> str:
        """The order as text of ours."""
        writer = self.writer()
        return ", ".join(f"{writer.name(role)}{' DESC' if down else ''}" for role, down in self.question.keys)

    def open(self) -> Any:
        """The table at the version of the question."""
        return it.Table.open(str(self.world.path), version=self.question.version, options=self.options)


def expected(asking: Asking) -> Any:
    """The answer by plain Python."""
    world, question, zone = asking.world, asking.question, asking.zone
    fields = {"msg": "text", "level": "string"}
    rows = [
        row
        for row in world.rows_at(question.version)
        if (question.where is None or reference.truth(question.where, row, zone) is True)
        and (question.query is None or reference.matches(question.query, row, fields, asking.operator))
    ]
    if question.kind == "order":
        ordered = reference.sort_rows(rows, list(question.keys))
        return [row["id"] for row in ordered][: question.limit]
    if question.kind == "groups":
        groups: dict[Any, list[Any]] = {}
        for row in rows:
            groups.setdefault(plain(row[question.by]), []).append(row["n"])
        return {key: _summed(values) for key, values in groups.items()}
    if question.kind in ("facets", "histogram"):
        counts: dict[Any, int] = {}
        for row in rows:
            held = row[question.by]
            if question.kind == "histogram" and held is not None:
                held = reference.bucket(held, question.interval or "", zone)
            counts[plain(held)] = counts.get(plain(held), 0) + 1
        return counts
    return sorted(row["id"] for row in rows)


def _summed(values: list[Any]) -> tuple[Any, ...]:
    numbers = [value for value in values if value is not None]
    return (
        len(values),
        min(numbers, default=None),
        max(numbers, default=None),
        sum(numbers) if numbers else None,
    )


def plain(value: Any) -> Any:
    """A value as every door can give it."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else value + 0.0
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


# Table


def scan(asking: Asking) -> Any:
    """Table.scan."""
    _only(asking, "rows")
    if asking.question.query is not None:
        raise NotOffered
    rows = asking.open().scan(asking.where(), columns=["id"]).read_all()
    return sorted(rows["id"].to_pylist())


def read(asking: Asking) -> Any:
    """it.read."""
    _only(asking, "rows")
    where, query, version = asking.where(), asking.query(), asking.question.version
    path = str(asking.world.path)
    rows = it.read(path, where, ["id"], query=query, version=version, options=asking.options)
    return sorted(rows.read_all()["id"].to_pylist())


def count(asking: Asking) -> Any:
    """Table.count: the number of rows, which has to be that of the ids."""
    _only(asking, "rows")
    number = asking.open().count(asking.where(), query=asking.query())
    ids = expected(asking)
    return ids if number == len(ids) else f"{number} rows"


def search(asking: Asking) -> Any:
    """Table.search, plain, in an order, or best first."""
    _only(asking, "rows", "order", "score")
    if asking.question.query is None:
        raise NotOffered
    question = asking.question
    more: dict[str, Any] = (
        {"sort": asking.sort(), "limit": question.limit} if question.kind == "order" else {}
    )
    if question.kind == "score":
        more["score"] = True
    rows = asking.open().search(asking.query(), asking.where(), ["id"], **more).read_all()
    if question.kind == "score":
        scores = rows["_score"].to_pylist()
        assert scores == sorted(scores, reverse=True), scores
    return _ids(rows, question)


def sorted_scan(asking: Asking) -> Any:
    """Table.scan(sort=)."""
    _only(asking, "order")
    if asking.question.query is not None:
        raise NotOffered
    rows = (
        asking.open().scan(asking.where(), ["id"], sort=asking.sort(), limit=asking.question.limit).read_all()
    )
    return rows["id"].to_pylist()


def aggregate(asking: Asking) -> Any:
    """Table.aggregate."""
    _only(asking, "groups")
    names = asking.world.names
    number = names["n"] if names["n"].isidentifier() and names["n"].isascii() else f"`{names['n']}`"
    asked = {"c": "count(*)", "low": f"min({number})", "high": f"max({number})", "total": f"sum({number})"}
    rows = asking.open().aggregate(_name(asking), asked, query=asking.query(), where=asking.where())
    return _grouped(rows.to_pylist(), names[asking.question.by or ""])


def facets(asking: Asking) -> Any:
    """Table.facets."""
    _only(asking, "facets")
    rows = asking.open().facets(_name(asking), query=asking.query(), where=asking.where(), top=None)
    return {plain(row["value"]): row["count"] for row in rows.to_pylist()}


def histogram(asking: Asking) -> Any:
    """Table.histogram."""
    _only(asking, "histogram")
    interval = "1h" if asking.question.interval == "hour" else "day"
    rows = asking.open().histogram(_name(asking), interval, query=asking.query(), where=asking.where())
    return {plain(row["bucket"]): row["count"] for row in rows.to_pylist()}


def delta(asking: Asking) -> Any:
    """The same rows in a Delta table."""
    _only(asking, "rows")
    if asking.question.version is not None:
        raise NotOffered
    from deltalake import write_deltalake

    path = Path(str(asking.world.path) + ".delta")
    if not path.exists():
        partitions = [asking.world.names["p"]] if asking.world.partitioned else None
        half = len(asking.world.rows) // 2
        for part in (asking.world.rows[:half], asking.world.rows[half:]):
            write_deltalake(str(path), asking.world.arrow(part), mode="append", partition_by=partitions)
    names = asking.world.names
    zone = asking.question.zone or asking.world.property_zone
    options = {"search.defaultOperator": asking.operator} | ({} if zone is None else {"timeZone": zone})
    if asking.question.query is None:
        rows = it.DeltaTable.open(str(path), options=options).scan(asking.where(), ["id"]).read_all()
    else:
        options |= {
            f"indexing.typemap.{names['msg']}": "text",
            f"indexing.typemap.{names['level']}": "string",
        }
        table = it.DeltaTable.open(str(path), options=options)
        rows = table.search(asking.query(), asking.where(), ["id"]).read_all()
    return sorted(rows["id"].to_pylist())


def delete(asking: Asking) -> Any:
    """Table.delete in a copy: the rows that are gone."""
    import shutil

    _only(asking, "rows")
    question = asking.question
    if (
        question.version is not None
        or question.seed % 8
        or (question.where is None and question.query is None)
    ):
        raise NotOffered
    copy = Path(str(asking.world.path) + ".deleted")
    shutil.copytree(asking.world.path, copy)
    try:
        table = it.Table.open(str(copy), options=asking.options)
        before = set(table.scan(columns=["id"]).read_all()["id"].to_pylist())
        table.delete(asking.where(), query=asking.query())
        after = set(it.Table.open(str(copy)).scan(columns=["id"]).read_all()["id"].to_pylist())
        return sorted(before - after)
    finally:
        shutil.rmtree(copy)


# SQL without Spark


def select_text(asking: Asking) -> str:
    """The question as a SELECT in DuckDB's dialect."""
    question, writer = asking.question, asking.writer("duckdb")
    if question.version is not None or _compares_a_time_that_happened_twice(asking):
        raise NotOffered
    parts = [] if question.where is None else [writer.condition(question.where)]
    if question.query is not None:
        parts.append(f"_indexall indexquery {writer.text(asking.query() or '')}")
    source = "'" + str(asking.world.path).replace("'", "''") + "'"
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    number = writer.name("n")
    if question.kind == "rows":
        return f"SELECT id FROM {source}{where}"
    if question.kind == "score":
        return f"SELECT id, _score FROM {source}{where} ORDER BY _score DESC"
    if question.kind == "order":
        keys = ", ".join(
            f"{writer.name(role)} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}"
            for role, down in question.keys
        )
        limit = "" if question.limit is None else f" LIMIT {question.limit}"
        return f"SELECT id FROM {source}{where} ORDER BY {keys}{limit}"
    name = writer.name(question.by or "")
    if question.kind == "histogram":
        interval = "1h" if question.interval == "hour" else "day"
        name = f"indextables_date_histogram({name}, '{interval}')"
        name = f"CAST({name} AS {CAST[question.by]})" if question.by in CAST else name
    if question.kind != "groups":
        return f"SELECT {name} AS value, count(*) AS c FROM {source}{where} GROUP BY 1"
    asked = f"count(*) AS c, min({number}) AS low, max({number}) AS high, sum({number}) AS total"
    return f"SELECT {name} AS value, {asked} FROM {source}{where} GROUP BY 1"


def _compares_a_time_that_happened_twice(asking: Asking) -> bool:
    """Of a column's local time that a zone has twice, DuckDB takes the second instant (docs/sql.md)."""
    zone = ZoneInfo(asking.zone)
    times = [row["tn"] for row in asking.world.rows if row["tn"] is not None]
    twice = [
        one for one in times if len({one.replace(tzinfo=zone, fold=at).utcoffset() for at in (0, 1)}) > 1
    ]
    return bool(twice) and "('column', 'tn')" in repr(asking.question.where)


def sql(asking: Asking) -> Any:
    """it.sql."""
    rows = it.sql(select_text(asking), options=asking.options)
    return _selected(rows.to_pylist(), asking.question)


def command_line(asking: Asking) -> Any:
    """indextables search, count and sql, with --json."""
    question, world = asking.question, asking.world
    options = [part for key, value in asking.options.items() for part in ("-O", f"{key}={value}")]
    pinned = [] if question.version is None else ["--version", str(question.version)]
    where = [] if question.where is None else ["--where", asking.where() or ""]
    shared = [str(world.path), *options, *pinned, *where, "--json"]
    if question.query is not None and question.kind in ("rows", "order", "score"):
        more = {"order": ["--sort", asking.sort()], "score": ["--score"]}.get(question.kind, [])
        limit = question.limit or 100_000
        rows = run_verb(
            "search", *shared, *more, "--columns", "id", "-n", str(limit), "--", asking.query() or ""
        )
        return _ids(pa.Table.from_pylist(rows, pa.schema([("id", pa.int64())])), question)
    if question.kind == "rows":
        number = run_verb("count", *shared)[0]["count"]
        ids = expected(asking)
        return ids if number == len(ids) else f"{number} rows"
    if question.version is not None or question.kind == "histogram":
        raise NotOffered
    rows = run_verb("sql", *options, "--json", "--", select_text(asking))
    return _selected(rows, question)


def run_verb(*arguments: str) -> Any:
    """What a verb of the command line prints, which is JSON."""
    from indextables.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["indextables", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        if end.code:
            raise AssertionError(f"indextables {arguments}: exit {end.code}: {err.getvalue()}") from None
    finally:
        sys.argv = before
    return json.loads(out.getvalue())


# Over HTTP


class Server:
    """`indextables serve` in this process, without a socket."""

    def __init__(self, world: World, options: dict[str, str]) -> None:
        from starlette.testclient import TestClient

        from indextables.web.app import make_app
        from indextables.web.guard import Access
        from indextables.web.tables import Catalog

        app = make_app(Catalog.of([f"t={world.path}"], options), Access(TOKEN, "testserver"))
        self._client = TestClient(app, headers={"authorization": f"Bearer {TOKEN}"})

    def get(self, path: str, **given: Any) -> Any:
        """A GET with its parameters."""
        parameters = {key: str(value) for key, value in given.items() if value is not None}
        answer = self._client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """A POST of JSON."""
        answer = self._client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


def page(asking: Asking) -> Any:
    """The page of `serve`: rows, count and facets."""
    question, names = asking.question, asking.world.names
    server = Server(asking.world, asking.options)
    shared = {"q": asking.query(), "where": asking.where(), "version": question.version}
    if question.kind in ("rows", "score", "order"):
        more: dict[str, Any] = {"columns": '["id"]', "limit": question.limit or 1000}
        if question.kind == "order":
            role, down = question.keys[0]
            more |= {"sort": names[role], "order": "desc" if down else "asc"}
        if question.kind == "score":
            more |= {"sort": "_score"}
        ids = [row[0] for row in server.get("/api/tables/t/rows", **shared, **more)["rows"]]
        return _by_first_key(ids, asking) if question.kind == "order" else sorted(ids)
    if question.kind != "facets":
        raise NotOffered
    found = server.get("/api/tables/t/facets", **shared, column=names[question.by or ""])
    if found["more"]:
        raise NotOffered
    return {_keyed(item["value"]): item["count"] for item in found["values"]}


def page_span(asking: Asking) -> Any:
    """The page's own range of time, under a name in other letters."""
    question = asking.question
    _only(asking, "rows")
    where = question.where
    offered = (
        where is not None
        and where[0] == "compare"
        and where[1] in (">=", "<")
        and where[2] == ("column", "ts")
    )
    if not offered or where is None or not where[3][1].tzinfo:
        raise NotOffered
    span = {"from" if where[1] == ">=" else "to": where[3][1].astimezone(dt.UTC).isoformat()}
    name = asking.world.names["ts"].swapcase()
    server = Server(asking.world, asking.options)
    shared = {"q": asking.query(), "version": question.version, "time": name, **span}
    rows = server.get("/api/tables/t/rows", **shared, columns='["id"]', limit=1000)["rows"]
    return sorted(row[0] for row in rows)


def _by_first_key(ids: list[int], asking: Asking) -> Any:
    """The expected order, where the ids are in the order of the first key: equal rows come in any order."""
    right, role = expected(asking), asking.question.keys[0][0]
    keys = {row["id"]: plain(row[role]) for row in asking.world.rows_at(asking.question.version)}
    same = len(set(ids)) == len(right) and [keys[one] for one in ids] == [keys[one] for one in right]
    return right if same else ids


def elastic_url(asking: Asking) -> Any:
    """Elasticsearch's _search with everything in the address."""
    question = asking.question
    _only(asking, "order")
    if question.version is not None or question.where is not None or question.query is None:
        raise NotOffered
    role, down = question.keys[0]
    names = asking.world.names
    if any(row[role] is None for row in asking.world.rows) or role in ("d", "b", "dec"):
        raise NotOffered  # An address cannot say where rows without a value come.
    given = {"q": asking.query(), "default_operator": asking.operator, "size": question.limit or 1000}
    given |= {"sort": f"{names[role]}:{'desc' if down else 'asc'}", "_source": "id"}
    answer = Server(asking.world, asking.options).get("/elastic/t/_search", **given)
    return _by_first_key([hit["_source"]["id"] for hit in answer["hits"]["hits"]], asking)


def elastic(asking: Asking) -> Any:
    """Elasticsearch's _search, for what its clauses can say; words side by side mean OR unless it is told."""
    question, world = asking.question, asking.world
    if question.version is not None or question.kind not in ("rows", "facets", "order"):
        raise NotOffered
    clauses = (
        []
        if question.query is None
        else [{"query_string": {"query": asking.query(), "default_operator": asking.operator}}]
    )
    if question.where is not None:
        clauses.append(_clause(question.where, world))
    body: dict[str, Any] = {"query": {"bool": {"filter": clauses}}, "size": 1000, "_source": ["id"]}
    if question.kind == "order":
        role, down = question.keys[0]
        missing = "_last" if down else "_first"
        way = {"order": "desc" if down else "asc", "missing": missing}
        body |= {"sort": [{world.names[role]: way}], "size": question.limit or 1000}
    if question.kind == "facets":
        if question.by not in ("level", "n"):
            raise NotOffered
        name = world.names[question.by]
        body |= {"size": 0, "aggs": {"f": {"terms": {"field": name, "size": 1000}}}}
    server = Server(world, asking.options)
    answer = server.post(f"/elastic/{quote('t')}/_search", body)
    if question.kind == "facets":
        buckets = answer["aggregations"]["f"]["buckets"]
        found = {plain(item["key"]): item["doc_count"] for item in buckets}
        nulls = {key: number for key, number in expected(asking).items() if key is None}
        return found | nulls  # Elasticsearch's terms leave out rows without a value.
    ids = [hit["_source"]["id"] for hit in answer["hits"]["hits"]]
    return _by_first_key(ids, asking) if question.kind == "order" else sorted(ids)


def _clause(tree: tuple[Any, ...], world: World) -> dict[str, Any]:
    """A condition that Elasticsearch's clauses can say with the same meaning."""
    kind = tree[0]
    if kind in ("and", "or"):
        return {
            "bool": {"filter" if kind == "and" else "should": [_clause(part, world) for part in tree[1:]]}
        }
    role = tree[1][1] if kind in ("in", "between", "null") else tree[2][1] if kind == "compare" else None
    if kind == "not" and tree[1][0] == "null" and tree[1][1][0] == "column" and tree[1][1][1] != "k":
        return {"exists": {"field": world.names[tree[1][1][1]]}}
    if role not in ("id", "n", "level", "dec", "d") or kind not in ("compare", "in", "between", "null"):
        raise NotOffered
    name = world.names[role]
    if kind == "null":
        return {"bool": {"must_not": {"exists": {"field": name}}}}
    if role == "level" and kind != "in":
        raise NotOffered
    if kind == "in":
        return {"terms": {name: [_json(item) for item in tree[2]]}}
    if kind == "between":
        return {"range": {name: {"gte": _json(tree[2]), "lte": _json(tree[3])}}}
    ways = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
    if tree[2][0] != "column" or tree[3][0] != "literal" or tree[1] not in (*ways, "="):
        raise NotOffered
    if tree[1] == "=":
        return {"term": {name: _json(tree[3])}}
    return {"range": {name: {ways[tree[1]]: _json(tree[3])}}}


def _json(literal: tuple[Any, ...]) -> Any:
    value = literal[1]
    return float(value) if isinstance(value, Decimal) else plain(value)


def _keyed(value: Any) -> Any:
    """A facet's value as JSON has it, back in the plain form; what is no number there is a text."""
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(value, plain(value))


def _name(asking: Asking) -> str:
    """A column's name as verbs take it."""
    name = asking.world.names[asking.question.by or ""]
    return name if "." not in name and "`" not in name else "`" + name.replace("`", "``") + "`"


def _ids(rows: pa.Table, question: Question) -> list[int]:
    ids = rows["id"].to_pylist()
    return ids if question.kind == "order" else sorted(ids)


def _selected(rows: list[dict[str, Any]], question: Question) -> Any:
    if question.kind in ("rows", "score", "order"):
        ids = [row["id"] for row in rows]
        return ids if question.kind == "order" else sorted(ids)
    if question.kind == "groups":
        return _grouped(rows, "value")
    return {_moment(_keyed(row["value"]), question): row["c"] for row in rows}


def _grouped(rows: list[dict[str, Any]], name: str) -> dict[Any, tuple[Any, ...]]:
    return {_keyed(row[name]): (row["c"], row["low"], row["high"], _whole(row["total"])) for row in rows}


def _whole(value: Any) -> Any:
    return None if value is None else int(value)


def _moment(value: Any, question: Question) -> Any:
    """Times that JSON writes with an offset, without it."""
    return (
        value.removesuffix("+00:00").removesuffix("Z")
        if isinstance(value, str) and question.by == "ts"
        else value
    )


def _only(asking: Asking, *kinds: str) -> None:
    if asking.question.kind not in kinds:
        raise NotOffered


DOORS: dict[str, Callable[[Asking], Any]] = {
    "scan": scan,
    "it.read": read,
    "count": count,
    "search": search,
    "scan sort": sorted_scan,
    "aggregate": aggregate,
    "facets": facets,
    "histogram": histogram,
    "delete": delete,
    "it.sql": sql,
    "command line": command_line,
    "serve": page,
    "serve, span of time": page_span,
    "elasticsearch": elastic,
    "elasticsearch, in the address": elastic_url,
    "Delta copy": delta,
}
