"""A version file that is gone shows as a row wherever a user looks at the history."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from support.builder import commit_path

EXPECTED = ["WRITE", "MISSING 1-2", "CREATE TABLE"]


@pytest.fixture
def holed(tmp_path):
    """Version 0, a hole of two versions, and version 3, which a checkpoint before it makes readable."""
    table = it.Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))
    table.checkpoint()
    table.append(pa.table({"id": [3]}))
    for version in (1, 2):
        (tmp_path / "t" / commit_path(version)).unlink()
    return tmp_path / "t"


def test_the_table_shows_it(holed):
    table = it.Table.open(holed)
    assert table.history()["operation"].to_pylist() == EXPECTED
    assert table.count() == 3


def test_the_statement_shows_it(holed):
    rows = it.sql(f"DESCRIBE INDEXTABLES HISTORY '{holed}'").to_pylist()
    assert [row["operation"] for row in rows] == EXPECTED
    assert [row["version"] for row in rows] == [3, 2, 0]


def test_the_command_shows_it(holed, caplog):
    shown = CliRunner().invoke(cli, ["history", str(holed), "--json"])
    rows = json.loads(shown.stdout)
    assert [row["operation"] for row in rows] == EXPECTED
    assert "version(s) 1-2 have no file in the log" in caplog.text
