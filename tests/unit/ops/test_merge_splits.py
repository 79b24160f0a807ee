"""MERGE SPLITS: fewer files, the same rows in the same order, and the same answers."""

import dataclasses

import pyarrow as pa
import pytest

from indextables.errors import ConflictError, OptionError, PredicateError
from indextables.model.actions import RemoveAction
from indextables.ops.rewrite.merge import MergeRequest, run_merge
from indextables.ops.rewrite.rows import REINDEX_BELOW_BYTES
from support.upkeep import HandClock, RowTable, fingerprint

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("message", pa.string())])
TEXT = {"indexing.typemap.message": "text"}
WORDS = ["disk full", "connection reset by peer", "request timeout", "user logged in", "disk error"]


def rows(start: int, count: int = 10, day: str = "1") -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {"id": ids, "day": [day] * count, "message": [f"{WORDS[i % len(WORDS)]} {i}" for i in ids]}, SCHEMA
    )


@pytest.fixture(autouse=True, params=[0, REINDEX_BELOW_BYTES], ids=["indexes merged", "indexed anew"])
def merging(request, monkeypatch):
    """Both ways a merge makes the index of a split."""
    monkeypatch.setattr("indextables.ops.rewrite.rows.REINDEX_BELOW_BYTES", request.param)


@pytest.fixture
def table(tmp_path):
    made = RowTable(tmp_path / "t", SCHEMA, options=TEXT, clock=HandClock())
    for n in range(5):
        made.append(rows(n * 10))
    return made


def merge(table, **request):
    return run_merge(table.handle(), MergeRequest(**request))


def test_small_splits_become_one_and_no_row_changes(table):
    before, found = table.rows(), table.found("message:disk")
    result = merge(table)
    assert (result.status, result.merged_files, result.merge_groups, result.skipped_files) == (
        "SUCCESS",
        5,
        1,
        0,
    )
    (add,) = table.handle().list_files()
    assert result.merged_size_bytes == add.size
    assert table.rows() == before, "rows keep their order"
    assert table.found("message:disk") == found
    assert add.num_records == 50
    assert (add.min_values["id"], add.max_values["id"]) == ("0", "49")


def test_the_commit_says_that_no_data_changed(table):
    merge(table)
    actions = table.handle().read_version(6)
    assert [type(action).__name__ for action in actions] == ["RemoveAction"] * 5 + ["AddAction", "CommitInfo"]
    assert not any(action.data_change for action in actions[:-1])
    assert actions[-1].operation == "MERGE SPLITS"


def test_older_versions_are_still_there(table):
    before = table.rows()
    merge(table)
    assert table.rows(version=5) == before
    assert len(table.rows(version=2)) == 20


def test_a_second_merge_has_nothing_to_do(table):
    merge(table)
    result = merge(table)
    assert (result.status, result.merged_files, result.merge_groups) == ("NO ACTION", 0, 0)
    assert table.handle().latest_version() == 6


def test_a_dry_run_shows_the_plan_and_changes_nothing(table):
    before = fingerprint(table.root)
    result = merge(table, dry_run=True)
    assert result.message.startswith("would merge 5 splits in 1 group: ")
    assert (result.status, result.merged_files, result.merge_groups, result.merged_size_bytes) == (
        "DRY RUN",
        5,
        1,
        None,
    )
    assert "5 splits" in result.message
    assert fingerprint(table.root) == before


def test_partitions_are_merged_each_for_itself(tmp_path):
    table = RowTable(tmp_path / "t", SCHEMA, partition_by=("day",))
    for n in range(3):
        table.append(pa.concat_tables([rows(n * 20, day="1"), rows(n * 20 + 10, day="2")]))
    before = sorted(table.rows(), key=lambda row: row["id"])
    result = merge(table, where="day = '2'")
    assert (result.merged_files, result.merge_groups) == (3, 1)
    assert len(table.handle().list_files()) == 4
    assert merge(table).merged_files == 3
    adds = table.handle().list_files()
    assert sorted(add.partition_values["day"] for add in adds) == ["1", "2"]
    assert all(add.path.startswith(f"day={add.partition_values['day']}/") for add in adds)
    assert sorted(table.rows(), key=lambda row: row["id"]) == before


def test_a_condition_on_other_columns_is_refused(table):
    with pytest.raises(PredicateError):
        merge(table, where="id = 3")


def test_a_limit_on_new_splits_and_on_sources_is_kept(table):
    assert merge(table, max_source_splits=2, max_dest_splits=1).merged_files == 2
    assert len(table.handle().list_files()) == 4


def test_a_target_size_decides_what_is_small(table):
    size = table.handle().list_files()[0].size
    assert merge(table, target_bytes=size * 2, dry_run=True).status == "DRY RUN"
    assert merge(table, target_bytes=size).merge_groups == 0, "all splits are large enough for such a target"


def test_an_unreadable_source_is_skipped_with_a_cooldown_and_the_rest_goes_on(table):
    """E8, E9: a skip with cooldown; the file stays live; the next run leaves it out until the cooldown is over."""
    bad = table.handle().list_files()[2]
    intact = (table.root / bad.path).read_bytes()
    table.damage_rows(bad.path)
    result = merge(table)
    assert (result.status, result.merged_files, result.skipped_files) == ("SUCCESS", 4, 1)
    log = table.handle()
    assert [skip.path for skip in log.skipped_files()] == [bad.path]
    assert log.skipped_files()[0].skip_count == 1
    assert bad.path in [add.path for add in log.list_files()]
    assert log.latest_version() == 7, "one commit for the skips and one for the merge"
    table.append(rows(100))
    assert (merge(table).skipped_files, len(table.handle().list_files())) == (1, 2)
    (table.root / bad.path).write_bytes(intact)
    table.runtime.clock.pass_hours(25)
    assert merge(table).merged_files == 2
    assert len(table.rows()) == 60


def test_all_skips_of_a_run_are_one_commit(table):
    adds = table.handle().list_files()
    for add in adds[1:4]:
        table.damage_rows(add.path)
    merge(table)
    assert len(table.handle().skipped_files()) == 3
    assert table.handle().latest_version() == 7


def test_a_group_with_too_little_left_is_not_merged(table):
    for add in table.handle().list_files()[:4]:
        table.damage_rows(add.path)
    result = merge(table)
    assert (result.status, result.merged_files, result.skipped_files) == ("NO ACTION", 0, 4)


def test_a_source_whose_index_alone_is_damaged_is_indexed_anew(table):
    before, found = table.rows(), table.found("message:reset")
    table.damage_index(table.handle().list_files()[1])
    result = merge(table)
    assert (result.merged_files, result.skipped_files) == (5, 0)
    assert table.rows() == before
    assert table.found("message:reset") == found


def test_a_large_split_with_a_damaged_index_is_found_and_indexed_anew(tmp_path):
    """A damaged index never gives a wrong answer, and MERGE re-indexes such a file."""
    table = RowTable(tmp_path / "t", SCHEMA, options=TEXT)
    table.append(rows(0))
    (add,) = table.handle().list_files()
    before, found = table.rows(), table.found("message:disk")
    assert merge(table, target_bytes=add.size).status == "NO ACTION"
    table.damage_index(add)
    result = merge(table, target_bytes=add.size)
    assert (result.status, result.merged_files) == ("SUCCESS", 1)
    assert (table.rows(), table.found("message:disk")) == (before, found)
    assert merge(table, target_bytes=add.size).status == "NO ACTION"


def test_changed_index_settings_reindex_even_a_single_split(tmp_path):
    """Changing settings = update_properties + MERGE, which re-indexes."""
    table = RowTable(tmp_path / "t", SCHEMA, options=TEXT)
    table.append(rows(0))
    assert merge(table).status == "NO ACTION"
    table.log.update_properties({"spark.indextables.indexing.tokenizer.message": "whitespace"})
    result = merge(table)
    assert (result.status, result.merged_files) == ("SUCCESS", 1)
    assert merge(table).status == "NO ACTION"
    assert len(table.found("message:disk")) == 4


def test_columns_added_later_are_null_in_older_rows(tmp_path):
    from indextables.log.commit.conflicts import CommitPlan, Rule
    from indextables.model.fields import schema_to_json

    table = RowTable(tmp_path / "t", SCHEMA)
    table.append(rows(0, 2))
    wider = SCHEMA.append(pa.field("level", pa.string()))
    metadata = dataclasses.replace(table.log.metadata(), schema_string=schema_to_json(wider))
    table.log.commit(CommitPlan("SCHEMA", Rule.EXCLUSIVE, lambda _: [metadata]))
    table.append(rows(2, 2).append_column("level", pa.array(["x", "y"])))
    merge(table)
    assert sorted((row["id"], row["level"]) for row in table.rows()) == [
        (0, None),
        (1, None),
        (2, "x"),
        (3, "y"),
    ]


def test_a_source_taken_by_another_writer_is_a_conflict_and_leaves_no_file(table):
    """E4: if a source is gone -> conflict error, nothing committed."""
    victim = table.handle().list_files()[0].path

    def interfere(stage, done, total):
        if stage == "Merging splits" and done == total:
            table.handle().remove_files([victim])

    with pytest.raises(ConflictError):
        run_merge(table.handle(), MergeRequest(), interfere)
    assert len(table.handle().list_files()) == 4
    assert len(list(table.root.glob("*.split"))) == 5, "what was written for nothing is deleted again"


def test_an_append_meanwhile_is_kept(table):
    def interfere(stage, done, total):
        if stage == "Merging splits" and done == total:
            table.handle().add_files(table.write(rows(500)))

    run_merge(table.handle(), MergeRequest(), interfere)
    assert len(table.handle().list_files()) == 2
    assert len(table.rows()) == 60


def test_the_merged_split_names_what_it_replaces(table):
    from indextables.split.layout import SplitRef, read_footer
    from indextables.split.source import SplitFile

    sources = [add.path for add in table.handle().list_files()]
    merge(table)
    (add,) = table.handle().list_files()
    manifest = read_footer(SplitFile.of(table.log.store, add.path), SplitRef.of(add)).manifest
    assert list(manifest.replaces) == sources
    assert add.num_merge_ops == 1
    assert {a.path for a in table.handle().read_version(6) if isinstance(a, RemoveAction)} == set(sources)


def test_the_result_has_the_columns_of_the_command(table):
    table_path = merge(table).to_arrow()
    assert table_path.schema.names == [
        "table_path", "status", "merged_files", "merge_groups", "original_size_bytes", "merged_size_bytes",
        "skipped_files", "message",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"target_bytes": 0}, "target_size is 0; expected 1 or more"),
        ({"max_dest_splits": 0}, "max_dest_splits is 0; expected 1 or more"),
        ({"max_source_splits": 1}, "max_source_splits is 1; expected 2 or more"),
    ],
)
def test_a_merge_of_nothing_is_refused(table, request_, said):
    """As the statement refuses it, which shows where."""
    with pytest.raises(OptionError, match=said):
        merge(table, **request_)


def test_indexes_of_small_splits_are_not_opened_to_merge_them(tmp_path, monkeypatch):
    """Their text is indexed anew, which costs less; indexes of large splits are merged."""
    from indextables.ops.rewrite import rows as rewriting

    made = RowTable(tmp_path / "t", SCHEMA, options=TEXT, clock=HandClock())
    for n in range(3):
        made.append(rows(n * 10))
    opened, plain = [], rewriting.open_index
    monkeypatch.setattr(
        rewriting,
        "open_index",
        lambda reading, ref, **more: opened.append(ref) or plain(reading, ref, **more),
    )
    monkeypatch.setattr(rewriting, "REINDEX_BELOW_BYTES", 1 << 20)
    merge(made)
    assert opened == []
    made.append(rows(30))
    monkeypatch.setattr(rewriting, "REINDEX_BELOW_BYTES", 100)
    merge(made)
    assert len(opened) == 2
