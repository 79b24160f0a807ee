"""The verb `companion`: an index beside a Delta table, from a shell."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events").mkdir()
    write(1)
    return tmp_path / "events"


def write(number):
    rows = {"id": [number], "level": ["ERROR"], "message": ["disk full"]}
    pq.write_table(pa.table(rows), f"events/part-{number}.parquet")


@pytest.fixture
def rows(run):
    """The rows that the verb prints."""

    def call(*arguments):
        code, out, err = run("companion", *arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


def test_an_index_is_built_refreshed_and_looked_at(source, rows, run):
    built = rows("build", "index", "--of", "events", "-i", "message", "-i", "level=string")
    assert (built[0]["status"], built[0]["parquet_files_indexed"]) == ("success", 1)
    write(2)
    assert rows("status", "index")[0]["files_stale"] == 1
    assert rows("refresh", "index", "--dry-run")[0]["status"] == "dry_run"
    assert rows("refresh", "index")[0]["status"] == "success"
    assert rows("build", "index", "--of", "events")[0]["status"] == "no_action"
    assert "2" in run("count", "index", "disk AND level:ERROR", "--json")[1]


def test_a_refresh_in_a_loop_indexes_what_comes(source, rows):
    rows("build", "index", "--of", "events", "-i", "message")
    write(2)
    program = [
        sys.executable,
        "-m",
        "indextables",
        "companion",
        "refresh",
        "index",
        "--every",
        "0.1",
        "--json",
    ]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as loop:
        for number in (3, 4):
            line = json.loads(loop.stdout.readline())
            assert line["parquet_files_indexed"] >= 1
            write(number)
        loop.terminate()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("build", "index"), 2, "build needs --of"),
        (("refresh", "index", "--of", "events"), 2, "for build"),
        (("status", "index", "--every", "1"), 2, "--every is for refresh"),
        (("build", "index", "--of", "events", "-i", "nothing"), 2, "nothing"),
        (("build", "events/index", "--of", "events", "-i", "message"), 2, "beside its source"),
        (("refresh", "events"), 1, "events"),
    ],
)
def test_what_cannot_be_done_is_one_message(source, run, arguments, code, words):
    ended, _, err = run("companion", *arguments)
    assert ended == code
    assert words in " ".join(err.split())
