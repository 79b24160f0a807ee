"""count, and what search counts and sorts, on the command line."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli

SCHEMA = pa.schema([("id", pa.int64()), ("level", pa.string()), ("message", pa.string())])


@pytest.fixture
def table(tmp_path):
    options = {"indexing.typemap.message": "text", "indexing.typemap.level": "string"}
    made = it.Table.create(tmp_path / "t", SCHEMA, (), options)
    for start in (0, 10):
        numbers = range(start, start + 10)
        levels = ["error" if n % 3 == 0 else "info" for n in numbers]
        made.append(
            pa.table({"id": numbers, "level": levels, "message": [f"disk {n % 2}" for n in numbers]}, SCHEMA)
        )
    return str(tmp_path / "t")


def run(*arguments):
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exit_code == 0, done.output
    return done


def rows(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def test_count_says_how_many_rows_there_are(table):
    assert run("count", table).stdout == "20\n"
    assert run("count", table, "disk AND 1", "--where", "id < 10").stdout == "5\n"
    assert rows("count", table) == [{"count": 20}]
    assert rows("count", table, "--by", "level") == [
        {"level": "error", "count": 7},
        {"level": "info", "count": 13},
    ]


def test_search_sorts_and_says_how_many_match_in_all(table):
    done = run("search", table, "disk", "--sort", "level DESC, id DESC", "--limit", "2", "--total", "--json")
    assert [row["id"] for row in json.loads(done.stdout)] == [19, 17]
    assert "20 matching rows in total" in done.stderr


def test_search_counts_values_and_intervals(table):
    assert rows("search", table, "disk", "--facet", "level")[0] == {"value": "info", "count": 13}
    found = rows("search", table, "1", "--histogram", "id=10")
    assert found == [{"bucket": 0, "count": 5}, {"bucket": 10, "count": 5}]
    for wrong in (["--facet", "level", "--histogram", "id=10"], ["--histogram", "id"]):
        assert CliRunner().invoke(cli, ["search", table, "disk", *wrong]).exit_code != 0
