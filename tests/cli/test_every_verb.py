"""Every verb, asked wrongly in every way: one message, the same exit codes, help that fits a terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pyarrow as pa
import pytest

import indextables as it
from indextables.cli.main import cli
from indextables.storage.store import open_store
from support.deltarows import put_file
from support.deltatables import DeltaLog, schema_string

SCHEMA = pa.schema([("user_id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
READING = {
    "inspect": ["{}"],
    "history": ["{}"],
    "files": ["{}"],
    "search": ["{}", "disk"],
    "count": ["{}"],
    "report": ["{}", "-o", "report.html"],
    "bench": ["{}"],
    "sql": ["SELECT * FROM '{}'"],
    "describe": ["state", "{}"],
}
"""Verbs that read Delta tables as well, and what is typed after each; {} is the table."""
OTHERS = {
    "check": ["{}"],
    "merge-splits": ["{}", "--dry-run"],
    "purge": ["{}", "--dry-run"],
    "purge-rows": ["{}", "--dry-run"],
    "changes": ["{}", "1"],
    "checkpoint": ["{}"],
    "drop-partitions": ["{}", "--where", "day = 'none'"],
    "truncate-history": ["{}", "--dry-run"],
    "restore": ["{}", "--to", "1"],
    "companion": ["status", "{}"],
    "delete": ["{}", "--where", "user_id = 99"],
    "repair": ["{}/_transaction_log", "repaired"],
}
ONE_TABLE = {**READING, **OTHERS}
SERVES = {"serve": ["{}"]}
INTO_TABLE = {"load": ["lines.log", "--to", "{}"], "tail": ["lines.log", "--to", "{}"]}
WITHOUT_TABLE = {"demo", "jar", "completion"}


def typed(verb, table):
    return [verb, *(word.format(table) for word in {**ONE_TABLE, **SERVES, **INTO_TABLE}[verb])]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a table, a Delta table, a file, and a directory that is empty."""
    root = tmp_path_factory.mktemp("place")
    options = {"indexing.typemap.message": "text"}
    table = it.Table.create(root / "events", SCHEMA, ["day"], options=options)
    for n in range(2):
        rows = {"user_id": [1234567 + n], "day": [f"d{n}"], "message": [f"disk {n} is full"]}
        table.append(pa.table(rows, SCHEMA))
    log = DeltaLog(open_store(root / "delta"), schema_string(user_id="long", message="string"), ())
    log.commit(put_file(log, "f", pa.table({"user_id": [1], "message": ["disk full"]})))
    (root / "lines.log").write_text("2026-11-14 08:00:00 INFO disk full\n" * 3)
    (root / "empty").mkdir()
    return root


@pytest.fixture(autouse=True)
def there(place, monkeypatch):
    """Every verb runs in that directory."""
    monkeypatch.chdir(place)


def said(result, code):
    """The message of a verb that ended with this code; the table itself says it where REPAIR failed."""
    found, out, err = result
    assert found == code, (out, err)
    assert "Traceback" not in err
    if "ERROR:" in out:
        return " ".join(out.split())
    assert len(re.findall("^Error: ", err, re.MULTILINE)) == 1
    return " ".join(err.split())


def test_these_tables_name_every_verb():
    hidden = {"merge"}
    assert {*ONE_TABLE, *SERVES, *INTO_TABLE} | WITHOUT_TABLE | hidden == set(cli.commands)


@pytest.mark.parametrize("verb", [*ONE_TABLE, *SERVES])
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "There is nothing there"),
        ("empty", "The directory is empty"),
        ("lines.log", "It is a file"),
    ],
)
def test_a_path_without_a_table_is_one_message_and_exit_code_1(run, place, verb, path, words):
    message = said(run(*typed(verb, path)), 1)
    assert path in message
    if verb != "repair":
        assert "is not an IndexTables table" in message
        assert words in message
    assert sorted(entry.name for entry in place.iterdir() if entry.name != "report.html") == [
        "delta", "empty", "events", "lines.log",
    ]  # fmt: skip


@pytest.mark.parametrize("verb", ONE_TABLE)
def test_with_json_an_error_is_an_object_of_type_and_message(run, verb):
    code, out, err = run(*typed(verb, "nowhere"), "--json")
    assert code == 1
    if verb == "repair":
        (row,) = json.loads(out)
        assert row["status"].startswith("ERROR: ")
        return
    assert out == ""
    error = json.loads(err)["error"]
    assert error["type"] == "NotATableError"
    assert "nowhere" in error["message"]


@pytest.mark.parametrize("verb", OTHERS)
def test_a_verb_that_cannot_work_on_a_delta_table_says_that_it_is_one(run, verb):
    path = "delta/_delta_log" if verb == "repair" else "delta"
    arguments = [verb, path, "repaired"] if verb == "repair" else typed(verb, path)
    message = said(run(*arguments), 1)
    assert "Delta table" in message


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads_takes_a_delta_table_too(run, place, verb):
    code, out, err = run(*typed(verb, "delta"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)


@pytest.mark.parametrize("verb", INTO_TABLE)
@pytest.mark.parametrize(("path", "words"), [("delta", "is a Delta table"), ("lines.log", "is a file")])
def test_rows_are_not_brought_where_no_table_can_be(run, verb, path, words):
    assert words in said(run(*typed(verb, path)), 1)


@pytest.mark.parametrize("verb", [*ONE_TABLE, *SERVES, *INTO_TABLE])
def test_a_wrong_flag_or_option_is_exit_code_2(run, verb):
    assert "--nope" in said(run(*typed(verb, "events"), "--nope"), 2)
    if verb in INTO_TABLE or verb == "repair":
        return  # they look at what they read first
    assert "unknown option 'nope'" in said(run(*typed(verb, "events"), "-O", "nope=1"), 2)
    assert "KEY=VALUE" in said(run(*typed(verb, "events"), "-O", "nope"), 2)


WRONG = [
    ("files --where nope=1", "no column 'nope'; it has user_id, day, message"),
    ("files --where", "requires an argument"),
    ("count --where nope=1", "no column 'nope'"),
    ("count --by nope", "no column 'nope'"),
    ("count nope:x", "no column 'nope'"),
    ("count (a", "character 1"),
    ("search nope:x", "no column 'nope'"),
    ("search (a", "character 1"),
    ("search disk --columns nope", "no column 'nope'"),
    ("search disk --sort nope", "no column 'nope'"),
    ("search disk --facet nope", "no column 'nope'"),
    ("search disk --histogram nope=1", "no column 'nope'"),
    ("search disk --histogram user_id", "COLUMN=INTERVAL"),
    ("search disk --where nope=1", "no column 'nope'"),
    ("bench --where nope=1", "no column 'nope'"),
    ("bench --query (a", "character 1"),
    ("merge-splits --where nope=1", "no column 'nope'"),
    ("merge-splits --where user_id=1", "partition columns are day"),
    ("merge-splits --target-size big", "not a size"),
    ("purge --older-than soon", "not a time"),
    ("purge --older-than 1h", "a retention of 1 hour may"),
    ("drop-partitions --where nope=1", "no column 'nope'"),
    ("drop-partitions --where user_id=1", "partition columns are day"),
    ("delete --where nope=1", "no column 'nope'"),
    ("delete --where a~b", "is not valid SQL"),
    ("restore --to -1", "not in the range"),
]


@pytest.mark.parametrize(("line", "words"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_column_condition_or_query_is_exit_code_2_and_changes_nothing(run, place, line, words):
    verb, *rest = line.split()
    before = it.Table.open(place / "events").version
    assert words in said(run(verb, "events", *rest), 2)
    assert it.Table.open(place / "events").version == before


STATEMENTS = [
    ("SELEC 1", 2, "SELECT"),
    ("SELECT nope FROM 'events'", 2, "nope"),
    ("SELECT * FROM 'events' WHERE message indexquery '(a'", 2, "cannot read the query '(a'"),
    ("SELECT * FROM 'lines.log'", 1, "It is a file"),
    ("MERGE SPLIT 'events'", 2, "expected SPLITS"),
    ("MERGE SPLITS 'nowhere'", 1, "There is nothing there"),
]


@pytest.mark.parametrize(("statement", "code", "words"), STATEMENTS)
def test_a_wrong_statement_is_told_in_our_words(run, statement, code, words):
    message = said(run("sql", statement), code)
    assert words in message
    assert "__indextables" not in message


@pytest.mark.parametrize("arguments", [("report", "events", "-o", "none/r.html"), ("completion", "tcsh")])
def test_what_cannot_be_written_or_chosen_is_one_message_too(run, arguments):
    code, _, err = run(*arguments)
    assert code == (1 if arguments[0] == "report" else 2)
    assert arguments[-1] in err
    assert "Traceback" not in err


@pytest.mark.parametrize("verb", sorted(cli.commands))
def test_help_fits_a_terminal_of_80_columns_and_explains_every_flag(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith(f"Usage: indextables {verb} ")
    params = [param for param in cli.commands[verb].params if param.param_type_name == "option"]
    assert [param.name for param in params if not param.help] == []


def test_rows_of_a_table_are_shown_as_they_are(run):
    for arguments in (["search", "events", "disk"], ["sql", "SELECT * FROM 'events'"]):
        _, out, _ = run(*arguments)
        assert "user_id" in out
        assert "1234567" in out
        assert "\x1b" not in out


def test_a_pipe_that_closes_early_ends_quietly(place):
    rows = pa.table({"user_id": range(50_000), "day": ["d"] * 50_000, "message": ["disk"] * 50_000}, SCHEMA)
    it.Table.create(place / "many", SCHEMA, options={"indexing.typemap.message": "text"}).append(rows)
    program = [sys.executable, "-m", "indextables", "search", "many", "disk", "-n", "50000", "--json"]
    reader = subprocess.Popen(program, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout.readline().startswith(b"[{")
    reader.stdout.close()
    assert reader.stderr.read() == b""
    assert reader.wait() == 1
