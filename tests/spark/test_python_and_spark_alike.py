"""Python and Spark do the same: the rows, the files, the log and the errors of one are those of the other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.log.commit.conflicts import CommitPlan, Rule
from support.alike import (
    InPython,
    OnSpark,
    Run,
    Save,
    adds_by_operation,
    frame_of,
    removes_by_operation,
    session_zone,
    sorted_rows,
    written,
)
from support.spark_versions import needs

ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]
LONG = "a rather long message that goes on"
SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string()), ("p", pa.string())])


def numbered(*ids: int, p: str | None = "x") -> pa.Table:
    rows = [{"id": at, "message": f"{LONG} {at:03d}", "p": p} for at in ids]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


DELETE = Run(lambda table: table.delete("id = 2"), "DELETE FROM INDEXTABLES '{path}' WHERE id = 2")
DELETE_ALL_OF_A_FILE = Run(
    lambda table: table.delete("id >= 10"), "DELETE FROM INDEXTABLES '{path}' WHERE id >= 10"
)
MERGE = Run(lambda table: table.merge_splits(), "MERGE SPLITS '{path}'")
DROP = Run(
    lambda table: table.drop_partitions("p = 'y'"), "DROP INDEXTABLES PARTITIONS FROM '{path}' WHERE p = 'y'"
)
RESTORE = Run(lambda table: table.restore(1), "RESTORE INDEXTABLES '{path}' TO VERSION 1")
PURGE = Run(lambda table: table.purge(dry_run=True), "PURGE INDEXTABLE '{path}' DRY RUN")
CHECKPOINT = Run(lambda table: table.checkpoint(), "CHECKPOINT INDEXTABLES '{path}'")
TRUNCATE = Run(lambda table: table.truncate_history(), "TRUNCATE INDEXTABLES TIME TRAVEL '{path}'")
STATE = Run(lambda table: table.describe(), "DESCRIBE INDEXTABLES STATE '{path}'")

NOTHING = Run(lambda table: table.delete("id = 99"), "DELETE FROM INDEXTABLES '{path}' WHERE id = 99")
SETTINGS = {
    "indexing.typemap.message": "text",
    "indexing.tokenizer.message": "whitespace",
    "indexing.indexrecordoption.message": "basic",
    "indexing.fastfields": "id",
    "write.maxRowsPerSplit": "2",
    "stats.truncation.maxLength": "16",
    "stats.truncation.strategy": "truncate",
    "dataSkippingNumIndexedCols": "2",
    "checkpoint.interval": "2",
    "transaction.compression.enabled": "false",
}
ODD = pa.schema(
    [
        pa.field("a.b", pa.string()),
        pa.field("c`d", pa.int32()),
        pa.field("Größe in €", pa.float64()),
        pa.field("Case", pa.string()),
        pa.field("s", pa.struct([("x y", pa.int64()), ("in.ner", pa.string())])),
        pa.field("list", pa.list_(pa.string())),
        pa.field("map", pa.map_(pa.string(), pa.int32())),
    ]
)
ODD_ROWS = pa.Table.from_pylist(
    [
        {"a.b": "k=v/w", "c`d": 1, "Größe in €": 1.5, "Case": "Ä", "s": {"x y": 1, "in.ner": "i"}},
        {
            "a.b": "",
            "c`d": None,
            "Größe in €": float("nan"),
            "Case": "ä",
            "list": ["a", None],
            "map": [("k", 1)],
        },
        {
            "a.b": None,
            "c`d": 3,
            "Größe in €": -0.0,
            "Case": None,
            "s": {"x y": None, "in.ner": "ж"},
            "list": [],
        },
    ],
    schema=ODD,
)


SCENARIOS: dict[str, list[Save | Run | dict[str, str]]] = {
    "append, delete, merge, restore": [
        Save(numbered(1, 2, 3)), Save(numbered(4, 5)), Save(numbered(10, 11)), DELETE, DELETE_ALL_OF_A_FILE,
        NOTHING, MERGE, RESTORE, PURGE, CHECKPOINT, STATE,
    ],
    "partitions": [
        Save(numbered(1, 2), partition_by=("p",)), Save(numbered(3, p="y")), Save(numbered(4, p=None)),
        Save(numbered(5, 6, p="y"), mode="overwrite", dynamic=True),
        Save(numbered(p="x"), mode="overwrite", dynamic=True),
        Save(numbered(7, p=None), mode="overwrite", where="p IS NULL"), DROP, TRUNCATE, STATE,
    ],
    "overwrite": [
        Save(numbered(1, 2, 3)), Save(numbered(2, 2), mode="overwrite", where="id = 2"),
        Save(numbered(), mode="overwrite", where="id = 1"), Save(numbered(8), mode="overwrite"), STATE,
    ],
    "options of a write": [
        Save(numbered(1, 2, 3), options=tuple(SETTINGS.items())),
        Save(numbered(4, 5, 6), options=tuple(SETTINGS.items())),
        Save(numbered(5), mode="overwrite", where="id = 5", options=tuple(SETTINGS.items())),
    ],
    "table properties": [
        Save(numbered(1, 2, 3)), dict(SETTINGS), Save(numbered(4, 5, 6)),
        Save(numbered(5), mode="overwrite", where="id = 5"), DELETE, MERGE, STATE,
    ],
    "a wider schema": [
        Save(numbered(1).drop_columns(["p"])), Save(numbered(2), merge_schema=True), MERGE, STATE,
    ],
    "odd columns": [
        Save(ODD_ROWS, partition_by=("a.b",), options=(("indexing.typemap.case", "string"),)),
        Save(ODD_ROWS), MERGE, STATE,
    ],
    "odd partitions, overwritten one by one": [
        Save(ODD_ROWS, partition_by=("a.b", "c`d", "Größe in €")),
        Save(ODD_ROWS.slice(0, 2), mode="overwrite", dynamic=True),
        Save(ODD_ROWS.slice(2), mode="overwrite", dynamic=True, user_metadata="-0.0 is a 0.0"),
    ],
    "another schema, with a word about it": [
        Save(numbered(1), partition_by=("p",), options=(("indexing.typemap.message", "text"),), user_metadata="first"),
        Save(ODD_ROWS, mode="overwrite", overwrite_schema=True, partition_by=("Case",), user_metadata='{"why": "ä"}'),
        Save(ODD_ROWS.slice(0, 1), mode="overwrite", user_metadata=""),
        Save(numbered(2, 3), mode="overwrite", overwrite_schema=True, partition_by=("p",),
             options=(("indexing.typemap.message", "string"),)),
        Save(numbered(4, p="y"), mode="overwrite", overwrite_schema=True),
        Run(lambda t: t.history(), "DESCRIBE INDEXTABLES HISTORY '{path}'"), STATE,
    ],
}  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_history_of_verbs_leaves_the_same_table(spark: SparkSession, tmp_path: Path, scenario: str) -> None:
    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    for step in SCENARIOS[scenario]:
        if isinstance(step, dict):
            for side in (python, on_spark):
                it.TransactionLog.open(side.path).update_properties(step)
        elif isinstance(step, Save):
            python.save(step)
            on_spark.save(step)
        else:
            assert python.run(step) == on_spark.run(step), step.statement
    left, right = written(python.path), written(on_spark.path)
    for version, (one, other) in enumerate(zip(left["commits"], right["commits"], strict=True)):
        assert one == other, f"version {version}"
    assert left == right
    assert sorted_rows(python.rows()) == sorted_rows(on_spark.rows())


VERBS: list[Save | Run] = [
    Save(numbered(4, 5)),
    Save(numbered(5), mode="overwrite", where="id = 5"),
    DELETE,
    MERGE,
]


@pytest.mark.parametrize("side", ["python", "spark"])
def test_every_verb_that_writes_splits_obeys_the_table_properties(
    spark: SparkSession, tmp_path: Path, side: str
) -> None:
    asker = InPython(tmp_path / "t") if side == "python" else OnSpark(spark, tmp_path / "t")
    asker.save(Save(numbered(1, 2, 3)))
    properties = {key: value for key, value in SETTINGS.items() if key.startswith(("stats", "dataSkipping"))}
    it.TransactionLog.open(asker.path).update_properties({**properties, "indexing.typemap.message": "text"})
    for step in VERBS:
        asker.save(step) if isinstance(step, Save) else asker.run(step)
    first, *rest = adds_by_operation(asker.path).values()
    assert [set(add.min_values or {}) for add in first[:1]] == [{"id", "message", "p"}]
    for add in [*first[1:], *(item for some in rest for item in some)]:
        assert set(add.min_values or {}) == {"id", "message"}
        assert all(len(text or "") <= 17 for text in (add.max_values or {}).values())
        assert (add.tags or {}).get("indexedFields") == "message:text"


def test_every_verb_that_removes_files_writes_the_same_tombstone(spark: SparkSession, tmp_path: Path) -> None:
    python = InPython(tmp_path / "t")
    python.save(Save(numbered(1, 2), partition_by=("p",), options=(("indexing.typemap.message", "text"),)))
    for step in [
        Save(numbered(8)), Save(numbered(2, p="y")), MERGE, DELETE, Save(numbered(3), mode="overwrite"), Save(numbered(4, p="y")),
        Save(numbered(5, p="y"), mode="overwrite", dynamic=True), DROP, RESTORE,
        Save(numbered(1), mode="overwrite", where="id = 1"), Save(numbered(7), mode="overwrite"),
    ]:  # fmt: skip
        python.save(step) if isinstance(step, Save) else python.run(step)
    found = removes_by_operation(python.path)
    assert set(found) == {"DELETE", "MERGE SPLITS", "OVERWRITE", "DROP PARTITIONS", "RESTORE"}
    for operation, removes in found.items():
        for remove in removes:
            assert remove.extended_file_metadata is True, operation
            assert remove.tags, operation
            assert remove.partition_values, operation
            assert remove.size, operation
            assert remove.data_change is (operation != "MERGE SPLITS")


ASKED = pa.Table.from_pylist(
    [
        {"id": 1, "at": dt.datetime(2024, 3, 10, 6, 30, tzinfo=dt.UTC), "t": "50% off", "N": 1.5},
        {"id": 2, "at": dt.datetime(2024, 3, 10, 3, 0, tzinfo=dt.UTC), "t": "50_off", "N": float("nan")},
        {"id": 3, "at": dt.datetime(2024, 3, 9, 20, 0, tzinfo=dt.UTC), "t": "back\\slash", "N": -0.0},
        {"id": 4, "at": dt.datetime(2024, 3, 10, 5, 0, tzinfo=dt.UTC), "t": "ÄPFEL und äpfel", "N": None},
        {"id": 5, "at": None, "t": None, "N": 0.0, "day": None},
    ],
    schema=pa.schema(
        [
            ("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC")), ("t", pa.string()), ("N", pa.float64()),
            ("day", pa.date32()), ("n.m", pa.struct([("Inner", pa.int32())])),
        ]
    ),
)  # fmt: skip
ASKED = ASKED.set_column(4, "day", pa.array([dt.date(2024, 3, 10), None, dt.date(2024, 3, 9), None, None]))
ASKED = ASKED.set_column(
    5,
    "n.m",
    pa.array([{"Inner": at} if at != 2 else None for at in range(5)], pa.struct([("Inner", pa.int32())])),
)
CONDITIONS = [
    "at >= '2024-03-10 00:00:00'",
    "at < TIMESTAMP '2024-03-10 01:30:00'",
    "at = '2024-03-10 06:30:00Z'",
    "at >= DATE '2024-03-10'",
    "CAST(at AS DATE) = DATE '2024-03-10'",
    "day = '2024-03-10'",
    "t LIKE '50\\\\%%'",
    "t LIKE '50!_%' ESCAPE '!'",
    "t LIKE '%\\\\\\\\%'",
    "t LIKE 'ÄPFEL%'",
    "NOT (t LIKE '50%')",
    "T = '50_off' OR t IS NULL",
    "n = 0",
    "N = double('NaN')",
    "N > 2",
    "n > 1 OR id IN (3, NULL)",
    "`N.M`.inner = 3",
    "id <=> NULL OR t <=> NULL",
    "NOT (id = 1 AND N > 0)",
]
QUERIES = ["äpfel", "t:off", "at:[2024-03-10T00:00:00 TO 2024-03-10T02:00:00]", "id:[2 TO 4]", "T:und"]
INDEXED = {"indexing.typemap.t": "text", "indexing.fastfields": "id,at"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("asked") / "t")
    table = it.Table.create(path, ASKED.schema, options=INDEXED)
    table.append(ASKED.slice(0, 2))
    table.append(ASKED.slice(2, 1))  # its only zero is -0.0
    table.append(ASKED.slice(3))
    return path


def ids(found: Any) -> list[int]:
    return sorted(found.column("id").to_pylist())


@pytest.mark.parametrize("zone", ZONES)
def test_a_condition_chooses_the_same_rows(spark: SparkSession, asked: str, zone: str) -> None:
    plain = it.Table.open(asked, options={"timeZone": zone})
    with session_zone(spark, zone):
        within = it.Table.open(asked, spark=spark)
        frame = spark.read.format("indextables").load(asked)
        # In one job, except where Spark's reader may leave out row groups, which depends on no zone.
        tests = [f"({where}) AS c{at}" for at, where in enumerate(CONDITIONS)]
        answers = frame.selectExpr("id", *tests).toArrow().to_pylist()
        expected = {
            where: sorted(row["id"] for row in answers if row[f"c{at}"])
            for at, where in enumerate(CONDITIONS)
        }
        if zone == "UTC":
            assert {where: ids(frame.filter(where).toArrow()) for where in CONDITIONS} == expected
        for table in (plain, within):
            assert {where: ids(table.scan(where).read_all()) for where in CONDITIONS} == expected
            counts = {where: table.count(where) for where in CONDITIONS}
            assert counts == {where: len(found) for where, found in expected.items()}
        # One query each for the ways that start a job: what they have in common was asked above.
        for where in CONDITIONS[:2]:
            assert ids(within.to_df(where).toArrow()) == expected[where]
            assert ids(within.search_df("id:[1 TO 9]", where=where).toArrow()) == expected[where]
            assert ids(within.search("id:[1 TO 9]", where=where).read_all()) == expected[where]


@pytest.mark.parametrize("zone", ZONES)
def test_a_query_finds_the_same_rows(spark: SparkSession, asked: str, zone: str) -> None:
    plain = it.Table.open(asked, options={"timeZone": zone})
    with session_zone(spark, zone):
        within = it.Table.open(asked, spark=spark)
        for query in QUERIES:
            expected = ids(plain.search(query).read_all())
            assert ids(within.search(query).read_all()) == expected, query
            assert ids(within.search_df(query).toArrow()) == expected, query
            found = spark.sql(f"SELECT id FROM indextables.`{asked}` WHERE _indexall indexquery '{query}'")
            assert ids(found.toArrow()) == expected, query
            reader = spark.read.format("indextables").option("query", query)
            assert ids(reader.load(asked).toArrow()) == expected, query
            assert plain.count(query=query) == within.count(query=query) == len(expected), query


def test_a_condition_of_a_verb_means_the_same_time_in_both(spark: SparkSession, tmp_path: Path) -> None:
    where = "at >= '2024-03-10 00:00:00'"
    steps = [
        Save(ASKED),
        Run(lambda table: table.delete(where), f"DELETE FROM INDEXTABLES '{{path}}' WHERE {where}"),
        Save(ASKED.slice(0, 0), mode="overwrite", where="at < '2024-03-09 20:00:00'"),
    ]
    for zone in ZONES[1:]:
        on_spark = OnSpark(spark, tmp_path / f"spark {zone[:4]}")
        python = InPython(tmp_path / f"python {zone[:4]}", timeZone=zone)
        within = InPython(tmp_path / f"within {zone[:4]}", spark=spark)
        with session_zone(spark, zone):
            for step in steps:
                for side in (on_spark, python, within):
                    side.save(step) if isinstance(step, Save) else side.run(step)
        left = [
            sorted_rows(it.Table.open(side.path).scan().read_all().to_pylist())
            for side in (on_spark, python, within)
        ]
        assert left[0] == left[1] == left[2]


@needs("collations")
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UTF8_BINARY"])
def test_a_collated_column_is_compared_by_its_collation_or_refused(
    spark: SparkSession, tmp_path: Path, collation: str
) -> None:
    path = str(tmp_path / "t")
    values = "VALUES (1, 'A'), (2, 'b'), (3, 'a') AS v(id, t)"
    frame = spark.sql(f"SELECT id, t COLLATE {collation} AS t FROM {values}")
    frame.coalesce(1).write.format("indextables").save(path)
    expected = ids(spark.read.format("indextables").load(path).filter("t = 'a'").toArrow())
    assert expected == ([3] if collation == "UTF8_BINARY" else [1, 3])
    try:
        found = ids(it.Table.open(path).scan("t = 'a'").read_all())
    except it.Error as refused:
        assert "t = 'a'" in str(refused)
    else:
        assert found == expected
    assert it.Table.open(path).files("t = 'a'").num_rows == 1


@needs("collations")
def test_a_collated_table_is_written_and_changed_alike(spark: SparkSession, tmp_path: Path) -> None:
    def rows(*texts: str | None) -> pa.Table:
        return pa.table({"id": pa.array(range(len(texts)), pa.int64()), "t": pa.array(texts, pa.string())})

    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    for side in (python, on_spark):
        first = frame_of(spark, rows("A", "b")).selectExpr("id", "t COLLATE UTF8_LCASE AS t", "t AS plain")
        first.coalesce(1).write.format("indextables").option("indexing.typemap.t", "text").save(side.path)
        side.save(Save(rows("a", "B", None)))
        side.save(Save(rows("a"), mode="overwrite", where="id = 0 AND plain IS NULL"))
    assert written(python.path) == written(on_spark.path)
    assert [it.Table.open(side.path).count(query="t:b") for side in (python, on_spark)] == [2, 2]
    changes = [
        "t = 'A'",
        "t IN ('B', 'x')",
        "t LIKE 'A%'",
        "t >= 'b'",
        "id = 1 AND t IS NOT NULL",
        "plain = 'A'",
    ]
    for where in changes:
        before = written(python.path)
        try:
            it.Table.open(python.path).delete(where)
        except it.Error as refused:
            assert "t " in str(refused), where
            assert written(python.path) == before
        else:
            spark.sql(f"DELETE FROM indextables.`{on_spark.path}` WHERE {where}")
        assert sorted_rows(python.rows()) == sorted_rows(on_spark.rows()), where


def said(error: BaseException, path: str) -> tuple[str, str]:
    return type(error).__name__, str(error).replace(f"file://{path}", "TABLE").replace(path, "TABLE")


def wrong(data: Any = None, *, mode: str = "append", **more: Any) -> Save:
    return Save(numbered(1) if data is None else data, mode, **more)


REFUSED: dict[str, Save | Run] = {
    "an unknown option": wrong(options=(("write.maxRowsPerSplt", "1"),)),
    "a value an option cannot have": wrong(options=(("write.maxRowsPerSplit", "many"),)),
    "another index setting": wrong(options=(("indexing.typemap.message", "string"),)),
    "a tokenizer of a column that is not there": wrong(options=(("indexing.typemap.nope", "text"),)),
    "a column the table lacks": wrong(numbered(1).append_column("more", pa.array([1]))),
    "a type that does not fit": wrong(numbered(1).set_column(0, "id", pa.array(["x"]))),
    "rows outside the condition": wrong(mode="overwrite", where="id = 2"),
    "a condition that is no condition": wrong(mode="overwrite", where="id"),
    "a condition on an unknown column": wrong(mode="overwrite", where="nope = 1"),
    "a new schema inside a condition": wrong(mode="overwrite", where="id = 1", overwrite_schema=True),
    "a new schema inside some partitions": wrong(mode="overwrite", dynamic=True, overwrite_schema=True),
    "a new schema without a partition column": wrong(
        numbered(1).drop_columns(["p"]), mode="overwrite", overwrite_schema=True
    ),
    "other partitions": wrong(mode="overwrite", partition_by=("id",)),
    "a condition that does not parse": wrong(mode="overwrite", where="id = = 1"),
    "dropping by a column that is no partition": Run(
        lambda table: table.drop_partitions("id = 1"),
        "DROP INDEXTABLES PARTITIONS FROM '{path}' WHERE id = 1",
    ),
    "deleting by an unknown column": Run(
        lambda table: table.delete("nope = 1"), "DELETE FROM INDEXTABLES '{path}' WHERE nope = 1"
    ),
    "restoring a version that never was": Run(
        lambda table: table.restore(99), "RESTORE INDEXTABLES '{path}' TO VERSION 99"
    ),
    "purging what is too young": Run(
        lambda table: table.purge(older_than_hours=1), "PURGE INDEXTABLE '{path}' OLDER THAN 1 HOURS"
    ),
}


def test_what_is_refused_is_refused_with_the_same_words(spark: SparkSession, tmp_path: Path) -> None:
    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    for side in (python, on_spark):
        side.save(Save(numbered(1), partition_by=("p",), options=(("indexing.typemap.message", "text"),)))
    heard: dict[str, dict[str, tuple[str, str]]] = {python.path: {}, on_spark.path: {}}
    before = written(python.path)
    for side in (python, on_spark):
        for name, step in REFUSED.items():
            with pytest.raises(Exception) as refusal:  # noqa: PT011 - which one is what the test is about
                side.save(step) if isinstance(step, Save) else side.run(step)
            heard[side.path][name] = said(refusal.value, side.path)
    assert heard[python.path] == heard[on_spark.path]
    assert written(python.path) == before


QUESTIONS: dict[str, tuple[Callable[[it.Table], Any], Callable[[it.Table, Any], Any]]] = {
    "a column that is not there": (
        lambda table: table.scan(columns=["nope"]),
        lambda table, load: load(columns="nope"),
    ),
    "a column twice": (
        lambda table: table.search("off", columns=["id", "ID"]),
        lambda table, load: table.search_df("off", columns=["id", "ID"]),
    ),
    "a query that does not parse": (
        lambda table: table.search("(off"),
        lambda table, load: table.search_df("(off"),
    ),
    "a query for a column that is not there": (
        lambda table: table.search("nope:1"),
        lambda table, load: table.search_df("nope:1"),
    ),
    "a search with an unknown column in its filter": (
        lambda table: table.search("off", where="nope = 1"),
        lambda table, load: table.search_df("off", where="nope = 1"),
    ),
    "a negative limit": (
        lambda table: table.search("off", limit=-1),
        lambda table, load: table.search_df("off", limit=-1),
    ),
    "a version that is not there": (
        lambda table: it.Table.open(table.uri, version=99),
        lambda table, load: load(versionAsOf="99"),
    ),
}


def test_a_question_that_has_no_answer_gets_the_same_error(spark: SparkSession, asked: str) -> None:
    table = it.Table.open(asked, spark=spark)

    def load(**options: str) -> Any:
        return spark.read.format("indextables").options(**options).load(asked)

    heard: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name, (python, on_spark) in QUESTIONS.items():
        with pytest.raises(it.Error) as refusal:
            python(table)
        heard[0][name] = said(refusal.value, asked)
        with pytest.raises(Exception) as refusal:  # noqa: PT011 - which one is what the test is about
            on_spark(table, load)
        heard[1][name] = said(refusal.value, asked)
    assert heard[0] == heard[1]


def test_a_table_of_another_container_is_refused_by_every_way_to_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    it.Table.create(path, SCHEMA, options={"indexing.typemap.message": "text"})
    log = it.TransactionLog.open(path)
    foreign = replace(
        log.metadata(), format={"provider": "indextables", "options": {"container": "quickwit"}}
    )
    log.commit(CommitPlan("TEST", Rule.APPEND, lambda _: [foreign]))
    table = it.Table.open(path, spark=spark)
    ways: list[Callable[[], Any]] = [
        lambda: table.scan().read_all(),
        lambda: table.count("id = 1"),
        lambda: table.search("x"),
        lambda: table.to_df().count(),
        lambda: table.search_df("x").count(),
        lambda: spark.read.format("indextables").load(path).count(),
        lambda: spark.sql(f"SELECT * FROM indextables.`{path}` WHERE message indexquery 'x'").count(),
        lambda: table.append(numbered(1)),
        lambda: frame_of(spark, numbered(1)).write.format("indextables").mode("append").save(path),
        lambda: spark.sql(f"DELETE FROM INDEXTABLES '{path}' WHERE id = 1"),
    ]
    heard = []
    for way in ways:
        try:
            heard.append(str(way()))
        except it.Error as refusal:
            heard.append(str(said(refusal, path)))
    assert heard == heard[:1] * len(ways)
    assert "quickwit" in heard[0]
