"""`search` and `isearch` in filters and in SQL without Spark equal plain Python, with and without an index."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import indextables as it
from indextables.errors import PredicateError
from support.search_function_cases import SCHEMA, answer, calls, rows, sql

ROWS, CALLS = 120, 80
INDEXES = {
    "none": {},
    "substring": {"indexing.typemap.m": "substring", "indexing.typemap.n": "substring"},
    "text": {
        "indexing.typemap.m": "text",
        "indexing.typemap.tags": "text",
        "indexing.typemap.s": "json",
        "indexing.typemap.mp": "text",
    },
}


@pytest.fixture(scope="module")
def data():
    return rows(ROWS)


@pytest.fixture(scope="module", params=INDEXES)
def table(request, tmp_path_factory, data):
    made = it.Table.create(tmp_path_factory.mktemp("search") / "t", SCHEMA, options=INDEXES[request.param])
    for start in range(0, ROWS, 40):
        made.append(data.slice(start, 40))
    return made


def ids(reader):
    return sorted(reader.read_all()["id"].to_pylist())


def test_a_filter_finds_what_plain_python_finds(table, data):
    for call in calls(CALLS):
        truth = {row["id"]: answer(call, row) for row in data.to_pylist()}
        where = sql(call)
        expected = [key for key, value in truth.items() if value]
        assert ids(table.scan(where, columns=["id"])) == expected, where
        assert table.count(f"NOT {where}") == sum(value is False for value in truth.values()), where
        assert table.count(f"({where}) IS NULL OR id % 5 = 0") == sum(
            value is None or key % 5 == 0 for key, value in truth.items()
        ), where


def test_sql_without_spark_gives_the_same_values(table, data):
    chosen = calls(60, seed=8)
    selected = ", ".join(f"{sql(call)} AS c{number}" for number, call in enumerate(chosen))
    got = it.sql(f"SELECT id, {selected} FROM '{table.uri}' ORDER BY id")
    for number, call in enumerate(chosen):
        assert got[f"c{number}"].to_pylist() == [answer(call, row) for row in data.to_pylist()], sql(call)


def test_sql_without_spark_finds_the_same_rows(table, data):
    for call in calls(25, seed=9):
        truth = {row["id"]: answer(call, row) for row in data.to_pylist()}
        got = it.sql(f"SELECT id FROM '{table.uri}' WHERE {sql(call)} AND id >= 10 ORDER BY id")
        assert got["id"].to_pylist() == [key for key, value in truth.items() if value and key >= 10], sql(
            call
        )


def test_a_delta_table_is_scanned(tmp_path, data):
    write_deltalake(tmp_path / "d", data)
    table = it.DeltaTable.open(tmp_path / "d")
    for call in calls(40, seed=10):
        expected = [row["id"] for row in data.to_pylist() if answer(call, row)]
        assert ids(table.scan(sql(call), columns=["id"])) == expected, sql(call)
        assert it.sql(f"SELECT count(*) AS n FROM '{tmp_path / 'd'}' WHERE {sql(call)}")["n"].to_pylist() == [
            len(expected)
        ]


def test_search_is_the_same_as_contains(table):
    for pattern in ("a", "Ab", "日", "", "b 1"):
        assert table.count(f"search(m, '{pattern}')") == table.count(f"contains(m, '{pattern}')")
        assert table.count(f"isearch(m, '{pattern}')") == table.count(
            f"contains(lower(m), '{pattern.lower()}')"
        )
        assert table.count(f"search(m, n, '{pattern}')") == table.count(
            f"contains(m, '{pattern}') OR contains(n, '{pattern}')"
        )


def test_trigrams_rule_out_splits(tmp_path):
    options = {"indexing.typemap.m": "substring"}
    schema = pa.schema([("id", pa.int64()), ("m", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options=options)
    for number, text in enumerate(("the quick fox", "a slow dog", "quickest of all")):
        table.append(pa.table({"id": [number], "m": [text]}, schema))
    assert ids(table.scan("search(m, 'quick', mode => 'word')", columns=["id"])) == [0]
    assert ids(table.scan("search(m, 'quick')", columns=["id"])) == [0, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("search(id, 'x')", r"argument 1 \(id\) is bigint, which holds no text"),
        ("search(m)", "at least two arguments"),
        ("search(m, m)", "the pattern, its last argument, is a constant text"),
        ("search(m, '!!', mode => 'word')", "has no word in it"),
        ("search(m, 'x', mode => 'ip')", "it is 'substring' or 'word'"),
        ("search(m, 'x', how => 'word')", "one named argument, mode"),
    ],
)
def test_what_is_refused(table, call, message):
    with pytest.raises(PredicateError, match=message):
        table.count(call)


def test_a_mode_is_written_in_any_case(table):
    assert table.count("search(m, 'a', mode => 'WORD')") == table.count("search(m, 'a', mode => 'word')")
    assert table.count("search(m, NULL) IS NULL") == ROWS
