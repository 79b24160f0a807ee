"""REPAIR INDEXFILES TRANSACTION LOG: what is read, what is written, and what is never touched."""

import itertools
import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError
from indextables.model.actions import AddAction, TxnAction
from indextables.ops.maintain.repair.relocated_log import LogDirectory
from indextables.ops.maintain.repair.repair import RepairJob, RepairRequest
from indextables.ops.maintain.repair.run import carry_out
from indextables.options import Options
from indextables.storage.envelope import unpack
from indextables.storage.store import open_store
from support.faults import Crash, FaultyStore
from support.upkeep import SCHEMA, HandClock, StandIn, fingerprint

COLUMNS = [
    ("source_path", pa.string()),
    ("target_path", pa.string()),
    ("source_version", pa.int64()),
    ("total_splits", pa.int32()),
    ("valid_splits", pa.int32()),
    ("missing_splits", pa.int32()),
    ("status", pa.string()),
]


@pytest.fixture
def table(tmp_path):
    made = StandIn(tmp_path / "t")
    made.add("a.split", "b.split")
    made.add("c.split")
    made.log.remove_files(["b.split"])
    return made


def target_of(table):
    return table.root / "_transaction_log_repaired"


def repair(table, **options):
    return it.repair_log(str(table.log_dir), str(target_of(table)), options or None)


def swap(table):
    """What the operator does after a repair: back up, then replace."""
    table.log_dir.rename(table.root / "_transaction_log_backup")
    target_of(table).rename(table.log_dir)


def test_a_healthy_log_is_copied_with_its_counts(table):
    """J1: SUCCESS, and the counts are right."""
    result = repair(table)
    assert result.status == "SUCCESS"
    assert (result.source_version, result.total_splits, result.valid_splits, result.missing_splits) == (
        3,
        2,
        2,
        0,
    )
    assert list(zip(result.to_arrow().schema.names, result.to_arrow().schema.types)) == COLUMNS


def test_after_the_swap_the_table_is_the_same(table):
    """J1: after the swap every add field is unchanged, and the table takes appends."""
    before = table.handle().list_files()
    properties = table.handle().metadata()
    assert repair(table).status == "SUCCESS"
    swap(table)
    assert table.handle().list_files() == before
    after = table.handle().metadata()
    assert after.id != properties.id
    assert after == replace(properties, id=after.id, split_table_id=properties.id)
    table.log = table.handle()
    assert table.add("d.split") == 2


def test_every_field_of_an_add_survives(tmp_path):
    """J1: footer offsets and every other add field unchanged, unknown ones included."""
    table = StandIn(tmp_path / "t")
    table.file("x.split")
    add = AddAction(
        path="x.split",
        size=7,
        num_records=3,
        min_values={"id": "1"},
        max_values={"id": "9"},
        stats='{"numRecords":3,"nullCount":{"id":0}}',
        tags={"k": "v"},
        footer_start_offset=10,
        footer_end_offset=20,
        hotcache_start_offset=5,
        hotcache_length=5,
        has_footer_offsets=True,
        uncompressed_size_bytes=99,
        doc_mapping_json="{}",
        num_merge_ops=2,
        extra={"fromTheFuture": {"a": [1, 2]}},
    )
    table.log.add_files([add])
    assert repair(table).status == "SUCCESS"
    swap(table)
    assert table.handle().list_files() == [add]


def test_the_target_has_two_versions_a_checkpoint_and_the_hint(table):
    """J3: version 0 (protocol + metadata), version 1 (adds), checkpoint at 1, `_last_checkpoint`; 20 digits."""
    repair(table)
    names = sorted(file.name for file in target_of(table).iterdir())
    assert names == [f"{0:020}.json", f"{1:020}.checkpoint.json", f"{1:020}.json", "_last_checkpoint"]
    kinds = [
        [
            next(iter(json.loads(line)))
            for line in unpack((target_of(table) / name).read_bytes(), name=name).splitlines()
        ]
        for name in (f"{0:020}.json", f"{1:020}.json")
    ]
    assert kinds == [["protocol", "metaData"], ["add", "add", "commitInfo"]]
    hint = json.loads((target_of(table) / "_last_checkpoint").read_bytes())
    assert (hint["version"], hint["numFiles"]) == (1, 2)


@pytest.mark.parametrize("source", ["json", "parquet"])
def test_a_parquet_checkpoint_is_written_where_asked_for(tmp_path, source):
    """C13, J3: the checkpoint is at 1 in either form, and a log with a Parquet checkpoint can be repaired."""
    table = StandIn(tmp_path / "t", options={"checkpoint.format": source})
    table.add("a.split")
    table.log.checkpoint()
    table.add("b.split")
    assert repair(table, **{"checkpoint.format": "parquet"}).status == "SUCCESS"
    names = sorted(file.name for file in target_of(table).iterdir())
    assert names == [f"{0:020}.json", f"{1:020}.checkpoint.parquet", f"{1:020}.json", "_last_checkpoint"]
    swap(table)
    assert table.live() == ["a.split", "b.split"]


def test_a_log_of_a_newer_protocol_is_left_to_a_newer_version(table):
    """B2: what asks for a newer writer is never written, and says so."""
    from indextables.model.actions import ProtocolAction, encode_action

    newer = encode_action(ProtocolAction(min_reader_version=2, min_writer_version=999))
    (table.log_dir / f"{4:020}.json").write_bytes(newer)
    result = repair(table)
    assert result.status.startswith("ERROR: ")
    assert "minWriterVersion = 999" in result.status
    assert not target_of(table).exists()


def test_deleted_splits_are_counted_and_left_out(table):
    """J2: missing_splits counts them and the repaired log leaves them out."""
    (table.root / "a.split").unlink()
    result = repair(table)
    assert (result.status, result.total_splits, result.valid_splits, result.missing_splits) == (
        "SUCCESS",
        2,
        1,
        1,
    )
    swap(table)
    assert table.live() == ["c.split"]


def test_fail_on_missing_writes_nothing(table):
    """J2: failOnMissing=true -> nothing written."""
    (table.root / "a.split").unlink()
    result = repair(table, **{"repair.failOnMissing": "true"})
    assert result.status.startswith("ERROR: 1 of 2 splits are missing")
    assert (result.total_splits, result.valid_splits, result.missing_splits) == (2, 1, 1)
    assert not target_of(table).exists()


def test_without_validation_nothing_is_missing(table):
    """J2: validateSplits=false -> missing 0."""
    (table.root / "a.split").unlink()
    result = repair(table, **{"repair.validateSplits": "false"})
    assert (result.valid_splits, result.missing_splits) == (2, 0)


def test_statistics_can_be_left_behind(tmp_path):
    """J2: preserveStats=false -> no stats; the row count stays."""
    table = StandIn(tmp_path / "t")
    table.add(
        "x.split", min_values={"id": "1"}, max_values={"id": "2"}, stats='{"numRecords":1}', num_records=5
    )
    repair(table, **{"repair.preserveStats": "false"})
    swap(table)
    (add,) = table.handle().list_files()
    assert (add.min_values, add.max_values, add.stats, add.num_records) == (None, None, None, 5)


@pytest.mark.parametrize("width", [1, 3])
def test_the_parallelism_is_honoured(tmp_path, width):
    """J2: `parallelism` honoured, and the answer does not depend on it."""
    from indextables.runtime import LOCAL, ThreadWorkers

    seen = []

    class Watching(ThreadWorkers):
        def map(self, function, items, *, parallelism=None):
            seen.append(parallelism)
            return super().map(function, items, parallelism=parallelism)

    table = StandIn(tmp_path / "t", partition_by=("day",))
    table.add(*(f"day={d}/{n}.split" for d in range(30) for n in range(2)))
    from indextables.ops.maintain.repair.run import run_repair

    options = Options.of({"repair.parallelism": width})
    request = RepairRequest(str(table.log_dir), str(target_of(table)))
    result = run_repair(request, options, replace(LOCAL, workers=Watching()))
    assert result.valid_splits == 60
    assert set(seen) <= {width}


def test_a_target_that_is_not_empty_raises_and_is_not_touched(table):
    """J4: non-empty target -> raises, nothing touched."""
    target_of(table).mkdir()
    (target_of(table) / "keep.txt").write_text("mine")
    before = fingerprint(table.root)
    with pytest.raises(TableError, match="not empty"):
        repair(table)
    assert fingerprint(table.root) == before


def test_an_empty_target_directory_is_fine(table):
    """J4: empty existing target fine."""
    target_of(table).mkdir()
    assert repair(table).status == "SUCCESS"


@pytest.mark.parametrize("inside", ["", "/", "/deeper", "/deeper/still/"])
def test_a_target_inside_the_source_is_refused(table, inside):
    """J4: target inside or equal to the source -> refused."""
    before = fingerprint(table.root)
    with pytest.raises(TableError):
        it.repair_log(str(table.log_dir), str(table.log_dir) + inside)
    assert fingerprint(table.root) == before


def test_any_directory_name_is_allowed(table, tmp_path):
    """J4: any directory name is allowed, for the target and for the source."""
    assert it.repair_log(str(table.log_dir), str(tmp_path / "elsewhere" / "new log")).status == "SUCCESS"
    table.log_dir.rename(table.root / "old log")
    result = it.repair_log(str(table.root / "old log"), str(table.log_dir))
    assert (result.status, result.valid_splits) == ("SUCCESS", 2)
    assert table.live() == ["a.split", "c.split"]


@pytest.mark.parametrize("made", [False, True])
def test_a_missing_or_empty_source_is_one_error_row(tmp_path, made):
    """J5: one row, status "ERROR: ...", source_version -1, counts 0."""
    source = tmp_path / "t" / "_transaction_log"
    if made:
        source.mkdir(parents=True)
    result = it.repair_log(str(source), str(tmp_path / "target"))
    assert result.status.startswith("ERROR: ")
    assert result.source_version == -1
    assert (result.total_splits, result.valid_splits, result.missing_splits) == (0, 0, 0)
    assert result.to_arrow().num_rows == 1
    assert not (tmp_path / "target").exists()


def test_the_path_of_the_table_instead_of_its_log_is_answered_with_the_right_one(table, tmp_path):
    """J5: the error says what to do."""
    result = it.repair_log(str(table.root), str(tmp_path / "target"))
    assert result.status.startswith("ERROR: ")
    assert f"Name the log directory: {table.log_dir.as_uri()}" in result.status


@pytest.mark.parametrize("mode", ["error", "crash", "crash_after", "lost_reply"])
def test_whatever_happens_the_source_stays_and_the_target_is_whole_or_no_table(tmp_path, mode):
    """J6: the source is byte-identical whatever happens, and a crashed repair never looks complete."""
    table = StandIn(tmp_path / "t")
    table.add("a.split", "b.split")
    before = fingerprint(table.root)
    outcomes = set()
    for moment in itertools.count(1):
        target_root = tmp_path / f"target-{mode}-{moment}"
        source = FaultyStore(open_store(str(table.root)), 0)
        target = FaultyStore(open_store(str(target_root)), moment, mode)
        request = RepairRequest(str(table.log_dir), str(target_root / "_transaction_log"))
        job = RepairJob(
            request,
            LogDirectory(source, "_transaction_log"),
            LogDirectory(target, "_transaction_log"),
            Options.of(),
        )
        try:
            status = carry_out(job).status
        except (Crash, it.Error):
            status = "raised"
        assert fingerprint(table.root) == before
        assert not {operation for operation, _ in source.operations} & {
            "put",
            "put_if_absent",
            "put_file",
            "delete",
        }
        outcomes.add(readable(target_root))
        if status == "SUCCESS":
            assert readable(target_root) == "whole"
        if not target.fired:
            break
    assert outcomes == {"no table", "whole"}


def readable(root):
    try:
        files = it.TransactionLog.open(str(root)).list_files()
    except it.Error:
        return "no table"
    assert [add.path for add in files] == ["a.split", "b.split"]
    return "whole"


@pytest.mark.parametrize("mode", ["error", "crash"])
def test_a_source_that_fails_while_being_read_leaves_nothing_behind(tmp_path, mode):
    """J6: a failure before each read; nothing is written to the source."""
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    before = fingerprint(table.root)
    for moment in itertools.count(1):
        source = FaultyStore(open_store(str(table.root)), moment, mode)
        target_root = tmp_path / f"target-{moment}"
        job = RepairJob(
            RepairRequest(str(table.log_dir), str(target_root)),
            LogDirectory(source, "_transaction_log"),
            LogDirectory(open_store(str(target_root)), "_transaction_log"),
            Options.of(),
        )
        try:
            status = carry_out(job).status
        except Crash:
            status = "crash"
        assert fingerprint(table.root) == before
        if not source.fired:
            assert status == "SUCCESS"
            break


def test_a_corrupt_checkpoint_with_intact_versions_is_no_obstacle(tmp_path):
    """J7: corrupt checkpoint with intact versions -> SUCCESS."""
    table = StandIn(tmp_path / "t")
    table.add("a.split", "b.split")
    table.log.checkpoint()
    (checkpoint,) = table.log_dir.glob("*.checkpoint.json")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-20])
    result = repair(table)
    assert (result.status, result.valid_splits) == ("SUCCESS", 2)


def test_an_older_checkpoint_is_used_when_the_newest_is_corrupt(tmp_path):
    """J7: corrupt checkpoint with early versions gone -> older checkpoint."""
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    table.log.checkpoint()
    table.add("b.split")
    table.log.checkpoint()
    (table.log_dir / f"{0:020}.json").unlink()
    newest = table.log_dir / f"{2:020}.checkpoint.json"
    newest.write_bytes(b"\x01\x01garbage")
    result = repair(table)
    assert (result.status, result.source_version, result.valid_splits) == ("SUCCESS", 2, 2)


def test_what_cannot_be_rebuilt_is_an_error_that_says_what_is_lost(tmp_path):
    """J7: corrupt checkpoint with versions gone and no older one -> an ERROR that says what is lost."""
    table = StandIn(tmp_path / "t")
    table.add("a.split")
    table.log.checkpoint()
    table.add("b.split")
    (table.log_dir / f"{0:020}.json").unlink()
    (table.log_dir / f"{1:020}.json").unlink()
    (table.log_dir / f"{1:020}.checkpoint.json").write_bytes(b"")
    before = fingerprint(table.root)
    result = repair(table)
    assert result.status.startswith("ERROR: ")
    assert "0-1" in result.status
    assert fingerprint(table.root) == before


def test_long_statistics_are_truncated_by_default_and_kept_on_request(tmp_path):
    """J9: statistics are truncated by default with the same function as the writer; disabled -> kept."""
    long = "x" * 2000
    for enabled, columns in (("true", {"id"}), ("false", {"id", "text"})):
        table = StandIn(tmp_path / enabled, options={"stats.truncation.enabled": "false"})
        table.add("a.split", min_values={"id": "1", "text": long}, max_values={"id": "2", "text": long})
        repair(table, **{"stats.truncation.enabled": enabled})
        swap(table)
        (add,) = table.handle().list_files()
        assert set(add.min_values) == columns
        assert set(add.max_values) == columns


def test_partition_columns_are_never_truncated(tmp_path):
    """H4: partition columns are exempt at repair."""
    long = "d" * 1500
    table = StandIn(tmp_path / "t", partition_by=("day",))
    add = table.split(
        "p.split", partition_values={"day": long}, min_values={"day": long}, max_values={"day": long}
    )
    table.log.add_files([add])
    repair(table)
    swap(table)
    assert table.handle().list_files() == [add]


def test_the_repaired_log_of_long_text_is_98_percent_smaller(tmp_path):
    """H10: 40 splits of long text, uncompressed: the truncated log is at least 98 % smaller."""
    plain = {"transaction.compression.enabled": "false"}
    table = StandIn(tmp_path / "t", options={**plain, "stats.truncation.enabled": "false"})
    for n in range(40):
        text = chr(97 + n % 26) * 20_000
        table.add(f"{n:02}.split", min_values={"text": text, "id": "1"}, max_values={"text": text, "id": "2"})
    before = sum(file.stat().st_size for file in table.log_dir.iterdir())
    assert before > 100_000
    assert repair(table, **plain).status == "SUCCESS"
    after = sum(file.stat().st_size for file in target_of(table).iterdir())
    assert after < 0.02 * before


def test_cooldown_and_transactions_are_carried_over(tmp_path):
    """E9, E10: skips with their counts, also past the cooldown, and what applications recorded, survive a repair."""
    clock = HandClock()
    table = StandIn(tmp_path / "t", clock=clock)
    table.log.add_files(
        [table.split("a.split"), table.split("b.split")], txn=TxnAction(app_id="app", version=7)
    )
    table.log.record_skipped_file("a.split", "bad", "merge", cooldown_hours=24)
    table.log.record_skipped_file("a.split", "bad again", "merge", cooldown_hours=24)
    table.log.record_skipped_file("b.split", "old", "merge", cooldown_hours=1)
    clock.pass_hours(2)
    from indextables.ops.maintain.repair.run import run_repair

    request = RepairRequest(str(table.log_dir), str(target_of(table)))
    assert run_repair(request, Options.of(), table.runtime).status == "SUCCESS"
    swap(table)
    log = table.handle()
    assert {skip.path: skip.skip_count for skip in log.skipped_files()} == {"a.split": 2, "b.split": 1}
    assert log.is_in_cooldown("a.split")
    assert not log.is_in_cooldown("b.split")
    log.record_skipped_file("b.split", "still old", "merge", cooldown_hours=1)
    assert {skip.path: skip.skip_count for skip in log.skipped_files()}["b.split"] == 2
    assert log.snapshot().txns["app"].version == 7
    again = log.add_files([table.split("z.split")], txn=TxnAction(app_id="app", version=7))
    assert again == 2, "the batch is known, so nothing is written"


def test_a_log_without_its_splits_is_repaired_with_a_warning(tmp_path):
    """A copy of the log alone names splits that are not beside it: that is hardly what was meant."""
    table = StandIn(tmp_path / "t")
    table.log.add_files([table.split("a.split"), table.split("b.split")])
    alone = tmp_path / "elsewhere" / "_transaction_log"
    shutil.copytree(table.log_dir, alone)
    result = it.repair_log(str(alone), str(tmp_path / "elsewhere" / "repaired"))
    assert (result.valid_splits, result.missing_splits) == (0, 2)
    assert result.status.startswith("WARNING: none of the 2 splits that the log names exists below ")
    failing = it.repair_log(
        str(alone), str(tmp_path / "elsewhere" / "again"), options={"repair.failOnMissing": "true"}
    )
    assert failing.status.startswith("ERROR: 2 of 2 splits are missing")


def test_a_damaged_log_names_the_other_ways_of_repairing(tmp_path):
    table = StandIn(tmp_path / "t")
    table.log.add_files([table.split("a.split")])
    (table.log_dir / f"{1:020}.json").write_bytes(b"{")
    status = it.repair_log(str(table.log_dir), str(target_of(table))).status
    assert status.startswith("ERROR: ")
    assert "UP TO VERSION" in status
    assert "FROM SPLITS" in status


def test_the_whole_manual_recovery(tmp_path):
    """Repair, back up, swap, verify: the workflow of the documentation, from a damaged log to a healthy one."""
    table = StandIn(tmp_path / "t")
    table.add("a.split", "b.split")
    table.log.checkpoint()
    table.add("c.split")
    (table.root / "b.split").unlink()
    for checkpoint in table.log_dir.glob("*.checkpoint.json"):
        checkpoint.write_bytes(b"not a checkpoint")
    (table.log_dir / "_last_checkpoint").write_text("{")
    damaged = fingerprint(table.log_dir)

    assert repair(table).status == "SUCCESS"
    assert fingerprint(table.log_dir) == damaged
    swap(table)
    assert fingerprint(table.root / "_transaction_log_backup") == damaged

    assert table.live() == ["a.split", "c.split"]
    assert table.handle().snapshot().schema.equals(SCHEMA)
    table.log = table.handle()
    table.add("d.split")
    assert table.live() == ["a.split", "c.split", "d.split"]


def test_absolute_addresses_are_checked_where_they_point(tmp_path):
    """Split paths are relative to the table; absolute URIs stay as they are and are looked up if allowed."""
    table = StandIn(tmp_path / "t")
    outside = tmp_path / "other" / "x.split"
    outside.parent.mkdir()
    outside.write_bytes(b"x")
    table.log.add_files(
        [
            AddAction(path=outside.as_uri(), size=1),
            AddAction(path=(tmp_path / "other" / "gone.split").as_uri(), size=1),
        ]
    )
    result = repair(table, **{"read.allowedRoots": str(tmp_path / "other")})
    assert (result.valid_splits, result.missing_splits) == (1, 1)
    swap(table)
    assert table.live() == [outside.as_uri()]


def test_the_properties_of_the_table_say_how_the_repaired_log_is_written(tmp_path):
    """Truncation and compression are a table's own settings, for REPAIR as for a writer."""
    long = "x" * 2000
    table = StandIn(tmp_path / "t")
    properties = {
        "spark.indextables.stats.truncation.enabled": "false",
        "spark.indextables.transaction.compression.enabled": "false",
    }
    table.log.update_properties(properties)
    table.add("a.split", min_values={"text": long}, max_values={"text": long})
    assert repair(table).status == "SUCCESS"
    assert all(file.read_bytes().startswith(b"{") for file in target_of(table).iterdir())
    swap(table)
    (add,) = table.handle().list_files()
    assert add.min_values == {"text": long}


def test_every_add_says_that_it_brings_rows(tmp_path):
    """Whatever a merge wrote, a stream of the repaired log must see every row."""
    table = StandIn(tmp_path / "t")
    table.log.add_files([table.split("a.split", data_change=False)])
    repair(table)
    swap(table)
    (add,) = (action for action in table.handle().read_version(1) if isinstance(action, AddAction))
    assert add.data_change is True


def test_a_target_that_cannot_be_listed_is_an_error_row(table, tmp_path):
    """J5: an I/O error gives the ERROR row, also one about the target."""
    target = FaultyStore(open_store(str(tmp_path / "target")), 1, "error")
    job = RepairJob(
        RepairRequest(str(table.log_dir), str(tmp_path / "target")),
        LogDirectory(open_store(str(table.root)), "_transaction_log"),
        LogDirectory(target, "_transaction_log"),
        Options.of(),
    )
    result = carry_out(job)
    assert result.status.startswith("ERROR: injected: list")
    assert result.source_version == -1


@pytest.mark.parametrize("link", ["into the source", "to the source"])
def test_a_target_that_is_a_link_into_the_source_is_refused(table, tmp_path, link):
    """J4: symbolic links are followed before the two places are compared."""
    inside = table.log_dir / "deeper" if link == "into the source" else table.log_dir
    (tmp_path / "link").symlink_to(inside, target_is_directory=True)
    before = fingerprint(table.root)
    with pytest.raises(TableError, match="lies inside the log"):
        it.repair_log(str(table.log_dir), str(tmp_path / "link"))
    assert fingerprint(table.root) == before


@pytest.mark.parametrize("content", [b"", b"short"])
def test_an_empty_or_shortened_split_is_left_out(table, content):
    """J2: a listing shows sizes, so a split of another size than the log says is not whole."""
    (table.root / "a.split").write_bytes(content)
    result = repair(table)
    assert (result.status, result.valid_splits, result.missing) == ("SUCCESS", 1, ("a.split",))


def test_every_missing_split_is_named(tmp_path, caplog):
    """In the result all of them; in the log the first ten, and how many there are."""
    table = StandIn(tmp_path / "t")
    names = [f"{n:02}.split" for n in range(25)]
    table.add(*names)
    for name in names:
        (table.root / name).unlink()
    result = repair(table)
    assert list(result.missing) == names
    logged = [message for message in caplog.messages if "leaves out" in message]
    assert logged[:10] == [f"REPAIR leaves out {name}: the file is not there" for name in names[:10]]
    assert logged[10:] == ["REPAIR leaves out 25 splits; the first 10 are named above"]


def test_up_to_version_leaves_out_what_was_committed_later(table):
    """A log can be saved up to the last version that can be read."""
    (table.log_dir / f"{3:020}.json").write_bytes(b'{"add":{"path"')
    assert repair(table).status.startswith("ERROR: ")
    target = str(target_of(table))
    result = it.repair_log(str(table.log_dir), target, up_to_version=2)
    assert (result.status, result.source_version, result.valid_splits) == ("SUCCESS", 2, 3)
    swap(table)
    assert table.live() == ["a.split", "b.split", "c.split"]


def test_up_to_version_is_sql_too(table):
    result = it.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{table.log_dir}' AT LOCATION '{target_of(table)}' UP TO VERSION 1"
    )
    assert result["source_version"].to_pylist() == [1]
    swap(table)
    assert table.live() == ["a.split", "b.split"]


def test_a_version_that_is_not_there_is_an_error_row(table):
    result = it.repair_log(str(table.log_dir), str(target_of(table)), up_to_version=9)
    assert result.status.startswith("ERROR: ")
    assert "no version 9; available: 0-3" in result.status


def test_a_version_and_the_splits_exclude_each_other(table):
    with pytest.raises(it.Error, match="cannot be used together"):
        it.repair_log(str(table.log_dir), str(target_of(table)), from_splits=True, up_to_version=1)


@pytest.mark.parametrize("left", [b"", b"\x01\x01\x1f", b'{"add":{"path":"d.spl', b"\x00" * 50])
@pytest.mark.parametrize("open_before", [False, True])
def test_the_error_about_a_torn_last_commit_offers_to_save_the_rest(table, open_before, left):
    """Whoever meets the torn file first is told the command, and the command works."""
    handle = table.handle()
    if open_before:
        handle.snapshot()
    (table.log_dir / f"{4:020}.json").write_bytes(left)
    with pytest.raises(it.errors.CorruptLogError) as caught:
        handle.snapshot(max_staleness_s=0)
    assert "It is the newest version" in str(caught.value)
    command = caught.value.message[caught.value.message.index("REPAIR INDEXFILES") :].rstrip(".")
    assert it.sql(command)["status"].to_pylist() == ["SUCCESS"]
    swap(table)
    assert table.live() == ["a.split", "c.split"]
