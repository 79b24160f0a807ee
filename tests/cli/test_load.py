"""Bringing rows in: load and tail, what they guess, and that no line is lost or comes twice."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it
from indextables.ingest.files import open_source
from indextables.ingest.log_lines import instants
from indextables.ingest.tail import Tailer
from indextables.ops.read.follow import Follower

ISO = "2024-05-03 10:00:{:02},123 ERROR disk {} is full\n"


def loaded(run, tmp_path, name, text, *more):
    (tmp_path / name).write_text(text)
    code, out, err = run("load", tmp_path / name, "--to", tmp_path / "t", *more)
    assert code == 0, err
    return it.Table.open(tmp_path / "t"), out


def test_a_csv_gets_types_and_its_texts_a_search(run, tmp_path):
    text = "id,day,note,price\n" + "".join(
        f"{n},2024-05-0{1 + n % 3},the parcel {n} arrived late,{n / 4}\n" for n in range(9)
    )
    table, out = loaded(run, tmp_path, "orders.csv", text, "--partition-by", "day", "--type", "id=string")
    assert [str(item.type) for item in table.schema] == ["string", "date32[day]", "string", "double"]
    assert table.partition_columns == ("day",)
    assert table.count(query="parcel AND 7") == 1
    assert "searched by words" in out
    assert "indextables serve" in out


def test_a_csv_without_headings_gets_the_columns_that_are_given(run, tmp_path):
    text = "".join(f"node {n}\tthe disk of {n} failed\n" for n in range(4))
    table, _ = loaded(run, tmp_path, "lines.tsv", text, "--columns", "system,line")
    assert table.schema.names == ["system", "line"]
    assert table.count() == 4
    assert table.count(query="line:disk") == 4
    code, _, err = run("load", tmp_path / "lines.tsv", "--to", tmp_path / "u", "--columns", "a,a")
    assert code != 0
    assert "one name twice" in err


def test_json_lines_and_parquet_load_too_and_a_second_load_appends(run, tmp_path):
    lines = "".join(
        json.dumps({"id": n, "tags": {"a": n}, "text": "some words in here"}) + "\n" for n in range(5)
    )
    table, _ = loaded(run, tmp_path, "rows.jsonl", lines)
    assert table.scan(columns=["tags"]).read_all().to_pylist()[2] == {"tags": {"a": 2}}
    pq.write_table(
        pa.table({"id": [9], "tags": [{"a": 9}], "text": ["more words in here"]}), tmp_path / "more.parquet"
    )
    code, out, _ = run("load", tmp_path / "more.parquet", "--to", tmp_path / "t", "--json")
    assert (code, json.loads(out)[0]["rows"]) == (0, 1)
    assert it.Table.open(tmp_path / "t").count(query="words") == 6


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (ISO.format(5, 1), {"ts": "2024-05-03T10:00:05.123000+00:00", "level": "ERROR", "message": "disk 1 is full"}),
        ("2024-05-03T10:00:05+02:00 plain words\n", {"ts": "2024-05-03T08:00:05+00:00", "level": None, "message": "plain words"}),
        (
            '10.0.0.7 - - [10/Oct/2024:13:55:36 -0700] "GET /a HTTP/1.1" 200 - "-" "curl"\n',
            {"ts": "2024-10-10T20:55:36+00:00", "client": "10.0.0.7", "message": "GET /a HTTP/1.1", "status": 200, "bytes": None},
        ),
        ("no time at all\n", {"message": "no time at all"}),
    ],
)  # fmt: skip
def test_the_form_of_a_log_is_recognised(tmp_path, line, expected):
    (tmp_path / "x.log").write_text(line * 3)
    source = open_source([str(tmp_path / "x.log")], None, 2024)
    row = next(iter(source.batches())).to_pylist()[0]
    found = {key: value.isoformat() if key == "ts" else value for key, value in row.items()}
    assert expected.items() <= found.items()


def test_a_syslog_line_takes_the_year_it_does_not_say():
    found = instants(pa.array(["May  3 10:00:05", "Maybe not"]), 2024).to_pylist()
    assert [value and value.isoformat() for value in found] == ["2024-05-03T10:00:05+00:00", None]


def test_lines_that_do_not_fit_keep_their_text(run, tmp_path):
    table, _ = loaded(run, tmp_path, "app.log", ISO.format(1, 1) + "  at frame 7\n" + ISO.format(2, 2))
    assert table.scan(columns=["message"]).read_all()["message"].to_pylist() == [
        "disk 1 is full",
        "  at frame 7",
        "disk 2 is full",
    ]


def test_a_pattern_names_its_columns_and_a_bad_one_is_told(run, tmp_path):
    table, _ = loaded(
        run, tmp_path, "own.log", "7|hello there\n", "--pattern", r"(?P<code>\d+)\|(?P<message>.*)"
    )
    assert table.scan().read_all().to_pylist() == [{"code": "7", "message": "hello there"}]
    for bad in ("(", r"(?P<code>\d+)"):
        code, _, err = run("load", tmp_path / "own.log", "--to", tmp_path / "u", "--pattern", bad)
        assert (code, "--pattern" in err) == (2, True)
    assert not (tmp_path / "u").exists()


def test_a_dry_run_shows_the_guess_and_makes_nothing(run, tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    code, out, _ = run("load", tmp_path / "a.csv", "--to", tmp_path / "t", "--dry-run", "--json")
    assert (code, json.loads(out)) == (0, [{"column": "id", "type": "bigint", "use": ""}])
    assert not (tmp_path / "t").exists()


def test_a_guess_that_a_later_row_breaks_loads_nothing(run, tmp_path):
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 3_000_000 + "x\n")
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "t")
    assert (code, "--type" in err) == (2, True)
    assert it.Table.open(tmp_path / "t").count() == 0


def tailer(tmp_path):
    source = open_source([str(tmp_path / "app.log")], "log", 2024)
    table = it.Table.create(tmp_path / "t", source.schema, options={"indexing.typemap.message": "text"})
    return Tailer(str(tmp_path / "app.log"), table, source.log)


def write(path, *numbers, mode="a"):
    with open(path, mode) as out:
        out.write("".join(ISO.format(n % 60, n) for n in numbers))


def disks(tmp_path):
    found = it.Table.open(tmp_path / "t").scan(columns=["message"]).read_all()["message"].to_pylist()
    return sorted(int(text.split()[1]) for text in found)


def test_a_followed_file_is_in_the_table_once_across_restarts_and_rotation(tmp_path):
    log = tmp_path / "app.log"
    write(log, 1, 2)
    first = tailer(tmp_path)
    assert first.poll() == 2
    assert first.poll() == 0
    write(log, 3)
    second = tailer(tmp_path)
    assert second.poll() == 1
    # The first process still runs: what the table has already is not written again.
    assert first.poll() == 0
    assert disks(tmp_path) == [1, 2, 3]
    with open(log, "a") as out:
        out.write("2024-05-03 10:00:04,000 ERROR disk 4")
    assert second.poll() == 0
    with open(log, "a") as out:
        out.write(" is full\n")
    os.rename(log, tmp_path / "app.log.1")
    write(log, 5)
    assert [second.poll(), second.poll()] == [1, 1]
    assert disks(tmp_path) == [1, 2, 3, 4, 5]


def test_a_file_that_was_cut_short_begins_again(tmp_path):
    log = tmp_path / "app.log"
    write(log, 1, 2, 3)
    one = tailer(tmp_path)
    assert one.poll() == 3
    write(log, 7, mode="w")
    assert one.poll() == 1
    assert tailer(tmp_path).poll() == 0
    assert disks(tmp_path) == [1, 2, 3, 7]


def test_the_verb_brings_everything_in_and_ends(run, tmp_path):
    write(tmp_path / "app.log", 1, 2)
    code, out, err = run("tail", tmp_path / "app.log", "--to", tmp_path / "t", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 2
    assert run("tail", tmp_path / "app.log", "--to", tmp_path / "t", "--json")[1] == ""
    assert it.Table.open(tmp_path / "t").count(query="full") == 2


def test_following_a_search_sees_appends_and_passes_over_changes(tmp_path):
    write(tmp_path / "app.log", 1)
    one = tailer(tmp_path)
    one.poll()
    table = it.Table.open(tmp_path / "t")
    follower = Follower(table.log, "disk", None, ["message"])
    write(tmp_path / "app.log", 2)
    one.poll()
    assert [row for part in follower.poll() for row in part.to_pylist()] == [{"message": "disk 2 is full"}]
    it.Table.open(tmp_path / "t").delete("message LIKE 'disk 1%'")
    assert list(follower.poll()) == []
    assert follower.passed_over == 1
