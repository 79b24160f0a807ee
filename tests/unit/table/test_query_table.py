"""What every kind of query finds, or why it is refused: in Python and on the command line, with and without an index."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.errors import QueryError
from support import query_table


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three splits; the index of the last one is damaged, so its rows are scanned."""
    root = tmp_path_factory.mktemp("queries") / "t"
    table = it.Table.create(root, query_table.SCHEMA, options=query_table.OPTIONS)
    for first, last in ((0, 4), (4, 7), (7, 10)):
        table.append(query_table.rows(first, last))
    scanned = table.files(where="id = 10").to_pylist()[0]
    split = root / scanned["path"]
    data = bytearray(split.read_bytes())
    first, length = scanned["index_offset"], scanned["index_length"]
    data[first : first + length] = bytes(length)
    split.write_bytes(data)
    return root


@pytest.fixture(scope="module")
def table(path):
    return it.Table.open(path)


def test_the_list_is_long_enough_to_hold_every_operator():
    assert len(query_table.FOUND) >= 200


@pytest.mark.parametrize("query", query_table.FOUND)
def test_a_query_finds_the_rows_it_means(table, query):
    found = table.search(query, columns=["id"]).read_all()["id"].to_pylist()
    assert sorted(found) == query_table.FOUND[query]
    assert table.count(query=query) == len(found)
    scored = table.search(query, columns=["id"], score=True).read_all()["id"].to_pylist()
    assert sorted(scored) == sorted(found)


@pytest.mark.parametrize("query", query_table.REFUSED)
def test_a_query_that_could_mean_something_else_is_refused(table, query):
    with pytest.raises(QueryError) as refused:
        table.search(query)
    assert query_table.REFUSED[query] in refused.value.message


def test_the_command_line_finds_the_same_and_refuses_the_same(path):
    """In one go: starting the program anew for each would only test that it starts."""
    runner = CliRunner()
    for query, wanted in query_table.FOUND.items():
        result = runner.invoke(cli, ["search", str(path), "--json", "--columns", "id", "--", query])
        assert result.exit_code == 0, result.output
        assert sorted(row["id"] for row in json.loads(result.stdout)) == wanted, query
    for query in query_table.REFUSED:
        result = runner.invoke(cli, ["search", str(path), "--json", "--columns", "id", "--", query])
        assert isinstance(result.exception, QueryError), query


def test_scans_answered_for_the_damaged_split(table):
    table.count(query="message:?eer")
    assert table.last_scan.search.scanned == 1
    assert table.last_scan.search.by_index == 2


def test_a_whole_value_in_another_case_is_hinted_at_when_nothing_is_found(table):
    assert table.count(query="level:Error") == 0
    (note,) = table.last_scan.notes
    assert "'Error' finds nothing, 'ERROR' is there" in note
    assert table.search("level:Error").read_all().num_rows == 0
    assert table.last_scan.notes == (note,)
    assert table.count(query="level:ERROR") == 1
    assert table.last_scan.notes == ()


def test_notes_reach_the_command_line_on_standard_error(path):
    for verb in (["search", "--columns", "id"], ["count"]):
        result = CliRunner().invoke(cli, [verb[0], str(path), "--json", *verb[1:], "peer and timeout"])
        assert len(json.loads(result.stdout)) == (5 if verb[0] == "search" else 1)
        assert "`and` is searched as a word; write AND for the operator" in result.stderr


def test_a_plain_text_finds_the_rows_that_hold_all_its_words(path, table):
    for text, expected in query_table.TEXTS.items():
        for score in (False, True):
            rows = table.search(text=text, columns=["id"], score=score).read_all()["id"].to_pylist()
            assert sorted(rows) == expected, text
        assert table.count(text=text) == len(expected), text
        for verb in (["search", "--columns", "id"], ["count"]):
            result = CliRunner().invoke(cli, [verb[0], str(path), "--json", *verb[1:], "--text", text])
            answer = json.loads(result.stdout)
            found = len(answer) if verb[0] == "search" else answer[0]["count"]
            assert found == len(expected), text
    assert table.facets("level", query=None, where="id = 1")["count"].to_pylist() == [1]


def test_the_words_of_a_text_are_a_query_as_well(table):
    for text in ("peer by reset", "[Connection] (reset), by/peer!", "C++ && AT&T", "user not found"):
        assert table.count(query=it.plain_query(text, "and")) == table.count(text=text) == 1


def test_a_query_and_a_text_exclude_each_other(table):
    with pytest.raises(it.errors.OptionError, match="give query or text"):
        table.search("peer", text="peer")
    with pytest.raises(it.errors.OptionError, match="give a query, or text"):
        table.search()
    with pytest.raises(QueryError, match="the text is 200000 characters long"):
        table.count(text="ab " * 66_666 + "ab")


def test_a_text_that_finds_nothing_has_a_note_about_the_missing_word(table):
    for call in (
        lambda text, **more: table.search(text=text, **more).read_all().num_rows,
        lambda text, **more: table.count(text=text, **more),
    ):
        assert call("[peer] zebra reset!") == 0
        assert table.last_scan.notes == ("no row has all words of the text: none holds 'zebra'",)
        assert call("peer seconds") == 0
        (note,) = table.last_scan.notes
        assert note == "each word of the text is in some row, but no row has all of them: leave some out"
        assert call("peer reset", where="id > 1") == 0
        assert table.last_scan.notes == ("no row has all words of the text: none holds 'reset'",)
        assert call("peer reset") == 1
        assert table.last_scan.notes == ()


def test_a_row_that_holds_the_whole_text_comes_first(tmp_path):
    long = " ".join(f"w{number}" for number in range(3000))
    rows = pa.table(
        {"message": ["peer reset " * 40, f"{long} reset by peer {long}", "peer, by reset", "by"] * 3}
    )
    table = it.Table.create(tmp_path / "t", rows.schema, options={"indexing.typemap.message": "text"})
    for start in range(0, 12, 5):
        table.append(rows.slice(start, 5))
    found = table.search(text="(reset) by peer", score=True).read_all()["message"].to_pylist()
    assert ["reset by peer" in text for text in found] == [True] * 3 + [False] * 3


def test_a_delta_table_is_searched_by_the_words_of_a_text(tmp_path):
    write_deltalake = pytest.importorskip("deltalake").write_deltalake
    rows = pa.table({"message": ["connection reset by peer", "peer (gone)"]})
    write_deltalake(str(tmp_path / "d"), rows)
    table = it.DeltaTable.open(tmp_path / "d")
    assert table.count(text="by: peer") == 1
    assert table.search(text="peer [zebra]").read_all().num_rows == 0
    assert table.last_scan.notes == ("no row has all words of the text: none holds '[zebra]'",)


def test_an_option_keeps_operators_in_lower_case(path):
    options = {"search.lowercaseOperators": "true"}
    table = it.Table.open(path, options=options)
    for query, expected in query_table.WITH_LOWERCASE_OPERATORS.items():
        assert sorted(table.search(query, columns=["id"]).read_all()["id"].to_pylist()) == expected, query
        (total,) = it.sql(
            f"SELECT count(*) AS n FROM '{path}' WHERE _indexall indexquery '{query}'", options=options
        )["n"].to_pylist()
        assert total == len(expected)
        result = CliRunner().invoke(
            cli, ["count", str(path), "--json", "-O", "search.lowercaseOperators=true", query]
        )
        assert json.loads(result.stdout)[0]["count"] == len(expected)
    with pytest.raises(QueryError, match="'not' in lower case"):
        table.count(query="user not found")


def test_the_default_operator_is_an_option_of_the_table_or_of_the_call(path, table):
    def ids(opened, **more):
        return sorted(opened.search("peer timeout", columns=["id"], **more).read_all()["id"].to_pylist())

    strict = it.Table.open(path, options={"search.defaultOperator": "and"})
    assert ids(table) == ids(strict, operator="or") == [1, 3, 8]
    assert ids(strict) == ids(table, operator="AND") == [3]
    assert table.count(query="peer timeout", operator="and") == 1
    result = CliRunner().invoke(cli, ["search", str(path), "--json", "--operator", "and", "peer timeout"])
    assert [row["id"] for row in json.loads(result.stdout)] == [3]
    with pytest.raises(it.errors.OptionError, match="expected one of or, and"):
        table.search("peer", operator="xor")


def test_the_same_text_is_read_anew_when_the_table_has_other_settings(tmp_path):
    rows = pa.table({"message": ["disk full", "all quiet"], "level": ["warn", "info"]})
    table = it.Table.create(tmp_path / "t", rows.schema, options={"indexing.typemap.message": "text"})
    table.append(rows)
    before = it.Table.open(tmp_path / "t")
    assert [handle.count(query="warn") for handle in (table, before)] == [0, 0]
    table.update_properties({"indexing.typemap.level": "string"})
    assert [handle.count(query="warn") for handle in (table, before)] == [1, 0]
    assert before.refresh().count(query="warn") == 1
