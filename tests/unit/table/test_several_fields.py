"""One column with several indexes: how it is asked for, what it answers with, and what it costs."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import OptionError
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("tags", pa.list_(pa.string()))])
TYPEMAP = "spark.indextables.indexing.typemap.message"
MESSAGES = ["disk error on node-7", "timeout", "disk full", None, "", "timeout"] + [
    f"line {at}" for at in range(94)
]
DEEP = {"repair.validateSplits": "deep"}


def table_of(path, kinds, **options):
    given = {"indexing.typemap.message": kinds, **options}
    table = it.Table.create(path, SCHEMA, options=given)
    table.append(pa.table([range(100), MESSAGES, [["a b"]] * 100], schema=SCHEMA))
    return table


def index_of(table):
    (add,) = table._snapshot.adds()
    index = open_index(table._snapshot.reading, SplitRef.of(add), with_rows=False)
    assert index is not None
    return index


def ids(reader):
    return sorted(reader.read_all()["id"].to_pylist())


@pytest.mark.parametrize(
    ("kinds", "where", "field", "expected"),
    [
        ("text,substring", "message LIKE '%isk%'", "message as substring", [0, 2]),
        ("text,substring", "instr(message, 'ode-7') > 0", "message as substring", [0]),
        ("text,substring", "message = 'timeout'", "message as substring", [1, 5]),
        ("text,string", "message = 'timeout'", "message as string", [1, 5]),
        ("text,string", "message IN ('timeout', '')", "message as string", [1, 4, 5]),
        ("string,substring", "message <=> 'disk full'", "message as string", [2]),
        ("string,substring", "contains(message, 'k full')", "message as substring", [2]),
        ("string", "message = ''", "message as string", [4]),
    ],
)
def test_each_question_goes_to_the_cheapest_field_that_rules_rows_out(
    tmp_path, kinds, where, field, expected
):
    table = table_of(tmp_path / "t", kinds)
    assert ids(table.scan(where, ["id"])) == expected
    assert table.last_scan.ruled_by == (field,)
    assert table.count(where) == len(expected)


@pytest.mark.parametrize(
    "kinds", ["text,substring", "substring , TEXT", "text,string", "text,string,substring"]
)
def test_words_are_found_beside_other_fields(tmp_path, kinds):
    table = table_of(tmp_path / "t", kinds)
    assert ids(table.search("disk", columns=["id"])) == [0, 2]
    assert table.last_scan.ruled_by == ("message as text",)
    assert (table.last_scan.search.by_index, table.last_scan.search.scanned) == (1, 0)
    both = table.search("disk", where="message LIKE '%node%'", columns=["id"])
    assert ids(both) == [0]
    assert set(table.last_scan.ruled_by) >= {"message as text"}


def test_row_lengths_and_root_are_stored_once(tmp_path):
    """What ranking needs belongs to the words; other fields of the column bring their own entries only."""
    alone, both = (index_of(table_of(tmp_path / kinds, kinds)) for kinds in ("text", "text,string,substring"))
    assert both.sizes["norms"] == alone.sizes["norms"]
    assert (
        both.tokens
        == alone.tokens
        == {"message": sum(len((text or "").replace("-", " ").split()) for text in MESSAGES)}
    )
    assert [field.tokens > 0 for field in both.root.fields] == [True, False, False]


def test_groups_come_from_the_dictionary_of_values(tmp_path):
    table = table_of(tmp_path / "t", "text,string")
    groups = table.facets("message", top=2)
    assert groups.to_pylist()[0]["count"] == 2
    assert table.last_scan.files_from_index == 1
    words = table_of(tmp_path / "words", "text,substring")
    assert words.facets("message", top=2).to_pylist()[0]["count"] == 2
    assert words.last_scan.files_from_index == 0


def test_the_settings_live_on_and_a_merge_makes_the_new_field(tmp_path):
    table = table_of(tmp_path / "t", "text")
    table.update_properties({TYPEMAP: "substring,text"})
    table = it.Table.open(tmp_path / "t")
    assert table.count("message LIKE '%isk%'") == 2
    assert ids(table.search("disk", columns=["id"])) == [0, 2]
    assert table.last_scan.search.scanned == 0
    table.merge_splits()
    (add,) = table._snapshot.adds()
    assert add.tags["indexedFields"] == "message:text,message:substring"
    table.append(pa.table([[100], ["disk error"], [None]], schema=SCHEMA))
    table.append(pa.table([[101], ["disk error"], [None]], schema=SCHEMA), options={TYPEMAP: "text"})
    table.merge_splits()
    assert [(field.column, field.kind) for field in index_of(table).spec.fields] == [
        ("message", "text"),
        ("message", "substring"),
    ]
    assert ids(table.scan("message LIKE '%isk err%'", ["id"])) == [0, 100, 101]
    table.update("id = 100", {"message": "disc"})
    assert ids(table.search("disc", columns=["id"])) == [100]
    assert ids(table.scan("message LIKE '%isk err%'", ["id"])) == [0, 101]


def test_the_repaired_log_knows_all_fields(tmp_path):
    table_of(tmp_path / "t", "text,string")
    log = tmp_path / "t" / "_transaction_log"
    for file in log.iterdir():
        file.write_bytes(b"lost")
    it.repair_log(str(log), str(tmp_path / "t" / "_new"), from_splits=True)
    shutil.rmtree(log)
    (tmp_path / "t" / "_new").rename(log)
    table = it.Table.open(tmp_path / "t")
    assert table.metadata.configuration[TYPEMAP] == "text,string"
    assert (table.count(query="disk"), table.count("message = 'timeout'")) == (2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"indexing.typemap.message": "text,json"}, "could not tell which of text and json"),
        ({"indexing.typemap.message": "text,words"}, "or several of them as in text,substring"),
        ({"indexing.typemap.tags": "text,substring"}, "this setting needs text"),
        (
            {"indexing.typemap.message": "text,substring", "indexing.fastfields": "message"},
            "words have no value",
        ),
        (
            {"indexing.typemap.message": "string,substring", "indexing.tokenizer.message": "en_stem"},
            "no tokenizer",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, options, message):
    with pytest.raises(OptionError, match=message):
        it.Table.create(tmp_path / "t", SCHEMA, options=options)


def test_a_write_that_asks_for_another_field_contradicts_the_table(tmp_path):
    table = table_of(tmp_path / "t", "text,substring")
    row = pa.table([[1], ["x"], [None]], schema=SCHEMA)
    with pytest.raises(OptionError, match=r"indexed as text .* and substring .*asks for string"):
        table.append(row, options={"indexing.typemap.message": "string"})
    with pytest.raises(OptionError, match="asks for text .* and string"):
        table.append(row, options={"indexing.typemap.message": "text,string"})


def test_columns_may_be_called_like_kinds(tmp_path):
    schema = pa.schema([("text", pa.string()), ("string", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.text": "text,string"})
    table.append(pa.table([["a b"], ["c"]], schema=schema))
    assert table.count(query="text:a") == 1
    assert table.metadata.configuration["spark.indextables.indexing.typemap.text"] == "text,string"
    listed = it.Table.create(tmp_path / "l", schema, options={"indexing.typemap.substring": "text,string"})
    assert listed.metadata.configuration["spark.indextables.indexing.typemap.text"] == "substring"


def test_a_description_names_every_field(tmp_path):
    table = table_of(tmp_path / "t", "substring,text", **{"indexing.typemap.tags": "text"})
    described = {column.name: column.index for column in table.describe().columns}
    assert described == {"id": None, "message": "text,substring", "tags": "text"}
    (detail,) = it.sql(f"DESCRIBE DETAIL '{tmp_path / 't'}'").to_pylist()
    assert dict(detail["properties"])[TYPEMAP] == "text,substring"
    assert detail["index_size_bytes"] == table.describe().index_bytes > 0


def test_a_deep_check_reads_every_field(tmp_path):
    """One byte in forty places of the index is changed in turn."""
    table = table_of(tmp_path / "t", "text,string,substring")
    assert set(it.check(tmp_path / "t", DEEP).to_arrow()["severity"].to_pylist()) == {"OK"}
    (add,) = table._snapshot.adds()
    split = tmp_path / "t" / add.path
    whole = split.read_bytes()
    offset, length = add.hotcache_start_offset, add.hotcache_length
    for at in range(offset, offset + length, max(1, length // 40)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        split.write_bytes(damaged)
        severities = it.check(tmp_path / "t", DEEP).to_arrow()["severity"].to_pylist()
        assert severities != ["OK"], f"byte {at - offset} of the index"
    split.write_bytes(whole)
    assert set(it.check(tmp_path / "t", DEEP).to_arrow()["severity"].to_pylist()) == {"OK"}
