"""CHECK INDEXTABLES: every damage is found, with its consequence and a command that helps."""

import shutil

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables as it
from indextables.cli.main import cli
from indextables.storage.store import open_store
from support.deltatables import DeltaLog, schema_string
from support.upkeep import RowTable, StandIn, fingerprint

SCHEMA = pa.schema([("id", pa.int64()), ("message", pa.string())])
TEXT = {"indexing.typemap.message": "text"}


@pytest.fixture
def table(tmp_path):
    made = RowTable(tmp_path / "t", SCHEMA, options=TEXT)
    for n in range(3):
        made.append(pa.table({"id": [2 * n, 2 * n + 1], "message": ["disk full", "all quiet"]}, SCHEMA))
    return made


@pytest.fixture
def checkpointed(table):
    table.log.checkpoint()
    table.append(pa.table({"id": [6], "message": ["again"]}, SCHEMA))
    return table


def findings(table, **options):
    """What a check says, which never changes a byte."""
    before = fingerprint(table.root)
    result = it.check(str(table.root), options or None)
    assert fingerprint(table.root) == before
    return result.findings


def only(table, **options):
    (found,) = findings(table, **options)
    return found


def log_file(table, name):
    return table.root / "_transaction_log" / name


def swapped_in(table, command):
    """Run a REPAIR that a finding names, and put its result in place."""
    assert it.sql(command)["status"].to_pylist() == ["SUCCESS"]
    shutil.rmtree(table.root / "_transaction_log")
    (table.root / "_transaction_log_repaired").rename(table.root / "_transaction_log")


def ids(table):
    return sorted(row["id"] for row in table.rows())


def test_a_healthy_table_has_no_findings(checkpointed):
    result = it.check(str(checkpointed.root), {"repair.validateSplits": "deep"})
    assert (result.status, result.version, result.findings) == ("OK", 4, ())
    (row,) = result.to_arrow().to_pylist()
    assert row["severity"] == "OK"
    assert row["finding"] == "nothing is wrong with version 4: 5 version files, 1 checkpoint, 4 splits"


def test_a_torn_last_commit_is_answered_with_up_to_version(table):
    log_file(table, f"{4:020}.json").write_bytes(b'{"add":{"pa')
    found = only(table)
    assert (found.severity, found.command[-15:]) == ("BROKEN", "UP TO VERSION 3")
    assert "up to version 3 everything can be saved" in found.consequence
    swapped_in(table, found.command)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_missing_version_is_answered_with_the_last_one_before_it(table):
    log_file(table, f"{2:020}.json").unlink()
    found = only(table)
    assert found.severity == "BROKEN"
    swapped_in(table, found.command)
    assert ids(table) == [0, 1]


def test_a_log_without_any_readable_version_is_answered_with_from_splits(table):
    for n in range(4):
        log_file(table, f"{n:020}.json").write_bytes(b"")
    found = only(table)
    assert found.command.endswith("FROM SPLITS")
    swapped_in(table, found.command)
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_table_without_a_log_is_answered_with_from_splits(table):
    shutil.rmtree(table.root / "_transaction_log")
    found = only(table)
    assert "3 splits" in found.finding
    assert it.sql(found.command)["status"].to_pylist() == ["SUCCESS"]


def test_a_path_without_a_table_is_an_error(tmp_path):
    with pytest.raises(it.errors.NotATableError, match="There is nothing there"):
        it.check(str(tmp_path / "nothing"))


def test_a_delta_table_is_refused_by_what_it_is(tmp_path):
    DeltaLog(open_store(tmp_path / "d"), schema_string(n="long"))
    with pytest.raises(it.errors.NotATableError, match="It is a Delta table"):
        it.check(str(tmp_path / "d"))


def test_a_damaged_checkpoint_costs_time_and_checkpoint_mends_it(checkpointed):
    log_file(checkpointed, f"{3:020}.checkpoint.json").write_bytes(b"\x01\x01garbage")
    found = findings(checkpointed)
    assert {item.severity for item in found} == {"WARNING"}
    assert {item.subject for item in found} == {f"{3:020}.checkpoint.json", "_last_checkpoint"}
    for command in {item.command for item in found}:
        it.sql(command)
    assert [item.subject for item in findings(checkpointed)] == [f"{3:020}.checkpoint.json"]
    assert findings(checkpointed)[0].command == ""


def test_a_checkpoint_that_contradicts_its_versions_is_broken(checkpointed):
    import json

    from indextables.storage.envelope import pack, unpack

    place = log_file(checkpointed, f"{3:020}.checkpoint.json")
    document = json.loads(unpack(place.read_bytes(), name=place.name))
    document["add"] = document["add"][1:]
    if "numFiles" in document:
        document["numFiles"] -= 1
    place.write_bytes(pack(json.dumps(document).encode(), it.TransactionLog.open("x").options.compression))
    log_file(checkpointed, "_last_checkpoint").unlink()
    found = [item for item in findings(checkpointed) if item.severity == "BROKEN"]
    assert [item.subject for item in found] == [place.name]
    assert "lacks 1 that they have" in found[0].finding


@pytest.mark.parametrize("damage", ["missing", "garbage", "behind"])
def test_a_hint_that_misleads_costs_a_listing(checkpointed, damage):
    hint = log_file(checkpointed, "_last_checkpoint")
    if damage == "missing":
        hint.unlink()
    elif damage == "garbage":
        hint.write_bytes(b"{")
    else:
        hint.write_bytes(b'{"version": 1, "size": 1}')
    found = only(checkpointed)
    assert (found.severity, found.subject) == ("WARNING", "_last_checkpoint")
    it.sql(found.command)
    assert findings(checkpointed) == ()


def test_an_old_version_that_is_damaged_costs_time_travel_only(checkpointed):
    log_file(checkpointed, f"{1:020}.json").write_bytes(b"{")
    found = only(checkpointed)
    assert (found.severity, found.subject) == ("WARNING", f"{1:020}.json")
    assert "version 1-2 cannot be opened" in found.consequence
    assert ids(checkpointed) == list(range(7))


@pytest.mark.parametrize("damage", ["gone", "empty", "cut"])
def test_a_split_that_is_not_whole_is_broken(table, damage):
    (victim, *_) = table.handle().list_files()
    file = table.root / victim.path
    data = file.read_bytes()
    file.unlink() if damage == "gone" else file.write_bytes(b"" if damage == "empty" else data[:-1])
    found = only(table)
    assert (found.severity, found.subject) == ("BROKEN", victim.path)
    swapped_in(table, found.command)
    assert len(ids(table)) == 4


def test_a_damaged_index_is_found_by_a_deep_check_and_mended_by_merge(table):
    (victim, *_) = table.handle().list_files()
    table.damage_index(victim)
    assert findings(table) == ()
    found = only(table, **{"repair.validateSplits": "deep"})
    assert (found.severity, found.subject) == ("WARNING", victim.path)
    it.sql(found.command)
    assert not [
        item for item in findings(table, **{"repair.validateSplits": "deep"}) if item.severity != "NOTE"
    ]


def test_splits_of_older_versions_and_orphans_are_told_apart(table):
    (victim, *_) = table.handle().list_files()
    table.log.remove_files([victim.path])
    (table.root / victim.path).unlink()
    (table.root / "orphan.split").write_bytes(b"x")
    older, orphan = findings(table)
    assert (older.severity, older.subject) == ("WARNING", victim.path)
    assert (orphan.severity, orphan.finding) == ("NOTE", "no version names 1 split (1 byte)")


def test_what_is_no_log_file_is_noted(tmp_path):
    table = StandIn(tmp_path / "t")
    log_file(table, ".0123456789abcdef0123456789abcdef.tmp").write_bytes(b"")
    log_file(table, "notes.txt").write_bytes(b"")
    assert [(item.severity, item.subject) for item in findings(table)] == [
        ("NOTE", ".0123456789abcdef0123456789abcdef.tmp"),
        ("NOTE", "notes.txt"),
    ]


def test_a_table_of_a_newer_protocol_is_readable_and_not_writable(table):
    from indextables.model.actions import ProtocolAction, encode_action

    newer = encode_action(ProtocolAction(min_reader_version=2, min_writer_version=999))
    log_file(table, f"{4:020}.json").write_bytes(newer + b"\n")
    found = only(table)
    assert (found.severity, found.subject) == ("WARNING", "protocol")


def test_sql_shows_the_findings_as_rows(table):
    log_file(table, f"{4:020}.json").write_bytes(b"{")
    rows = it.sql(f"CHECK INDEXTABLES '{table.root}'")
    assert rows.column_names == ["severity", "subject", "finding", "consequence", "command"]
    assert rows["severity"].to_pylist() == ["BROKEN"]


def test_the_command_line_ends_with_1_when_something_is_broken(table):
    assert CliRunner().invoke(cli, ["check", str(table.root)]).exit_code == 0
    log_file(table, f"{4:020}.json").write_bytes(b"{")
    shown = CliRunner().invoke(cli, ["check", str(table.root), "--json"])
    assert shown.exit_code == 1
    assert "UP TO VERSION 3" in shown.output


@pytest.mark.parametrize("erase", ["truncate", "purge"])
def test_what_erasing_history_leaves_is_in_order(checkpointed, erase):
    """Numbers stay fenced for a while; the files that do it are no strangers."""
    path = str(checkpointed.root)
    if erase == "truncate":
        it.Table.open(path).truncate_history()
    else:
        options = {"purge.retentionCheckEnabled": "false"}
        it.Table.open(path, options=options).purge(older_than_hours=0, log_retention_hours=0)
    assert findings(checkpointed) == ()
