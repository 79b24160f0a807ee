"""Who may not write, what a table says about its writes, and whose files are left alone."""

from __future__ import annotations

import dataclasses
import os

import pyarrow as pa
import pytest

import indextables as it
from indextables.errors import ProtocolError, TableError
from indextables.log.format.dialect import NATIVE
from indextables.model.actions import MetadataAction, ProtocolAction

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "text": [f"row {number}" for number in ids]}, schema=SCHEMA)


def table_at(path, *appends):
    table = it.Table.create(str(path), SCHEMA)
    for ids in appends:
        table.append(rows(*ids))
    return table


def commit_by_hand(path, *actions):
    log = it.TransactionLog.open(str(path))
    name = f"_transaction_log/{NATIVE.commit_name(log.latest_version() + 1)}"
    assert log.store.put_if_absent(name, NATIVE.encode_commit(actions))


def everything_below(path):
    return {
        os.path.join(folder, name): open(os.path.join(folder, name), "rb").read()
        for folder, _, names in os.walk(path)
        for name in names
    }


VERBS = {
    "append": lambda table: table.append(rows(9)),
    "overwrite": lambda table: table.overwrite(rows(9)),
    "overwrite where": lambda table: table.overwrite(rows(1), where="id = 1"),
    "delete": lambda table: table.delete("id = 1"),
    "merge": lambda table: table.merge_splits(),
    "purge rows": lambda table: table.purge_rows(),
    "checkpoint": lambda table: table.checkpoint(),
    "purge": lambda table: table.purge(older_than_hours=1000),
    "truncate history": lambda table: table.truncate_history(),
    "restore": lambda table: table.restore(1),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("checked", ["true", "false"])
def test_a_table_of_a_newer_writer_is_left_byte_for_byte(tmp_path, verb, checked):
    """B2: no verb writes it, with and without the check for readers."""
    table_at(tmp_path / "t", [1, 2], [3])
    newer = ProtocolAction(min_reader_version=999 if checked == "false" else 2, min_writer_version=999)
    commit_by_hand(tmp_path / "t", newer)
    table = it.Table.open(str(tmp_path / "t"), options={"protocol.checkEnabled": checked})
    assert table.count() == 3
    before = everything_below(tmp_path)
    with pytest.raises(ProtocolError, match=r"999.*Upgrade"):
        VERBS[verb](table)
    assert everything_below(tmp_path) == before


@pytest.mark.parametrize("verb", ["append", "overwrite", "overwrite where"])
def test_a_table_of_another_container_gets_no_parquet_splits(tmp_path, verb):
    table = table_at(tmp_path / "t", [1])
    other = dataclasses.replace(table.metadata, format={"provider": "indextables", "options": {}})
    assert isinstance(other, MetadataAction)
    commit_by_hand(tmp_path / "t", other)
    before = everything_below(tmp_path)
    with pytest.raises(TableError, match="not in Parquet"):
        VERBS[verb](it.Table.open(str(tmp_path / "t")))
    assert everything_below(tmp_path) == before


def test_a_table_property_takes_the_place_of_a_default(tmp_path):
    table = table_at(tmp_path / "t")
    log = it.TransactionLog.open(str(tmp_path / "t"))
    log.update_properties({"spark.indextables.write.maxRowsPerSplit": "2"})
    assert table.refresh().append(rows(1, 2, 3, 4)).files_added == 2
    assert table.append(rows(5, 6, 7, 8), options={"write.maxRowsPerSplit": "4"}).files_added == 1


def test_purge_leaves_a_table_below_this_one_alone(tmp_path):
    outer = it.Table.create(str(tmp_path / "t"), SCHEMA, options={"purge.retentionCheckEnabled": "false"})
    outer.append(rows(1))
    inner = table_at(tmp_path / "t" / "nested", [2])
    outer.overwrite(rows(3))
    result = it.Table.open(str(tmp_path / "t"), options={"purge.retentionCheckEnabled": "false"}).purge(
        older_than_hours=0, log_retention_hours=0
    )
    assert result.orphaned_files_found <= 1
    assert inner.refresh().scan().read_all()["id"].to_pylist() == [2]


def test_repair_from_splits_takes_no_rows_of_a_table_below(tmp_path):
    table_at(tmp_path / "t", [1], [2])
    table_at(tmp_path / "t" / "sub", [99])
    os.remove(tmp_path / "t" / "_transaction_log" / NATIVE.commit_name(1))
    source, target = tmp_path / "t" / "_transaction_log", tmp_path / "t" / "_transaction_log_new"
    found = it.sql(
        f"REPAIR INDEXFILES TRANSACTION LOG '{source}' AT LOCATION '{target}' FROM SPLITS"
    ).to_pylist()[0]
    assert (found["status"], found["total_splits"]) == ("SUCCESS", 2)


def test_restoring_a_merged_version_says_that_rows_change(tmp_path):
    table = table_at(tmp_path / "t", [1], [2])
    table.merge_splits()
    merged = table.version
    table.overwrite(rows(7))
    restored = table.restore(merged).version
    actions = it.TransactionLog.open(str(tmp_path / "t")).read_version(restored)
    assert [action.data_change for action in actions if isinstance(action, it.AddAction)] == [True]
    assert table.restore(merged).status == "NO ACTION"
