"""PURGE INDEXTABLE: what may go, what must stay, and what is only said in a dry run."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from indextables.errors import CorruptLogError, OptionError, SchemaError, StorageError
from indextables.ops.maintain.purge import PurgeRequest, may_delete, plan_purge, retention_hours, run_purge
from indextables.ops.maintain.truncate_history import run_truncate
from indextables.options import PurgeOptions
from indextables.storage.store import ObjectMeta
from support.upkeep import HOUR_MS, HandClock, StandIn, fingerprint

NOW = 1_700_000_000_000


def meta(path: str, age_hours: float = 1000, size: int = 1) -> ObjectMeta:
    return ObjectMeta(path, size, NOW - round(age_hours * HOUR_MS), None)


@pytest.fixture
def table(tmp_path):
    return StandIn(tmp_path / "t", clock=HandClock(NOW))


def purge(table, **request):
    return run_purge(table.handle(), PurgeRequest(**request))


@pytest.mark.parametrize(
    "path",
    [
        "a.split",
        "day=1/a.split",
        "day=%20/b c.split",
        ".0f8fad5b-d9cb-469f-a165-70867728950e.tmp",
        "d=1/." + "0" * 32 + ".tmp",
    ],
)
def test_splits_and_our_own_temporaries_are_ours_to_delete(path):
    assert may_delete(path)


@pytest.mark.parametrize(
    "path",
    [
        "a.parquet", "README.md", ".split", ".hidden.tmp", "a.split.bak", "_transaction_log/00000000000000000000.json",
        "_transaction_log/x.split", "_transaction_log_backup/a.split", "day=1/_staging/a.split", ".trash/a.split",
        "day=1/.cache/a.split", "/etc/a.split",
    ],
)  # fmt: skip
def test_nothing_else_is_ever_touched(path):
    assert not may_delete(path)


def test_only_what_is_old_enough_and_needed_by_nobody_goes():
    files = [meta("kept.split"), meta("young.split", 167), meta("edge.split", 168), meta("old.split", 168.1)]
    files += [meta("future.split", -5), meta("notes.txt")]
    assert [file.path for file in plan_purge(files, {"kept.split"}, NOW, 168)] == ["old.split"]


def test_a_retention_below_the_minimum_is_refused_unless_the_check_is_off():
    with pytest.raises(OptionError, match="24 hours"):
        retention_hours(23, PurgeOptions())
    assert retention_hours(24, PurgeOptions()) == 24
    assert retention_hours(0, PurgeOptions(retention_check=False)) == 0
    assert retention_hours(None, PurgeOptions()) == 168


def test_orphans_go_and_every_version_stays_readable(table):
    table.add("a.split", "b.split")
    table.log.remove_files(["a.split"])
    table.file("never-committed.split")
    table.clock.pass_hours(200)
    result = purge(table)
    assert (result.status, result.orphaned_files_found, result.orphaned_files_deleted) == ("SUCCESS", 1, 1)
    assert result.bytes_deleted == len("never-committed.split")
    assert not (table.root / "never-committed.split").exists()
    assert (table.root / "a.split").exists(), "version 1 can still be read and needs it"


def test_a_removed_split_goes_once_no_version_can_be_rebuilt_that_has_it(table):
    table.add("a.split", "b.split")
    table.log.remove_files(["a.split"])
    run_truncate(table.handle())
    table.clock.pass_hours(200)
    assert purge(table).orphaned_files_deleted == 1
    assert (table.root / "b.split").exists()
    assert not (table.root / "a.split").exists()


def test_files_of_a_running_write_are_too_young_to_go(table):
    table.add("a.split")
    table.clock.pass_hours(200)
    table.file("in-flight.split")
    table.clock.pass_hours(20)
    assert purge(table, older_than_hours=24).orphaned_files_found == 0


def test_log_files_past_the_named_retention_go_first(table):
    for n in range(5):
        table.add(f"{n}.split")
    table.log.overwrite_files([table.split("new.split")])
    table.log.checkpoint()
    table.age_log(hours=100)
    table.clock.pass_hours(200)
    result = purge(table, log_retention_hours=48)
    assert result.transaction_logs_deleted == 6
    assert result.orphaned_files_deleted == 5
    assert table.live() == ["new.split"]


def test_a_dry_run_says_the_same_and_changes_nothing(table):
    """J: every DRY RUN leaves the directory byte-identical."""
    for n in range(5):
        table.add(f"{n}.split")
    table.log.overwrite_files([table.split("new.split")])
    table.log.checkpoint()
    table.age_log(hours=100)
    table.clock.pass_hours(200)
    before = fingerprint(table.root)
    dry = purge(table, log_retention_hours=48, dry_run=True)
    assert fingerprint(table.root) == before
    assert (dry.status, dry.dry_run, dry.orphaned_files_deleted, dry.bytes_deleted) == ("DRY RUN", True, 0, 0)
    assert "0.split" in dry.message
    real = purge(table, log_retention_hours=48)
    assert (dry.orphaned_files_found, dry.transaction_logs_deleted) == (
        real.orphaned_files_found,
        real.transaction_logs_deleted,
    )


def test_a_split_that_comes_back_during_the_purge_is_spared(table):
    """Before each batch of deletes newly re-added paths are taken out."""
    table.add("a.split")
    for n in range(4):
        table.file(f"orphan{n}.split")
    table.clock.pass_hours(200)
    seen = []

    def readd(stage, done, total):
        if stage == "Deleting orphans" and done == 2 and not seen:
            seen.append(done)
            table.log.add_files([table.split("orphan3.split", on_disk=False)])

    result = run_purge(table.handle(), PurgeRequest(batch_files=2), readd)
    assert (result.orphaned_files_found, result.orphaned_files_deleted) == (4, 3)
    assert (table.root / "orphan3.split").exists()
    assert table.live() == ["a.split", "orphan3.split"]


def test_a_split_stays_whose_commit_was_cleaned_up_during_the_purge(table):
    table.add("a.split")
    for n in range(4):
        table.file(f"orphan{n}.split")
    table.clock.pass_hours(200)
    seen = []

    def readd_and_forget(stage, done, total):
        if stage == "Deleting orphans" and done == 2 and not seen:
            seen.append(done)
            table.log.add_files([table.split("orphan3.split", on_disk=False)])
            table.add("b.split")
            table.clock.pass_hours(200)
            run_truncate(table.log)

    run_purge(table.handle(), PurgeRequest(batch_files=2), readd_and_forget)
    assert (table.root / "orphan3.split").exists()
    assert table.live() == ["a.split", "b.split", "orphan3.split"]


def test_a_log_that_cannot_be_read_in_full_stops_the_purge(table):
    table.add("a.split")
    table.add("b.split")
    table.log.checkpoint()
    table.file("orphan.split")
    table.clock.pass_hours(200)
    (table.log_dir / f"{1:020}.json").write_bytes(b"{broken")
    with pytest.raises(CorruptLogError):
        purge(table)
    assert (table.root / "orphan.split").exists()


def test_absolute_addresses_inside_the_table_count_as_needed(table):
    table.file("a.split")
    table.log.add_files([table.split(f"{table.handle().uri}/a.split", on_disk=False, partition_values={})])
    table.clock.pass_hours(200)
    assert purge(table).orphaned_files_found == 0


def test_links_do_not_lead_the_purge_out_of_the_table(table, tmp_path):
    """Never outside the root, whatever a link in it points to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.split").write_bytes(b"x")
    table.add("a.split")
    (table.root / "link").symlink_to(outside, target_is_directory=True)
    (table.root / "alias.split").symlink_to(outside / "precious.split")
    table.clock.pass_hours(24 * 365 * 10)
    purge(table)
    assert (outside / "precious.split").exists()
    assert table.live() == ["a.split"]


def merged_after(table, appends: int) -> None:
    """So many splits, replaced by one that holds the same rows."""
    for number in range(appends):
        table.add(f"{number}.split")
    table.clock.pass_hours(1)
    table.log.overwrite_files([table.split("merged.split")])
    table.age_log(hours=1)
    table.clock.pass_hours(1)


UNCHECKED = {"purge.retentionCheckEnabled": "false"}


@pytest.mark.parametrize("interval", [10, 1000])
def test_splits_that_a_merge_replaced_are_kept_for_the_older_versions_and_the_message_says_so(
    tmp_path, interval
):
    options = {**UNCHECKED, "checkpoint.interval": interval}
    table = StandIn(tmp_path / "t", clock=HandClock(NOW), options=options)
    merged_after(table, 25)
    result = purge(table, older_than_hours=0)
    assert result.orphaned_files_deleted == 0
    assert "kept 25 files (" in result.message
    assert "the versions 0-25 have" in result.message
    assert "TRUNCATE INDEXTABLES TIME TRAVEL" in result.message


@pytest.mark.parametrize("interval", [10, 1000])
def test_a_log_retention_of_nothing_frees_the_splits_that_a_merge_replaced(tmp_path, interval):
    """Also where the newest checkpoint, young as it is, still lists them."""
    options = {**UNCHECKED, "checkpoint.interval": interval}
    table = StandIn(tmp_path / "t", clock=HandClock(NOW), options=options)
    merged_after(table, 25)
    before = fingerprint(table.root)
    dry = purge(table, older_than_hours=0, log_retention_hours=0, dry_run=True)
    assert fingerprint(table.root) == before
    result = purge(table, older_than_hours=0, log_retention_hours=0)
    assert (dry.orphaned_files_found, dry.transaction_logs_deleted) == (
        result.orphaned_files_deleted,
        result.transaction_logs_deleted,
    )
    assert result.orphaned_files_deleted == 25
    assert [path.name for path in table.root.glob("*.split")] == ["merged.split"]
    assert table.live() == ["merged.split"]
    assert "kept" not in result.message


def test_files_that_are_too_young_are_counted_in_the_message(table):
    table.add("a.split")
    table.file("in-flight.split")
    assert "kept 1 file of at most 24 hours" in purge(table, older_than_hours=24).message


def test_a_temporary_of_the_log_stays_for_a_day(table):
    table.add("a.split")
    left = table.file("_transaction_log/." + "0" * 32 + ".tmp")
    table.clock.pass_hours(23.5)
    table.handle().cleanup()
    assert left.exists()
    table.clock.pass_hours(1)
    table.handle().cleanup()
    assert not left.exists()


@pytest.mark.parametrize("verb", ["purge", "cleanup"])
def test_temporaries_of_killed_writers_leave_the_log_directory(table, verb):
    table.add("a.split")
    old = table.file("_transaction_log/." + "0" * 32 + ".tmp")
    table.clock.pass_hours(200)
    young = table.file("_transaction_log/." + "1" * 32 + ".tmp")
    other = table.file("_transaction_log/notes.tmp")
    if verb == "purge":
        purge(table)
    else:
        table.handle().cleanup()
    assert not old.exists()
    assert young.exists()
    assert other.exists()
    assert table.live() == ["a.split"]


def inventory_of(table, **changes) -> pa.Table:
    """Every file below the table, as a store's own inventory lists them."""
    files = sorted(path for path in table.root.rglob("*") if path.is_file())
    columns = {
        "path": [path.relative_to(table.root).as_posix() for path in files],
        "size": [path.stat().st_size for path in files],
        "modification_time": [round(path.stat().st_mtime * 1000) for path in files],
    }
    return pa.table({**columns, **changes})


def orphaned(table, *names):
    """A table with two live splits, a removed one that no version needs any more, and orphans."""
    table.add("a.split", "b.split", "gone.split")
    table.log.remove_files(["gone.split"])
    run_truncate(table.handle())
    for name in names:
        table.file(name)
    table.clock.pass_hours(200)


def test_an_inventory_stands_for_a_listing(table, tmp_path):
    orphaned(table, "orphan.split", "day=1/other.split")
    pq.write_table(inventory_of(table), tmp_path / "inventory.parquet")
    table.file("later.split")
    table.clock.pass_hours(200)
    dry = purge(table, inventory=str(tmp_path / "inventory.parquet"), dry_run=True)
    assert dry.orphaned_files_found == 3, "what the inventory does not show stays"
    result = purge(table, inventory=inventory_of(table))
    assert result.orphaned_files_deleted == 4
    assert table.live() == ["a.split", "b.split"]
    assert purge(table, inventory=str(tmp_path / "inventory.parquet")).status == "SUCCESS", (
        "they are gone already"
    )


def test_an_inventory_may_have_addresses_and_times_and_columns_of_others(table):
    orphaned(table, "orphan.split")
    rows = inventory_of(table)
    rows = pa.table(
        {
            "path": [f"{table.handle().uri}/{path}" for path in rows["path"].to_pylist()]
            + ["/elsewhere/x.split"],
            "length": [*rows["size"].to_pylist(), 1],
            "modificationTime": pa.array(
                [*rows["modification_time"].to_pylist(), 0], pa.timestamp("ms", "UTC")
            ),
            "isDir": [False] * (rows.num_rows + 1),
        }
    )
    assert purge(table, inventory=rows).orphaned_files_deleted == 2


def test_files_without_a_known_age_and_young_ones_stay(table):
    orphaned(table, "orphan.split")
    ages = [None] * inventory_of(table).num_rows
    rows = inventory_of(table, modification_time=pa.array(ages, pa.int64()))
    with pytest.raises(StorageError, match="_transaction_log"):
        purge(
            table, inventory=inventory_of(table).filter(pc.ends_with(inventory_of(table)["path"], ".split"))
        )
    assert purge(table, inventory=rows).orphaned_files_found == 0
    young = [table.clock.now_ms()] * rows.num_rows
    assert purge(table, inventory=inventory_of(table, modification_time=young)).orphaned_files_found == 0


def test_an_inventory_never_takes_a_table_below_this_one(table):
    orphaned(table, "inner/_transaction_log/00000000000000000000.json", "inner/x.split", "orphan.split")
    assert purge(table, inventory=inventory_of(table)).orphaned_files_deleted == 2
    assert (table.root / "inner/x.split").exists()


@pytest.mark.parametrize("missing", ["path", "size", "modification_time"])
def test_an_inventory_that_lacks_a_column_says_which(table, missing):
    orphaned(table)
    with pytest.raises(SchemaError, match=f"no column '{missing}'"):
        purge(table, inventory=inventory_of(table).drop_columns([missing]))


def test_a_file_that_is_no_inventory_is_an_error(table, tmp_path):
    orphaned(table)
    (tmp_path / "words.txt").write_text("no Parquet")
    with pytest.raises(StorageError, match="is no inventory"):
        purge(table, inventory=str(tmp_path / "words.txt"))


def test_lite_looks_at_what_the_log_names_and_at_nothing_else(table):
    table.add("a.split", "gone.split")
    table.log.overwrite_files([table.split("new.split")])
    table.file("orphan.split")
    table.log.checkpoint()
    table.age_log(hours=100)
    table.clock.pass_hours(200)
    assert purge(table, lite=True).orphaned_files_found == 0, "version 1 needs them"
    result = purge(table, lite=True, log_retention_hours=48)
    assert result.orphaned_files_deleted == 2
    assert sorted(path.name for path in table.root.glob("*.split")) == ["new.split", "orphan.split"]
    assert purge(table, lite=True).orphaned_files_found == 0


def test_lite_and_an_inventory_exclude_each_other():
    with pytest.raises(OptionError, match="one of them"):
        PurgeRequest(lite=True, inventory="files.parquet")
