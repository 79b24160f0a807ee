"""`search` and `isearch` on Spark equal plain Python and Spark's own functions, on every kind of table."""

from __future__ import annotations

import functools
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import indextables as it
from indextables.errors import PredicateError
from indextables.predicate.word_breaks import boundaries
from indextables.spark.versions import installed
from support import search_function_cases
from support.search_function_cases import SCHEMA, answer, calls, rows
from support.spark_versions import needs

# Spark 3.5 reads two texts that follow each other as one, without an apostrophe between them.
sql = functools.partial(search_function_cases.sql, apostrophe="\\'")
KINDS = ("no index", "substring", "text", "parquet", "delta")
# What ICU cuts in another way than UAX #29 alone: a colon, and scripts that it has dictionaries for.
CHARACTERS = "aZé9٣_'.,;\"  \t\n\r\u0308\u200d\u00ad\u2060אב\u05f4🇩🇪👩🚀\u2028-½²"


@pytest.fixture(scope="module")
def data():
    return rows(90)


@pytest.fixture(scope="module", params=KINDS)
def frame(request, spark, tmp_path_factory, data):
    path = str(tmp_path_factory.mktemp("search") / "t")
    if request.param == "parquet":
        pq.write_table(data, path)
        return spark.read.parquet(path)
    if request.param == "delta":
        write_deltalake(path, data)
        return spark.read.format("indextables").load(path)
    columns = {} if request.param == "no index" else {"m": request.param, "n": request.param}
    options = {f"indexing.typemap.{name}": kind for name, kind in columns.items()}
    table = it.Table.create(path, SCHEMA, options=options)
    for start in (0, 30, 60):
        table.append(data.slice(start, 30))
    return spark.read.format("indextables").load(path)


@pytest.mark.core
def test_values_are_those_of_plain_python(frame, data):
    chosen = calls(100, seed=21)
    got = frame.selectExpr("id", *(f"{sql(call)} AS c{at}" for at, call in enumerate(chosen))).collect()
    truth = {row["id"]: [answer(call, row) for call in chosen] for row in data.to_pylist()}
    for row in got:
        for call, value, expected in zip(chosen, row[1:], truth[row["id"]], strict=True):
            assert value == expected, (row["id"], sql(call))


def test_a_call_may_stand_in_any_boolean_position(spark, frame, data):
    frame.createOrReplaceTempView("searched")
    all_rows = data.to_pylist()
    for call in calls(4, seed=22):
        text, truth = sql(call), {row["id"]: answer(call, row) for row in all_rows}
        hits = sorted(key for key, value in truth.items() if value)

        def ids(statement):
            return sorted(row[0] for row in spark.sql(statement).collect())

        assert ids(f"SELECT id FROM searched WHERE {text}") == hits
        assert ids(f"SELECT id FROM searched WHERE NOT {text} OR id = 3") == sorted(
            key for key, value in truth.items() if value is False or key == 3
        )
        assert ids(
            f"SELECT DISTINCT s.id FROM searched s JOIN VALUES (1), (2) AS o(x) ON {text} AND s.id >= o.x"
        ) == [key for key in hits if key >= 1]
        by_answer = spark.sql(f"SELECT {text} AS hit, count(*) FROM searched GROUP BY {text}").collect()
        assert {row[0]: row[1] for row in by_answer} == {
            one: list(truth.values()).count(one) for one in set(truth.values())
        }


@pytest.mark.core
def test_the_functions_of_dataframes_mean_the_same(frame):
    search, isearch = it.functions.search, it.functions.isearch
    assert frame.filter(search("m", "ab")).count() == frame.filter("contains(m, 'ab')").count()
    assert frame.filter(isearch(frame["m"], "n", "AB")).count() == (
        frame.filter("contains(lower(m), 'ab') OR contains(lower(n), 'ab')").count()
    )
    assert (
        frame.filter(~search("tags", "a")).count()
        == frame.filter("NOT exists(tags, x -> contains(x, 'a'))").count()
    )
    assert (
        frame.filter(search("s", "a", mode="word")).count()
        == frame.filter("search(s, 'a', mode => 'word')").count()
    )


def test_the_words_of_a_pattern_reach_the_reader(spark, tmp_path):
    schema = pa.schema([("m", pa.string())])
    table = it.Table.create(tmp_path / "t", schema, options={"indexing.typemap.m": "substring"})
    for text in ("the quick fox", "a slow dog"):
        table.append(pa.table({"m": [text]}, schema))
    frame = (
        spark.read.format("indextables")
        .load(str(tmp_path / "t"))
        .filter("search(m, 'quick', mode => 'word')")
    )
    assert [row[0] for row in frame.collect()] == ["the quick fox"]
    assert "StringContains(m,quick)" in frame._jdf.queryExecution().toString()


@needs("variants")
def test_texts_in_variants_are_searched(spark):
    documents = ['{"a": ["Disk full", null, 1]}', '{"full": 1}', '"full"', "null", '{"b": {"c": "x"}}', None]
    frame = spark.createDataFrame([(text,) for text in documents], "text string").selectExpr(
        "parse_json(text) AS v"
    )

    def answers(call):
        return [row[0] for row in frame.selectExpr(call).collect()]

    assert answers("search(v, 'full')") == [True, False, True, None, False, None]
    assert answers("isearch(v, 'FULL disk', mode => 'word')") == [True, False, False, None, False, None]
    assert answers("search(v, 'none')") == [None, False, False, None, False, None]


@needs("variants")
def test_variants_mean_the_same_without_spark(spark, tmp_path):
    chance = random.Random(4)

    def value(depth):
        kinds = ["text", "null", "number", "bool"] + ["list", "object"] * (depth < 3)
        return {
            "text": lambda: "".join(chance.choices("abA é'_", k=chance.randrange(90))),
            "null": lambda: None,
            "number": lambda: chance.choice([0, -3, 2**40, 1.5, 10**25, 0.25]),
            "bool": lambda: chance.random() < 0.5,
            "list": lambda: [value(depth + 1) for _ in range(chance.randrange(4))],
            "object": lambda: {f"k{key}": value(depth + 1) for key in range(chance.randrange(4))},
        }[chance.choice(kinds)]()

    documents = [(at, json.dumps(value(0))) for at in range(120)]
    path = str(tmp_path / "t")
    frame = spark.createDataFrame(documents, "id long, text string").selectExpr("id", "parse_json(text) AS v")
    frame.write.format("indextables").option("indexing.typemap.v", "json").save(path)
    table = it.open(path)
    on_spark = spark.read.format("indextables").load(path)
    for call in (
        "search(v, 'ab')",
        "isearch(v, 'AB')",
        "search(v, 'a', mode => 'word')",
        "NOT search(v, 'b')",
    ):
        expected = sorted(row[0] for row in on_spark.filter(call).select("id").collect())
        assert sorted(table.scan(call, columns=["id"]).read_all()["id"].to_pylist()) == expected, call
        assert it.sql(f"SELECT id FROM '{path}' WHERE {call} ORDER BY id")["id"].to_pylist() == expected, call


def test_what_is_refused_has_the_words_of_filters(frame):
    for call, message in (
        ("search(id, 'x')", "which holds no text"),
        ("search(m)", "at least two arguments"),
        ("search(m, m)", "constant text"),
        ("search(m, '!!', mode => 'word')", "has no word in it"),
        ("search(m, 'x', mode => 'ip')", "'substring' or 'word'"),
    ):
        with pytest.raises(PredicateError, match=message):
            frame.filter(call).collect()


@pytest.mark.parametrize("name", ["search", "isearch"])
def test_a_temporary_function_of_the_name_is_the_one_that_is_meant(spark, name):
    calls = f"{name}('Disk full', 'none')", f"indextables_{name}('substring', 'Disk full', 'none')"
    assert list(spark.sql(f"SELECT {calls[0]}, {calls[1]}").first()) == [False, False]
    spark.udf.register(name, lambda text, part: f"{text}/{part}")
    try:
        assert list(spark.sql(f"SELECT {calls[0]}, {calls[1]}").first()) == ["Disk full/none", False]
    finally:
        if installed() >= (4, 1):
            spark.sql(f"DROP TEMPORARY FUNCTION {name}")
        else:
            # Earlier ones drop none that has the name of a built-in one; ours are registered again by connect.
            spark._jsparkSession.sessionState().catalog().dropTempFunction(name, False)
            it.connect(spark)
    assert list(spark.sql(f"SELECT {calls[0]}, {calls[1]}").first()) == [False, False]


@needs("collations")
def test_boundaries_of_words_are_those_of_icu(spark):
    jvm = spark.sparkContext._jvm
    icu = jvm.com.ibm.icu.text.BreakIterator.getWordInstance(jvm.java.util.Locale.ROOT)
    chance = random.Random(7)
    for _ in range(150):
        text = "".join(chance.choices(CHARACTERS, k=chance.randrange(1, 12)))
        icu.setText(text)
        cuts, at = set(), icu.first()
        while at >= 0:
            cuts.add(at)
            at = icu.next()
        chars = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        units = np.concatenate([[0], np.cumsum(1 + (chars > 0xFFFF))])
        mine = {int(units[at]) for at in boundaries(chars, np.zeros(1, np.int64)).nonzero()[0]}
        assert mine == cuts, [hex(ord(char)) for char in text]
