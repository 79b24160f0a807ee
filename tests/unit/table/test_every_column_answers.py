"""A column without a search field answers a query as a filter on its values would, and says so."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.errors import QueryError

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "message": ["disk full", "disk ok", "net down", None] * 3,
        "level": ["error"] * 4 + ["warn"] * 4 + ["info", None, "", "error"],
        "n": pa.array([5, -7, None, 5, 2**60, 0, 1, 2, 3, 4, 5, 6], pa.int64()),
        "x": [0.5, math.nan, None, -0.0, 1e300, 0.0, math.inf, 2.5, 0.5, 1.5, -math.inf, 0.1],
        "dec": pa.array([Decimal("1.50"), None, Decimal("-0.01"), *[Decimal("2.00")] * 9], pa.decimal128(20, 2)),
        "ok": [True, False, None] * 4,
        "day": [dt.date(2024, 1, 1 + at) for at in range(12)],
        "ts": pa.array([dt.datetime(2024, 1, 1, at, tzinfo=dt.UTC) for at in range(12)], pa.timestamp("us", "UTC")),
        "who": [{"name": "ann", "age": at} for at in range(12)],
    }
)  # fmt: skip
SAME = {
    "level:error": "level = 'error'",
    "level:err*": "level LIKE 'err%'",
    "level:*r*": "level LIKE '%r%'",
    "level: IN [warn info]": "level IN ('warn', 'info')",
    "level:[f TO j]": "level >= 'f' AND level <= 'j'",
    "level:*": "level IS NOT NULL",
    "NOT level:error": "level IS NULL OR level <> 'error'",
    "disk AND level:warn": "id IN (4, 5)",
    "full OR level:info": "id IN (0, 4, 8)",
    "n:5": "n = 5",
    "n:-7": "n = -7",
    "n:>=1152921504606846976": "n >= 1152921504606846976",
    "n:{2 TO 5]": "n > 2 AND n <= 5",
    "x:0.5": "x = 0.5",
    "x:[0 TO *]": "x >= 0 AND x < CAST('NaN' AS DOUBLE)",
    "x:<1": "x < 1",
    "dec:1.5": "dec = 1.5",
    "dec:<2": "dec < 2",
    "ok:true": "ok",
    "NOT ok:true": "ok IS NULL OR NOT ok",
    "day:>2024-01-09": "day > DATE'2024-01-09'",
    "ts:[2024-01-01T03:00:00Z TO 2024-01-01T05:00:00Z}": "ts >= '2024-01-01 03:00:00' AND ts < '2024-01-01 05:00:00'",
    "who.name:ann AND id:<2": "id < 2",
    "who.age:[3 TO 4]": "id IN (3, 4)",
}


@pytest.fixture(scope="module", params=["text index", "no index", "partitions"])
def table(request, tmp_path_factory):
    options = {} if request.param == "no index" else {"indexing.typemap.message": "text"}
    partitions = ["level"] if request.param == "partitions" else []
    rows = ROWS if request.param != "partitions" else ROWS.filter(pa.compute.not_equal(ROWS["level"], ""))
    path = tmp_path_factory.mktemp("columns") / "t"
    made = it.Table.create(path, rows.schema, partition_by=partitions, options=options)
    for start in range(0, rows.num_rows, 4):
        made.append(rows.slice(start, 4))
    return made


@pytest.mark.parametrize("query", SAME)
def test_a_query_on_values_finds_what_the_filter_finds(table, query):
    if "message" not in [field.column for field in _fields(table)] and ("disk" in query or "full" in query):
        with pytest.raises(QueryError, match="words need a column"):
            table.count(query=query)
        return
    expected = sorted(table.scan(SAME[query], columns=["id"]).read_all()["id"].to_pylist())
    for score in (False, True):
        rows = table.search(query, columns=["id"], score=score).read_all()
        assert sorted(rows["id"].to_pylist()) == expected
    assert table.count(query=query) == len(expected)
    assert table.count("id >= 3", query=query) == len([one for one in expected if one >= 3])
    assert sum(table.facets("id", query=query, top=None)["count"].to_pylist()) == len(expected)
    if query.startswith("NOT"):
        return  # In SQL, rows whose searched texts are all null are NULL under a negation too.
    literal = query.replace("'", "''")
    found = it.sql(f"SELECT count(*) AS n FROM '{table.uri}' WHERE _indexall indexquery '{literal}'")
    assert found["n"].to_pylist() == [len(expected)]


def _fields(table):
    from indextables.ops.table_settings import settings_of

    return settings_of(table.log.snapshot()).fields


def test_values_add_nothing_to_a_score(table):
    rows = table.search("level:error", columns=["id"], score=True).read_all()
    assert set(rows["_score"].to_pylist()) == {0.0}
    if _fields(table):
        alone, beside = (
            {
                row["id"]: row["_score"]
                for row in table.search(query, columns=["id"], score=True).read_all().to_pylist()
            }
            for query in ("disk", "+disk level:error n:>=0")
        )
        assert alone == beside


def test_splits_are_pruned_by_the_log(table):
    for query, splits in (
        ("n:1152921504606846976", 1),
        ("level:info", 1),
        ("day:2024-01-02", 1),
        ("n:>999 OR n:<-5", 2),
    ):
        table.count(query=query)
        assert table.last_scan.search.splits == splits, query
        table.search(query).read_all()
        assert table.last_scan.search.splits == splits, query


def test_the_note_says_how_a_column_is_compared(table):
    note = (
        "level is not indexed: compared as a whole value; for words write level:*zebra* or index it as text"
    )
    assert table.count(query="level:zebra") == 0
    assert table.last_scan.notes == (note,)
    table.count(query="level:*zebra* OR n:5")
    assert table.last_scan.notes == ()
    answer = CliRunner().invoke(cli, ["search", table.uri, "level:zebra"])
    assert (answer.stderr.strip(), answer.stdout.strip()) == (f"Note: {note}", "No row matches.")
    assert answer.output.startswith("Note: ")
    answer = CliRunner().invoke(cli, ["count", table.uri, "--json", "level:error"])
    assert json.loads(answer.stdout) == [{"count": table.count("level = 'error'")}]


def test_an_unknown_column_stays_an_error(table):
    with pytest.raises(QueryError, match="no column 'levle'"):
        table.count(query="levle:error")
    with pytest.raises(QueryError, match="'much' is not a value for column 'n'"):
        table.count(query="n:much")


def test_rows_are_deleted_by_values_too(tmp_path):
    made = it.Table.create(tmp_path / "t", ROWS.schema, options={"indexing.typemap.message": "text"})
    made.append(ROWS)
    assert made.delete(query="level:error AND disk").rows_deleted == 2
    assert made.count(query="level:error") == 3
