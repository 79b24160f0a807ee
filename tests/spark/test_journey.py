"""The journey of a Spark read on the architecture page is the one that a read takes."""

from __future__ import annotations

import json

import pyarrow as pa

import indextables as it
from indextables.spark.read.planner import TablePlanner
from indextables.spark.read.relation import planner_callback
from support.journeys import called, is_walked, steps

FILTER = {
    "node": "GreaterThan",
    "type": "boolean",
    "children": [
        {"node": "column", "path": ["id"], "type": "bigint"},
        {"node": "literal", "type": "bigint", "value": 1},
    ],
}


def test_a_spark_read_goes_the_way_of_the_page(spark, tmp_path):
    table = it.Table.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    snapshot = it.TransactionLog.open(table.uri).snapshot()
    journey = steps("a Spark read")
    cut = journey.index("spark.read.planner.TablePlanner.plan")

    def load() -> None:
        it.connect(spark).read.format("indextables").load(table.uri)

    assert is_walked(journey[:cut], called(load)) is None
    # The JVM asks in a thread of its own; here the same question is asked in this one.
    planner = TablePlanner(spark, table.uri, snapshot.table_id, snapshot.version, {})
    asked = json.dumps({"token": "t", "call": "plan", "filters": [FILTER]})
    assert is_walked(journey[cut:], called(lambda: planner_callback(planner, "t").apply(asked))) is None
