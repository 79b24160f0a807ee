"""Queries are read and checked before any file is opened, with errors that say what to do."""

from __future__ import annotations

import pickle
import re

import pyarrow as pa
import pytest

from indextables.errors import QueryError
from indextables.index.query.parts import QueryRules
from indextables.index.query.patterns import Expression, Gap, Similar, Wildcard
from indextables.index.query.syntax import parse_query, plain_query
from indextables.index.query.tree import (
    NOTHING,
    Between,
    Boolean,
    Boosted,
    Everything,
    Exists,
    Matching,
    Words,
)
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
        ("it's", Words("message", ("it", "s"))),
        ("error && timeout", Boolean(must=(word("error"), word("timeout")))),
        ("error || timeout", Boolean(should=(word("error"), word("timeout")))),
        ("error and timeout", Boolean(should=(word("error"), word("and"), word("timeout")))),
        ("and error", Boolean(should=(word("and"), word("error")))),
        ("error AND not", Boolean(must=(word("error"), word("not")))),
        ("!error", Boolean(must_not=(word("error"),))),
        ("NOT NOT error", word("error")),
        ("a b -c", Boolean(should=(word("a"), word("b")), must_not=(word("c"),))),
        ("a OR NOT b", Boolean(should=(word("a"), Boolean(must_not=(word("b"),))))),
        ("a OR b AND c", Boolean(should=(word("a"), Boolean(must=(word("b"), word("c")))))),
        ("+a AND b c", Boolean(must=(Boolean(must=(word("a"), word("b"))),), should=(word("c"),))),
        ("message:(a b)", Boolean(should=(word("a"), word("b")))),
        ("level:(A OR message:b)", Boolean(should=(word("A", "level"), word("b")))),
        ("t?me", Matching("message", Wildcard(("t", Gap.ONE, "me")))),
        ("*Out", Matching("message", Wildcard((Gap.MANY, "out")))),
        ("timeuot~", Matching("message", Similar("timeuot", 2))),
        ("timeout~1^2", Boosted(Matching("message", Similar("timeout", 1)), 2.0)),
        ("timeout~0", word("timeout")),
        ("/t.m(e|o)/", Matching("message", Expression("t.m(e|o)"))),
        ("level:a\\*b", word("a*b", "level")),
        ("level:a\\ b", word("a b", "level")),
        ("ts:>1970-01-01T00:00:01Z", Between("ts", 1_000_000, None, include_lower=False)),
        ('ip:"::1"', Between("ip", f"{1:032x}", f"{1:032x}")),
        ("ip:::1", Between("ip", f"{1:032x}", f"{1:032x}")),
        ("ip:fe80::1", Between("ip", f"{0xFE80 << 112 | 1:032x}", f"{0xFE80 << 112 | 1:032x}")),
        ("status:-5", Between("status", -5, -5)),
        ("*:*", Everything()),
        ("and", word("and")),
        ("plain:X", Words("plain", ("X",))),
        ("plain:*", Exists("plain")),
        ("Plain:x*", Words("plain", (), prefix="x")),
        ("message:not", word("not")),
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
        ('"never closed', 'the quote " is not closed at character 1'),
        ("a AND", "operand"),
        ("AND", "operand"),
        ("12:30:59", "double quotes"),
        ("nope:x", "no column 'nope'; it has message, title"),
        ("message.inner:x", "has no column 'message.inner'"),
        ("a & b", "a single '&' at character 3; write && or AND"),
        ("a|b", "a single '|' at character 2; write || or OR"),
        ("a && && b", "&& lacks its left operand at character 6"),
        ("+a OR b", "'+' beside OR at character 1"),
        ("--verbose", "behind another sign at character 2"),
        ("a - b", "a lone '-' at character 3"),
        ("a !", "a lone '!'"),
        ("a NOT", "NOT lacks its operand"),
        ("()", "there is nothing between the brackets"),
        ("a)", "')' closes no bracket at character 2"),
        ("a]", "']' right after a word"),
        ("f(x)", "'(' right after a word at character 2"),
        ('a"b"', "right after a word"),
        ("(a)b", "'b' right after a bracket"),
        ("\u201ca\u201d", "the quotation mark"),
        ("a\\\\"[:-1], "a backslash at the end"),
        ("/var/log", "'/' begins a regular expression, and text follows right after it"),
        ("/var", "which is not closed"),
        ("//", "an empty regular expression"),
        ("/a(/", "is no regular expression of RE2: .*missing"),
        ("/(?=a)b/", "is no regular expression of RE2"),
        ("/a)(b/", "is no regular expression of RE2"),
        ("timeout~3", "more than 2 edits"),
        ("timeout~0.8", "not a whole number"),
        ("t?me~1", "'~' behind a word with wildcards"),
        ("time-out~1", "is not one word"),
        ("time-o?t", "a wildcard works inside a single word"),
        ('"a b"~', "lacks its number"),
        ("a^", "'\\^' without a number at character 2"),
        ("a^2b", "right after a boost"),
        ("^2", "with nothing before it"),
        ("mess*:a", "a wildcard in the name of a column"),
        ("message:", "nothing follows message:"),
        ("message:NOT a", "NOT behind message:"),
        ("message:-a", "'-' behind message: at character 9; write -message:word"),
        ("message:a:b", "':' right after a word"),
        ("status:[1 2]", "a range without TO"),
        ("status:[1 TO 2", "a range that is not closed"),
        ("status:[TO 2]", "a range without TO"),
        ("status:>", "lacks one of its ends"),
        ("level: IN []", "an empty list"),
        ("level: IN [a", "a list that is not closed"),
        ("level=error", "write level:error to search column 'level'"),
        ("_exists_:level", "write column:\\* for rows with a value"),
        ("status:/5../", "holds values, not words"),
        ("status:5??", "holds values, not words"),
        ("ip:10~1", "holds values, not words"),
        ("status:five", "'five' is not a value for column 'status' of type int32"),
        ("status:5*", "holds values, not words"),
        ("ip:300.1.1.1", "neither an IP address nor a network"),
        ("day:tomorrow", "not a value for column 'day'"),
        ("message:[a-b TO z]", "is not one word"),
        ("(" * 300 + "a" + ")" * 300, "more than 100 brackets inside each other"),
        ("a " * 100_000, "characters long"),
    ],
)
def test_a_bad_query_is_refused_with_advice(text, message):
    pattern = re.sub(r"[()+|\]\[]", r"\\\g<0>", message) if "RE2" not in message else message
    with pytest.raises(QueryError, match=pattern):
        node(text)


def test_a_table_without_indexed_columns_says_how_to_get_some():
    with pytest.raises(QueryError, match=r"indexing\.typemap\.<column> = text"):
        parse_query("x", IndexSpec(), SCHEMA)


def test_a_query_travels_to_executors():
    query = parse_query('error AND payload.a:1 "x y"~2', SPEC, SCHEMA)
    assert pickle.loads(pickle.dumps(query)) == query


def test_the_columns_of_a_query_are_known_in_table_order():
    assert parse_query("level:A OR message:b", SPEC, SCHEMA).columns == ("message", "level")


def test_words_side_by_side_are_joined_by_the_default_operator():
    rules = QueryRules("and")
    both = node("a b", rules=rules)
    assert both == Boolean(must=(word("a"), word("b")))
    assert node("a OR b c", rules=rules) == Boolean(should=(word("a"), Boolean(must=(word("b"), word("c")))))
    assert node("a -b", rules=rules) == Boolean(must=(word("a"),), must_not=(word("b"),))


def test_lowercase_operators_are_an_option():
    rules = QueryRules(lowercase_operators=True)
    assert node("a and b or c", rules=rules) == Boolean(
        should=(Boolean(must=(word("a"), word("b"))), word("c"))
    )
    assert node("message:(and)", rules=rules) == word("and")
    for text, problem in (
        ("not found", "'not' in lower case at character 1; write NOT"),
        ("file not found", "'not' in lower case at character 6"),
        ("a and", "right operand"),
        ("or a", "or lacks its left operand"),
    ):
        with pytest.raises(QueryError, match=re.escape(problem)):
            node(text, rules=rules)


def test_the_words_of_any_text_become_a_query_that_means_just_them():
    text = 'C++ and "not found" (12:30) & path\\x OR -y 550e8400-e29b-41d4-a716-446655440000'
    asked = node(plain_query(text))
    found = [one for part in asked.should if part != NOTHING for one in part.words]
    assert found == [
        "c",
        "and",
        "not",
        "found",
        "12",
        "30",
        "path",
        "x",
        "or",
        "y",
        *"550e8400 e29b 41d4 a716 446655440000".split(),
    ]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("error and timeout", "`and` is searched as a word; write AND for the operator"),
        ("did not respond", "`not` is searched as a word; write NOT for the operator"),
        ("title:(a or b)", "`or` is searched as a word; write OR for the operator"),
        ("not", "`not` is searched as a word"),
        ("the error", "rows that hold only them match too"),
        ("The", "'The': common words are searched like any other, and most texts hold them"),
        ("to the", "'to', 'the': common words are searched like any other, and most texts hold them"),
        ('"time*"', "inside quotes"),
        ('"timeout"~1', "for similar words leave the quotes"),
        ('"!!!"', "holds no word for column 'message'"),
        ("title:runn?ng", "column 'title' keeps stems"),
        ("/Err.*/", "are in lower case"),
    ],
)
def test_what_the_author_of_a_query_should_know_is_noted(text, hint):
    (note,) = parse_query(text, SPEC, SCHEMA, ("message",)).notes
    assert hint in note


@pytest.mark.parametrize(
    "text",
    [
        '+error -"connection reset" message:t?me*',
        '"the"',
        "the*",
        "+error the",
        "error OR the",
        "message:the",
    ],
)
def test_a_plain_query_has_no_notes(text):
    assert parse_query(text, SPEC, SCHEMA, ("message",)).notes == ()


def test_a_whole_value_that_looks_like_a_common_word_has_no_note():
    assert parse_query("no", SPEC, SCHEMA, ("level",)).notes == ()


def test_a_thousand_alternatives_are_read():
    assert len(node(" ".join(f"w{number}" for number in range(10_000))).should) == 10_000
