"""The journeys of a Spark read, a statement of ours and MERGE INTO on the architecture page are those that Spark takes."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa

import indextables as it
from indextables.spark.bridge.request import JvmRequest
from indextables.spark.bridge.statements import run_statement, statement
from indextables.spark.read.planner import TablePlanner
from indextables.spark.read.relation import planner_callback
from support.journeys import PAGE, called, is_walked, steps
from support.spark_versions import needs

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


def test_a_statement_of_ours_goes_the_way_of_the_page(spark, tmp_path):
    table = it.Table.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    request = JvmRequest(spark, {"text": f"CHECKPOINT INDEXTABLES '{table.uri}'"}, {})

    def parse_and_run() -> None:
        # The JVM asks in threads of its own; here the same questions are asked in this one.
        statement(request)
        run_statement(request)

    assert is_walked(steps("a statement of ours"), called(parse_and_run)) is None
    assert request.objects["rows"].count() == 1


@needs("the steps of MERGE INTO in the order of the architecture page")
def test_merge_into_goes_the_way_of_the_page():
    """In a process that traces from its start: Spark calls Python in threads that a session starts once."""
    script = PAGE.parents[1] / "scripts" / "journeys.py"
    command = [sys.executable, str(script), "merge", "--functions"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    trace = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert is_walked(steps("MERGE INTO"), trace) is None
