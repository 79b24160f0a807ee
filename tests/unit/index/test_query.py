"""Queries are read and checked before any file is opened, with errors that say what to do."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from indextables.errors import QueryError
from indextables.index.query.syntax import parse_query
from indextables.index.query.tree import NOTHING, Between, Boolean, Boosted, Everything, Exists, Words
from indextables.index.settings import IndexSpec, from_options
from indextables.options import Options

SCHEMA = pa.schema(
    [
        ("message", pa.string()), ("title", pa.string()), ("level", pa.string()), ("payload", pa.string()),
        ("ip", pa.string()), ("status", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("day", pa.date32()),
        ("ratio", pa.float32()), ("ok", pa.bool_()), ("my col", pa.string()), ("plain", pa.string()),
    ]
)  # fmt: skip
OPTIONS = {
    "indexing.typemap.message": "text", "indexing.typemap.title": "text", "indexing.tokenizer.title": "en_stem",
    "indexing.typemap.level": "string", "indexing.typemap.payload": "json", "indexing.typemap.ip": "ip",
    "indexing.fastfields": "status,ts,day,ratio,ok", "indexing.typemap.my col": "text",
}  # fmt: skip
SPEC = from_options(Options.of(OPTIONS), SCHEMA)


def node(text, columns=("message",), **more):
    return parse_query(text, SPEC, SCHEMA, columns, **more).node


def word(text, column="message"):
    return Words(column, (text,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error", word("error")),
        ("error timeout", Boolean(should=(word("error"), word("timeout")))),
        ("error AND timeout", Boolean(must=(word("error"), word("timeout")))),
        ("+error -debug", Boolean(must=(word("error"),), must_not=(word("debug"),))),
        ("NOT error", Boolean(must_not=(word("error"),))),
        ('"Connection Reset"', Words("message", ("connection", "reset"))),
        ('"connection reset"~3', Words("message", ("connection", "reset"), 3)),
        ("time-out", Words("message", ("time", "out"))),
        ("conn*", Words("message", (), prefix="conn")),
        ('"connection res"*', Words("message", ("connection",), prefix="res")),
        ("level:ERROR", Words("level", ("ERROR",))),
        ("title:running", Words("title", ("run",))),
        ("title:running*", Words("title", (), 0, "running", "run")),
        ("level: IN [A B]", Boolean(should=(Words("level", ("A",)), Words("level", ("B",))))),
        ("level:*", Exists("level")),
        ("*", Everything()),
        ("error^2", Boosted(word("error"), 2.0)),
        ("message:[a TO b}", Between("message", "a", "b", include_upper=False)),
        ("message:>a", Between("message", "a", None, include_lower=False)),
        ("message:[* TO *]", Exists("message")),
        ("status:500", Between("status", 500, 500)),
        ("status:[500 TO 599]", Between("status", 500, 599)),
        ("status:>=500", Between("status", 500, None)),
        ("day:2024-02-29", Between("day", 19782, 19782)),
        ("ts:[1970-01-01T00:00:01Z TO *]", Between("ts", 1_000_000, None)),
        ("ok:true", Between("ok", 1, 1)),
        ("ip:10.0.0.1", Between("ip", f"{0xFFFF0A000001:032x}", f"{0xFFFF0A000001:032x}")),
        ("ip:10.0.0.0/8", Between("ip", f"{0xFFFF0A000000:032x}", f"{0xFFFF0AFFFFFF:032x}")),
        ("payload.user.name:alice", Words("payload", ("alice",), path="user.name")),
        ("payload.code:[400 TO 499]", Between("payload", 400, 499, path="code")),
        ("my\\ col:x", Words("my col", ("x",))),
        ("MESSAGE:x", word("x")),
        ('"!!!"', NOTHING),
    ],
)
def test_a_query_becomes_a_tree(text, expected):
    assert node(text) == expected


def test_words_without_a_column_look_into_every_indexed_one():
    found = node("10.0.0.1", None)
    assert {part.column for part in found.should} == {"message", "title", "level", "payload", "ip", "my col"}
    assert "status" in parse_query("500", SPEC, SCHEMA).columns
    assert "status" not in parse_query("five", SPEC, SCHEMA).columns


def test_a_float_column_is_compared_with_the_float_its_text_becomes():
    bound = node("ratio:0.1").lower
    assert bound != 0.1
    assert bound == pytest.approx(0.1)


def test_timestamps_without_an_offset_are_read_in_the_given_zone():
    assert node("ts:[1970-01-01 TO *]", time_zone="Europe/Berlin").lower == -3_600_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("(a OR b", "expected ')'"),
        ('"never closed', "double quotes"),
        ("a AND", "operand"),
        ("AND", "operand"),
        ("12:30:59", "double quotes"),
        ("it's", "double quotes"),
        ("nope:x", "there is no column 'nope'; searchable are message, title"),
        ("plain:x", "column 'plain' is not indexed for search"),
        ("message.inner:x", "there is no column 'message.inner'"),
        ("a*b", "only at the end of a word"),
        ("*ab", "only at the end of a word"),
        ("/x.*/", "regex queries are not supported"),
        ("status:five", "'five' is not a value for column 'status' of type int32"),
        ("status:5*", "no prefix search"),
        ("ip:300.1.1.1", "neither an IP address nor a network"),
        ("day:tomorrow", "not a value for column 'day'"),
        ("message:[a-b TO z]", "is not one word"),
        ("(" * 300 + "a" + ")" * 300, "opening brackets"),
        ("a " * 100_000, "characters long"),
    ],
)
def test_a_bad_query_is_refused_with_advice(text, message):
    with pytest.raises(QueryError, match=message.replace("(", r"\(").replace(")", r"\)")):
        node(text)


def test_a_table_without_indexed_columns_says_how_to_get_some():
    with pytest.raises(QueryError, match=r"indexing\.typemap\.<column> = text"):
        parse_query("x", IndexSpec(), SCHEMA)


def test_a_query_travels_to_executors():
    query = parse_query('error AND payload.a:1 "x y"~2', SPEC, SCHEMA)
    assert pickle.loads(pickle.dumps(query)) == query


def test_the_columns_of_a_query_are_known_in_table_order():
    assert parse_query("level:A OR message:b", SPEC, SCHEMA).columns == ("message", "level")
