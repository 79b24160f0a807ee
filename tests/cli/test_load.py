"""Loading files: what is guessed of them, and what is refused."""

import bz2
import gzip
import json
import lzma

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


def test_a_guess_that_a_later_row_breaks_is_made_again_with_a_note(run, tmp_path, monkeypatch):
    monkeypatch.setattr("indextables.ingest.streams.BLOCK_BYTES", 1000)
    (tmp_path / "a.csv").write_text("id,n\n" + "1,2\n" * 1000 + "x,3\n")
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "t")
    assert (code, "values of several types in id" in err) == (0, True)
    table = it.Table.open(tmp_path / "t")
    assert [str(item.type) for item in table.schema] == ["string", "int64"]
    assert table.count("id = 'x'") == 1
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "u", "--type", "id=bigint")
    assert (code, "--type" in err) == (2, True)
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("later", [0, 1000])
def test_json_values_of_several_types_are_text_and_a_new_key_is_a_column(run, tmp_path, monkeypatch, later):
    monkeypatch.setattr("indextables.ingest.streams.BLOCK_BYTES", 1000)
    lines = ['{"a": 1, "b": 2}'] * later
    lines += ['{"a": 1, "b": 1}', '{"a": "x", "b": 1.5}', '{"a": {"k": [1]}, "c": true}']
    table, _ = loaded(run, tmp_path, "a.jsonl", "\n".join(lines))
    rows = table.scan().read_all().to_pylist()[later:]
    assert rows == [
        {"a": "1", "b": 1.0, "c": None},
        {"a": "x", "b": 1.5, "c": None},
        {"a": '{"k":[1]}', "b": None, "c": True},
    ]


@pytest.mark.parametrize("text", ['[{"a": 1}, {"a": 2}]', '[\n  {\n    "a": 1\n  },\n  {"a": 2}\n]\n'])
def test_a_json_array_is_rows(run, tmp_path, text):
    table, _ = loaded(run, tmp_path, "a.json", text)
    assert table.scan().read_all().to_pylist() == [{"a": 1}, {"a": 2}]


BROKEN = {"a.jsonl": '{"a": 1}\n{"a":\n{"a": 2}\n', "a.csv": "a,b\n1,2\n3\n4,5\n"}


@pytest.mark.parametrize("name", BROKEN)
def test_lines_that_cannot_be_read_are_refused_kept_or_left_out(run, tmp_path, name):
    (tmp_path / name).write_text(BROKEN[name])
    code, _, err = run("load", tmp_path / name, "--to", tmp_path / "t")
    assert (code, "--on-error" in err) == (2, True)
    assert not (tmp_path / "t").exists()
    code, _, err = run("load", tmp_path / name, "--to", tmp_path / "t", "--on-error", "skip")
    assert (code, "1 line could not be read and was left out" in err) == (0, True)
    assert it.Table.open(tmp_path / "t").count() == 2
    code, _, err = run("load", tmp_path / name, "--to", tmp_path / "u", "--on-error", "keep")
    assert (code, "kept in _raw" in err) == (0, True)
    bad_line = BROKEN[name].splitlines()[{"a.jsonl": 1, "a.csv": 2}[name]]
    raw = it.Table.open(tmp_path / "u").scan().read_all()["_raw"].to_pylist()
    assert sorted(raw, key=lambda text: text or "") == [None, None, bad_line]
    assert f"(line {BROKEN[name].splitlines().index(bad_line) + 1})" in err


PACKED = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.log"])
def test_compressed_files_are_read_by_what_they_are(run, tmp_path, ending, name):
    texts = {
        "a.csv": "note\nthe disk is full\n",
        "a.jsonl": '{"note": "the disk is full"}',
        "a.log": "the disk is full",
    }
    text = texts[name].encode()
    path = tmp_path / f"{name}.{ending}"
    path.write_bytes(PACKED[ending](text))
    assert run("load", path, "--to", tmp_path / "t")[0] == 0
    assert it.Table.open(tmp_path / "t").count(query="disk") == 1
    path.write_bytes(PACKED[ending](text * 1000)[:-9])
    code, _, err = run("load", path, "--to", tmp_path / "u")
    assert (code, "damaged or cut off" in err) == (1, True)
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("data", [b"PK\x03\x04 and more", bytes(range(256)) * 50])
def test_what_is_no_text_is_refused(run, tmp_path, data):
    (tmp_path / "a.log").write_bytes(data)
    code, _, err = run("load", tmp_path / "a.log", "--to", tmp_path / "t")
    assert (code, str(tmp_path / "a.log") in err) == (2, True)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "latin-1", "utf-8-sig", "cp500"])
def test_an_encoding_is_noticed_or_given(run, tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes("name,note\nJürgen,über alles geprüft\n".encode(encoding))
    given = ["--encoding", encoding] if encoding == "cp500" else []
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "t", *given)
    assert code == 0, err
    assert it.Table.open(tmp_path / "t").count("name = 'Jürgen'") == 1
    assert ("is read as" in err) == (encoding in {"utf-16", "utf-16-be", "latin-1"})


@pytest.mark.parametrize(
    ("delimiter", "flags"), [(";", ()), ("\t", ()), ("|", ()), ("~", ("--delimiter", "~"))]
)
def test_columns_are_separated_by_what_the_first_line_has(run, tmp_path, delimiter, flags):
    table, _ = loaded(run, tmp_path, "a.csv", f"a{delimiter}b\n1{delimiter}2,5\n", *flags)
    assert table.scan().read_all().to_pylist() == [{"a": 1, "b": "2,5"}]


@pytest.mark.parametrize(
    "flags",
    [
        ("--type", "id=banana"),
        ("--encoding", "klingon"),
        ("--delimiter", "ab"),
        ("--raw",),
        ("--type", "x=string"),
    ],
)
def test_a_flag_that_cannot_be_is_one_message(run, tmp_path, flags):
    (tmp_path / "a.csv").write_text("id\n1\n")
    code, _, err = run("load", tmp_path / "a.csv", "--to", tmp_path / "t", *flags)
    assert (code, "Traceback" in err) == (2, False)
    assert not (tmp_path / "t").exists()


def test_deep_json_in_a_log_is_text(run, tmp_path):
    deep = '{"msg":' + '{"a":' * 100_000 + "1" + "}" * 100_001
    (tmp_path / "a.log").write_text('{"msg":"good"}\n' * 3 + deep + "\n")
    assert run("load", tmp_path / "a.log", "--to", tmp_path / "t")[0] == 0
    assert it.Table.open(tmp_path / "t").count() == 4


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


LEVELS = "".join(
    f"2024-05-03 10:00:{n % 60:02},123 {'ERROR' if n % 4 else 'INFO'} disk {n} is full\n" for n in range(40)
)
TYPEMAP = "spark.indextables.indexing.typemap."


def kinds(table):
    found = table.metadata.configuration.items()
    return {key.removeprefix(TYPEMAP): value for key, value in found if key.startswith(TYPEMAP)}


def test_columns_of_few_values_are_searched_by_value(run, tmp_path):
    """The level of a log has an index of its own; a second load, whatever its values, fits the first."""
    table, out = loaded(run, tmp_path, "app.log", LEVELS)
    assert kinds(table) == {"level": "string", "message": "text"}
    assert "searched by value" in out
    assert table.count("level = 'INFO'") == 10
    assert table.last_scan.ruled_by == ("level as string",)
    table, _ = loaded(run, tmp_path, "more.log", LEVELS.replace("ERROR", "WARN"))
    assert kinds(table) == {"level": "string", "message": "text"}
    assert table.count(query="level:WARN") == 30


def test_indexing_auto_false_leaves_values_without_an_index(run, tmp_path):
    table, out = loaded(run, tmp_path, "app.log", LEVELS, "--option", "indexing.auto=false")
    assert kinds(table) == {"message": "text"}
    assert "searched by value" not in out
    assert table.count(query="level:INFO") == 10


def test_what_options_say_of_a_column_stands(run, tmp_path):
    more = ("--option", "indexing.typemap.level=text,string", "--text", "message")
    table, _ = loaded(run, tmp_path, "app.log", LEVELS, *more)
    assert kinds(table) == {"level": "text,string", "message": "text"}


def test_a_write_indexes_by_itself_when_asked(tmp_path):
    rows = {
        "id": [f"u{n}" for n in range(40)],
        "host": ["a", "b"] * 20,
        "note": ["the disk is full"] * 40,
        "day": ["x"] * 40,
    }
    it.write(tmp_path / "t", rows, partition_by=["day"], options={"indexing.auto": "true"})
    assert kinds(it.Table.open(tmp_path / "t")) == {"host": "string", "note": "text"}
    batches = pa.table(rows).to_reader(max_chunksize=7)
    it.write(tmp_path / "r", batches, text="id", options={"indexing.auto": "true"})
    table = it.Table.open(tmp_path / "r")
    assert kinds(table) == {"id": "text", "host": "string", "note": "text", "day": "string"}
    assert table.count() == 40
    it.write(tmp_path / "p", rows)
    assert kinds(it.Table.open(tmp_path / "p")) == {}


def test_nested_values_of_json_lines_are_searched_by_their_names(run, tmp_path):
    rows = [
        {"ts": f"2024-05-03T10:00:0{n}Z", "message": "a request came in", "attributes": {"user": user, "n": n, "note": "it was the disk"}, "tags": [user, "all of it"]}
        for n, user in enumerate(("ann lee", "bob"))
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("a.jsonl", "a.log"):
        (tmp_path / name).mkdir()
        table, out = loaded(run, tmp_path / name, name, text)
        assert "searched by words and fields" in out
        assert table.count(query="attributes.user:ann") == 1
        assert table.count(query="attributes.n:>=1") == 1
        assert table.count(query="tags:lee") == 1
        assert table.last_scan.search.scanned == 0
