"""Loading files: what is guessed of them, and what is refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indextables as it

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


def test_lines_that_do_not_fit_keep_their_text(run, tmp_path):
    table, _ = loaded(run, tmp_path, "app.log", ISO.format(1, 1) + "no time here\n" + ISO.format(2, 2))
    assert table.scan(columns=["message"]).read_all()["message"].to_pylist() == [
        "disk 1 is full",
        "no time here",
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


@pytest.mark.parametrize("levels", [101, 3_000, 100_000])
def test_json_that_is_nested_too_deeply_is_refused_by_its_line(run, tmp_path, levels):
    deep = '{"a":' * levels + "1" + "}" * levels
    (tmp_path / "deep.jsonl").write_text(f'{{"a": 1}}\n{deep}\n')
    code, _, err = run("load", tmp_path / "deep.jsonl", "--to", tmp_path / "t")
    assert (code, f"{tmp_path / 'deep.jsonl'}, line 2" in err) == (2, True)
    assert not (tmp_path / "t").exists()


def test_brackets_inside_texts_are_no_levels(run, tmp_path):
    lines = [{"id": n, "text": '[{"\\' * 200} for n in range(3)]
    table, _ = loaded(run, tmp_path, "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert table.scan().read_all().to_pylist() == lines
