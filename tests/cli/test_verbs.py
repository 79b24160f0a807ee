"""The command line: what each verb prints, in each form, and how it ends."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.cli.main import cli
from support.upkeep import fingerprint

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "events", SCHEMA, ["day"], options={"indexing.typemap.message": "text"})
    for n in range(4):
        ids = range(n * 5, n * 5 + 5)
        rows = {
            "id": ids,
            "day": [f"2024-01-0{1 + n % 2}"] * 5,
            "message": [f"disk {i} is full" for i in ids],
        }
        made.append(pa.table(rows, SCHEMA))
    return str(tmp_path / "events")


def rows_of(result):
    code, out, err = result
    assert code == 0, err
    return json.loads(out)


def test_inspect_shows_facts_and_columns(run, table):
    code, out, _ = run("inspect", table)
    assert code == 0
    assert re.search(r"version\s+4", out)
    assert re.search(r"num rows\s+20", out)
    assert re.search(r"message\s+string\s+yes\s+no\s+text", out)
    assert max(map(len, out.splitlines())) <= 80


def test_inspect_can_look_at_an_older_version(run, table):
    assert rows_of(run("inspect", table, "--version", 2, "--json"))[0]["num_rows"] == 10


def test_history_is_newest_first_and_limited(run, table):
    assert [row["version"] for row in rows_of(run("history", table, "-n", 2, "--json"))] == [4, 3]
    code, out, _ = run("history", table)
    assert code == 0
    assert "CREATE TABLE" in out
    assert "+1 file" in out


def test_files_shows_what_is_left_after_skipping(run, table):
    assert len(rows_of(run("files", table, "--json"))) == 4
    left = rows_of(run("files", table, "--where", "id < 5", "--json"))
    assert [row["num_records"] for row in left] == [5]
    assert left[0]["partition_values"] == {"day": "2024-01-01"}
    assert "and 3 more" in run("files", table, "-n", 1)[1]


def test_search_prints_the_rows_found(run, table):
    found = rows_of(run("search", table, "message:disk", "--columns", "id", "--where", "id >= 18", "--json"))
    assert sorted(row["id"] for row in found) == [18, 19]
    assert "No row matches." in run("search", table, "message:nothing")[1]
    scored = rows_of(run("search", table, "message:disk", "--score", "-n", 1, "--json"))
    assert scored[0]["_score"] > 0


def test_csv_has_a_header_and_one_line_per_row(run, table):
    code, out, _ = run("files", table, "--csv")
    lines = list(csv.reader(io.StringIO(out)))
    assert code == 0
    assert lines[0][:2] == ["path", "uri"]
    assert len(lines) == 5


def test_merge_dry_run_changes_nothing_and_merge_does(run, table, tmp_path):
    before = fingerprint(tmp_path)
    assert rows_of(run("merge-splits", table, "--dry-run", "--json"))[0]["merge_groups"] == 2
    assert fingerprint(tmp_path) == before
    (row,) = rows_of(run("merge", table, "--target-size", "10M", "--json"))
    assert (row["status"], row["merged_files"]) == ("SUCCESS", 4)


def test_purge_takes_times_in_days_and_hours(run, table):
    assert (
        rows_of(run("purge", table, "--older-than", "2d", "--dry-run", "--json"))[0]["retention_hours"] == 48
    )
    code, _, err = run("purge", table, "--older-than", "1h")
    assert code == 2
    assert "24 hours" in err
    assert run("purge", table, "--older-than", "soon")[0] == 2


def test_the_other_verbs_do_what_their_statements_do(run, table):
    assert rows_of(run("checkpoint", table, "--json"))[0]["checkpoint_version"] == 4
    assert rows_of(run("delete", table, "--where", "id = 1", "--json"))[0]["rows_deleted"] == 1
    assert (
        rows_of(run("drop-partitions", table, "--where", "day = '2024-01-02'", "--json"))[0]["splits_removed"]
        == 2
    )
    assert rows_of(run("restore", table, "--to", 4, "--json"))[0]["status"] == "SUCCESS"
    assert rows_of(run("truncate-history", table, "--dry-run", "--json"))[0]["dry_run"] is True
    assert rows_of(run("describe", "state", table, "--json"))[0]["num_rows"] == 20
    assert rows_of(run("describe", "data-skipping-stats", "--json")) != []


def test_sql_takes_a_statement_from_the_arguments_or_from_standard_input(run, table):
    statement = f"DESCRIBE INDEXTABLES STATE '{table}'"
    assert rows_of(run("sql", statement, "--json")) == rows_of(run("sql", "-", "--json", stdin=statement))


def test_repair_puts_the_clean_log_in_place(run, table):
    count = rows_of(run("count", table, "--json"))
    repaired = run("repair", f"{table}/_transaction_log", f"{table}/_repaired", "--swap", "--json")
    assert rows_of(repaired)[0]["status"] == "SUCCESS"
    assert rows_of(run("count", table, "--json")) == count
    assert [row["operation"] for row in rows_of(run("history", table, "--json"))] == ["REPAIR"]


def test_repair_writes_a_clean_log_and_fails_with_its_row(run, table, tmp_path):
    log, target = f"{table}/_transaction_log", f"{table}/_repaired"
    assert rows_of(run("repair", log, target, "--deep", "--json"))[0]["status"] == "SUCCESS"
    code, out, _ = run("repair", tmp_path / "nothing" / "_transaction_log", tmp_path / "x", "--json")
    assert code == 1
    assert json.loads(out)[0]["status"].startswith("ERROR")
    code, _, err = run("repair", log, target)
    assert code == 1
    assert "not empty" in err


def test_bench_times_the_usual_questions(run, table):
    rows = rows_of(run("bench", table, "--where", "id > 3", "--query", "message:full", "--json"))
    answers = {row["question"]: row["answer"] for row in rows}
    assert (answers["count rows"], answers["count matching rows"], answers["count rows found"]) == (
        20,
        16,
        16,
    )


def test_options_reach_the_table(run, table):
    code, _, err = run("inspect", table, "-O", "checkpoint.intervall=3")
    assert code == 2
    assert "checkpoint.interval" in err
    assert run("inspect", table, "-O", "nonsense")[0] == 2


def test_a_mistake_in_a_statement_ends_with_2_and_shows_where(run):
    """J8: a syntax error shows line, column and what was expected."""
    code, out, err = run("sql", "MERGE SPLITS")
    assert (code, out) == (2, "")
    assert "Line 1, column 13" in err
    assert "Traceback" not in err


def test_a_path_without_a_table_ends_with_1_and_one_message(run, tmp_path):
    code, out, err = run("inspect", tmp_path / "nothing")
    assert (code, out) == (1, "")
    assert "is not an IndexTables table" in err
    assert "Traceback" not in err


def test_two_forms_at_once_are_refused(run, table):
    assert run("files", table, "--json", "--csv")[0] == 2


def test_an_unknown_verb_ends_with_2(run):
    assert run("frobnicate")[0] == 2


def test_help_fits_80_columns_and_names_every_verb(run):
    code, out, _ = run("--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    wanted = {
        "demo",
        "inspect",
        "history",
        "changes",
        "files",
        "search",
        "sql",
        "repair",
        "merge",
        "purge",
        "checkpoint",
        "report",
        "bench",
    }
    assert wanted <= set(cli.commands)


def test_the_version_before_a_torn_one_is_read_as_the_error_advises(run, table):
    newest = Path(table) / f"_transaction_log/{4:020d}.json"
    newest.write_bytes(newest.read_bytes()[:20])
    code, _, err = run("count", table)
    assert code != 0
    assert "can be opened: 0-3" in " ".join(err.split())
    code, out, err = run("count", table, "--version", 3)
    assert code == 0, err
    assert run("inspect", table, "--version", 3)[0] == 0


def test_the_version_is_printed(run):
    assert it.__version__ in run("--version")[1]


def test_the_package_runs_as_a_module_too():
    ran = subprocess.run(
        [sys.executable, "-m", "indextables", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == f"indextables, version {it.__version__}"


def test_report_writes_the_file_it_is_given(run, table, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = run("report", table, "-o", page)
    assert (code, out.strip()) == (0, f"Wrote {page}")
    assert "<html" in page.read_text()


def test_rows_too_wide_for_the_terminal_are_printed_one_fact_per_line(run, table):
    _, out, _ = run("sql", f"DESCRIBE INDEXTABLES HISTORY '{table}'")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("operation metrics") and "numAddedFiles=1" in line for line in lines)


def test_a_long_name_that_heads_several_rows_is_printed_once(run, table):
    _, out, _ = run("sql", f"DESCRIBE INDEXTABLES COMPONENT SIZES '{table}'")
    assert out.count(".split") == 4


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\x7f"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_control_characters_in_a_table_never_reach_the_terminal(run, tmp_path, form):
    """Column names, values, properties and history alike; JSON carries them as escapes."""
    schema = pa.schema([("id", pa.int64()), (f"na{HOSTILE}me", pa.string()), ("message", pa.string())])
    made = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.message": "text"})
    made.append(pa.table({"id": [1], schema.names[1]: [HOSTILE], "message": [f"word {HOSTILE}"]}, schema))
    log = it.TransactionLog.open(str(tmp_path / "t"))
    log.update_properties({"comment": HOSTILE})
    log.add_files([it.AddAction(path=f"x{HOSTILE}.split", size=1, num_records=1)], user_metadata=HOSTILE)
    log.remove_files([f"x{HOSTILE}.split"])
    for arguments in (
        ("inspect", made.uri),
        ("history", made.uri),
        ("changes", made.uri, "1", "2"),
        ("files", made.uri, "--version", "3"),
        ("search", made.uri, "message:word"),
        ("sql", f"DESCRIBE INDEXTABLES TRANSACTION LOG '{made.uri}' INCLUDE ALL"),
    ):
        code, out, err = run(*arguments, *form)
        assert code == 0, err
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err), arguments
    found = json.loads(run("search", made.uri, "message:word", "--json")[1])
    assert found[0][schema.names[1]] == HOSTILE


def test_an_error_shows_control_characters_instead_of_sending_them(run, tmp_path):
    schema = pa.schema([(f"na{HOSTILE}me", pa.string())])
    made = it.Table.create(tmp_path / "t", schema)
    code, _, err = run("files", made.uri, "--where", "other = 1")
    assert code == 2
    assert "\x1b" not in err
    assert "\\u001b" in err
