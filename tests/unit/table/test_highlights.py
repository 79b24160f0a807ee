"""What a search marks is what it matched: the same words, stems, patterns and phrases."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.errors import OptionError
from indextables.index.highlight import marked, snippets, tokens_at
from indextables.index.tokens import words_of
from support.search_cases import SEPARATORS, TOKENIZERS, WORDS

SCHEMA = pa.schema(
    [("id", pa.int64()), ("message", pa.string()), ("title", pa.string()), ("level", pa.string()),
     ("tags", pa.list_(pa.field("element", pa.string()))), ("ref", pa.string()), ("doc", pa.string())]
)  # fmt: skip
OPTIONS = {
    "indexing.typemap.message": "text", "indexing.typemap.title": "text", "indexing.tokenizer.title": "en_stem",
    "indexing.typemap.level": "string", "indexing.typemap.tags": "text", "indexing.typemap.ref": "text",
    "indexing.tokenizer.ref": "compact_ids", "indexing.typemap.doc": "json",
}  # fmt: skip
UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = it.Table.create(tmp_path_factory.mktemp("marks") / "t", SCHEMA, options=OPTIONS)
    rows = {
        "id": [1, 2],
        "message": ["Connection RESET by peer, timeout; connection of the peer", None],
        "title": ["Running the tests", "ran"], "level": ["ERROR", "warn"],
        "tags": [["dark blue", "red"], None], "ref": [f"id {UUID} ok", "none"], "doc": ['{"a": "peer"}', None],
    }  # fmt: skip
    made.append(pa.table(rows, SCHEMA))
    return made


CASES = {
    "message:reset": ("message", "Connection [RESET] by peer, timeout; connection of the peer"),
    "message:(reset OR peer)": ("message", "Connection [RESET] by [peer], timeout; connection of the [peer]"),
    'message:"by peer"': ("message", "Connection RESET [by] [peer], timeout; connection of the peer"),
    'message:"connection peer"~2': ("message", "[Connection] RESET by [peer], timeout; [connection] of the [peer]"),
    'message:"reset b"*': ("message", "Connection [RESET] [by] peer, timeout; connection of the peer"),
    "message:conn*": ("message", "[Connection] RESET by peer, timeout; [connection] of the peer"),
    "message:p?er": ("message", "Connection RESET by [peer], timeout; connection of the [peer]"),
    "message:timeuot~1": ("message", "Connection RESET by peer, [timeout]; connection of the peer"),
    "message:/t.*t/": ("message", "Connection RESET by peer, [timeout]; connection of the peer"),
    "message:[peer TO reset]": ("message", "Connection [RESET] by [peer], timeout; connection of the [peer]"),
    "message:(peer -reset) OR message:timeout": ("message", "Connection RESET by [peer], [timeout]; connection of the [peer]"),
    "message:peer^2": ("message", "Connection RESET by [peer], timeout; connection of the [peer]"),
    "title:runs": ("title", "[Running] the tests"),
    "title:test*": ("title", "Running the [tests]"),
    "level:ERROR": ("level", "[ERROR]"),
    "tags:blue": ("tags", ["dark [blue]", "red"]),
    f'ref:"{UUID}"': ("ref", f"id [{UUID}] ok"),
}  # fmt: skip


@pytest.mark.parametrize("query", CASES)
def test_a_match_is_marked_as_it_was_matched(table, query):
    column, wanted = CASES[query]
    found = table.search(query, columns=["id"], highlight=("[", "]")).read_all()
    assert found.column_names == ["id", "_highlight"]
    assert found["_highlight"][0].as_py()[column] == wanted


def test_marks_are_em_tags_unless_others_are_given_and_absent_matches_are_null(table):
    found = table.search("peer OR ran", columns=["title"], highlight=True, score=True).read_all()
    assert found.column_names == ["title", "_score", "_highlight"]
    by_title = {row["title"]: row["_highlight"] for row in found.to_pylist()}
    assert by_title["Running the tests"]["message"].count("<em>peer</em>") == 2
    assert by_title["Running the tests"]["title"] is None
    assert by_title["ran"]["title"] == "<em>ran</em>"


def test_what_a_query_excludes_is_not_marked(table):
    found = table.search(
        "message:peer -message:zebra -title:running OR level:ERROR", highlight=("[", "]")
    ).read_all()
    assert found["_highlight"][0].as_py()["title"] is None


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_places_are_those_of_the_words_that_the_tokenizer_finds(tokenizer):
    for separator in SEPARATORS:
        text = separator.join(WORDS)
        tokens = tokens_at(text, tokenizer)
        assert [token.word for token in tokens] == words_of(tokenizer)(text)
        assert all(token.start < token.end for token in tokens)


def test_snippets_are_the_pieces_with_most_matches_in_order():
    text = "start " + "x " * 100 + "one peer here " + "y " * 200 + "peer and peer again " + "z " * 100 + "end"
    spans = [(found, found + 4) for found in range(len(text)) if text.startswith("peer", found)]
    (best,) = snippets(text, spans, 1, "[", "]")
    assert best.count("[peer]") == 2
    assert best.startswith("…")
    assert best.endswith("…")
    assert len(best) < 170
    both = snippets(text, spans, 5, "[", "]")
    assert [piece.count("[peer]") for piece in both] == [1, 2]
    assert snippets("short peer", [(6, 10)], 2, "[", "]") == ["short [peer]"]
    assert snippets("nothing", [], 2) == []
    assert marked("abc", [(0, 1), (2, 3)], "[", "]") == "[a]b[c]"


def test_snippets_come_with_or_without_the_whole_text(table):
    found = table.search("message:peer", columns=["id"], snippets=2).read_all()
    assert found.column_names == ["id", "_snippets"]
    (row,) = found["_snippets"].to_pylist()
    assert row == ["Connection RESET by <em>peer</em>, timeout; connection of the <em>peer</em>"]
    with pytest.raises(OptionError, match="1 or more"):
        table.search("peer", snippets=0)
    with pytest.raises(OptionError, match="no text column"):
        table.search("doc:peer", highlight=True)


def test_the_command_line_colours_matches_on_a_terminal_and_marks_them_in_json(table):
    def run(*more):
        return CliRunner().invoke(
            cli, ["search", table.uri, "message:peer", "--columns", "id,message", *more]
        )

    (row,) = json.loads(run("--highlight", "--json").stdout)
    assert row["_highlight"]["message"].count("<em>peer</em>") == 2
    plain = run("--highlight").stdout
    assert "peer, timeout" in " ".join(plain.split())
    assert "\ue000" not in plain
    assert "em>" not in plain
    coloured = CliRunner().invoke(
        cli, ["search", table.uri, "message:peer", "--columns", "id,message", "--highlight"],
        env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}, color=True,
    )  # fmt: skip
    assert coloured.stdout.count("\x1b[1;31mpeer\x1b[0m") == 2
