"""A filter may compute: arithmetic, functions and columns on both sides, through every door alike."""

from __future__ import annotations

import json

import httpx
import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.duck.conditions import condition_of
from indextables.errors import PredicateError
from indextables.index.settings import IndexField, IndexSpec
from indextables.model.stats import FileStats
from indextables.ops.read.matching import may_survive
from indextables.predicate.build.from_sql import parse
from indextables.predicate.prune.rule import Verdict, prune_file
from indextables.predicate.tree import TRUE
from indextables.split.search.narrowing import needed_entries
from support.served import TOKEN, serving

COL = it.col
ROWS = pa.table(
    {
        "id": pa.array(range(1, 301), pa.int64()),
        "half": pa.array([n // 2 for n in range(1, 301)], pa.int32()),
        "level": ["Error" if n % 3 == 0 else "straße" if n % 3 == 1 else None for n in range(1, 301)],
        "message": [f"Request {n} failed" for n in range(1, 301)],
        "odd name": pa.array([float("nan") if n % 50 == 0 else n / 4 for n in range(1, 301)]),
        "day": [f"2024-01-{n % 28 + 1:02d}" for n in range(1, 301)],
    }
)
# Each with the rows it means, said in Python.
FILTERS = {
    "id % 100 = 7": lambda row: row["id"] % 100 == 7,
    "lower(level) = 'error'": lambda row: row["level"] == "Error",
    "upper(level) = 'STRASSE'": lambda row: row["level"] == "straße",
    "half * 2 < id": lambda row: row["half"] * 2 < row["id"],
    "NOT (half * 2 < id)": lambda row: row["half"] * 2 >= row["id"],
    "length(message) = 18 AND id > 100": lambda row: len(row["message"]) == 18 and row["id"] > 100,
    "`odd name` = `odd name` AND `odd name` > 74": lambda row: not row["odd name"] <= 74,
    "cast(right(day, 2) AS INT) = id % 28 + 1": lambda row: True,
    "coalesce(level, 'none') LIKE 'n%'": lambda row: row["level"] is None,
    "id BETWEEN half AND half + 3": lambda row: row["half"] <= row["id"] <= row["half"] + 3,
    "id IN (half * 2, 7)": lambda row: row["half"] * 2 == row["id"] or row["id"] == 7,
    "CASE WHEN id > 290 THEN 'late' ELSE level END = 'late'": lambda row: row["id"] > 290,
}


def ids(rows):
    return sorted(rows.column("id").to_pylist())


def expected(where):
    return [row["id"] for row in ROWS.to_pylist() if FILTERS[where](row)]


@pytest.fixture
def table(tmp_path):
    options = {"indexing.typemap.message": "text"}
    made = it.Table.create(tmp_path / "t", ROWS.schema, ("day",), options)
    made.append(ROWS.slice(0, 200))
    made.append(ROWS.slice(200))
    return made


@pytest.mark.parametrize("where", FILTERS)
def test_every_way_of_reading_evaluates_a_computed_filter(table, where):
    rows = expected(where)
    assert ids(table.scan(where).read_all()) == rows
    assert table.count(where) == len(rows)
    assert table.count(where, query="failed") == len(rows)
    for more in ({}, {"score": True}, {"sort": "id"}):
        assert ids(table.search("failed", where=where, **more).read_all()) == rows
    assert table.aggregate(None, {"n": "count(*)", "s": "sum(id)"}, where=where).to_pylist() == [
        {"n": len(rows), "s": sum(rows)}
    ]
    assert sum(table.facets("day", where=where, top=None).column("count").to_pylist()) == len(rows)


@pytest.mark.parametrize("where", FILTERS)
def test_delete_removes_exactly_the_rows_of_a_computed_filter(table, where):
    rows = expected(where)
    assert table.delete(where).rows_deleted == len(rows)
    assert ids(table.scan().read_all()) == sorted(set(range(1, 301)) - set(rows))


def test_update_and_overwrite_take_a_computed_filter(table):
    rows = expected("id % 100 = 7")
    table.update("id % 100 = 7", {"level": "seven"})
    assert ids(table.scan("level = 'seven'").read_all()) == rows
    table.overwrite(ROWS.slice(6, 1), where="id % 100 = 7")
    assert ids(table.scan("id % 100 = 7").read_all()) == [7]
    with pytest.raises(PredicateError, match="id % 100"):
        table.overwrite(ROWS.slice(7, 1), where="id % 100 = 7")
    assert table.count() == 298


def test_partitions_are_dropped_by_a_computed_condition_on_them(table):
    table.drop_partitions("cast(right(day, 2) AS INT) % 2 = 0")
    assert ids(table.scan().read_all()) == [n for n in range(1, 301) if (n % 28 + 1) % 2]


def test_a_computed_filter_is_the_same_from_python(table):
    pairs = {
        "id % 100 = 7": COL("id") % 100 == 7,
        "lower(level) = 'error'": COL("level").lower() == "error",
        "half * 2 < id": COL("half") * 2 < COL("id"),
        "length(message) = 18 AND id > 100": (COL("message").length() == 18) & (COL("id") > 100),
        "coalesce(level, 'none') LIKE 'n%'": COL("level").coalesce("none").like("n%"),
        "id IN (half * 2, 7)": COL("id").isin(COL("half") * 2, 7),
        "id BETWEEN half AND half + 3": COL("id").between(COL("half"), COL("half") + 3),
        "CASE WHEN id > 290 THEN 'late' ELSE level END = 'late'": (COL("id") > 290).if_else(
            "late", COL("level")
        )
        == "late",
        "cast(right(day, 2) AS INT) = id % 28 + 1": COL("day").right(2).cast("int") == COL("id") % 28 + 1,
    }
    for where, built in pairs.items():
        assert ids(table.scan(built).read_all()) == expected(where), where


def test_what_needs_no_column_is_computed_once_and_prunes(table):
    table.scan("id > 100 + 200 - 1").read_all()
    assert table.last_scan.files.skipped_by_statistics > 0
    table.scan("id + 1 > 300").read_all()
    assert table.last_scan.files.skipped_by_statistics == 0


def test_an_overflow_and_a_division_by_zero_are_errors_only_for_rows_that_need_them(table):
    for where in ("half / (id - 7) > 1", "half * 100000000 > 1", "cast(message AS INT) = 1"):
        with pytest.raises(PredicateError, match="fails for row"):
            table.count(where)
    assert table.count("id <> 7 AND half / (id - 7) > 100") == 0
    assert table.count("if(id = 7, 0, half / (id - 7)) > 0.4") > 0
    assert table.count("coalesce(id, 1 / (id - id)) = 7") == 1


def test_the_command_line_and_the_server_take_a_computed_filter(table):
    rows = expected("id % 100 = 7")
    done = CliRunner().invoke(cli, ["count", table.uri, "--where", "id % 100 = 7"])
    assert done.stdout == f"{len(rows)}\n", done.output
    done = CliRunner().invoke(cli, ["search", table.uri, "failed", "--where", "id % 100 = 7", "--json"])
    assert sorted(row["id"] for row in json.loads(done.stdout)) == rows
    with serving(table.uri) as address:
        answer = httpx.get(
            f"{address}/api/tables/t/rows",
            params={"where": "id % 100 = 7"},
            headers={"authorization": f"Bearer {TOKEN}"},
        )
    assert sorted(int(row[0]) for row in answer.json()["rows"]) == rows


@pytest.mark.parametrize("where", FILTERS)
def test_a_delta_table_takes_a_computed_filter(tmp_path, where):
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "d"), ROWS, partition_by=["day"])
    delta = it.DeltaTable.open(tmp_path / "d")
    assert ids(delta.scan(where).read_all()) == expected(where)
    assert delta.count(where) == len(expected(where))
    assert ids(delta.search("failed", where=where, columns=["id"]).read_all()) == expected(where)


def test_a_function_that_is_not_there_is_refused_by_name(table):
    with pytest.raises(PredicateError, match=r"SOUNDEX\(level\) = 'E600'"):
        table.scan("soundex(level) = 'E600'")
    with pytest.raises(PredicateError, match="substring takes 2 or 3 arguments"):
        table.scan("substring(level) = 'E'")
    with pytest.raises(PredicateError, match="no column 'lvl'"):
        table.scan("lower(lvl) = 'e'")


def test_only_rows_decide_a_computed_condition():
    """H6: statistics, trigrams and DuckDB are not asked, under NOT and OR neither."""
    spec = IndexSpec((IndexField("message", "string"), IndexField("message", "substring")))
    for where in ("id % 2 = 1", "NOT id % 2 = 1", "id % 2 = 1 OR id = 7", "lower(message) LIKE '%failed%'"):
        node = parse(where, ROWS.schema)
        assert condition_of(node) is None, where
        assert needed_entries(node, spec) is None, where
        assert may_survive(node) == TRUE, where
        bounds = FileStats(
            num_records=1, min_values={"id": "8"}, max_values={"id": "8"}, null_count={"id": 0}
        )
        assert prune_file(node, bounds, {}, ROWS.schema, ()) is Verdict.UNKNOWN, where
    mixed = parse("id % 2 = 1 AND id = 7", ROWS.schema)
    assert prune_file(mixed, bounds, {}, ROWS.schema, ()) is Verdict.DROP
