"""RESTORE INDEXTABLES: an older version becomes the newest, by one commit on top."""

from dataclasses import replace

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, MissingSplitError, VersionNotFoundError
from indextables.log.commit.attempt import CommitPlan, Rule
from indextables.log.commit.changes import removals
from indextables.model.actions import AddAction, TxnAction
from indextables.ops.rewrite.restore import plan_restore, run_restore
from support.upkeep import StandIn


@pytest.fixture
def table(tmp_path):
    made = StandIn(tmp_path / "t")
    made.add("a.split", "b.split")
    made.log.overwrite_files([made.split("c.split")])
    return made


def test_the_plan_is_the_difference():
    a, b, c = (AddAction(path=name) for name in "abc")
    changed = AddAction(path="b", size=5)
    assert plan_restore([b, c], [a, changed]) == ([a, changed], [c])
    assert plan_restore([a], [a]) == ([], [])


def test_the_old_files_are_live_again_and_history_stays(table):
    """A13: the restored version equals the state a writer saw then."""
    before = table.handle().snapshot(version=1).adds()
    result = run_restore(table.handle(), 1)
    assert (result.status, result.restored_version, result.version) == ("SUCCESS", 1, 3)
    assert (result.files_added, result.files_removed) == (2, 1)
    assert table.handle().list_files() == before
    assert table.live(version=2) == ["c.split"]


def test_restoring_a_merged_state_says_that_data_changed(table):
    merged = AddAction(path="m.split", data_change=False, size=1)
    assert plan_restore([], [merged])[0] == [AddAction(path="m.split", data_change=True, size=1)]
    assert plan_restore([AddAction(path="m.split", size=1)], [merged]) == ([], [])


def test_restoring_can_be_undone(table):
    run_restore(table.handle(), 1)
    run_restore(table.handle(), 2)
    assert table.live() == ["c.split"]


def test_properties_are_restored_too(table):
    table.log.update_properties({"owner": "later"})
    run_restore(table.handle(), 1)
    assert "owner" not in table.handle().metadata().configuration


def test_restoring_the_newest_version_writes_nothing(table):
    result = run_restore(table.handle(), 2)
    assert (result.status, result.version) == ("NO ACTION", 2)
    assert table.handle().latest_version() == 2


def test_a_missing_file_stops_it_before_anything_is_committed(table):
    (table.root / "a.split").unlink()
    with pytest.raises(MissingSplitError, match=r"a\.split"):
        run_restore(table.handle(), 1)
    assert table.handle().latest_version() == 2


def test_of_many_missing_files_three_are_named(table):
    table.add(*(f"{name}.split" for name in "defgh"))
    table.log.overwrite_files([])
    for name in "defgh":
        (table.root / f"{name}.split").unlink()
    with pytest.raises(
        MissingSplitError, match=r"5 of its files are gone \(\w\.split, \w\.split, \w\.split\)\."
    ):
        run_restore(table.handle(), 3)


def test_a_version_that_is_not_there_is_an_error_with_the_range(table):
    with pytest.raises(VersionNotFoundError, match="0-2"):
        run_restore(table.handle(), 9)


def test_what_applications_recorded_is_kept(table):
    """E10: a batch committed again after RESTORE writes nothing."""
    table.log.add_files([table.split("d.split")], txn=TxnAction(app_id="app", version=5))
    run_restore(table.handle(), 1)
    log = table.handle()
    current = log.latest_version()
    assert log.add_files([table.split("e.split")], txn=TxnAction(app_id="app", version=5)) == current
    assert table.live() == ["a.split", "b.split"]


def test_a_foreign_change_meanwhile_is_a_conflict(table):
    """Restore -> error on any foreign data or metadata change."""
    other = table.handle()

    def interfere(stage, done, total):
        if done == 0:
            other.add_files([table.split("x.split")])

    with pytest.raises(ConflictError):
        run_restore(table.handle(), 1, interfere)
    assert table.live() == ["c.split", "x.split"]


def test_the_result_has_the_columns_of_the_command(table):
    schema = run_restore(table.handle(), 1).to_arrow().schema
    assert schema.names == [
        "table_path", "status", "restored_version", "version", "files_added", "files_removed", "message",
    ]  # fmt: skip
    assert schema.field("version").type == pa.int64()


def test_a_merge_meanwhile_is_a_conflict_and_no_row_is_there_twice(table):
    """A merge changes no row and every file: what was to be removed is there under another name."""
    other = table.handle()

    def interfere(stage, done, total):
        if done == 0:
            merged = replace(table.split("merged.split"), data_change=False)

            def build(base):
                return [*removals(base, base.adds(), data_change=False), merged]

            live = frozenset(table.live())
            other.commit(CommitPlan("MERGE SPLITS", Rule.MERGE, build, sources=live))

    with pytest.raises(ConflictError, match="nothing was committed"):
        run_restore(table.handle(), 1, interfere)
    assert table.live() == ["merged.split"]


def test_what_a_restore_removes_is_worked_out_on_the_version_it_follows(table):
    """A skip by another writer is no conflict, and the restore lands on top of it."""
    other = table.handle()

    def interfere(stage, done, total):
        if done == 0:
            other.record_skipped_file("c.split", "odd", "merge")

    done = run_restore(table.handle(), 1, interfere)
    assert table.live() == paths_at(table, 1)
    assert done.status == "SUCCESS"


def paths_at(table, version):
    return sorted(add.path for add in table.handle().snapshot(version=version).adds())
