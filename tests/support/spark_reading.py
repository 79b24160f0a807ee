"""The read suite: one set of questions, asked over every way rows can reach Spark.

Run as a program it builds the table and asks the questions in a session of its
own: `python -m support.spark_reading connect|cluster DIRECTORY`, which prints
the answers as JSON. Two kinds of session do not live in one process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import indextables as it
from support.patched import call_for_others, call_for_ours, differing, patched

SCHEMA = pa.schema(
    [("id", pa.int64()), ("message", pa.string()), ("p", pa.string()), ("n", pa.struct([("a", pa.int32())]))]
)
PARTITIONS = ["a", "b", None, "100%25", "a b"]

QUESTIONS: dict[str, Callable[[Any], list[Any]]] = {
    "all": lambda df: sorted(row.id for row in df.collect()),
    "columns": lambda df: df.columns,
    "partition": lambda df: sorted(row.id for row in df.filter("p = '100%25'").collect()),
    "null": lambda df: sorted(row.id for row in df.filter("p IS NULL").select("id").collect()),
    "range": lambda df: sorted(row.message for row in df.filter("id BETWEEN 8 AND 11").collect()),
    "nested": lambda df: sorted(row.id for row in df.filter("n.a = 3").collect()),
    "sum": lambda df: [df.groupBy().sum("id").first()[0]],
    "counts": lambda df: sorted([str(row.p), row["count"]] for row in df.groupBy("p").count().collect()),
    "join": lambda df: [df.alias("x").join(df.alias("y"), "id").count()],
}

SEARCHES = [
    "SELECT id FROM indextables.`{path}` WHERE message indexquery 'seven'",
    "SELECT id FROM indextables.`{path}` WHERE message indexquery 'seven' OR id = 1",
    "SELECT id FROM indextables.`{path}` VERSION AS OF 1 WHERE NOT message indexquery 'seven'",
]


def build(path: str) -> None:
    """Forty rows in two versions; every seventh row says so."""
    table = it.Table.create(path, SCHEMA, partition_by=["p"], options={"indexing.typemap.message": "text"})
    for start in (0, 20):
        ids = list(range(start, start + 20))
        table.append(
            pa.table(
                {
                    "id": ids,
                    "message": [f"row {i}" + (" seven" if i % 7 == 0 else "") for i in ids],
                    "p": [PARTITIONS[i % 5] for i in ids],
                    "n": [{"a": i % 4} for i in ids],
                },
                schema=SCHEMA,
            )
        )


def answers(frame: Any) -> dict[str, Any]:
    """What a DataFrame over the table says to every question."""
    return {name: question(frame) for name, question in QUESTIONS.items()}


def expected() -> dict[str, Any]:
    """What it has to say."""
    ids = range(40)
    return {
        "all": list(ids),
        "columns": ["id", "message", "p", "n"],
        "partition": [i for i in ids if i % 5 == 3],
        "null": [i for i in ids if i % 5 == 2],
        "range": ["row 10", "row 11", "row 8", "row 9"],
        "nested": [i for i in ids if i % 4 == 3],
        "sum": [sum(ids)],
        "counts": sorted([str(p), 8] for p in PARTITIONS),
        "join": [40],
    }


def searched(spark: Any, path: str) -> list[list[int]]:
    """What the searches find."""
    return [sorted(row.id for row in spark.sql(text.format(path=path)).collect()) for text in SEARCHES]


def expected_searches() -> list[list[int]]:
    """What they have to find."""
    sevens = [i for i in range(40) if i % 7 == 0]
    return [sevens, sorted({*sevens, 1}), [i for i in range(20) if i % 7]]


GONE = {3, 7, 21}


def without_some(spark: Any, path: str) -> dict[str, Any]:
    """What every way has after rows are deleted by vectors: reads, searches alone and searches beside a condition."""
    table = it.Table.open(path)
    table.delete(f"id IN ({', '.join(map(str, GONE))})")
    frame = spark.read.format("indextables").load(path)
    marked = table.files(columns=["dv"])["dv"]
    return {
        "vectors": len(marked) - marked.null_count,
        "rows": sorted(row.id for row in frame.collect()),
        "count": frame.count(),
        "searches": searched(spark, path),
        "search_df": sorted(
            row.id for row in it.Table.open(path, spark=spark).search_df("seven", columns=["id"]).collect()
        ),
    }


def expected_without_some() -> dict[str, Any]:
    """What they have to have."""
    first, second, older = expected_searches()
    live = [i for i in range(40) if i not in GONE]
    found = [i for i in first if i not in GONE]
    searches = [found, [i for i in second if i not in GONE], older]
    return {"vectors": 3, "rows": live, "count": len(live), "searches": searches, "search_df": found}


def _session(kind: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "2"
    )
    if kind == "connect":
        return builder.remote("local[2]").getOrCreate()
    return builder.master("local-cluster[2,1,1024]").config("spark.driver.host", "127.0.0.1").getOrCreate()


def main(kind: str, directory: str) -> None:
    """Ask everything in a session of its own."""
    path = os.path.join(directory, "t")
    build(path)
    spark = it.connect(_session(kind))
    try:
        frame = spark.read.format("indextables").load(path)
        said: dict[str, Any] = {"answers": answers(frame), "searches": searched(spark, path)}
        target = os.path.join(directory, "written")
        frame.filter("id < 10").write.format("indextables").partitionBy("p").save(target)
        frame.filter("id >= 30").write.format("indextables").mode("append").save(target)
        said["written"] = sorted(row.id for row in spark.read.format("indextables").load(target).collect())
        spark.sql(f"CREATE TEMPORARY VIEW v USING indextables OPTIONS (path '{target}')")
        spark.sql("INSERT INTO v SELECT 99, 'x', 'a', NULL")
        said["inserted"] = spark.sql("SELECT count(*) FROM v").first()[0]
        found = it.Table.open(path, spark=spark).search_df("seven", where="id > 20", columns=["id"])
        said["search_df"] = sorted(row.id for row in found.collect())
        said["live"] = without_some(spark, path)
        if kind == "connect":
            said["wrapped"], said["differing"] = list(patched(spark)), differing(spark)
            call_for_ours(spark, os.path.join(directory, "ours"))
            said["others"] = call_for_others(spark, os.path.join(directory, "others"))
        try:
            spark.read.format("indextables").load(target + "x")
        except Exception as error:
            said["error"] = type(error).__name__
    finally:
        spark.stop()
    sys.stdout.write("\n" + json.dumps(said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
