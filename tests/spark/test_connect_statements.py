"""Named tables through Spark Connect: the server has the extension, a client needs nothing to send SQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.spark_versions import needs

pytestmark = [pytest.mark.long, needs("the server of Spark Connect in PySpark's package")]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What the clients of one server saw."""
    directory = tmp_path_factory.mktemp("connect")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "support.connect_statements", str(directory)],
        env=environment, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:] + (directory / "server.txt").read_text()[-4000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_client_without_the_package_sends_every_verb_as_sql(said):
    assert not said["bare"], "\n".join(said["bare"])


def test_a_client_with_the_package_has_names_paths_and_searches(said):
    assert not said["connected"], "\n".join(said["connected"])
    assert said["rows"] == [1, 2, 9, 500]
    assert said["by path"] == 100
    assert said["searched"] == [9]


def test_an_error_of_the_servers_has_our_type_at_the_client(said):
    assert said["error"] == "PredicateError"


def test_a_client_with_the_package_searches_a_named_table_in_every_way(said):
    assert said["by name"] == {
        "sql": [1, 3], "filter": [1, 3], "expr": [3], "scored": [1], "after a delete": [2, 3],
    }  # fmt: skip


def test_streams_read_and_write_named_tables(said):
    assert said["streamed"] == [2, 3]
