"""Aggregates and limits that log and index answer in Spark: the same rows as with pushdown off, and fewer files opened."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from support.sampled import first_of

ENABLED = "spark.indextables.aggregatePushdown.enabled"
QUESTIONS_AT_ONCE = 25


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory) -> dict[str, str]:
    """Tables whose logs know all, some and none of what is asked."""
    root = tmp_path_factory.mktemp("logs")
    return {
        "events": events(root / "events"),
        "bare": events(root / "bare", options={"dataSkippingNumIndexedCols": "0"}),
        "whole": events(root / "whole", partition_by=()),
        "lettered": lettered(spark, root / "lettered"),
        "empty": emptied(root / "empty"),
        "vectors": events(root / "vectors", options={"deletionVectors.enabled": "true"}),
        "lines": lines(root / "lines"),
        "delta": delta_events(root / "delta"),
    }


def events(path: Path, partition_by: tuple[str, ...] = ("day", "hour"), options=None) -> str:
    """Files with nulls, NaN, zeros of both signs and long texts, an older one without a column, and deleted rows."""
    schema = pa.schema([
        ("day", pa.date32()), ("hour", pa.int32()), ("id", pa.int64()), ("n", pa.int16()), ("x", pa.float64()),
        ("y", pa.float32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
        ("price", pa.decimal128(12, 3)), ("word", pa.string()), ("flag", pa.bool_()), ("blob", pa.binary()),
    ])  # fmt: skip
    chosen = random.Random(7)

    def row(at: int, file: int) -> dict:
        start = dt.datetime(2024, 3, 30, 22, tzinfo=dt.UTC) + dt.timedelta(microseconds=at * 1_800_000_123)
        empty = chosen.random() < 0.2
        return {
            "day": None if file == 5 else dt.date(2024, 3, 30 + file % 2),
            "hour": None if file % 3 == 2 else file % 3,
            "id": at,
            "n": None if empty or file == 4 else chosen.randint(-5, 5),
            "x": [chosen.uniform(-9, 9), -0.0, float("nan") if at % 5 == 0 else 0.0, 3.5][file % 4],
            "y": -0.0 if file == 1 else chosen.choice([0.0, -0.0, 2.5]),
            "at": None if empty else start,
            "local": start.replace(tzinfo=None),
            "price": None if empty else Decimal(chosen.randint(-9999, 9999)) / 1000,
            "word": ["é" * 2000, chosen.choice(["a", "b", "[TRUNCATED]", None]), "same"][file % 3],
            "flag": None if empty else file % 2 == 0,
            "blob": bytes([at % 7]),
        }

    options = {"deletionVectors.enabled": "false", **(options or {})}
    written = 0
    for file in range(6):
        rows = [row(written + at, file) for at in range(20)]
        written += len(rows)
        data = pa.Table.from_pylist(rows, schema)
        it.write(
            str(path), data, partition_by=partition_by, mode="append" if file else "error", options=options
        )
    table = it.Table.open(str(path))
    table.delete("id % 10 = 3 or id between 40 and 45")
    later = pa.Table.from_pylist(
        [{"id": 1000 + at, "added": at, "day": dt.date(2024, 4, 1)} for at in range(5)]
    )
    it.Table.open(str(path)).append(later, merge_schema=True)
    return str(path)


def lettered(spark, path: Path) -> str:
    """Columns whose values are not compared byte by byte, or are padded."""
    columns = "id INT, c CHAR(6), v VARCHAR(9), folded STRING COLLATE UTF8_LCASE, kind CHAR(4)"
    if not spark.version.startswith("4"):
        columns = columns.replace("STRING COLLATE UTF8_LCASE", "STRING")
    spark.sql(f"CREATE TABLE indextables.`{path}` ({columns}) USING indextables PARTITIONED BY (kind)")
    spark.sql(
        f"INSERT INTO indextables.`{path}` VALUES (1, 'a', 'a ', 'B', 'x'), (2, 'B', 'b', 'a', 'x'), "
        "(3, 'c', NULL, 'C', 'yy'), (4, NULL, 'b', 'b', NULL)"
    )
    return str(path)


def lines(path: Path) -> str:
    """Texts to search, in splits with and without an index, one of which has deleted rows."""
    schema = pa.schema([
        ("day", pa.date32()), ("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("level", pa.string()),
        ("n", pa.int32()), ("x", pa.float64()), ("price", pa.decimal128(9, 2)), ("flag", pa.bool_()),
        ("message", pa.string()), ("title", pa.string()),
    ])  # fmt: skip
    chosen = random.Random(11)
    options = {"deletionVectors.enabled": "true"}
    for file in range(6):
        # Half an hour around the end of summer time, and times of 1968, when some clocks had odd seconds.
        first = (
            dt.datetime(2024, 10, 27, 0, tzinfo=dt.UTC) if file else dt.datetime(1968, 4, 1, tzinfo=dt.UTC)
        )
        rows = [
            {
                "day": None if file == 4 else dt.date(2024, 10, 26 + file % 3), "id": 40 * file + at,
                "at": None if at % 9 == 0 else first + dt.timedelta(seconds=at * chosen.randint(1, 300)),
                "level": chosen.choice(["INFO", "WARN", "error", "", None]), "n": chosen.choice([None, -1, 0, 7]),
                "x": chosen.choice([None, float("nan"), 0.0, -0.0, 2.5]),
                "price": chosen.choice([None, Decimal("0.10"), Decimal("-3.00")]),
                "flag": chosen.choice([None, True, False]),
                "message": None if at % 13 == 0 else " ".join(chosen.choices(["alpha", "beta", "gamma", "x1"], k=3)),
                "title": chosen.choice(["alpha", "delta", None]),
            }
            for at in range(40)
        ]  # fmt: skip
        data = pa.Table.from_pylist(rows, schema)
        if file:
            it.write(str(path), data, mode="append")
        else:
            it.write(str(path), data, partition_by=["day"], text=["message", "title"], options=options)
    it.Table.open(str(path)).delete("id % 7 = 3")
    later = [{"id": 900 + at, "message": "alpha beta", "added": at % 2} for at in range(5)]
    it.Table.open(str(path)).append(pa.Table.from_pylist(later), merge_schema=True)
    return str(path)


def delta_events(path: Path) -> str:
    """A Delta table with nulls, NaN, long texts, and an older file without a column."""
    deltalake = pytest.importorskip("deltalake")
    for file in range(4):
        rows = {
            "part": ["a", "b", None, "b"],
            "id": pa.array([file, 10 + file, None, -file], pa.int64()),
            "x": [0.5, float("nan"), None, -0.0] if file else [1.0, 2.0, 3.0, 4.0],
            "word": ["x" * 60, "y", None, f"z{file}"],
            "on": [dt.date(2024, 1, 1 + file), None, dt.date(1969, 12, 31), dt.date(2024, 1, 1)],
        }
        if file == 3:
            rows["added"] = pa.array([1, 2, None, 4], pa.int32())
        deltalake.write_deltalake(
            str(path), pa.table(rows), mode="append", partition_by=["part"], schema_mode="merge"
        )
    return str(path)


def emptied(path: Path) -> str:
    it.write(str(path), [{"day": "a", "id": 1, "n": 2}], partition_by=["day"])
    it.Table.open(str(path)).delete("true")
    return str(path)


COLUMNS = {
    "events": ["day", "hour", "id", "n", "x", "y", "at", "local", "price", "word", "flag", "blob", "added"],
    "lettered": ["id", "c", "v", "folded", "kind"],
    "empty": ["day", "id", "n"],
}
COLUMNS |= {
    **dict.fromkeys(["bare", "whole", "vectors"], COLUMNS["events"]),
    "delta": ["part", "id", "x", "word", "on", "added"],
    "lines": ["day", "id", "at", "level", "n", "x", "price", "flag", "message", "title", "added"],
}
CONDITIONS = {
    "events": [
        "day = DATE'2024-03-30'", "day IS NULL", "day <=> NULL", "hour >= 1", "hour IN (0, 2)", "hour IS NOT NULL",
        "id < 60", "id >= 0", "n IS NULL", "x > 0", "y = 0", "at < TIMESTAMP'2024-03-31 12:00:00'", "word = 'same'",
        "flag", "day > DATE'2024-03-30' AND hour = 1", "NOT (hour = 1)", "hour + 1 = 2", "added IS NULL",
        "date_format(day, 'yyyy') = '2024'", "price > 0", "id IN (SELECT max(id) FROM {t})", "true", "false",
    ],
    "lettered": ["kind = 'x'", "c = 'a'", "folded = 'B'", "id > 1", "v = 'b'", "kind IS NULL"],
    "empty": ["day = 'a'", "id > 0"],
}  # fmt: skip
CONDITIONS |= {
    **dict.fromkeys(["bare", "whole", "vectors"], CONDITIONS["events"]),
    "delta": ["part = 'a'", "part IS NULL", "id > 3", "x > 0", "word LIKE 'z%'", "on > DATE'2024-01-01'"],
    "lines": [
        "day = DATE'2024-10-27'",
        "day IS NOT NULL",
        "level = 'INFO'",
        "n >= 0",
        "n IS NULL",
        "x = 0",
        "x > 1",
        "level IN ('WARN', '')",
        "id < 100",
        "flag",
        "NOT flag",
        "price < 0",
        "at >= TIMESTAMP'2024-10-27 00:30:00'",
        "level LIKE '%O'",
        "upper(level) = 'ERROR'",
        "n + 1 = 8",
        "id IN (SELECT max(id) FROM {t})",
        "added IS NULL",
        "title indexquery 'delta'",
        "NOT title indexquery 'delta'",
        "n = 7 OR flag",
    ],
}
SEARCHES = [
    "message indexquery 'alpha'",
    "message indexquery 'alpha AND beta'",
    "message indexquery '\"beta gamma\"'",
    "message indexquery 'nosuch'",
    "message indexquery 'gam*'",
    "_indexall indexquery 'delta'",
    "title indexquery 'alpha'",
]
GROUPS = [
    "date_trunc('hour', at)",
    "date_trunc('minute', at)",
    "to_date(at)",
    "date_trunc('WEEK', at)",
    "hour(at)",
    "year(day)",
    "upper(level)",
    "coalesce(level, '?')",
    "n IS NULL",
    "n + id % 2",
    "date_trunc('second', at)",
    "x",
    "at",
]
ZONES = ["UTC", "Europe/Berlin", "Africa/Monrovia", "Asia/Kathmandu"]


def questions(seed: int) -> Iterator[tuple[str, str]]:
    """A table and a question about it, with {t} for the table."""
    chosen = random.Random(seed)
    for _ in range(QUESTIONS_AT_ONCE):
        table = chosen.choice(
            [
                "events",
                "events",
                "vectors",
                "bare",
                "whole",
                "lettered",
                "empty",
                "delta",
                "lines",
                "lines",
                "lines",
            ]
        )
        columns, keys = COLUMNS[table], []
        partitions = {
            "events": ["day", "hour"], "vectors": ["day", "hour"], "lettered": ["kind"], "empty": ["day"], "delta": ["part"],
        }.get(table, [])  # fmt: skip
        if chosen.random() < 0.5:
            keys = chosen.sample(partitions or columns, chosen.randint(1, len(partitions) or 1))
        if chosen.random() < 0.1:
            keys = [chosen.choice(columns)]
        if table == "lines" and chosen.random() < 0.4:
            keys = [*keys[:1], chosen.choice(GROUPS)]
        shapes = [
            "count(*)",
            "count({c})",
            "min({c})",
            "max({c})",
            "count(*) + 1",
            "max({c}) IS NULL",
            "count(1) * min(id)",
        ]
        if chosen.random() < 0.1:
            shapes += ["sum(id)", "count(DISTINCT {c})", "min(id + 1)", "count(*) FILTER (WHERE id > 3)"]
        items = [chosen.choice(shapes).format(c=chosen.choice(columns)) for _ in range(chosen.randint(1, 3))]
        selected = [*keys, *(f"{item} AS a{at}" for at, item in enumerate(items))]
        text = f"SELECT {', '.join(selected)} FROM {{t}}"
        if keys and chosen.random() < 0.2:
            text = f"SELECT DISTINCT {', '.join(keys)} FROM {{t}}"
        conditions = chosen.sample(CONDITIONS[table], chosen.choice([0, 0, 1, 1, 2]))
        if table == "lines" and chosen.random() < 0.9:
            conditions = [chosen.choice(SEARCHES), *conditions[:1]]
        if conditions:
            text += " WHERE " + " AND ".join(conditions)
        if keys and "DISTINCT" not in text.split("FROM", 1)[0][:16]:
            text += f" GROUP BY {', '.join(keys)}"
        yield table, text


def answers(spark, text: str) -> list:
    return sorted((repr(tuple(row)) for row in spark.sql(text).collect()))


def is_from_log(spark, text: str) -> bool:
    plan = spark.sql(text)._jdf.queryExecution().optimizedPlan().toString()
    return "LocalRelation" in plan and "parquet" not in plan and "MapInArrow" not in plan


def is_from_splits(spark, text: str, capsys) -> bool:
    spark.sql(text).explain()
    return "aggregates of indexquery" in capsys.readouterr().out


@pytest.fixture(autouse=True)
def pushdown(spark):
    """Pushdown is on, until a test switches it off. Plans are not compiled: there are many, and few rows."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        ENABLED: "true",
    }
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield lambda on: spark.conf.set(ENABLED, str(on).lower())
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(6, range(84)))
def test_drawn_questions_have_the_answers_that_spark_computes(spark, tables, pushdown, seed):
    answered = 0
    spark.conf.set("spark.sql.session.timeZone", ZONES[seed % len(ZONES)])
    for table, question in questions(seed):
        text = question.format(t=f"indextables.`{tables[table]}`")
        pushdown(False)
        expected = answers(spark, text)
        pushdown(True)
        assert answers(spark, text) == expected, text
        answered += is_from_log(spark, text)
    assert answered >= 3


@pytest.mark.parametrize(
    "question",
    [
        "SELECT count(*) FROM {t}",
        "SELECT count(*), min(id), max(id), count(n) FROM {t} WHERE day = DATE'2024-03-30'",
        "SELECT day, hour, count(*), max(at) FROM {t} WHERE hour IS NOT NULL GROUP BY day, hour",
        "SELECT DISTINCT day FROM {t}",
        "SELECT DISTINCT hour, day FROM {t} WHERE day > DATE'2024-03-30'",
        "SELECT max(day), min(hour) FROM {t}",
        "SELECT count(*) FROM (SELECT hour AS h, id FROM {t} WHERE hour > 0) WHERE h < 2",
        "SELECT day AS d, count(*) + 1 AS more FROM {t} GROUP BY day HAVING count(*) > 2 ORDER BY more",
        "SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t})",
    ],
)
def test_the_log_answers(spark, tables, pushdown, question):
    text = question.format(t=f"indextables.`{tables['events']}`")
    pushdown(False)
    expected = answers(spark, text)
    assert not is_from_log(spark, text)
    pushdown(True)
    assert answers(spark, text) == expected
    assert is_from_log(spark, text) or text.startswith("SELECT id")


@pytest.mark.parametrize(
    "question",
    [
        "SELECT min(y) FROM {t}",
        "SELECT max(x) FROM {t}",
        "SELECT max(word) FROM {t}",
        "SELECT count(added) FROM {t}",
        "SELECT sum(id) FROM {t}",
        "SELECT count(DISTINCT day) FROM {t}",
        "SELECT count(*) FROM {t} WHERE id = 7",
        "SELECT count(*) FROM {t} TABLESAMPLE (50 PERCENT)",
        "SELECT max(_metadata.file_size) FROM {t}",
    ],
)
def test_what_the_log_does_not_know_is_left_to_spark(spark, tables, question):
    assert not is_from_log(spark, question.format(t=f"indextables.`{tables['events']}`"))


def test_explain_says_that_the_log_answers(spark, tables, capsys):
    spark.read.format("indextables").load(tables["events"]).groupBy("day").count().explain()
    assert "aggregates answered by the log" in capsys.readouterr().out


@pytest.mark.core
def test_frames_views_and_named_tables_are_answered(spark, tables):
    frame = spark.read.format("indextables").load(tables["events"])
    frame.createOrReplaceTempView("seen_events")
    spark.sql(f"CREATE TABLE counted_events USING indextables LOCATION '{tables['events']}'")
    try:
        for name in ("seen_events", "counted_events"):
            assert is_from_log(spark, f"SELECT count(*), max(id) FROM {name}")
            assert (
                spark.sql(f"SELECT count(*) FROM {name}").first()[0] == frame.count() == len(frame.collect())
            )
    finally:
        spark.sql("DROP TABLE counted_events")
        spark.catalog.dropTempView("seen_events")


def test_an_older_version_is_counted_as_it_was(spark, tables):
    frame = spark.read.format("indextables").option("versionAsOf", "1").load(tables["events"])
    assert frame.count() == len(frame.collect()) == 20


def test_a_session_that_says_nothing_has_it(spark, tables):
    spark.conf.unset(ENABLED)
    assert is_from_log(spark, f"SELECT count(*) FROM indextables.`{tables['events']}`")


def test_an_option_of_the_read_switches_it_off(spark, tables):
    reader = spark.read.format("indextables").option("aggregatePushdown.enabled", "false")
    plan = reader.load(tables["events"]).groupBy().count()._jdf.queryExecution().optimizedPlan().toString()
    assert "LocalRelation" not in plan


@pytest.mark.parametrize("limit", [1, 5, 20, 21, 500])
def test_a_limit_reads_no_more_files_than_it_needs(spark, tables, pushdown, limit):
    text = f"SELECT id, word FROM indextables.`{tables['events']}` LIMIT {limit}"
    pushdown(False)
    every = spark.sql(text)
    pushdown(True)
    few = spark.sql(text)
    assert few.count() == every.count()
    all_ids = set(it.read(tables["events"], columns=["id"]).to_pandas()["id"])
    ids = [row["id"] for row in few.collect()]
    assert len(set(ids)) == len(ids) == min(limit, len(all_ids))
    assert set(ids) <= all_ids


def test_a_limit_lists_the_files_that_have_enough_rows(spark, tables, capsys):
    spark.read.format("indextables").load(tables["events"]).limit(5).explain()
    assert "kept 1 of" in capsys.readouterr().out


def test_a_limit_over_a_filter_reads_all_that_may_match(spark, tables):
    frame = spark.read.format("indextables").load(tables["events"])
    assert frame.filter("id = 110").limit(3).count() == 1
    assert frame.limit(500).filter("id = 110").count() == 1


def test_a_delta_table_is_counted_by_its_log(spark, tmp_path, pushdown):
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "delta")
    for file in range(3):
        rows = {"part": ["a", "b", None], "id": [file, 10 + file, None], "word": ["x" * 60, "y", "z"]}
        deltalake.write_deltalake(path, pa.table(rows), mode="append", partition_by=["part"])
    frame = spark.read.format("indextables").load(path)
    frame.createOrReplaceTempView("counted_delta")
    questions = {
        "SELECT count(*), count(id), min(id), max(id) FROM counted_delta": True,
        "SELECT part, count(*) FROM counted_delta WHERE part IS NOT NULL GROUP BY part": True,
        "SELECT max(word) FROM counted_delta": False,
    }
    for text, is_answered in questions.items():
        pushdown(True)
        assert is_from_log(spark, text) == is_answered, text
        rows = answers(spark, text)
        pushdown(False)
        assert rows == answers(spark, text)
    spark.catalog.dropTempView("counted_delta")


@pytest.mark.core
@pytest.mark.parametrize(
    "question",
    [
        "SELECT count(*) FROM {t} WHERE message indexquery 'alpha'",
        "SELECT level, count(*) FROM {t} WHERE message indexquery 'alpha' GROUP BY level",
        "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM {t} WHERE message indexquery 'beta' GROUP BY 1 ORDER BY n",
        "SELECT level, max(at), count(n) FROM {t} WHERE message indexquery 'alpha' AND n >= 0 GROUP BY level HAVING count(*) > 1",
        "SELECT count(*) FROM {t} WHERE message indexquery 'nosuch'",
        "SELECT DISTINCT level FROM {t} WHERE _indexall indexquery 'delta'",
    ],
)
@pytest.mark.parametrize("where", ["driver", "executors"])
def test_the_splits_answer_under_a_search(spark, tables, pushdown, capsys, monkeypatch, question, where):
    if where == "executors":
        monkeypatch.setattr("indextables.spark.search.on_driver.MOST_SPLITS", 0)
    text = question.format(t=f"indextables.`{tables['lines']}`")
    pushdown(False)
    expected = answers(spark, text)
    assert not is_from_splits(spark, text, capsys)
    pushdown(True)
    assert answers(spark, text) == expected
    assert is_from_splits(spark, text, capsys)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT sum(n) FROM {t} WHERE message indexquery 'alpha'",
        "SELECT x, count(*) FROM {t} WHERE message indexquery 'alpha' GROUP BY x",
        "SELECT count(*) FROM {t} WHERE message indexquery 'alpha' OR n = 7",
        "SELECT count(*) FROM {t} WHERE message indexquery 'alpha' AND hash(level) = 7",
        "SELECT date_trunc('second', at), count(*) FROM {t} WHERE message indexquery 'beta' GROUP BY 1",
    ],
)
def test_what_the_splits_do_not_tell_is_left_to_spark(spark, tables, capsys, question):
    assert not is_from_splits(spark, question.format(t=f"indextables.`{tables['lines']}`"), capsys)


def test_a_search_beside_a_limit_is_answered(spark, tmp_path):
    path = str(tmp_path / "lines")
    it.write(path, [{"id": at, "line": f"word{at} all"} for at in range(20)], text=["line"])
    it.write(path, [{"id": 20, "line": "other"}], mode="append")
    text = f"SELECT hit FROM (SELECT line indexquery 'all' AS hit FROM indextables.`{path}` LIMIT 21)"
    assert sorted(row["hit"] for row in spark.sql(text).collect()) == [False] + [True] * 20
    counted = spark.sql(f"SELECT count(*) FROM indextables.`{path}` WHERE line indexquery 'all'")
    assert counted.first()[0] == 20
