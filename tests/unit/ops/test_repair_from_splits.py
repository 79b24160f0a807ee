"""REPAIR with the splits at hand: deep checks, and a log rebuilt from footers when none is left."""

import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import TableError
from indextables.ops.maintain.repair.repair import RepairRequest
from indextables.ops.maintain.repair.run import run_repair
from indextables.ops.rewrite.merge import MergeRequest, run_merge
from indextables.ops.write.delete import run_delete
from indextables.options import Options
from support.upkeep import RowTable, fingerprint

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("message", pa.string()),
        ("score", pa.float64()),
        ("big", pa.decimal128(20, 2)),
    ]
)
TEXT = {"indexing.typemap.message": "text"}


def rows(start, count=10):
    import datetime as dt
    from decimal import Decimal

    numbers = range(start, start + count)
    return pa.table(
        {
            "id": numbers,
            "day": [dt.date(2024, 1, 1 + n // 10) for n in numbers],
            "message": [f"event {n} of host{n % 3}" if n % 7 else None for n in numbers],
            "score": [n / 3 for n in numbers],
            "big": [Decimal(n) / 4 for n in numbers],
        },
        SCHEMA,
    )


@pytest.fixture
def table(tmp_path):
    made = RowTable(tmp_path / "t", SCHEMA, partition_by=("day",), options=TEXT)
    made.append(rows(0))
    made.append(rows(10, 20))
    return made


def repair(table, *, from_splits=False, **options):
    request = RepairRequest(str(table.root / "_transaction_log"), str(table.root / "_new"), from_splits)
    return run_repair(request, Options.of(options))


def swap(table):
    shutil.rmtree(table.root / "_transaction_log", ignore_errors=True)
    (table.root / "_new").rename(table.root / "_transaction_log")


def lose_log(table):
    for file in (table.root / "_transaction_log").iterdir():
        file.write_bytes(b"lost")


def test_rows_counts_searches_and_pruning_are_the_same_after_the_swap(table):
    """J1: after the swap rows, counts, searches and pruning are identical."""
    before = (table.rows(), table.found("message:host1"), table.handle().snapshot().plan("id > 15").metrics)
    assert repair(table).status == "SUCCESS"
    swap(table)
    assert (
        table.rows(),
        table.found("message:host1"),
        table.handle().snapshot().plan("id > 15").metrics,
    ) == before


def test_a_deep_check_accepts_sound_splits(table):
    result = repair(table, **{"repair.validateSplits": "deep"})
    assert (result.status, result.valid_splits, result.missing_splits) == ("SUCCESS", 3, 0)


def test_a_deep_check_leaves_out_cut_and_torn_splits(table):
    """A listing shows sizes; a deep check verifies footers too."""
    cut, torn, _ = table.handle().list_files()
    file = table.root / cut.path
    file.write_bytes(file.read_bytes()[:-5])
    data = bytearray((table.root / torn.path).read_bytes())
    data[-40] ^= 0xFF
    (table.root / torn.path).write_bytes(bytes(data))
    assert repair(table).missing == (cut.path,)
    shutil.rmtree(table.root / "_new")
    result = repair(table, **{"repair.validateSplits": "deep"})
    assert (result.valid_splits, result.missing_splits) == (1, 2)


def test_a_damaged_index_is_reported_and_the_split_kept(table, caplog):
    """A deep check verifies index checksums; the rows are whole, so the split stays."""
    add = table.handle().list_files()[0]
    table.damage_index(add)
    result = repair(table, **{"repair.validateSplits": "deep"})
    assert (result.valid_splits, result.missing_splits) == (3, 0)
    assert any("index" in record.message and add.path in record.message for record in caplog.records)


def test_a_lost_log_is_rebuilt_from_the_splits(table):
    before = (table.rows(), table.found("message:host1"))
    adds = {add.path: add for add in table.handle().list_files()}
    table_id = table.handle().snapshot().table_id
    lose_log(table)
    assert repair(table).status.startswith("ERROR")
    source = fingerprint(table.root / "_transaction_log")
    result = repair(table, from_splits=True)
    assert (result.status, result.total_splits, result.valid_splits) == ("SUCCESS", 3, 3)
    assert fingerprint(table.root / "_transaction_log") == source
    swap(table)
    assert (table.rows(), table.found("message:host1")) == before
    snapshot = table.handle().snapshot()
    assert snapshot.split_table_id == table_id
    assert snapshot.table_id != table_id
    assert snapshot.schema.equals(SCHEMA)
    assert snapshot.partition_columns == ("day",)
    for add in snapshot.adds():
        old = adds[add.path]
        assert (add.partition_values, add.size, add.num_records) == (
            old.partition_values,
            old.size,
            old.num_records,
        )
        assert (add.hotcache_start_offset, add.footer_end_offset, add.tags) == (
            old.hotcache_start_offset,
            old.footer_end_offset,
            old.tags,
        )
        for column in ("id", "message", "big"):
            assert (add.min_values[column], add.max_values[column]) == (
                old.min_values[column],
                old.max_values[column],
            )
        assert "score" not in add.min_values, "Parquet's bounds of floats say nothing about NaN"


def test_pruning_by_rebuilt_statistics_loses_no_row(table):
    """H3: no predicate may skip a file that holds a matching row."""
    expected = {n: [row for row in table.rows() if row["id"] == n] for n in range(30)}
    lose_log(table)
    repair(table, from_splits=True)
    swap(table)
    snapshot = table.handle().snapshot()
    for n in range(30):
        kept = snapshot.plan(f"id = {n}").files.num_rows
        assert kept >= len(expected[n]) > 0


def test_the_rebuilt_log_takes_appends(table):
    lose_log(table)
    repair(table, from_splits=True)
    swap(table)
    table.log = table.handle()
    assert table.append(rows(40)) == 2
    assert len(table.rows()) == 40


def test_merged_and_rewritten_splits_do_not_bring_their_sources_back(table):
    """Rows that were merged or rewritten are not doubled when the whole log is lost."""
    table.append(rows(0))
    run_merge(table.handle(), MergeRequest())
    run_delete(table.handle(), "id IN (3, 12)")
    before = sorted(row["id"] for row in table.rows())
    lose_log(table)
    repair(table, from_splits=True)
    swap(table)
    assert sorted(row["id"] for row in table.rows()) == before


def test_removes_that_can_still_be_read_are_honoured(table):
    victim = table.handle().list_files()[0].path
    table.log.remove_files([victim])
    before = table.rows()
    for version in (0, 1, 2):
        (table.root / "_transaction_log" / f"{version:020}.json").write_bytes(b"lost")
    repair(table, from_splits=True)
    swap(table)
    assert table.rows() == before


def test_metadata_that_can_still_be_read_is_kept(table):
    table.log.update_properties({"owner": "me"})
    metadata = table.handle().metadata()
    (table.root / "_transaction_log" / f"{1:020}.json").write_bytes(b"lost")
    repair(table, from_splits=True)
    swap(table)
    after = table.handle().metadata()
    assert after == replace(metadata, id=after.id, split_table_id=metadata.id)


def test_foreign_parquet_files_and_broken_splits_are_left_out(table):
    import pyarrow.parquet as pq

    pq.write_table(rows(0), table.root / "foreign.split")
    (table.root / "broken.split").write_bytes(b"nothing")
    lose_log(table)
    result = repair(table, from_splits=True)
    assert (result.status, result.total_splits) == ("SUCCESS", 3)


def test_without_any_split_there_is_nothing_to_rebuild(tmp_path):
    (tmp_path / "t" / "_transaction_log").mkdir(parents=True)
    request = RepairRequest(str(tmp_path / "t" / "_transaction_log"), str(tmp_path / "t" / "_new"), True)
    result = run_repair(request, Options.of())
    assert result.status.startswith("ERROR: ")
    assert not (tmp_path / "t" / "_new").exists()


def test_a_second_repair_to_the_same_place_is_refused(table):
    assert repair(table).status == "SUCCESS"
    with pytest.raises(TableError, match="not empty"):
        repair(table)


def test_the_statement_does_the_same(table):
    lose_log(table)
    text = f"REPAIR INDEXFILES TRANSACTION LOG '{table.root}/_transaction_log' AT LOCATION '{table.root}/_new' FROM SPLITS"
    (row,) = it.sql(text).to_pylist()
    assert (row["status"], row["valid_splits"]) == ("SUCCESS", 3)


def test_a_damaged_schema_is_taken_from_the_splits(table):
    """A schemaString that cannot be read is an ERROR row that names FROM SPLITS, and FROM SPLITS mends it."""
    from indextables.model.actions import encode_action

    before = sorted(row["id"] for row in table.rows())
    metadata = replace(table.handle().metadata(), schema_string='{"type":"struct","fields":[{"name"')
    (table.root / "_transaction_log" / f"{3:020}.json").write_bytes(encode_action(metadata) + b"\n")
    result = repair(table)
    assert result.status.startswith("ERROR: the schema in the log cannot be read")
    assert "FROM SPLITS" in result.status
    assert not (table.root / "_new").exists()
    assert repair(table, from_splits=True).status == "SUCCESS"
    swap(table)
    assert sorted(row["id"] for row in table.rows()) == before
