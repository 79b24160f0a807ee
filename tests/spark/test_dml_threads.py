"""UPDATE, DELETE, MERGE and INSERT of Spark's threads and of another process beside merges of splits."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import indextables as it
from support.counters import (
    DOOMED,
    FIRST_KEY,
    FIRST_NEW,
    change_by_python,
    contents,
    create,
    expected,
    merge_splits,
    until_done,
)

pytestmark = pytest.mark.slow
ROUNDS = 2
MERGE = (
    f"MERGE INTO counters c USING (SELECT {FIRST_KEY}L AS id) s ON c.id = s.id WHEN MATCHED THEN UPDATE "
    "SET n = c.n + 1 WHEN NOT MATCHED THEN INSERT (id, n, who) VALUES (s.id, 1, 'key')"
)


def change_by_spark(spark, at: int, name: str) -> int:
    """One writer's rounds in SQL; returns how often it lost."""
    lost = 0
    for turn in range(ROUNDS):
        new, doomed = FIRST_NEW + at * 100 + turn, DOOMED[at * ROUNDS + turn]
        for statement in (
            f"INSERT INTO counters VALUES ({new}, {turn}, '{name}')",
            "UPDATE counters SET n = n + 1 WHERE id < 10",
            f"DELETE FROM counters WHERE id = {doomed}",
            MERGE,
        ):
            lost += until_done(lambda statement=statement: spark.sql(statement))
    return lost


def test_threads_of_a_session_and_another_process_beside_merges_lose_nothing(spark, tmp_path):
    uri = str(tmp_path / "t")
    create(uri)
    spark.sql(f"CREATE TABLE counters USING indextables LOCATION '{uri}'")
    writers = ["thread one", "thread two", "process"]
    context = multiprocessing.get_context("spawn")
    try:
        with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, mp_context=context) as processes:
            merges = processes.submit(merge_splits, uri, 10)
            changes = [
                threads.submit(change_by_spark, spark, 0, writers[0]),
                threads.submit(change_by_spark, spark, 1, writers[1]),
                processes.submit(change_by_python, uri, 2, writers[2], ROUNDS),
            ]
            lost = [future.result(timeout=900) for future in changes]
            merges.result(timeout=900)
        assert sum(lost) > 0, "nobody met anybody, so nothing was shown"
        assert contents(uri) == expected(writers, ROUNDS)
        spark.sql("REFRESH TABLE counters")
        assert sorted(map(tuple, spark.table("counters").collect())) == expected(writers, ROUNDS)
    finally:
        spark.sql("DROP TABLE counters")


def test_statements_of_one_text_at_the_same_time_replace_each_their_own_files(spark, tmp_path):
    """Two sessions use two databases, in which the same names are other tables."""
    rounds, databases = 3, ("merge_one", "merge_two")
    at_once = threading.Barrier(len(databases))
    statement = (
        "MERGE INTO target t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )

    def run(database: str, step: int) -> list[tuple[int, int]]:
        session = it.connect(spark.newSession())
        session.sql(f"CREATE DATABASE {database} LOCATION '{tmp_path / database}'")
        session.sql(f"USE {database}")
        session.sql("CREATE TABLE target USING indextables AS SELECT id, 0L AS n FROM range(0, 40, 1, 4)")
        session.sql(f"CREATE TEMPORARY VIEW source AS SELECT id * {step} AS id, {step}L AS n FROM range(5)")
        for _ in range(rounds):
            at_once.wait(300)
            session.sql(statement)
        return sorted(map(tuple, session.table("target").collect()))

    try:
        with ThreadPoolExecutor(len(databases)) as threads:
            tables = list(threads.map(run, databases, (1, 11)))
    finally:
        for database in databases:
            spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    for rows, step in zip(tables, (1, 11), strict=True):
        changed = {number * step: rounds * step for number in range(5)}
        assert rows == sorted({**dict.fromkeys(range(40), 0), **changed}.items())
