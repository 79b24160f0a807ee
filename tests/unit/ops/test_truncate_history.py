"""TRUNCATE INDEXTABLES TIME TRAVEL: the newest version stays, alone and whole."""

import pytest

from indextables.errors import VersionNotFoundError
from indextables.model.actions import TxnAction
from indextables.ops.maintain.truncate_history import run_truncate
from support.upkeep import StandIn, fingerprint


@pytest.fixture
def table(tmp_path):
    made = StandIn(tmp_path / "t")
    made.add("a.split")
    made.log.checkpoint()
    made.add("b.split")
    made.log.remove_files(["a.split"])
    return made


def test_older_versions_go_and_the_newest_stays(table):
    result = run_truncate(table.handle())
    assert (result.status, result.version, result.versions_deleted, result.checkpoints_deleted) == (
        "SUCCESS",
        3,
        3,
        1,
    )
    assert table.live() == ["b.split"]
    assert table.handle().versions() == [3]
    names = sorted(file.name for file in table.log_dir.iterdir())
    fences = [f"{number:020}.json" for number in range(3)]
    kept = [f"{3:020}.checkpoint.json", f"{3:020}.floor", f"{3:020}.json", "_last_checkpoint"]
    assert names == [*fences, *kept]
    with pytest.raises(VersionNotFoundError):
        table.handle().snapshot(version=1)


def test_the_table_takes_commits_afterwards(table):
    """D4: schema, protocol and all files still known; appends work."""
    run_truncate(table.handle())
    table.log = table.handle()
    assert table.add("c.split") == 4
    assert table.live() == ["b.split", "c.split"]


def test_cooldown_and_transactions_survive(table):
    """E9, E10: cooldown, skipCount and the newest txn survive TRUNCATE TIME TRAVEL."""
    table.log.record_skipped_file("b.split", "bad", "merge")
    table.log.record_skipped_file("b.split", "bad", "merge")
    table.log.add_files([table.split("d.split")], txn=TxnAction(app_id="app", version=3))
    run_truncate(table.handle())
    log = table.handle()
    assert log.skipped_files()[0].skip_count == 2
    assert log.is_in_cooldown("b.split")
    assert log.snapshot().txns["app"].version == 3


def test_a_dry_run_changes_nothing(table):
    before = fingerprint(table.root)
    result = run_truncate(table.handle(), dry_run=True)
    assert fingerprint(table.root) == before
    assert (result.status, result.versions_deleted, result.bytes_deleted) == ("DRY RUN", 3, 0)


def test_a_second_time_there_is_nothing_to_do(table):
    run_truncate(table.handle())
    before = fingerprint(table.root)
    result = run_truncate(table.handle())
    assert (result.status, result.versions_deleted) == ("NO ACTION", 0)
    assert fingerprint(table.root) == before


def test_a_damaged_old_version_is_no_obstacle(table):
    """The newest version rests on a checkpoint, so what is torn below it only has to go."""
    table.log.checkpoint()
    live = table.live()
    torn = table.log_dir / f"{1:020}.json"
    torn.write_bytes(torn.read_bytes()[:30])
    assert run_truncate(table.handle()).status == "SUCCESS"
    assert table.live() == live
    assert len(table.handle().versions()) == 1
