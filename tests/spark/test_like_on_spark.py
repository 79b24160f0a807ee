"""LIKE and RLIKE over a column with trigrams equal Spark's own, and skip splits in Spark."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import indextables as it
from indextables.predicate.build.from_python import Builder
from indextables.predicate.evaluate.rows import mask
from indextables.split.layout import SplitRef
from indextables.split.open_splits import open_index
from indextables.split.search.narrowing import rows_left

PATTERNS = 10_000
SCHEMA = pa.schema([("id", pa.int64()), ("path", pa.string())])
LETTERS = "abcA%_é日𝒳\n\r.1 "
REGEXES = [
    "ab",
    "a.c",
    "^a.*b$",
    "[abc]{2}1?",
    "(ab|ca)+A",
    "\\s1",
    "[a-c]$",
    "é|日.",
    "a{2,3}",
    "\\d+\\.",
    "^$",
    ".b*$",
    "(b|1)$",
]


@pytest.fixture(scope="module")
def values():
    chance = random.Random(3)
    return [
        None if chance.random() < 0.04 else "".join(chance.choices(LETTERS, k=chance.randrange(10)))
        for _ in range(400)
    ]


@pytest.fixture(scope="module")
def table(tmp_path_factory, values):
    options = {"indexing.typemap.path": "substring"}
    made = it.Table.create(tmp_path_factory.mktemp("like") / "t", SCHEMA, (), options)
    made.append(pa.table({"id": range(len(values)), "path": values}, SCHEMA))
    return made


@pytest.fixture(scope="module")
def spark_answers(spark, values):
    """For every pattern the ids that Spark finds, all of them in one job."""
    chance = random.Random(4)
    patterns = set()
    while len(patterns) < PATTERNS:
        patterns.add(
            "".join(
                chance.choices(
                    ["%", "%", "_", *LETTERS.replace("%", "").replace("_", "")], k=chance.randrange(1, 8)
                )
            )
        )
    patterns = sorted(patterns)
    spark.createDataFrame(pa.table({"id": range(len(values)), "v": values})).createOrReplaceTempView(
        "like_values"
    )
    spark.createDataFrame(pa.table({"at": range(PATTERNS), "p": patterns})).createOrReplaceTempView(
        "like_patterns"
    )
    found = spark.sql(
        "SELECT at, sort_array(collect_list(id)) ids FROM like_patterns CROSS JOIN like_values WHERE v LIKE p GROUP BY at"
    ).toArrow()
    answers = dict(zip(found["at"].to_pylist(), found["ids"].to_pylist(), strict=True))
    cases = ", ".join(
        f"sort_array(collect_list(CASE WHEN v RLIKE r'{regex}' THEN id END))" for regex in REGEXES
    )
    rlike = [list(row) for row in spark.sql(f"SELECT {cases} FROM like_values").collect()[0]]
    return [(pattern, answers.get(at, [])) for at, pattern in enumerate(patterns)], list(
        zip(REGEXES, rlike, strict=True)
    )


def test_ten_thousand_patterns_equal_sparks_like(table, values, spark_answers):
    snapshot = table._snapshot
    (add,) = snapshot.adds()
    index = open_index(snapshot.reading, SplitRef.of(add), with_rows=False)
    batch = pa.table({"id": range(len(values)), "path": values}, SCHEMA)
    builder = Builder(SCHEMA, "UTC")
    narrowed = 0
    for pattern, wanted in spark_answers[0]:
        node = builder.predicate(it.col("path").like(pattern))
        rows = rows_left(index, node)
        narrowed += rows is not None
        asked = batch if rows is None else batch.take(pa.array(rows))
        assert asked.filter(mask(node, asked, SCHEMA))["id"].to_pylist() == wanted, pattern
    assert narrowed > 100
    for pattern, wanted in spark_answers[0][:: PATTERNS // 50]:
        assert table.scan(it.col("path").like(pattern), ["id"]).read_all()["id"].to_pylist() == wanted, (
            pattern
        )


def test_regular_expressions_equal_sparks_rlike(table, spark_answers):
    for regex, wanted in spark_answers[1]:
        assert table.scan(it.col("path").rlike(regex), ["id"]).read_all()["id"].to_pylist() == wanted, regex


def test_spark_skips_the_splits_without_the_trigrams(spark, tmp_path, capsys):
    made = it.Table.create(tmp_path / "t", SCHEMA, (), {"indexing.typemap.path": "substring"})
    for part in range(4):
        made.append(pa.table({"id": range(5), "path": [f"/srv/part{part}/x"] * 5}, SCHEMA))
    frame = spark.read.format("indextables").load(made.uri)
    for condition in ("path LIKE '%part2%'", "path RLIKE 'part[2]/|part2'", "contains(path, 'art2')"):
        kept = frame.filter(condition)
        assert kept.count() == 5
        if "RLIKE" not in condition:
            capsys.readouterr()
            kept.explain()
            assert "3 by the index (path as substring)" in capsys.readouterr().out, condition
    assert frame.filter("path LIKE '%part9%'").count() == 0
    assert frame.filter("NOT path LIKE '%part2%'").count() == 15


def test_spark_asks_the_field_that_fits_the_question(spark, tmp_path, capsys):
    """Words, whole values and parts of them from one column; the plan says which index was asked."""
    options = {"indexing.typemap.path": "text,string,substring"}
    made = it.Table.create(tmp_path / "t", SCHEMA, (), options)
    for part in range(4):
        # The first and the last value of every split are the same, so statistics rule out none.
        paths = ["a", "z", *(f"srv part{part} x{at}" for at in range(5))]
        made.append(pa.table({"id": range(7), "path": paths}, SCHEMA))
    frame = spark.read.format("indextables").load(made.uri)
    for condition, rows, field in [
        ("path = 'srv part2 x1'", 1, "path as string"),
        ("path IN ('srv part2 x1', 'srv part2 x3')", 2, "path as string"),
        ("path LIKE '%art2%'", 5, "path as substring"),
        ("instr(path, 'rt2 x') > 0", 5, "path as substring"),
        ("locate('rt2 x', path) >= 1", 5, "path as substring"),
        ("path indexquery 'part2'", 5, "searched by path as text"),
    ]:
        kept = frame.filter(condition)
        assert kept.count() == rows, condition
        capsys.readouterr()
        kept.explain()
        shown = capsys.readouterr().out
        assert field in shown, condition
        assert "indexquery" in condition or "3 by the index" in shown, condition
    assert frame.filter("instr(path, 'part2') = 0").count() == 23
    assert frame.filter("instr(path, 'art2') = 6").count() == 5
    assert frame.groupBy("path").count().count() == 22
    made.merge_splits()
    assert spark.read.format("indextables").load(made.uri).filter("path = 'srv part2 x1'").count() == 1
