"""UPDATE, MERGE, DELETE, every statement and every question: Python and Spark do and answer the same."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.errors import Error
from support.alike import (
    Change,
    InPython,
    OnSpark,
    Run,
    Save,
    adds_by_operation,
    changed,
    session_zone,
    sorted_rows,
    told,
    written,
)
from support.statements import DRY_RUNS, STATEMENTS, make_table

NAN, HOUR = float("nan"), dt.timedelta(hours=1)
NOON = dt.datetime(2024, 3, 10, 12, tzinfo=dt.UTC)
KINDS = pa.schema(
    [
        ("id", pa.int64()), ("message", pa.string()), ("p", pa.string()), ("x", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32()), ("small", pa.int16()),
        ("price", pa.decimal128(9, 2)), ("s", pa.struct([("In.ner", pa.int32()), ("t", pa.string())])),
        ("a.b", pa.string()), ("c`d", pa.list_(pa.int32())), ("raw", pa.binary()), ("Größe €", pa.map_(pa.string(), pa.int64())),
    ]
)  # fmt: skip
NUMBERS = [1.5, NAN, -0.0, 0.0, None, float("inf"), -1e300, NAN]


def kinds(*ids: int, p: str | None = "x") -> pa.Table:
    rows = [
        {
            "id": at,
            "message": None if at % 5 == 4 else f"error {at} of many",
            "p": p,
            "x": NUMBERS[at % 8],
            "at": NOON + at * HOUR,
            "day": dt.date(2024, 3, 1 + at % 9),
            "small": at,
            "s": None if at % 3 == 2 else {"In.ner": at, "t": str(at)},
            "a.b": f"k={at}",
            "c`d": [at, None],
            "raw": b"\xff" * at,
            "Größe €": [("k", at)],
        }
        for at in ids
    ]
    return pa.Table.from_pylist(rows, schema=KINDS)


UPDATES = [
    Change(lambda t: t.update("id = 2", {"message": "new"}), "UPDATE {t} SET message = 'new' WHERE id = 2"),
    Change(lambda t: t.update("ID = 3", {"P": "z"}), "UPDATE {t} SET P = 'z' WHERE ID = 3"),
    Change(
        lambda t: t.update("p IS NULL", {"message": None}), "UPDATE {t} SET message = NULL WHERE p IS NULL"
    ),
    Change(
        lambda t: t.update("x = double('NaN')", {"small": 70}),
        "UPDATE {t} SET small = 70 WHERE x = double('NaN')",
    ),
    Change(
        lambda t: t.update("x = 0", {"x": 7.25, "id": 200}), "UPDATE {t} SET x = 7.25, id = 200 WHERE x = 0"
    ),
    Change(
        lambda t: t.update("id = 1", {"message": it.col("`a.b`")}),
        "UPDATE {t} SET message = `a.b` WHERE id = 1",
    ),
    Change(
        lambda t: t.update("`a.b` = 'k=12'", {"a.b": "", "c`d": [], "Größe €": None}),
        "UPDATE {t} SET `a.b` = '', `c``d` = array(), `Größe €` = NULL WHERE `a.b` = 'k=12'",
    ),
    Change(
        lambda t: t.update("s.`In.ner` = 13 AND p <=> 'y'", {"price": 1}),
        "UPDATE {t} SET price = 1 WHERE s.`In.ner` = 13 AND p <=> 'y'",
    ),
    Change(
        lambda t: t.update("at >= '2024-03-10 12:00:00' AND id < 10", {"day": dt.date(1999, 12, 31)}),
        "UPDATE {t} SET day = DATE '1999-12-31' WHERE at >= '2024-03-10 12:00:00' AND id < 10",
    ),
    Change(lambda t: t.update("id = 99", {"id": 1}), "UPDATE {t} SET id = 1 WHERE id = 99"),
]
DELETES = [
    Change(lambda t: t.delete("id = 2"), "DELETE FROM {t} WHERE id = 2"),
    Change(lambda t: t.delete("p = 'y'"), "DELETE FROM {t} WHERE p = 'y'"),
    Change(lambda t: t.delete("x > 1e308 AND id < 10"), "DELETE FROM {t} WHERE x > 1e308 AND id < 10"),
    Change(lambda t: t.delete("NOT (x = 0) AND id = 6"), "DELETE FROM {t} WHERE NOT (x = 0) AND id = 6"),
    Change(lambda t: t.delete("message LIKE '%3 of%'"), "DELETE FROM {t} WHERE message LIKE '%3 of%'"),
    Change(lambda t: t.delete("`a.b` IN ('k=4', NULL)"), "DELETE FROM {t} WHERE `a.b` IN ('k=4', NULL)"),
    Change(
        lambda t: t.delete("at < '2024-03-10 10:00:00'"), "DELETE FROM {t} WHERE at < '2024-03-10 10:00:00'"
    ),
    Change(
        lambda t: t.delete("id > 20", query="message:21"),
        "DELETE FROM {t} WHERE id > 20 AND message indexquery '21'",
    ),
    Change(lambda t: t.delete("message = NULL"), "DELETE FROM {t} WHERE message = NULL"),
    Change(lambda t: t.delete("true"), "DELETE FROM {t} WHERE true"),
]


def merged(*columns: str, **clauses: Any) -> Callable[..., Any]:
    return lambda table, source: table.merge(source, list(columns), **clauses)


def raw(**columns: list[Any]) -> pa.Table:
    """Rows to merge by bytes that are no text, and a number."""
    return pa.table(
        {"message": ["merged"] * len(columns["id"]), "p": ["x"] * len(columns["id"]), **columns},
        pa.schema([KINDS.field(name) for name in ("message", "p", "id", "raw")]),
    )


def keyed(key: str, *values: Any) -> pa.Table:
    """Rows to merge: a key, and a message for each; the other columns are not named."""
    fields = pa.schema([KINDS.field(key), KINDS.field("message"), KINDS.field("p")])
    rows = [{key: value, "message": f"merged {at}", "p": "x"} for at, value in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=fields)


INTO = "MERGE INTO {t} AS t USING source AS s ON "
UPSERT = (
    " WHEN MATCHED THEN UPDATE SET message = s.message, p = s.p"
    " WHEN NOT MATCHED THEN INSERT ({k}, message, p) VALUES (s.{k}, s.message, s.p)"
)
MERGES = [
    Change(merged("id"), INTO + "t.id = s.id" + UPSERT.format(k="id"), keyed("id", 2, 3, 100)),
    Change(merged("X"), INTO + "t.x = s.x" + UPSERT.format(k="x"), keyed("x", NAN, 0.0, 4.0, None)),
    Change(merged("x"), INTO + "t.x = s.x" + UPSERT.format(k="x"), keyed("x", -0.0, None)),
    Change(
        merged("id", "p", matched="delete", not_matched=None),
        INTO + "t.id = s.id AND t.p = s.p WHEN MATCHED THEN DELETE",
        keyed("id", 4, 11),
    ),
    Change(
        merged("id", "raw"),
        INTO + "t.id = s.id AND t.raw = s.raw WHEN MATCHED THEN UPDATE SET message = s.message, p = s.p"
        " WHEN NOT MATCHED THEN INSERT (id, raw, message, p) VALUES (s.id, s.raw, s.message, s.p)",
        raw(id=[1, 2, 3, 5], raw=[b"\xff", b"\xfe\xff", None, b"\xff" * 5]),
    ),
    Change(
        merged("at", matched=None),
        INTO + "t.at = s.at WHEN NOT MATCHED THEN INSERT (at, message, p) VALUES (s.at, s.message, s.p)",
        keyed("at", NOON + HOUR, NOON - HOUR),
    ),
    Change(
        merged("id", matched=None, not_matched=None),
        INTO + "t.id = s.id WHEN MATCHED AND false THEN DELETE",
        keyed("id", 1),
    ),
    Change(
        merged("id", matched=None, not_matched=None, not_matched_by_source="delete"),
        INTO + "t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
        keyed("id", 0, 1, 100),
    ),
]


@pytest.mark.parametrize("changes", [UPDATES, DELETES, MERGES], ids=["updates", "deletes", "merges"])
def test_changes_of_rows_leave_the_same_table(
    spark: SparkSession, tmp_path: Path, changes: list[Change]
) -> None:
    zone = "America/New_York"
    python = InPython(tmp_path / "python", timeZone=zone)
    on_spark = OnSpark(spark, tmp_path / "spark")
    start = [
        Save(kinds(0, 1, 2, 3, 4, 5, 6, 7), partition_by=("p",), options=(("indexing.typemap.message", "text"),)),
        Save(kinds(11, 12, 13, p="y")), Save(kinds(20, 21, p=None)), Save(kinds(0, -7)),
    ]  # fmt: skip
    with session_zone(spark, zone):
        for side in (python, on_spark):
            for step in start:
                side.save(step)
            it.TransactionLog.open(side.path).update_properties(
                {"stats.truncation.maxLength": "8", "dataSkippingStatsColumns": "id,message,x"}
            )
        for step in changes:
            for side in (python, on_spark):
                side.change(step)
            assert sorted_rows(python.rows()) == sorted_rows(InPython(Path(on_spark.path)).rows()), (
                step.statement
            )
    if changes is MERGES:
        # Spark writes changed and new rows into the same files, and an insert alone as a write.
        assert settings_of(python.path) == settings_of(on_spark.path)
    else:
        for one, other in zip(changed(python.path), changed(on_spark.path), strict=True):
            assert one == other
    assert sorted_rows(on_spark.rows()) == sorted_rows(python.rows())


def settings_of(path: str) -> set[tuple[Any, ...]]:
    """How the files that changes wrote are indexed, and which columns they have statistics of at most.

    A file that got a deletion vector is an earlier one, with the statistics of its time.
    """
    found = set()
    for operation, adds in adds_by_operation(path).items():
        for add in adds if operation == "MERGE" else ():
            if add.deletion_vector is not None:
                continue
            assert set(add.min_values or {}) <= {"id", "message", "x"}
            assert all(len(text or "") <= 9 for text in (add.min_values or {}).values())
            tags = add.tags or {}
            found.add((tags["indexSettings"], tags["indexedFields"], tags["splitFormat"], add.data_change))
    return found


def test_every_statement_gives_the_same_rows_through_sql_and_through_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    heard: tuple[list[Any], list[Any]] = ([], [])
    for side in (0, 1):
        path = str(tmp_path / f"side{side}")
        make_table(path)
        # The history goes last.
        for statement in sorted(
            [*DRY_RUNS[:3], *STATEMENTS, *DRY_RUNS[-1:]], key=lambda text: "TIME TRAVEL" in text
        ):
            text = statement.format(t=path)
            if "DATA SKIPPING" in text:
                continue
            rows = spark.sql(text).toArrow() if side else it.sql(text)
            heard[side].append((statement, sorted_rows(told(rows.to_pylist(), path))))
            if side and statement.startswith("DESCRIBE"):
                assert told(rows.to_pylist(), path) == told(it.sql(text).to_pylist(), path), statement
    assert len(heard[0]) > 20
    for one, other in zip(*heard, strict=True):
        assert one == other


METHODS = [
    Run(lambda t: t.history(), "DESCRIBE INDEXTABLES HISTORY '{path}'"),
    Run(lambda t: t.history(2), "DESCRIBE HISTORY indextables.`{path}` LIMIT 2"),
    Run(lambda t: t.describe(), "DESCRIBE INDEXTABLES STATE '{path}'"),
    Run(
        lambda t: t.merge_splits("day = '1'", target_size="10M", max_dest_splits=1, max_source_splits=2, dry_run=True),
        DRY_RUNS[1].replace("{t}", "{path}"),
    ),
    Run(
        lambda t: t.delete(query="message:3 AND happened"),
        "DELETE FROM INDEXTABLES '{path}' WHERE message indexquery '3 AND happened'",
    ),
    Run(lambda t: t.delete("id = 7"), "DELETE FROM INDEXTABLES '{path}' WHERE id = 7"),
    Run(lambda t: t.purge_rows("day = '1'"), "PURGE ROWS '{path}' WHERE day = '1'"),
    Run(lambda t: t.merge_splits(), "MERGE SPLITS '{path}'"),
    Run(lambda t: t.suggest_statistics(["id"]), "ANALYZE INDEXTABLES '{path}' FOR SKIPPING COLUMNS (id)"),
    Run(lambda t: t.suggest_statistics(["id"], store=True), "ANALYZE '{path}' FOR SKIPPING COLUMNS (id) STORE"),
    Run(lambda t: t.checkpoint(), "COMPACT INDEXTABLES '{path}'"),
    Run(lambda t: t.restore(3), "RESTORE TABLE indextables.`{path}` TO VERSION AS OF 3"),
    Run(
        lambda t: t.drop_partitions("day = '1'"),
        "DROP INDEXTABLES PARTITIONS FROM '{path}' WHERE day = '1'",
    ),
    Run(lambda t: t.purge(older_than_hours=100), "PURGE INDEXTABLE '{path}' OLDER THAN 100 HOURS"),
    Run(lambda t: t.truncate_history(dry_run=True), "TRUNCATE INDEXTABLES TIME TRAVEL '{path}' DRY RUN"),
    Run(lambda t: t.truncate_history(), "TRUNCATE INDEXTABLES TIME TRAVEL '{path}'"),
    Run(
        lambda t: it.repair_log(*(f"{t.uri.removeprefix('file://')}/{name}" for name in ("_transaction_log", "_repaired"))),
        "REPAIR INDEXFILES TRANSACTION LOG '{path}/_transaction_log' AT LOCATION '{path}/_repaired'",
    ),
]  # fmt: skip


def test_every_method_gives_what_its_statement_gives(spark: SparkSession, tmp_path: Path) -> None:
    python, on_spark = InPython(tmp_path / "python"), OnSpark(spark, tmp_path / "spark")
    for side in (python, on_spark):
        make_table(side.path)
    for step in METHODS:
        assert sorted_rows(python.run(step)) == sorted_rows(on_spark.run(step)), step.statement
    assert written(python.path) == written(on_spark.path)


QUESTIONS: dict[str, Callable[[it.Table], Any]] = {
    "files": lambda t: t.files(),
    "files of a condition": lambda t: t.files("x = double('NaN') OR id < 3"),
    "files of a time": lambda t: t.files("at >= '2024-03-10 20:00:00'"),
    "rows": lambda t: t.scan().read_all(),
    "some columns": lambda t: t.scan("p IS NULL", columns=["Größe €", "A.B", "id"]).read_all(),
    "count": lambda t: t.count(),
    "count of a condition": lambda t: t.count("at >= '2024-03-10 20:00:00'"),
    "count of a query": lambda t: t.count(query="message:error AND many", where="NOT (x = 0)"),
    "search": lambda t: t.search("error -13", where="id <> 1").read_all(),
    "best rows": lambda t: t.search("many 12 21", limit=3, score=True, columns=["id"]).read_all(),
    "groups": lambda t: t.aggregate(["p", "x"], {"n": "count(*)", "m": "min(at)", "d": "count(distinct day)"}),
    "sums": lambda t: t.aggregate(None, ["sum(x)", "avg(small)", "max(price)", "min(message)"]),
    "facets": lambda t: t.facets("p", where="id > 2", top=None),
    "facets of numbers": lambda t: t.facets("x", top=3),
    "days": lambda t: t.histogram("at", "day"),
    "numbers": lambda t: t.histogram("small", 5, query="error"),
    "history": lambda t: t.history(),
    "description": lambda t: t.describe(),
    "schema": lambda t: str(t.schema),
}  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_a_table_in_a_session_answers_like_one_outside(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    path = tmp_path / "t"
    python = InPython(path)
    python.save(
        Save(kinds(0, 1, 2, 3, 4), partition_by=("p",), options=(("indexing.typemap.message", "text"),))
    )
    python.save(Save(kinds(12, 13, 21, p=None)))
    plain = it.Table.open(path, options={"timeZone": zone})
    with session_zone(spark, zone):
        within = it.Table.open(path, spark=spark)
        for name, ask in QUESTIONS.items():
            assert str(ask(within)) == str(ask(plain)), name
        on_spark = within.files("x = double('NaN') OR id < 3", engine="spark")
        assert on_spark.equals(plain.files("x = double('NaN') OR id < 3"))


def test_partition_values_do_not_depend_on_who_writes_them_or_where(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("p", "x", "at", "day", "small", "a.b")
    rows = kinds(0, 1, 2, 3, 4, p="k=v/w %").select([*names, "id"])
    odd = [
        pa.Table.from_pylist([{"p": text, "x": number, "id": 9}], schema=rows.schema)
        for text, number in [("", -0.0), (None, NAN), ("ä€😀", 0.0), ("..", float("-inf"))]
    ]
    for zone in ("UTC", "Asia/Kolkata"):
        python = InPython(tmp_path / f"python {zone[:3]}", timeZone=zone)
        on_spark = OnSpark(spark, tmp_path / f"spark {zone[:3]}")
        with session_zone(spark, zone):
            for side in (python, on_spark):
                side.save(Save(pa.concat_tables([rows, *odd]), partition_by=names))
        left, right = written(python.path), written(on_spark.path)
        assert left == right
        assert sorted_rows(python.rows()) == sorted_rows(on_spark.rows())
        shutil.rmtree(python.path)


MISTAKES: dict[str, tuple[Callable[[it.Table], Any], str]] = {
    "a condition that does not parse": (lambda t: t.delete("id = = 2"), "DELETE FROM INDEXTABLES '{path}' WHERE id = = 2"),
    "a comparison of two kinds": (lambda t: t.delete("id = true"), "DELETE FROM INDEXTABLES '{path}' WHERE id = true"),
    "a search in a column that is not there": (
        lambda t: t.search("dax:1"), "SELECT * FROM indextables.`{path}` WHERE _indexall indexquery 'dax:1'"
    ),
    "merging by a column that is no partition": (
        lambda t: t.merge_splits("id = 1"), "MERGE SPLITS '{path}' WHERE id = 1"
    ),
    "a version that never was": (lambda t: t.restore(77), "RESTORE INDEXTABLES '{path}' TO VERSION 77"),
    "a repair onto itself": (
        lambda t: it.repair_log(f"{t.uri}/_transaction_log", f"{t.uri}/_transaction_log"),
        "REPAIR INDEXFILES TRANSACTION LOG '{path}/_transaction_log' AT LOCATION '{path}/_transaction_log'",
    ),
    "a table that is not there": (
        lambda t: it.Table.open(f"{t.uri}/none").describe(), "DESCRIBE INDEXTABLES STATE '{path}/none'"
    ),
}  # fmt: skip


def test_a_mistake_is_answered_with_the_same_sentence(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = make_table(path)
    before = written(path)
    heard: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for name, (method, statement) in MISTAKES.items():
        with pytest.raises(Error) as refusal:
            method(table)
        heard[0][name] = f"{type(refusal.value).__name__}: {refusal.value}".replace("file://", "")
        with pytest.raises(Exception) as refusal:  # noqa: PT011 - which one is what the test is about
            spark.sql(statement.format(path=path)).collect()
        heard[1][name] = f"{type(refusal.value).__name__}: {refusal.value}".replace("file://", "")
    assert heard[0] == heard[1]
    assert written(path) == before
