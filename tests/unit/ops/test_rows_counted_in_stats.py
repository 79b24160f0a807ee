"""Adds that count their rows in `stats` alone, as other writers leave them, are counted all the same."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import indextables as it
from indextables.ops.rewrite.replace import replace_plan

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.fixture
def table(tmp_path):
    """A split of three rows per day; those of days 1 and 2 count them in `stats`, that of day 3 nowhere."""
    made = it.Table.create(tmp_path / "t", SCHEMA, partition_by=("day",))
    for day in ("1", "2", "3"):
        made.append(pa.table({"id": [1, 2, 3], "day": [day] * 3}, SCHEMA))
    log = made._log
    log.add_files(
        [
            replace(
                add,
                num_records=None,
                stats=None if add.partition_values == {"day": "3"} else '{"numRecords": 3}',
            )
            for add in log.list_files()
        ]
    )
    return it.Table.open(made.uri)


def split_of(table, day):
    (add,) = [add for add in table._log.list_files() if add.partition_values == {"day": day}]
    return Path(table.uri.removeprefix("file://")) / add.path


def test_a_count_opens_only_the_splits_that_nothing_is_said_of(table):
    split_of(table, "1").unlink()
    assert table.count() == 9


def test_a_delete_says_how_many_rows_left_with_whole_splits(table):
    assert table.delete("day IN ('1', '2')").rows_deleted == 6
    assert table.delete("day = '3'").rows_deleted is None


def test_the_history_of_rewritten_rows_counts_those_that_were_read(table):
    adds = {add.partition_values["day"]: add for add in table._log.list_files()}
    snapshot = table._log.snapshot()
    assert replace_plan(snapshot, "UPDATE", [adds["1"], adds["2"]], []).metrics["numReadRows"] == 6
    assert "numReadRows" not in replace_plan(snapshot, "UPDATE", [adds["1"], adds["3"]], []).metrics
