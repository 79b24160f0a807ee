"""Rows deleted by a vector: what the log says of them, and what every other verb does with such splits."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import ConflictError, CorruptLogError, SplitError
from indextables.log.commit.changes import removals
from indextables.log.commit.conflicts import CommitPlan, Rule
from indextables.log.format.protocol import DELETION_VECTORS
from indextables.model.actions import AddAction, RemoveAction
from indextables.report import facts_of
from indextables.split.open_splits import forget_splits
from indextables.split.read.hidden_rows import hidden_among, without
from indextables.storage.deletion_vectors import INLINE_BYTES, decode_bitmap, encode_bitmap, write_vectors
from support.racing import Racing

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string())])
OPTIONS = {"indexing.typemap.message": "text", "deletionVectors.enabled": "true"}
MANY = 40_000
"""Rows of which every tenth is too many for a vector inside the log."""


def rows(first, count):
    return pa.table(
        {"id": range(first, first + count), "message": [f"line {n % 7}" for n in range(count)]}, SCHEMA
    )


@pytest.fixture
def table(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    made.append(rows(0, 100))
    made.update_properties({"deletionVectors.enabled": "true"})
    return made


def ids(table, where=None):
    return sorted(table.scan(where).to_arrow()["id"].to_pylist())


def vector_files(tmp_path):
    return sorted(path.name for path in (tmp_path / "t").glob("deletion_vector_*.bin"))


@pytest.mark.parametrize("numbers", [[0], [5, 6, 7], range(0, 200_000, 3), [0, 70_000, 5_000_000_000]])
def test_a_bitmap_is_read_back_as_it_was_written(numbers):
    positions = np.array(numbers, np.int64)
    assert decode_bitmap(encode_bitmap(positions), name="x").to_pylist() == list(numbers)


@pytest.mark.parametrize("seed", range(20))
def test_hidden_rows_are_found_among_few_and_many(seed):
    rng = np.random.default_rng(seed)
    rows, hidden = (
        np.sort(rng.choice(300, rng.choice([0, 1, 7, 290]), replace=False)).astype(kind)
        for kind in (rng.choice([np.uint32, np.int64]), np.int64)
    )
    gone = set(hidden.tolist())
    assert without(rows, hidden).tolist() == [row for row in rows.tolist() if row not in gone]
    assert rows[hidden_among(rows, hidden)].tolist() == [row for row in rows.tolist() if row in gone]


def test_a_delete_writes_no_split_and_names_the_rows(table):
    before = table.files()["path"].to_pylist()
    done = table.delete("id % 10 = 3")
    assert (done.rows_deleted, done.files_rewritten, done.files_added) == (10, 0, 0)
    after = table.files()
    assert after["path"].to_pylist() == before
    assert (after["num_records"].to_pylist(), after["num_deleted"].to_pylist()) == ([100], [10])
    assert after["dv"][0].as_py().startswith("i")
    assert ids(table) == [n for n in range(100) if n % 10 != 3]
    assert table.count() == len(table) == 90


def test_files_warn_once_that_others_would_read_deleted_rows(table, caplog):
    table.files()
    assert not caplog.records
    table.delete("id = 3")
    table.files(columns=["path"])
    facts_of(table)
    assert not caplog.records
    table.files()
    table.files()
    (warned,) = caplog.records
    assert "rows that are deleted" in warned.message
    assert "scan()" in warned.message


def test_an_option_of_the_first_write_is_a_property_of_the_table(tmp_path):
    it.write(tmp_path / "w", rows(0, 10), options={"deletionVectors.enabled": True})
    assert it.open(tmp_path / "w").delete("id = 3").files_added == 0
    assert it.open(tmp_path / "w").files()["num_deleted"].to_pylist() == [1]


def test_the_first_vector_raises_the_protocol(table):
    assert DELETION_VECTORS not in (table.protocol.reader_features or ())
    table.delete("id = 3")
    assert DELETION_VECTORS in table.protocol.reader_features
    assert DELETION_VECTORS in table.protocol.writer_features
    assert (table.protocol.min_reader_version, table.protocol.min_writer_version) == (3, 3)


def test_a_table_without_the_property_is_rewritten_as_before(tmp_path):
    plain = it.Table.create(tmp_path / "t", SCHEMA, options={"deletionVectors.enabled": "false"})
    plain.append(rows(0, 100))
    assert plain.delete("id = 3").files_rewritten == 1
    assert plain.files()["dv"].to_pylist() == [None]
    assert DELETION_VECTORS not in (plain.protocol.reader_features or ())


def test_the_commit_removes_and_adds_the_same_file(table):
    table.delete("id = 3")
    table.delete("id = 4")
    removed, added = (
        next(action for action in table.log.read_version(table.version) if isinstance(action, kind))
        for kind in (RemoveAction, AddAction)
    )
    assert removed.path == added.path
    assert (removed.deletion_vector["cardinality"], added.deletion_vector["cardinality"]) == (1, 2)


def test_large_vectors_of_one_commit_share_a_file(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    made.append(rows(0, MANY))
    made.append(rows(MANY, MANY))
    made.update_properties({"deletionVectors.enabled": "true"})
    made.delete("id % 10 = 0")
    assert len(vector_files(tmp_path)) == 1
    sizes = [add.deletion_vector["sizeInBytes"] for add in made.log.snapshot().adds()]
    assert min(sizes) > INLINE_BYTES
    forget_splits()
    assert it.open(tmp_path / "t").count("id >= 0") == 2 * MANY * 9 // 10


def test_a_split_that_loses_all_rows_leaves(table):
    table.append(rows(100, 10))
    table.delete("id >= 95 AND id < 100")
    assert table.delete("id >= 100 OR id % 2 = 0").rows_deleted == 10 + 48
    assert ids(table) == [n for n in range(95) if n % 2]
    table.delete("id >= 0")
    assert table.files().num_rows == 0


def test_a_split_with_few_rows_left_is_written_anew(table):
    table.delete("id < 20")
    assert table.files()["num_deleted"].to_pylist() == [20]
    done = table.delete("id < 50")
    assert (done.files_rewritten, done.files_added) == (1, 1)
    assert table.files()["num_deleted"].to_pylist() == [None]
    assert ids(table) == list(range(50, 100))


def test_update_and_merge_of_a_split_with_deleted_rows_leave_them_gone(table):
    table.delete("id < 10")
    assert table.update("id < 12", {"message": "new"}).rows_updated == 2
    assert table.update("id < 70", {"message": "newer"}).files_removed == 2
    assert ids(table) == list(range(10, 100))
    table.delete("id = 50")
    done = table.merge(pa.table({"id": [50, 51, 5], "message": ["a", "b", "c"]}, SCHEMA), on="id")
    assert (done.rows_updated, done.rows_inserted) == (1, 2)
    assert ids(table) == [5, *range(10, 100)]


def test_merge_splits_drops_the_deleted_rows(table):
    table.delete("id < 10")
    table.merge_splits()
    assert table.files()["num_deleted"].to_pylist() == [None]
    assert table.files()["num_records"].to_pylist() == [90]
    assert ids(table) == list(range(10, 100))
    assert table.count(query="line") == 90


def test_older_versions_and_restore_have_their_own_rows(table, tmp_path):
    whole = table.version
    table.delete("id < 10")
    some = table.version
    table.delete("id < 20")
    assert ids(it.open(tmp_path / "t", version=whole)) == list(range(100))
    assert ids(it.open(tmp_path / "t", version=some)) == list(range(10, 100))
    table.restore(some)
    assert ids(table) == list(range(10, 100))
    table.restore(whole)
    assert ids(table) == list(range(100))
    table.restore(some)
    assert ids(table) == list(range(10, 100))


def test_a_restored_vector_brings_no_row_to_a_follower(table):
    from indextables.ops.read.follow import Follower

    whole = table.version
    table.delete("id < 10")
    follower = Follower(table.log)
    table.restore(whole)
    table.append(rows(500, 1))
    assert [row["id"] for part in follower.poll() for row in part.to_pylist()] == [500]


def test_checkpoints_of_both_formats_keep_vectors(table, tmp_path):
    table.delete("id < 10")
    for form in ("json", "parquet"):
        it.open(tmp_path / "t", options={"checkpoint.format": form}).checkpoint()
        for optimized in ("true", "false"):
            again = it.open(tmp_path / "t", options={"transaction.useOptimized": optimized})
            assert again.files()["num_deleted"].to_pylist() == [10]
            assert again.count() == 90
            assert ids(again) == list(range(10, 100))
        table.append(rows(1000, 1))
        table.delete("id = 1000")


def test_purge_keeps_the_files_of_live_vectors_and_takes_the_others(tmp_path):
    made = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    made.append(rows(0, MANY))
    made.update_properties({"deletionVectors.enabled": "true", "purge.retentionCheckEnabled": "false"})
    made.delete("id % 10 = 0")
    made.delete("id % 10 = 1")
    assert len(vector_files(tmp_path)) == 2
    made.purge(older_than_hours=0)
    assert len(vector_files(tmp_path)) == 2, "an older version has it"
    made.truncate_history()
    made.purge(older_than_hours=0)
    assert len(vector_files(tmp_path)) == 1
    forget_splits()
    assert it.open(tmp_path / "t").count("id >= 0") == MANY * 8 // 10


@pytest.fixture
def stored(tmp_path):
    """A table whose one vector is a file."""
    made = it.Table.create(tmp_path / "t", SCHEMA, options=OPTIONS)
    made.append(rows(0, MANY))
    made.update_properties({"deletionVectors.enabled": "true"})
    made.delete("id % 10 = 0")
    forget_splits()
    (name,) = vector_files(tmp_path)
    return tmp_path / "t", tmp_path / "t" / name


READS = {
    "scan": lambda table: table.scan().to_arrow(),
    "filter": lambda table: table.count("id > 3"),
    "search": lambda table: table.count(query="line"),
    "rows found": lambda table: table.search("line", limit=1).to_arrow(),
    "best": lambda table: table.search("line", score=True, limit=1).to_arrow(),
    "sample": lambda table: table.sample(3),
    "facets": lambda table: table.facets("message"),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update("id = 1", {"message": "new"}),
}


@pytest.mark.parametrize("read", READS)
def test_a_missing_vector_is_an_error_that_names_its_split(stored, read):
    root, file = stored
    file.unlink()
    with pytest.raises(SplitError, match="the deletion vector of .*split does not exist"):
        READS[read](it.open(root))


@pytest.mark.parametrize("read", READS)
def test_a_damaged_vector_is_an_error_that_names_it(stored, read):
    root, file = stored
    body = bytearray(file.read_bytes())
    body[100] ^= 1
    file.write_bytes(body)
    with pytest.raises((CorruptLogError, SplitError), match=f"{file.name} is damaged"):
        READS[read](it.open(root))


def test_merge_splits_leaves_a_split_alone_whose_vector_is_gone(stored):
    root, file = stored
    file.unlink()
    table = it.open(root)
    assert table.merge_splits().skipped_files == 1
    assert table.files()["num_deleted"].to_pylist() == [MANY // 10]


def test_check_names_a_split_whose_vector_is_gone(stored):
    root, file = stored
    assert it.sql(f"CHECK INDEXTABLES '{root}'")["severity"].to_pylist() == ["OK"]
    file.unlink()
    found = it.sql(f"CHECK INDEXTABLES '{root}'").to_pylist()
    assert [row["severity"] for row in found if "deletion vector" in row["finding"]] == ["BROKEN"], found


WRONG = {
    "cardinality": (
        lambda add: {**add.deletion_vector, "cardinality": 9},
        "holds 10 rows, but the log says 9",
    ),
    "row beyond": (lambda add: vector_of(100), "names row 100, counted from 0, but the file has 100 rows"),
}


def vector_of(row):
    return write_vectors(None, [np.array([row])])[0][0].wire()


def commit_vector(table, make, **more):
    """A commit of somebody who gives a split a vector that does not fit it."""
    (add,) = table.log.snapshot(max_staleness_s=0).adds()
    given = replace(add, deletion_vector=make(add), data_change=True, **more)
    table.log.commit(CommitPlan("DELETE", Rule.DELETE, lambda base: [*removals(base, [add]), given]))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_vector_that_does_not_fit_its_split_is_found_and_gives_no_row(table, tmp_path, wrong):
    table.delete("id % 10 = 3")
    make, words = WRONG[wrong]
    commit_vector(table, make)
    found = it.sql(f"CHECK INDEXTABLES '{tmp_path / 't'}'").to_pylist()
    assert [words in row["finding"] for row in found if row["severity"] == "BROKEN"] == [True]
    for read in READS.values():
        with pytest.raises(CorruptLogError, match=words):
            read(it.open(tmp_path / "t"))


def test_a_deep_check_finds_a_row_beyond_a_file_that_the_log_does_not_count(table, tmp_path):
    commit_vector(table, lambda _: vector_of(100), num_records=None, stats=None)
    assert not it.check(tmp_path / "t").findings
    (found,) = it.check(tmp_path / "t", {"repair.validateSplits": "deep"}).findings
    assert "names row 100" in found.finding


def test_repair_keeps_vectors_and_leaves_out_a_split_without_its_own(stored, tmp_path):
    root, file = stored
    it.repair_log(f"{root}/_transaction_log", f"{root}/_transaction_log.new")
    (root / "_transaction_log").rename(root / "_transaction_log.old")
    (root / "_transaction_log.new").rename(root / "_transaction_log")
    assert it.open(root).count() == MANY * 9 // 10
    assert it.open(root).count("id % 10 = 0") == 0
    file.unlink()
    done = it.repair_log(f"{root}/_transaction_log", f"{root}/_transaction_log.again")
    assert done.missing_splits == 1


# Two writers


@pytest.mark.parametrize("lost", [3, 4])
def test_repair_from_splits_keeps_the_vectors_it_can_read_and_says_that_others_are_lost(
    table, tmp_path, caplog, lost
):
    table.delete("id = 3")
    table.delete("id = 4")
    raised, newest = table.version - 1, table.version
    log = tmp_path / "t" / "_transaction_log"
    (log / f"{newest if lost == 4 else raised:020d}.json").write_bytes(b"lost")
    it.repair_log(log, tmp_path / "t" / "_repaired", from_splits=True)
    log.rename(tmp_path / "t" / "_old")
    (tmp_path / "t" / "_repaired").rename(log)
    repaired = it.open(tmp_path / "t")
    assert ids(repaired) == [n for n in range(100) if n not in ((3,) if lost == 4 else (3, 4))]
    assert DELETION_VECTORS in repaired.protocol.reader_features
    said = "rows that were deleted by others come back" in caplog.text
    assert said is (lost == 4), "of the version that raised the protocol nothing is left"


def test_purge_rows_writes_every_split_with_deleted_rows_anew(tmp_path):
    days = [("day", pa.string()), ("id", pa.int64())]
    table = it.Table.create(tmp_path / "t", pa.schema(days), ["day"])
    table.append(pa.table({"day": [str(n % 2) for n in range(100)], "id": range(100)}))
    table.append(pa.table({"day": ["0"] * 10, "id": range(100, 110)}))
    table.delete("id IN (1, 2, 3)")
    before = table.version
    planned = table.purge_rows(dry_run=True)
    assert (planned.status, planned.rows_purged, planned.files_rewritten) == ("DRY RUN", 3, 2)
    assert table.purge_rows("day = '1'").rows_purged == 2
    assert [n for n in table.files()["num_deleted"].to_pylist() if n] == [1]
    done = table.purge_rows()
    assert (done.rows_purged, done.files_rewritten, done.skipped_files) == (1, 1, 0)
    assert table.files()["num_deleted"].to_pylist() == [None, None, None]
    assert ids(table) == [0, *range(4, 110)]
    newest = table.history(1).to_pylist()[0]
    assert (newest["operation"], table.version) == ("PURGE ROWS", before + 2)
    assert not any(
        add.data_change for add in table.log.read_version(table.version) if isinstance(add, AddAction)
    )
    assert table.purge_rows().status == "NO ACTION"
    with pytest.raises(it.errors.PredicateError, match="partition"):
        table.purge_rows("id = 1")


def test_purge_rows_says_how_many_splits_it_could_not_read(stored):
    """A split that is in its cooldown is tried all the same."""
    root, file = stored
    body = file.read_bytes()
    file.unlink()
    for _ in range(2):
        done = it.open(root).purge_rows()
        assert (done.status, done.skipped_files, done.rows_purged) == ("NO ACTION", 1, 0)
        assert "cannot be read" in done.message
    file.write_bytes(body)
    assert it.open(root).purge_rows().rows_purged == MANY // 10


def test_purge_rows_begins_again_when_a_source_loses_a_row(table, tmp_path):
    table.delete("id = 3")
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7")):
        assert other.purge_rows().rows_purged == 2
    after = it.open(tmp_path / "t")
    assert ids(after) == [n for n in range(100) if n not in (3, 7)]
    assert after.files()["num_deleted"].to_pylist() == [None]


def test_deletes_of_different_rows_of_one_split_both_succeed(table, tmp_path):
    other = it.open(tmp_path / "t")
    plan = Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7"))
    with plan:
        other.delete("id = 3")
    assert ids(it.open(tmp_path / "t")) == [n for n in range(100) if n not in {3, 7}]


def test_deletes_of_the_same_row_conflict(table, tmp_path):
    other = it.open(tmp_path / "t")
    with (
        Racing(other, lambda: it.open(tmp_path / "t").delete("id IN (3, 9)")),
        pytest.raises(
            ConflictError, match="another writer has deleted or changed meanwhile .row 3, counted from 0"
        ),
    ):
        other.delete("id IN (3, 4)")
    assert ids(it.open(tmp_path / "t")) == [n for n in range(100) if n not in {3, 9}]
    assert vector_files(tmp_path) == []


def test_an_update_and_a_delete_of_different_rows_both_succeed(table, tmp_path):
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7")):
        other.update("id = 3", {"message": "new"})
    after = it.open(tmp_path / "t")
    assert ids(after) == [n for n in range(100) if n != 7]
    assert ids(after, "message = 'new'") == [3]


@pytest.mark.parametrize("update", ["id = 7", "id < 60"])
def test_an_update_of_a_row_that_is_deleted_meanwhile_conflicts(table, tmp_path, update):
    """The second one writes the split anew, and would bring the row back."""
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7")), pytest.raises(ConflictError):
        other.update(update, {"message": "new"})
    after = it.open(tmp_path / "t")
    assert (ids(after), after.count("message = 'new'")) == ([n for n in range(100) if n != 7], 0)


def test_an_overwrite_of_some_rows_does_not_bring_back_a_row_that_is_deleted_meanwhile(table, tmp_path):
    """The file is written anew without the rows that it replaces; row 70 is not among those."""
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 70")):
        other.overwrite(rows(0, 5), where="id < 50")
    assert ids(it.open(tmp_path / "t")) == [*range(5), *(n for n in range(50, 100) if n != 70)]
    assert len(list((tmp_path / "t").glob("*.split"))) == 3, "that of the first try is deleted"


def test_a_delete_from_a_file_that_an_overwrite_replaces_meanwhile_conflicts(table, tmp_path):
    other = it.open(tmp_path / "t")
    with (
        Racing(other, lambda: it.open(tmp_path / "t").overwrite(rows(0, 5), where="id < 50")),
        pytest.raises(ConflictError, match="no longer live"),
    ):
        other.delete("id = 70")
    assert ids(it.open(tmp_path / "t")) == [*range(5), *range(50, 100)]


def test_two_updates_of_one_row_conflict(table, tmp_path):
    other = it.open(tmp_path / "t")
    first = it.open(tmp_path / "t")
    with Racing(other, lambda: first.update("id = 7", {"message": "first"})), pytest.raises(ConflictError):
        other.update("id = 7", {"message": "second"})
    assert ids(it.open(tmp_path / "t"), "message = 'first'") == [7]


def test_merge_splits_begins_again_when_a_source_loses_a_row(table, tmp_path):
    table.append(rows(100, 5))
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7")):
        other.merge_splits()
    after = it.open(tmp_path / "t")
    assert ids(after) == [n for n in range(105) if n != 7]
    assert after.files()["num_deleted"].to_pylist() == [None]
    assert len(list((tmp_path / "t").glob("*.split"))) == 3, "that of the first try is deleted"


def test_an_update_writes_one_split_of_the_changed_rows(table):
    table.append(rows(100, 100))
    done = table.update("id IN (3, 150)", {"message": "new"})
    assert (done.rows_updated, done.files_added) == (2, 1)
    after = table.files()
    assert after["num_records"].to_pylist().count(2) == 1
    assert sorted(filter(None, after["num_deleted"].to_pylist())) == [1, 1]
    assert ids(table, "message = 'new'") == [3, 150]
    assert table.count(query="new") == 2
    assert ids(table) == list(range(200))


def test_a_merge_writes_changed_and_new_rows_together(table):
    done = table.merge(pa.table({"id": [5, 6, 500], "message": ["a", "b", "c"]}, SCHEMA), on="id")
    assert (done.rows_updated, done.rows_inserted, done.files_added, done.files_removed) == (2, 1, 1, 0)
    assert table.scan("message IN ('a', 'b', 'c')", sort="id").to_arrow()["id"].to_pylist() == [5, 6, 500]
    gone = table.merge(
        pa.table({"id": [5, 7], "message": ["", ""]}, SCHEMA), on="id", matched="delete", not_matched=None
    )
    assert gone.rows_deleted == 2
    assert ids(table) == [n for n in [*range(100), 500] if n not in {5, 7}]


def test_an_upsert_tolerates_a_delete_elsewhere(table, tmp_path):
    table.append(rows(100, 100))
    other = it.open(tmp_path / "t")
    with Racing(other, lambda: it.open(tmp_path / "t").delete("id = 7")):
        other.merge(pa.table({"id": [150, 7000], "message": ["a", "b"]}, SCHEMA), on="id")
    assert ids(it.open(tmp_path / "t")) == [*(n for n in range(200) if n != 7), 7000]
