"""Every door to rows is listed: it shows the live rows of a table with deletion vectors, or says where that is tested, or why it
shows none.

The lists come from the package's names, the command line's verbs, the commands of SQL, the routes of `serve`, the methods of both kinds
of table, and what Spark asks of us. A new door without an entry fails.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pyarrow as pa
import pytest

import indextables as it
from doors.doors import Server, run_verb
from indextables.cli.main import cli
from indextables.sql import commands
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, schema_string

TESTS = Path(__file__).parents[1]
SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.string()), ("message", pa.string()), ("at", pa.timestamp("us", "UTC"))]
)
OPTIONS = {
    "indexing.typemap.message": "text",
    "indexing.typemap.day": "string",
    "deletionVectors.enabled": "true",
}
GONE = {3, 4, 17, 25, 41}


def rows(numbers):
    return pa.table(
        {
            "id": numbers,
            "day": [f"d{n % 2}" for n in numbers],
            "message": [f"{'disk error' if n % 3 else 'disk'} n{n}" for n in numbers],
            "at": pa.array([n * 86_400_000_000 for n in numbers], pa.timestamp("us", "UTC")),
        },
        SCHEMA,
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A table whose rows were deleted by vectors, and the same after PURGE ROWS."""
    root = tmp_path_factory.mktemp("doors")
    table = it.Table.create(root / "hidden", SCHEMA, ["day"], options=OPTIONS)
    for first in (0, 30):
        table.append(rows(range(first, first + 30)))
    table.delete(f"id IN ({', '.join(map(str, GONE))})")
    shutil.copytree(root / "hidden", root / "purged")
    assert it.open(root / "purged").purge_rows().rows_purged == len(GONE)
    hidden = it.open(root / "hidden").files(columns=["num_deleted"])["num_deleted"].to_pylist()
    assert sum(n or 0 for n in hidden) == len(GONE)
    assert set(it.read(root / "purged").to_arrow()["id"].to_pylist()) == set(range(60)) - GONE
    return root / "hidden", root / "purged"


def plain(answer):
    """Rows in one order, as text."""
    listed = answer.to_arrow() if hasattr(answer, "to_arrow") else answer
    return sorted(map(repr, listed.to_pylist() if isinstance(listed, pa.Table) else listed))


def verb(name, *more, keep=lambda found: sorted(map(repr, found))):
    return lambda path: keep(run_verb(name, str(path), *more, "--json"))


def page(route, **given):
    return lambda path: Server(SimpleNamespace(path=path), {}).get(f"/api/tables/{route}", **given)


def posted(route, *lines):
    def ask(path):
        server = Server(SimpleNamespace(path=path), {})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        headers = {"content-type": "application/x-ndjson" if len(lines) > 1 else "application/json"}
        answer = server._client.post(f"/elastic/{route}", content=text, headers=headers).json()
        return [hits_of(one) for one in answer.get("responses", [answer])]

    return ask


def hits_of(answer):
    hits = answer["hits"]
    return hits["total"], sorted(repr(hit["_source"]) for hit in hits["hits"]), answer.get("aggregations")


def scrolled(path):
    """All pages of a scroll; rows of one score come in any order."""
    server, found = Server(SimpleNamespace(path=path), {}), []
    answer = server.post("/elastic/t/_search?scroll=1m", {"query": ERRORS, "size": 7})
    while answer["hits"]["hits"]:
        found += hits_of(answer)[1]
        answer = server.post("/elastic/_search/scroll", {"scroll_id": answer["_scroll_id"]})
    return sorted(found)


def downloaded(path):
    server = Server(SimpleNamespace(path=path), {})
    return [
        sorted(
            server._client.get(
                "/api/tables/t/download", params={"format": form, "q": query}
            ).text.splitlines()
        )
        for form in ("csv", "jsonl")
        for query in ("", "error")
    ]


def only(ask, *names):
    """Some entries of an answer, which also says how it was found."""
    return lambda path: {name: ask(path)[name] for name in names}


ERRORS = {"query_string": {"query": "error"}}

PACKAGE = {
    "Table": lambda path: plain(it.Table.open(path).scan()),
    "open": lambda path: plain(it.open(path).scan("id < 45")),
    "read": lambda path: plain(it.read(path, "id > 2", query="error")),
    "sql": lambda path: [
        plain(it.sql(f"SELECT {what} FROM '{path}' {rest}"))
        for what, rest in (
            ("*", ""),
            ("count(*) AS n", "WHERE message indexquery 'error'"),
            ("day, max(id) AS m", "GROUP BY day"),
        )
    ],
    "check": lambda path: [it.check(path).findings],
}
VERBS = {
    "search": lambda path: [
        verb("search", "error", *more)(path)
        for more in (["-n", "100"], ["-n", "100", "--score"], ["--sort", "id DESC"], ["--facet", "day"], ["--histogram", "id=10"])
    ],
    "count": lambda path: [verb("count", *more)(path) for more in ([], ["error"], ["--where", "id < 20"], ["--by", "day"])],
    "changes": lambda path: verb("changes", "0", keep=net)(path),
    "inspect": verb("inspect", keep=lambda found: found[0]["num_rows"]),
    "describe": lambda path: run_verb("describe", "state", str(path), "--json")[0]["num_rows"],
    "bench": verb("bench", keep=lambda found: sorted((row["question"], row["answer"]) for row in found[1:])),
    "sql": lambda path: run_verb("sql", f"SELECT count(*) AS n FROM '{path}'", "--json"),
}  # fmt: skip
COMMANDS = {
    "ShowPartitions": lambda path: [
        (row["day"], row["num_rows"]) for row in it.sql(f"SHOW PARTITIONS '{path}'").to_pylist()
    ],
    "Describe": lambda path: it.sql(f"DESCRIBE INDEXTABLES STATE '{path}'")["num_rows"].to_pylist(),
    "CheckTable": lambda path: it.sql(f"CHECK INDEXTABLES '{path}'")["severity"].to_pylist(),
}
ROUTES = {
    "/api/tables": lambda path: Server(SimpleNamespace(path=path), {}).get("/api/tables")["tables"][0][
        "rows"
    ],
    "/api/tables/{table}/about": only(page("t/about"), "rows"),
    "/api/tables/{table}/rows": lambda path: [
        (sorted(map(repr, found["rows"])), sorted(map(repr, found["marks"])))
        for query in (None, "error")
        for found in [page("t/rows", q=query, limit=100)(path)]
    ],
    "/api/tables/{table}/count": lambda path: [
        page("t/count", q=query)(path)["total"] for query in (None, "error")
    ],
    "/api/tables/{table}/facets": only(page("t/facets", column="day"), "values"),
    "/api/tables/{table}/histogram": only(page("t/histogram", column="at"), "bars", "total"),
    "/api/tables/{table}/download": downloaded,
    "/elastic/_search": posted("_search", {"query": ERRORS, "size": 100}),
    "/elastic/{index}/_search": posted(
        "t/_search", {"query": ERRORS, "aggs": {"d": {"terms": {"field": "day"}}}, "size": 100}
    ),
    "/elastic/_msearch": posted("_msearch", {"index": "t"}, {"query": ERRORS, "size": 100}),
    "/elastic/{index}/_msearch": posted("t/_msearch", {}, {"query": ERRORS, "size": 100}),
    "/elastic/_search/scroll": scrolled,
}
DOORS = {
    f"{kind} {name}": door
    for kind, doors in (("it", PACKAGE), ("verb", VERBS), ("command", COMMANDS), ("route", ROUTES))
    for name, door in doors.items()
}


def net(found):
    """What changes brought in all."""
    left = {}
    for row in found:
        kind = row.pop("_change_type")
        row = repr([value for key, value in row.items() if not key.startswith("_commit")])
        left[row] = left.get(row, 0) + (1 if kind in ("insert", "update_postimage") else -1)
    return sorted(row for row, times in left.items() if times)


@pytest.mark.parametrize("door", DOORS)
def test_a_door_shows_the_live_rows_alone(pair, door):
    hidden, purged = pair
    answer = DOORS[door](hidden)
    assert answer == DOORS[door](purged)
    assert answer


# What shows no rows, or is tested elsewhere

LAWS = "tests/property/test_deletion_vector_laws.py"
TELLS = "lists files, versions or settings, with the number of deleted rows where there is one"
WRITES = "changes the table; tests/unit/ops/test_deletion_vectors.py has each of them after a delete"
VALUE = "a value, a type or a module"
FOREIGN = "Delta tables; their methods are listed below"
SESSION = "makes a session, whose doors are listed below"
COMPANION = "an index over Delta and Parquet; tests/unit/companion/test_companion.py has the vectors of Delta"

OTHERS = {
    "it": {
        "AddAction": VALUE, "CommitInfo": VALUE, "Error": VALUE, "MetadataAction": VALUE, "ProtocolAction": VALUE,
        "RemoveAction": VALUE, "SkipAction": VALUE, "TxnAction": VALUE, "col": VALUE, "errors": VALUE, "functions": VALUE,
        "plain_query": VALUE, "truncate_statistics": VALUE, "TransactionLog": TELLS, "DeltaTable": FOREIGN, "delta": FOREIGN,
        "companion": COMPANION, "configure": SESSION, "connect": SESSION, "disconnect": SESSION, "repair_log": WRITES,
        "write": WRITES,
    },
    "verb": {
        "files": TELLS, "history": TELLS, "report": TELLS, "check": "the command below", "demo": "makes its own table",
        "serve": "the routes below", "completion": "no table", "jar": "no table", "companion": COMPANION,
        "load": WRITES, "tail": WRITES, "merge": WRITES, "merge-splits": WRITES, "checkpoint": WRITES, "purge-rows": WRITES,
        "purge": WRITES, "truncate-history": WRITES, "repair": WRITES, "delete": WRITES, "drop-partitions": WRITES,
        "restore": WRITES,
    },
    "command": {
        **dict.fromkeys(
            ("RepairLog", "MergeSplits", "Purge", "PurgeRows", "DropPartitions", "WriteCheckpoint", "AnalyzeSkipping",
             "TruncateHistory", "Restore", "DeleteRows", "AddConstraint", "DropConstraint", "SetNotNull"), WRITES,
        ),
        **dict.fromkeys(("BuildCompanion", "CreateIndex", "DropIndex", "RefreshIndex", "ShowIndexes"), COMPANION),
        "InvalidateCache": VALUE, "Unneeded": VALUE, "ShowProperties": TELLS, "ListFiles": TELLS,
    },
    "route": {
        "/": VALUE, "/static": VALUE, "/elastic/": VALUE,
        "/api/tables/{table}/files": TELLS, "/api/tables/{table}/versions": TELLS,
        "/api/tables/{table}/tail": f"the rows of a Follower, which {LAWS} has",
        "/elastic/_search/scroll/{scroll_id}": "as /elastic/_search/scroll, with the id in the address",
        "/elastic/_field_caps": VALUE, "/elastic/{index}/_field_caps": VALUE, "/elastic/{index}/_mapping": VALUE,
    },
}  # fmt: skip


def routes_of(app):
    from starlette.routing import Mount, Route

    for route in app.routes:
        if isinstance(route, Route):
            yield route.path
        elif isinstance(route, Mount):
            inner = list(routes_of(route)) or [""]
            yield from (route.path + path for path in inner)


def registries(path):
    server = Server(SimpleNamespace(path=path), {})
    return {
        "it": set(it.__all__),
        "verb": set(cli.commands),
        "command": {command.__name__ for command in get_args(commands.Command)},
        "route": set(routes_of(server._client.app.app)),
    }


@pytest.mark.parametrize("kind", OTHERS)
def test_every_door_is_asked_or_says_why_not(pair, kind):
    asked = {door.partition(" ")[2] for door in DOORS if door.startswith(f"{kind} ")}
    assert not asked & OTHERS[kind].keys()
    assert asked | OTHERS[kind].keys() == registries(pair[0])[kind]


# Delta tables

DELTA = {
    "scan": lambda table: plain(table.scan("id < 45")),
    "count": lambda table: [table.count(), table.count("id > 2"), table.count(query="error")],
    "search": lambda table: plain(table.search("error")),
    "head": lambda table: table.head(100).num_rows,
    "to_pandas": lambda table: sorted(table.to_pandas()["id"]),
    "to_polars": lambda table: sorted(table.to_polars()["id"]),
    "describe": lambda table: table.describe().num_rows,
}
NOT_ROWS_OF_DELTA = {
    "open", "history", "refresh", "files", "uri", "snapshot", "version", "schema", "time_zone", "spark_schema", "stored_names",
    "partition_columns", "protocol", "metadata", "last_scan",
}  # fmt: skip


@pytest.fixture(scope="module")
def delta_pair(tmp_path_factory):
    """A Delta table with a vector, and one of the rows that are left."""
    root, made = tmp_path_factory.mktemp("delta"), []
    all_rows = rows(range(60)).select(["id", "message"])
    live = all_rows.filter(pa.array([n not in GONE for n in range(60)]))
    for name, part, more in (("hidden", all_rows, {"dv": inline_vector(sorted(GONE))}), ("purged", live, {})):
        log = DeltaLog(open_store(root / name), schema_string(id="long", message="string"), ())
        log.commit(put_file(log, "f", part, **more))
        made.append(it.DeltaTable.open(root / name))
    return made


@pytest.mark.parametrize("reader", DELTA)
def test_a_reader_of_delta_shows_the_live_rows_alone(delta_pair, reader):
    hidden, purged = delta_pair
    answer = DELTA[reader](hidden)
    assert answer == DELTA[reader](purged)
    assert answer


def test_every_reader_of_delta_is_asked():
    public = {name for name in dir(it.DeltaTable) if not name.startswith("_")}
    assert public == DELTA.keys() | NOT_ROWS_OF_DELTA | {"to_df"}


# Spark

SPARK, CHANGED = "tests/spark/test_deletion_vectors.py", "tests/spark/test_changed_rows.py"
NO_ROWS = "answers with columns, names or a refusal"
SPARK_DOORS = {
    "load": f"{SPARK}::test_a_loaded_table_has_the_live_rows",
    "sql": f"{SPARK}::test_statements_on_a_named_table_leave_deleted_rows_gone",
    "save": NO_ROWS, "insertInto": NO_ROWS, "explain": NO_ROWS, "convert_exception": NO_ROWS,
    "relation": f"{SPARK}::test_statements_on_a_named_table_leave_deleted_rows_gone",
    "rows": f"{SPARK}::test_searches_find_live_rows_alone",
    "search": f"{SPARK}::test_searches_find_live_rows_alone",
    "search_groups": f"{SPARK}::test_searches_find_live_rows_alone",
    "compare": f"{SPARK}::test_searches_find_live_rows_alone",
    "changes": "tests/spark/test_changes_on_spark.py::test_a_read_and_sql_have_the_changes_that_python_has",
    "stream_open": f"{SPARK}::test_a_stream_begins_with_the_live_rows",
    "stream_batch": f"{SPARK}::test_a_stream_begins_with_the_live_rows",
    "stream_offset": f"{SPARK}::test_a_stream_begins_with_the_live_rows",
    "replace_rows": f"{SPARK}::test_statements_change_few_rows_by_vectors_and_write_no_other",
    "run_statement": "tests/doors/test_doors_and_vectors.py::test_a_door_shows_the_live_rows_alone",
    **dict.fromkeys(
        ("alter", "create", "describe", "drop_partitions", "exists", "partitions", "pin", "refuse", "refuse_change",
         "refuse_search", "search_function", "spelled", "statement", "stream_into", "stream_write", "truncate", "write"),
        NO_ROWS,
    ),
}  # fmt: skip


def test_every_door_of_spark_names_a_test_that_is_there():
    bridge = pytest.importorskip("indextables.spark.bridge.attach")
    patches = ast.parse((TESTS.parent / "src" / "indextables" / "spark" / "patches.py").read_text())
    wrapped = {
        node.elts[1].value
        for node in ast.walk(patches)
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and isinstance(node.elts[1], ast.Constant)
    }
    assert SPARK_DOORS.keys() == bridge._ANSWERS.keys() | wrapped
    for place in SPARK_DOORS.values():
        if "::" in place:
            file, _, name = place.partition("::")
            assert f"def {name}(" in (TESTS.parent / file).read_text(), place
