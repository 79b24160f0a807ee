"""The command line on Delta tables: the verbs that look accept them, the log decides which it is."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from indextables.cli.main import cli
from indextables.errors import NotATableError
from indextables.storage.store import open_store
from support.deltarows import inline_vector, put_file
from support.deltatables import DeltaLog, schema_string


@pytest.fixture
def table(tmp_path):
    log = DeltaLog(open_store(tmp_path / "d"), schema_string(p="string", id="long", message="string"), ("p",))
    for number in range(3):
        rows = pa.table({"id": [number], "message": [f"error number {number}"]})
        log.commit(put_file(log, f"f{number}", rows, partitionValues={"p": str(number % 2)}))
    log.commit(
        put_file(
            log,
            "f9",
            pa.table({"id": [8, 9], "message": ["error gone", "timeout"]}),
            dv=inline_vector([0]),
            partitionValues={"p": "0"},
        )  # fmt: skip
    )
    return str(tmp_path / "d")


def run(*arguments):
    result = CliRunner().invoke(cli, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def rows(*arguments):
    return json.loads(run(*arguments, "--json"))


def test_inspect_shows_what_the_log_says(table):
    (facts,) = rows("inspect", table)
    assert (facts["provider"], facts["version"], facts["num_files"], facts["num_rows"]) == ("delta", 4, 4, 4)
    assert "message" in run("inspect", table)
    (older,) = rows("inspect", table, "--version", "2")
    assert older["num_rows"] == 2


def test_inspect_says_nothing_of_what_only_tables_of_ours_have(table):
    """No index, no files that wait for another try."""
    for output in (run("inspect", table), run("inspect", table, "--json")):
        assert not [word for word in ("index", "skipped", "cooldown") if word in output], output


def test_files_are_those_that_may_match(table):
    assert [row["path"] for row in rows("files", table, "--where", "id >= 2")] == ["f2", "f9"]
    assert "f0" in run("files", table)


def test_history_shows_every_version(table):
    assert [row["version"] for row in rows("history", table)] == [4, 3, 2, 1, 0]
    assert "CREATE TABLE" in run("history", table)


def test_search_reads_the_rows_with_the_tokenizer(table):
    assert [row["id"] for row in rows("search", table, "message:error")] == [0, 1, 2]
    assert [row["id"] for row in rows("search", table, "timeout OR number", "--where", "p = '0'")] == [
        0,
        2,
        9,
    ]
    result = CliRunner().invoke(cli, ["search", table, "error", "--score"])
    assert result.exit_code == 2
    assert "no index" in result.output


def test_report_is_a_page_about_the_table(table, tmp_path):
    run("report", table, "--output", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "p=0" in page
    assert "Version 4" in page
    assert "Splits" not in page


def test_bench_times_it(table):
    questions = {row["question"]: row["answer"] for row in rows("bench", table, "--query", "error")}
    assert questions["list files"] == 4
    assert questions["count rows"] == 4
    assert questions["count rows found"] == 3


def test_a_directory_that_is_neither_is_refused_by_what_it_is(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"")
    with pytest.raises(NotATableError, match="data files without a transaction log"):
        run("inspect", str(tmp_path))
