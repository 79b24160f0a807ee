"""A search through Spark of a table in an object store asks the store for what its answer needs."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import indextables as it
from indextables.split.open_splits import forget_splits
from support.servers import ObjectServer, lossy_proxy, s3_server  # noqa: F401

SPLITS, ROWS = 40, 5
SCHEMA = pa.schema([("n", pa.int64()), ("message", pa.string())])


class Asked:
    """Remembers what a proxy was asked for, and loses nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.gets: list[str] = []

    def __call__(self, method: str, path: str) -> None:
        with self._lock:
            if method == "GET":
                self.gets.append(path.split("?")[0])

    def splits(self) -> list[str]:
        return [path for path in self.gets if path.endswith(".split")]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("message indexquery 'id7919'", [1]),
        ("message indexquery 'answered' AND n = 1", [1]),
        ("t.n < 5 AND (message indexquery 'id7919' OR t.n = 2)", [1, 2]),
    ],
)
def test_a_statement_that_one_split_answers_opens_that_split_and_no_other(
    spark: SparkSession,
    s3_server: ObjectServer,  # noqa: F811
    condition: str,
    rows: list[int],
) -> None:
    uri = f"{s3_server.root}/many-splits-{len(condition)}"
    options = {
        "indexing.typemap.message": "text",
        "indexFilters.enabled": "true",
        "write.maxRowsPerSplit": str(ROWS),
        "checkpoint.enabled": "false",
    }
    table = it.Table.create(uri, SCHEMA, options={**s3_server.options, **options})
    numbers = range(SPLITS * ROWS)
    lines = [f"request {number} of id{number * 7919} answered" for number in numbers]
    table.append(pa.table({"n": numbers, "message": lines}, SCHEMA))
    table.checkpoint()
    assert len(table.files()) == SPLITS
    # The filters of the write above were made from indexes that are still open.
    forget_splits()
    asked = Asked()
    with lossy_proxy(s3_server.endpoint, asked) as proxy:
        reached = s3_server.through(proxy).options
        for key, value in reached.items():
            spark.conf.set(f"spark.indextables.{key}", value)
        try:
            found = spark.sql(f"SELECT n FROM indextables.`{uri}` AS t WHERE {condition}").collect()
        finally:
            for key in reached:
                spark.conf.unset(f"spark.indextables.{key}")
    assert sorted(row.n for row in found) == rows
    opened = set(asked.splits())
    assert 1 <= len(opened) <= 3  # a filter may be wrong about a split now and then
    assert len(asked.gets) <= 8 + 3 * len(opened)
