"""DROP INDEXTABLES PARTITIONS: whole partitions leave the table, by their exact values."""

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, PredicateError
from indextables.log.transaction_log import TransactionLog
from indextables.model.actions import AddAction
from indextables.ops.rewrite.drop_partitions import run_drop_partitions
from support.upkeep import StandIn


@pytest.fixture
def table(tmp_path):
    made = StandIn(tmp_path / "t", partition_by=("day",))
    made.add("day=1/a.split", "day=1/b.split", "day=2/c.split", "day=10/d.split")
    return made


def test_the_chosen_partitions_go_and_the_rest_stays(table):
    result = run_drop_partitions(table.handle(), "day = '1'")
    assert (result.status, result.partitions_dropped, result.splits_removed) == ("SUCCESS", 1, 2)
    assert result.total_size_bytes == 2 * len("day=1/a.split")
    assert table.live() == ["day=10/d.split", "day=2/c.split"]
    assert (table.root / "day=1" / "a.split").exists(), "files stay until PURGE"
    assert len(table.live(version=1)) == 4


def test_conditions_are_typed_and_exact(tmp_path):
    """H7: month > 9 over 1..12 -> 10, 11, 12; a null partition only matches IS NULL."""
    schema = pa.schema([("id", pa.int64()), ("month", pa.int32())])
    log = TransactionLog.open(str(tmp_path / "t"))
    log.initialize(schema, ["month"])
    values = [*map(str, range(1, 13)), None]
    log.add_files([AddAction(path=f"m{v}.split", partition_values={"month": v}) for v in values])
    assert run_drop_partitions(log, "month > 9").splits_removed == 3
    assert run_drop_partitions(log, "NOT (month > 2)").splits_removed == 2
    assert run_drop_partitions(log, "month IS NULL").splits_removed == 1
    assert run_drop_partitions(log, "month IN (3, 4) OR month = 5").partitions_dropped == 3
    assert [add.path for add in log.list_files()] == [f"m{v}.split" for v in (6, 7, 8, 9)]


def test_a_condition_on_other_columns_is_refused(table):
    with pytest.raises(PredicateError, match="id cannot be used"):
        run_drop_partitions(table.handle(), "day = '1' AND id = 3")
    assert table.handle().latest_version() == 1


def test_an_unpartitioned_table_says_so(tmp_path):
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    with pytest.raises(PredicateError, match="not partitioned"):
        run_drop_partitions(table.handle(), "day = '1'")
    with pytest.raises(PredicateError, match="not partitioned"):
        run_drop_partitions(table.handle(), "true")


def test_true_drops_every_partition(table):
    result = run_drop_partitions(table.handle(), "true")
    assert (result.partitions_dropped, result.splits_removed) == (3, 4)


def test_no_match_writes_nothing(table):
    result = run_drop_partitions(table.handle(), "day = '7'")
    assert (result.status, result.partitions_dropped, result.splits_removed) == ("NO ACTION", 0, 0)
    assert table.handle().latest_version() == 1


def test_a_split_that_another_writer_took_is_a_conflict(table, monkeypatch):
    """E4: every source must still be live; if one is gone nothing is committed."""
    log = table.handle()
    original = log.commit

    def late(plan):
        table.handle().remove_files(["day=1/a.split"])
        return original(plan)

    monkeypatch.setattr(log, "commit", late)
    with pytest.raises(ConflictError):
        run_drop_partitions(log, "day = '1'")
    assert table.live() == ["day=1/b.split", "day=10/d.split", "day=2/c.split"]


def test_foreign_appends_stay(table, monkeypatch):
    log = table.handle()
    original = log.commit

    def late(plan):
        table.handle().add_files([table.split("day=1/new.split")])
        return original(plan)

    monkeypatch.setattr(log, "commit", late)
    assert run_drop_partitions(log, "day = '1'").splits_removed == 2
    assert "day=1/new.split" in table.live()
