"""DESCRIBE INDEXTABLES: what the log says about a table, as rows."""

import json

import pyarrow as pa
import pytest

from indextables.ops.maintain.checkpoint import run_checkpoint
from indextables.ops.maintain.describe import describe_state, log_rows, metrics_text, skipped_rows
from support.upkeep import SCHEMA, HandClock, StandIn


@pytest.fixture
def table(tmp_path):
    made = StandIn(tmp_path / "t", partition_by=("day",), clock=HandClock())
    made.add("day=1/a.split", "day=2/b.split")
    made.log.checkpoint()
    made.log.remove_files(["day=1/a.split"])
    return made


def test_the_state_is_one_row_of_facts(table):
    described = describe_state(table.handle())
    (row,) = described.to_arrow().to_pylist()
    assert (row["version"], row["num_files"], row["num_rows"], row["size_bytes"]) == (
        2,
        1,
        1,
        len("day=2/b.split"),
    )
    assert row["table_path"] == table.root.as_uri()
    assert (row["partition_columns"], row["protocol"], row["provider"]) == (["day"], "2/2", "indextables")
    assert (row["checkpoint_version"], row["versions_available"]) == (1, "0-2")
    assert [column.name for column in described.columns] == SCHEMA.names
    assert [column.partition for column in described.columns] == [False, True, False]


def test_the_state_of_an_older_version_can_be_described(table):
    log = table.handle()
    assert describe_state(log, log.snapshot(version=1)).num_files == 2


def test_the_log_is_one_row_per_action_since_the_checkpoint(table):
    rows = log_rows(table.handle()).to_pylist()
    assert [(row["version"], row["action"], row["path"]) for row in rows] == [
        (1, "protocol", None),
        (1, "metaData", None),
        (1, "add", "day=1/a.split"),
        (1, "add", "day=2/b.split"),
        (2, "remove", "day=1/a.split"),
        (2, "commitInfo", None),
    ]
    assert rows[0]["log_file"] == f"{1:020}.checkpoint.json"
    assert json.loads(rows[2]["content"])["add"]["partitionValues"] == {"day": "1"}
    assert rows[2]["partition_values"] == [("day", "1")]


def test_include_all_reads_every_version_file(table):
    rows = log_rows(table.handle(), include_all=True).to_pylist()
    assert [row["version"] for row in rows] == [0, 0, 1, 1, 1, 2, 2]


def test_skipped_files_show_reason_count_and_cooldown(table):
    """E8: skipCount and retryAfter as recorded."""
    table.log.record_skipped_file("day=2/b.split", "torn", "merge", cooldown_hours=1)
    table.log.record_skipped_file("day=2/b.split", "torn", "merge", cooldown_hours=2)
    (row,) = skipped_rows(table.handle()).to_pylist()
    assert (row["path"], row["reason"], row["skip_count"], row["in_cooldown"]) == (
        "day=2/b.split",
        "torn",
        2,
        True,
    )
    assert (row["retry_after"] - row["skipped_at"]).total_seconds() == 7200
    table.clock.pass_hours(3)
    assert not skipped_rows(table.handle()).to_pylist()[0]["in_cooldown"]


def test_nothing_skipped_is_no_row_with_the_same_columns(table):
    empty = skipped_rows(table.handle())
    assert empty.num_rows == 0
    assert empty.schema.field("skip_count").type == pa.int32()


def test_a_checkpoint_says_what_it_holds(table):
    result = run_checkpoint(table.handle())
    assert (result.status, result.checkpoint_version, result.num_files) == ("SUCCESS", 2, 1)
    assert result.size_bytes > 0
    assert (table.log_dir / f"{2:020}.checkpoint.json").exists()


def test_the_log_of_another_container_is_described_and_repaired_but_its_rows_are_refused(tmp_path):
    """A table of the JVM system is refused for reading rows; REPAIR and DESCRIBE still work on its log."""
    import dataclasses

    import indextables as it
    from indextables.errors import TableError
    from indextables.log.commit.conflicts import CommitPlan, Rule

    table = StandIn(tmp_path / "t")
    table.add("a.split", "b.split")
    other = dataclasses.replace(table.log.metadata(), format={"provider": "indextables", "options": {}})
    table.log.commit(CommitPlan("FORMAT", Rule.EXCLUSIVE, lambda _: [other]))
    path = str(table.root)
    assert it.sql(f"DESCRIBE INDEXTABLES STATE '{path}'")["num_files"].to_pylist() == [2]
    assert log_rows(table.handle()).num_rows > 0
    assert it.repair_log(str(table.log_dir), f"{path}/_new").status == "SUCCESS"
    for statement in (f"MERGE SPLITS '{path}'", f"DELETE FROM INDEXTABLES '{path}' WHERE id = 1"):
        with pytest.raises(TableError, match="not in Parquet"):
            it.sql(statement)


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({"numAddedFiles": "2", "numRemovedFiles": "1", "numOutputRows": "0"}, "+2 files, -1 file"),
        ({"numUpdatedRows": "1", "numInsertedRows": "3"}, "1 row updated, 3 rows inserted"),
        ({"numFiles": "1", "numOutputRows": "12", "numOutputBytes": "4001"}, "+1 file, 12 rows written"),
        ({"executionTimeMs": "1419", "numDeletedRows": "1"}, "1 row deleted"),
        (
            {"num_added_files": "1", "num_added_rows": "5", "execution_time_ms": "7"},
            "+1 file, 5 rows written",
        ),
        ({"numWonders": "7"}, "numWonders 7"),
    ],
)
def test_what_a_version_changed_is_told_in_few_words(metrics, text):
    """Our own metrics, those of Delta on Spark and those of delta-rs."""
    assert metrics_text(metrics.items()) == text
