"""DELETE FROM INDEXTABLES: exactly the rows for which the condition is true go."""

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, DamagedSplitError, PredicateError
from indextables.ops.read.matching import plan_match
from indextables.ops.write.delete import run_delete
from indextables.predicate.build.from_sql import as_node
from support.upkeep import RowTable, fingerprint

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("score", pa.float64())])


def rows(ids, day="1", score=None) -> pa.Table:
    ids = list(ids)
    return pa.table(
        {"id": ids, "day": [day] * len(ids), "score": score or [float(i or 0) for i in ids]}, SCHEMA
    )


@pytest.fixture
def table(tmp_path):
    made = RowTable(tmp_path / "t", SCHEMA, partition_by=("day",))
    made.append(rows(range(10), day="1"))
    made.append(rows(range(10, 20), day="2"))
    made.append(rows(range(20, 30), day="3"))
    return made


def ids(table, version=None):
    return sorted(row["id"] for row in table.rows(version))


def test_whole_splits_leave_the_log_without_being_opened(table):
    for add in table.handle().list_files():
        if add.partition_values["day"] == "2":
            table.damage_rows(add.path)
    result = run_delete(table.handle(), "day = '2'")
    assert (result.status, result.rows_deleted, result.files_removed, result.files_rewritten) == (
        "SUCCESS",
        10,
        1,
        0,
    )
    assert ids(table) == [*range(10), *range(20, 30)]


def test_statistics_can_prove_that_every_row_goes(table):
    result = run_delete(table.handle(), "id >= 20")
    assert (result.rows_deleted, result.files_removed, result.files_rewritten, result.files_added) == (
        10,
        1,
        0,
        0,
    )


def test_without_a_match_nothing_is_written_and_every_count_is_zero(table):
    before = fingerprint(table.root)
    result = run_delete(table.handle(), "id > 1000")
    assert (result.status, result.version, result.message) == ("NO ACTION", 3, "no row matches the condition")
    assert (result.rows_deleted, result.files_removed, result.files_rewritten) == (0, 0, 0)
    assert (result.files_added, result.attempts, result.conflicts) == (0, 0, 0)
    assert fingerprint(table.root) == before


def test_splits_with_some_matching_rows_are_rewritten(table):
    result = run_delete(table.handle(), "id IN (3, 15, 16) OR id > 27")
    assert (result.rows_deleted, result.files_removed, result.files_rewritten, result.files_added) == (
        5,
        0,
        3,
        3,
    )
    assert ids(table) == [i for i in range(30) if i not in {3, 15, 16, 28, 29}]
    assert ids(table, version=3) == list(range(30))
    assert table.handle().latest_version() == 4, "one commit"


def test_rows_for_which_the_condition_is_null_stay(tmp_path):
    """H11: NULL is not true."""
    table = RowTable(tmp_path / "t", SCHEMA)
    table.append(rows([1, None, 3]))
    assert run_delete(table.handle(), "id <> 1").rows_deleted == 1
    assert sorted((row["id"] for row in table.rows()), key=str) == [1, None]


def test_nan_is_above_everything(tmp_path):
    """H11: NaN = NaN and NaN above everything."""
    table = RowTable(tmp_path / "t", SCHEMA)
    table.append(rows([1, 2, 3], score=[1.0, float("nan"), 5.0]))
    assert run_delete(table.handle(), "score > 4").rows_deleted == 2
    assert ids(table) == [1]


def test_a_split_that_only_seemed_to_match_is_left_as_it_is(tmp_path):
    table = RowTable(tmp_path / "t", SCHEMA)
    table.append(rows([1, 9]))
    before = fingerprint(table.root)
    result = run_delete(table.handle(), "id = 5")
    assert (result.status, result.rows_deleted, result.version) == ("NO ACTION", 0, 1)
    assert fingerprint(table.root) == before


def test_a_split_that_turns_out_to_match_wholly_is_not_rewritten(tmp_path):
    table = RowTable(tmp_path / "t", SCHEMA)
    table.append(rows([1, 3], score=[7.0, 7.0]))
    result = run_delete(table.handle(), "score = 7 AND id IN (1, 3)")
    assert (result.rows_deleted, result.files_removed, result.files_added) == (2, 1, 0)
    assert table.rows() == []


def test_true_deletes_everything(table):
    assert run_delete(table.handle(), "true").rows_deleted == 30
    assert table.handle().list_files() == []


def test_the_plan_needs_no_file(table):
    snapshot = table.handle().snapshot()
    plan = plan_match(snapshot, as_node("id >= 15", snapshot.schema, "UTC"))
    assert [add.partition_values["day"] for add in plan.whole] == ["3"]
    assert [add.partition_values["day"] for add in plan.doubtful] == ["2"]


def test_an_unreadable_split_stops_it_before_anything_is_committed(table):
    add = next(add for add in table.handle().list_files() if add.partition_values["day"] == "2")
    table.damage_rows(add.path)
    files = set(table.root.rglob("*.split"))
    with pytest.raises(DamagedSplitError):
        run_delete(table.handle(), "id IN (5, 15)")
    assert table.handle().latest_version() == 3
    assert set(table.root.rglob("*.split")) == files


def test_a_condition_that_cannot_be_understood_is_refused(table):
    with pytest.raises(PredicateError):
        run_delete(table.handle(), "my_function(id) = 3")
    with pytest.raises(PredicateError):
        run_delete(table.handle(), "nosuch = 3")
    assert table.handle().latest_version() == 3


def test_a_split_taken_by_another_writer_is_a_conflict(table):
    """Delete -> error if a source is gone."""
    victim = next(add.path for add in table.handle().list_files() if add.partition_values["day"] == "1")

    def interfere(stage, done, total):
        if done == total:
            table.handle().remove_files([victim])

    files = set(table.root.rglob("*.split"))
    with pytest.raises(ConflictError):
        run_delete(table.handle(), "id = 3", interfere)
    assert set(table.root.rglob("*.split")) == files


def test_rows_appended_meanwhile_stay(table):
    def interfere(stage, done, total):
        if done == total:
            table.handle().add_files(table.write(rows([3], day="9")))

    assert run_delete(table.handle(), "id = 3", interfere).rows_deleted == 1
    assert ids(table) == list(range(30))


def test_a_search_index_survives_the_rewrite(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("message", pa.string())])
    table = RowTable(tmp_path / "t", schema, options={"indexing.typemap.message": "text"})
    table.append(pa.table({"id": [1, 2, 3], "message": ["red fox", "blue fox", "red hen"]}, schema))
    run_delete(table.handle(), "id = 1")
    assert [row["id"] for row in table.found("message:red")] == [3]
