"""DELETE, UPDATE and MERGE return how many rows they changed, as the rows before and after and the history say."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import indextables as it
from support.spark_versions import needs

SOURCE = "(SELECT * FROM VALUES (2, 'two'), (5, 'five'), (11, 'eleven'), (12, 'twelve') AS s(id, message))"
METRICS = {
    "num_updated_rows": "numUpdatedRows",
    "num_deleted_rows": "numDeletedRows",
    "num_inserted_rows": "numInsertedRows",
}

# Rows that a statement updates get another version, so that the rows before and after tell how many there were.
STATEMENTS = [
    "DELETE FROM {t} WHERE id = 3",
    "DELETE FROM {t} WHERE id > 100",
    "DELETE FROM {t} WHERE day = 1",
    "DELETE FROM {t} WHERE day = 1 OR id IN (SELECT max(id) FROM {t})",
    "DELETE FROM {t} WHERE message indexquery 'row'",
    "DELETE FROM {t} WHERE NULL",
    "DELETE FROM {t} WHERE true",
    "DELETE FROM {t}",
    "DELETE FROM {t} AS x WHERE x.id < 3",
    "WITH odd AS (SELECT 3 AS id) DELETE FROM {t} WHERE id IN (SELECT id FROM odd)",
    "UPDATE {t} SET changed = changed + 1 WHERE id % 2 = 0",
    "UPDATE {t} SET changed = changed + 1",
    "UPDATE {t} AS x SET x.changed = x.changed + 1 WHERE x.day = 0 AND x.message IS NULL",
    "UPDATE {t} SET changed = 9 WHERE id > 100",
    "UPDATE {t} SET changed = 9 WHERE id IN (SELECT max(id) FROM {t})",
    "{merge} WHEN MATCHED THEN {update} 1",
    "{merge} WHEN MATCHED THEN DELETE",
    "{merge} WHEN NOT MATCHED THEN {insert} (s.id, 5, s.message, 0)",
    "{merge} WHEN NOT MATCHED AND s.id = 11 THEN {insert} (s.id, 5, 'm', 0)",
    "{merge} WHEN NOT MATCHED AND s.id = 11 THEN {insert} (s.id, 5, 'm', 0) WHEN NOT MATCHED THEN {insert} (-s.id, 6, 'm', 0)",
    "{merge} AND s.id < 9 WHEN NOT MATCHED AND s.id < 9 THEN {insert} (s.id, 5, 'm', 0)",
    "{merge} WHEN MATCHED AND x.id = 2 THEN {update} 1 WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.id = 11 THEN {insert} (s.id, 5, 'm', 0)",
    "{merge} WHEN MATCHED THEN {update} 1 WHEN NOT MATCHED THEN {insert} (s.id, 5, s.message, 0) WHEN NOT MATCHED BY SOURCE AND x.day = 0 THEN {update} 2 WHEN NOT MATCHED BY SOURCE AND x.id > 7 THEN DELETE",
    "{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "{merge} AND x.message indexquery 'row' WHEN MATCHED THEN DELETE",
    "{merge} + 100 WHEN MATCHED THEN DELETE",
    "{merge} AND false WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN {insert} (s.id + 100, 5, s.message, 0)",
    "WITH more AS (SELECT 77 AS id) MERGE INTO {t} x USING more s ON x.id = s.id WHEN NOT MATCHED THEN {insert} (s.id, 5, 'm', 0)",
    "MERGE INTO {t} x USING {t} s ON x.id = s.id + 1 WHEN MATCHED AND s.day = 1 THEN {update} 3",
]


@pytest.fixture(params=["0.3", "1"], ids=["written anew", "by vectors"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Ten rows in four files and two partitions; rows leave them by vectors where the share is 1."""
    path = str(tmp_path / "t")
    rows = [
        {"id": at, "day": at % 2, "message": None if at == 6 else f"row {at}", "changed": 0}
        for at in range(10)
    ]
    options = {"deletionVectors.foldShare": request.param}
    it.write(path, rows[:5], text=["message"], partition_by=["day"], options=options)
    it.write(path, rows[5:], mode="append")
    return path


def in_full(statement: str, table: str) -> str:
    words = {
        "t": table,
        "update": "UPDATE SET changed =",
        "insert": "INSERT (id, day, message, changed) VALUES",
    }
    return statement.format(**words, merge=f"MERGE INTO {table} x USING {SOURCE} s ON x.id = s.id")


def changes(before: list[dict], after: list[dict]) -> dict[str, int]:
    """The rows that a statement has changed, told by the rows before and after it."""
    old, new = ({row["id"]: row["changed"] for row in rows} for rows in (before, after))
    assert len(new) == len(after)
    return {
        "num_updated_rows": sum(new[key] != old[key] for key in old.keys() & new.keys()),
        "num_deleted_rows": len(old.keys() - new.keys()),
        "num_inserted_rows": len(new.keys() - old.keys()),
    }


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_returns_how_many_rows_it_changed(spark, table, statement):
    before = it.read(table).to_pylist()
    version = it.Table.open(table).version
    rows = spark.sql(in_full(statement, f"indextables.`{table}`")).collect()
    assert_reported(rows, table, before, version)
    assert (len(rows[0]) > 1) == ("merge" in statement.lower())


@needs("DataFrame.mergeInto")
def test_the_history_has_what_merge_into_of_a_frame_changed(spark, table):
    from pyspark.sql import functions as F

    before, version = it.read(table).to_pylist(), it.Table.open(table).version
    spark.sql(f"CREATE TABLE merged_by_frame USING indextables LOCATION '{table}'")
    try:
        source = spark.sql("SELECT * FROM VALUES (2L), (11L) AS s(key)")
        writer = (
            source.mergeInto("merged_by_frame", F.expr("id = key"))
            .whenMatched()
            .update({"changed": F.lit(1)})
        )
        new = {"id": F.col("key"), "day": F.lit(5), "message": F.lit("m"), "changed": F.lit(0)}
        writer.whenNotMatched().insert(new).merge()
    finally:
        spark.sql("DROP TABLE merged_by_frame")
    counts = {"num_updated_rows": 1, "num_deleted_rows": 0, "num_inserted_rows": 1}
    assert changes(before, it.read(table).to_pylist()) == counts
    assert_in_history(table, version, counts)


def test_a_merge_that_only_inserts_does_not_insert_what_another_inserted_meanwhile(spark, table):
    """The other merge is committed while this one runs: by its own source, which Spark computes after it has planned."""

    def keys(batches):
        for batch in batches:
            meanwhile = [{"id": 11, "day": 5, "message": "meanwhile", "changed": 0}]
            it.Table.open(table).merge(meanwhile, on="id", matched=None)
            yield batch

    spark.range(11, 13, 1, 1).mapInArrow(keys, "id long").createOrReplaceTempView("keys_of_others")
    into = f"MERGE INTO indextables.`{table}` x USING keys_of_others s ON x.id = s.id"
    with pytest.raises(it.errors.ConflictError):
        spark.sql(f"{into} WHEN NOT MATCHED THEN INSERT (id, day, message, changed) VALUES (s.id, 5, 'm', 0)")
    ids = [row["id"] for row in it.read(table).to_pylist()]
    assert sorted(ids) == [*range(10), 11]


def test_of_two_merges_in_threads_that_only_insert_the_same_keys_one_is_a_conflict(spark, table, tmp_path):
    """Nothing is patched: the sources, which Spark computes after it has planned, wait for one another."""

    def source_of(me):
        def keys(batches):
            for batch in batches:
                Path(f"{tmp_path}/{me}").touch()
                until = time.monotonic() + 120
                while not all(Path(f"{tmp_path}/{name}").exists() for name in "ab"):
                    assert time.monotonic() < until, "the other merge has not come"
                    time.sleep(0.05)
                yield batch

        return keys

    def merge(me):
        spark.range(11, 14, 1, 1).mapInArrow(source_of(me), "id long").createOrReplaceTempView(
            f"keys_of_{me}"
        )
        into = f"MERGE INTO indextables.`{table}` x USING keys_of_{me} s ON x.id = s.id"
        spark.sql(
            f"{into} WHEN NOT MATCHED THEN INSERT (id, day, message, changed) VALUES (s.id, 5, '{me}', 0)"
        )
        return me

    with ThreadPoolExecutor(2) as pool:
        merges = [pool.submit(merge, me) for me in "ab"]
    (refused,) = [done.exception() for done in merges if done.exception() is not None]
    assert isinstance(refused, it.errors.ConflictError)
    (won,) = [done.result() for done in merges if done.exception() is None]
    found = sorted((row["id"], row["message"]) for row in it.read(table).to_pylist() if row["id"] > 9)
    assert found == [(key, won) for key in (11, 12, 13)]


def assert_reported(rows, table, before, version):
    counts = changes(before, it.read(table).to_pylist())
    affected = {"num_affected_rows": sum(counts.values())}
    is_merge = len(rows[0]) > 1
    assert [row.asDict() for row in rows] == [{**affected, **counts} if is_merge else affected]
    assert (it.Table.open(table).version > version) == (affected["num_affected_rows"] > 0)
    if affected["num_affected_rows"]:
        assert_in_history(table, version, counts)


def assert_in_history(table, version, counts):
    after = it.Table.open(table)
    assert after.version == version + 1
    newest = after.history(1).to_pylist()[0]
    metrics = {name: int(number) for name, number in dict(newest["operation_metrics"]).items()}
    shown = counts if newest["operation"] == "MERGE" else {key: rows for key, rows in counts.items() if rows}
    assert {key: metrics[METRICS[key]] for key in shown} == shown
